# SPDX-License-Identifier: Apache-2.0
"""Typed pointers: an address, its element type, and what is known of its alignment and swizzle."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar

import numpy as np

from .. import dtypes, seam
from ..dtypes import DType
from ..layout.int_tuple import static_int
from ..layout.swizzle import IDENTITY, Swizzle
from ..seam import CuteError, InIR, Int, Leaf, frozen, traced
from ..seam.ground.naming import described, shown
from .address import Address

__all__ = ["AddressSpace", "Pointer", "make_ptr", "recast_ptr"]


class AddressSpace(seam.StaticEnum):
    """The memory that a pointer points to. The values are those of LLVM's NVPTX address spaces, registers aside.

    >>> [member.name for member in cute.AddressSpace]
    ['generic', 'gmem', 'smem', 'rmem', 'tmem']
    """

    generic = 0
    gmem = 1
    smem = 3
    rmem = 5
    tmem = 6


_SHARED = (AddressSpace.smem, AddressSpace.generic)
ADDRESS_BITS = {"generic": 64, "gmem": 64, "smem": 32, "tmem": 32}


class PointerType(str):
    """The text of a pointer's type. swizzle_type: its Swizzle."""

    swizzle_type: Swizzle


@frozen
class Pointer(InIR):
    """A pointer to elements of one type.

    dtype: the elements. space: the AddressSpace. address: bytes (64-bit in global, 32-bit in shared memory); for rmem
    the register file's handle; for tmem 32-bit words, the lane in the upper 16 bits. offset: elements from there, in
    rmem and where they are narrower than a byte (in tmem: than a word); what makes whole ones is in the address.
    alignment: bytes, a power of two that divides the address. swizzle: applied to the byte address when the pointer is
    followed, never to `address`; S<0,4,3> for bytes that are meant as they are stored. readonly: nothing may be
    written there, as to an array that is not writeable. multicast: the address stands for the memory of several GPUs,
    which multimem instructions alone access.

    >>> cute.make_ptr(cute.Float16, 4096, cute.AddressSpace.smem, assumed_align=16) + 8
    ptr<Float16, smem, align 16>
    """

    dtype: DType
    space: AddressSpace
    address: Any
    offset: Int = 0
    alignment: int = 1
    swizzle: Any = None
    readonly: bool = False
    multicast: bool = False
    __cute_checks_arguments__: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.dtype, DType):
            raise CuteError(f"Pointer: dtype {shown(self.dtype)} is not an element type; use one like cute.Float32")
        if not isinstance(self.space, AddressSpace):
            raise CuteError(f"Pointer: space {shown(self.space)} is not a member of cute.AddressSpace")
        at = self.address
        if self.space is AddressSpace.rmem:
            if type(at) is int:
                raise CuteError(f"Pointer: address {at}: registers have none; cute.make_rmem_tensor makes some")
        elif type(at) is not int and not isinstance(at, Leaf):
            self._judge_address()
        if self.swizzle is not None and not isinstance(self.swizzle, Swizzle):
            raise CuteError(f"Pointer: swizzle {described(self.swizzle)}: give a Swizzle or None")
        if type(self.offset) is not int and not isinstance(self.offset, Leaf):
            raise CuteError(f"Pointer: offset {described(self.offset)}: give an integer")
        a = self.alignment
        if not isinstance(a, int) or a < 1 or a & (a - 1):
            raise CuteError(f"Pointer: alignment {a!r} bytes is not a power of two")

    def _judge_address(self) -> None:
        if not hasattr(self.address, "captured") and not isinstance(self.address, np.integer):
            raise CuteError(f"Pointer: address {described(self.address)}: give the byte address, an integer")

    def __eq__(self, other: object) -> bool:
        """Return whether the other points at the same place in the same way; a register file is only itself."""
        if not isinstance(other, Pointer):
            return NotImplemented
        same = self.address is other.address or self.space is not AddressSpace.rmem and self.address == other.address
        return bool(same and all(getattr(self, f) == getattr(other, f) for f in _BESIDES_ADDRESS))

    @property
    def type(self) -> PointerType:
        """Give the type in the notation of CuTe's IR, as text, which has the swizzle as `swizzle_type`, too."""
        made = PointerType(super().type)
        made.swizzle_type = Swizzle(0, 4, 3) if self.swizzle is None else self.swizzle
        return made

    @property
    def value_type(self) -> DType:
        """The DType of the elements."""
        return self.dtype

    @property
    def memspace(self) -> AddressSpace:
        """The AddressSpace."""
        return self.space

    @property
    def max_alignment(self) -> int:
        """The alignment that is known, in bytes."""
        return self.alignment

    def toint(self) -> Any:
        """Return the byte address, before the swizzle: a number of run time, also of an address that is static.
        CuteError for registers, which have none."""
        if self.space is AddressSpace.rmem:
            raise CuteError(f"toint: {self!r} points to registers, which have no address")
        if seam.current_or(None) is None or type(self.address) is not int:
            return self.address
        number = dtypes.Int64 if ADDRESS_BITS[self.space.name] == 64 else dtypes.Int32
        return number(self.address)

    def align(self, min_align: int) -> Pointer:
        """Return the first address from here on that is a multiple of `min_align` bytes, a power of two."""
        if min_align < 1 or min_align & (min_align - 1):
            raise CuteError(f"align: min_align {min_align} bytes is not a power of two")
        if self.space is AddressSpace.rmem:
            raise CuteError(f"align: {self!r} points to registers, which have no address")
        if self.alignment >= min_align:
            return self
        address = (self.address + (min_align - 1)) & -min_align
        return dataclasses.replace(self, address=address, alignment=min_align)

    def __add__(self, offset: Int) -> Pointer:
        return advance(self, offset)

    def __sub__(self, offset: Int) -> Pointer:
        return advance(self, 0 - offset)

    @property
    def llvm_ptr(self) -> Pointer:
        """The pointer itself: files of the CuTe DSL hand on what its compiler has of it."""
        return self

    @property
    def value(self) -> Pointer:
        """The pointer itself: as `llvm_ptr`."""
        return self

    def to_llvm_ptr(self, *, loc: Any = None, ip: Any = None) -> Pointer:
        """Return the pointer itself. loc, ip: taken."""
        return self

    @property
    def _pointer(self) -> int:
        """The byte address of a pointer of the host, as files of the CuTe DSL give it to the CUDA runtime."""
        return int(getattr(self.address, "value", self.address))

    def load(self) -> Any:
        """Load the element pointed at."""
        return self.load_vector(1)[0]

    def store(self, value: Any) -> None:
        """Store `value` as the element pointed at."""
        self.store_vector((value,))

    def load_vector(self, count: int) -> tuple[Any, ...]:
        """Load `count` consecutive elements, in one access where the alignment allows."""
        _addressed(self, "load")
        count = static_int(count, "load_vector: count")
        b = seam.current()
        if self.space is AddressSpace.rmem:
            return tuple(b.read(seam.Regs(self.address, self.dtype, self.offset + i, 1)) for i in range(count))
        if self.dtype.width < 8:
            return tuple(_load_bits(self + i) for i in range(count))
        return b.load(self.dtype, self.space.name, physical(self), count, access_alignment(self))

    def store_vector(self, values: tuple[Any, ...]) -> None:
        """Store `values`, a tuple, as consecutive elements, in one access where the alignment allows."""
        check_writable(self, "store")
        _addressed(self, "store")
        b = seam.current()
        if self.space is AddressSpace.rmem:
            for i, v in enumerate(values):
                b.write(seam.Regs(self.address, self.dtype, self.offset + i, 1), v)
        elif self.dtype.width < 8:
            for i, v in enumerate(values):
                _store_bits(self + i, v)
        else:
            b.store(self.dtype, self.space.name, physical(self), values, access_alignment(self))

    def __repr__(self) -> str:
        swizzle = f", {self.swizzle}" if self.swizzle is not None else ""
        more = (", read-only" if self.readonly else "") + (", multicast" if self.multicast else "")
        return f"ptr<{self.dtype}, {self.space.name}, align {self.alignment}{swizzle}{more}>"


