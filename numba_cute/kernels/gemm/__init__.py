# SPDX-License-Identifier: Apache-2.0
"""GEMMs with epilogues: `matmul` for PyTorch's tensors, and what its epilogues are made of."""

from .epilogue import (
    Epilogue,
    amax,
    bias,
    columns,
    geglu,
    gelu,
    magnitude,
    matrix,
    one,
    relu,
    residual,
    rows,
    scale,
    silu,
    sums,
    swiglu,
    total,
)  # fmt: skip
from .launches import matmul
from .plan import Plan
from .umma_plan import Umma
from .warps_plan import Warps

__all__ = [
    "Epilogue", "Plan", "Umma", "Warps", "amax", "bias", "columns", "geglu", "gelu", "magnitude", "matmul", "matrix",
    "one", "relu", "residual", "rows", "scale", "silu", "sums", "swiglu", "total",
]  # fmt: skip
