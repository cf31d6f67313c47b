# SPDX-License-Identifier: Apache-2.0
"""FlashAttention's functions, each compared with its package's reference within its package's tolerances."""

from __future__ import annotations

from collections.abc import Callable

import torch
from published import as_published

as_published()

from flash_attn.cute.interface import (  # noqa: E402 - of the namespace
    _flash_attn_bwd,
    _flash_attn_bwd_sparse_mla,
    flash_attn_func,
    flash_attn_varlen_func,
)
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


def latent(batch: int, seqlen_q: int, seqlen_k: int, chosen: int = 0) -> None:
    """Compare the weight-absorbed attention of MLA, 128 heads of queries that share one of keys, with its reference.
    chosen: how many keys each query takes, at random; 0: all."""
    q, k, v, qv, taken = _latent(batch, seqlen_q, seqlen_k, chosen)
    options = {"gather_kv_indices": taken} if chosen else {}
    given, _ = flash_attn_func(q, k, v, qv=qv, pack_gqa=True, **options)
    expected, _ = attention_ref(q, k, v, qv=qv, **options)
    of_torch, _ = attention_ref(q, k, v, qv=qv, upcast=False, reorder_ops=True, **options)
    within("out", given, expected, of_torch, rtol=2)


def latent_backward(batch: int, seqlen_q: int, seqlen_k: int, chosen: int) -> None:
    """Compare the gradients of that attention of `chosen` keys with torch's in double precision: no further from them
    than three times what torch is in this precision. What its forward pass gives is torch's here."""
    *inputs, taken = _latent(batch, seqlen_q, seqlen_k, chosen)
    dout = torch.randn_like(inputs[-1])
    grads = []
    for of in (torch.float64, torch.bfloat16):
        leaves = [t.to(of).requires_grad_() for t in inputs]
        q, k, v, qv = leaves
        k, v = (t[:, :, 0][torch.arange(batch)[:, None, None], taken.long()] for t in (k, v))
        scores = torch.einsum("bshd,bstd->bsht", q, k) + torch.einsum("bshd,bstd->bsht", qv, v)
        scores = scores / (q.shape[-1] + v.shape[-1]) ** 0.5
        out = torch.einsum("bsht,bstd->bshd", scores.softmax(-1), v)
        grads.append(torch.autograd.grad(out, leaves, dout.to(of)))
        if of is torch.float64:
            exact, exact_scores = out.detach(), scores.detach()
    blocks = exact_scores.unflatten(-1, (chosen // 128, 128))
    most = blocks.amax(-1, keepdim=True)
    p, row_max = (blocks - most).exp().flatten(-2).bfloat16(), most[..., 0] * (q.shape[-1] + v.shape[-1]) ** 0.5
    lse = exact_scores.logsumexp(-1).float()
    given = _flash_attn_bwd_sparse_mla(
        *inputs, exact.bfloat16(), dout, lse, p, row_max.float().transpose(-1, -2).contiguous(), taken
    )
    for name, *of_name in zip(("dq", "dk", "dv", "dqv"), given, *grads, strict=True):
        within(name, *of_name, rtol=3)


def _latent(batch: int, seqlen_q: int, seqlen_k: int, chosen: int) -> list[torch.Tensor]:
    torch.manual_seed(0)
    shapes = ((seqlen_q, 128, 64), (seqlen_k, 1, 64), (seqlen_k, 1, 512), (seqlen_q, 128, 512))
    made = [torch.randn(batch, *s, device="cuda", dtype=torch.bfloat16) for s in shapes]
    taken = torch.rand(batch, seqlen_q, seqlen_k, device="cuda").argsort(-1)[..., :chosen]
    return [*made, taken.int().contiguous()]


def of_lengths(
    lengths_q: tuple[int, ...], lengths_k: tuple[int, ...], heads: int, heads_kv: int, d: int, page: int = 0
) -> None:
    """Compare attention of sequences that lie behind each other with that of each by itself. page: of how many keys
    the pages are in which they lie in no order; 0: none."""
    torch.manual_seed(0)
    q = torch.randn(sum(lengths_q), heads, d, device="cuda", dtype=torch.bfloat16)
    kv = [torch.randn(2, 1, n, heads_kv, d, device="cuda", dtype=torch.bfloat16) for n in lengths_k]
    starts = [
        torch.tensor((0, *torch.tensor(n).cumsum(0)), dtype=torch.int32).to("cuda") for n in (lengths_q, lengths_k)
    ]
    options = {"cu_seqlens_q": starts[0], "max_seqlen_q": max(lengths_q), "max_seqlen_k": max(lengths_k)}
    if page:
        most = -(-max(lengths_k) // page)
        table = torch.randperm(most * len(kv)).reshape(len(kv), most).int().to("cuda")
        pages = torch.zeros(2, most * len(kv), page, heads_kv, d, device="cuda", dtype=torch.bfloat16)
        for x, places in zip(kv, table):
            for i, place in enumerate(places):
                part = x[:, 0, i * page : (i + 1) * page]
                pages[:, place, : part.shape[1]] = part
        k, v = pages
        options |= {"page_table": table, "seqused_k": torch.tensor(lengths_k, dtype=torch.int32).to("cuda")}
    else:
        k, v = torch.cat(kv, 2)[:, 0]
        options["cu_seqlens_k"] = starts[1]
    given, *_ = flash_attn_varlen_func(q, k, v, causal=True, **options)
    for of_q, x, out in zip(q.split(lengths_q), kv, given.split(lengths_q)):
        expected, _ = attention_ref(of_q[None], *x, causal=True)
        of_torch, _ = attention_ref(of_q[None], *x, causal=True, upcast=False, reorder_ops=True)
        within("out", out[None], expected, of_torch, rtol=2)


def modified(of_scores: Callable[[torch.Tensor], torch.Tensor], **options: object) -> None:
    """Compare attention whose scores `of_scores` changes, by the package's `options`, with torch in float64."""
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 128, 1, 64, device="cuda", dtype=torch.bfloat16)
    given, *_ = flash_attn_func(q, k, v, **options)
    outs = []
    for of in (torch.float64, torch.bfloat16):
        scores = of_scores(torch.einsum("bthd,bshd->bhts", q.to(of), k.to(of)) / q.shape[-1] ** 0.5)
        outs.append(torch.einsum("bhts,bshd->bthd", scores.softmax(-1), v.to(of)))
    within("out", given, *outs, rtol=2)


def _attended(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention and the logarithms of its sums, in the precision of what is given."""
    k, v = (t.repeat_interleave(q.shape[2] // t.shape[2], dim=2) for t in (k, v))
    scores = torch.einsum("bthd,bshd->bhts", q, k) / q.shape[-1] ** 0.5
    if causal:
        hidden = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool, device=q.device).triu(k.shape[1] - q.shape[1] + 1)
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
