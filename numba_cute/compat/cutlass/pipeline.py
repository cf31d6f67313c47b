# SPDX-License-Identifier: Apache-2.0
"""Names of `cutlass.pipeline` that are not those of `numba_cute.pipeline`."""

from __future__ import annotations

from typing import Any

from ...arch import alloc_smem
from ...dtypes import Int64
from ...seam import traced
from ...tensor.pointer import Pointer

__all__ = ["alloc_reserved_mbarrier"]


@traced
def alloc_reserved_mbarrier(num_stages: int, *, loc: Any = None, ip: Any = None) -> Pointer:
    """Allocate the full and the empty barriers of a pipeline in static shared memory: 2 * `num_stages` words."""
    return alloc_smem(Int64, 2 * num_stages)
