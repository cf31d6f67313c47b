# SPDX-License-Identifier: Apache-2.0
"""Kinds of arguments, as the annotations of the library's functions and fields say them: which argument of a call is
of a wrong kind, and in words what is expected.

A call that fails with another exception than a CuteError is judged here (`refusal`): the argument whose kind is wrong
is named, or the field of the object whose method it is; else the one that lacks what was asked of it, or holds the
number that cannot be computed with. Where none is to blame, the library is (`InternalError`). Annotations are read
then, not before. An annotation `Annotated[Any, Kind(...)]` says what Python's types do not.
"""

from __future__ import annotations

import collections.abc
import enum
import functools
import inspect
import operator
import re
import sys
import traceback
import types
import typing
from dataclasses import dataclass, is_dataclass
from typing import Any

from ..ground.error import OF_THE_SYSTEM, CuteError, internal_error
from ..ground.leaf import Leaf
from ..ground.naming import article, described, shown
from ..ground.packages import is_library
from ..ground.places import is_users_error
from ..marks.decorators import ArrayView, is_static_class, is_struct_class, judge_made

_NO_SEQUENCE = re.compile(r"is not (iterable|subscriptable)|has no len|non-iterable")
DEEPEST = 100
"""So deep may tuples be nested: further than that Python's recursion may not reach."""


@dataclass(frozen=True)
class Kind:
    """What an argument may be. words: that, with an article. holds: whether a value is such. make: how one is made."""

    words: str
    holds: typing.Callable[[Any], bool]
    make: str = ""


class NoSuchIndex(CuteError, IndexError):
    """An index that is not there: who goes through an object by its indices expects an IndexError."""


NoSuchIndex.__module__ = CuteError.__module__


# ------------------------------------------------------------------ kinds of annotations


def is_number(x: Any) -> bool:
    """Return whether `x` is a number, of Python, NumPy or a kernel."""
    return isinstance(x, (int, float, Leaf)) or getattr(x, "shape", None) == () and hasattr(x, "dtype")


def is_integer(x: Any) -> bool:
    """Return whether `x` is an integer that is no truth value, or a number known only at run time."""
    if type(x) is int:
        return True
    if isinstance(x, Leaf):
        dtype = getattr(x, "dtype", None)
        return dtype is None or getattr(dtype, "is_integer", True)
    return not isinstance(x, bool) and not hasattr(type(x), "__len__") and _is_index(x)


def _is_index(x: Any) -> bool:
    try:
        operator.index(x)
    except (TypeError, ValueError, OverflowError, CuteError):
        return False
    return True


def is_nested(x: Any, leaf: typing.Callable[[Any], bool]) -> bool:
    """Return whether `x` is a leaf, or a tuple or list of such, not nested too deep."""
    level = [x]
    for _ in range(DEEPEST):
        if not all(isinstance(y, (tuple, list)) or leaf(y) for y in level):
            return False
        level = [z for y in level if isinstance(y, (tuple, list)) for z in y]
        if not level:
            return True
    return False


def _is_coordinate(x: Any) -> bool:
    return is_nested(x, lambda y: y is None or is_integer(y) or is_static_class(type(y)))


def _is_layout(x: Any) -> bool:
    return is_static_class(type(x)) and hasattr(type(x), "get_flat_coord") or hasattr(x, "outer")


COORDINATE = Kind("an integer, None or a tuple of such", _is_coordinate)
LAYOUT = Kind("a layout", _is_layout, "cute.make_layout")
TILER = Kind(
    "an integer, a layout, None or a tuple of such",
    lambda x: is_nested(x, lambda y: y is None or is_integer(y) or _is_layout(y)),
)
DOMAIN = Kind(
    "a layout, a tensor, an integer or a tuple of such",
    lambda x: is_nested(x, lambda y: y is None or is_integer(y) or is_static_class(type(y)) or hasattr(y, "shape")),
)
TENSOR = Kind(
    "a tensor",
    lambda x: (
        not isinstance(x, type)
        and hasattr(x, "shape")
        and (hasattr(x, "element_type") or hasattr(x, "dtype") and not is_number(x))
    ),
    "cute.make_tensor",
)
INTEGER = Kind("an integer", is_integer)
NUMBER = Kind("a number", is_number)
TRUTH = Kind("True or False", lambda x: isinstance(x, (bool, int, Leaf)) or type(x).__name__ in ("bool_", "bool"))
TEXT = Kind("a text", lambda x: isinstance(x, str))
NONE = Kind("None", lambda x: x is None)
CALLABLE = Kind("a function", callable)
FUNCTION = Kind(
    "a Python function or an object with a __call__",
    lambda x: (
        callable(x)
        and not isinstance(x, type)
        and not is_static_class(type(x))
        and not hasattr(x, "__cute_element__")
        and not isinstance(x, types.BuiltinFunctionType)
    ),
)
PIPELINE = Kind("a pipeline of cute.pipeline", lambda x: hasattr(x, "producer_acquire") or hasattr(x, "consumer_wait"))
AnyPipeline = typing.Annotated[Any, PIPELINE]
UserFunction = typing.Annotated[Any, FUNCTION]
Domain = typing.Annotated[Any, DOMAIN]
Tiler = typing.Annotated[Any, TILER]
Coordinate = typing.Annotated[Any, COORDINATE]
"""Annotations of these kinds, where Python's types say too little; type checkers take them for Any."""
ANYTHING = (Any, object, inspect.Parameter.empty)
_OF_TYPES: dict[Any, Kind] = {
    int: INTEGER, float: NUMBER, bool: TRUTH, str: TEXT, type(None): NONE, None: NONE, Leaf: NUMBER,
    bytes: Kind("bytes", lambda x: isinstance(x, (bytes, bytearray, memoryview))),
    collections.abc.Callable: CALLABLE,
}  # fmt: skip


