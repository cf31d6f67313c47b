# SPDX-License-Identifier: Apache-2.0
"""Moving elements between memories and registers, as wide as layouts and alignments prove."""

from __future__ import annotations

import math
from typing import Any

from . import layout, seam
from .layout import Layout
from .layout.pure import pure
from .pointer import AddressSpace, Pointer, access_alignment, advance, physical
from .seam import CuteError

WIDEST = 16
"""Bytes of the widest access of a thread (PTX ISA, "Vectors": .v4.b32)."""


def move(src: Pointer, slayout: Any, dst: Pointer, dlayout: Any, limit: int = WIDEST, pred: Any = None) -> None:
    """Copy every element from `src` to `dst` in coordinate order, in accesses of at most `limit` bytes.

    pred: None, or a function from the element's index to a condition; then at most one vector shares a condition,
    whose first element decides.
    """
    for lay in (slayout, dlayout):
        if not seam.is_static(lay.shape):
            raise CuteError(f"copy: shape {lay.shape} must be static; slice a static tile first")
    count = int(layout.size(slayout))
    if count != layout.size(dlayout):
        raise CuteError(f"copy: src has {count} elements, {slayout}, but dst has {layout.size(dlayout)}, {dlayout}")
    if src.dtype.width != dst.dtype.width:
        raise CuteError(f"copy: {src.dtype} cannot be copied to {dst.dtype}; convert with dst.store(src.load().to(…))")
    width = vector_width(src, slayout, dst, dlayout, limit)
    for at in first_of_vectors(slayout, dlayout, width, count):
        a = _at(src, slayout, at, width)
        b = _at(dst, dlayout, at, width)
        if pred is None:
            _access(a, b, width)
        else:
            seam.current().when(pred(at), lambda a=a, b=b: _access(a, b, width))  # type: ignore[misc]


@pure
def first_of_vectors(slayout: Any, dlayout: Any, width: int, count: int) -> tuple[int, ...]:
    """The index of the first element of each vector: those of a vector need not follow each other in coordinate order,
    where the contiguous mode is not the first."""
    if width > 1:
        vector = layout.composition(layout.max_common_layout(slayout, dlayout), layout.make_layout(width))
        if layout.coalesce(vector) != layout.make_layout(width):
            rest = layout.complement(vector, count)
            return tuple(int(layout.crd2idx(i, rest)) for i in range(count // width))
    return tuple(range(0, count, width))


def vector_width(src: Pointer, slayout: Any, dst: Pointer, dlayout: Any, limit: int) -> int:
    """Elements per access: contiguous and in the same order on both sides, aligned, at most `limit` bytes."""
    size = src.dtype.bytes
    width = int(layout.max_common_vector(slayout, dlayout)) if _plain(slayout) and _plain(dlayout) else 1
    width = math.gcd(width, max(1, limit // size), int(layout.size(slayout)))
    for ptr, lay in ((src, slayout), (dst, dlayout)):
        if ptr.space is AddressSpace.rmem:
            continue
        step = math.gcd(access_alignment(ptr), *(d * size for d in _strides(lay, width)))
        while width > 1 and step % (width * size):
            width //= 2
    return width


def _plain(lay: Any) -> bool:
    return isinstance(lay, Layout)


def _strides(lay: Any, width: int) -> list[int]:
    """The strides between vectors of `width` elements (unknown ones count as 1)."""
    if width == 1:
        return []
    flat = layout.coalesce(lay)
    shape = flat.shape if isinstance(flat.shape, tuple) else (flat.shape,)
    stride = flat.stride if isinstance(flat.stride, tuple) else (flat.stride,)
    return [width if d == 1 else d if isinstance(d, int) else 1 for s, d in zip(shape, stride) if s != 1]


def _at(ptr: Pointer, lay: Any, index: int, width: int) -> Pointer:
    offset = layout.crd2idx(index, lay)
    return advance(ptr, offset, offset if isinstance(offset, int) else width)


def _access(src: Pointer, dst: Pointer, width: int) -> None:
    b = seam.current()
    regs, memory = AddressSpace.rmem, width * src.dtype.bytes
    if src.space is regs and dst.space is regs:
        dst.store_vector(src.load_vector(width))
    elif src.space is regs:
        span = seam.Regs(src.address, src.dtype, src.offset, width)
        b.copy_from_regs(span, dst.space.name, physical(dst), max(memory, 1))
    elif dst.space is regs:
        span = seam.Regs(dst.address, dst.dtype, dst.offset, width)
        b.copy_to_regs(src.space.name, physical(src), span, max(memory, 1))
    elif memory >= 4:  # whole registers: a vector of narrow elements would be accessed in halves
        span = seam.Regs(b.registers(src.dtype, width), src.dtype, 0, width)
        b.copy_to_regs(src.space.name, physical(src), span, memory)
        b.copy_from_regs(span, dst.space.name, physical(dst), memory)
    else:
        dst.store_vector(src.load_vector(width))
