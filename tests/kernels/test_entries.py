# SPDX-License-Identifier: Apache-2.0
"""The entries of `numba_cute.kernels` themselves, on tensors of the CPU in a simulation: checks, plans, gradients.

Random cases of each are `python -m tests.fuzz.entries`; here stand a few of them, and what such cases found.
"""

import math

import pytest

import numba_cute as cute
from numba_cute import kernels
from numba_cute.kernels import gemm
from numba_cute.kernels.gemm.tuned import tuned

torch = pytest.importorskip("torch")

from ..fuzz.entries import worker  # noqa: E402  (it needs torch)

BF16, F8 = torch.bfloat16, torch.float8_e4m3fn
SLOW = pytest.mark.slow


@pytest.fixture(autouse=True)
def simulated():
    torch.manual_seed(0)
    with cute.simulation(checks=False, sms=8):
        yield


@SLOW
@pytest.mark.parametrize("label", range(6))
@pytest.mark.parametrize("name", worker.CASES)
def test_random_cases_are_right(name, label):
    found = worker.run(name, f"suite-{label}")
    assert found["kind"] in ("right", "refused"), found


def normal(*shape, dtype=BF16, grad=False):
    return torch.randn(shape).to(dtype).requires_grad_(grad)


def int32(*numbers):
    return torch.tensor(numbers, dtype=torch.int32)


@pytest.mark.parametrize("shape", [(1,), ()])
def test_an_epilogue_takes_one_value(shape):
    a, b = normal(8, 16), normal(16, 8)
    made = kernels.matmul(a, b, epilogue=gemm.scale(torch.full(shape, 0.5)))
    assert (made.double() - a.double() @ b.double() / 2).abs().max() < 0.1


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_takes_heads_at_odd_places(interleaved):
    x, angles = normal(3, 2, 3)[..., :2], torch.randn(3, 1)
    made = kernels.rotary(x, angles.cos(), angles.sin(), interleaved=interleaved).double()
    turned = torch.view_as_complex(x.double().contiguous()) * torch.polar(torch.ones(3, 1), angles).to(torch.complex128)
    assert (made - torch.view_as_real(turned)).abs().max() < 0.02


@SLOW
def test_gradients_of_a_bias_are_of_its_type():
    x, weight, bias = normal(3, 31), normal(31), normal(31, dtype=torch.float32, grad=True)
    kernels.layernorm(x, weight, bias).backward(torch.full((3, 31), 1.001, dtype=BF16))
    assert bias.grad.dtype == torch.float32
    kernels.layernorm(x, None, bias).sum().backward()
    assert torch.equal(bias.grad, torch.full((31,), 6.0))


def test_tensors_in_any_order_are_taken():
    labels = torch.randint(0, 9, (4, 5))
    x = normal(3, 4, 9, dtype=torch.float32).transpose(0, 1)
    want = torch.nn.functional.cross_entropy(x.reshape(-1, 9), labels[:, 1:4].reshape(-1))
    assert torch.allclose(kernels.cross_entropy(x, labels[:, 1:4]), want)
    out = torch.empty(4, 6, 3, 9)[:, :2, :2]
    with pytest.raises(cute.CuteError, match="out is float32 of shape .* cannot be seen as rows"):
        kernels.softmax(torch.zeros(4, 2, 2, 9), out=out)


EMPTY = {
    "permute": lambda: kernels.permute(torch.zeros(0, 3), (1, 0)),
    "rmsnorm": lambda: kernels.rmsnorm(normal(0, 32, grad=True), normal(32, grad=True)),
    "groupnorm": lambda: kernels.groupnorm(normal(0, 4, 8, grad=True), 2, normal(4, grad=True)),
    "softmax": lambda: kernels.softmax(normal(2, 0, 32, grad=True)),
    "linear losses": lambda: kernels.linear_cross_entropy(
        normal(0, 16, grad=True), normal(8, 16, grad=True), torch.zeros(0, dtype=torch.int64), reduction="sum"
    ),
    "topk": lambda: kernels.topk(normal(0, 32, grad=True), 3)[0],
    "rotary": lambda: kernels.rotary(normal(0, 2, 8, grad=True), normal(0, 4), normal(0, 4)),
    "attention": lambda: kernels.flash_attention(*[normal(0, 8, 1, 64, grad=True)] * 3),
    "no queries": lambda: kernels.flash_attention(normal(1, 0, 1, 64, grad=True), *[normal(1, 8, 1, 64)] * 2),
    "no keys": lambda: kernels.flash_attention(normal(1, 8, 1, 64, grad=True), *[normal(1, 0, 1, 64)] * 2),
    "no sequences": lambda: kernels.flash_attention(
        *[normal(0, 1, 64)] * 3, cu_seqlens_q=int32(0), cu_seqlens_k=int32(0), max_seqlen_q=0
    ),
    "grouped": lambda: kernels.grouped_gemm(normal(0, 16), normal(2, 8, 16), int32(0, 0)),
    "blockscaled": lambda: kernels.blockscaled_gemm(
        normal(0, 16, dtype=F8), normal(8, 16, dtype=F8), torch.ones(0, 1), torch.ones(1, 1)
    ),
}


