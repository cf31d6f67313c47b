# SPDX-License-Identifier: Apache-2.0
"""Choices that users have of operations of all architectures."""

from __future__ import annotations

from collections.abc import Iterable

from ...atoms.op import Field
from ...seam import CuteError, StaticEnum

__all__ = [
    "CacheEvictionPriority", "CollectorBBuffer", "CollectorOp", "CtaGroup", "L2PrefetchSize", "LoadCacheMode",
    "MemoryOrder", "MemoryScope", "OperandMajorMode", "OperandSource", "OutputMajorMode", "SharedSpace",
    "StoreCacheMode", "normalize_field_to_ir_name",
]  # fmt: skip


class OperandSource(StaticEnum):
    """The place of an operand: registers (RMEM), shared memory (SMEM) or tensor memory (TMEM).

    >>> [member.name for member in nvgpu.OperandSource]
    ['RMEM', 'SMEM', 'TMEM']
    """

    RMEM = "rmem"
    SMEM = "smem"
    TMEM = "tmem"


class OperandMajorMode(StaticEnum):
    """The dimension along which a matrix operand is contiguous: MN (0) or K (1).

    >>> [mode.name for mode in nvgpu.OperandMajorMode]
    ['MN', 'K']
    """

    MN = "mn"
    K = "k"


class CollectorOp(StaticEnum):
    """The use of a buffer of the matrix unit, in which an operand stays that several multiplies have: FILL it, USE
    what it holds, that for the last time (LASTUSE), or give it up (DISCARD, the default). The operand may be read
    again all the same: it must not change before the products are complete.

    >>> [member.name for member in nvgpu.CollectorOp]
    ['FILL', 'USE', 'LASTUSE', 'DISCARD']
    """

    FILL = "fill"
    USE = "use"
    LASTUSE = "lastuse"
    DISCARD = "discard"


class CollectorBBuffer(StaticEnum):
    """The buffer of B that a weight-stationary multiply uses, of four.

    >>> [member.name for member in nvgpu.CollectorBBuffer]
    ['B0', 'B1', 'B2', 'B3']
    """

    B0 = "b0"
    B1 = "b1"
    B2 = "b2"
    B3 = "b3"


class CtaGroup(StaticEnum):
    """The blocks that act together: ONE, or TWO, a pair (ranks 2 i and 2 i + 1 of the cluster; sm_100).

    >>> [group.name for group in nvgpu.CtaGroup]
    ['ONE', 'TWO']
    """

    ONE = 1
    TWO = 2


class LoadCacheMode(StaticEnum):
    """The caches that a load uses: all levels, L2 alone (GLOBAL), all but to be evicted first (STREAMING), no more
    after this (LAST_USE), none (NONE: fetch again).

    >>> [member.name for member in nvgpu.LoadCacheMode]
    ['ALWAYS', 'GLOBAL', 'STREAMING', 'LAST_USE', 'NONE']
    """

    ALWAYS = "ca"
    GLOBAL = "cg"
    STREAMING = "cs"
    LAST_USE = "lu"
    NONE = "cv"


class L2PrefetchSize(StaticEnum):
    """The bytes around an access that are fetched into L2.

    >>> [member.name for member in nvgpu.L2PrefetchSize]
    ['NONE', 'SIZE_64B', 'SIZE_128B', 'SIZE_256B']
    """

    NONE = 0
    SIZE_64B = 64
    SIZE_128B = 128
    SIZE_256B = 256


class StoreCacheMode(StaticEnum):
    """The caches that a store uses: all levels (WRITE_BACK), L2 alone (GLOBAL), all, to be evicted first (STREAMING),
    through L2 to system memory (WRITE_THROUGH).

    >>> [member.name for member in nvgpu.StoreCacheMode]
    ['WRITE_BACK', 'GLOBAL', 'STREAMING', 'WRITE_THROUGH', 'NONE']
    """

    WRITE_BACK = "wb"
    GLOBAL = "cg"
    STREAMING = "cs"
    WRITE_THROUGH = "wt"
    NONE = ""


class CacheEvictionPriority(StaticEnum):
    """The time when L1 gives up a line that is accessed: NO_ALLOCATE does not keep it at all, EVICT_UNCHANGED leaves
    its priority.

    >>> [member.name for member in cute.CacheEvictionPriority]
    ['EVICT_NORMAL', 'EVICT_FIRST', 'EVICT_LAST', 'EVICT_UNCHANGED', 'NO_ALLOCATE']
    """

    EVICT_NORMAL = ""
    EVICT_FIRST = "evict_first"
    EVICT_LAST = "evict_last"
    EVICT_UNCHANGED = "evict_unchanged"
    NO_ALLOCATE = "no_allocate"


class MemoryOrder(StaticEnum):
    """The order of an access among others, as PTX orders loads and stores (section "Memory Consistency Model").

    >>> [member.name for member in nvgpu.MemoryOrder]
    ['WEAK', 'RELAXED', 'ACQUIRE', 'RELEASE', 'ACQ_REL', 'SC', 'MMIO', 'CONSTANT', 'VOLATILE']
    """

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
    """The threads that an access is ordered for.

    >>> [member.name for member in nvgpu.MemoryScope]
    ['CTA', 'CLUSTER', 'GPU', 'SYS']
    """

    CTA = "cta"
    CLUSTER = "cluster"
    GPU = "gpu"
    SYS = "sys"


class SharedSpace(StaticEnum):
    """The shared memory that a pointer names: the block's own, or that of any block of the cluster.

    >>> [member.name for member in nvgpu.SharedSpace]
    ['CTA', 'CLUSTER']
    """

    CTA = "shared"
    CLUSTER = "dsmem"


class OutputMajorMode(StaticEnum):
    """The dimension along which a result D (M, N) is contiguous: M (column-major) or N (row-major).

    >>> [member.name for member in nvgpu.OutputMajorMode]
    ['M', 'N']
    """

    M = "m"
    N = "n"


def normalize_field_to_ir_name(field: Field | str, admissible_fields: Iterable[Field]) -> str:
    """Give the name that a field of an MMA atom has in CuTe's IR, such as "accum_c": of `field`, a member of
    `admissible_fields`, or such a name itself. Raises CuteError for any other.

    >>> field = nvgpu.tcgen05.Field.ACCUMULATE
    >>> nvgpu.normalize_field_to_ir_name(field, [field])
    'accum_c'
    """
    names = []
    for f in admissible_fields:
        if field is f or (isinstance(field, str) and field == f.value):
            return str(f.value)
        names.append(repr(f.value))
    raise CuteError(f"normalize_field_to_ir_name: field {field!r} is none of {', '.join(names)}")
