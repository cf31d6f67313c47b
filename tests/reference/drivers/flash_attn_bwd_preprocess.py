# SPDX-License-Identifier: Apache-2.0
"""FlashAttention's pass before its backward pass: sums of rows, logarithms to base 2, and zeros."""

from compared import compare, judge
from published import as_published

as_published()

import math  # noqa: E402 - of the namespace

import cutlass  # noqa: E402
import torch  # noqa: E402
from flash_attn.cute.interface import _bwd_preprocess  # noqa: E402

torch.manual_seed(0)
Q, D, TILE = 50, 64, 64
out, dout = torch.randn(2, 1, Q, 2, D, device="cuda", dtype=torch.bfloat16)
lse = torch.randn(1, 2, Q, device="cuda")
sums, logarithms = torch.full((2, 1, 2, TILE), math.nan, device="cuda")
zeros = torch.full((1, 2, TILE * D), math.nan, device="cuda")
_bwd_preprocess(
    out, dout, sums, lse, logarithms, zeros, None, None, None, cutlass.BFloat16, D, D, TILE, fake_mode=False
)  # fmt: skip
compare(sums[..., :Q], (out.float() * dout.float()).sum(-1).transpose(1, 2), atol=1e-4, rtol=1e-4)
compare(logarithms[..., :Q], lse * math.log2(math.e), atol=1e-5, rtol=1e-5)
compare(zeros, torch.zeros_like(zeros), atol=0.0, rtol=0.0)
judge()
