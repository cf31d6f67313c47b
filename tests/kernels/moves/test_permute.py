# SPDX-License-Identifier: Apache-2.0
"""permute: what NumPy and torch give, of any permutation, strides and width of elements."""

import itertools

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.kernels.moves.permute import gather, permute, plan, transpose, turn
from numba_cute.seam import CuteError

SIMULATED = [
    ((2, 5, 24, 32), (0, 2, 1, 3), "f2", gather),  # the innermost mode stays
    ((2, 20, 3), (0, 2, 1), "f4", gather),  # x's innermost mode is short
    ((12, 15), (0, 1), "u1", gather),  # a copy, of an odd number of elements
    ((7, 1, 9), (2, 1, 0), "f8", gather),
]
TURNED = [
    ((72, 40), (1, 0), "f2", turn),  # vectors on both sides, and ragged
    ((65, 40), (1, 0), "f4", turn),  # on one
    ((33, 35), (1, 0), "f2", turn),  # on neither
    ((130, 24), (1, 0), "u1", turn),
    ((3, 18, 2, 2, 16), (4, 2, 0, 3, 1), "f4", turn),
]


def simulated(shape, order, dtype, kernel, view=lambda x: x):
    x = view(np.random.default_rng(0).integers(0, 100, shape).astype(dtype))
    y = np.full([x.shape[m] for m in order], 101, dtype)
    work = plan(x, y, order)
    assert work.kernel is kernel
    work.simulate(x, y)
    np.testing.assert_array_equal(y, x.transpose(order))
    assert work.compile(x, y).resources.local == 0


@pytest.mark.parametrize(("shape", "order", "dtype", "kernel"), SIMULATED)
def test_gather_moves_each_element_to_its_place(shape, order, dtype, kernel):
    simulated(shape, order, dtype, kernel)


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "order", "dtype", "kernel"), TURNED)
def test_tiles_are_turned_in_shared_memory(shape, order, dtype, kernel):
    simulated(shape, order, dtype, kernel)


@pytest.mark.slow
def test_x_may_have_any_strides():
    simulated((40, 64), (1, 0), "f8", gather, lambda x: x[::2, ::2])
    simulated((80, 64), (1, 0), "f4", turn, lambda x: x[10:60, 3:60])


@pytest.mark.parametrize(
    ("shape", "order", "vectors"),
    [((64, 128), (1, 0), (8, 8)), ((64, 126), (1, 0), (2, 8)), ((63, 128), (1, 0), (8, 1))],
)
def test_vectors_are_as_wide_as_extents_and_strides_allow(shape, order, vectors):
    x = np.zeros(shape, "f2")
    tile = plan(x, np.zeros(shape[::-1], "f2"), order).static[-1]
    assert (tile.read, tile.write) == vectors


def torch_or_skip():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    return torch


def check(torch, x, order):
    got = permute(x, order)
    assert got.is_contiguous()
    assert torch.equal(got.view(torch.uint8), x.permute(order).contiguous().view(torch.uint8))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 777), (300, 1), (16, 16), (129, 257), (1000, 1024), (2047, 513)])
def test_transposes_are_those_of_torch(shape, dtype):
    torch = torch_or_skip()
    x = torch.randint(0, 250, shape, device="cuda").to(getattr(torch, dtype))
    check(torch, x, (1, 0))
    check(torch, x[1:, ::2], (1, 0)) if min(shape) > 1 else None
    assert torch.equal(transpose(x), x.t())


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(2, 3, 4, 5, 6), (3, 32, 5, 17, 40), (8, 16, 2, 64, 24)])
@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_all_permutations_of_five_modes_are_those_of_torch(shape, dtype):
    torch = torch_or_skip()
    x = torch.randint(0, 100, shape, device="cuda").to(getattr(torch, dtype))
    for order in itertools.permutations(range(5)):
        check(torch, x, order)


@pytest.mark.gpu
def test_a_permutation_is_an_operator_that_torch_differentiates_not():
    torch = torch_or_skip()
    x = torch.randn(100, 200, device="cuda")
    out = torch.full((200, 100), float("nan"), device="cuda")
    assert permute(x, (-1, 0), out=out) is out
    assert torch.equal(out, x.t())


@pytest.mark.parametrize("order", [(0, 0), (0,), (0, 2)])
def test_an_order_that_is_none_is_refused(order):
    torch = pytest.importorskip("torch")
    with pytest.raises(CuteError, match=r"permute: order is \(.*name each of 0 to 1 once"):
        permute(torch.zeros(2, 3), order)


def test_what_has_one_mode_has_no_transpose():
    with pytest.raises((CuteError, ImportError), match=r"2 modes or more|torch"):
        transpose(np.zeros(3, "f4"))
    assert cute.coalesce(cute.make_layout((2, 3))).shape == 6
