# SPDX-License-Identifier: Apache-2.0
"""Read a function's bytecode in the same words on every Python: an instruction that stands for two is two, and one that
came to be for speed has the name of what it does."""

from __future__ import annotations

import dis
import functools
import sys
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
    a global). value: what it speaks of: a constant, a name, the offset that it jumps to; of others nothing to count on.
    offset: in bytes. line: of the source, the last that is known."""

    name: str
    value: Any
    offset: int
    line: int | None


@functools.lru_cache(maxsize=4096)
def operations(code: CodeType) -> tuple[Operation, ...]:
    """Return what code does, without the functions in it."""
    return tuple(_operations(code))


def _operations(code: CodeType) -> Iterator[Operation]:
    for name, value, offset, line in _decoded(code) if knows_bytecode() else _told(code):
        if name in _BOTH:
            for one, of in zip(_BOTH[name], value):
                yield Operation(one, of, offset, line)
        elif name == "RETURN_CONST":
            yield Operation("LOAD_CONST", value, offset, line)
            yield Operation("RETURN_VALUE", None, offset, line)
        elif name not in _NONE:
            yield Operation(_NAMES.get(name, name), value, offset, line)


def _told(code: CodeType) -> Iterator[tuple[str, Any, int, int | None]]:
    """Yield each instruction's name, value, offset and line, as Python's `dis` tells them: on any Python, slowly."""
    line = None
    for i in dis.get_instructions(code):
        positions: Any = getattr(i, "positions", None)  # which Python 3.10 lacks
        found = positions.lineno if positions else i.starts_line
        line = line if found is None else int(found)
        yield i.opname, i.argval, i.offset, line


# ---------------------------------------------------------------- a Python that is known

_VERSION = sys.version_info[:2]
_SHIFTS = {(3, 11): {"LOAD_GLOBAL": 1}}.get(_VERSION, {"LOAD_GLOBAL": 1, "LOAD_ATTR": 1, "LOAD_SUPER_ATTR": 2})
"""By instructions that speak of a name, the bits of their argument below its number."""
_PAIRS = ("LOAD_FAST_LOAD_FAST", "STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST")


def _reader(op: int) -> tuple[str, str, int]:
    """Return an instruction's name, what its argument means, and how many bits of it stand below that."""
    name = dis.opname[op]
    if op in dis.hasconst:
        return name, "const", 0
    if op in dis.hasname:
        return name, "name", _SHIFTS.get(name, 0) if _VERSION > (3, 10) else 0
    if name in _PAIRS:
        return name, "pair", 0
    if op in dis.haslocal or op in dis.hasfree:
        return name, "free" if op in dis.hasfree and _VERSION == (3, 10) else "local", 0
    if op in dis.hasjabs:
        return name, "absolute", 0
    if op in dis.hasjrel:
        return name, "back" if "JUMP_BACKWARD" in name else "on", 0
    return name, "number" if op >= dis.HAVE_ARGUMENT else "", 0


def caches(op: int) -> int:
    """Return how many code units follow an instruction for the interpreter's own use."""
    held: Any = getattr(dis, "_inline_cache_entries", {op: 0})
    return int(held.get(dis.opname[op], 0) if _VERSION >= (3, 13) else held[op])


def _decoded(code: CodeType) -> Iterator[tuple[str, Any, int, int | None]]:
    """Yield the same as `_told`, at least four times as fast. (A value that is not a constant, name or offset is a
    number.)"""
    raw, consts, names = code.co_code, code.co_consts, code.co_names
    lines = iter(code.co_lines())
    until, line, at, more = -1, None, 0, 0
    while at < len(raw):
        while at >= until:
            _, until, found = next(lines)
            line = line if found is None else found
        op, arg = raw[at], raw[at + 1] | more
        name, kind, shift, size = _READERS[op]
        more = arg << 8 if name == "EXTENDED_ARG" else 0
        value: Any = arg
        if kind == "const":
            value = consts[arg]
        elif kind == "name":
            value = names[arg >> shift]
        elif kind == "local":
            value = _local(code, arg)
        elif kind == "pair":
            value = _local(code, arg >> 4), _local(code, arg & 15)
        elif kind == "free":
            value = (code.co_cellvars + code.co_freevars)[arg]
        elif kind == "absolute":
            value = 2 * arg
        elif kind == "on":
            value = at + size + 2 * arg
        elif kind == "back":
            value = at + size - 2 * arg
        elif not kind:
            value = None
        yield name, value, at, line
        at += size


def _local(code: Any, at: int) -> Any:
    return code.co_varnames[at] if _VERSION == (3, 10) else code._varname_from_oparg(at)


_READERS: list[Any] = [(*_reader(op), 2 + 2 * caches(op)) for op in range(256)] if knows_bytecode() else []
"""By number of an instruction: `_reader`'s, and its bytes with what follows it."""


# ---------------------------------------------------------------- what code speaks of by name

_NAMED = ("LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_DEREF", "LOAD_ATTR", "STORE_ATTR", "IMPORT_NAME")
_OF_NAMES: list[Any] = [
    (_NAMES.get(name, name), kind, shift, size) if _NAMES.get(name, name) in _NAMED else (name, None, 0, size)
    for name, kind, shift, size in _READERS
]
"""By number of an instruction: its name, what its argument means, None of those that speak of no name, and as above."""


class Named(NamedTuple):
    """A name that code speaks of. by: the operation's name, one of a global, a cell, an attribute or an import. name:
    what it names. follows: whether nothing is done between the one before and this."""

    by: str
    name: str
    follows: bool


@functools.lru_cache(maxsize=4096)
def names_in(code: CodeType) -> tuple[Named, ...]:
    """Return the names that code uses, without those of the functions in it. Only operations with names are read, which
    takes a tenth of the time of `operations`."""
    return tuple(_names_in(code) if knows_bytecode() else _named(operations(code)))


def _named(done: tuple[Operation, ...]) -> Iterator[Named]:
    before = -2
    for at, o in enumerate(done):
        if o.name in _NAMED:
            yield Named(o.name, o.value, at == before + 1)
            before = at


def _names_in(code: CodeType) -> Iterator[Named]:
    raw, names = code.co_code, code.co_names
    at, more, before, end = 0, 0, False, len(raw)
    while at < end:
        by, kind, shift, size = _OF_NAMES[raw[at]]
        if kind is not None:
            arg = raw[at + 1] | more
            if kind == "name":
                name = names[arg >> shift]
            else:
                name = _local(code, arg) if kind == "local" else (code.co_cellvars + code.co_freevars)[arg]
            yield Named(by, name, before)
            before, more = True, 0
        elif by == "EXTENDED_ARG":
            more = (raw[at + 1] | more) << 8
        else:
            before, more = by == "CACHE" and before, 0
        at += size


@functools.lru_cache(maxsize=4096)
def opnames(code: CodeType) -> frozenset[str]:
    """Return the names of the operations that code has, without those of the functions in it."""
    return frozenset(o.name for o in operations(code))


_DECIDING = frozenset(
    op for op, name in enumerate(dis.opname) if "_IF_" in name or "WITH" in name or name == "UNARY_NOT"
)


def decides(code: CodeType) -> bool:
    """Say whether code, or a function in it, may have a condition, a `not` or a `with`. (`not (x in y)` is none.)"""
    if not knows_bytecode() or not _DECIDING.isdisjoint(code.co_code[::2]):
        return True
    return any(decides(c) for c in code.co_consts if isinstance(c, CodeType))


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
