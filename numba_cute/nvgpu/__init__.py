# SPDX-License-Identifier: Apache-2.0
"""Operations of NVIDIA GPUs: warp, warpgroup (wgmma) and cpasync (TMA)."""

from ..atoms.copy_atom import CopyTraits as CopyUniversalTrait
from ..atoms.mma_atom import MmaTraits as MmaUniversalTrait
from . import cpasync, warp, warpgroup
from .common import (
    CacheEvictionPriority,
    CopyUniversalOp,
    L2PrefetchSize,
    LoadCacheMode,
    MemoryOrder,
    MemoryScope,
    OperandMajorMode,
    OutputMajorMode,
    ReductionOp,
    SharedSpace,
    StoreCacheMode,
    normalize_field_to_ir_name,
)
from .copies import CopyG2ROp, CopyR2GOp, CopyR2SOp, CopyS2ROp
from .hopper.im2col import make_im2col_tma_atom_A
from .hopper.mma_tile import make_tiled_tma_atom_A, make_tiled_tma_atom_B, make_tiled_tma_atom_C
from .sparse import compress
from .universal import MmaUniversalOp

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