@pytest.mark.parametrize("what", EMPTY)
def test_nothing_gives_nothing(what):
    made = EMPTY[what]()
    if made.requires_grad:
        made.sum().backward()
    assert made.numel() == 0 or not made.any()


REFUSED = {
    "matmul: out is bfloat16 .*; its elements must lie apart": lambda: kernels.matmul(
        normal(8, 16), normal(9, 16).mT, out=normal(1, 9).expand(8, 9)
    ),
    "matmul: a is bfloat16 .*; their batches must broadcast": lambda: kernels.matmul(
        normal(2, 8, 16), normal(3, 16, 8)
    ),
    "flash_attention: cu_seqlens_q is empty": lambda: kernels.flash_attention(
        normal(0, 1, 64), *[normal(1, 8, 1, 64)] * 2, cu_seqlens_q=int32(), max_seqlen_q=0
    ),
    "permute: x is float32 of shape ()": lambda: kernels.permute(torch.tensor(1.0), ()),
    "rmsnorm: the rows of x, .* have no elements": lambda: kernels.rmsnorm(torch.zeros(3, 0)),
    "softmax: a tensor of shape .* belongs to torch.func": lambda: torch.func.vmap(kernels.softmax)(normal(2, 3, 8)),
    "matmul: a tensor of shape .* belongs to torch.func": lambda: torch.func.grad(lambda a: kernels.matmul(a, a).sum())(
        normal(8, 8)
    ),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_not_taken_is_refused_by_name(words):
    with pytest.raises(cute.CuteError, match=words):
        REFUSED[words]()


@SLOW
def test_a_second_derivative_is_refused_when_it_is_asked_for():
    x = normal(2, 8, dtype=torch.float32, grad=True)
    (first,) = torch.autograd.grad(kernels.softmax(x).pow(2).sum(), x, create_graph=True)
    with pytest.raises(cute.CuteError, match="softmax: there is no second derivative"):
        first.sum().backward()
    rows = normal(8, 16, grad=True)
    (first,) = torch.autograd.grad(
        kernels.grouped_gemm(rows, normal(1, 8, 16), int32(8)).sum(), rows, create_graph=True
    )
    assert not first.requires_grad  # it is linear: nothing is left of a second derivative by itself
    scales, x = torch.ones(8, 1, requires_grad=True), normal(8, 128, dtype=F8)
    with pytest.raises(cute.CuteError, match="blockscaled_gemm: there is no derivative"):
        kernels.blockscaled_gemm(x, x, scales, torch.ones(1, 1)).sum().backward()


@SLOW
def test_gradients_of_gradients_are_not_dropped():
    q = normal(1, 8, 1, 64, grad=True)
    o, lse = kernels.flash_attention(q, q.detach(), q.detach(), return_lse=True)
    (first,) = torch.autograd.grad(o.sum(), q, create_graph=True, grad_outputs=None)
    with pytest.raises(cute.CuteError, match="attention: there is no second derivative"):
        first.sum().backward()
    given = [t.detach().requires_grad_() for t in (o, q, q, q, o, lse)]
    with pytest.raises(cute.CuteError, match="attention: there is no second derivative"):
        kernels.attention_backward(*given)[0].sum().backward()


@SLOW
def test_a_gradient_that_there_is_not_is_refused_where_it_is_traced():
    x, cos = normal(8, 2, 8, grad=True), normal(8, 4, grad=True)
    turned = torch.compile(lambda x, c: kernels.rotary(x, c, c), fullgraph=True, backend="aot_eager")
    with pytest.raises(Exception, match="rotary: a gradient of cos, sin is asked for, and there is none"):
        turned(x, cos).sum().backward()


@SLOW
def test_the_tuned_gemm_takes_each_cut():
    a, b, c = normal(8, 64), normal(8, 64), torch.zeros(8, 8, dtype=BF16)
    tuned(a, b, c, cute.BFloat16)()
    assert (c.double() - a.double() @ b.double().T).abs().max() < 0.2


@SLOW
@pytest.mark.parametrize("kind", [torch.float32, BF16, torch.int8])
@pytest.mark.parametrize("order", ["rows", "columns"])
def test_a_turned_cut_takes_results_of_any_width(order, kind):
    a, b = torch.randint(-8, 8, (100, 16)).to(kind), torch.randint(-8, 8, (72, 16)).to(kind).mT
    out = torch.zeros(100, 72, dtype=torch.int32 if kind == torch.int8 else torch.float32)
    if order == "columns":
        out = torch.zeros(72, 100, dtype=out.dtype).mT
    kernels.matmul(a, b, out=out, cut=gemm.Plan(64, 1, turned=True))
    assert torch.equal(out.double(), a.double() @ b.double())


@SLOW
def test_pairs_of_32_bits_may_be_contiguous_along_rows():
    a, b, out = normal(24, 16), normal(16, 32), torch.zeros(16, 24).mT
    kernels.matmul(a, b, out=out, epilogue=gemm.swiglu())
    want = a.double() @ b.double()
    want = torch.nn.functional.silu(want[:, :16]) * want[:, 16:]
    assert (out.double() - want).abs().max() < 0.05


def test_an_operand_may_be_one_column_of_a_wider_matrix():
    a, b = normal(9, 16)[:, :1], normal(8, 32)[:, :1].T
    assert (kernels.matmul(a, b).double() - a.double() @ b.double()).abs().max() < 0.05


EVERYWHERE = {
    "matmul": (lambda: kernels.matmul(normal(8, 16), normal(16, 8)), (8, 8)),
    "grouped_gemm": (lambda: kernels.grouped_gemm(normal(8, 16), normal(1, 8, 16), int32(8)), (8, 8)),
    "mixed_gemm": (
        lambda: kernels.mixed_gemm(
            normal(8, 128), kernels.int4_weights(torch.zeros(8, 128, dtype=torch.int8), normal(8, 1))
        ),
        (8, 8),
    ),
    "conv1d": (lambda: kernels.conv1d(normal(1, 4, 8).mT, normal(8, 1, 8).mT), (1, 8, 4)),
}
"""Calls of entries that all families have kernels of, and the shapes of what they give."""


@pytest.mark.parametrize("arch", ["sm_80", "sm_100a", "sm_120a"])
@pytest.mark.parametrize("what", EVERYWHERE)
def test_other_gpus_have_kernels(what, arch):
    call, shape = EVERYWHERE[what]
    with cute.simulation(arch):
        assert call().shape == shape


@pytest.mark.parametrize("arch", ["sm_80", "sm_100a", "sm_120a"])
def test_other_gpus_get_one_sentence(arch):
    what = "latent_attention: its kernels? (is|are) for Hopper"
    with cute.simulation(arch), pytest.raises(cute.CuteError, match=rf"{what} .* is {arch}"):
        kernels.latent_attention(normal(1, 1, 16, 576), normal(1, 8, 576), scale=0.1)


@pytest.mark.parametrize("arch", ["sm_80", "sm_120a"])
def test_rows_are_of_every_gpu(arch):
    x = normal(3, 64, dtype=torch.float32)
    with cute.simulation(arch):
        assert torch.allclose(kernels.softmax(x), x.softmax(-1), atol=1e-6)


@SLOW
def test_a_permutation_has_gradients_and_is_traced():
    x, weight = normal(3, 4, 5, dtype=torch.float32, grad=True), normal(5, 3, 4, dtype=torch.float32)
    (kernels.permute(x, (2, 0, -2)) * weight).sum().backward()
    assert torch.equal(x.grad, weight.permute(1, 2, 0))
    traced = torch.compile(lambda x: kernels.transpose(x) + 1, backend="eager", fullgraph=True)
    assert torch.equal(traced(x.detach()), x.detach().mT + 1)


def test_a_kernel_is_compiled_once_for_all_extents_of_a_cluster():
    assert gemm.plan.kernel_of(gemm.Plan(64, 1)) is gemm.plan.kernel_of(gemm.Plan(128, 1, stages=4))


def test_zeros_of_either_sign_are_equal():
    x = torch.tensor([[-1.0, -0.0, 0.0, -0.0, 1.0]])
    values, places = kernels.topk(x, 4)
    assert places.tolist() == [[4, 1, 2, 3]] and not values[0, 1:].any()


@SLOW
@pytest.mark.parametrize("length", [40, 20000])
def test_a_loss_is_infinite_where_another_logit_is(length):
    x = normal(4, length, dtype=torch.float32)
    x[0, 3], x[1, 5], x[1, 7], x[2, 5], x[3, 2] = math.inf, math.inf, math.nan, math.inf, -math.inf
    loss = kernels.cross_entropy(x, torch.tensor([1, 1, 5, 2]), reduction="none")
    want = x.double().logsumexp(-1) - x[torch.arange(4), torch.tensor([1, 1, 5, 2])].double()
    assert torch.equal(loss.double().nan_to_num(1, 2, 3), want.nan_to_num(1, 2, 3))


@SLOW
def test_infinities_and_nan_stay_where_they_are():
    x = normal(3, 40, dtype=torch.float32)
    x[0, 3], x[1, 5] = math.nan, math.inf
    values, places = kernels.topk(x, 2)
    assert math.isnan(values[0, 0]) and places[0, 0] == 3 and values[1, 0] == math.inf
    assert kernels.softmax(x)[:2].isnan().all() and not kernels.softmax(x)[2].isnan().any()
