# SPDX-License-Identifier: Apache-2.0
"""Moving elements between memories and registers, as wide as layouts and alignments prove."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import layout, seam
from ..dtypes import Float32, TFloat32, Uint8, Uint16, Uint32
from ..layout.int_tuple import text
from ..layout.pure import pure
from ..seam import CuteError
from ..seam.guards.messages import how_static
from .pointer import AddressSpace, Pointer, access_alignment, advance, check_writable, physical
from .swizzled import by_address

_MEMORIES = (AddressSpace.smem, AddressSpace.gmem, AddressSpace.generic)
WIDEST = 16
"""Bytes of the widest access of a thread (PTX ISA, "Vectors": .v4.b32)."""
MOST_INSTRUCTIONS = 1 << 14
"""Instructions of one copy of a thread: each is code of its own."""


def move(
    src: Pointer, slayout: Any, dst: Pointer, dlayout: Any, limit: int = WIDEST, pred: Any = None, access: Any = None,
    hoped: bool = False,
) -> None:  # fmt: skip
    """Copy every element from `src` to `dst` in coordinate order, in accesses of at most `limit` bytes.

    pred: None, or a function from the element's index to a condition; then at most one vector shares a condition, whose
    first element decides. access: the function that moves a vector, `access(src, dst, elements)`, if not plain loads
    and stores. hoped: vectors were hoped for: it is noted why there are none.
    """
    for p in (src, dst):
        if not isinstance(p, Pointer):
            raise CuteError(f"copy: a tensor of coordinates, {text(p)}, has no memory to copy from or to")
    check_writable(dst, "copy")
    for lay in (slayout, dlayout):
        if not seam.is_static(lay.shape):
            raise CuteError(f"copy: shape {lay.shape} must be static; slice a static tile first{how_static(lay.shape)}")
    count = int(layout.size(slayout))
    if count != layout.size(dlayout):
        raise CuteError(f"copy: src has {count} elements, {slayout}, but dst has {layout.size(dlayout)}, {dlayout}")
    if src.dtype.width != dst.dtype.width:
        raise CuteError(f"copy: {src.dtype} cannot be copied to {dst.dtype}; convert with dst.store(src.load().to(…))")
    check_formats(src, dst)
    (src, slayout), (dst, dlayout) = by_address(src, slayout), by_address(dst, dlayout)
    width = vector_width(src, slayout, dst, dlayout, limit)
    spread = 1 if pred or access else _width_in_memory(src, slayout, dst, dlayout, limit)
    if spread > width:
        _spread(src, slayout, dst, dlayout, spread, count)
        return
    if count // width > MOST_INSTRUCTIONS and not seam.computes_on_host():
        raise CuteError(
            f"copy: {count} elements are {count // width} instructions of a thread: copy by tiles in a loop"
        )
    if hoped and width == 1 < count:
        seam.loses(lambda: why_single(src, slayout, dst, dlayout, limit))
    access = access or _access
    firsts = first_of_vectors(slayout, dlayout, width, count)
    src_offset, dst_offset = _offsets(slayout, firsts), _offsets(dlayout, firsts)
    for n, at in enumerate(firsts):
        a = advance(src, src_offset(n))
        b = advance(dst, dst_offset(n))
        if pred is None:
            access(a, b, width)
        else:
            seam.current().when(pred(at), lambda a=a, b=b: access(a, b, width))  # type: ignore[misc]


def _width_in_memory(src: Pointer, slayout: Any, dst: Pointer, dlayout: Any, limit: int) -> int:
    """Count the elements per access that lie side by side in memory in coordinate order, if the other side are whole
    registers, which may be any; 1 otherwise."""
    regs = AddressSpace.rmem
    if (src.space is regs) is (dst.space is regs) or src.dtype != dst.dtype or src.dtype.width < 32:
        return 1
    ptr, lay = (dst, dlayout) if src.space is regs else (src, slayout)
    width = vector_width(ptr, lay, ptr, lay, limit)
    count = int(layout.size(lay))
    return width if first_of_vectors(lay, lay, width, count) == tuple(range(0, count, width)) else 1


def _spread(src: Pointer, slayout: Any, dst: Pointer, dlayout: Any, width: int, count: int) -> None:
    """Copy between memory, by `width` elements at once, and registers that do not lie side by side."""
    indices = tuple(range(count))
    src_offset, dst_offset = _offsets(slayout, indices), _offsets(dlayout, indices)
    for first in range(0, count, width):
        vector = range(first, first + width)
        if dst.space is AddressSpace.rmem:
            for i, value in zip(vector, advance(src, src_offset(first)).load_vector(width)):
                advance(dst, dst_offset(i)).store(value)
        else:
            values = tuple(advance(src, src_offset(i)).load() for i in vector)
            advance(dst, dst_offset(first)).store_vector(values)


def filling(ptr: Any, lay: Any, count: int, value: Any) -> tuple[Sequence[int], Callable[[Any], None]]:
    """Return how the `count` elements of a tensor are set to a value, in accesses as wide as its layout and alignment
    prove: the first element of each, and what is done at its place."""
    ptr, lay = by_address(ptr, lay)
    width, b = 1, seam.current()
    if getattr(ptr, "space", None) in _MEMORIES and ptr.dtype.width >= 8 and not seam.computes_on_host():
        width = vector_width(ptr, lay, ptr, lay, WIDEST)
    if count // width > MOST_INSTRUCTIONS and not seam.computes_on_host():
        raise CuteError(
            f"fill: {count} elements are {count // width} instructions of a thread: fill by tiles in a loop"
        )
    if width == 1:
        return range(count), lambda at: at.store(value)
    check_writable(ptr, "store")
    span = seam.Regs(b.registers(ptr.dtype, width), ptr.dtype, 0, width)
    b.fill(span, value)
    return first_of_vectors(lay, lay, width, count), lambda at: _from_regs(span, at, width * ptr.dtype.bytes)


def check_formats(src: Any, dst: Any) -> None:
    """Refuse to copy floats as the bits of floats of another format: they would be other numbers. Integers of the same
    width carry bits of any kind."""
    if not isinstance(src, Pointer) or not isinstance(dst, Pointer):
        return
    a, b = src.dtype, dst.dtype
    if a != b and a.is_float and b.is_float and a.width == b.width and {a, b} != {Float32, TFloat32}:
        raise CuteError(
            f"copy: src holds {a} and dst {b}, whose bits are other numbers: convert with "
            f"dst.store(src.load().to(cute.{b})), or say that the bits are meant: cute.recast_tensor(src, cute.{b})"
        )


@pure
def first_of_vectors(slayout: Any, dlayout: Any, width: int, count: int) -> tuple[int, ...]:
    """Return the index of the first element of each vector: those of a vector need not follow each other in coordinate
    order, where the contiguous mode is not the first."""
    if width > 1:
        vector = layout.composition(layout.max_common_layout(slayout, dlayout), layout.make_layout(width))
        if layout.coalesce(vector) != layout.make_layout(width):
            rest = layout.complement(vector, count)
            return tuple(int(layout.crd2idx(i, rest)) for i in range(count // width))
    return tuple(range(0, count, width))


def _offsets(lay: Any, indices: tuple[int, ...]) -> Callable[[int], Any]:
    """Return what gives the offset of the nth of some elements: those of a static layout are computed once, whatever
    thread asks."""
    return offsets(lay, indices).__getitem__ if seam.is_static(lay) else lambda n: layout.crd2idx(indices[n], lay)


@pure
def offsets(lay: Any, indices: tuple[int, ...]) -> tuple[Any, ...]:
    """Return the offsets of some elements of a static layout, by their indices."""
    return tuple(layout.crd2idx(i, lay) for i in indices)


def vector_width(src: Pointer, slayout: Any, dst: Pointer, dlayout: Any, limit: int) -> int:
    """Count the elements per access: contiguous and in the same order on both sides, aligned, at most `limit` bytes."""
    bits = src.dtype.width
    width = int(layout.max_common_vector(slayout, dlayout))
    width = math.gcd(width, max(1, limit * 8 // bits), int(layout.size(slayout)))
    if bits == 6:  # in memory they lie closer than in registers
        return 1
    for ptr, lay in ((src, slayout), (dst, dlayout)):
        if ptr.space is AddressSpace.rmem:
            continue
        step = _step(ptr, lay, width)
        while width > 1 and step % (width * bits):
            width //= 2
    return width


def why_single(src: Pointer, slayout: Any, dst: Pointer, dlayout: Any, limit: int = WIDEST) -> str | None:
    """Say why a thread's elements are moved one at a time; None where it is as good as it can be: between registers, of
    an odd number of them, of elements that take the whole access, or that are one again and again."""
    bits, count = src.dtype.width, int(layout.size(slayout))
    sides = (("src", src, slayout), ("dst", dst, dlayout))
    memories = [side for side in sides if side[1].space is not AddressSpace.rmem]
    together = int(layout.max_common_vector(slayout, dlayout))
    whole = bits == 6 or 2 * bits > limit * 8 or count % 2 or (together > 1 and together % 2)
    if whole or not memories or any(int(layout.size(layout.nullspace(lay))) > 1 for _, _, lay in memories):
        return None
    said = f"the copy moves {count} elements of {src.dtype} one at a time"
    if together == 1:
        apart = [f"{name}, {lay}," for name, _, lay in sides if int(layout.max_common_vector(lay, lay)) == 1]
        if apart:
            return f"{said}: no two elements of {apart[0]} are known to lie side by side"
        return f"{said}: src, {slayout}, and dst, {dlayout}, do not follow each other in the same order"
    for name, ptr, lay in memories:
        if 8 * access_alignment(ptr) % (2 * bits):
            return (
                f"{said}: {name} begins at a multiple of {access_alignment(ptr)} bytes, and of no more, as far as is "
                "known: give its tensor assumed_align, and its offsets their divisibility"
            )
        if _step(ptr, lay, 2) % (2 * bits):
            return (
                f"{said}: the strides of {name}, {lay}, are not all even, or not known to be: pad its rows, or give "
                "their divisibility"
            )
    return None


def _step(ptr: Pointer, lay: Any, width: int) -> int:
    """Return the bits that are known to divide the places of vectors of `width` elements."""
    bits = ptr.dtype.width
    return math.gcd(
        8 * access_alignment(ptr), seam.divisor(_within(ptr)) * bits, *(d * bits for d in _strides(lay, width))
    )


def _within(ptr: Pointer) -> Any:
    """Elements from the pointer's address on (of memory)."""
    return ptr.offset if ptr.dtype.width < 8 else 0


