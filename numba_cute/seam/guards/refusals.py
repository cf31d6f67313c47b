# SPDX-License-Identifier: Apache-2.0
"""Find the wrong argument of a call, and say in words what is expected.

A call that fails with another exception than a CuteError is judged here (`refusal`): the argument whose kind is wrong
is named, or the field of the object whose method it is; else the one that lacks what was asked of it, is called and
raises, or holds the number that cannot be computed with. Where none is to blame, the library is (`InternalError`).
"""

from __future__ import annotations

import enum
import functools
import inspect
import re
import traceback
import types
import typing
from dataclasses import is_dataclass
from typing import Any

from ..ground.bytecode import operation_at
from ..ground.error import OF_THE_SYSTEM, CuteError, internal_error
from ..ground.leaf import Leaf
from ..ground.naming import described, shown
from ..ground.packages import is_library
from ..marks.decorators import is_frozen_class, is_struct_class, judge_made
from .kinds import DEEPEST, Kind, fields_of, kinds_of

_NO_SEQUENCE = re.compile(r"is not (iterable|subscriptable)|has no len|non-iterable")


class NoSuchIndex(CuteError, IndexError):
    """An index that is not there: who goes through an object by its indices expects an IndexError."""


NoSuchIndex.__module__ = CuteError.__module__


def refusal(
    fn: Any, args: tuple[Any, ...], named: dict[str, Any], e: Exception, line: tuple[str, int] | None = None
) -> Exception:
    """Return the error for a call, with arguments that the function takes, that ended in an exception of Python's: of
    the argument that is wrong, or an InternalError where none is; the exception itself where it is of the system. line:
    the user's, which made the call."""
    fn = inspect.unwrap(fn)
    values = inspect.signature(fn).bind(*args, **named).arguments
    given = ", ".join(f"{n}={shown(x)}" for n, x in values.items())
    if isinstance(e, IndexError) and fn.__name__ == "__getitem__" and _last_frame(e).f_code is fn.__code__:
        return NoSuchIndex(f"{fn.__qualname__}({given}): there is no such element: {e}")
    owner, _, name = fn.__qualname__.rpartition(".")
    owner = owner.rpartition(".")[2]
    what = f"{owner}.{name}" if owner and owner != "<locals>" else name
    what = owner if name == "__init__" else what
    found = _of_kinds(fn, what, values) or _of_values(fn, what, values, e)
    if found is None and isinstance(e, OF_THE_SYSTEM):
        return e
    return found or internal_error(f"{what}({given})", e, line)


def _last_frame(e: BaseException) -> types.FrameType:
    return [frame for frame, _ in traceback.walk_tb(e.__traceback__)][-1]


def _of_kinds(fn: Any, what: str, values: dict[str, Any]) -> CuteError | None:
    for name, x, kind in _judged(fn, values):
        if not kind.holds(x):
            return _expected(f"`{name}` of `{what}`", x, kind)
    return next((said for x in values.values() if (said := _of_fields(x)) is not None), None)


def _judged(fn: Any, values: dict[str, Any]) -> typing.Iterator[tuple[str, Any, Kind]]:
    """The values of parameters, with their kinds; those that are given more than once, each."""
    known = inspect.signature(fn).parameters
    is_init = fn.__name__ == "__init__"
    for name, x in values.items():
        if is_init and name == "self":
            continue
        kind, p = kinds_of(fn).get(name), known[name]
        if kind is None or p.default is x and x is not p.empty:
            continue
        if p.kind is p.VAR_POSITIONAL:
            yield from ((name, y, kind) for y in x)
        elif p.kind is not p.VAR_KEYWORD:
            yield name, x, kind


def _of_fields(x: Any, depth: int = 0) -> CuteError | None:
    """An object of this library with a field of a wrong kind."""
    cls: Any = type(x)
    if not is_library(cls.__module__) or not (is_frozen_class(cls) or is_struct_class(cls)) or depth > 3:
        return None
    held = getattr(x, "__dict__", {})
    for name, kind in fields_of(cls).items():
        if name in held and not kind.holds(held[name]) and not _is_default(cls, name, held[name]):
            return _expected(f"`{name}` of the {cls.__name__} {shown(x)}", held[name], kind)
    return next((said for y in held.values() if (said := _of_fields(y, depth + 1)) is not None), None)


