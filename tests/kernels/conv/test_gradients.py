# SPDX-License-Identifier: Apache-2.0
"""Transposed convolutions and gradients: right against float64, in the simulator with all checks and on a GPU."""

import itertools

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import CuteError
from numba_cute.kernels import entry as entry_of
from numba_cute.kernels.conv import entry, plan
from numba_cute.kernels.conv.operands import Columns, Gradient, Image, Lattice, Turned, parts_of, whole
from numba_cute.kernels.gemm import Plan, bias, residual
from numba_cute.kernels.gemm.launches import simulate

from ...conftest import _need_gpu
from .test_conv import BF16, SLOW, assert_close, last, walk

UNIT = 64


def problem(images, extents, channels, outs, how):
    """Images and filters, and the gradient of the output, (N, …, C) each."""
    rng = np.random.default_rng(0)
    shapes = (images, *extents, channels), (outs, *how.taps, channels), (images, *how.out(extents), outs)
    return [rng.standard_normal(shape, np.float32).astype(BF16.numpy) for shape in shapes]


def windows(how, out):
    """Each tap, and which pixels of the padded images it meets."""
    for tap in np.ndindex(*how.taps):
        each = zip(tap, how.dilation, out, how.stride)
        yield tap, tuple(slice(t * d, t * d + (n - 1) * s + 1, s) for t, d, n, s in each)


def of_images(dy, w, how, extents):
    padded = [n + lo + up for n, lo, up in zip(extents, how.before, how.after)]
    dx = np.zeros((len(dy), *padded, w.shape[-1]))
    for tap, there in windows(how, dy.shape[1:-1]):
        dx[(slice(None), *there)] += dy.astype(np.float64) @ w[(slice(None), *tap)].astype(np.float64)
    return dx[(slice(None), *(slice(lo, lo + n) for lo, n in zip(how.before, extents)))]


def of_filters(x, dy, how):
    padded = np.pad(x.astype(np.float64), [(0, 0), *zip(how.before, how.after), (0, 0)])
    rows = dy.astype(np.float64).reshape(-1, dy.shape[-1]).T
    dw = np.zeros((dy.shape[-1], *how.taps, x.shape[-1]))
    for tap, there in windows(how, dy.shape[1:-1]):
        dw[(slice(None), *tap)] = rows @ padded[(slice(None), *there)].reshape(-1, x.shape[-1])
    return dw


def test_a_part_walks_the_taps_that_reach_its_pixels_and_no_other():
    """Of which zeros around the image would make NaN, where a filter is infinite there."""
    numbers = (range(1, 5), range(1, 5), (1, 2, 3), range(4), (1, 2, 3), (0, 1))
    for n, taps, stride, padding, dilation, more in itertools.product(*numbers):
        extent = (n - 1) * stride - 2 * padding + dilation * (taps - 1) + more + 1
        if more >= stride or extent < 1:
            continue
        reached = {(o, t): i for i in range(n) for t in range(taps) for o in [i * stride - padding + dilation * t]}
        how = walk((taps,), stride, padding, dilation=dilation)
        for part in parts_of(how, (extent,), (n,)):
            pixels = range(part.first[0], extent, stride)
            wanted = {t for o, t in reached if o in pixels}
            assert part.extents == (len(pixels),) and (part.walk is None) == (not wanted)
            if part.walk is None:
                continue
            (many,), (last,), (step,), (far,) = part.walk.taps, part.last, part.step, part.walk.dilation
            walked = [last - i * step for i in range(many)]
            assert set(walked) == wanted and part.walk.out((n,)) == part.extents
            found = {
                (o, t): i * far + j - part.walk.before[0] for i, t in enumerate(walked) for j, o in enumerate(pixels)
            }
            assert {at: i for at, i in found.items() if 0 <= i < n} == {
                (o, t): i for (o, t), i in reached.items() if o in pixels
            }


