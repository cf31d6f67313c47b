# SPDX-License-Identifier: Apache-2.0
"""permute: what NumPy and torch give, of any permutation, strides and width of elements."""

import itertools

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.kernels import tuning
from numba_cute.kernels.moves import box, skew, turn
from numba_cute.kernels.moves.permute import permute, plan, transpose
from numba_cute.seam import CuteError
from numba_cute.seam.marks.host_objects import as_argument

BOXED = [
    ((7, 9), (1, 0), "u2"),  # vectors lie in runs on neither side
    ((2, 5, 6, 16), (0, 2, 1, 3), "f2"),  # the innermost mode stays: elements of 16 bytes
]
MORE_BOXED = [
    ((2, 70, 3), (0, 2, 1), "f4"),  # x's innermost mode is short
    ((12, 15), (0, 1), "u1"),  # a copy, of an odd number of elements
    ((37, 41), (1, 0), "u1"),
    ((40, 33), (1, 0), "f8"),
    ((3, 4, 5, 2, 6), (4, 1, 3, 0, 2), "f4"),
    ((16, 2, 24, 5), (3, 2, 0, 1), "u2"),  # vectors of y across modes
]
TURNED = [
    ((120, 112), (1, 0), "f2"),  # ragged
    ((3, 124, 56), (0, 2, 1), "f4"),
    ((208, 240), (1, 0), "u1"),
    ((60, 30), (1, 0), "f8"),
    ((6, 8, 4, 2, 64), (4, 1, 3, 0, 2), "f4"),  # columns of several modes, and a batch
    ((8, 16, 4, 48), (2, 1, 0, 3), "f8"),  # elements of 16 bytes have a place of their own
]


SKEWED = [  # of tiles of so many vectors by 8, or by 16 of f8
    ((79, 71), (1, 0), "f4", 8, 0),
    ((3, 79, 70), (0, 2, 1), "u2", 8, 1),  # y begins within a word; a batch
    ((133, 71), (1, 0), "u2", 16, 0),
    ((2, 67, 3, 65), (3, 0, 2, 1), "u1", 8, 3),
]


def knowing(**numbers):
    """Plan by a table with such numbers of permutations."""
    return tuning.using(tuning.with_numbers(tuning.tables()[0], "permute", **numbers))


def simulated(shape, order, dtype, view=lambda x: x, kernel=box.move):
    x = view(np.random.default_rng(0).integers(0, 100, shape).astype(dtype))
    y = np.full([x.shape[m] for m in order], 101, dtype)
    work = plan(x, y, order)
    assert work.kernel is kernel
    work.simulate(x, y)
    np.testing.assert_array_equal(y, x.transpose(order))
    return work, x, y


@pytest.mark.parametrize(("shape", "order", "dtype"), BOXED)
def test_boxes_move_each_element_to_its_place(shape, order, dtype):
    simulated(shape, order, dtype)


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "order", "dtype"), MORE_BOXED)
def test_boxes_of_any_extents(shape, order, dtype):
    work, x, y = simulated(shape, order, dtype)
    assert work.compile(x, y).resources.local == 0


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "order", "dtype"), [((21, 35), (1, 0), "u1"), ((3, 7, 5, 9), (1, 3, 0, 2), "u2")])
def test_several_boxes_make_a_whole(shape, order, dtype):
    with knowing(box=64):
        work, _, _ = simulated(shape, order, dtype)
    assert work.grid > 4


def test_tiles_are_turned_in_registers_and_shared_memory():
    with knowing(tiles={2: [[8, 8, 1]]}):
        simulated((56, 112), (1, 0), "f2", kernel=turn.turn)


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "order", "dtype"), TURNED[:5])
def test_tiles_of_any_width(shape, order, dtype):
    work, x, y = simulated(shape, order, dtype, kernel=turn.turn)
    assert work.compile(x, y).resources.local == 0


def skewed(shape, order, dtype, along, before, view=lambda x: x, beside=None):
    """Permute by tiles of so many vectors along y's rows, to a y that begins so many elements after a vector. beside:
    the tiles' vectors along x's rows, and their warps."""
    x = view(np.random.default_rng(0).integers(0, 100, shape).astype(dtype))
    held = np.full(x.size + before + 5, 101, dtype)
    y = held[before : before + x.size].reshape([x.shape[m] for m in order])
    with knowing(skewed={x.itemsize: [[along, *(beside or [max(8, 2 * x.itemsize)])]]}, used=0.0):
        work = plan(x, y, order)
    assert work.kernel is skew.kernel_of(work.block // 32)
    work.simulate(x, y)
    np.testing.assert_array_equal(y, x.transpose(order))
    assert (held[:before] == 101).all()
    assert (held[before + x.size :] == 101).all()
    return work, x, y


def test_tiles_begin_where_vectors_of_the_result_do():
    skewed(*SKEWED[0])


@pytest.mark.slow
@pytest.mark.parametrize("case", SKEWED)
def test_tiles_of_any_alignment(case):
    work, x, y = skewed(*case)
    assert work.compile(x, y).resources.local == 0


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["u1", "u2", "f8"])
def test_rows_of_tiles_may_have_room_between_them_and_begin_within_a_word(dtype):
    shape, along = ((67, 75), 8) if dtype != "f8" else ((35, 41), 16)
    for view in (lambda x: x[1:-1, 1:-1], lambda x: x[::2, 3:]):
        skewed(shape, (1, 0), dtype, along, 1, view)


