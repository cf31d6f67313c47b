# SPDX-License-Identifier: Apache-2.0
"""Operations of NVIDIA GPUs: warp, warpgroup (wgmma) and cpasync (TMA)."""

from . import cpasync, warp, warpgroup
from .common import CopyUniversalOp, L2PrefetchSize, LoadCacheMode, OperandMajorMode, ReductionOp
from .universal import MmaUniversalOp

__all__ = [
    "CopyUniversalOp",
    "L2PrefetchSize",
    "LoadCacheMode",
    "MmaUniversalOp",
    "OperandMajorMode",
    "ReductionOp",
    "cpasync",
    "warp",
    "warpgroup",
]
