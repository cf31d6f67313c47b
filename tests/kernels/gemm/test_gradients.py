# SPDX-License-Identifier: Apache-2.0
"""Gradients of `matmul` and of its epilogues, on tensors of the CPU in a simulation, against float64."""

import pytest

import numba_cute as cute
from numba_cute import CuteError, kernels
from numba_cute.kernels.gemm import (
    Epilogue,
    amax,
    bias,
    columns,
    geglu,
    gelu,
    relu,
    residual,
    scale,
    silu,
    swiglu,
    total,
)  # fmt: skip

torch = pytest.importorskip("torch")
functional = torch.nn.functional

SLOW = pytest.mark.slow
M, N, K = 24, 16, 40
BF16, F32 = torch.bfloat16, torch.float32


pytestmark = pytest.mark.usefixtures("simulated")


def normal(*shape, dtype=BF16):
    return torch.randn(shape).to(dtype)


def gelu_of(z):
    return functional.gelu(z, approximate="tanh")


def leaky(x, slopes):
    return cute.where(x > 0.0, x, slopes * x)


def wavy(x, v, w):
    return cute.math.sin(x * v) + cute.math.exp(-1.0 * cute.math.abs(x)) / (2.0 + w) - cute.math.max(x, v) ** 2


def wavy_of(z, v, w):
    return torch.sin(z * v) + torch.exp(-z.abs()) / (2 + w) - torch.maximum(z, v.expand_as(z)) ** 2


def gated(gate):
    def made(z, *_):
        left, right = z.chunk(2, -1)
        return gate(left) * right

    return made


