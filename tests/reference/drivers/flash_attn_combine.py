# SPDX-License-Identifier: Apache-2.0
"""FlashAttention's kernel that combines the splits of keys: of a batch, and of sequences that lie behind each other."""

from compared import compare, judge
from published import as_published

as_published()

import torch  # noqa: E402 - of the namespace
from flash_attn.cute.interface import flash_attn_combine  # noqa: E402


def combined(splits: int, shape: tuple[int, ...], d: int, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    out = torch.randn(splits, *shape, d, device="cuda")
    lse = torch.randn(splits, *shape, device="cuda").transpose(-1, -2).contiguous().transpose(-1, -2)
    starts = torch.tensor([0, 5, shape[0]], dtype=torch.int32).to("cuda") if len(shape) == 2 else None
    given, given_lse = flash_attn_combine(out, lse, out_dtype=dtype, cu_seqlens=starts)
    expected_lse = lse.double().logsumexp(0)
    expected = ((lse.double() - expected_lse).exp()[..., None] * out.double()).sum(0)
    compare(given_lse, expected_lse.float(), atol=1e-5, rtol=1e-5)
    compare(given.double(), expected, atol=1e-2, rtol=1e-2 if dtype is torch.bfloat16 else 1e-5)


combined(3, (1, 17, 2), 64, torch.bfloat16)
combined(2, (33, 2), 128, torch.float32)
judge()