@SLOW
@pytest.mark.parametrize(
    ("extents", "channels", "outs", "how", "cut"),
    [
        ((5, 7), 24, 40, walk((3, 2), 1, 1, (1, 0)), Plan(64, 1)),
        ((9, 8), 72, 72, walk((3, 3), 2, 1), Plan(64, 1)),
        ((9, 8), 72, 24, walk((3, 4), (2, 3), (1, 0), (1, 2), (2, 1)), Plan(64, 2)),
        ((9,), 64, 72, walk((1,), 2), Plan(128, 1)),
        ((4, 3, 5), 24, 24, walk((3, 3, 3), (1, 2, 1), 1), Plan(64, 1)),
    ],
    ids=str,
)
def test_each_place_of_the_stride_is_a_convolution(extents, channels, outs, how, cut):
    x, w, dy = problem(1, extents, channels, outs, how)
    dx = np.full_like(x, np.nan)
    for part in parts_of(how, extents, dy.shape[1:-1]):
        there = dx[(slice(None), *(slice(first, None, s) for first, s in zip(part.first, how.stride)))]
        assert there.shape[1:-1] == part.extents
        if part.walk is None:
            there[...] = 0
            continue
        assert part.walk.out(dy.shape[1:-1]) == part.extents
        b = Turned(w, part.walk.taps, part.last, part.step, UNIT)
        c = Lattice(there) if max(how.stride) > 1 else dx.reshape(-1, channels)
        simulate(Image(dy, part.walk, UNIT), b, c, BF16, cut)
    assert_close(dx, of_images(dy, w, how, extents))


@pytest.mark.parametrize(
    ("extents", "channels", "outs", "how", "inner", "cut", "apart"),
    [
        ((140,), 64, 40, walk((2,), 1, 1), UNIT, Plan(64, 1, splits=2), 2),
        pytest.param((5, 5), 128, 136, walk((3, 3), 1, 1), UNIT, Plan(192, 2), None, marks=SLOW),
        pytest.param((5, 5), 72, 40, walk((3, 1), 2, 1), 2 * UNIT, Plan(64, 1), None, marks=SLOW),
        pytest.param((9, 15), 128, 136, walk((1, 3), 1, (0, 1)), UNIT, Plan(192, 2, splits=3), 3, marks=SLOW),
    ],
    ids=str,
)
def test_filters_are_written_where_they_lie(extents, channels, outs, how, inner, cut, apart):
    """In tiles of several taps, some of whose channels are not there; added up, where there are parts."""
    x, w, dy = problem(1, extents, channels, outs, how)
    dw = np.full_like(w, np.nan)
    columns = Columns(x, how, inner, None)
    assert columns.shape[0] == Gradient(dw, inner).shape[1]
    simulate(dy.reshape(-1, outs).T, columns, Gradient(dw, inner), BF16, cut, apart=apart)
    assert_close(dw, of_filters(x, dy, how))


@SLOW
@pytest.mark.parametrize(
    ("extents", "channels", "outs", "how", "groups", "cut"),
    [
        ((5, 7), 24, 40, walk((3, 2), 1, 1, (1, 0)), 1, Plan(64, 1)),
        ((6, 5), 72, 24, walk((3, 3), 2, 1), 3, Plan(64, 1)),
        ((9, 8), 64, 136, walk((3, 3), 1, 1), 1, Plan(192, 2)),
    ],
    ids=str,
)
def test_groups_of_pixels_are_summed(extents, channels, outs, how, groups, cut):
    x, _, dy = problem(1, extents, channels, outs, how)
    b = Columns(x, how, whole(channels, UNIT), groups)
    count, columns, pixels = b.shape
    sums = np.full((count, outs, columns), np.nan, np.float32)
    simulate(dy.reshape(count, pixels, outs).swapaxes(1, 2), b, sums, BF16, cut, c_dtype=cute.Float32)
    assert_close(sums.sum(0).reshape(outs, *how.taps, -1)[..., :channels], of_filters(x, dy, how))


def test_tiles_of_filters_divide_channels_and_taps():
    assert [n for n in (1, 2, 3, 4) if plan.fits(n, (1, 3, 3))] == [1, 3]
    assert [n for n in (1, 2, 3, 4) if plan.fits(n, (2, 2, 3))] == [1, 2, 4]
    assert not plan.fits(4, (1, 2))
    found = plan.groups(entry_of.WARPGROUPS, 64, 64, (3, 3), 256 * 56 * 56, UNIT, 132)
    assert found.cut.tile_n == 192 and found.number == found.cut.splits > 40
    for channels, pixels in ((320, 65536), (512, 12544), (512, 1568)):
        found = plan.groups(entry_of.WARPGROUPS, channels, channels, (3, 3), pixels, UNIT, 132)
        assert (found.cut.tile_n, found.inner) == (192, UNIT), "three taps, and no channels of zeros"


