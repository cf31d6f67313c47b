# SPDX-License-Identifier: Apache-2.0
"""A kernel's code with Numba's operators in the place of Python's (`arithmetic.operators`): each becomes a call of a
function on what lies on the stack. Lines, names and everything else stay as they are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CodeType
from typing import Any

from ..arithmetic.number import from_python, wide
from ..arithmetic.operators import BINARY, INPLACE, UNARY, contains, lacks
from .bytecode import VERSION, Body, Instruction, decode, encode

_SYMBOLS = {"+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow",
            "<<": "lshift", ">>": "rshift", "&": "and_", "|": "or_", "^": "xor"}  # fmt: skip
_COMPARISONS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
_WORDS = {"ADD": "add", "SUBTRACT": "sub", "MULTIPLY": "mul", "TRUE_DIVIDE": "truediv", "FLOOR_DIVIDE": "floordiv",
          "MODULO": "mod", "POWER": "pow", "LSHIFT": "lshift", "RSHIFT": "rshift", "AND": "and_", "OR": "or_",
          "XOR": "xor"}  # fmt: skip
_UNARY = {"UNARY_NEGATIVE": "neg", "UNARY_POSITIVE": "pos", "UNARY_INVERT": "invert", "UNARY_NOT": "not_"}
_INTRINSIC_POSITIVE = 5
_MORE_STACK = 2


@functools.lru_cache(maxsize=4096)
def rewritten(code: CodeType) -> CodeType:
    """The code, and all the code inside it, with Numba's operators."""
    body = decode(code)
    consts = list(map(_constant, code.co_consts))
    out = replaced(body.instructions, consts)
    return encode(code, Body(out, _handlers(body, out)), tuple(consts), _MORE_STACK)


def _constant(value: Any) -> Any:
    """A constant as kernels have it: floats are numbers of a type, ints are static."""
    if isinstance(value, CodeType):
        return rewritten(value)
    if isinstance(value, tuple):
        return tuple(map(_constant, value))
    if type(value) is float:
        return from_python(value)
    return wide(value) if type(value) is int and value >= 1 << 63 and value < 1 << 64 else value


def _handlers(body: Body, out: list[Instruction]) -> list[Any]:
    """Handlers that begin where an instruction was that is gone, as they are now."""
    stays = set(map(id, out))
    assert all(id(h.start) in stays and id(h.target) in stays for h in body.handlers)
    return body.handlers


def replaced(instructions: list[Instruction], consts: list[Any]) -> list[Instruction]:
    """The instructions with calls of Numba's operators; `consts` gets the functions that they call."""
    out: list[Instruction] = []
    for at, i in enumerate(instructions):
        f, count = operator_of(i)
        following = instructions[at + 1] if at + 1 < len(instructions) else None
        if f is None:
            dropped = i.name == "TO_BOOL" and following is not None and following.name == "UNARY_NOT"
            if dropped:  # the operator takes what is no bool
                _become(i, "NOP")
            out.append(i)
            continue
        out += _call(i, f, count, consts)
        if VERSION >= (3, 13) and following is not None and following.name.startswith("POP_JUMP_IF_"):
            out.append(Instruction("TO_BOOL", 0, i.position))  # it takes nothing but bools
    return out


def operator_of(i: Instruction) -> tuple[Callable[..., Any] | None, int]:
    """What stands for an instruction, and how many operands it takes; (None, 0) if it is no operator."""
    name = i.name
    if name == "BINARY_OP":
        inplace = i.value.endswith("=")
        found = _SYMBOLS.get(i.value[:-1] if inplace else i.value)
        return ((INPLACE if inplace else BINARY)[found], 2) if found is not None else (None, 0)
    if name == "COMPARE_OP":
        symbol = i.value.removeprefix("bool(").removesuffix(")")
        return (BINARY[_COMPARISONS[symbol]], 2) if symbol in _COMPARISONS else (None, 0)
    if name == "CONTAINS_OP":
        return (_lacks if i.arg else _contains), 2
    if name in _UNARY:
        return UNARY[_UNARY[name]], 1
    if name == "CALL_INTRINSIC_1" and i.arg == _INTRINSIC_POSITIVE:
        return UNARY["pos"], 1
    kind, _, word = name.partition("_")
    if kind in ("BINARY", "INPLACE") and word in _WORDS:
        return (BINARY if kind == "BINARY" else INPLACE)[_WORDS[word]], 2
    return None, 0


def _contains(x: Any, container: Any) -> bool:
    return contains(container, x)


def _lacks(x: Any, container: Any) -> bool:
    return lacks(container, x)


def _become(i: Instruction, name: str, arg: int = 0) -> None:
    """Make an instruction another, which is jumped to as before."""
    made = Instruction(name, arg)
    i.name, i.opcode, i.arg, i.target, i.value = name, made.opcode, arg, None, None


def _call(i: Instruction, f: Callable[..., Any], count: int, consts: list[Any]) -> list[Instruction]:
    """A call of `f` on the values on top of the stack: `f` is put below them."""
    _become(i, "LOAD_CONST", constant(f, consts))
    return [i, *call_below(count, i.position)]


def constant(value: Any, consts: list[Any]) -> int:
    """The place of a value among the constants."""
    for at, x in enumerate(consts):
        if x is value:
            return at
    consts.append(value)
    return len(consts) - 1


def call_below(count: int, position: Any) -> list[Instruction]:
    """Call the function on top of the stack on the `count` values below it."""
    if VERSION < (3, 11):
        return [
            Instruction("ROT_TWO" if count == 1 else "ROT_THREE", 0, position),
            Instruction("CALL_FUNCTION", count, position),
        ]
    out = [Instruction("SWAP", n, position) for n in range(count + 1, 1, -1)]
    if VERSION < (3, 12):  # the first operand is in the place of a method's object
        out.append(Instruction("PRECALL", count - 1, position))
    return [*out, Instruction("CALL", count - 1, position)]
