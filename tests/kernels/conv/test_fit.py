# SPDX-License-Identifier: Apache-2.0
"""Images and filters in any order, and of channels that are no whole vectors: what the kernels take of them, and what
the entries make of it. In the simulator, and on a GPU."""

import pytest

import numba_cute as cute
from numba_cute import kernels
from numba_cute.kernels.conv.fit import fit
from numba_cute.kernels.conv.tensors import walk_of

from ...conftest import _need_gpu

torch = pytest.importorskip("torch")
functional = torch.nn.functional
SLOW = pytest.mark.slow

CASES = [
    ((1, 3, 5, 6), 8, (3, 3), (2, 1, 1), (1, 12, 5, 3), (3, 1)),
    pytest.param((2, 3, 9, 11), 8, (7, 7), (2, 3, 1), (2, 28, 9, 6), (7, 1), marks=SLOW),
    pytest.param((2, 3, 5, 6), 8, (3, 3), (1, 1, 1), (2, 24, 5, 6), (3, 1), marks=SLOW),
    pytest.param((1, 3, 8, 8), 8, (4, 4), (4, 0, 1), (1, 16, 8, 2), (4, 1), marks=SLOW),
    pytest.param((1, 3, 5, 16), 8, (3, 5), (1, 2, (1, 2)), (1, 8, 5, 16), (3, 5), marks=SLOW),  # nothing to fold
    pytest.param((1, 12, 5, 6), 8, (3, 3), (1, 1, 1), (1, 48, 5, 6), (3, 1), marks=SLOW),
    pytest.param((2, 5, 17), 8, (4,), (4, (0,), 1), (2, 24, 4), (1,), marks=SLOW),
    pytest.param((1, 1, 3, 4, 5), 8, (2, 2, 3), (1, 1, 1), (1, 24, 3, 4, 5), (2, 2, 1), marks=SLOW),
]


@pytest.mark.parametrize(("shape", "outs", "taps", "how", "images", "folded"), CASES, ids=str)
@pytest.mark.parametrize("ordered", [False, pytest.param(True, marks=SLOW)])
def test_what_is_filled_up_convolves_to_the_same(simulated, shape, outs, taps, how, images, folded, ordered):
    x, w = torch.randn(shape).bfloat16(), torch.randn(outs, shape[1], *taps).bfloat16()
    x = x.movedim(1, -1).contiguous().movedim(-1, 1) if ordered else x
    walk = walk_of("conv", taps, *how)
    fitted = fit(x, taps, walk)
    there, filters = fitted.images(x), fitted.filters(w)
    assert tuple(there.shape) == images and tuple(filters.shape[2:]) == fitted.walk.taps == folded
    assert not any(s % 8 for s in there.movedim(1, -1).stride()[:-1]) and there.data_ptr() % 16 == 0
    assert filters.movedim(1, -1).is_contiguous() and torch.equal(fitted.back(filters), w)
    assert filters.shape[1] % 8 == 0 and not filters[:, there.shape[1] :].any()
    filters, convolve = filters[:, : there.shape[1]], getattr(functional, f"conv{len(taps)}d")
    got = convolve(there.double(), filters.double(), None, fitted.walk.stride, fitted.walk.before, fitted.walk.dilation)
    assert torch.allclose(got, convolve(x.double(), w.double(), None, *how), rtol=0, atol=1e-12)


@pytest.mark.parametrize("arch", ["sm_86", pytest.param("sm_90a", marks=SLOW)])
def test_a_window_sees_nothing_beside_it(arch):
    """Its run is no whole vectors, and the next pixel is infinite."""
    torch.manual_seed(0)
    x, w = torch.randn(1, 3, 3, 9).bfloat16(), torch.randn(8, 3, 3, 3).bfloat16()
    x[..., 4] = torch.inf
    with cute.simulation(arch, checks=False):
        got = kernels.conv2d(x, w, stride=(1, 2), padding=(0, 1))
    want = functional.conv2d(x.float(), w.float(), stride=(1, 2), padding=(0, 1))
    assert torch.equal(got.isfinite(), want.isfinite()) and got.isfinite().any() and not got.isfinite().all()


