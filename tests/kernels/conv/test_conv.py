# SPDX-License-Identifier: Apache-2.0
"""Convolutions: right against float64, in the simulator with all checks and on a GPU, and what they refuse."""

import itertools
import re

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import CuteError
from numba_cute.kernels.conv import entry, tensors
from numba_cute.kernels.conv.operands import Filter, Image, Walk
from numba_cute.kernels.gemm import Plan, bias, relu, residual, swiglu
from numba_cute.kernels.gemm.launches import simulate
from numba_cute.kernels.gemm.plan import arguments, kernel_of

from ...conftest import _need_gpu

SLOW = pytest.mark.slow
BF16, F16, E4M3, TF32 = cute.BFloat16, cute.Float16, cute.Float8E4M3FN, cute.TFloat32


# ---------------------------------------------------------------- in the simulator


def walk(taps, stride=1, before=0, after=None, dilation=1):
    """A Walk of numbers, or of one for each mode."""
    spread = lambda n: n if isinstance(n, tuple) else (n,) * len(taps)  # noqa: E731
    return Walk(taps, spread(stride), spread(before), spread(before if after is None else after), spread(dilation))


def convolved(x, w, how):
    """(N, …, C) with (outputs, …, C), in float64."""
    out = how.out(x.shape[1:-1])
    padded = np.pad(x.astype(np.float64), [(0, 0), *zip(how.before, how.after), (0, 0)])
    y = np.zeros((len(x), *out, len(w)))
    for tap in np.ndindex(*how.taps):
        each = zip(tap, how.dilation, out, how.stride)
        there = tuple(slice(t * d, t * d + (n - 1) * s + 1, s) for t, d, n, s in each)
        y += padded[(slice(None), *there)] @ w[(slice(None), *tap)].astype(np.float64).T
    return y


