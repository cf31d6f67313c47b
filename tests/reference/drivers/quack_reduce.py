# SPDX-License-Identifier: Apache-2.0
"""Quack's last steps of reductions that other kernels began: of an RMSNorm, and of split K."""

import torch
from compared import compare, judge
from quack.rms_final_reduce import rms_final_reduce
from quack.split_k_reduce import split_k_reduce

torch.manual_seed(0)
x = torch.rand(24, 40, device="cuda")
compare(rms_final_reduce(x, 1 / 400, 1e-6), torch.rsqrt(x.sum(1) / 400 + 1e-6), atol=1e-5, rtol=1e-5)

partials = torch.randn(6, 20, 72, device="cuda")
c = torch.randn(2, 20, 72, device="cuda", dtype=torch.bfloat16)
row, column = torch.randn(2, 72, device="cuda"), torch.randn(2, 20, device="cuda")
d = torch.zeros_like(c)
split_k_reduce(partials, d, 3, 0.5, torch.tensor(2.0, device="cuda"), c, row, column)
expected = 0.5 * partials.view(2, 3, 20, 72).sum(1) + 2 * c.float() + row[:, None] + column[:, :, None]
compare(d, expected.to(d.dtype), atol=3e-2, rtol=2e-2)

judge()
