# SPDX-License-Identifier: Apache-2.0
"""Quack's cross entropy, forward and backward."""

import torch
from compared import compare, judge
from quack.cross_entropy import cross_entropy_bwd, cross_entropy_fwd

for m, n, dtype in [(16, 192, torch.bfloat16), (4, 760, torch.float32)]:
    torch.manual_seed(0)
    x = 0.1 * torch.randn(m, n, device="cuda", dtype=dtype)
    target = torch.randint(0, n, (m,), device="cuda", dtype=torch.int64)
    wide = x.float().requires_grad_()
    expected = torch.nn.functional.cross_entropy(wide, target, reduction="none")
    loss, lse = cross_entropy_fwd(x, target, return_lse=True)
    compare(loss, expected, atol=5e-5, rtol=1e-5)
    dloss = torch.randn(m, device="cuda")
    (dx,) = torch.autograd.grad(expected, wide, dloss)
    compare(cross_entropy_bwd(x, target, dloss, lse), dx.to(dtype), atol=5e-5, rtol=1e-5)

judge()
