# SPDX-License-Identifier: Apache-2.0
"""Memory accesses that say more than `tensor[i]` does: order and scope, cache hints, the cluster's shared memory.

ptr: a Pointer to global or shared memory, its address a multiple of all that is accessed. Any thread."""

from __future__ import annotations

from typing import Any

from .. import isa, seam
from ..dtypes import DType, Float32, Uint8, Uint16, Uint32, Uint64
from ..seam import CuteError, Int, traced
from ..tensor.pointer import AddressSpace, Pointer, check_writable, physical, shared_address
from ..tensor.ssa import bitcast

__all__ = ["load", "store", "store_async_dsmem"]

_WORDS = {8: Uint16, 16: Uint16, 32: Uint32, 64: Uint64}
_SCOPES = ("cta", "cluster", "gpu", "sys")
_EVICTIONS = {"evict_no_allocate": "no_allocate"} | {
    e: e for e in ("evict_normal", "evict_first", "evict_last", "evict_unchanged")
}
_PREFETCHES = {"size_64b": 64, "size_128b": 128, "size_256b": 256}


def space_of(ptr: Any, ss: str | None, what: str) -> str:
    """Name the memory that `ptr` points to, as the rows of the instruction table do: global, shared or dsmem. ss:
    "cta", "cluster" or None; what: who asks, for messages."""
    if not isinstance(ptr, Pointer) or ptr.space not in (AddressSpace.gmem, AddressSpace.generic, AddressSpace.smem):
        raise CuteError(f"{what}: ptr {ptr!r} must point to global or shared memory; use tensor.iterator + offset")
    if ss not in (None, "cta", "cluster"):
        raise CuteError(f'{what}: ss {ss!r} must be "cta", "cluster" (shared memory) or None')
    if ptr.space is not AddressSpace.smem:
        if ss is not None:
            raise CuteError(f"{what}: ss {ss!r} names shared memory, but ptr {ptr!r} points to global memory")
        return "global"
    return "dsmem" if ss == "cluster" else "shared"


def _choice(value: Any, legal: Any, name: str, what: str) -> Any:
    if value is not None and value not in legal:
        raise CuteError(f"{what}: {name} {value!r} is none of {', '.join(map(repr, legal))}")
    return value


def _order(sem: Any, scope: Any, sems: tuple[str, ...], what: str) -> dict[str, Any]:
    _choice(sem, sems, "sem", what)
    _choice(scope, _SCOPES, "scope", what)
    if sem is None and scope is None:
        return {"sem": None, "scope": None}
    return {"sem": sem or "relaxed", "scope": scope or "gpu"}


def _hint(cop: Any, evict: Any, prefetch: Any, space: str, what: str) -> dict[str, Any]:
    if (cop or evict or prefetch) and space != "global":
        raise CuteError(f"{what}: shared memory has no caches: leave cop, level1_eviction_priority and prefetch out")
    if cop and (evict or prefetch):
        raise CuteError(f"{what}: cop {cop!r} and other hints exclude each other; leave one out")
    return {"cop": cop, "evict": evict and _EVICTIONS[evict], "prefetch": prefetch and _PREFETCHES[prefetch]}


def _element(dtype: Any, count: Any, what: str) -> int:
    if not isinstance(dtype, DType) or dtype.width not in _WORDS or dtype.kind == "bool":
        raise CuteError(f"{what}: dtype {dtype!r} must be a number of 8, 16, 32 or 64 bits, like cute.Uint32")
    if count not in (1, 2, 4) or count * dtype.width > 128:
        raise CuteError(f"{what}: {count!r} elements of {dtype} must be 1, 2 or 4, and 16 bytes at most")
    return dtype.width


def to_word(value: Any, dtype: DType) -> Any:
    """Return the register that holds the bits of `value`, a number of type `dtype`."""
    if dtype.width == 8:
        return Uint16(value if not dtype.is_float else bitcast(dtype(value), dtype, Uint8))
    word = _WORDS[dtype.width]
    return bitcast(dtype(value), dtype, word) if dtype.is_float else word(value)


def from_word(word: Int, dtype: DType) -> Any:
    """Return the number of type `dtype` whose bits are in the register `word`."""
    if dtype.is_float:
        source = Uint8 if dtype.width == 8 else _WORDS[dtype.width]
        return bitcast(source(word), source, dtype)
    return dtype(word)


