# SPDX-License-Identifier: Apache-2.0
"""Quack's Hadamard transform."""

import torch
from compared import compare, judge
from quack.transform.hadamard import hadamard_transform, hadamard_transform_ref

torch.manual_seed(0)
for n, dtype in ((64, torch.float32), (256, torch.float16), (100, torch.bfloat16), (1024, torch.float32)):
    x = torch.randn(6, n, device="cuda", dtype=dtype)
    compare(hadamard_transform(x, 0.5), hadamard_transform_ref(x, 0.5), atol=2e-2, rtol=2e-2)

judge()
