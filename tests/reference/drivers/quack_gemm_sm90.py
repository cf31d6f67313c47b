# SPDX-License-Identifier: Apache-2.0
"""Quack's matrix multiplication on Hopper."""

import os

os.environ["QUACK_CACHE_ENABLED"] = "0"

import torch
from quack.gemm import gemm

torch.manual_seed(0)
a = torch.randn(1, 128, 64, device="cuda", dtype=torch.bfloat16)
b = torch.randn(1, 128, 64, device="cuda", dtype=torch.bfloat16)
d = torch.empty(1, 128, 128, device="cuda", dtype=torch.bfloat16)
gemm(a, b, d, None, None, tile_M=128, tile_N=128, cluster_M=1, cluster_N=1, persistent=False)
torch.testing.assert_close(d, a @ b.mT, atol=1e-1, rtol=1e-2)
