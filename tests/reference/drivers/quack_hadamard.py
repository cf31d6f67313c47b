# SPDX-License-Identifier: Apache-2.0
"""Quack's Hadamard transform."""

import os

os.environ["QUACK_CACHE_ENABLED"] = "0"

import torch
from quack.transform.hadamard import hadamard_transform_fwd, hadamard_transform_ref

torch.manual_seed(0)
x = torch.randn(4, 256, device="cuda", dtype=torch.float32)
torch.testing.assert_close(
    hadamard_transform_fwd(x, 0.5), hadamard_transform_ref(x, 0.5).to(x.dtype), atol=1e-3, rtol=1e-3
)