_BESIDES_ADDRESS = tuple(f.name for f in dataclasses.fields(Pointer) if f.name != "address")


def check_writable(ptr: Any, what: str) -> None:
    """Refuse `ptr` if it points to memory that is known to be read-only. what: who would write."""
    if isinstance(ptr, Pointer) and ptr.readonly:
        raise CuteError(
            f"{what}: {ptr!r} points to read-only memory (an array that is not writeable); write to another, or pass a "
            "copy, as np.array(x) makes one"
        )


def check_of_one_rank(ptr: Pointer) -> None:
    """Refuse `ptr` if its address stands for the memory of several GPUs."""
    if ptr.multicast:
        raise CuteError(
            f"{ptr!r} stands for the memory of all ranks, which multimem instructions access "
            "(utils.distributed.multimem_ld_reduce, multimem_st, multimem_red_add1): of one rank alone, "
            "runtime.from_symmetric gives a tensor"
        )


def _addressed(ptr: Pointer, what: str) -> None:
    """Refuse to access tensor memory element by element."""
    if ptr.space is AddressSpace.tmem:
        raise CuteError(
            f"{what}: {ptr!r} points to tensor memory, which has no loads and stores of elements: multiplies and "
            "copies of whole warps (tcgen05.ld, tcgen05.st) reach it"
        )