EPILOGUES = {  # of tensors: what becomes of the sums; the same of float64; the tensors' shapes
    "none": (lambda: None, lambda z: z, ()),
    "bias": (bias, lambda z, v: z + v, ((N,),)),
    "bias, gelu": (lambda v: bias(v) | gelu(), lambda z, v: gelu_of(z + v), ((N,),)),
    "exact gelu": (lambda: gelu("none"), functional.gelu, ()),
    "bias, relu, residual": (
        lambda v, r: bias(v) | relu() | residual(r, 0.5), lambda z, v, r: torch.relu(z + v) + r / 2, ((N,), (M, N))
    ),
    "residual, bias, silu": (
        lambda r, v: residual(r) | bias(v) | silu(), lambda z, r, v: functional.silu(z + r + v), ((M, N), (N,))
    ),
    "one's own": (lambda s: Epilogue(leaky, columns(s)), lambda z, s: torch.where(z > 0, z, s * z), ((N,),)),
    "many functions": (
        lambda v, w: Epilogue(wavy, columns(v), columns(w)), lambda z, v, w: wavy_of(z, v, w**2), ((N,), (N,))
    ),
    "a scale of rows": (lambda s: scale(s, "rows"), lambda z, s: z * s[:, None], ((M,),)),
    "a scale, silu": (lambda s: scale(s) | silu(), lambda z, s: functional.silu(z * s), ((1,),)),
    "a scale without modes": (scale, lambda z, s: z * s, ((),)),
    "amax": (lambda v: bias(v) | amax(torch.zeros(1)), lambda z, v: z + v, ((N,),)),
    "swiglu": (swiglu, gated(functional.silu), ()),
    "bias, geglu, bias, residual": (
        lambda v, w, r: bias(v) | geglu() | bias(w) | residual(r),
        lambda z, v, w, r: gated(gelu_of)(z + v) + w + r, ((N,), (N // 2,), (M, N // 2)),
    ),
    "a scale of rows, swiglu": (
        lambda s: scale(s, "rows") | swiglu(), lambda z, s: gated(functional.silu)(z * s[:, None]), ((M,),)
    ),
}  # fmt: skip
OPERANDS = {
    "bf16": lambda: (normal(M, K), normal(N, K).mT),
    "of rows": lambda: (normal(K, M).mT, normal(K, N)),
    "f32": lambda: (normal(M, K, dtype=F32), normal(N, K, dtype=F32).mT),
    "odd": lambda: (normal(M - 7, 24)[:, :19], normal(N, 24)[:, :19].mT),
    "batches": lambda: (normal(3, M, K), normal(3, K, N)),
    "batches of a": lambda: (normal(3, M, K), normal(N, K).mT),
    "batches of b": lambda: (normal(M, K), normal(3, N, K).mT),
}


def check(a, b, made, want, given, dtype=None):
    """Compare the result and all gradients with those of float64."""
    mine = [t.detach().requires_grad_() for t in (a, b, *given)]
    y = kernels.matmul(*mine[:2], epilogue=made(*mine[2:]), out_dtype=dtype)
    dy = torch.randn(y.shape).to(y.dtype)
    exact = [t.detach().double().requires_grad_() for t in mine]
    right = want(exact[0] @ exact[1], *exact[2:])
    found, wanted = torch.autograd.grad(y, mine, dy), torch.autograd.grad(right, exact, dy.double())
    assert (y.double() - right).norm() <= 0.004 * right.norm()
    for i, (got, of, like) in enumerate(zip(found, wanted, mine, strict=True)):
        assert (got.dtype, got.shape) == (like.dtype, like.shape)
        assert (got.double() - of).norm() <= 0.006 * of.norm() + 1e-6, f"operand {i}"


@pytest.mark.parametrize("name", [n if n == "bias" else pytest.param(n, marks=SLOW) for n in EPILOGUES])
def test_gradients_of_epilogues_are_those_of_float64(name):
    made, want, shapes = EPILOGUES[name]
    given = [normal(*s) for s in shapes]
    if name == "many functions":
        want, given[1] = wavy_of, given[1].abs()
    check(*OPERANDS["of rows" if "glu" in name else "bf16"](), made, want, given)


@SLOW
@pytest.mark.parametrize("name", OPERANDS)
def test_gradients_of_operands_are_those_of_float64(name):
    a, b = OPERANDS[name]()
    check(a, b, *EPILOGUES["bias, gelu"][:2], [normal(N)])


@SLOW
def test_vectors_of_batches_and_of_other_types_have_gradients():
    a, b = OPERANDS["batches"]()
    check(a, b, lambda v: bias(v) | gelu(), lambda z, v: gelu_of(z + v[:, None]), [normal(3, N, dtype=F32)])
    check(*OPERANDS["bf16"](), bias, lambda z, v: z + v, [normal(N)], dtype=F32)
    check(normal(M, K), normal(K, 8)[:, :4], bias, lambda z, v: z + v, [normal(4)], dtype=F32)


def second(a, b, multiply, kind):
    """The gradients of a function of the first gradients."""
    x, w = (t.detach().to(kind).requires_grad_() for t in (a, b))
    first = torch.autograd.grad(multiply(x, w).square().sum(), (x, w), create_graph=True)
    return torch.autograd.grad(sum(g.square().sum() for g in first), (x, w))


@SLOW
def test_second_derivatives_are_right_or_refused():
    a, b = normal(8, 16), normal(16, 16)
    got = second(a, b, lambda a, b: kernels.matmul(a, b, epilogue=gelu()), BF16)
    want = second(a, b, lambda a, b: gelu_of(a @ b), torch.float64)
    for mine, right in zip(got, want, strict=True):
        assert (mine.double() - right).norm() <= 0.01 * right.norm()
    with pytest.raises(CuteError, match="no second derivative of an epilogue that makes one column of two"):
        second(a, b, lambda a, b: kernels.matmul(a, b, epilogue=swiglu()), BF16)


@SLOW
@pytest.mark.parametrize("name", ["bias, relu, residual", "amax", "swiglu"])
def test_it_is_traced_whole(name):
    made, want, shapes = EPILOGUES[name]
    a, b = OPERANDS["bf16"]()
    given, most = [normal(*s) for s in shapes], torch.zeros(1)

    def call(a, b, *given):
        return kernels.matmul(a, b, epilogue=bias(given[0]) | amax(most) if name == "amax" else made(*given)) + 1

    mine = [t.detach().requires_grad_() for t in (a, b, *given)]
    y = torch.compile(call, fullgraph=True, backend="aot_eager")(*mine)
    right = want((a.double() @ b.double()), *(t.double() for t in given)) + 1
    assert (y.double() - right).norm() <= 0.01 * right.norm()
    assert name != "amax" or torch.allclose(most.double(), (right - 1).abs().max(), rtol=0.01)
    for got, of in zip(torch.autograd.grad(y.sum(), mine), torch.autograd.grad(call(*mine).sum(), mine), strict=True):
        assert torch.allclose(got.float(), of.float(), rtol=0.02, atol=0.02)


@SLOW
def test_autocast_makes_operands_narrow():
    a, b = normal(M, K, dtype=F32).requires_grad_(), normal(N, K, dtype=F32)
    with torch.autocast("cpu", dtype=BF16):
        y = kernels.matmul(a, b.mT)
    assert y.dtype == BF16
    y.sum().backward()
    assert a.grad.dtype == F32 and (a.grad - b.sum(0)).norm() <= 0.01 * (b.sum(0) * M**0.5).norm()


def clipped(x):
    return x.reshape(-1)


REFUSED = {
    "a gradient is asked for, which there is of bfloat16.*a is float8": lambda: kernels.matmul(
        normal(8, 16).to(torch.float8_e4m3fn).requires_grad_(), normal(8, 16).to(torch.float8_e4m3fn).mT
    ),
    "a gradient is asked for, and the epilogue adds up sums": lambda: kernels.matmul(
        normal(8, 16).requires_grad_(), normal(16, 8), epilogue=total(torch.zeros(8))
    ),
    "out is given, and a gradient is asked for": lambda: kernels.matmul(
        normal(8, 16).requires_grad_(), normal(16, 8), out=normal(8, 8)
    ),
    "cannot be differentiated .*call it under torch.no_grad": lambda: kernels.matmul(
        normal(8, 16).requires_grad_(), normal(16, 8), epilogue=Epilogue(clipped)
    ),
    "float32 of shape .* requires a gradient, and there is none": lambda: kernels.matmul(
        normal(8, 16), normal(16, 8), epilogue=amax(torch.zeros(1, requires_grad=True))
    ),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_has_no_gradient_is_refused(words):
    with pytest.raises(CuteError, match=f"matmul: .*{words}|{words}"):
        REFUSED[words]()
