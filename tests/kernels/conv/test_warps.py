# SPDX-License-Identifier: Apache-2.0
"""Convolutions of mma.sync: right against float64 in the simulator, no spills for any target, gradients, on a GPU."""

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import CuteError, kernels
from numba_cute.kernels.conv import tensors, warps
from numba_cute.kernels.conv.gradients import gradient_of_filters
from numba_cute.kernels.conv.operands import parts_of
from numba_cute.kernels.conv.transposed import gradient_of_images
from numba_cute.kernels.gemm import Plan, Warps, amax, bias, gelu, relu, residual, scale, silu, total, warps_plan

from .test_conv import BF16, SLOW, TF32, assert_close, assert_right, convolved, last, walk
from .test_gradients import near, of_filters, of_images, problem

try:
    import torch
except ImportError:
    torch = None

LEAST, SMALL = Warps((32, 32), (1, 1), 64), Warps((32, 64), (1, 2), 128)
TARGETS = ("sm_80", "sm_86", "sm_120a")


def run(a, b, c, cut, *, dtype=BF16, epilogue=None, c_dtype=None, share=None):
    args, blocks = warps_plan.arguments(a, b, c, dtype, cute.target("sm_80"), cut, epilogue, c_dtype, share=share)
    cute.simulate(warps_plan.kernel_of(cut), arch="sm_80")[blocks, cut.threads](*args)


WALKS = [
    ((3, 5), 8, 16, walk((2, 2), 1, 1, 0), LEAST),
    pytest.param((9, 8), 16, 24, walk((3, 2), (2, 3), (1, 2), (0, 1), (1, 2)), LEAST, marks=SLOW),
    pytest.param((9, 8), 72, 72, walk((3, 3), 2, 1), SMALL, marks=SLOW),
    pytest.param((21,), 16, 24, walk((4,), 9, 3, 0, 2), LEAST, marks=SLOW),
    pytest.param((4, 3, 5), 24, 24, walk((2, 3, 2), (1, 2, 1), 1), LEAST, marks=SLOW),
]