@pytest.mark.slow
def test_tiles_of_more_warps():
    work, x, y = skewed((133, 500), (1, 0), "u2", 16, 1, beside=[32, 16])
    assert work.block == 512 and work.compile(x, y).resources.local == 0


def test_a_tile_that_warps_cannot_share_is_refused():
    with pytest.raises(CuteError, match="Tile.*cannot share these vectors evenly: give more across, or along"):
        skew.Tile(8, 16, 8)


@pytest.mark.slow
def test_x_may_have_any_strides():
    simulated((40, 64), (1, 0), "f8", lambda x: x[::2, ::2])
    simulated((60, 64), (1, 0), "f4", lambda x: x[10:50, 3:60])
    simulated((3, 5, 1), (0, 2, 1), "f4", lambda x: np.broadcast_to(x, (3, 5, 7)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_any_permutation(seed):
    rng = np.random.default_rng(seed)
    most = int(rng.choice([256, 1024, 16384]))
    shape, order = rng.choice([1, 2, 3, 5, 7, 8, 16], 4), rng.permutation(4).tolist()
    dtype = rng.choice(["u1", "u2", "f4", "f8"])
    with knowing(box=most):
        simulated(shape, order, dtype, lambda x: x[..., : rng.integers(1, x.shape[-1] + 1)], box.move)


@pytest.mark.parametrize("shape", [(7, 9), (256, 256)])
def test_a_launch_is_made_in_machine_code(shape):
    """Objects that a launch has to hold anew each time cost it most of a millisecond."""

    def leaves(value):
        return itertools.chain(*map(leaves, value)) if type(value) is tuple else (value,)

    work = plan(np.zeros(shape, "f4"), np.zeros(shape[::-1], "f4"), (1, 0))
    assert all(as_argument(a) is a for a in leaves(work.static))


def torch_or_skip():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    return torch


def check(torch, x, order):
    got = permute(x, order)
    assert got.is_contiguous()
    assert torch.equal(got, x.permute(order))


TRANSPOSES = [  # few kinds of kernels, for each is compiled
    ("uint8", [(129, 257), (2047, 513), (2048, 560), (1024, 3072)]),
    ("bfloat16", [(1, 777), (129, 257), (2047, 513), (1000, 1024), (2048, 560)]),
    ("float32", [(1, 1), (1000, 1024), (2048, 560)]),
    ("float64", [(2047, 513), (1000, 1024)]),
]


@pytest.mark.gpu
@pytest.mark.parametrize(("dtype", "shapes"), TRANSPOSES)
def test_transposes_are_those_of_torch(dtype, shapes):
    torch = torch_or_skip()
    for shape in shapes:
        x = torch.randint(0, 250, shape, device="cuda").to(getattr(torch, dtype))
        check(torch, x, (1, 0))
    assert torch.equal(transpose(x), x.t())


@pytest.mark.gpu
def test_any_strides_are_taken():
    torch = torch_or_skip()
    x = torch.randn(500, 700, device="cuda").bfloat16()
    check(torch, x[1:, ::2], (1, 0))
    check(torch, x[3:, 5:600], (1, 0))
    check(torch, x[:1].expand(30, 700), (1, 0))


ORDERS = [(4, 1, 3, 0, 2), (0, 2, 1, 3, 4), (4, 3, 2, 1, 0)]


@pytest.mark.gpu
@pytest.mark.parametrize(("shape", "dtype"), [((3, 32, 5, 17, 40), "float32"), ((8, 16, 2, 64, 24), "bfloat16")])
def test_permutations_of_five_modes_are_those_of_torch(shape, dtype):
    torch = torch_or_skip()
    x = torch.randint(0, 100, shape, device="cuda").to(getattr(torch, dtype))
    for order in ORDERS:
        check(torch, x, order)


@pytest.mark.gpu
def test_images_and_heads_are_those_of_torch():
    torch = torch_or_skip()
    x = torch.randn(5, 40, 33, 24, device="cuda", dtype=torch.bfloat16)
    for order in ((0, 2, 3, 1), (0, 3, 1, 2), (0, 2, 1, 3)):
        check(torch, x, order)
    check(torch, torch.randn(2, 100, 130, 3, device="cuda"), (0, 3, 1, 2))


@pytest.mark.gpu
def test_a_permutation_writes_to_out():
    torch = torch_or_skip()
    x = torch.randn(100, 200, device="cuda")
    out = torch.full((200 * 100 + 1,), float("nan"), device="cuda")
    for aligned in (out[:-1].view(200, 100), out[1:].view(200, 100)):
        assert permute(x, (-1, 0), out=aligned) is aligned
        assert torch.equal(aligned, x.t())


@pytest.mark.parametrize("order", [(0, 0), (0,), (0, 2)])
def test_an_order_that_is_none_is_refused(order):
    torch = pytest.importorskip("torch")
    with pytest.raises(CuteError, match=r"permute: order is \(.*name each of 0 to 1 once"):
        permute(torch.zeros(2, 3), order)


def test_what_has_one_mode_has_no_transpose():
    with pytest.raises((CuteError, ImportError), match=r"2 modes or more|torch"):
        transpose(np.zeros(3, "f4"))
    assert cute.coalesce(cute.make_layout((2, 3))).shape == 6