@SLOW
@pytest.mark.parametrize("arch", ["sm_86", "sm_90a", "sm_100a"])
@pytest.mark.parametrize(
    "how", [{"padding": 2, "dilation": 2}, {"padding": 3, "stride": (2, 3), "dilation": 2}], ids=str
)
def test_a_tap_that_reaches_no_pixel_of_a_transposed_one_is_not_multiplied(arch, how):
    """Which is infinite, and around the image are zeros."""
    torch.manual_seed(0)
    x, w = torch.randn(1, 8, 2, 5).bfloat16(), torch.randn(8, 8, 3, 3).bfloat16()
    w[:, :, 0] = torch.inf
    want = functional.conv_transpose2d(x.double(), w.double(), **how)
    with cute.simulation(arch, checks=False):
        got = kernels.conv_transpose2d(x, w, **how)
    assert want.isfinite().all() and (got.double() - want).norm() <= 0.006 * want.norm()


@SLOW
@pytest.mark.parametrize(
    ("what", "images", "filters", "how"),
    [
        ("conv2d", (2, 16, 7, 6), (24, 16, 3, 3), {"padding": 1}),
        ("conv2d", (1, 3, 9, 11), (16, 3, 7, 7), {"padding": 3, "stride": 2}),
        ("conv2d", (1, 3, 7, 8), (16, 3, 3, 3), {"padding": 1, "dilation": 2}),
        ("conv1d", (2, 12, 9), (8, 12, 3), {"padding": "same"}),
        ("conv3d", (1, 4, 3, 4, 5), (8, 4, 2, 2, 3), {"padding": 1}),
        ("conv_transpose2d", (2, 16, 5, 6), (16, 24, 3, 3), {"stride": 2}),
    ],
)
def test_torchs_own_order_and_any_channels_have_their_gradients(simulated, what, images, filters, how):
    mine = [torch.randn(s).bfloat16().requires_grad_() for s in (images, filters)]
    exact = [t.detach().double().requires_grad_() for t in mine]
    y, right = getattr(kernels, what)(*mine, **how), getattr(functional, what)(*exact, **how)
    dy = torch.randn(y.shape).bfloat16()
    found, wanted = torch.autograd.grad(y, mine, dy), torch.autograd.grad(right, exact, dy.double())
    for got, of in zip((y, *found), (right, *wanted), strict=True):
        assert got.shape == of.shape and (got.double() - of).norm() <= 0.006 * of.norm()


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("images", "filters", "how"),
    [
        ((3, 64, 29, 31), (136, 64, 3, 3), {"padding": 1}),
        ((3, 3, 224, 224), (64, 3, 7, 7), {"padding": 3, "stride": 2}),
        ((3, 3, 64, 64), (64, 3, 3, 3), {"padding": 1}),
        ((3, 3, 64, 64), (64, 3, 4, 4), {"stride": 4}),
        ((3, 20, 31, 29), (64, 20, 3, 3), {"padding": 2, "dilation": 2}),
    ],
)
def test_torchs_own_order_and_any_channels_on_a_gpu(images, filters, how):
    _need_gpu("sm_90a")
    torch.manual_seed(0)
    mine = [torch.randn(s, device="cuda").bfloat16().requires_grad_() for s in (images, filters)]
    exact = [t.detach().double().requires_grad_() for t in mine]
    y, right = cute.kernels.conv2d(*mine, **how), functional.conv2d(*exact, **how)
    dy = torch.randn_like(y)
    found, wanted = torch.autograd.grad(y, mine, dy), torch.autograd.grad(right, exact, dy.double())
    for got, of in zip((y, *found), (right, *wanted), strict=True):
        assert got.shape == of.shape and (got.double() - of).norm() <= 0.006 * of.norm()
