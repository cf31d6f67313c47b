# SPDX-License-Identifier: Apache-2.0
"""FlashAttention's functions, each compared with its package's reference within its package's tolerances."""

from __future__ import annotations

from collections.abc import Callable

import torch
from published import as_published

as_published()

from flash_attn.cute.interface import _flash_attn_bwd, flash_attn_func  # noqa: E402 - of the namespace
from flash_attn.cute.testing import attention_ref  # noqa: E402


def forward(
    batch: int, seqlen_q: int, seqlen_k: int, heads: int, heads_kv: int, d: int, dtype: torch.dtype = torch.bfloat16,
    d_v: int | None = None, softcap: float = 0.0, sink: bool = False, lse: bool = True, **options: object,
) -> None:  # fmt: skip
    """Compare attention with its reference: no further from it than twice what torch is in this precision. lse: whether
    the logarithms of the sums are asked for, too."""
    torch.manual_seed(0)
    q = torch.randn(batch, seqlen_q, heads, d, device="cuda", dtype=dtype)
    k = torch.randn(batch, seqlen_k, heads_kv, d, device="cuda", dtype=dtype)
    v = torch.randn(batch, seqlen_k, heads_kv, d_v or d, device="cuda", dtype=dtype)
    learnable_sink = torch.randn(heads, dtype=torch.bfloat16, device="cuda") if sink else None
    given, given_lse = flash_attn_func(
        q, k, v, softcap=softcap, learnable_sink=learnable_sink, return_lse=lse, **options
    )
    for name in ("pack_gqa", "num_splits"):
        options.pop(name, None)
    options |= {"softcap": softcap, "learnable_sink": learnable_sink}
    expected, _, expected_lse = attention_ref(q, k, v, return_lse=True, **options)
    of_torch, _ = attention_ref(q, k, v, upcast=False, reorder_ops=True, **options)
    within("out", given, expected, of_torch, rtol=3 if softcap else 2)
    if lse and not sink:
        torch.testing.assert_close(given_lse, expected_lse.float(), atol=2e-2, rtol=1e-2)


def backward(
    batch: int, seqlen_q: int, seqlen_k: int, heads: int, heads_kv: int, d: int, causal: bool = False, **options: object
) -> None:
    """Compare the gradients of attention with those of torch in double precision: no further from them than twice what
    torch is in this precision, as the package's own test does. What its forward pass gives is torch's here."""
    torch.manual_seed(0)
    shapes = ((seqlen_q, heads), (seqlen_k, heads_kv), (seqlen_k, heads_kv), (seqlen_q, heads))
    q, k, v, dout = (torch.randn(batch, s, h, d, device="cuda", dtype=torch.bfloat16) for s, h in shapes)
    exact = [t.double().requires_grad_() for t in (q, k, v)]
    out, lse = _attended(*exact, causal)
    expected = torch.autograd.grad(out, exact, dout.double())
    rounded = [t.clone().requires_grad_() for t in (q, k, v)]
    of_torch, _ = attention_ref(*rounded, causal=causal, upcast=False, reorder_ops=True)
    apart = torch.autograd.grad(of_torch, rounded, dout)
    given = _flash_attn_bwd(q, k, v, out.detach().bfloat16(), dout, lse.detach().float(), causal=causal, **options)
    for name, *of_name in zip(("dq", "dk", "dv"), given, expected, apart, strict=True):
        within(name, *of_name, rtol=2)


def _attended(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention and the logarithms of its sums, in the precision of what is given."""
    k, v = (t.repeat_interleave(q.shape[2] // t.shape[2], dim=2) for t in (k, v))
    scores = torch.einsum("bthd,bshd->bhts", q, k) / q.shape[-1] ** 0.5
    if causal:
        hidden = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool).triu(k.shape[1] - q.shape[1] + 1)
        scores = scores.masked_fill(hidden, -torch.inf)
    lse = scores.logsumexp(-1)
    return torch.einsum("bhts,bshd->bthd", (scores - lse[..., None]).exp(), v), lse


def each(*cases: Callable[[], None]) -> None:
    """Run all cases, and raise the first comparison that fails at the end: all kernels are compiled."""
    failed = []
    for case in cases:
        try:
            case()
        except AssertionError as e:
            failed.append(e)
    if failed:
        raise failed[0]


def within(name: str, given: torch.Tensor, expected: torch.Tensor, of_torch: torch.Tensor, rtol: float) -> None:
    """Refuse numbers that are further from what is expected than `rtol` times torch's are."""
    slack = 2 * (expected + 0.3 - 0.3 - expected).abs().max().item()
    error, most = (given - expected).abs().max().item(), rtol * (of_torch - expected).abs().max().item() + slack
    assert error <= most, f"{name}: {error} apart from the reference, and {most} is allowed"
