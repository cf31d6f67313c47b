# SPDX-License-Identifier: Apache-2.0
"""Copies that every GPU has: plain ones, and between registers and one memory some that say more than an assignment
does: order, scope, caches.

`make_copy_atom(nvgpu.CopyG2ROp(), dtype, num_bits_per_copy=128, l1c_evict_priority=…)`: the options are keywords of
`make_copy_atom` or of the operation. Any thread. PTX ld and st; hints sm_80, clusters sm_90.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from ... import isa
from ...atoms.accesses import GLOBAL, loaded, stored
from ...atoms.copy_atom import CopyAtom
from ...atoms.op import CopyOp, CopyTraits
from ...dtypes import DType, Uint64
from ...isa.form.instr import Order
from ...layout import make_layout
from ...seam import CuteError, Regs, frozen
from ...tensor.move import WIDEST, move
from ...tensor.pointer import AddressSpace, Pointer
from ...tensor.tensor import Tensor
from .by_row import remembered
from .choices import (
    CacheEvictionPriority,
    L2PrefetchSize,
    LoadCacheMode,
    MemoryOrder,
    MemoryScope,
    SharedSpace,
    StoreCacheMode,
)

__all__ = ["CopyG2ROp", "CopyR2GOp", "CopyR2SOp", "CopyS2ROp", "CopyUniversalOp"]


@remembered
def one_thread(values: int) -> CopyTraits:
    """The traits of an instruction by which one thread copies so many values."""
    tv = make_layout((1, values), stride=(0, 1))
    return CopyTraits(make_layout(1), tv, tv, tv)


class WidthCopy(CopyOp):
    """Base of the copies of one thread whose width is `num_bits_per_copy`: 8 to 256 bits, or 0 for one element."""

    _by_lanes = True

    def traits(self, dtype: DType, num_bits: int) -> CopyTraits:
        if num_bits not in (0, 8, 16, 32, 64, 128, 256):
            raise CuteError(
                f"{type(self).__name__}: num_bits_per_copy {num_bits!r} must be 8, 16, 32, 64, 128 or 256, or left out"
            )
        return one_thread(max(1, num_bits // dtype.width))


def bytes_at_once(atom: CopyAtom) -> int:
    """Bytes of one access of such a copy."""
    return min(WIDEST, max(atom.num_bits, atom.value_type.width) // 8)


@frozen
class CopyUniversalOp(WidthCopy):
    """Copy by loads and stores of `num_bits_per_copy` bits (8 to 256; more than 16 bytes in several), between any
    memories and registers; without that number, as wide as layouts and alignment prove. Any thread. What says more to
    the memory are CopyG2ROp, CopyR2GOp, CopyS2ROp and CopyR2SOp. PTX ld, st and mov, any target.

    >>> cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=128).layout_src_tv
    (1,4):(0,1)
    """

    def copy(
        self, atom: CopyAtom, src: Tensor, dst: Tensor, pred: Tensor | None, bar: Any, mask: Any, policy: Any
    ) -> None:
        if atom.num_bits or pred is not None:
            super().copy(atom, src, dst, pred, bar, mask, policy)
            return
        self.refuse(tma_bar_ptr=bar, mcast_mask=mask, cache_policy=policy)
        move(src.iterator, src.layout, dst.iterator, dst.layout, hoped=True)

    def issue(self, atom: CopyAtom, src: Tensor, dst: Tensor) -> None:
        move(src.iterator, src.layout, dst.iterator, dst.layout, bytes_at_once(atom), hoped=True)


_NO_HINT: dict[str, Any] = {"cop": None, "evict": None, "prefetch": None}
_KINDS: dict[str, Any] = {
    "memory_order": MemoryOrder,
    "memory_scope": MemoryScope,
    "l2_prefetch_size": L2PrefetchSize,
    "l1c_evict_priority": CacheEvictionPriority,
    "load_cache_mode": LoadCacheMode,
    "store_cache_mode": StoreCacheMode,
    "shared_space": SharedSpace,
    "invariant": bool,
}


class _Directed(WidthCopy):
    """Base of the operations with `memory_order` and `memory_scope`, and perhaps hints."""

    loads: ClassVar[bool]
    memory: ClassVar[tuple[AddressSpace, ...]]
    memory_order: Any
    memory_scope: Any
    l2_prefetch_size: Any = L2PrefetchSize.NONE
    cache_policy: Any = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            kind = _KINDS.get(name)
            if kind is not None and not isinstance(value, kind):
                raise CuteError(f"{type(self).__name__}: {name} {value!r} must be a {kind.__name__}")
        for check in (self._nc, self._order, self._hint):
            check()

    def _refuse(self, name: str, why: str) -> None:
        raise CuteError(f"{type(self).__name__}: {name} {vars(self)[name]!r} {why}")

    def _order(self) -> Order:
        """Return the instruction's effect on the order of memory."""
        order, scope = self.memory_order, self.memory_scope
        sided = MemoryOrder.ACQUIRE if self.loads else MemoryOrder.RELEASE
        if order is MemoryOrder.WEAK or (order is MemoryOrder.CONSTANT and self._nc()):
            return Order(None, None)
        if order is MemoryOrder.VOLATILE:  # PTX ISA: as relaxed, for the whole system
            return Order("relaxed", "sys")
        if order not in (MemoryOrder.RELAXED, sided):
            legal = f"WEAK, RELAXED, {sided.name} or VOLATILE"
            self._refuse("memory_order", f"must be {legal} for {'loads' if self.loads else 'stores'}")
        return Order(order.value, scope.value)

    def _nc(self) -> bool:
        return False

    def _hint(self) -> dict[str, Any]:
        """Return its cache hints; no hint if all are None."""
        return dict(_NO_HINT)

    def _policy(self) -> dict[str, Any]:
        """The operand that says how L2 keeps what is accessed, if there is one."""
        return {} if self.cache_policy is None else {"policy": Uint64(self.cache_policy)}

    def _space(self) -> str:
        return "global"

    def issue(self, atom: CopyAtom, src: Tensor, dst: Tensor) -> None:
        there, here = (src, dst) if self.loads else (dst, src)
        names = ("src", "dst") if self.loads else ("dst", "src")
        for t, name, spaces in ((there, names[0], self.memory), (here, names[1], (AddressSpace.rmem,))):
            if not isinstance(t.iterator, Pointer) or t.iterator.space not in spaces:
                raise CuteError(f"copy: {name} {t!r} must lie in {spaces[0].name} for {type(self).__name__}")
        hinted = self._hint() != _NO_HINT or self._policy()
        says = self._order().sem or hinted or self._nc() or self._space() == "dsmem"
        access = self._access if says else None
        move(src.iterator, src.layout, dst.iterator, dst.layout, bytes_at_once(atom), access=access, hoped=True)

    def _access(self, src: Pointer, dst: Pointer, width: int) -> None:
        """One access of `width` elements."""
        there, here = (src, dst) if self.loads else (dst, src)
        regs = Regs(here.address, here.dtype, here.offset, width)
        statics: dict[str, Any] = {**self._hint(), **self._policy()}
        if not self._nc():
            statics |= {"space": self._space(), **self._order()._asdict()}
        if self.loads:
            loaded(isa.ld_global_nc if self._nc() else isa.ld, there, regs, repr(self), **statics)
        else:
            stored(isa.st, regs, there, repr(self), **statics)


