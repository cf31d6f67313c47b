# SPDX-License-Identifier: Apache-2.0
"""FlashAttention's functions, each compared with its package's reference within its package's tolerances."""

from __future__ import annotations

from collections.abc import Callable

import torch
from published import as_published

as_published()

from flash_attn.cute.interface import flash_attn_func  # noqa: E402 - of the namespace
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