def _is_default(cls: Any, name: str, x: Any) -> bool:
    return getattr(cls, name, inspect.Parameter.empty) is x


def check_fields(x: Any) -> None:
    """Refuse an object one of whose own fields is of another kind than its class says."""
    cls: Any = type(x)
    held = x.__dict__
    for name, kind, default in _judged_fields(cls):
        value = held.get(name, default)
        if value is not default and not kind.holds(value):
            raise _expected(f"`{name}` of `{cls.__name__}`", value, kind)


@functools.cache
def _judged_fields(cls: Any) -> tuple[tuple[str, Kind, Any], ...]:
    """The fields of a class that have a kind, with what they are if none is given."""
    return tuple((name, kind, getattr(cls, name, inspect.Parameter.empty)) for name, kind in fields_of(cls).items())


judge_made(check_fields)


def _expected(which: str, x: Any, kind: Kind) -> CuteError:
    if _depth(x) >= DEEPEST:
        return _too_deep(which)
    make = f" (make one with {kind.make})" if kind.make else ""
    return CuteError(f"{which} is {described(x)}: expected is {kind.words}{make}")


def _too_deep(which: str) -> CuteError:
    return CuteError(f"{which} is nested {DEEPEST} levels deep or more: give tuples of fewer levels")


def _depth(x: Any) -> int:
    level, deep = [x], 0
    while level and deep < DEEPEST:
        level = [z for y in level for z in _held(y)][:1000]
        deep += bool(level)
    return deep


def _held(x: Any) -> list[Any]:
    """List what a tuple, a list or a dict holds, or an object in its fields."""
    if isinstance(x, (tuple, list)):
        return list(x[:1000])
    if isinstance(x, dict):
        return [*x.keys(), *x.values()][:1000]
    if isinstance(x, type) or not (is_dataclass(x) or is_struct_class(type(x))):
        return []
    return [y for name, y in getattr(x, "__dict__", {}).items() if not name.startswith("_")]


# ------------------------------------------------------------------ values of the right kind


def _of_values(fn: Any, what: str, values: dict[str, Any], e: BaseException) -> CuteError | None:
    given = [(n, x) for n, x in values.items()]
    deep = next((n for n, x in given if _depth(x) >= DEEPEST), None)
    if deep is not None:
        return _too_deep(f"`{deep}` of `{what}`")
    if isinstance(e, AttributeError):
        return _lacking(fn, what, given, e)
    if isinstance(e, KeyError) and e.args:
        none = next((n for n, x in given if x is e.args[0] and isinstance(x, (str, int, enum.Enum))), None)
        if none is not None:
            return CuteError(
                f"`{none}` of `{what}` is {described(e.args[0])}: there is none such{_documented(fn, none)}"
            )
    if isinstance(e, ValueError) and "null byte" in str(e):
        zero = next((n for n, x in given if isinstance(x, str) and "\0" in x), None)
        if zero is not None:
            return CuteError(f"`{zero}` of `{what}` has a zero character, which no path of a file has")
    if isinstance(e, ZeroDivisionError):
        return _first(what, given, lambda y: y == 0, "has a 0, by which nothing is divided: give 1 or more")
    if isinstance(e, (OverflowError, MemoryError)):
        large = "is larger than what can be computed with here: give numbers below 2**63"
        return _first(what, given, lambda y: abs(y) >= 1 << 24, large)
    return _called(what, given, e) or _named(fn, what, given, e)


def _lacking(fn: Any, what: str, given: list[tuple[str, Any]], e: AttributeError) -> CuteError | None:
    """An object that lacks an attribute: the argument that it is, or is in. That one of this library's lacks what its
    own methods ask of it is not an argument's fault."""
    for name, x in given:
        if name == "self" and x is e.obj and is_library(type(x).__module__) or e.name is None:
            continue
        if any(y is e.obj for y in _parts(x)) and inspect.getattr_static(type(e.obj), e.name, None) is None:
            inside = "" if x is e.obj else f", in which {described(e.obj)}"
            value = described(x) if x is e.obj else shown(x)
            return CuteError(f"`{name}` of `{what}` is {value}{inside}, has no `{e.name}`{_documented(fn, name)}")
    return None


