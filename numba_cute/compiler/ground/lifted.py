# SPDX-License-Identifier: Apache-2.0
"""A closure's code with its free variables as its first parameters."""

from __future__ import annotations

import dis
import functools
from types import CodeType, FunctionType
from typing import Any

from ... import seam

_ONE = frozenset(("LOAD_FAST", "STORE_FAST", "DELETE_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_AND_CLEAR"))
_TWO = frozenset(("LOAD_FAST_LOAD_FAST", "STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST"))
_CELL = frozenset(("MAKE_CELL", "LOAD_CLOSURE", "LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF"))
_FREE = frozenset(("LOAD_DEREF", "LOAD_CLASSDEREF"))


class NotLifted(Exception):
    """The code sets a free variable, hands it on to a function in it, or has too many variables."""


def sets_free(code: CodeType) -> str | None:
    """Return a free variable that code, or a function in it, sets, by `nonlocal`; None if there is none."""
    names = [i.argval for i in dis.get_instructions(code) if i.opname in ("STORE_DEREF", "DELETE_DEREF")]
    return next((n for n in (*names, *sorted(all_set_free(code))) if n in code.co_freevars), None)


@functools.cache
def all_set_free(code: CodeType) -> frozenset[str]:
    """Return all variables that the functions in code set, by `nonlocal`."""
    found: set[str] = set()
    for inner in (c for c in code.co_consts if isinstance(c, CodeType)):
        names = {i.argval for i in dis.get_instructions(inner) if i.opname in ("STORE_DEREF", "DELETE_DEREF")}
        found |= (names | all_set_free(inner)) & set(inner.co_freevars)
    return frozenset(found)


def lifted(code: CodeType) -> CodeType:
    """Return code that takes its free variables as its first arguments. NotLifted: it cannot."""
    if not hasattr(code, "co_exceptiontable"):
        return _lifted_310(code)
    count, text = len(code.co_freevars), bytearray(code.co_code)
    for i in dis.get_instructions(code):
        if i.opname == "COPY_FREE_VARS":
            text[i.offset : i.offset + 2] = bytes((dis.opmap["NOP"], 0))
        elif i.opname in _TWO:
            first, second = (i.arg or 0) >> 4, (i.arg or 0) & 15
            if max(first, second) + count > 15:
                raise NotLifted
            text[i.offset + 1] = (first + count) << 4 | second + count
        elif i.opname in _ONE or i.opname in _CELL:
            _put(text, i, code, count)
    return _replaced(code, bytes(text))


def _put(text: bytearray, i: dis.Instruction, code: CodeType, count: int) -> None:
    """Change the place of an instruction's variable; a free one is an argument."""
    at = (i.arg or 0) + count
    if i.argval in code.co_freevars and i.opname in _CELL:
        if i.opname not in _FREE:
            raise NotLifted
        text[i.offset], at = dis.opmap["LOAD_FAST"], code.co_freevars.index(i.argval)
    if at > 255 or (i.arg or 0) > 255:
        raise NotLifted
    text[i.offset + 1] = at


def _lifted_310(code: CodeType) -> CodeType:
    """Do so for Python 3.10, where cells and free variables have places of their own."""
    count, cells, text = len(code.co_freevars), len(code.co_cellvars), bytearray(code.co_code)
    for i in dis.get_instructions(code):
        at = i.arg or 0
        if i.opname in _ONE:
            at += count
        elif i.opname in _CELL and at >= cells:
            if i.opname not in _FREE:
                raise NotLifted
            text[i.offset], at = dis.opmap["LOAD_FAST"], at - cells
        else:
            continue
        if at > 255:
            raise NotLifted
        text[i.offset + 1] = at
    return _replaced(code, bytes(text))


def _replaced(code: CodeType, text: bytes) -> CodeType:
    count = len(code.co_freevars)
    return code.replace(
        co_code=text, co_freevars=(), co_varnames=code.co_freevars + code.co_varnames,
        co_argcount=code.co_argcount + count, co_nlocals=code.co_nlocals + count,
        co_posonlyargcount=code.co_posonlyargcount and code.co_posonlyargcount + count,
        co_flags=code.co_flags & ~16 | (64 if not code.co_cellvars else 0),
    )  # fmt: skip


_functions: dict[Any, FunctionType] = {}
_written: dict[tuple[str, CodeType], CodeType] = {}
"""By lifted code, which is as long, and its file, for code of two files may be equal, the code as the user wrote it."""


def written(code: CodeType) -> CodeType:
    """Return what code was before it was lifted; itself if it was not."""
    return _written.get((code.co_filename, code), code)


def lifted_function(
    code: CodeType, space: dict[str, Any], module: Any, defaults: tuple[Any, ...] | None,
    named: dict[str, Any] | None = None, is_traced: bool = False,
) -> FunctionType:  # fmt: skip
    """Return the function of lifted code, the same one each time for the same defaults. NotLifted: there is none.

    named: defaults of parameters that are given by name alone. is_traced: whether it is marked as traced.
    """
    held = (*(defaults or ()), *(named or {}).values())
    # the function keeps its globals alive
    key = code, id(space), tuple((type(d), d) for d in held), tuple(named or ()), is_traced
    try:
        found = _functions.get(key)
    except TypeError:  # a default that has no hash
        raise NotLifted from None
    if found is None:
        found = _functions[key] = FunctionType(lifted(code), space, code.co_name, defaults)
        found.__kwdefaults__ = named
        found.__module__ = module
        _written[found.__code__.co_filename, found.__code__] = code
        if is_traced:
            seam.traced(found)
    return found
