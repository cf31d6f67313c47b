# SPDX-License-Identifier: Apache-2.0
"""Convolutions as operators, on tensors of the CPU in a simulation: gradients against float64, traced, refused."""

import pytest

from numba_cute import CuteError, kernels
from numba_cute.kernels.gemm import gelu, relu, residual, scale, silu, total

torch = pytest.importorskip("torch")
functional = torch.nn.functional

SLOW = pytest.mark.slow
BF16 = torch.bfloat16


pytestmark = pytest.mark.usefixtures("simulated")


def normal(*shape, dtype=BF16):
    """Random images or filters, channels last; of one mode a vector."""
    t = torch.randn(shape).to(dtype)
    return t.movedim(1, -1).contiguous().movedim(-1, 1) if len(shape) > 2 else t


def gelu_of(z):
    return functional.gelu(z, approximate="tanh")


# The entry; shapes of images and filters; how; an epilogue of tensors; the same of float64; whether it takes a
# residual, or the columns of a vector.
CASES = {
    "plain": ("conv2d", (2, 16, 7, 6), (24, 16, 3, 3), {"padding": 1}, None, None, ()),
    "stride": ("conv2d", (2, 16, 9, 6), (24, 16, 3, 2), {"padding": 1, "stride": [2, 1]}, None, None, ()),
    "silu": ("conv1d", (2, 16, 9), (24, 16, 3), {}, lambda: silu(), functional.silu, ()),
    "residual, relu": (
        "conv2d", (2, 16, 5, 6), (24, 16, 3, 3), {"padding": 1}, lambda r: residual(r) | relu(),
        lambda z, r: torch.relu(z + r), ("residual",),
    ),
    "gelu, scale": (
        "conv2d", (2, 16, 5, 6), (24, 16, 3, 3), {"dilation": 2}, lambda s: gelu() | scale(s, "columns"),
        lambda z, s: gelu_of(z) * s[:, None, None], ("columns",),
    ),
    "transposed": (
        "conv_transpose2d", (2, 16, 5, 6), (16, 24, 3, 3), {"padding": 1, "stride": 2, "output_padding": 1}, None,
        None, (),
    ),
    "transposed, strides, silu": (
        "conv_transpose2d", (2, 16, 5, 6), (16, 24, 3, 3), {"padding": 1, "stride": 2}, lambda: silu(),
        functional.silu, (),
    ),
    "transposed, no tap reaches some": ("conv_transpose1d", (2, 16, 5), (16, 24, 2), {"stride": 3}, None, None, ()),
    "transposed, silu": (
        "conv_transpose1d", (2, 16, 5), (16, 24, 3), {"padding": 1}, lambda: silu(), functional.silu, ()
    ),
}  # fmt: skip


@SLOW
@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
@pytest.mark.parametrize("name", CASES)
def test_all_gradients_are_those_of_float64(name, traced):
    if traced and name not in ("residual, relu", "transposed"):
        pytest.skip("two are traced")
    what, images, filters, how, made, want, takes = CASES[name]
    given = [normal(*images), normal(*filters), torch.randn(24)]
    exact = [t.double().requires_grad_() for t in given]
    z = getattr(functional, what)(*exact, **how)
    given += [normal(*z.shape) if kind == "residual" else normal(24) for kind in takes]
    exact += [t.double().requires_grad_() for t in given[3:]]
    right = want(z, *exact[3:]) if want else z
    mine = [t.detach().requires_grad_() for t in given]

    def call(x, weight, bias, *others):
        return getattr(kernels, what)(x, weight, bias, **how, epilogue=made(*others) if made else None)

    y = (torch.compile(call, fullgraph=True, backend="aot_eager") if traced else call)(*mine)
    dy = torch.randn(y.shape).to(BF16)
    found, wanted = torch.autograd.grad(y, mine, dy), torch.autograd.grad(right, exact, dy.double())
    for got, of in zip((y, *found), (right, *wanted), strict=True):
        assert got.shape == of.shape and (got.double() - of).norm() <= 0.006 * of.norm()


def test_fake_tensors_have_the_shapes():
    with torch._subclasses.FakeTensorMode():
        x, weight = normal(2, 16, 7, 6), normal(24, 16, 3, 3)
        y = kernels.conv2d(x, weight, padding=1, stride=2)
        assert tuple(y.shape) == (2, 24, 4, 3) and y.stride(1) == 1
        assert tuple(kernels.conv_transpose2d(y, weight, stride=2, output_padding=(0, 1)).shape) == (2, 16, 9, 8)


REFUSED = {
    "conv2d: a gradient is asked for, .* x is float32": lambda: kernels.conv2d(
        normal(1, 8, 4, 4, dtype=torch.float32).requires_grad_(), normal(8, 8, 1, 1, dtype=torch.float32)
    ),
    "conv2d: a gradient is asked for, and the epilogue adds up sums": lambda: kernels.conv2d(
        normal(1, 8, 4, 4).requires_grad_(), normal(8, 8, 1, 1), epilogue=total(torch.zeros(8), "columns")
    ),
    "conv2d: out is given, and a gradient is asked for": lambda: kernels.conv2d(
        normal(1, 8, 4, 4).requires_grad_(), normal(8, 8, 1, 1), out=normal(1, 8, 4, 4)
    ),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_has_no_gradient_is_refused(words):
    with pytest.raises(CuteError, match=words):
        REFUSED[words]()


@SLOW
def test_a_second_derivative_is_refused():
    x, weight = normal(1, 8, 4, 4).requires_grad_(), normal(8, 8, 1, 1)
    (first,) = torch.autograd.grad(kernels.conv2d(x, weight).pow(2).sum(), x, create_graph=True)
    with pytest.raises(CuteError, match="convolution_images: there is no second derivative"):
        first.sum().backward()
