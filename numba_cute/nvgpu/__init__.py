# SPDX-License-Identifier: Apache-2.0
"""Operations of NVIDIA GPUs: warp, warpgroup (wgmma) and cpasync (TMA)."""

from . import cpasync, warp, warpgroup
from .common import CopyUniversalOp, OperandMajorMode

__all__ = ["CopyUniversalOp", "OperandMajorMode", "cpasync", "warp", "warpgroup"]
