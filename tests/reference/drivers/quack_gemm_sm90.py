# SPDX-License-Identifier: Apache-2.0
"""Quack's matrix multiplication on Hopper."""

import os

os.environ["QUACK_CACHE_ENABLED"] = "0"

import torch
from quack.gemm_interface import gemm

torch.manual_seed(0)
a = torch.randn(128, 64, device="cuda", dtype=torch.bfloat16)
b = torch.randn(64, 192, device="cuda", dtype=torch.bfloat16)
torch.testing.assert_close(gemm(a, b, tuned=False), a @ b, atol=1e-1, rtol=1e-2)
