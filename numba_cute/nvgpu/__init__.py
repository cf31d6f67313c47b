# SPDX-License-Identifier: Apache-2.0
"""Operations of NVIDIA GPUs: warp, warpgroup (wgmma) and cpasync (TMA)."""

from ..atoms.op import CopyTraits as CopyUniversalTrait, MmaTraits as MmaUniversalTrait
from . import cpasync, warp, warpgroup
from .common import (
    CacheEvictionPriority,
    CopyG2ROp,
    CopyR2GOp,
    CopyR2SOp,
    CopyS2ROp,
    CopyUniversalOp,
    L2PrefetchSize,
    LoadCacheMode,
    MemoryOrder,
    MemoryScope,
    MmaUniversalOp,
    OperandMajorMode,
    OutputMajorMode,
    ReductionOp,
    SharedSpace,
    StoreCacheMode,
    compress,
    normalize_field_to_ir_name,
)
from .hopper.im2col import make_im2col_tma_atom_A
from .hopper.mma_tile import make_tiled_tma_atom_A, make_tiled_tma_atom_B, make_tiled_tma_atom_C

CopyG2RTrait = CopyR2GTrait = CopyS2RTrait = CopyR2STrait = CopyUniversalTrait  # one class of traits for all copies

__all__ = [
    "CacheEvictionPriority",
    "CopyG2ROp",
    "CopyG2RTrait",
    "CopyR2GOp",
    "CopyR2GTrait",
    "CopyR2SOp",
    "CopyR2STrait",
    "CopyS2ROp",
    "CopyS2RTrait",
    "CopyUniversalOp",
    "CopyUniversalTrait",
    "L2PrefetchSize",
    "LoadCacheMode",
    "MemoryOrder",
    "MemoryScope",
    "MmaUniversalOp",
    "MmaUniversalTrait",
    "OperandMajorMode",
    "OutputMajorMode",
    "ReductionOp",
    "SharedSpace",
    "StoreCacheMode",
    "compress",
    "cpasync",
    "make_im2col_tma_atom_A",
    "make_tiled_tma_atom_A",
    "make_tiled_tma_atom_B",
    "make_tiled_tma_atom_C",
    "normalize_field_to_ir_name",
    "warp",
    "warpgroup",
]
