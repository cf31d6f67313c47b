# SPDX-License-Identifier: Apache-2.0
"""Convolutions of tcgen05: right against float64 in the simulator, with all checks; no spills for either target."""

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import CuteError, kernels
from numba_cute.kernels import entry
from numba_cute.kernels.conv import plan
from numba_cute.kernels.conv.operands import Columns, Filter, Image, Lattice, Turned, parts_of, whole
from numba_cute.kernels.gemm import Plan, Umma, bias, relu, residual, umma_plan
from numba_cute.kernels.gemm.launches import simulate

from .test_conv import BF16, E4M3, F16, SLOW, TF32, assert_close, convolved, problem as forward, walk
from .test_gradients import UNIT, of_filters, of_images, problem
from .test_warps import CASES, many, normal, on  # noqa: F401  # `on` is a fixture

try:
    import torch
except ImportError:
    torch = None

LEAST, PAIR, SHARED = Umma(64, 1), Umma(128, 2), Umma(64, 1, (2, 2))
TARGETS = ("sm_100a", "sm_103a")


@pytest.mark.parametrize(
    ("shape", "outs", "how", "cut", "dtype"),
    [
        ((1, 5, 7, 24), 16, walk((2, 2), 1, 1, 0), LEAST, BF16),
        *(pytest.param(*x, marks=SLOW) for x in (
            ((2, 9, 11, 72), 72, walk((3, 2), (2, 3), (1, 2), (0, 1), (1, 2)), LEAST, BF16),
            ((3, 9, 11, 136), 136, walk((3, 3), 1, 1, dilation=(2, 1)), PAIR, BF16),  # the pair's second has few rows
            ((3, 9, 11, 64), 72, walk((3, 3), 1, 1), SHARED, BF16),
            ((3, 9, 11, 64), 264, walk((1, 2), 1, 2), Umma(128, 2, (4, 1)), BF16),
            ((3, 9, 11, 64), 264, walk((3, 3), 1, 1), Umma(), BF16),
            ((2, 150, 64), 40, walk((3,), 1, 1), LEAST, BF16),
            ((2, 4, 5, 6, 64), 40, walk((3, 3, 3), 1, 1), LEAST, BF16),
            ((2, 9, 11, 64), 40, walk((1, 1), 2), Umma(256, 1), BF16),
            ((3, 5, 7, 48), 16, walk((3, 3), 1, 1), PAIR, F16),
            ((3, 5, 7, 48), 16, walk((3, 3), 1, 1), PAIR, E4M3),
            ((1, 5, 7, 48), 16, walk((3, 3), 1, 1), LEAST, TF32),
        )),
    ],
    ids=str,
)  # fmt: skip
def test_rows_of_the_im2col_matrix_are_multiplied(shape, outs, how, cut, dtype):
    if dtype == TF32:
        rng = np.random.default_rng(0)
        x, w = (rng.integers(-9, 9, s).astype(np.float32) for s in (shape, (outs, *how.taps, shape[-1])))
        a, b = Image(x, how, 32), Filter(w.reshape(outs, -1, shape[-1]), 32)
        want = convolved(x, w, how).reshape(-1, outs)
        c = np.full(want.shape, np.nan, np.float32)
    else:
        a, b, c, want, _ = forward(shape, outs, how, dtype)
    simulate(a, b, c, dtype, cut)
    assert_close(c, want)


@SLOW
@pytest.mark.parametrize("cut", [LEAST, PAIR], ids=str)
def test_an_epilogue_has_output_pixels_for_rows(cut):
    a, b, c, want, rng = forward((2, 9, 11, 24), 40, walk((3, 3), 2, 1))
    v, r = rng.standard_normal(40).astype(np.float32), rng.standard_normal(c.shape).astype(c.dtype)
    simulate(a, b, c, BF16, cut, bias(v) | residual(r) | relu())
    assert_close(c, np.maximum(want + v + r.astype(np.float64), 0))


@SLOW
@pytest.mark.parametrize(
    ("extents", "channels", "outs", "how", "cut"),
    [
        ((5, 7), 24, 40, walk((3, 2), 1, 1, (1, 0)), LEAST),
        ((9, 8), 72, 72, walk((3, 3), 2, 1), PAIR),
        ((9, 8), 72, 24, walk((3, 4), (2, 3), (1, 0), (1, 2), (2, 1)), SHARED),
        ((9,), 64, 72, walk((1,), 2), Umma(128, 1)),
        ((4, 3, 5), 24, 24, walk((3, 3, 3), (1, 2, 1), 1), LEAST),
    ],
    ids=str,
)
def test_each_place_of_the_stride_is_a_convolution(extents, channels, outs, how, cut):
    x, w, dy = problem(1, extents, channels, outs, how)
    dx = np.full_like(x, np.nan)
    for part in parts_of(how, extents, dy.shape[1:-1]):
        there = dx[(slice(None), *(slice(first, None, s) for first, s in zip(part.first, how.stride)))]
        if part.walk is None:
            there[...] = 0
            continue
        b = Turned(w, part.walk.taps, part.last, part.step, UNIT)
        c = Lattice(there) if max(how.stride) > 1 else dx.reshape(-1, channels)
        simulate(Image(dy, part.walk, UNIT), b, c, BF16, cut)
    assert_close(dx, of_images(dy, w, how, extents))


