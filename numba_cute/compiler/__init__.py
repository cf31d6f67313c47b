# SPDX-License-Identifier: Apache-2.0
"""The only part that knows Numba, llvmlite and the CUDA tools. Importing it teaches Numba this library's types."""

from . import calls, launch, passes, structs  # noqa: F401  (they register themselves with Numba)
from .launch import cluster_shape
from .launch import launch as launch
from .offline import Compiled, PerformanceWarning, compile

__all__ = ["Compiled", "PerformanceWarning", "cluster_shape", "compile", "launch"]
