# SPDX-License-Identifier: Apache-2.0
"""Kinds of arguments, as the annotations of the library's functions and fields say them. Annotations are read where a
call is judged (refusals.py), not before. An annotation `Annotated[Any, Kind(...)]` says what Python's types do not.
"""

from __future__ import annotations

import collections.abc
import enum
import functools
import inspect
import operator
import sys
import types
import typing
from typing import Any

from ...seam.ground.records import dataclass
from ..ground.error import CuteError
from ..ground.leaf import Leaf
from ..ground.naming import article
from ..ground.packages import is_library
from ..marks.decorators import ArrayView, is_frozen_class

DEEPEST = 100
"""The deepest nesting of tuples: further than that Python's recursion may not reach."""


@dataclass(frozen=True)
class Kind:
    """A kind of argument. words: its name, with an article. holds: says whether a value is of the kind. make: the
    call that makes one."""

    words: str
    holds: typing.Callable[[Any], bool]
    make: str = ""


# ------------------------------------------------------------------ kinds of annotations


def is_number(x: Any) -> bool:
    """Return whether `x` is a number, of Python, NumPy or a kernel."""
    return isinstance(x, (int, float, Leaf)) or getattr(x, "shape", None) == () and hasattr(x, "dtype")


def is_integer(x: Any) -> bool:
    """Return whether `x` is an integer that is not a truth value, or a number known only at run time."""
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
    return is_nested(x, lambda y: y is None or is_integer(y) or is_frozen_class(type(y)))


def _is_layout(x: Any) -> bool:
    return is_frozen_class(type(x)) and hasattr(type(x), "get_flat_coord") or hasattr(x, "outer")


COORDINATE = Kind("an integer, None or a tuple of such", _is_coordinate)
LAYOUT = Kind("a layout", _is_layout, "cute.make_layout")
TILER = Kind(
    "an integer, a layout, None or a tuple of such",
    lambda x: is_nested(x, lambda y: y is None or is_integer(y) or _is_layout(y)),
)
DOMAIN = Kind(
    "a layout, a tensor, an integer or a tuple of such",
    lambda x: is_nested(x, lambda y: y is None or is_integer(y) or is_frozen_class(type(y)) or hasattr(y, "shape")),
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
_NO_VECTOR = (type, int, float, str, tuple, list, dict, type(None), enum.Enum)
VECTOR = Kind(
    "a vector of registers, as `t.load()` has",
    lambda x: not isinstance(x, _NO_VECTOR) and not is_frozen_class(type(x)),
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
        and not is_frozen_class(type(x))
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
Vector = typing.Annotated[Any, VECTOR]
"""Annotations of these kinds, where Python's types say too little; type checkers take them for Any."""
ANYTHING = (Any, object, inspect.Parameter.empty)
_OF_TYPES: dict[Any, Kind] = {
    int: INTEGER, float: NUMBER, bool: TRUTH, str: TEXT, type(None): NONE, None: NONE, Leaf: NUMBER,
    bytes: Kind("bytes", lambda x: isinstance(x, (bytes, bytearray, memoryview))),
    collections.abc.Callable: CALLABLE,
}  # fmt: skip


def kind_of_annotation(annotation: Any) -> Kind | None:
    """Return the kind that an annotation stands for; None if it stands for none."""
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
    """Say whether a value is an engine's replacement of another, as the compiler's of a struct; a number is only
    itself."""
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
    if cls.__name__ == "Tensor" and is_frozen_class(cls):
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