@traced
def advance(ptr: Pointer, offset: Any) -> Pointer:
    """Compute `ptr + offset`, `offset` in elements. Its alignment is what is known to divide the offset."""
    if isinstance(offset, int) and offset == 0:
        return ptr
    if isinstance(offset, tuple):
        raise CuteError(f"{ptr!r} is moved by the coordinate {offset}: a pointer moves by a number of elements")
    if ptr.space is AddressSpace.rmem:
        return _with_offset(ptr, ptr.offset + seam.known(offset))
    if ptr.space is AddressSpace.tmem:
        return _advance_words(ptr, ptr.offset + seam.known(offset))
    if ptr.dtype.width < 8:
        return _advance_within_bytes(ptr, ptr.offset + seam.known(offset))
    return _advance_bytes(ptr, offset, ptr.dtype.bytes)


def _with_offset(ptr: Pointer, offset: Any) -> Pointer:
    return _moved(ptr, ptr.address, offset, ptr.alignment)


def _moved(ptr: Pointer, address: Any, offset: Any, alignment: int) -> Pointer:
    """A pointer to another place of the same memory: what it takes over has been judged, and every access moves one."""
    new = object.__new__(Pointer)
    new.__dict__.update(
        dtype=ptr.dtype, space=ptr.space, address=address, offset=offset, alignment=alignment, swizzle=ptr.swizzle,
        readonly=ptr.readonly, multicast=ptr.multicast,
    )  # fmt: skip
    return new


def _advance_bytes(ptr: Pointer, units: Any, size: int) -> Pointer:
    """`ptr` moved by `units` of `size` bytes."""
    units, start = seam.known(units), seam.known(ptr.address)
    if type(start) is Address and type(units) is int:
        address: Any = start.plus(units * size)
    elif seam.is_exact(units):
        address = start + units * size
    elif type(units) is dtypes.Scalar:  # of the host, which knows it
        address = start + int(units) * size
    elif ADDRESS_BITS[ptr.space.name] == 64:
        address = ptr.address + dtypes.Int64(units) * size
    else:  # the address keeps its type, whatever the offset's: it may be carried round a loop
        address = dtypes.Uint32(ptr.address + dtypes.Int32(units) * size)
    align = math.gcd(ptr.alignment, seam.divisor(units) * size)
    return _moved(ptr, address, ptr.offset, align)


