# SPDX-License-Identifier: Apache-2.0
"""Rows that lie apart, as heads of packed q, k and v, and logits without each sequence's last: read where they lie."""

import pytest

import numba_cute as cute
from numba_cute import kernels
from numba_cute.kernels.rows.plan import matrix, rows_of, separate
from numba_cute.kernels.rows.rotary import _tokens

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def simulated():
    torch.manual_seed(0)
    with cute.simulation(checks=True, sms=2):
        yield


def heads_of(tokens=(2, 3), heads=2, length=16):
    """Packed q, k and v, and q's heads in them."""
    packed = torch.randn(*tokens, 3 * heads, length)
    return packed, packed[..., :heads, :]


def test_rows_are_viewed_or_copied():
    packed, q = heads_of()
    dense = torch.zeros(2, 3, 4)
    assert rows_of(dense).shape == (6, 4) and rows_of(dense[0, 0]).shape == (1, 4) and rows_of(None) is None
    assert rows_of(q).stride() == (96, 16, 1) and rows_of(q).data_ptr() == q.data_ptr() == matrix(q).data_ptr()
    assert torch.equal(rows_of(q).reshape(-1, 16), q.reshape(-1, 16))
    assert torch.equal(rows_of(packed[1, :, 2:3]), packed[1, :, 2])
    assert rows_of(dense.transpose(0, 1)).data_ptr() == dense.data_ptr()
    four = torch.zeros(4, 6, 5, 4)[:, :3, 1:4]
    assert rows_of(four).shape == (36, 4) and rows_of(four).data_ptr() != four.data_ptr()
    with pytest.raises(cute.CuteError, match="cannot be seen as rows of its last mode"):
        matrix(four)
    assert _tokens(q).data_ptr() == q.data_ptr()


def test_elements_that_share_memory_are_found():
    x = torch.zeros(4, 6)
    assert separate(x) and separate(x.mT) and separate(x[:, ::2]) and separate(x[:0]) and separate(x[:1].expand(1, 6))
    assert not separate(x[:1].expand(4, 6)) and not separate(x.as_strided((3, 6), (5, 1)))


def test_heads_are_normalised_in_their_place():
    packed, q = heads_of()
    rest, weight = packed[..., 2:, :].clone(), torch.randn(16)
    want = torch.nn.functional.rms_norm(q.double(), (16,), weight.double() + 1, 1e-6)
    assert kernels.rmsnorm(q, weight, offset=1.0, out=q) is q
    assert torch.allclose(q.double(), want, atol=1e-5) and torch.equal(packed[..., 2:, :], rest)


@pytest.mark.slow
def test_heads_have_gradients():
    packed, q = heads_of()
    packed.requires_grad_()
    weight = torch.randn(16, requires_grad=True)
    seed = torch.randn(q.shape)
    kernels.rmsnorm(packed[..., :2, :], weight, offset=1.0).backward(seed)
    exact = packed.detach().double().requires_grad_()
    exact_weight = weight.detach().double().requires_grad_()
    torch.nn.functional.rms_norm(exact[..., :2, :], (16,), exact_weight + 1, 1e-6).backward(seed.double())
    assert torch.allclose(packed.grad.double(), exact.grad, atol=1e-5)
    assert torch.allclose(weight.grad.double(), exact_weight.grad, atol=1e-5)


def test_logits_without_each_last_have_their_gradient_in_place():
    leaf, target = torch.randn(2, 4, 24, requires_grad=True), torch.randint(0, 24, (2, 3))
    logits = leaf * 1
    kernels.cross_entropy(logits[:, :-1], target, label_smoothing=0.1, inplace_backward=True).backward()
    exact = leaf.detach().requires_grad_()
    torch.nn.functional.cross_entropy(exact[:, :-1].reshape(-1, 24), target.reshape(-1), label_smoothing=0.1).backward()
    assert torch.allclose(leaf.grad, exact.grad, atol=1e-6)
    assert torch.allclose(logits.detach()[:, :-1], leaf.grad[:, :-1]) and torch.equal(logits[:, -1], leaf[:, -1])


def loss(x, **options):
    return kernels.cross_entropy(x, torch.zeros(x.shape[:-1], dtype=torch.int64), inplace_backward=True, **options)