def _parts(x: Any) -> list[Any]:
    """A value, and what its tuples and fields hold."""
    found, level = [x], [x]
    for _ in range(4):
        level = [z for y in level for z in _held(y)[:100]]
        found += level
    return found


def _first(what: str, given: list[tuple[str, Any]], is_it: Any, rule: str) -> CuteError | None:
    for name, x in given:
        for y in _parts(x):
            if type(y) is int and is_it(y):
                return CuteError(f"`{name}` of `{what}` is {shown(x)}: it {rule}")
    return None


def _named(fn: Any, what: str, given: list[tuple[str, Any]], e: BaseException) -> CuteError | None:
    """A value which Python's words name, by itself or its type: one for a parameter whose kind no annotation says, or
    one inside of another. Numbers and None are everywhere: of them only that they are no sequence is said."""
    known, text = kinds_of(fn), str(e)
    for name, x in given:
        if isinstance(e, TypeError) and callable(x) and _is_called_otherwise(x, text):
            return CuteError(f"`{name}` of `{what}` is {described(x)}, which is called otherwise: {text}")
        for y in _parts(x) if name != "self" else ():
            if (name not in known or y is not x) and (_is_no_sequence(y, text) if _is_scalar(y) else _is_in(y, text)):
                inside = "is" if y is x else "has in it"
                return CuteError(f"`{name}` of `{what}` {inside} {described(y)}{_documented(fn, name)}")
    return None


def _is_scalar(x: Any) -> bool:
    return isinstance(x, (int, float, Leaf, type(None)))


def _is_no_sequence(x: Any, text: str) -> bool:
    """Say whether Python's words are that such a number, or None, was taken for a sequence."""
    return _NO_SEQUENCE.search(text) is not None and re.search(rf"\b{type(x).__name__}\b", text) is not None


def _called(what: str, given: list[tuple[str, Any]], e: BaseException) -> CuteError | None:
    """A class or a builtin that was given as a function, where the library's line that failed calls: what that raises
    no frame of the user's would tell. What a user's function raises passes as it is."""
    at = [t for t in _tracebacks(e) if is_library(t.tb_frame.f_globals.get("__name__", ""))][-1]
    operation = operation_at(at.tb_frame.f_code, at.tb_lasti)
    if not operation.startswith("CALL"):
        return None
    called = [
        f"`{name}` of `{what}` is {described(x)}"
        for name, x in given
        if name != "self" and callable(x) and not hasattr(x, "__code__") and not is_frozen_class(type(x))
    ]
    return CuteError(f"{' or '.join(called)}, which is called and raises {type(e).__name__}: {e}") if called else None


def _tracebacks(e: BaseException) -> typing.Iterator[types.TracebackType]:
    trace = e.__traceback__
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _is_called_otherwise(f: Any, text: str) -> bool:
    """Say whether Python's words are that `f` was called with arguments that it does not take."""
    names = {getattr(f, "__qualname__", ""), getattr(type(f).__call__, "__qualname__", "")} - {""}
    return any(re.match(rf"{re.escape(n)}(\.__init__)?\(\) (takes|missing|got)\b", text) for n in names)


def _is_in(x: Any, text: str) -> bool:
    called = f"{getattr(x, '__qualname__', '')}()"
    return shown(x) in text or called in text or re.search(rf"\b{type(x).__name__}\b", text) is not None


def _documented(fn: Any, name: str) -> str:
    """Return the sentence of a function's documentation on a parameter, before its examples."""
    text = " ".join((fn.__doc__ or "").partition(">>>")[0].split())
    found = [s for s in text.split(". ") if s.startswith(f"{name}:") or f"`{name}`" in s or f" {name}:" in s]
    return f'; the documentation: "{found[0].rstrip(".")}"' if found else ""