def moved_bytes(ptr: Pointer, nbytes: int) -> Pointer:
    """Return a pointer to an array of the host, moved by so many bytes."""
    return _moved(ptr, ptr.address.plus(nbytes), ptr.offset, math.gcd(ptr.alignment, nbytes))


def _advance_words(ptr: Pointer, offset: Any) -> Pointer:
    """A pointer to tensor memory, `offset` elements beyond its address: whole words go into the address."""
    few = 32 // math.gcd(32, ptr.dtype.width)  # elements in the fewest whole words
    size = few * ptr.dtype.width // 32
    if isinstance(offset, int):
        whole, rest = divmod(offset, few)
    elif seam.divisor(offset) % few == 0:
        whole, rest = offset // few, 0
    else:
        raise CuteError(
            f"{ptr!r} + offset: {few} elements make a word of tensor memory, and the offset, known at run time only, "
            "is not known to be a multiple of that"
        )
    moved = ptr if isinstance(whole, int) and whole == 0 else _advance_bytes(ptr, whole, size)
    return _with_offset(moved, rest)


def _advance_within_bytes(ptr: Pointer, offset: Any) -> Pointer:
    """A pointer to elements narrower than a byte, `offset` of them beyond its address: what makes whole bytes, as far
    as that is known, goes into the address."""
    few = 8 // math.gcd(8, ptr.dtype.width)  # elements in the fewest whole bytes
    size = few * ptr.dtype.width // 8
    if isinstance(offset, int):
        whole, offset = divmod(offset, few)
    elif seam.divisor(offset) % few == 0:
        whole, offset = offset // few, 0
    else:
        whole = 0
    moved = _advance_bytes(ptr, whole, size) if not isinstance(whole, int) or whole else ptr
    return _with_offset(moved, offset)


