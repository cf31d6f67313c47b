# SPDX-License-Identifier: Apache-2.0
"""Pointers as operations of the CuTe DSL's IR make them: to tensor maps, which files hand to `cute.copy`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ... import isa
from ...dtypes import DType, Uint64
from ...seam import CuteError, StaticEnum, frozen, traced
from ...seam.ground.naming import shown
from ...tensor.pointer import AddressSpace, Pointer, recast_ptr

__all__ = ["PtrType", "TmaDescriptorTiledType", "prefetch", "recast_iter"]


class Descriptor(StaticEnum):
    """Names a pointer's target that is not an element type, as a tensor map."""

    TILED = "a tensor map"


class TmaDescriptorTiledType:
    """The type of tensor maps of tiles."""

    @staticmethod
    @traced
    def get() -> Descriptor:
        """Return the type."""
        return Descriptor.TILED


@frozen
class PointerKind:
    """Describes a type of pointers; `PtrType.get` makes it. element: a DType or a Descriptor. space: the memory.
    alignment: in bytes."""

    element: Any
    space: AddressSpace
    alignment: int


class PtrType:
    """The type of pointers."""

    @staticmethod
    @traced
    def get(element: Any, space: AddressSpace, alignment: int = 1) -> PointerKind:
        """Return the type of pointers to `element` in a memory space, of that alignment in bytes."""
        return PointerKind(element, AddressSpace(space), alignment)


@traced
def recast_iter(res: PointerKind, iter: Pointer, *, loc: Any = None, ip: Any = None) -> Pointer:
    """Return a pointer as one of another type: to other elements, or to a tensor map. res: what `PtrType.get` gave.
    iter: the Pointer. CuteError: its memory is another."""
    if not isinstance(res, PointerKind) or not isinstance(iter, Pointer) or res.space is not iter.space:
        raise CuteError(f"recast_iter: {shown(iter)} cannot become {shown(res)}: the memory must be the same")
    made = recast_ptr(iter, dtype=res.element) if isinstance(res.element, DType) else iter
    return replace(made, alignment=max(made.alignment, res.alignment))


@traced
def prefetch(addr: Pointer, *, tensormap: bool = False, loc: Any = None, ip: Any = None) -> None:
    """Fetch the tensor map that a Pointer to global memory points to, before the first copy by it. tensormap: True.
    CuteError: anything else. PTX prefetch.tensormap, sm_90."""
    if not tensormap or not isinstance(addr, Pointer) or addr.space not in (AddressSpace.gmem, AddressSpace.generic):
        raise CuteError(
            f"prefetch: addr {shown(addr)}, tensormap {tensormap!r}: of the instruction there is what prefetches a "
            "tensor map in global memory, tensormap=True"
        )
    isa.prefetch_tensormap(Uint64(addr.address))