class _Global(_Directed):
    memory: ClassVar[tuple[AddressSpace, ...]] = GLOBAL

    l1c_evict_priority: Any

    def with_cache_policy(self, policy: Any) -> CopyOp:
        """Give the operation with the L2 cache policy `policy`: what `cute.copy(…, cache_policy=policy)` does."""
        return replace(self, cache_policy=policy)  # type: ignore[type-var]

    def _caches(self, mode: str | None, ahead: int = 0) -> dict[str, Any]:
        evict = self.l1c_evict_priority.value
        name = "load_cache_mode" if self.loads else "store_cache_mode"
        if mode and (evict or ahead or self._order().sem or self._nc()):
            self._refuse(name, "is of weak accesses without other hints; leave those out, or the cache mode")
        return {"cop": mode or None, "evict": evict or None, "prefetch": ahead or None}


@frozen
class CopyG2ROp(_Global):
    """Load from global memory to registers. Any thread. PTX ld.global, any target; hints and policies sm_80.

    memory_order: WEAK, RELAXED, ACQUIRE, VOLATILE, or CONSTANT (as `invariant`). memory_scope: for whom it is ordered.
    l2_prefetch_size, l1c_evict_priority, load_cache_mode: hints; a cache mode excludes all else. shared_space: not
    used. invariant: nothing writes there while the kernel runs (PTX ld.global.nc). cache_policy: a word for L2, of
    `arch.createpolicy_fractional` or `_range`; or give it to `cute.copy`. Raises CuteError for what excludes each
    other.

    >>> cute.make_copy_atom(nvgpu.CopyG2ROp(), cute.Float32, num_bits_per_copy=128).layout_src_tv
    (1,4):(0,1)
    """

    memory_order: MemoryOrder = MemoryOrder.WEAK
    memory_scope: MemoryScope = MemoryScope.CTA
    l2_prefetch_size: L2PrefetchSize = L2PrefetchSize.NONE
    l1c_evict_priority: CacheEvictionPriority = CacheEvictionPriority.EVICT_NORMAL
    load_cache_mode: LoadCacheMode = LoadCacheMode.ALWAYS
    shared_space: SharedSpace = SharedSpace.CTA
    invariant: bool = False
    cache_policy: Any = None

    loads: ClassVar[bool] = True

    def _nc(self) -> bool:
        if self.invariant and self.memory_order not in (MemoryOrder.WEAK, MemoryOrder.CONSTANT):
            self._refuse("invariant", f"excludes memory_order {self.memory_order}: nothing is there to be ordered with")
        return self.invariant or self.memory_order is MemoryOrder.CONSTANT

    def _hint(self) -> dict[str, Any]:
        mode = None if self.load_cache_mode is LoadCacheMode.ALWAYS else self.load_cache_mode.value
        return self._caches(mode, self.l2_prefetch_size.value)


