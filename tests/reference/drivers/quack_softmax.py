# SPDX-License-Identifier: Apache-2.0
"""Quack's softmax, forward and backward."""

import torch
from compared import compare, judge
from quack.softmax import softmax_bwd, softmax_fwd

for m, n, dtype, atol, rtol in [(16, 192, torch.bfloat16, 1e-2, 1e-2), (4, 760, torch.float32, 1e-4, 1e-4)]:
    torch.manual_seed(0)
    x = 0.1 * torch.randn(m, n, device="cuda", dtype=dtype)
    y = torch.softmax(x, dim=-1)
    compare(softmax_fwd(x), y, atol=atol, rtol=rtol)
    dy = torch.randn(m, n, device="cuda", dtype=dtype)
    dx = y.float() * (dy.float() - (dy.float() * y.float()).sum(dim=-1, keepdim=True))
    compare(softmax_bwd(dy, y), dx.to(dtype), atol=atol, rtol=rtol)

judge()