@traced
def load(
    ptr: Any, dtype: DType, sem: str | None = None, scope: str | None = None,
    level1_eviction_priority: str | None = None, cop: str | None = None, ss: str | None = None,
    level_prefetch_size: str | None = None, count: int = 1,
) -> Any:  # fmt: skip
    """Load a number of type `dtype`, or a tuple of `count` numbers next to each other, with an order or a cache hint.
    Any thread.

    ptr: a Pointer to global or shared memory, aligned to all that is loaded. dtype: a type of 8 to 64 bits. count: 1, 2
    or 4, and 16 bytes at most. sem: None, "relaxed" or "acquire"; scope: "cta", "cluster" (sm_90), "gpu" (the default
    with `sem`) or "sys". cop: "ca", "cg", "cs", "lu" or "cv", which excludes `sem`. level1_eviction_priority:
    "evict_normal", "evict_first", "evict_last", "evict_no_allocate" or "evict_unchanged". level_prefetch_size:
    "size_64b", "size_128b" or "size_256b". ss: of a pointer to shared memory "cta", or "cluster" where it is a peer's
    address (sm_90). PTX ld, sm_70; cache hints, of global memory alone, sm_80.

    >>> x = cute.runtime.from_dlpack(np.arange(4, dtype=np.float32))
    >>> cute.simulate(lambda x: print(arch.load(x.iterator + 2, cute.Float32)))[1, 1](x)
    2.0
    """
    space, width = space_of(ptr, ss, "load"), _element(dtype, count, "load")
    _choice(cop, ("ca", "cg", "cs", "lu", "cv"), "cop", "load")
    _choice(level1_eviction_priority, _EVICTIONS, "level1_eviction_priority", "load")
    _choice(level_prefetch_size, _PREFETCHES, "level_prefetch_size", "load")
    order = _order(sem, scope, ("relaxed", "acquire"), "load")
    hint = _hint(cop, level1_eviction_priority, level_prefetch_size, space, "load")
    _exclude(cop, order, "load")
    words = isa.ld(physical(ptr, width // 8 * count), space=space, width=width, count=count, **order, **hint)
    words = words if isinstance(words, tuple) else (words,)
    values = tuple(from_word(w, dtype) for w in words)
    return values if count > 1 else values[0]


@traced
def store(
    ptr: Any, val: Any, level1_eviction_priority: str | None = None, cop: str | None = None, ss: str | None = None,
    sem: str | None = None, scope: str | None = None,
) -> None:  # fmt: skip
    """Store `val`, a number or a tuple of 2 or 4 next to each other (16 bytes at most), converted to the pointer's
    type. Any thread.

    ptr: a Pointer to global or shared memory, aligned to all that is stored. sem: None, "relaxed" or "release". cop:
    "wb", "cg", "cs" or "wt". scope, level1_eviction_priority, ss: as for `load`. PTX st, sm_70; cache hints, of global
    memory alone, sm_80.

    >>> seen = np.zeros(2, np.int32)
    >>> cute.simulate(lambda x: arch.store(x.iterator + 1, cute.Int32(7)))[1, 1](cute.runtime.from_dlpack(seen))
    >>> seen
    array([0, 7], dtype=int32)
    """
    space = space_of(ptr, ss, "store")
    check_writable(ptr, "store")
    values = val if isinstance(val, tuple) else (val,)
    width = _element(ptr.dtype, len(values), "store")
    _choice(cop, ("wb", "cg", "cs", "wt"), "cop", "store")
    _choice(level1_eviction_priority, _EVICTIONS, "level1_eviction_priority", "store")
    order = _order(sem, scope, ("relaxed", "release"), "store")
    hint = _hint(cop, level1_eviction_priority, None, space, "store")
    _exclude(cop, order, "store")
    words = [to_word(v, ptr.dtype) for v in values]
    isa.st(physical(ptr, width // 8 * len(words)), words, space=space, width=width, count=len(words), **order, **hint)


def _exclude(cop: Any, order: dict[str, Any], what: str) -> None:
    if cop and order["sem"]:
        raise CuteError(f"{what}: cop {cop!r} is for accesses without sem and scope; leave one of them out")


@traced
def store_async_dsmem(smem_ptr: Any, value: Any, mbar_ptr: Pointer | Int, peer_cta_rank: Int) -> None:
    """Store to another block's shared memory, asynchronously, and tell that block's barrier. Any thread.

    smem_ptr: the place, as a Pointer to this block's shared memory, at the same offset there. value: 32 bits, or a
    tuple of 2 or 4 such values (`smem_ptr` then a multiple of 8 or 16 bytes). mbar_ptr: the barrier, given likewise, on
    which 4 bytes for each value complete. peer_cta_rank: the block's rank in the cluster. PTX st.async, sm_90.

    >>> def kernel():
    ...     bar, place = arch.alloc_smem(cute.Int64, 1), arch.alloc_smem(cute.Int32, 1)
    ...     arch.mbarrier_init(bar, 1)
    ...     arch.mbarrier_init_fence()
    ...     arch.mbarrier_arrive_and_expect_tx(bar, 4)
    ...     arch.cluster_arrive()
    ...     arch.cluster_wait()
    ...     me = arch.block_idx_in_cluster()
    ...     arch.store_async_dsmem(place, me, bar, 1 - me)
    ...     arch.mbarrier_wait(bar, 0)
    ...     print(arch.load(place, cute.Int32))
    >>> cute.simulate(kernel, cluster=2)[2, 1]()
    1
    0
    """
    what = "store_async_dsmem"
    if not isinstance(smem_ptr, Pointer) or not isinstance(mbar_ptr, Pointer):
        raise CuteError(f"{what}: smem_ptr {smem_ptr!r} and mbar_ptr {mbar_ptr!r} must be Pointers to shared memory")
    values = value if isinstance(value, tuple) else (value,)
    if len(values) not in (1, 2, 4):
        raise CuteError(f"{what}: value has {len(values)} words; it must be one, or a tuple of 2 or 4")
    if smem_ptr.alignment % (4 * len(values)):
        raise CuteError(
            f"{what}: smem_ptr {smem_ptr!r} must be aligned to {4 * len(values)} bytes for {len(values)} words; "
            "allocate it with that byte_alignment"
        )
    words = [_any_word(v) for v in values]
    rank = Uint32(peer_cta_rank)
    to, bar = (isa.mapa(shared_address(p, what), rank) for p in (smem_ptr, mbar_ptr))
    isa.st_async(to, words, bar, count=len(words))


def _any_word(value: Any) -> Any:
    """A number of 32 bits as its bits."""
    kind = seam.current().type_of(value)
    return to_word(value, Float32) if kind.is_float else Uint32(value)
