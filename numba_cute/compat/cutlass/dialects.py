# SPDX-License-Identifier: Apache-2.0
"""Functions of MLIR's dialects that files call in operations of their own: texts of PTX, and parts of vectors. Others
refuse to be called, and say what to write."""

from __future__ import annotations

import re
from typing import Any

from ... import arch, math as cute_math
from ...dtypes import Boolean, DType, Float32, Float64, Int16, Int32, Int64
from ...seam import CuteError, StaticEnum, current, traced
from ...tensor.ssa import TensorSSA
from ..ptx_text import as_type, meaning
from .tma_traits import atom_make_non_exec_tiled_tma_load

__all__ = [
    "AsmDialect",
    "absf",
    "atom_make_non_exec_tiled_tma_load",
    "bitcast",
    "extract",
    "extractvalue",
    "inline_asm",
]

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
    """An operand as its register has it."""
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
    """View the bits of a number as one of another type. res: that type. arg: the number."""
    if isinstance(arg, TensorSSA) or not isinstance(res, DType):
        raise CuteError(f"bitcast: {arg!r} as {res!r}: give a number and an element type; a vector has .bitcast(dtype)")
    return as_type(arg, res)


@traced
def absf(operand: Any, *, fastmath: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """Return absolute values. operand: a float, or a vector of such."""
    return cute_math.absf(operand)


class Operation:
    """A function of a dialect that is not here. name: its own."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: Any, **named: Any) -> Any:
        raise CuteError(
            f"{self.name}: Numba has no MLIR: write the function of cute.arch or cute.math that does it, or "
            "cute.arch.inline_ptx"
        )

    def __getattr__(self, name: str) -> Operation:
        if name.startswith("_"):
            raise AttributeError(name)
        return Operation(f"{self.name}.{name}")


def __getattr__(name: str) -> Operation:
    """Return what refuses to be called by a name."""
    if name.startswith("_"):
        raise AttributeError(name)
    return Operation(name)
