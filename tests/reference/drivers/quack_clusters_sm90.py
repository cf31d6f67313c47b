# SPDX-License-Identifier: Apache-2.0
"""Quack's matrix multiplication on Hopper with clusters of two CTAs, whose ranks are computed in 32 bits."""

import torch
from compared import compare, judge
from quack.gemm import gemm

torch.manual_seed(0)
for shape in ((2, 1), (1, 2)):
    a, b = (torch.randn(1, 128 * n, 64, device="cuda", dtype=torch.bfloat16) for n in shape)
    d = torch.empty(1, 128 * shape[0], 128 * shape[1], device="cuda", dtype=torch.bfloat16)
    gemm(a, b, d, None, None, tile_M=128, tile_N=128, cluster_M=shape[0], cluster_N=shape[1], persistent=True)
    compare(d, (a.float() @ b.float().mT).to(d.dtype), atol=1e-1, rtol=1e-2)

judge()
