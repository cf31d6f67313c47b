# SPDX-License-Identifier: Apache-2.0
"""Common to all architectures: the bases of operations, the choices that users have, and operations of every GPU."""

from ...atoms.op import CopyOp, MmaOp
from ...tensor.ssa import ReductionOp
from .choices import (
    CacheEvictionPriority,
    CtaGroup,
    L2PrefetchSize,
    LoadCacheMode,
    MemoryOrder,
    MemoryScope,
    OperandMajorMode,
    OperandSource,
    OutputMajorMode,
    SharedSpace,
    StoreCacheMode,
    normalize_field_to_ir_name,
)
from .copies import CopyG2ROp, CopyR2GOp, CopyR2SOp, CopyS2ROp, CopyUniversalOp
from .sparse import compress
from .universal import MmaUniversalOp

__all__ = [
    "CacheEvictionPriority",
    "CopyG2ROp",
    "CopyOp",
    "CopyR2GOp",
    "CopyR2SOp",
    "CopyS2ROp",
    "CopyUniversalOp",
    "CtaGroup",
    "L2PrefetchSize",
    "LoadCacheMode",
    "MemoryOrder",
    "MemoryScope",
    "MmaOp",
    "MmaUniversalOp",
    "OperandMajorMode",
    "OperandSource",
    "OutputMajorMode",
    "ReductionOp",
    "SharedSpace",
    "StoreCacheMode",
    "compress",
    "normalize_field_to_ir_name",
]