def test_what_cannot_be_transposed_is_refused():
    torch = pytest.importorskip("torch")
    x, w = torch.zeros(2, 64, 9, 9, dtype=torch.bfloat16), torch.zeros(64, 8, 3, 3, dtype=torch.bfloat16)
    r = torch.zeros(2, 8, 19, 19, dtype=torch.bfloat16)
    for given, how, says in [
        ((x, w.mT.movedim(1, 0)), {}, r"its shape must be \(64, any, any, any\)"),
        ((x.float(), w.float()), {}, "its elements must be bfloat16 or float16"),
        ((x, w), {"padding": "same"}, "padding 'same' must be a number"),
        ((x, w), {"stride": 2, "output_padding": 2}, "output_padding 2 must be smaller than stride 2"),
        ((x, w), {"padding": 6}, "nothing may be empty"),
        ((x, w), {"stride": 2, "epilogue": residual(r)}, "takes numbers and a value for each column"),
        ((x, w), {"stride": 4, "epilogue": bias(torch.zeros(8))}, "no tap reaches some pixels"),
        ((x.clone().requires_grad_(), w), {"out": r}, "a gradient is asked for"),
    ]:
        with pytest.raises(CuteError, match=says):
            entry.conv_transpose2d(*given, **how)


# ---------------------------------------------------------------- on a GPU


@pytest.fixture
def torch():
    _need_gpu("sm_90a")
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    return torch


def near(got, want, how_much=2.0**-7):
    assert got.shape == want.shape
    assert (got.double() - want).abs().max() <= how_much * want.abs().max()


CASES = [
    ((3, 64, 29, 31), (136, 64, 3, 3), {"padding": 1}),
    ((3, 72, 20, 31), (64, 72, 3, 2), {"padding": (1, 0), "stride": 2}),
    ((4, 128, 8, 8), (256, 128, 1, 1), {"stride": 2}),
    ((2, 64, 51), (72, 64, 4), {"padding": 1, "stride": 3, "dilation": 2}),
    ((2, 24, 9, 8, 11), (72, 24, 3, 2, 3), {"padding": (1, 0, 2)}),
]


@pytest.mark.gpu
@pytest.mark.parametrize(("shape", "filters", "how"), CASES, ids=str)
def test_autograd_knows_convolutions(torch, shape, filters, how):
    name = f"conv{len(shape) - 2}d"
    x, w = (last(torch, torch.randn(s, device="cuda").bfloat16()).requires_grad_() for s in (shape, filters))
    v = torch.randn(filters[0], device="cuda").requires_grad_()
    y = getattr(cute.kernels, name)(x, w, v, **how)
    dy = torch.randn_like(y)
    wide = [t.detach().double().requires_grad_() for t in (x, w, v)]
    want = torch.autograd.grad(getattr(torch.nn.functional, name)(*wide, **how), wide, dy.double())
    for got, there in zip(torch.autograd.grad(y, (x, w, v), dy), want):
        near(got, there)


@pytest.mark.gpu
@pytest.mark.parametrize(("shape", "filters", "how"), CASES, ids=str)
def test_transposed_convolutions_are_right_and_known_to_autograd(torch, shape, filters, how):
    name = f"conv_transpose{len(shape) - 2}d"
    shape = (shape[0], filters[0], *shape[2:])
    x, w = (last(torch, torch.randn(s, device="cuda").bfloat16()).requires_grad_() for s in (shape, filters))
    v = torch.randn(filters[1], device="cuda").requires_grad_()
    if how.get("stride") == 2:
        how = {**how, "output_padding": 1}
    y = getattr(cute.kernels, name)(x, w, v, **how)
    wide = [t.detach().double().requires_grad_() for t in (x, w, v)]
    right = getattr(torch.nn.functional, name)(*wide, **how)
    near(y.detach(), right.detach())
    dy = torch.randn_like(y)
    for got, there in zip(torch.autograd.grad(y, (x, w, v), dy), torch.autograd.grad(right, wide, dy.double())):
        near(got, there)
