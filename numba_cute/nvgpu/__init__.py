# SPDX-License-Identifier: Apache-2.0
"""Operations of NVIDIA GPUs: warp, warpgroup (wgmma) and cpasync (TMA)."""

from . import cpasync, warp, warpgroup
from .common import CopyUniversalOp, L2PrefetchSize, LoadCacheMode, OperandMajorMode, ReductionOp

__all__ = [
    "CopyUniversalOp",
    "L2PrefetchSize",
    "LoadCacheMode",
    "OperandMajorMode",
    "ReductionOp",
    "cpasync",
    "warp",
    "warpgroup",
]
