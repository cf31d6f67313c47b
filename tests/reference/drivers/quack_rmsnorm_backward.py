# SPDX-License-Identifier: Apache-2.0
"""Quack's RMSNorm, backward."""

import os

os.environ["QUACK_CACHE_ENABLED"] = "0"

import torch
from quack.rmsnorm import rmsnorm_bwd, rmsnorm_bwd_ref

torch.manual_seed(0)
x, dout = (torch.randn(16, 256, device="cuda", dtype=torch.bfloat16) for _ in range(2))
weight = torch.randn(256, device="cuda", dtype=torch.float32)
rstd = torch.rsqrt(x.float().square().mean(dim=-1) + 1e-6)
expected = rmsnorm_bwd_ref(x, weight, dout, rstd)
given = rmsnorm_bwd(x, weight, dout, rstd)
torch.testing.assert_close(given[0], expected[0], atol=1e-1, rtol=1e-3)
torch.testing.assert_close(given[1], expected[1], atol=5e-6 * 16**0.5, rtol=1e-3)
