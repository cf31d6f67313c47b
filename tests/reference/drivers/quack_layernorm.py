# SPDX-License-Identifier: Apache-2.0
"""Quack's LayerNorm, forward."""

import torch
from compared import compare, judge
from quack.rmsnorm import layernorm_fwd, layernorm_mean_ref, layernorm_ref, layernorm_rstd_ref

torch.manual_seed(0)
x = torch.randn(16, 256, device="cuda", dtype=torch.bfloat16)
weight = torch.randn(256, device="cuda", dtype=torch.float32)
out, rstd, mean = layernorm_fwd(x, weight, eps=1e-6, return_rstd=True, return_mean=True)
compare(out, layernorm_ref(x, weight, eps=1e-6), atol=1e-2, rtol=1e-2)
compare(rstd, layernorm_rstd_ref(x, eps=1e-6), atol=6e-4, rtol=6e-4)
compare(mean, layernorm_mean_ref(x), atol=6e-4, rtol=6e-4)

judge()