def kind_of_annotation(annotation: Any) -> Kind | None:
    """What an annotation stands for; None if it says nothing."""
    if annotation in ANYTHING or isinstance(annotation, (str, typing.TypeVar)):
        return None
    if annotation in _OF_TYPES:
        return _OF_TYPES[annotation]
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return next((p for p in parts[1:] if isinstance(p, Kind)), None) or kind_of_annotation(parts[0])
    if origin in (typing.Union, types.UnionType):
        return _one_of([kind_of_annotation(p) for p in parts], {p for p in parts if isinstance(p, type)})
    if origin is typing.Literal:
        return Kind(" or ".join(map(repr, parts)), lambda x: any(x is p or x == p for p in parts))
    if origin in (tuple, list, collections.abc.Sequence, collections.abc.Iterable):
        return _sequence(parts)
    if origin is not None:
        return kind_of_annotation(origin)
    return _of_class(annotation)


def _one_of(kinds: list[Kind | None], classes: set[Any]) -> Kind | None:
    if {int, Leaf} <= classes or {float, Leaf} <= classes:  # the aliases Int and Number
        number = NUMBER if float in classes else INTEGER
        kinds = [number, *(k for k in kinds if k not in (INTEGER, NUMBER))]
    known = [k for k in kinds if k is not None]
    if len(known) < len(kinds):
        return None
    words = [k.words for k in known]
    made = next((k.make for k in known if k.make), "")
    text = ", ".join(words[:-1]) + " or " + words[-1] if len(words) > 1 else words[0]
    return Kind(text, lambda x: any(k.holds(x) for k in known), made)


def _sequence(parts: tuple[Any, ...]) -> Kind:
    inner = [kind_of_annotation(p) for p in parts if p is not Ellipsis]
    count = len(inner) if parts and Ellipsis not in parts and len(parts) > 1 else None

    def holds(x: Any) -> bool:
        if not isinstance(x, (tuple, list)) or count is not None and len(x) != count:
            return False
        kinds = inner if count is not None else inner[:1] * len(x)
        return all(k is None or k.holds(y) for k, y in zip(kinds, x))

    plural = "a tuple" if count is None else f"a tuple of {count}"
    first = inner[0].words.partition(" ")[2] if inner and inner[0] is not None else ""
    each = f"{plural}{' of' if count is None else ''} {first}s" if first and len(set(inner)) == 1 else plural
    return Kind(each, holds)


def _stands_in(x: Any) -> bool:
    """Whether a value is what an engine has for another, as the compiler has for a struct; a number is only itself."""
    return type(x).__module__.startswith(("numba_cute.compiler", "numba_cute.sim")) and not isinstance(x, Leaf)


def _of_class(cls: Any) -> Kind | None:
    if getattr(cls, "__cute_element__", False) and not isinstance(cls, type):  # a DType as an annotation: a number
        return NUMBER
    if not isinstance(cls, type):
        return None
    name = f"cute.{cls.__name__}" if is_library(cls.__module__) else cls.__name__
    if issubclass(cls, enum.Enum):
        members = [m.name for m in cls]
        few = ", ".join(members[:6]) + (", …" if len(members) > 6 else "")
        return Kind(f"a member of {cls.__name__} ({few})", lambda x: isinstance(x, cls))
    if getattr(cls, "__cute_element__", False):
        return Kind("an element type, like cute.Float32", lambda x: isinstance(x, cls) and not isinstance(x, type))
    if cls.__name__ == "Tensor" and is_static_class(cls):
        return Kind(
            "a Tensor",
            lambda x: isinstance(x, (cls, ArrayView)) or TENSOR.holds(x) or _stands_in(x),
            "cute.make_tensor",
        )
    made = getattr(cls, "made_by", "")
    return Kind(
        article(name.removeprefix("cute.")),
        lambda x: isinstance(x, cls) or _stands_in(x),
        made if isinstance(made, str) else "",
    )


