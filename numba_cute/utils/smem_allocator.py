# SPDX-License-Identifier: Apache-2.0
"""Dynamic shared memory, given out from its beginning."""

from __future__ import annotations

import itertools
import linecache
import re
import sys
from dataclasses import replace
from typing import Any

from .. import dtypes, seam
from ..arch.smem import alloc_smem
from ..dtypes import DType
from ..isa.form.limits import check_smem
from ..isa.form.targets import TARGETS
from ..seam import CuteError, StaticEnum, struct, traced
from ..seam.guards.messages import how_static
from ..seam.hooks.audits import AUDITS, Code, at_spot
from ..tensor import storage
from ..tensor.pointer import AddressSpace, Pointer
from ..tensor.tensor import Tensor

__all__ = ["SmemAllocator", "SmemPartition"]


class SmemPartition(StaticEnum):
    """The partition in which shared memory is allocated: USER, the dynamic shared memory of the launch, or RESERVED,
    static shared memory, beside it.

    >>> [part.name for part in utils.SmemPartition]
    ['USER', 'RESERVED']
    """

    USER = "user"
    RESERVED = "reserved"


_LINE = 16
"""The least alignment of a tensor of so many bytes: that of ldmatrix, cp.async and vectors of 16 bytes."""


@struct
class SmemAllocator:
    """An allocator of the block's dynamic shared memory, from its beginning on.

    Every thread makes its own and asks for the same allocations in the same order, so that all agree on the addresses.
    Make one in a kernel and pass it on: a second one would begin at the same byte, and give out the same memory, so it
    is refused where a function makes it after a first.
    offset: the bytes given out. Of all methods, byte_alignment: a static power of two, at most 1024; name: for the
    simulator's reports. Sizes are static; the launch is given the total.

    >>> def kernel():
    ...     print(utils.SmemAllocator().allocate_tensor(cute.Float16, cute.make_layout((8, 64)), 128))
    >>> cute.simulate(kernel)[1, 1]()
    Tensor(ptr<Float16, smem, align 128>, (8,64):(1,8))
    """

    offset: dtypes.Int32 = 0  # type: ignore[assignment]

    @traced
    def allocate(self, size_or_type: Any, byte_alignment: int = 1, name: str | None = None,
                 partition: SmemPartition = SmemPartition.USER) -> Any:  # fmt: skip
        """Allocate `size_or_type`: so many bytes, giving a Pointer to Uint8; one element of a type, giving a Pointer to
        it; or a storage object of a `cute.struct` class, whose members the reports call by their own names.
        byte_alignment, name: as for the class. partition: dynamic shared memory, or static."""
        if partition is SmemPartition.RESERVED:
            return reserve(size_or_type, byte_alignment)
        if isinstance(size_or_type, DType):
            return take(self, size_or_type, size_or_type.bytes, max(byte_alignment, size_or_type.bytes), name)
        if isinstance(size_or_type, type):
            return allocate_storage(self, size_or_type, byte_alignment)
        return take(self, dtypes.Uint8, size_or_type, byte_alignment, name)

    @traced
    def allocate_array(self, element_type: DType, num_elems: int = 1, byte_alignment: int = 1,
                       name: str | None = None, partition: SmemPartition = SmemPartition.USER) -> Pointer:  # fmt: skip
        """Allocate `num_elems` elements of `element_type`, aligned to one at least, and return a Pointer.
        byte_alignment, name, partition: as for `allocate`."""
        if partition is SmemPartition.RESERVED:
            return alloc_smem(element_type, num_elems, max(byte_alignment, element_type.width // 8))
        nbytes = -(-num_elems * element_type.width // 8)
        return take(self, element_type, nbytes, max(byte_alignment, element_type.width // 8), name)

    @traced
    def allocate_tensor(self, element_type: DType, layout: Any, byte_alignment: int = 1, swizzle: Any = None,
                        name: str | None = None, partition: SmemPartition = SmemPartition.USER) -> Tensor:  # fmt: skip
        """Allocate a tensor of `element_type` and a static `layout`. swizzle: one of the bytes of its addresses, which
        the tensor's pointer then has (`layout` is the outer part of a layout for TMA or wgmma); a swizzled layout's own
        is of its elements, counted from a plain pointer, and stays in the layout. byte_alignment, name, partition: as
        for `allocate`."""
        taken = self if partition is SmemPartition.USER else None
        return allocate_tensor(taken, element_type, layout, byte_alignment, swizzle, name)


def reserve(size_or_type: Any, align: int) -> Any:
    """Allocate in static shared memory, as `SmemAllocator.allocate`."""
    if isinstance(size_or_type, DType):
        return alloc_smem(size_or_type, 1, max(align, size_or_type.bytes))
    if not isinstance(size_or_type, type):
        return alloc_smem(dtypes.Uint8, size_or_type, align)
    check_storage(size_or_type)
    size, align = storage.size_of(size_or_type), max(align, storage.alignment_of(size_or_type))
    ptr = alloc_smem(dtypes.Uint8, size, align)
    made = storage.at(size_or_type, ptr.address, ptr.alignment)
    _note_members(made, "")
    return made


def check_storage(cls: type) -> None:
    if storage.members_of(cls) is None:
        raise CuteError(
            f"SmemAllocator.allocate: {cls.__name__} does not describe memory; use a size in bytes, an element type, "
            "or a cute.struct class of element types, MemRange and Align"
        )


def allocate_storage(self: SmemAllocator, cls: Any, align: int) -> Any:
    check_storage(cls)
    ptr = take(self, dtypes.Uint8, storage.size_of(cls), max(align, storage.alignment_of(cls)), None, notes=False)
    made = storage.at(cls, ptr.address, ptr.alignment)
    _note_members(made, "")
    return made


def _note_members(made: Any, within: str) -> None:
    """Tell the simulator what the parts of a storage object are called."""
    note = getattr(seam.current(), "note", None)
    if note is None:
        return
    for name, kind in type(made).__cute_members__.items():
        member = getattr(made, name)
        if isinstance(member, storage.Storage):
            _note_members(member, f"{within}{name}.")
        elif storage.size_of(kind):
            pointer = member.pointer if isinstance(member, storage.MemRangeData) else member
            note(pointer.address, storage.size_of(kind), within + name)


def allocate_tensor(
    self: SmemAllocator | None, dtype: DType, lay: Any, align: int, swizzle: Any, name: str | None
) -> Tensor:
    """self: None for static shared memory."""
    lay = storage.static_layout(lay, "allocate_tensor")
    nbytes = storage.bytes_of(lay, dtype, swizzle)
    align = max(align, _LINE if nbytes >= _LINE else dtype.width // 8)
    if self is None:
        ptr = replace(alloc_smem(dtypes.Uint8, nbytes, align), dtype=dtype)
    else:
        ptr = take(self, dtype, nbytes, align, name)
    return storage.swizzled_tensor(ptr, lay, swizzle, "allocate_tensor")


def take(self: SmemAllocator, dtype: DType, nbytes: Any, align: int, name: str | None, notes: bool = True) -> Pointer:
    """Take the next `nbytes`, aligned to `align`, and record what the kernel needs."""
    if type(nbytes) is not int or nbytes < 0:
        raise CuteError(f"SmemAllocator: size {nbytes!r} must be a static number of bytes{how_static(nbytes)}")
    if type(align) is not int or align < 1 or align & (align - 1) or align > 1024:
        raise CuteError(f"SmemAllocator: byte_alignment {align!r} must be a power of two, at most 1024")
    b = seam.current()
    if b.arch in TARGETS:  # of another GPU its driver says what it has
        check_smem(TARGETS[b.arch], nbytes)
    start = (self.offset + align - 1) & -align
    self.offset = start + nbytes
    b.smem_needs(self.offset)
    address = b.smem_base() + start
    note = getattr(b, "note", None)
    if note is not None and notes:
        note(address, nbytes, name or _assigned_name())
    return Pointer(dtype, AddressSpace.smem, address, 0, align)


_ASSIGNMENT = re.compile(r"\s*([A-Za-z_]\w*)\s*(:[^=]+)?=[^=]")


def _assigned_name() -> str:
    """Return the variable to which the kernel's line assigns the memory: the simulator runs that line as Python."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("numba_cute."):
        frame = frame.f_back
    found = _ASSIGNMENT.match(linecache.getline(frame.f_code.co_filename, frame.f_lineno))
    return found[1] if found else f"shared memory of line {frame.f_lineno}"


def check_made_once(code: Code) -> None:
    """Refuse an allocator that a function makes where it has made one. Threads that part may make one each."""
    made = [i for i, s in enumerate(code.steps) if s.kind == "call" and s.name is SmemAllocator]
    for first, then in itertools.permutations(made, 2):
        before, after = code.steps[first], code.steps[then]
        if before.at != after.at and _leads(code, first, then):  # what is unrolled is one line
            e = CuteError(
                f"SmemAllocator: {before.at} makes one, and a second begins at the same byte and gives out the same "
                "memory: pass the first one on; memory that is used again is seen otherwise by cute.recast_ptr"
            )
            raise at_spot(e, after.at)


def _leads(code: Code, first: int, then: int) -> bool:
    """Say whether some way leads from a step to another."""
    start, end = code.steps[first].block, code.steps[then].block
    if start == end and first < then:
        return True
    seen: set[int] = set()
    left = list(code.follows[start])
    while left:
        block = left.pop()
        if block not in seen:
            seen.add(block)
            left += code.follows[block]
    return end in seen


AUDITS.append(check_made_once)
