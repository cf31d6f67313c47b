# SPDX-License-Identifier: Apache-2.0
"""Quack's matrix multiplication on Hopper."""

import torch
from compared import compare, judge
from quack.gemm import gemm

torch.manual_seed(0)
a = torch.randn(1, 192, 136, device="cuda", dtype=torch.bfloat16)
b = torch.randn(1, 136, 136, device="cuda", dtype=torch.bfloat16)
c = torch.randn(1, 192, 136, device="cuda", dtype=torch.bfloat16)
for persistent, third in ((False, None), (True, c)):
    d = torch.empty(1, 192, 136, device="cuda", dtype=torch.bfloat16)
    gemm(a, b, d, third, None, tile_M=128, tile_N=128, cluster_M=1, cluster_N=1, persistent=persistent)
    expected = a.float() @ b.float().mT + (0 if third is None else third.float())
    compare(d, expected.to(d.dtype), atol=1e-1, rtol=1e-2)

judge()
