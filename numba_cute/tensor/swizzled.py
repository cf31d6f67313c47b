# SPDX-License-Identifier: Apache-2.0
"""Swizzled layouts in memory. A layout's swizzle is of elements, counted from the pointer; a pointer's is of the bytes
of its addresses. A tensor has one of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .. import layout, seam
from ..dtypes import DType
from ..layout import ComposedLayout, Layout, Swizzle
from ..layout.leaves import known
from ..layout.pure import pure
from ..seam import CuteError
from .offsets import add, places, sliced
from .pointer import AddressSpace, Pointer, advance, physical


def swizzle_of(lay: Any) -> Swizzle | None:
    """Return the swizzle of elements that a layout has, None if it moves nothing."""
    while isinstance(lay, ComposedLayout):
        if isinstance(lay.inner, Swizzle) and lay.inner.bits:
            return lay.inner
        lay = lay.outer if isinstance(lay.inner, Swizzle) else lay.inner
    return None


def swizzled_once(pointer: Any, lay: Any) -> None:
    """Refuse a pointer that is swizzled together with a layout that is."""
    if not isinstance(pointer, Pointer) or pointer.swizzle is None or not pointer.swizzle.bits:
        return
    if swizzle_of(lay) is not None:
        raise CuteError(
            f"Tensor: {pointer!r} swizzles the bytes of its addresses, and layout {lay} its elements: one of them must "
            "not: give layout.outer, or the pointer without its swizzle, cute.recast_ptr(ptr)"
        )


def of_bytes(swizzle: Swizzle, dtype: DType) -> Swizzle | None:
    """Return what a swizzle of `dtype` elements is of bytes; None where it is not a swizzle of bytes."""
    base = swizzle.base + dtype.width.bit_length() - 4
    if swizzle.bits and (dtype.width & (dtype.width - 1) or base < 0):
        return None
    return layout.make_swizzle(swizzle.bits, base, swizzle.shift)


def of_elements(swizzle: Swizzle, dtype: DType) -> Swizzle | None:
    """Return what a swizzle of bytes is of `dtype` elements; None where it takes them apart."""
    base = swizzle.base - (dtype.width.bit_length() - 4)
    if dtype.width & (dtype.width - 1) or base < 0:
        return None
    return layout.make_swizzle(swizzle.bits, base, swizzle.shift)


@pure
def reach(lay: Any) -> int:
    """Count the elements from the pointer on up to the last one of a static layout, wherever its swizzle puts that."""
    if not isinstance(lay, ComposedLayout):
        return int(layout.cosize(lay))
    inner, offset = lay.inner, lay.offset
    if isinstance(inner, Swizzle) and type(offset) is int and isinstance(lay.outer, Layout):
        end = offset + int(layout.cosize(lay.outer))
        if end % (1 << max(inner.y_mask, inner.z_mask).bit_length()) == 0 or not inner.bits:
            return end
    return max((int(layout.crd2idx(i, lay)) for i in range(int(layout.size(lay)))), default=-1) + 1


def by_address(pointer: Any, lay: Any) -> tuple[Any, Any]:
    """Return the same tensor with a plain layout, where it has one: where the elements lie together in spite of the
    swizzle, or memory is aligned so that its addresses can be swizzled in place of the elements. Otherwise as it is."""
    if not isinstance(lay, ComposedLayout) or not isinstance(pointer, Pointer) or not isinstance(lay.outer, Layout):
        return pointer, lay
    if not isinstance(lay.inner, Swizzle):
        return pointer, lay
    found = _of_addresses(pointer, lay.inner)
    if not lay.inner.bits or _together(lay):
        if found is not None and lay.inner.bits:
            _tell(advance(replace(pointer, swizzle=found), lay.offset))
        return advance(pointer, lay.inner(lay.offset)), lay.outer
    if found is None:
        return pointer, lay
    return advance(replace(pointer, swizzle=found), lay.offset), lay.outer


def _of_addresses(pointer: Pointer, swizzle: Swizzle) -> Swizzle | None:
    """Return what a swizzle of elements is of the addresses of memory that is aligned to its period; None of other
    memory."""
    found = of_bytes(swizzle, pointer.dtype) if pointer.space is AddressSpace.smem else None
    return None if found is None or pointer.alignment % found.period else found


def part_of(pointer: Any, lay: ComposedLayout, coord: Any) -> tuple[Any, Any]:
    """Return the pointer and the layout of what `coord` leaves of a tensor with a composed layout."""
    part, offset = sliced(lay, coord)
    start = add(pointer, offset)
    swizzled = isinstance(pointer, Pointer) and isinstance(lay.inner, Swizzle) and lay.inner.bits
    found = _of_addresses(pointer, lay.inner) if swizzled else None
    if found is not None and (isinstance(part, Layout) or start.alignment % found.period):
        _tell_part(found, start, part)
    return start, part


def _tell_part(swizzle: Swizzle, start: Pointer, part: Any) -> None:
    """Let the simulator know that the addresses of a part are by a swizzle, where the part does not say so."""
    running = seam.current_or(None)
    if running is None or not seam.is_static(part.shape):
        return
    width = start.dtype.width

    def tell() -> None:
        first = seam.known(start.address)  # of lanes that run together each has its own
        running.part_by_swizzle(swizzle, [first + i * width // 8 for i in places(known(part))], width)

    running.either(lambda: None, tell)


def _tell(pointer: Pointer) -> None:
    """Let the simulator know that an address is by a swizzle, where it is computed apart."""
    running = seam.current_or(None)
    if running is not None:
        running.either(lambda: None, lambda: physical(pointer))


@pure
def _together(lay: ComposedLayout) -> bool:
    """Say whether a swizzle moves all elements alike: they lie in one aligned block of its lowest bits."""
    stride = layout.flatten_to_tuple(lay.outer.stride)
    if not seam.is_static((lay.outer.shape, stride)) or any(d < 0 for d in stride):
        return False
    block = 1 << (int(layout.cosize(lay.outer)) - 1).bit_length()
    return block <= 1 << lay.inner.base and seam.divisor(lay.offset) % block == 0