@pytest.mark.parametrize(("extents", "channels", "outs", "how", "cut"), WALKS, ids=str)
def test_rows_of_the_im2col_matrix_are_gathered(extents, channels, outs, how, cut):
    x, w, dy = problem(2, extents, channels, outs, how)
    c = np.full((dy.size // outs, outs), np.nan, x.dtype)
    run(warps.Image(x, how), w.reshape(outs, -1), c, cut)
    assert_close(c, convolved(x, w, how).reshape(-1, outs))


@pytest.mark.parametrize(("extents", "channels", "outs", "how", "cut"), WALKS, ids=str)
def test_parts_of_the_pixels_are_products_of_their_own(extents, channels, outs, how, cut):
    x, _, dy = problem(1, extents, channels, outs, how)
    pixels, share = dy.size // outs, 1
    count = -(-pixels // (cut.row // 2 * share))
    sums = np.full((count, outs, channels * int(np.prod(how.taps))), np.nan, np.float32)
    run(dy.reshape(pixels, outs).T, warps.Image(x, how, 0), sums, cut, c_dtype=cute.Float32, share=share)
    assert_close(sums.sum(0).reshape(outs, *how.taps, channels), of_filters(x, dy, how))


@pytest.mark.parametrize(
    ("extents", "channels", "outs", "how", "cut"), [pytest.param(*WALKS[0], marks=SLOW), *WALKS[1:]], ids=str
)
def test_each_place_of_the_stride_is_a_convolution(extents, channels, outs, how, cut):
    x, w, dy = problem(1, extents, channels, outs, how)
    dx = np.full_like(x, np.nan)
    for part in parts_of(how, extents, dy.shape[1:-1]):
        there = dx[(slice(None), *(slice(first, None, s) for first, s in zip(part.first, how.stride)))]
        if part.walk is None:
            there[...] = 0
            continue
        each = zip(part.last, part.walk.taps, part.step)
        taps = (slice(end - (n - 1) * step, end + 1, step) for end, n, step in each)
        b = np.ascontiguousarray(np.moveaxis(w[(slice(None), *taps)], (-1, 0), (0, -1))).reshape(channels, -1)
        c = warps.Lattice(there) if max(how.stride) > 1 else dx.reshape(-1, channels)
        run(warps.Image(dy, warps.turned(part.walk)), b, c, cut)
    assert_close(dx, of_images(dy, w, how, extents))


@SLOW
def test_an_epilogue_has_output_pixels_for_rows():
    how = walk((3, 3), 2, 1)
    x, w, dy = problem(2, (9, 11), 24, 40, how)
    rng, c = np.random.default_rng(1), np.full((dy.size // 40, 40), np.nan, x.dtype)
    v, r = rng.standard_normal(40).astype(np.float32), rng.standard_normal(c.shape).astype(c.dtype)
    run(warps.Image(x, how), w.reshape(40, -1), c, SMALL, epilogue=bias(v) | residual(r) | relu())
    assert_close(c, np.maximum(convolved(x, w, how).reshape(-1, 40) + v + r.astype(np.float64), 0))


# ---------------------------------------------------------------- registers


def compiled(kind, cut, target, modes=2, dtype=BF16, epilogue=None):
    how, kind_of = walk((3,) * modes, 1, 1), np.float32 if dtype == TF32 else dtype.numpy
    x, outs, pixels, k = np.zeros((2, *(9,) * modes, 64), kind_of), 256, 2 * 9**modes, 64 * 3**modes
    y, w = np.zeros((pixels, outs), kind_of), np.zeros((outs, k), kind_of)
    a, b, c, *others = {
        "forward": (warps.Image(x, how), w, y),
        "lattice": (warps.Image(x, how), w, warps.Lattice(np.zeros((2, *(9,) * modes, outs), kind_of))),
        "filters": (y.T, warps.Image(x, how, 0), np.zeros((4, outs, k), np.float32), cute.Float32, None, None, 2),
    }[kind]
    made = epilogue and epilogue(c)
    args, _ = warps_plan.arguments(a, b, c, dtype, cute.target(target), cut, made, *others)
    return cute.compile(warps_plan.kernel_of(cut), args, arch=target)


def many(c):
    of_rows, of_columns = (np.zeros(n, np.float32) for n in c.shape)
    return scale(of_rows, "rows") | bias(of_columns) | gelu() | residual(c) | total(of_rows) | amax(of_columns[:1])


@SLOW
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("cut", warps_plan.CUTS, ids=str)
def test_sums_stay_in_registers(cut, target):
    for form in (
        {"kind": "forward", "epilogue": many},
        {"kind": "forward", "modes": 3, "epilogue": many},
        {"kind": "forward", "dtype": TF32, "epilogue": many},
        {"kind": "lattice", "modes": 3},
        {"kind": "filters"},
        {"kind": "filters", "modes": 3},
    ):
        r = compiled(cut=cut, target=target, **form)
        assert (r.resources.spill_stores, r.resources.local, r.notes) == (0, 0, ()), form
        assert 64 < r.resources.registers <= 65536 // (cut.threads * cut.ctas)


def test_parts_fill_the_gpu_and_whole_problems_are_not_cut():
    target = cute.target("sm_80")
    cut, share = warps.parts(64, 576, 256 * 56 * 56, 108, target)
    tiles = -(-64 // cut.tile[0]) * -(-576 // cut.tile[1])
    ctas, room = tiles * -(-256 * 56 * 56 // (cut.row // 2 * share)), 108 * cut.ctas
    assert ctas / (-(-ctas // room) * room) > 0.9  # of the rounds that they take
    cut, share = warps.parts(4096, 4096, 256, 108, target)
    assert share >= 256 // (cut.row // 2)


# ---------------------------------------------------------------- the entries, with torch


@pytest.fixture
def on(request):
    """Run entries in the simulator as on a GPU of a target."""
    pytest.importorskip("torch").manual_seed(0)
    with cute.simulation(request.param, checks=False, sms=4):
        yield request.param


def normal(*shape, ordered=True):
    t = torch.randn(shape).to(torch.bfloat16)
    return last(torch, t) if ordered else t


CASES = {
    "plain": ("conv2d", (2, 16, 7, 6), (24, 16, 3, 3), {"padding": 1}, None, True),
    "strides, silu": ("conv2d", (2, 16, 9, 6), (24, 16, 3, 2), {"padding": 1, "stride": (2, 1)}, silu, True),
    "1 x 1": ("conv2d", (2, 16, 7, 6), (24, 16, 1, 1), {}, None, True),
    "as torch has them": ("conv2d", (2, 16, 7, 6), (24, 16, 3, 3), {"padding": 1}, None, False),
    "three channels": ("conv2d", (1, 3, 9, 11), (16, 3, 7, 7), {"padding": 3, "stride": 2}, None, False),
    "one mode": ("conv1d", (2, 16, 23), (24, 16, 3), {"stride": 9}, silu, True),
    "three modes": ("conv3d", (1, 16, 4, 3, 5), (8, 16, 2, 3, 2), {"padding": 1}, None, True),
    "transposed": (
        "conv_transpose2d", (2, 16, 5, 6), (16, 24, 3, 3), {"padding": 1, "stride": 2, "output_padding": 1}, None, True,
    ),
    "transposed, as torch has them": ("conv_transpose2d", (2, 16, 5, 6), (16, 24, 3, 3), {}, silu, False),
}  # fmt: skip


@SLOW
@pytest.mark.parametrize("on", ["sm_86"], indirect=True)
@pytest.mark.parametrize("name", CASES)
def test_all_gradients_are_those_of_float64(on, name):
    what, images, filters, how, then, ordered = CASES[name]
    outs = filters[1] if "transpose" in what else filters[0]
    mine = [normal(*images, ordered=ordered), normal(*filters, ordered=ordered), torch.randn(outs)]
    mine, exact = ([f(t).requires_grad_() for t in mine] for f in (torch.clone, torch.Tensor.double))
    y = getattr(kernels, what)(*mine, **how, epilogue=then and then())
    right = getattr(torch.nn.functional, what)(*exact, **how)
    right, dy = torch.nn.functional.silu(right) if then else right, torch.randn(y.shape).to(torch.bfloat16)
    found, wanted = torch.autograd.grad(y, mine, dy), torch.autograd.grad(right, exact, dy.double())
    for got, of in zip((y, *found), (right, *wanted), strict=True):
        assert got.shape == of.shape and (got.double() - of).norm() <= 0.006 * of.norm()


@SLOW
@pytest.mark.parametrize("on", ["sm_80", "sm_120"], indirect=True)
@pytest.mark.parametrize(("kind", "off"), [("bfloat16", 2.0**-8), ("float32", 2e-3), ("int8", 0.0)])
def test_every_type_is_convolved(on, kind, off):
    x, w = (last(torch, torch.randint(-9, 9, s).to(getattr(torch, kind))) for s in ((1, 16, 7, 6), (16, 16, 3, 3)))
    want = torch.nn.functional.conv2d(x.double(), w.double(), padding=1)
    assert (kernels.conv2d(x, w, padding=1).double() - want).abs().max() <= off * want.abs().max()


@SLOW
@pytest.mark.parametrize("on", ["sm_86"], indirect=True)
def test_tensors_of_a_kind_lie_anywhere(on):
    """The first call makes the launches, and the others run them where their tensors lie."""
    kept = []
    for _ in range(3):
        x, w, y = normal(1, 16, 5, 5), normal(16, 16, 3, 3), normal(1, 16, 3, 3)
        kept += [x, w, y, kernels.conv2d(x, w), kernels.conv_transpose2d(y, w, stride=2)]
        conv, turned = torch.nn.functional.conv2d, torch.nn.functional.conv_transpose2d
        near(kept[-2], conv(x.double(), w.double()))
        near(kept[-1], turned(y.double(), w.double(), stride=2))


@pytest.mark.parametrize("on", ["sm_86"], indirect=True)
def test_what_this_family_has_not_is_refused_by_name(on):
    x, w = normal(1, 16, 5, 5), normal(16, 16, 3, 3)
    for says, call in {
        "and float8 not yet": lambda: kernels.conv2d(x.to(torch.float8_e4m3fn), w.to(torch.float8_e4m3fn)),
        "of wgmma, which sm_86 has not": lambda: kernels.conv2d(x, w, cut=Plan()),
        "give a Plan, an Umma, a Warps, or None": lambda: kernels.conv2d(x, w, cut=3),
    }.items():
        with pytest.raises(CuteError, match=says):
            call()


def test_images_whose_steps_take_more_than_32_bits_are_refused():
    far = tensors.placed(np.zeros((2, 2, 2, 8), np.float32), (1, 2, 2, 8), (1, 1 << 31, 8, 1))
    with pytest.raises(CuteError, match="which must be fewer than 2"):
        warps.Image(far, walk((1, 1))).copied(cute.TFloat32, (32, 32), 32)


# ---------------------------------------------------------------- on whatever GPU there is

SHAPES = [
    ((3, 64, 29, 31), 136, (3, 3), {"padding": 1}),
    ((3, 72, 29, 31), 64, (3, 3), {"padding": (1, 0), "stride": 2}),
    ((2, 320, 17, 13), 320, (3, 5), {"padding": "same", "dilation": 2}),
    ((5, 136, 7, 7), 264, (1, 1), {"stride": 2}),
    ((2, 64, 501), 72, (3,), {"padding": 1, "stride": 9}),
    ((2, 40, 9, 8, 11), 72, (3, 2, 3), {"padding": (1, 0, 2), "stride": (1, 2, 1)}),
    ((2, 3, 40, 33), 64, (7, 7), {"padding": 3, "stride": 2}),
]


def on_gpu(shape, outs, taps):
    pytest.importorskip("torch").manual_seed(0)
    x, w = (torch.randn(s, device="cuda").to(torch.bfloat16) for s in (shape, (outs, shape[1], *taps)))
    return (x, w) if shape[1] == 3 else (last(torch, x), last(torch, w))


@pytest.mark.gpu
@pytest.mark.parametrize("cut", warps_plan.CUTS, ids=str)
@pytest.mark.parametrize(("shape", "outs", "taps", "how"), SHAPES, ids=str)
def test_convolutions_are_right_on_a_gpu(shape, outs, taps, how, cut):
    x, w = on_gpu(shape, outs, taps)
    v = torch.randn(outs, device="cuda")
    got = getattr(kernels, f"conv{len(taps)}d")(x, w, v, **how, cut=cut)
    assert_right(torch, got, x, w, v, **how)


@pytest.mark.gpu
@pytest.mark.parametrize("cut", warps_plan.CUTS, ids=str)
@pytest.mark.parametrize(("shape", "outs", "taps", "how"), SHAPES, ids=str)
def test_gradients_are_right_on_a_gpu(shape, outs, taps, how, cut):
    x, w = on_gpu(shape, outs, taps)
    exact = [t.double().requires_grad_() for t in (x, w)]
    want = getattr(torch.nn.functional, f"conv{len(taps)}d")(*exact, **how)
    dy = last(torch, torch.randn_like(want).to(torch.bfloat16))
    of_x, of_w = torch.autograd.grad(want, exact, dy.double())
    what = f"conv{len(taps)}d"
    numbers = (how.get("stride", 1), how.get("padding", 0), how.get("dilation", 1))
    own = tensors.walk_of(what, taps, *numbers)
    near(gradient_of_images(what, dy, w, torch.empty_like(x), own, cut), of_x)
    dw = torch.empty_like(w)
    gradient_of_filters(what, x, dy, dw, own, cut)
    near(dw, of_w)
