# SPDX-License-Identifier: Apache-2.0
"""Convolutions whose outputs, or gradients, have channels that are no whole vectors, against float64."""

import pytest

import numba_cute as cute
from numba_cute import kernels
from numba_cute.kernels.gemm import amax, relu, residual

torch = pytest.importorskip("torch")
functional = torch.nn.functional

SLOW = pytest.mark.slow


@pytest.fixture(params=["sm_90a", "sm_86"])
def on(request):
    torch.manual_seed(0)
    with cute.simulation(request.param, checks=False, sms=4):
        yield request.param


def normal(*shape, dtype=torch.bfloat16):
    return torch.randn(shape).to(dtype)


def compared(call, exact, tensors, within=0.004):
    """Compare a call and its gradients with those of float64."""
    mine, wide = [t.clone().requires_grad_() for t in tensors], [t.double().requires_grad_() for t in tensors]
    y, z = call(*mine), exact(*wide)
    dy = normal(*y.shape)
    found, want = torch.autograd.grad(y, mine, dy), torch.autograd.grad(z, wide, dy.double())
    for got, good in zip((y, *found), (z, *want), strict=True):
        assert got.shape == good.shape and (got.double() - good).norm() <= within * good.norm()
    return y


CASES = [
    ("conv2d", (2, 8, 5, 4), (3, 8, 3, 3), {"padding": 1}),
    ("conv2d", (1, 3, 6, 5), (12, 3, 2, 3), {"stride": 2}),
    ("conv1d", (1, 8, 1), (5, 8, 1), {}),
    ("conv3d", (1, 8, 3, 3, 2), (1, 8, 2, 1, 2), {}),
    ("conv_transpose2d", (1, 5, 3, 4), (5, 9, 3, 2), {"stride": 2}),
    ("conv_transpose1d", (2, 8, 7), (8, 3, 3), {"padding": 1}),
]


@SLOW
@pytest.mark.parametrize("case", CASES, ids=str)
def test_channels_of_outputs_may_be_any_number(on, case):
    name, images, filters, how = case
    outs = filters["transpose" in name]
    y = compared(
        lambda x, w, b: getattr(kernels, name)(x, w, b, **how),
        lambda x, w, b: getattr(functional, name)(x, w, b, **how),
        [normal(*images), normal(*filters) / 4, torch.randn(outs)],
    )
    assert y.movedim(1, -1).is_contiguous()


@SLOW
@pytest.mark.parametrize("room", [False, True])
def test_a_residual_has_as_many(on, room):
    x, w, r = normal(1, 8, 4, 4), normal(5, 8, 3, 3) / 4, normal(1, 8 if room else 5, 4, 4)
    r = r.contiguous(memory_format=torch.channels_last)[:, :5]
    compared(
        lambda x, w, r: kernels.conv2d(x, w, padding=1, epilogue=residual(r) | relu()),
        lambda x, w, r: functional.relu(functional.conv2d(x, w, padding=1) + r), [x, w, r],
    )  # fmt: skip


@SLOW
def test_what_lies_behind_the_last_channel_stays_as_it_is(on):
    """`out` is the first images of more, and the greatest magnitude is the outputs' own."""
    x, w, top = normal(2, 8, 4, 3), normal(5, 8, 1, 1), torch.zeros(1)
    whole = torch.full((3, 4, 3, 5), 7.0).bfloat16()
    y = kernels.conv2d(x, w, epilogue=amax(top), out=whole[:2].movedim(-1, 1))
    want = functional.conv2d(x.double(), w.double())
    assert (y.double() - want).norm() <= 0.004 * want.norm() and (whole[2] == 7).all()
    assert abs(float(top) - float(want.abs().max())) <= 1e-3 * float(top)


@SLOW
def test_float32_has_as_many(on):
    x, w = torch.randn(1, 4, 5, 4), torch.randn(3, 4, 3, 3)
    want = functional.conv2d(x.double(), w.double())
    assert (kernels.conv2d(x, w).double() - want).norm() <= 2e-3 * want.norm()


@pytest.fixture
def cached(tmp_path):
    """A disk cache of its own."""
    with cute.config.override(cache=True, cache_dir=str(tmp_path)):
        yield


@SLOW
@pytest.mark.parametrize("target", ["sm_90a", "sm_80"])
def test_nothing_is_spilled(cached, target):
    for name, filters in (("conv2d", (9, 64, 3, 3)), ("conv_transpose2d", (64, 9, 3, 3))):
        images, outs = (2, 64, 9, 9), tuple(filters)
        for made in kernels.warmup(name, [(images, outs)], stride=2, arch=target, grad=True):
            assert (made.compiled.resources.spill_stores, made.compiled.resources.local) == (0, 0), made.call