def physical(ptr: Pointer, nbytes: int = 0) -> Any:
    """Return the byte address that an access through `ptr` touches: swizzled. nbytes: of the access (0: of one
    element). Raises CuteError for one that the swizzle takes apart."""
    check_of_one_rank(ptr)
    address = seam.known(ptr.address)
    if ptr.dtype.width < 8 and not (isinstance(ptr.offset, int) and ptr.offset == 0):
        address = address + _wide(ptr, ptr.offset * ptr.dtype.width >> 3)
    if ptr.swizzle is None:
        return address
    together, nbytes = 1 << int(ptr.swizzle.base), nbytes or max(1, ptr.dtype.width // 8)
    if ptr.swizzle.bits and nbytes > together:
        raise CuteError(
            f"{ptr!r}: an access of {nbytes} bytes, but the swizzle {ptr.swizzle} keeps only {together} together: it "
            f"is of bytes, so take one whose base is {(nbytes - 1).bit_length()} or more, or narrower elements"
        )
    running = seam.current_or(None)
    return ptr.swizzle(address) if running is None else running.swizzled(ptr.swizzle, address, ptr.dtype.width)


_BITS = {4: dtypes.Uint4, 6: dtypes.Uint6}


def _bytes_of(ptr: Pointer) -> tuple[list[Any], Any]:
    """The addresses of the bytes (one, or two where an element may lie across) that hold the element pointed at, and
    by how many bits it is shifted there."""
    width = ptr.dtype.width
    bits = ptr.offset * width
    first = physical(ptr)
    if 8 % width == 0:
        return [first], bits & 7
    last = dataclasses.replace(
        ptr, dtype=_BITS[width], offset=0, address=ptr.address + _wide(ptr, bits + width - 1 >> 3)
    )
    return [first, physical(last)], bits & 7


def _load_bits(ptr: Pointer) -> Any:
    """An element narrower than a byte."""
    b, width = seam.current(), ptr.dtype.width
    addresses, shift = _bytes_of(ptr)
    word = 0
    for i, address in enumerate(addresses):  # where both are the same byte, the second lies above the element
        word = word | dtypes.Uint32(b.load(dtypes.Uint8, ptr.space.name, address, 1, 1)[0]) << 8 * i
    bits = (word >> shift) & (1 << width) - 1
    return b.lane(b.bitcast(b.pack(_BITS[width], (bits,)), ptr.dtype), 0)


def _store_bits(ptr: Pointer, value: Any) -> None:
    """Set an element narrower than a byte, leaving its neighbours as they are: not atomically."""
    b, width = seam.current(), ptr.dtype.width
    addresses, shift = _bytes_of(ptr)
    bits = dtypes.Uint32(b.lane(b.bitcast(b.pack(ptr.dtype, (value,)), _BITS[width]), 0)) << shift
    mask = dtypes.Uint32((1 << width) - 1) << shift

    def merge(address: Any, by: int) -> None:
        old = dtypes.Uint32(b.load(dtypes.Uint8, ptr.space.name, address, 1, 1)[0])
        new = (old & (((mask >> by) & 255) ^ 255)) | ((bits >> by) & 255)
        b.store(dtypes.Uint8, ptr.space.name, address, (dtypes.Uint8(new),), 1)

    merge(addresses[0], 0)
    if len(addresses) > 1:
        b.when(b.compare(">", mask >> 8, 0), lambda: merge(addresses[1], 8))


def _wide(ptr: Pointer, offset: Any) -> Any:
    """Bytes to add to the address, in its own width."""
    if seam.is_exact(offset):
        return offset
    return (dtypes.Int64 if ADDRESS_BITS[ptr.space.name] == 64 else dtypes.Uint32)(offset)


def access_alignment(ptr: Pointer) -> int:
    """Return the bytes by which the accessed address is aligned: a swizzle moves the bits from `base` on."""
    align = ptr.alignment
    if ptr.dtype.width < 8:
        whole, rest = divmod(seam.divisor(ptr.offset) * ptr.dtype.width, 8)
        align = 1 if rest else math.gcd(align, whole)
    if ptr.swizzle is None or ptr.swizzle.bits == 0:
        return align
    return min(align, 1 << int(ptr.swizzle.base))


def element_type_of(dtype: Any, what: str) -> DType:
    """Return the element type that is given to the function `what`: the simulator's `type(x)` of a number is one."""
    dtype = getattr(dtype, "__cute_dtype__", dtype)
    if not isinstance(dtype, DType):
        raise CuteError(f"{what}: dtype {dtype!r} is not an element type; use one like cute.Float32")
    return dtype


@traced
def recast_ptr(
    ptr: Pointer, swizzle_: Any = None, dtype: DType | None = None, *, reinterpret: bool = False
) -> Pointer:  # fmt: skip
    """Return the address of `ptr` with element type `dtype` (default: its own) and the swizzle `swizzle_` (None:
    without one). reinterpret: the bytes are meant as they lie, by whatever swizzle they were written, so that the
    simulator does not report that; without `swizzle_`. An error where the pointer may point inside of a byte (in tensor
    memory: a word) and the widths differ.

    >>> cute.recast_ptr(cute.make_ptr(cute.Float16, 4096, cute.AddressSpace.gmem, 16), dtype=cute.Float32)
    ptr<Float32, gmem, align 16>
    """
    if reinterpret:
        if swizzle_ is not None and swizzle_ != IDENTITY:
            raise CuteError(f"recast_ptr: reinterpret keeps the bytes unchanged: leave out swizzle_, {swizzle_!r}")
        swizzle_ = IDENTITY
    if not isinstance(ptr, Pointer):
        raise CuteError(f"recast_ptr: {ptr!r} is not a pointer")
    dtype = ptr.dtype if dtype is None else element_type_of(dtype, "recast_ptr")
    narrow = ptr.dtype.width < (32 if ptr.space is AddressSpace.tmem else 8)
    within = narrow and not (isinstance(ptr.offset, int) and ptr.offset == 0)
    if within and dtype.width != ptr.dtype.width:
        raise CuteError(f"recast_ptr: {ptr!r} may point inside of a byte or word: no {dtype} starts there")
    if ptr.space is AddressSpace.rmem and dtype.width != ptr.dtype.width:
        return dataclasses.replace(ptr, dtype=dtype, swizzle=swizzle_, offset=_register_offset(ptr, dtype))
    running = seam.current_or(None)
    if running is not None and dtype.width != ptr.dtype.width and ptr.space in _SHARED:
        running.reinterprets(seam.known(ptr.address), ptr.dtype.width, dtype.width)
    return dataclasses.replace(ptr, dtype=dtype, swizzle=swizzle_)


def _register_offset(ptr: Pointer, dtype: DType) -> Any:
    """Return where a pointer to registers points, counted in elements of `dtype`."""
    old, new = ptr.dtype.width, dtype.width
    if old % 8 or new % 8:
        raise CuteError(f"recast_ptr: registers of {ptr.dtype} cannot be viewed as {dtype}; use .load().to(dtype)")
    if new <= old:
        return ptr.offset * (old // new)
    if seam.divisor(ptr.offset) % (new // old):
        raise CuteError(f"recast_ptr: {ptr!r} may point inside of a {dtype}: no element starts there")
    return seam.quotient(ptr.offset, new // old)


@traced
def make_ptr(
    dtype: DType,
    value: Any,
    mem_space: AddressSpace = AddressSpace.generic,
    assumed_align: int | None = None,
) -> Pointer:
    """Make a pointer from a byte address.

    dtype: the elements. value: the address: an int, a run-time integer, or that of a Pointer. mem_space: an
    AddressSpace other than rmem. assumed_align: bytes that the address is a multiple of, itself one of the element's
    size, the default.

    >>> cute.make_ptr(cute.Float16, 4096, cute.AddressSpace.gmem, assumed_align=16)
    ptr<Float16, gmem, align 16>
    """
    if mem_space is AddressSpace.rmem:
        raise CuteError("make_ptr: mem_space rmem has no addresses; use make_rmem_tensor")
    size = max(1, dtype.width // 8)
    align = size if assumed_align is None else static_int(assumed_align, "make_ptr: assumed_align")
    if align % size:
        raise CuteError(f"make_ptr: assumed_align {align} bytes is not a multiple of {dtype}'s {size} bytes")
    if isinstance(value, Pointer):
        value = _address_in(value, mem_space)
    simulated = hasattr(seam.current_or(None), "note")  # where run-time addresses are ints: their accesses are judged
    if type(value) is int and value % align and not simulated:
        raise CuteError(f"make_ptr: address {value:#x} is not a multiple of assumed_align = {align} bytes")
    if seam.current_or(None) is None and type(value) is int:
        value = Address(value) if ADDRESS_BITS[mem_space.name] == 64 else dtypes.Int32(value)
    return Pointer(dtype, mem_space, value, 0, align)


def _address_in(ptr: Pointer, space: AddressSpace) -> Any:
    """Return the address of a pointer for one into the same memory, or a generic one into or of global memory."""
    whole = type(ptr.offset) is int and ptr.offset == 0
    if not whole or (space is not ptr.space and {space, ptr.space} != {AddressSpace.generic, AddressSpace.gmem}):
        raise CuteError(f"make_ptr: value {ptr!r} has no address in {space.name} memory; give a pointer into that")
    return ptr.address


@traced
def shared_address(x: Any, what: str) -> Any:
    """Return the shared-memory address in `x`, a Pointer to smem or an address as an integer."""
    if not isinstance(x, Pointer):
        return x
    if x.space is not AddressSpace.smem:
        raise CuteError(f"{what}: {x!r} must point to shared memory (AddressSpace.smem)")
    return x.address
