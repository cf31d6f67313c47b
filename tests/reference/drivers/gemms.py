# SPDX-License-Identifier: Apache-2.0
"""Small problems of matrix multiplication for Quack's drivers."""

from __future__ import annotations

import torch


def matrix(*shape: int, dtype: torch.dtype = torch.bfloat16, scale: float = 1.0) -> torch.Tensor:
    """Return a random matrix on the GPU."""
    return (torch.randn(*shape, device="cuda") * scale).to(dtype)


def problem(m: int = 192, n: int = 136, k: int = 136, dtype: torch.dtype = torch.bfloat16) -> tuple[torch.Tensor, ...]:
    """Return A (1, m, k), B (1, n, k) and C (1, m, n)."""
    torch.manual_seed(0)
    return matrix(1, m, k, dtype=dtype), matrix(1, n, k, dtype=dtype), matrix(1, m, n, dtype=dtype)


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return A times B transposed, in float32."""
    return a.float() @ b.float().mT