@frozen
class CopyR2GOp(_Global):
    """Store registers to global memory. Any thread. PTX st.global, any target; hints and policies sm_80.

    memory_order: WEAK, RELAXED, RELEASE or VOLATILE. memory_scope: for whom it is ordered. l1c_evict_priority,
    store_cache_mode: hints; a cache mode excludes all else. shared_space: not used. cache_policy: as of CopyG2ROp.
    Raises CuteError for what excludes each other.

    >>> cute.make_copy_atom(nvgpu.CopyR2GOp(), cute.Float32, num_bits_per_copy=128).layout_src_tv
    (1,4):(0,1)
    """

    memory_order: MemoryOrder = MemoryOrder.WEAK
    memory_scope: MemoryScope = MemoryScope.CTA
    l1c_evict_priority: CacheEvictionPriority = CacheEvictionPriority.EVICT_NORMAL
    store_cache_mode: StoreCacheMode = StoreCacheMode.WRITE_BACK
    shared_space: SharedSpace = SharedSpace.CTA
    cache_policy: Any = None

    loads: ClassVar[bool] = False

    def _hint(self) -> dict[str, Any]:
        mode = None if self.store_cache_mode is StoreCacheMode.WRITE_BACK else self.store_cache_mode.value
        return self._caches(mode)


class _Shared(_Directed):
    memory: ClassVar[tuple[AddressSpace, ...]] = (AddressSpace.smem,)
    shared_space: Any

    def _space(self) -> str:
        return str(self.shared_space.value)


@frozen
class CopyS2ROp(_Shared):
    """Load from shared memory to registers. Any thread. PTX ld.shared, any target; of a cluster sm_90.

    memory_order: WEAK, RELAXED, ACQUIRE or VOLATILE. memory_scope: for whom it is ordered. shared_space: CTA, or
    CLUSTER: the pointer may be one of a peer's (`arch.map_dsmem_ptr`). Raises CuteError for others.

    >>> cute.make_copy_atom(nvgpu.CopyS2ROp(), cute.Float32, num_bits_per_copy=128).layout_src_tv
    (1,4):(0,1)
    """

    memory_order: MemoryOrder = MemoryOrder.WEAK
    memory_scope: MemoryScope = MemoryScope.CTA
    shared_space: SharedSpace = SharedSpace.CTA

    loads: ClassVar[bool] = True


@frozen
class CopyR2SOp(_Shared):
    """Store registers to shared memory. Any thread. PTX st.shared, any target; of a cluster sm_90.

    memory_order: WEAK, RELAXED, RELEASE or VOLATILE. memory_scope: for whom it is ordered. shared_space: CTA, or
    CLUSTER: the pointer may be one of a peer's (`arch.map_dsmem_ptr`). Raises CuteError for others.

    >>> cute.make_copy_atom(nvgpu.CopyR2SOp(), cute.Float32, num_bits_per_copy=128).layout_src_tv
    (1,4):(0,1)
    """

    memory_order: MemoryOrder = MemoryOrder.WEAK
    memory_scope: MemoryScope = MemoryScope.CTA
    shared_space: SharedSpace = SharedSpace.CTA

    loads: ClassVar[bool] = False