@SLOW
@pytest.mark.parametrize(
    ("extents", "channels", "outs", "how", "groups", "cut"),
    [
        ((5, 7), 24, 40, walk((3, 2), 1, 1, (1, 0)), 1, LEAST),
        ((6, 5), 72, 24, walk((3, 3), 2, 1), 3, LEAST),
        ((9, 8), 64, 136, walk((3, 4), 1, 1), 3, PAIR),
        ((9, 8), 256, 24, walk((1, 2), 1, 1), 1, Umma()),
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


# ---------------------------------------------------------------- assembled


def compiled(kind, cut, target, modes=2, dtype=BF16, epilogue=None):
    """Compile for a problem. epilogue: makes one of C."""
    how, of = walk((3,) * modes, 1, 1), np.float32 if dtype == TF32 else dtype.numpy
    x, outs, pixels, k = np.zeros((2, *(9,) * modes, 64), of), 256, 2 * 9**modes, 1024 // dtype.width
    w, y = np.zeros((outs, 3**modes, 64), of), np.zeros((pixels, outs), of if dtype.width > 8 else BF16.numpy)
    wide, there = (np.zeros((2, *(9,) * modes, n), of) for n in (256, outs))
    turned = ((3,) * modes, (2,) * modes, (1,) * modes, k)
    a, b, c, c_dtype = {
        "forward": lambda: (Image(x, how, k), Filter(w, k), y, None),
        "lattice": lambda: (
            Image(x, how, k), Turned(np.zeros((64, *(3,) * modes, outs), of), *turned), Lattice(there), None,
        ),
        "filters": lambda: (
            np.moveaxis(np.zeros((2, pixels // 2, outs), of), 1, 2), Columns(wide, how, UNIT, 2),
            np.zeros((2, outs, 256 * 3**modes), np.float32), cute.Float32,
        ),
    }[kind]()  # fmt: skip
    made = epilogue and epilogue(c)
    args, _ = umma_plan.arguments(a, b, c, dtype, cute.target(target), cut, made, c_dtype, clusters=4)
    return cute.compile(umma_plan.kernel_of(cut), args, arch=target)


FORMS = [{"kind": "forward", "epilogue": many}, {"kind": "forward", "modes": 3}, {"kind": "lattice", "modes": 3},
         {"kind": "forward", "dtype": E4M3}, {"kind": "filters"}, {"kind": "lattice"},
         {"kind": "filters", "modes": 3}]  # fmt: skip


@SLOW
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("cut", umma_plan.CUTS, ids=str)
def test_nothing_spills(cut, target):
    first = TARGETS.index(target) + umma_plan.CUTS.index(cut)
    for form in (FORMS[first % len(FORMS)], FORMS[(first + 3) % len(FORMS)]):
        r = compiled(cut=cut, target=target, **form)
        assert (r.resources.spill_stores, r.resources.local, r.notes) == (0, 0, ()), form
        assert r.resources.registers * cut.threads <= 65536
        assert "im2col" in r.ptx and ("cta_group::2" in r.ptx) == (cut.ctas == 2)


# ---------------------------------------------------------------- how a problem is cut


def test_groups_of_pixels_fill_the_gpu():
    cut, count, inner, _ = plan.groups(entry.TENSOR_MEMORY, 64, 64, (3, 3), 256 * 56 * 56, UNIT, 148)
    assert cut.tile_n in (64, 128, 256) and inner == 64 and 256 * 56 * 56 % count == 0
    assert -(-64 // 128 // cut.ctas) * (9 * 64 // cut.tile_n) * count * cut.ctas > 100  # CTAs
    found = plan.groups(entry.TENSOR_MEMORY, 2048, 2048, (3, 3), 8 * 64 * 64, UNIT, 148)
    assert found == (Umma(), 1, 2048, 0), "one group, of pairs"


# ---------------------------------------------------------------- the entries, with torch


@SLOW
@pytest.mark.parametrize("on", ["sm_100a"], indirect=True)
@pytest.mark.parametrize("name", [n for n in CASES if n != "one mode"])
def test_all_gradients_are_those_of_float64(on, name):  # noqa: F811
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
@pytest.mark.parametrize("on", ["sm_100a"], indirect=True)
@pytest.mark.parametrize(("kind", "off"), [("float16", 2.0**-10), ("float32", 2e-3), ("int8", 0.0),
                                           ("float8_e4m3fn", 2.0**-8), ("float8_e5m2", 2.0**-8)])  # fmt: skip
def test_every_type_is_convolved(on, kind, off):  # noqa: F811
    x, w = (torch.randint(-4, 5, s).to(getattr(torch, kind)) for s in ((1, 7, 6, 16), (16, 3, 3, 16)))
    x, w = x.movedim(-1, 1), w.movedim(-1, 1)
    want = torch.nn.functional.conv2d(x.double(), w.double(), padding=1)
    assert (kernels.conv2d(x, w, padding=1).double() - want).abs().max() <= off * want.abs().max()


@pytest.mark.parametrize("on", ["sm_103a"], indirect=True)
def test_what_this_family_has_not_is_refused_by_name(on):  # noqa: F811
    x, w = normal(1, 16, 5, 5), normal(16, 16, 3, 3)
    small = torch.zeros(16, 5, 5, 16, dtype=torch.int8).movedim(-1, 1)
    for says, call in {
        "of wgmma, which sm_103a has not": lambda: kernels.conv2d(x, w, cut=Plan()),
        "TMA takes steps up to 8": lambda: kernels.conv2d(x, w, stride=9, padding=4),
        "give a Plan, an Umma, a Warps, or None": lambda: kernels.conv2d(x, w, cut=3),
        "int8 on sm_100a alone, not on sm_103a": lambda: kernels.conv2d(small, small[:, :, :3, :3]),
    }.items():
        with pytest.raises(CuteError, match=says):
            call()
    with cute.simulation("sm_90a"), pytest.raises(CuteError, match="of tcgen05, which sm_90a has not"):
        kernels.conv2d(x, w, cut=Umma())
