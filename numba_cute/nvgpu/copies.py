# SPDX-License-Identifier: Apache-2.0
"""Copies between registers and one memory that say more than an assignment does: order, scope, caches.

`make_copy_atom(nvgpu.CopyG2ROp(), dtype, num_bits_per_copy=128, l1c_evict_priority=…)`: the options are keywords of
`make_copy_atom` or of the operation. Any thread. PTX ld and st; hints sm_80, clusters sm_90.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from .. import isa, seam
from ..atoms.copy_atom import CopyTraits
from ..dtypes import DType, Uint8, Uint16, Uint32, Uint64
from ..isa.form.instr import Order
from ..seam import CuteError, Regs, static
from ..tensor.move import move
from ..tensor.pointer import AddressSpace, Pointer, physical
from ..tensor.tensor import Tensor
from .common import (
    CacheEvictionPriority,
    L2PrefetchSize,
    LoadCacheMode,
    MemoryOrder,
    MemoryScope,
    SharedSpace,
    StoreCacheMode,
    bytes_at_once,
    simple_traits,
)

__all__ = ["CopyG2ROp", "CopyR2GOp", "CopyR2SOp", "CopyS2ROp"]

_GLOBAL = (AddressSpace.gmem, AddressSpace.generic)
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


class _Directed:
    """What the operations share: `memory_order`, `memory_scope`, and perhaps hints."""

    loads: ClassVar[bool]
    memory: ClassVar[tuple[AddressSpace, ...]]

    def __post_init__(self) -> None:
        for name, kind in _KINDS.items():
            value = getattr(self, name, None)
            if hasattr(self, name) and not isinstance(value, kind):
                raise CuteError(f"{type(self).__name__}: {name} {value!r} must be a {kind.__name__}")
        for check in (self._nc, self._order, self._hint):
            check()

    def traits(self, dtype: DType, num_bits_per_copy: int) -> CopyTraits:
        return simple_traits(self, dtype, num_bits_per_copy)

    def _refuse(self, name: str, why: str) -> None:
        raise CuteError(f"{type(self).__name__}: {name} {getattr(self, name)!r} {why}")

    def _order(self) -> Order:
        """How the instruction orders memory."""
        order, scope = self.memory_order, self.memory_scope  # type: ignore[attr-defined]
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
        """What it says of the caches; nothing where all are None."""
        return dict(_NO_HINT)

    def _policy(self) -> dict[str, Any]:
        """The operand that says how L2 keeps what is accessed, if there is one."""
        policy = getattr(self, "cache_policy", None)
        return {} if policy is None else {"policy": Uint64(policy)}

    def _space(self) -> str:
        return "global"

    def issue(self, atom: Any, src: Tensor, dst: Tensor) -> None:
        there, here = (src, dst) if self.loads else (dst, src)
        names = ("src", "dst") if self.loads else ("dst", "src")
        for t, name, spaces in ((there, names[0], self.memory), (here, names[1], (AddressSpace.rmem,))):
            if not isinstance(t.iterator, Pointer) or t.iterator.space not in spaces:
                raise CuteError(f"copy: {name} {t!r} must lie in {spaces[0].name} for {type(self).__name__}")
        hinted = self._hint() != _NO_HINT or self._policy()
        says = self._order().sem or hinted or self._nc() or self._space() == "dsmem"
        access = self._access if says else None
        move(src.iterator, src.layout, dst.iterator, dst.layout, bytes_at_once(atom), access=access)

    def _access(self, src: Pointer, dst: Pointer, width: int) -> None:
        """One access of `width` elements."""
        there, here = (src, dst) if self.loads else (dst, src)
        bits = width * here.dtype.width
        words = {8: Uint8, 16: Uint16}.get(bits, Uint64 if here.dtype.width == 64 else Uint32)
        if bits % 8:
            raise CuteError(f"copy: {width} elements of {here.dtype} are no whole bytes, which {self!r} moves")
        regs = Regs(here.address, here.dtype, here.offset, width)
        statics: dict[str, Any] = {"width": words.width, "count": bits // words.width, **self._hint(), **self._policy()}
        if not self._nc():
            statics |= {"space": self._space(), **self._order()._asdict()}
        b = seam.current()
        held = Regs(b.registers(words, statics["count"]), words, 0, statics["count"])
        if self.loads:
            got = (isa.ld_global_nc if self._nc() else isa.ld)(physical(there), **statics)
            for i, word in enumerate(got if isinstance(got, tuple) else (got,)):
                b.write(Regs(held.file, words, i, 1), words(word))
            b.unvector(b.bitcast(b.vector(held), here.dtype), regs)
        else:
            b.unvector(b.bitcast(b.vector(regs), words), held)
            carrier = Uint16 if words is Uint8 else words
            values = [carrier(b.read(Regs(held.file, words, i, 1))) for i in range(held.count)]
            isa.st(physical(there), values, **statics)


class _Global(_Directed):
    memory: ClassVar[tuple[AddressSpace, ...]] = _GLOBAL

    def with_cache_policy(self, policy: Any) -> Any:
        """The operation with an L2 cache policy: what `cute.copy(…, cache_policy=policy)` does."""
        return replace(self, cache_policy=policy)  # type: ignore[type-var]

    def _caches(self, mode: str | None, ahead: int = 0) -> dict[str, Any]:
        evict = self.l1c_evict_priority.value  # type: ignore[attr-defined]
        name = "load_cache_mode" if self.loads else "store_cache_mode"
        if mode and (evict or ahead or self._order().sem or self._nc()):
            self._refuse(name, "is of weak accesses without other hints; leave those out, or the cache mode")
        return {"cop": mode or None, "evict": evict or None, "prefetch": ahead or None}


@static
class CopyG2ROp(_Global):
    """Load from global memory to registers.

    memory_order: WEAK, RELAXED, ACQUIRE, VOLATILE, or CONSTANT (as `invariant`); memory_scope: for whom; hints:
    l2_prefetch_size, l1c_evict_priority, load_cache_mode. invariant: nothing writes there while the kernel runs (PTX
    ld.global.nc). cache_policy: a word for L2, of `arch.createpolicy_fractional` or `_range`; or give it to `cute.copy`
    (sm_80)."""

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


@static
class CopyR2GOp(_Global):
    """Store registers to global memory. memory_order: WEAK, RELAXED, RELEASE or VOLATILE; memory_scope: for whom;
    hints: l1c_evict_priority, store_cache_mode. cache_policy: as of CopyG2ROp."""

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

    def _space(self) -> str:
        return self.shared_space.value  # type: ignore[attr-defined, no-any-return]


@static
class CopyS2ROp(_Shared):
    """Load from shared memory to registers. memory_order: WEAK, RELAXED, ACQUIRE or VOLATILE; memory_scope: for whom;
    shared_space CLUSTER: the pointer may be one of a peer's (`arch.map_dsmem_ptr`)."""

    memory_order: MemoryOrder = MemoryOrder.WEAK
    memory_scope: MemoryScope = MemoryScope.CTA
    shared_space: SharedSpace = SharedSpace.CTA

    loads: ClassVar[bool] = True


@static
class CopyR2SOp(_Shared):
    """Store registers to shared memory. memory_order: WEAK, RELAXED, RELEASE or VOLATILE; memory_scope: for whom;
    shared_space CLUSTER: the pointer may be one of a peer's (`arch.map_dsmem_ptr`)."""

    memory_order: MemoryOrder = MemoryOrder.WEAK
    memory_scope: MemoryScope = MemoryScope.CTA
    shared_space: SharedSpace = SharedSpace.CTA

    loads: ClassVar[bool] = False