def test_where_a_gradient_over_the_logits_would_be_wrong_it_is_refused():
    leaf = torch.randn(3, 8, requires_grad=True)
    for x in (leaf, leaf.view(24)[:16].view(2, 8)):
        with pytest.raises(cute.CuteError, match="the memory of a leaf, whose values would be lost"):
            loss(x)
    with pytest.raises(cute.CuteError, match="of which elements share memory: give x.contiguous()"):
        loss((leaf * 1)[:1].expand(3, 8))
    with pytest.raises(cute.CuteError, match="^cross_entropy: .* do not lie as those of a matrix: give x.cont"):
        loss((torch.randn(2, 7, 3, 7, requires_grad=True) * 1).permute(0, 2, 1, 3))
    with pytest.raises(cute.CuteError, match="derivatives of the gradient are asked for"):
        torch.autograd.grad(loss(leaf * 1), leaf, create_graph=True)
    twice = loss(leaf * 1)
    twice.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        twice.backward()
    powers = leaf.exp()  # whose own derivative is of its result
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss(powers).backward()
    with pytest.raises(cute.CuteError, match="label_smoothing 1.5 must be a number of Python's from 0 to 1"):
        loss(leaf * 1, label_smoothing=1.5)


@pytest.mark.slow
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_a_linear_layer_has_losses_and_gradients_by_chunks(reduction):
    x, weight = (torch.randn(7, 16) * 2).bfloat16().requires_grad_(), torch.randn(33, 16).bfloat16().requires_grad_()
    target = torch.tensor([3, 32, -100, 0, 5, 5, -100])
    options = {"label_smoothing": 0.1, "reduction": reduction}
    got = kernels.linear_cross_entropy(x, weight, target, chunk_size=3, **options)
    exact = [t.detach().double().requires_grad_() for t in (x, weight)]
    want = torch.nn.functional.cross_entropy(exact[0] @ exact[1].mT, target, **options)
    seed = torch.randn(got.shape)
    got.backward(seed)
    want.backward(seed.double())
    assert torch.allclose(got.double(), want, rtol=1e-2, atol=1e-2)
    for ours, right in zip((x.grad, weight.grad), exact):
        assert (ours.double() - right.grad).abs().max() < 2.0**-6 * right.grad.abs().max()


@pytest.mark.slow
def test_a_linear_layers_second_derivative_and_what_it_does_not_take_are_refused():
    x, weight = torch.randn(3, 16).half().requires_grad_(), torch.randn(8, 16).half()
    target = torch.tensor([0, 1, 2])
    (first,) = torch.autograd.grad(kernels.linear_cross_entropy(x, weight, target), x, create_graph=True)
    with pytest.raises(cute.CuteError, match="linear_cross_entropy: there is no second derivative"):
        first.sum().backward()
    for words, given in {
        "x is float64 .*; its elements must be bfloat16, float16 or float32": (x.double(), weight),
        "bias is .*; its shape must be": (x, weight, torch.zeros(9)),
        "rows must be multiples of 8 elements: pad x and weight with zeros": (x[:, :9].clone(), weight[:, :9].clone()),
        "weight is float16 .*; its shape must be": (x, weight[:, :8]),
        "its rows must lie apart by multiples of 8 elements": (x, torch.zeros(8, 20).half()[:, :16]),
    }.items():
        with pytest.raises(cute.CuteError, match=f"linear_cross_entropy: .*{words}"):
            kernels.linear_cross_entropy(*given[:2], target, *given[2:])
    with pytest.raises(cute.CuteError, match="softcap -1 must be 0, for none, or a number of 0.001 or more"):
        kernels.linear_cross_entropy(x, weight, target, softcap=-1)


@pytest.mark.slow
@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize(
    ("arch", "kind", "cap", "biased"),
    [("sm_90a", torch.bfloat16, 5.0, True), ("sm_86", torch.float32, 3.0, True), ("sm_90a", torch.float32, 0.0, True),
     ("sm_90a", torch.float16, 4.0, False)],
)  # fmt: skip
def test_a_linear_layers_logits_have_a_bias_and_a_cap(arch, kind, cap, biased, reduction):
    x, weight, bias = torch.randn(2, 5, 16).to(kind), torch.randn(21, 16).to(kind), torch.randn(21)
    target = torch.randint(0, 21, (2, 5))
    target[0, 1] = -100
    mine = [t.requires_grad_() for t in (x, weight, bias)[: 2 + biased]]
    exact = [t.detach().double().requires_grad_() for t in mine]
    options = {"label_smoothing": 0.1, "reduction": reduction}
    with cute.simulation(arch, checks=False, sms=4):
        got = kernels.linear_cross_entropy(*mine[:2], target, *mine[2:], softcap=cap, chunk_size=3, **options)
        dy = torch.randn(got.shape)
        found = torch.autograd.grad(got, mine, dy)
    logits = (exact[0] @ exact[1].mT + (exact[2] if biased else 0.0)).movedim(-1, 1)
    want = torch.nn.functional.cross_entropy(cap * torch.tanh(logits / cap) if cap else logits, target, **options)
    for ours, right in zip((got, *found), (want, *torch.autograd.grad(want, exact, dy.double())), strict=True):
        assert ours.shape == right.shape and (ours.double() - right).norm() <= 0.01 * right.norm()
