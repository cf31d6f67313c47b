# SPDX-License-Identifier: Apache-2.0
"""Operations and choices that all architectures share."""

from __future__ import annotations

from typing import Any

from ..atoms.copy_atom import CopyTraits
from ..dtypes import DType
from ..layout import make_layout
from ..seam import CuteError, StaticEnum, static
from ..tensor.move import WIDEST, move
from ..tensor.ssa import ReductionOp as ReductionOp
from ..tensor.tensor import Tensor

__all__ = [
    "CacheEvictionPriority", "CopyUniversalOp", "L2PrefetchSize", "LoadCacheMode", "MemoryOrder", "MemoryScope",
    "OperandMajorMode", "OutputMajorMode", "ReductionOp", "SharedSpace", "StoreCacheMode", "normalize_field_to_ir_name",
]  # fmt: skip


class OperandMajorMode(StaticEnum):
    """Along which dimension a matrix operand is contiguous: MN (0) or K (1)."""

    MN = "mn"
    K = "k"


class CtaGroup(StaticEnum):
    """How many blocks act together: ONE, or TWO, a pair (ranks 2 i and 2 i + 1 of the cluster; sm_100)."""

    ONE = 1
    TWO = 2


class LoadCacheMode(StaticEnum):
    """Which caches a load uses: all levels, L2 alone (GLOBAL), all but to be evicted first (STREAMING), no more after
    this (LAST_USE), none (NONE: fetch again)."""

    ALWAYS = "ca"
    GLOBAL = "cg"
    STREAMING = "cs"
    LAST_USE = "lu"
    NONE = "cv"


class L2PrefetchSize(StaticEnum):
    """How many bytes around an access are fetched into L2."""

    NONE = 0
    SIZE_64B = 64
    SIZE_128B = 128
    SIZE_256B = 256


class StoreCacheMode(StaticEnum):
    """Which caches a store uses: all levels (WRITE_BACK), L2 alone (GLOBAL), all, to be evicted first (STREAMING),
    through L2 to system memory (WRITE_THROUGH)."""

    WRITE_BACK = "wb"
    GLOBAL = "cg"
    STREAMING = "cs"
    WRITE_THROUGH = "wt"
    NONE = ""


class CacheEvictionPriority(StaticEnum):
    """When L1 gives up a line that is accessed: NO_ALLOCATE does not keep it at all, EVICT_UNCHANGED leaves its
    priority."""

    EVICT_NORMAL = ""
    EVICT_FIRST = "evict_first"
    EVICT_LAST = "evict_last"
    EVICT_UNCHANGED = "evict_unchanged"
    NO_ALLOCATE = "no_allocate"


class MemoryOrder(StaticEnum):
    """How an access is ordered with others, as PTX orders loads and stores (section "Memory Consistency Model")."""

    WEAK = "weak"
    RELAXED = "relaxed"
    ACQUIRE = "acquire"
    RELEASE = "release"
    ACQ_REL = "acq_rel"
    SC = "sc"
    MMIO = "mmio"
    CONSTANT = "constant"
    VOLATILE = "volatile"


class MemoryScope(StaticEnum):
    """The threads that an access is ordered for."""

    CTA = "cta"
    CLUSTER = "cluster"
    GPU = "gpu"
    SYS = "sys"


class SharedSpace(StaticEnum):
    """Which shared memory a pointer names: the block's own, or that of any block of the cluster."""

    CTA = "shared"
    CLUSTER = "dsmem"


class OutputMajorMode(StaticEnum):
    """Along which dimension a result D (M, N) is contiguous: M (column-major) or N (row-major)."""

    M = "m"
    N = "n"


@static
class CopyUniversalOp:
    """An ordinary copy: loads and stores of `num_bits_per_copy` bits (8 to 256; more than 16 bytes in several), between
    any memories and registers; without that number, as wide as layouts and alignment prove. Any thread. What says
    more to the memory are CopyG2ROp, CopyR2GOp, CopyS2ROp and CopyR2SOp."""

    def traits(self, dtype: DType, num_bits_per_copy: int) -> CopyTraits:
        return simple_traits(self, dtype, num_bits_per_copy)

    def issue(self, atom: Any, src: Tensor, dst: Tensor) -> None:
        move(src.iterator, src.layout, dst.iterator, dst.layout, bytes_at_once(atom))

    def issue_whole(self, src: Tensor, dst: Tensor) -> None:
        """All elements at once, as wide as can be proved: what an atom without a width does."""
        move(src.iterator, src.layout, dst.iterator, dst.layout)


def simple_traits(op: Any, dtype: DType, num_bits_per_copy: int) -> CopyTraits:
    """One thread's copy of so many bits, of one element at least."""
    if num_bits_per_copy not in (0, 8, 16, 32, 64, 128, 256):
        raise CuteError(
            f"{type(op).__name__}: num_bits_per_copy {num_bits_per_copy!r} must be 8, 16, 32, 64, 128 or 256, "
            "or left out"
        )
    tv = make_layout((1, max(1, num_bits_per_copy // dtype.width)), stride=(0, 1))
    return CopyTraits(make_layout(1), tv, tv, tv)


def bytes_at_once(atom: Any) -> int:
    """Bytes of one access of such a copy."""
    return min(WIDEST, max(atom.num_bits, atom.value_type.width) // 8)


def normalize_field_to_ir_name(field: Any, admissible_fields: Any) -> str:
    """The name of a field of an MMA atom in CuTe's IR, such as "accum_c": of a member of `admissible_fields`, or of
    such a name itself."""
    names = []
    for f in admissible_fields:
        if field is f or (isinstance(field, str) and field == f.value):
            return f.value  # type: ignore[no-any-return]
        names.append(repr(f.value))
    raise CuteError(f"normalize_field_to_ir_name: field {field!r} is none of {', '.join(names)}")