def _strides(lay: Any, width: int) -> list[int]:
    """Return the numbers known to divide the strides between vectors of `width` elements."""
    if width == 1:
        return []
    flat = layout.coalesce(layout.get_nonswizzle_portion(lay))
    shape = flat.shape if isinstance(flat.shape, tuple) else (flat.shape,)
    stride = flat.stride if isinstance(flat.stride, tuple) else (flat.stride,)
    return [width if type(d) is int and d == 1 else layout.get_divisibility(d) for s, d in zip(shape, stride) if s != 1]


def _access(src: Pointer, dst: Pointer, width: int) -> None:
    b = seam.current()
    regs, bits = AddressSpace.rmem, width * src.dtype.width
    if src.space is regs and dst.space is regs or bits < 8:
        dst.store_vector(src.load_vector(width))
    elif src.space is regs:
        _from_regs(seam.Regs(src.address, src.dtype, src.offset, width), dst, bits // 8)
    elif dst.space is regs:
        _to_regs(src, seam.Regs(dst.address, dst.dtype, dst.offset, width), bits // 8)
    elif bits >= 32 or src.dtype.width < 8:  # whole registers: a vector of narrow elements would be accessed in halves
        span = seam.Regs(b.registers(src.dtype, width), src.dtype, 0, width)
        _to_regs(src, span, bits // 8)
        _from_regs(span, dst, bits // 8)
    else:
        dst.store_vector(src.load_vector(width))


def _to_regs(src: Pointer, dst: seam.Regs, size: int) -> None:
    b = seam.current()
    if src.dtype.width >= 8:
        b.copy_to_regs(src.space.name, physical(src), dst, size)
        return
    whole = _whole(size)
    b.copy_to_regs(src.space.name, physical(src), whole, size)
    b.unvector(b.bitcast(b.vector(whole), dst.dtype), dst)


def _from_regs(src: seam.Regs, dst: Pointer, size: int) -> None:
    b = seam.current()
    if src.dtype.width >= 8:
        b.copy_from_regs(src, dst.space.name, physical(dst), size)
        return
    whole = _whole(size)
    b.unvector(b.bitcast(b.vector(src), whole.dtype), whole)
    b.copy_from_regs(whole, dst.space.name, physical(dst), size)


THREADS_OWN = 512 << 10
"""The most bytes of registers and local memory that a thread has (CUDA C++ Programming Guide, "Technical
Specifications per Compute Capability")."""


def fits_a_thread(what: str, count: int, dtype: Any) -> int:
    """Return the `count` of elements of `dtype` that `what` makes for each thread; CuteError if no thread has room. The
    host has."""
    if not seam.computes_on_host() and count * dtype.width > 8 * THREADS_OWN:
        raise CuteError(
            f"{what}: {count} elements of {dtype} are more than the {THREADS_OWN // 1024} KiB of registers and local "
            "memory that a thread has; give each thread a part"
        )
    return count


def _whole(size: int) -> seam.Regs:
    """New registers for elements narrower than a byte that take so many bytes together."""
    dtype = {1: Uint8, 2: Uint16}.get(size, Uint32)
    count = size // dtype.bytes
    return seam.Regs(seam.current().registers(dtype, count), dtype, 0, count)
