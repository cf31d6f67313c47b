# SPDX-License-Identifier: Apache-2.0
"""Functions of MLIR's dialects that files call in operations of their own: texts of PTX, parts of vectors, pointers of
another space, TMA loads. Others refuse to be called, and say what to write."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from ... import arch, math as cute_math
from ...dtypes import Boolean, DType, Float32, Float64, Int16, Int32, Int64, Scalar
from ...seam import CuteError, StaticEnum, current, current_or, traced
from ...seam.ground.naming import shown
from ...tensor.pointer import AddressSpace, Pointer
from ...tensor.ssa import TensorSSA
from ...tilelang import cpasync
from ..ptx_registers import as_type
from ..ptx_text import meaning
from .tma_traits import atom_make_non_exec_tiled_tma_load
from .vectors import VectorType, bits_as, from_elements

__all__ = [
    "AddressSpace", "AsmDialect", "CpAsyncBulkTensorGlobalToSharedClusterOp", "PointerType", "StructType",
    "TMALoadMode", "absf", "addrspacecast", "atom_make_non_exec_tiled_tma_load", "bitcast", "elect_sync",
    "extract", "extractvalue", "inline_asm", "intr_ctlz", "maximumf", "maxnumf", "minimumf", "minnumf",
    "from_elements", "ptrtoint",
]  # fmt: skip

_REGISTERS = {"h": Int16, "r": Int32, "l": Int64, "f": Float32, "d": Float64}
"""By their letters in constraints, the types of registers."""


class AsmDialect(StaticEnum):
    """The spelling of a text."""

    AD_ATT = 0
    AD_Intel = 1


@traced
def inline_asm(
    res: Any, operands_: Any, asm_string: str, constraints: str, *, has_side_effects: bool = False,
    is_align_stack: bool = False, asm_dialect: Any = None, tail_call_kind: Any = None, loc: Any = None, ip: Any = None,
) -> Any:  # fmt: skip
    """Put PTX into the kernel, as `cute.arch.inline_ptx` does; the simulator does what the instructions in it do.

    res: the type of what it writes; None: nothing. operands_: the numbers that it reads. asm_string: the text; `$0`,
    `$1`, … are what it writes and then what it reads. constraints: their registers, "=r,f,l": h, r, l, f, d; or i of a
    constant. Others: taken. CuteError: another constraint, operands of another number; in the simulator an instruction
    that it does not know.
    """
    given = [c for c in constraints.replace(" ", "").split(",") if c and not c.startswith("~")]
    writes = [_register(c[1:], asm_string) for c in given if c.startswith("=")]
    reads = [c for c in given if not c.startswith("=")]
    if len(reads) != len(operands_):
        raise CuteError(
            f"inline_asm: constraints {constraints!r} have {len(reads)} operands, and {len(operands_)} come"
        )
    read = [_read(x, c, asm_string) for x, c in zip(operands_, reads)]
    made = arch.inline_ptx(
        _numbered(asm_string), write_only_types=tuple(writes), read_only_args=tuple(read),
        meaning=meaning(asm_string, writes),
    )  # fmt: skip
    if len(writes) != 1 or not isinstance(res, DType):
        return made
    if res == Boolean:
        return made != 0
    return as_type(made, res)


def _register(letter: str, text: str) -> DType:
    if letter not in _REGISTERS:
        raise CuteError(f"inline_asm: constraint {letter!r} of {text!r}: registers are {', '.join(_REGISTERS)}")
    return _REGISTERS[letter]


def _read(x: Any, letter: str, text: str) -> Any:
    """An operand as its register has it: of a pointer the address."""
    x = x.toint() if isinstance(x, Pointer) else x
    if letter in ("i", "n"):
        return Int32(x)
    register = _register(letter, text)
    return register(x) if current().type_of(x) == Boolean else as_type(x, register)


def _numbered(text: str) -> str:
    return re.sub(r"\$\{(\d+)(:\w+)?\}", r"$\1", text)


@traced
def extractvalue(res: Any, container: Any, position: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """Return one of several numbers that a text wrote. res: its type. container: they. position: its index, in a
    list."""
    found = container[position[0]]
    return as_type(found, res) if isinstance(res, DType) else found


@traced
def extract(source: Any, dynamic_position: Any, static_position: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """Return an element of a vector. source: it. dynamic_position: nothing. static_position: its index, in a list."""
    if list(dynamic_position):
        raise CuteError("vector.extract: dynamic_position: an element's index must be static")
    return source[static_position[0]]


@traced
def bitcast(res: Any, arg: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """View the bits of a number, or of a vector that `from_elements` made, as another type's. res: that type. arg: the
    number."""
    if isinstance(res, VectorType) and isinstance(arg, TensorSSA) and len(arg.shape) == 1:
        return bits_as(res, arg)
    if isinstance(arg, TensorSSA) or not isinstance(res, DType):
        raise CuteError(f"bitcast: {arg!r} as {res!r}: give a number and an element type; a vector has .bitcast(dtype)")
    return as_type(arg, res)


@traced
def absf(operand: Any, *, fastmath: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """Return absolute values. operand: a float, or a vector of such."""
    return cute_math.absf(operand)


@traced
def maxnumf(lhs: Any, rhs: Any, *, fastmath: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """Return the greater of two floats, the number where one is NaN. lhs, rhs: they, or vectors of them."""
    return cute_math.max(lhs, rhs)


@traced
def minnumf(lhs: Any, rhs: Any, *, fastmath: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """Return the lesser of two floats, the number where one is NaN. lhs, rhs: they, or vectors of them."""
    return cute_math.min(lhs, rhs)


@traced
def maximumf(lhs: Any, rhs: Any, *, fastmath: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """Return the greater of two floats, NaN where one is. lhs, rhs: they, or vectors of them."""
    return cute_math.max(lhs, rhs, propagate_nan=True)


@traced
def minimumf(lhs: Any, rhs: Any, *, fastmath: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """Return the lesser of two floats, NaN where one is. lhs, rhs: they, or vectors of them."""
    return cute_math.min(lhs, rhs, propagate_nan=True)


@traced
def intr_ctlz(in_: Any, is_zero_poison: bool, *, loc: Any = None, ip: Any = None) -> Any:
    """Count the leading zero bits of an integer; its width of 0. in_: the integer. is_zero_poison: taken; the count of
    0 is always that."""
    if current_or(None) is None:
        width = in_.dtype.width if isinstance(in_, Scalar) else 32
        return Int32(width - (int(getattr(in_, "value", in_)) % (1 << width)).bit_length())
    return arch.clz(in_, width=current().type_of(in_).width)


class StructType:
    """The type of several values."""

    @staticmethod
    @traced
    def get_literal(elements: Any) -> tuple[Any, ...]:
        """Return the type of values of these types, in a list."""
        return tuple(elements)


class PointerType:
    """The type of pointers."""

    @staticmethod
    @traced
    def get(address_space: Any = AddressSpace.generic.value) -> AddressSpace:
        """Return the memory space of a number."""
        return AddressSpace(address_space)


@traced
def addrspacecast(res: Any, arg: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """Return a pointer as one into another memory space. res: what `PointerType.get(space)` gave. arg: the pointer,
    which is generic, or into that memory, or is to become generic. CuteError: it is into another."""
    if res in (arg.space, AddressSpace.generic):
        return arg
    if arg.space is not AddressSpace.generic:
        raise CuteError(f"addrspacecast: {arg!r} does not point into {res.name}")
    return replace(arg, space=res)


@traced
def ptrtoint(res: Any, arg: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """Give the address that a pointer holds, of its memory space. res: the type of the number, Int32 or Int64. arg:
    the Pointer. CuteError: it is none."""
    if not isinstance(arg, Pointer):
        raise CuteError(f"ptrtoint: arg {shown(arg)} is not a pointer; give what `.llvm_ptr` of one is")
    return res(arg.toint())


@traced
def elect_sync(*, loc: Any = None, ip: Any = None) -> Any:
    """Elect one lane of the warp, as `cute.arch.elect_one`."""
    return arch.elect_one()


class TMALoadMode(StaticEnum):
    """Name the mode of a TMA load: TILE loads a box of the tensor, IM2COL a box of pixels (im2col)."""

    TILE = 0
    IM2COL = 1


@traced
def CpAsyncBulkTensorGlobalToSharedClusterOp(  # noqa: N802 - the dialect's name
    dstMem: Any, tmaDescriptor: Any, coordinates: Any, mbar: Any, im2colOffsets: Any, *, predicate: Any = None,  # noqa: N803
    multicastMask: Any = None, l2CacheHint: Any = None, mode: Any = None, loc: Any = None, ip: Any = None,  # noqa: N803
) -> None:  # fmt: skip
    """Load a box by TMA, in the threads where a predicate holds. PTX cp.async.bulk.tensor, sm_90.

    dstMem: where to, in shared memory. tmaDescriptor: the tensor map. coordinates: innermost first, in a list. mbar:
    the barrier, which expects the bytes. im2colOffsets: a list, empty but for TMALoadMode.IM2COL. predicate: a Boolean;
    None: all threads. mode: TMALoadMode.TILE by default. CuteError: multicastMask or l2CacheHint, which `cute.copy`
    takes.
    """
    if multicastMask is not None or l2CacheHint is not None or mode not in (None, *TMALoadMode):
        raise CuteError(
            "CpAsyncBulkTensorGlobalToSharedClusterOp: multicastMask, l2CacheHint and modes other than TILE and "
            "IM2COL: use cute.copy, with mcast_mask and cache_policy"
        )
    offsets = tuple(im2colOffsets) if mode is TMALoadMode.IM2COL else None

    def load() -> None:
        cpasync.tma_load(tmaDescriptor, mbar, dstMem, tuple(coordinates), im2col_offsets=offsets)

    if predicate is None:
        load()
    else:
        current().when(predicate, load)


class Operation:
    """A function or a class of a dialect that is not here. name: its own."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: Any, **named: Any) -> Any:
        raise CuteError(
            f"{self.name}: Numba has no MLIR: write the function of cute.arch or cute.math that does it, or "
            "cute.arch.inline_ptx"
        )

    def __getattr__(self, name: str) -> Operation:
        if name.startswith("_") or not self.name[0].isupper():  # of a function Numba asks, and there is nothing
            raise AttributeError(name)
        return Operation(f"{self.name}.{name}")


def __getattr__(name: str) -> Operation:
    """Return what refuses to be called by a name."""
    if name.startswith("_"):
        raise AttributeError(name)
    return Operation(name)