def problem(shape, outs, how, dtype=BF16):
    """Images (N, …, C), the operands, a poisoned C, and what it must be."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape, np.float32).astype(dtype.numpy)
    w = rng.standard_normal((outs, *how.taps, shape[-1]), np.float32).astype(dtype.numpy)
    want = convolved(x, w, how).reshape(-1, outs)
    tile_k = 1024 // dtype.width
    c = np.full(want.shape, np.nan, dtype.numpy if dtype.width != 8 else BF16.numpy)
    return Image(x, how, tile_k), Filter(w.reshape(outs, -1, shape[-1]), tile_k), c, want, rng


def assert_close(c, want):
    assert np.abs(c.astype(np.float64) - want).max() <= 2.0**-7 * np.abs(want).max()


@pytest.mark.parametrize(
    ("shape", "outs", "how", "cut"),
    [
        ((1, 5, 7, 24), 16, walk((2, 2), 1, 1, 0), Plan(64, 1)),
        pytest.param((2, 9, 11, 72), 72, walk((3, 2), (2, 3), (1, 2), (0, 1), (1, 2)), Plan(64, 2), marks=SLOW),
        pytest.param((2, 9, 11, 136), 72, walk((3, 3), 2, 1, dilation=(2, 1)), Plan(64, 1, 2), marks=SLOW),
        pytest.param((2, 9, 11, 136), 72, walk((3, 3), 1, 1, dilation=2), Plan(64, 1, splits=2), marks=SLOW),
        pytest.param((2, 9, 11, 64), 72, walk((3, 3), 1, 1), Plan(128, 2, turned=True), marks=SLOW),
        pytest.param((2, 9, 11, 64), 264, walk((3, 3), 1, 2), Plan(), marks=SLOW),
        pytest.param((2, 9, 11, 64), 64, walk((3, 3), 1, 1), Plan(64, 1, kept=9), marks=SLOW),
        pytest.param((2, 9, 11, 64), 72, walk((1, 1), 2), Plan(256, 1, kept=1), marks=SLOW),
        pytest.param((2, 9, 11, 64), 64, walk((3, 3), 1, 1), Plan(256, 1, turned=True), marks=SLOW),
        pytest.param((2, 150, 64), 40, walk((3,), 1, 1), Plan(64, 1), marks=SLOW),
        pytest.param((2, 4, 5, 6, 64), 40, walk((3, 3, 3), 1, 1), Plan(64, 1), marks=SLOW),
        pytest.param((2, 9, 11, 64), 40, walk((1, 1), 2), Plan(64, 1), marks=SLOW),
    ],
    ids=str,
)
def test_rows_of_the_im2col_matrix_are_multiplied(shape, outs, how, cut):
    a, b, c, want, _ = problem(shape, outs, how)
    simulate(a, b, c, BF16, cut)
    assert_close(c, want)


@pytest.mark.parametrize("dtype", [pytest.param(t, marks=SLOW) for t in (F16, E4M3)], ids=str)
def test_other_types_are_multiplied_too(dtype):
    a, b, c, want, _ = problem((1, 5, 7, 48), 16, walk((3, 3), 1, 1), dtype)
    simulate(a, b, c, dtype, Plan(64, 1))
    assert_close(c, want)


@SLOW
def test_an_epilogue_has_output_pixels_for_rows():
    a, b, c, want, rng = problem((2, 9, 11, 24), 40, walk((3, 3), 2, 1))
    v, r = rng.standard_normal(40).astype(np.float32), rng.standard_normal(c.shape).astype(c.dtype)
    simulate(a, b, c, BF16, Plan(64, 1), bias(v) | residual(r) | relu())
    assert_close(c, np.maximum(want + v + r.astype(np.float64), 0))


@SLOW
def test_extents_of_the_images_are_known_at_run_time_alone():
    made = []
    for shape in ((1, 5, 7, 64), (2, 8, 9, 64)):
        a, b, c, *_ = problem(shape, 64, walk((3, 3), 1, 1))
        made.append(cute.compile(kernel_of(Plan(64)), arguments(a, b, c, BF16, 66, Plan(64))[0], arch="sm_90a"))
    one, other = (re.sub(r"\w+4gemm\w+", "", m.ptx) for m in made)
    assert one == other and "im2col" in one
    assert (made[0].resources.spill_stores, made[0].resources.local, made[0].notes) == (0, 0, ())


# ---------------------------------------------------------------- what it refuses, and what it makes of arguments


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ((0, 0, 1), "stride 0 must be a number of 1 or more, or 2 of them"),
        ((1, (1, 2, 3), 1), r"padding \(1, 2, 3\) must be a number of 0 or more"),
        ((1, "full", 1), "padding 'full' must be"),
        ((2, "same", 1), 'padding "same" with stride 2'),
        ((1, 0, 1.5), "dilation 1.5 must be"),
    ],
)
def test_numbers_that_cannot_be_are_refused(how, says):
    with pytest.raises(CuteError, match=says):
        tensors.walk_of("conv2d", (3, 3), *how)


def test_padding_has_torchs_words():
    assert tensors.walk_of("conv2d", (4, 3), 1, "same", (1, 2)) == Walk((4, 3), (1, 1), (1, 2), (2, 2), (1, 2))
    assert tensors.walk_of("conv2d", (4, 3), (2,), "valid", 1) == walk((4, 3), 2)


def test_tensors_that_cannot_be_are_refused():
    torch = pytest.importorskip("torch")
    x, w = torch.zeros(2, 64, 9, 9, dtype=torch.bfloat16), torch.zeros(8, 64, 3, 3, dtype=torch.bfloat16)
    for given, says in [
        ((x[0], w), "it must have 4 modes"),
        ((x, w.half()), "its elements must be bfloat16"),
        ((x, w[:, :8]), r"its shape must be \(any, 64, any, any\)"),
        ((x[:, :, :2], w), "nothing may be empty"),
        ((x.double(), w), "x is float64 .* its elements must be"),
        ((x, w), "give tensors on the GPU"),
    ]:
        with pytest.raises(CuteError, match=says):
            entry.conv2d(*given)
    with pytest.raises(CuteError, match="two, which is for matmul"):
        entry.conv2d(x, w, epilogue=swiglu())


# ---------------------------------------------------------------- on a GPU


@pytest.fixture
def torch():
    _need_gpu("sm_90a")
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    return torch


def last(torch, t):
    """Channels last."""
    return t.movedim(1, -1).contiguous().movedim(-1, 1)


def given(torch, shape, outs, taps, dtype="bfloat16"):
    kind = getattr(torch, dtype)
    made = [torch.randn(s, device="cuda") for s in (shape, (outs, shape[1], *taps))]
    return [last(torch, t.to(kind)) for t in made]


def assert_right(torch, got, x, w, bias=None, of_scale=1e-5, then=lambda y: y, **how):
    """Compare with float64: an element may be off by its rounding, and by what the sums may be."""
    function = getattr(torch.nn.functional, f"conv{x.ndim - 2}d")
    want = then(function(x.double(), w.double(), None if bias is None else bias.double(), **how))
    room = function(x.double().square(), torch.ones_like(w[:1]).double(), **how).sqrt()
    room = room * w.double().square().flatten(1).sum(1).sqrt().view(1, -1, *(1,) * (x.ndim - 2))
    unit = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}.get(got.dtype, 0.0)
    off = (got.double() - want).abs() - unit * want.abs() - 2 * of_scale * room
    assert got.shape == want.shape and got.movedim(1, -1).is_contiguous()
    assert not off.isnan().any() and off.max() <= 1e-30


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("shape", "outs", "taps", "how"),
    [
        ((3, 64, 29, 31), 136, (3, 3), {"padding": 1}),
        ((3, 72, 29, 31), 64, (3, 3), {"padding": (1, 0), "stride": 2}),
        ((2, 8, 40, 33), 64, (7, 7), {"padding": 3, "stride": (2, 3)}),
        ((2, 320, 17, 13), 320, (3, 5), {"padding": "same", "dilation": 2}),
        ((5, 136, 7, 7), 264, (1, 1), {}),
        ((5, 136, 7, 7), 264, (1, 1), {"stride": 2}),
        ((2, 64, 501), 72, (3,), {"padding": 1, "stride": 2}),
        ((2, 40, 9, 8, 11), 72, (3, 2, 3), {"padding": (1, 0, 2), "stride": (1, 2, 1)}),
        ((1, 512, 7, 7), 512, (3, 3), {"padding": 1}),
    ],
    ids=str,
)
def test_convolutions_are_right(torch, shape, outs, taps, how):
    x, w = given(torch, shape, outs, taps)
    bias = torch.randn(outs, device="cuda")
    got = getattr(cute.kernels, f"conv{len(taps)}d")(x, w, bias, **how)
    assert_right(torch, got, x, w, bias, **how)


@pytest.mark.gpu
@pytest.mark.parametrize("cut", [Plan(), Plan(128, 1, 2), Plan(64, 1, splits=4), Plan(128, 2, turned=True)], ids=str)
def test_convolutions_are_right_however_they_are_cut(torch, cut):
    x, w = given(torch, (3, 128, 29, 31), 264, (3, 3), "float16")
    for _ in range(2):
        assert_right(torch, cute.kernels.conv2d(x, w, padding=1, cut=cut), x, w, padding=1)


@pytest.mark.gpu
@pytest.mark.parametrize(("dtype", "of_scale"), [("float32", 4e-3), ("float8_e4m3fn", 1e-3)])
def test_other_types_are_convolved_too(torch, dtype, of_scale):
    x, w = given(torch, (3, 48, 29, 31), 72, (3, 3), dtype)
    assert_right(torch, cute.kernels.conv2d(x, w, padding=1), x, w, of_scale=of_scale, padding=1)


@pytest.mark.gpu
def test_steps_after_the_sums_take_tensors_like_the_result(torch):
    x, w = given(torch, (3, 64, 29, 31), 136, (3, 3))
    v, r = torch.randn(136, device="cuda"), last(torch, torch.randn(3, 136, 29, 31, device="cuda").bfloat16())
    out = torch.empty_like(r)
    got = cute.kernels.conv2d(x, w, v, padding=1, epilogue=residual(r) | relu(), out=out)
    assert got is out
    assert_right(torch, got, x, w, v, then=lambda y: (y + r.double()).relu(), padding=1)


@pytest.mark.gpu
def test_images_may_be_parts_of_others(torch):
    whole, w = given(torch, (3, 128, 29, 31), 72, (3, 3))
    for x in (whole[:, 64:], whole[:, :64, 3:, 5:20], whole[1:2, :64]):
        part = last(torch, w[:, :64])
        assert_right(torch, cute.kernels.conv2d(x, part, padding=1), x, part, padding=1)


@pytest.mark.gpu
def test_tensors_of_a_kind_lie_anywhere(torch):
    """The first call makes the launch, and the others have its tensor maps at their own addresses."""
    kept = []
    for _ in range(4):
        x, w = given(torch, (3, 64, 29, 31), 72, (3, 3))
        kept += [x, w, cute.kernels.conv2d(x, w, padding=1)]
        assert_right(torch, kept[-1], x, w, padding=1)


@pytest.mark.gpu
def test_order_and_alignment_are_explained(torch):
    x, w = given(torch, (3, 64, 9, 9), 72, (3, 3))
    y = torch.empty(3, 72, 7, 7, device="cuda", dtype=x.dtype)
    for bad, how, says in [
        ((x, w), {"out": y}, r"give out.contiguous\(memory_format=torch.channels_last\)"),
        ((x, w), {"stride": 9}, "TMA takes steps up to 8"),
    ]:
        with pytest.raises(CuteError, match=says):
            cute.kernels.conv2d(*bad, **how)


def test_every_combination_of_padding_stride_and_dilation_has_as_many_pixels_as_torchs():
    torch = pytest.importorskip("torch")
    for n, t, p, s, d in itertools.product((5, 8), (1, 3), (0, 2), (1, 3), (1, 2)):
        want = torch.nn.functional.conv1d(torch.zeros(1, 1, n), torch.zeros(1, 1, t), None, s, p, d).shape[2]
        assert tensors.walk_of("conv1d", (t,), s, p, d).out((n,)) == (want,)
