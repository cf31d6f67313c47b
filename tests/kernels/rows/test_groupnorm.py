# SPDX-License-Identifier: Apache-2.0
"""GroupNorm and its gradients against float64, in the simulator with all checks."""

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import kernels
from numba_cute.kernels.rows import groupnorm

from .arrays import BF16, F32

torch = pytest.importorskip("torch")
SLOW = pytest.mark.slow


def compared(shape, groups, dtype, weighted=True, biased=True):
    """The greatest differences of the result and its gradients from float64's, as parts of the greatest values."""
    torch.manual_seed(0)
    x = (torch.randn(shape) + 3).to(dtype).requires_grad_()
    lines = [torch.randn(shape[1], requires_grad=True) if there else None for there in (weighted, biased)]
    seed = torch.randn(shape).to(dtype)
    exact = [None if t is None else t.detach().double().requires_grad_() for t in (x, *lines)]
    with cute.simulation(checks=True, sms=2):
        got = kernels.groupnorm(x, groups, *lines)
        got.backward(seed)
    ones, zeros = torch.ones(shape[1]).double(), torch.zeros(shape[1]).double()
    given = (lines if t is None else t for t, lines in zip(exact[1:], (ones, zeros)))  # torch wants both or none
    want = torch.nn.functional.group_norm(exact[0], groups, *given)
    want.backward(seed.double())
    pairs = [(got, want), *((a.grad, b.grad) for a, b in zip((x, *lines), exact) if a is not None)]
    return max(
        float((a.detach().double() - b.detach()).abs().max() / (b.detach().abs().max() + 1e-3)) for a, b in pairs
    )


@pytest.mark.parametrize(
    "shape, groups, dtype, weighted, biased",
    [
        pytest.param((2, 6, 3, 5), 3, torch.float32, True, True, marks=SLOW),  # vectors of one element
        pytest.param((2, 4, 8), 2, torch.bfloat16, True, False, marks=SLOW),
        pytest.param((1, 4, 40, 64), 2, torch.bfloat16, False, True, marks=SLOW),
        pytest.param((3, 8), 2, torch.float32, True, True, marks=SLOW),  # without places
        pytest.param((1, 4, 128, 144), 1, torch.float16, True, True, marks=SLOW),  # a cluster, ragged
        pytest.param((1, 1, 3, 4), 1, torch.float32, False, False, marks=SLOW),
    ],
)
def test_groups_and_their_gradients_are_right(shape, groups, dtype, weighted, biased):
    unit = {torch.float32: 2e-6, torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7}[dtype]
    assert compared(shape, groups, dtype, weighted, biased) < 2 * unit


@pytest.mark.parametrize(
    "shape, groups, dtype, weighted, biased",
    [
        pytest.param((2, 6, 4, 15), 3, torch.float32, True, False, marks=SLOW),  # rows of 15 elements
        pytest.param((1, 4, 8, 24), 2, torch.bfloat16, True, True, marks=SLOW),
        pytest.param((2, 2, 64), 1, torch.float16, False, True, marks=SLOW),  # a row is a channel
    ],
)
def test_groups_longer_than_a_cluster_holds_are_read_in_parts(shape, groups, dtype, weighted, biased, monkeypatch):
    monkeypatch.setattr(groupnorm, "blocks_at", lambda x: 1)
    monkeypatch.setattr(groupnorm, "BLOCK", 64 if len(shape) == 3 else 24)
    unit = {torch.float32: 2e-6, torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7}[dtype]
    assert compared(shape, groups, dtype, weighted, biased) < 2 * unit


def test_parts_of_a_channel_suit_vectors_where_they_can():
    assert [groupnorm._parts(n, 16384) for n in (16384, 512 * 512, 1000 * 1000, 50000, 1021 * 1021, 1000003)] == (
        [1, 16, 100, 5, 1021, 1]
    )


def test_what_is_not_taken_is_refused_by_name():
    x = torch.zeros(2, 6, 4, 4)
    with cute.simulation():
        for words, call in {
            "groups 4 must divide the channels of x": lambda: kernels.groupnorm(x, 4),
            "the groups of x, .* have no elements": lambda: kernels.groupnorm(x[..., :0], 3),
            "weight is float32 of shape .*; its shape must be": lambda: kernels.groupnorm(x, 3, torch.ones(4)),
            "its last mode must be contiguous": lambda: kernels.groupnorm(x.mT, 3),
            "out .* must be dense": lambda: kernels.groupnorm(x, 3, out=torch.zeros(2, 6, 4, 8)[..., :4]),
        }.items():
            with pytest.raises(cute.CuteError, match=f"groupnorm: .*{words}"):
                call()


@SLOW
@pytest.mark.parametrize("dtype", [BF16, F32])
@pytest.mark.parametrize("channels, places", [(10, 64 * 64), (4, 49), (16, 32 * 32), (10, 128 * 128)])
def test_no_plan_spills_registers(channels, places, dtype):
    grouping = groupnorm.Grouping(2 * channels, channels, places)
    x, rows = np.zeros((4, channels * places), dtype), np.zeros((4 * channels, places), dtype)
    line, weight = np.zeros(4, np.float32), np.zeros(2 * channels, np.float32)
    sums = np.zeros(4 * channels, np.float32)
    split = (rows, sums, sums), (rows, weight, weight, line, line, rows)
    adding, finishing = groupnorm.backward_works(rows, rows, rows, grouping)
    for made in (
        groupnorm.forward_work(x, x, 1e-5, grouping).compile(x, weight, weight, x, line, line),
        adding.compile(rows, rows, line, line, sums, sums),
        finishing.compile(rows, rows, weight, line, line, line, line, rows),
        *(w.compile(*given) for w, given in zip(groupnorm.split_works(rows, rows, grouping), split)),
    ):
        assert (made.resources.spill_stores, made.resources.spill_loads, made.resources.local) == (0, 0, 0)


@pytest.mark.slow
@pytest.mark.usefixtures("simulated")
@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float32], ids=str)
def test_images_of_channels_last_give_such(kind):
    x = torch.randn(2, 6, 3, 5).to(kind).contiguous(memory_format=torch.channels_last)
    weight, bias = torch.randn(6), torch.randn(6)
    mine = [t.clone(memory_format=torch.preserve_format).requires_grad_() for t in (x, weight, bias)]
    exact = [t.detach().double().requires_grad_() for t in mine]
    y, want = kernels.groupnorm(mine[0], 3, *mine[1:]), torch.nn.functional.group_norm(exact[0], 3, *exact[1:])
    assert y.is_contiguous(memory_format=torch.channels_last)
    dy = torch.randn(want.shape).to(kind)
    found, right = torch.autograd.grad(y, mine, dy), torch.autograd.grad(want, exact, dy.double())
    within = 0.01 if kind == torch.bfloat16 else 1e-5
    for got, good in zip((y, *found), (want, *right), strict=True):
        assert (got.double() - good).norm() <= within * good.norm()
    out = torch.empty_like(x)
    assert kernels.groupnorm(x, 3, weight, bias, out=out) is out and torch.equal(out, y)
    with pytest.raises(cute.CuteError, match="x is of torch.channels_last, as it must be"):
        kernels.groupnorm(x, 3, out=torch.empty(2, 6, 3, 5).to(kind))
