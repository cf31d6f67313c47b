# SPDX-License-Identifier: Apache-2.0
"""Quack's RMSNorm, backward, on two blocks: as many as a GPU has SMs take long to simulate."""

import os

os.environ["QUACK_CACHE_ENABLED"] = "0"

import torch
from quack.rmsnorm import _rmsnorm_bwd, rmsnorm_bwd_ref

torch.manual_seed(0)
x, dout = (torch.randn(48, 256, device="cuda", dtype=torch.bfloat16) for _ in range(2))
weight = torch.randn(256, device="cuda", dtype=torch.float32)
rstd = torch.rsqrt(x.float().square().mean(dim=-1) + 1e-6)
expected = rmsnorm_bwd_ref(x, weight, dout, rstd)
dx, parts = torch.empty_like(x), torch.empty(2, 256, device="cuda", dtype=torch.float32)
_rmsnorm_bwd(x, weight, dout, rstd, dx, parts)
torch.testing.assert_close(dx, expected[0], atol=1e-1, rtol=1e-3)
torch.testing.assert_close(parts.sum(dim=0), expected[1], atol=5e-6 * 48**0.5, rtol=1e-3)
