# SPDX-License-Identifier: Apache-2.0
"""Quack's RMSNorm, forward."""

import torch
from compared import compare, judge
from quack.rmsnorm import rmsnorm, rmsnorm_ref

TOLERANCES = {torch.bfloat16: 1e-1, torch.float16: 1e-2, torch.float32: 1e-4}
"""Those of the package's tests."""

for m, n, dtype, weight_dtype in [
    (16, 192, torch.bfloat16, torch.float32), (4, 760, torch.float16, torch.bfloat16), (4, 1024, torch.float32, None)
]:  # fmt: skip
    torch.manual_seed(0)
    x = torch.randn(m, n, device="cuda", dtype=dtype)
    weight = None if weight_dtype is None else torch.randn(n, device="cuda", dtype=weight_dtype)
    expected = rmsnorm_ref(x, weight, eps=1e-6)
    given = rmsnorm(x, weight, eps=1e-6)
    compare(given, expected, atol=TOLERANCES[dtype], rtol=1e-3)

judge()