def _evaluated(annotation: Any, space: dict[str, Any]) -> Any:
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, space)  # noqa: S307 - an annotation of this library's
    except (NameError, AttributeError, TypeError, SyntaxError):  # a name that only type checkers see
        return Any


@functools.cache
def kinds_of(fn: Any) -> dict[str, Kind]:
    """The kinds of a function's parameters, by name, those that its annotations say."""
    fn = inspect.unwrap(fn)
    space = getattr(fn, "__globals__", {})
    found = {
        n: kind_of_annotation(_evaluated(a, space))
        for n, a in getattr(fn, "__annotations__", {}).items()
        if n != "return"
    }
    return {n: k for n, k in found.items() if k is not None}


@functools.cache
def fields_of(cls: Any) -> dict[str, Kind]:
    """The kinds of the fields of a dataclass or struct."""
    found: dict[str, Kind] = {}
    for base in reversed(cls.__mro__):
        space = vars(sys.modules.get(base.__module__, types.ModuleType("")))
        for name, a in vars(base).get("__annotations__", {}).items():
            kind = kind_of_annotation(_evaluated(a, space))
            if kind is not None:
                found[name] = kind
    return found


# ------------------------------------------------------------------ which argument


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


def _librarys_frame(e: BaseException) -> types.FrameType:
    """The innermost frame of this library that an exception passed."""
    frames = [frame for frame, _ in traceback.walk_tb(e.__traceback__)]
    return next(f for f in reversed(frames) if is_library(f.f_globals.get("__name__", "")))


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
    if not is_library(cls.__module__) or not (is_static_class(cls) or is_struct_class(cls)) or depth > 3:
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
    if isinstance(e, ZeroDivisionError):
        return _first(what, given, lambda y: y == 0, "has a 0, by which nothing is divided: give 1 or more")
    if isinstance(e, (OverflowError, MemoryError)):
        large = "is larger than what can be computed with here: give numbers below 2**63"
        return _first(what, given, lambda y: abs(y) >= 1 << 24, large)
    return _named(fn, what, given, e)


def _lacking(fn: Any, what: str, given: list[tuple[str, Any]], e: AttributeError) -> CuteError | None:
    """An object that lacks an attribute: the argument that it is, or is in. That one of this library's lacks what its
    own methods ask of it is no argument's fault."""
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
    """A value which Python's words name by its type, and which the library's line that failed had at hand; or a value
    for a parameter whose kind no annotation says, which they name by itself or its type. Numbers and None are
    everywhere: of them only that they are no sequence is said."""
    known, text = kinds_of(fn), str(e)
    no_sequence = _NO_SEQUENCE.search(text) is not None
    at_hand = {id(x) for x in _librarys_frame(e).f_locals.values()} if isinstance(e, TypeError) else set()
    for name, x in given:
        if isinstance(e, TypeError) and callable(x) and _is_called_otherwise(x, text):
            return CuteError(f"`{name}` of `{what}` is {described(x)}, which is called otherwise: {text}")
        for y in _parts(x) if name != "self" else ():
            is_number = isinstance(y, (int, float, Leaf, type(None)))
            at_fault = (
                id(y) in at_hand and re.search(rf"\b{type(y).__name__}\b", text) and (no_sequence or not is_number)
            )
            if at_fault or name not in known and not is_number and _is_in(y, text):
                inside = "is" if y is x else "has in it"
                return CuteError(f"`{name}` of `{what}` {inside} {described(y)}{_documented(fn, name)}")
    return None


def refuse_call(what: str, f: Any, e: BaseException) -> None:
    """Refuse a function that is not the user's own and ended in an exception, of which no frame of theirs would tell.
    what: the parameter that holds it. What the user's own raise passes as it is, and so does a CuteError."""
    if not isinstance(e, CuteError) and not is_users_error(e):
        raise CuteError(f"{what} {described(f)} is called, and raises {type(e).__name__}: {e}") from e


def _is_called_otherwise(f: Any, text: str) -> bool:
    """Say whether Python's words are that `f` was called with arguments that it does not take."""
    names = {getattr(f, "__qualname__", ""), getattr(type(f).__call__, "__qualname__", "")} - {""}
    return any(re.match(rf"{re.escape(n)}(\.__init__)?\(\) (takes|missing|got)\b", text) for n in names)


def _is_in(x: Any, text: str) -> bool:
    called = f"{getattr(x, '__qualname__', '')}()"
    return shown(x) in text or called in text or re.search(rf"\b{type(x).__name__}\b", text) is not None


def _documented(fn: Any, name: str) -> str:
    """What the documentation of a function says of a parameter."""
    text = " ".join((fn.__doc__ or "").split())
    found = [s for s in text.split(". ") if s.startswith(f"{name}:") or f"`{name}`" in s or f" {name}:" in s]
    return f'; the documentation: "{found[0].rstrip(".")}"' if found else ""
