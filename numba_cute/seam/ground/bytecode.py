# SPDX-License-Identifier: Apache-2.0
"""What a function's bytecode holds, in the same words on every Python: an instruction that stands for two is two, and
one that came to be for speed has the name of what it does."""

from __future__ import annotations

import dis
import functools
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any, NamedTuple

from .pythons import Inside, knows_bytecode

_NAMES = {
    "LOAD_METHOD": "LOAD_ATTR", "LOAD_SUPER_ATTR": "LOAD_ATTR", "LOAD_FAST_CHECK": "LOAD_FAST",
    "LOAD_FAST_BORROW": "LOAD_FAST", "LOAD_SMALL_INT": "LOAD_CONST", "LOAD_CLASSDEREF": "LOAD_DEREF",
    "LOAD_FROM_DICT_OR_DEREF": "LOAD_DEREF", "LOAD_FROM_DICT_OR_GLOBALS": "LOAD_GLOBAL", "LOAD_NAME": "LOAD_GLOBAL",
}  # fmt: skip
_BOTH = {
    "LOAD_FAST_LOAD_FAST": ("LOAD_FAST", "LOAD_FAST"), "STORE_FAST_LOAD_FAST": ("STORE_FAST", "LOAD_FAST"),
    "STORE_FAST_STORE_FAST": ("STORE_FAST", "STORE_FAST"),
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": ("LOAD_FAST", "LOAD_FAST"),
}  # fmt: skip
_NONE = ("EXTENDED_ARG", "CACHE")


class Operation(NamedTuple):
    """One thing that code does. name: as Python 3.11 calls it (a method is read as an attribute, a name of a module as
    a global). value: what it speaks of: a constant, a name, the offset that it jumps to. offset: in bytes. line: of the
    source, the last that is known."""

    name: str
    value: Any
    offset: int
    line: int | None


@functools.lru_cache(maxsize=4096)
def operations(code: CodeType) -> tuple[Operation, ...]:
    """Return what code does, without the functions in it."""
    return tuple(_operations(code))


def _operations(code: CodeType) -> Iterator[Operation]:
    line = None
    for i in dis.get_instructions(code):
        positions: Any = getattr(i, "positions", None)  # which Python 3.10 lacks
        found = positions.lineno if positions else i.starts_line
        line = line if found is None else int(found)
        if i.opname in _BOTH:
            for name, value in zip(_BOTH[i.opname], i.argval):
                yield Operation(name, value, i.offset, line)
        elif i.opname == "RETURN_CONST":
            yield Operation("LOAD_CONST", i.argval, i.offset, line)
            yield Operation("RETURN_VALUE", None, i.offset, line)
        elif i.opname not in _NONE:
            yield Operation(_NAMES.get(i.opname, i.opname), i.argval, i.offset, line)


@functools.lru_cache(maxsize=4096)
def opnames(code: CodeType) -> frozenset[str]:
    """Return the names of the operations that code has, without those of the functions in it."""
    return frozenset(o.name for o in operations(code))


def operation_at(code: CodeType, offset: int) -> str:
    """Return the name of the instruction where a frame stands."""
    return dis.opname[code.co_code[offset]] if offset >= 0 else ""


def jumps(frame: FrameType) -> bool:
    """Return whether a frame is at a jump."""
    return "JUMP" in dis.opname[frame.f_code.co_code[frame.f_lasti]]


def handlers(code: CodeType) -> list[tuple[int, int]]:
    """Return, for each row of a code's table of exceptions, the offsets of its first instruction and its handler's."""
    return [(e.start, e.target) for e in getattr(dis.Bytecode(code), "exception_entries", ())]


# ---------------------------------------------------------------- a Python that is not known

_SHOWN = {
    "a = 1\nreturn a": ("LOAD_CONST", "STORE_FAST", "LOAD_FAST", "RETURN_VALUE"),
    "for i in x: y.z = i": ("FOR_ITER", "STORE_FAST", "STORE_ATTR"),
    "g(x)": ("LOAD_GLOBAL", "POP_TOP"),
    "g.h(x).i": ("LOAD_GLOBAL", "LOAD_ATTR"),
    "global g\ng = 1": ("STORE_GLOBAL",),
    "global g\ndel g": ("DELETE_GLOBAL",),
    "import g": ("IMPORT_NAME",),
    "from g import h": ("IMPORT_FROM",),
    "a, *b = x": ("UNPACK_EX",),
    "return {x, y}": ("BUILD_SET",),
    "yield x": ("YIELD_VALUE",),
    "def g():\n  nonlocal x\n  x = y": ("MAKE_FUNCTION",),
    "class g: a: int": ("LOAD_BUILD_CLASS",),
    "try: x()\nexcept y: pass": ("PUSH_EXC_INFO", "SETUP_FINALLY"),
    "with x: pass": ("BEFORE_WITH", "SETUP_WITH", "LOAD_SPECIAL"),
    "return f'{x}'": ("FORMAT_VALUE", "FORMAT_SIMPLE"),
}
"""Statements, and by which operations they are known: by all, or, of a keyword's, by one of them."""
_ANY = ("try", "with", "return f")


def _difference() -> str | None:
    """Say which statement is not known by its operations on a Python whose bytecode is not known."""
    if knows_bytecode():
        return None
    for text, wanted in _SHOWN.items():
        space: dict[str, Any] = {}
        exec("def f(x, y):\n " + text.replace("\n", "\n "), space)
        found = opnames(space["f"].__code__)
        if not (found & {*wanted} if text.startswith(_ANY) else found >= {*wanted}):
            return f"`{text.splitlines()[-1]}` is not {' and '.join(wanted)}"
    return None


READING = Inside(
    "bytecode", "what a kernel must not do is found late or not at all, and simulated lanes run one by one", _difference
)
"""That code says by its operations what it does."""
if not knows_bytecode():
    READING.holds  # noqa: B018 - asking is the test, and says what is wrong
