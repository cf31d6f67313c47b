# SPDX-License-Identifier: Apache-2.0
"""What is known of a value before the code runs: the type of a run-time number (a `DType`), an object that is static
(`Known`), an int or bool that may be static (`Loose`), a tuple of such, or None where nothing is known. `NOTHING` is
what no way has led to yet."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .... import seam
from ....dtypes import Boolean, DType, Int64
from ....seam.marks.plain import is_plain
from ..arithmetic.lanes import Apart, Lanes, LaneVector
from ..arithmetic.number import CLASSES, Number
from ..arithmetic.operators import casts, type_of_class
from ..arithmetic.overloads import unified
from ..arithmetic.undefined import Undefined
from ..arrays import Record

Type = Any

NOTHING = object()


class Known:
    """A static object: a literal, a function, a layout."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, o: object) -> bool:
        if not isinstance(o, Known):
            return False
        a, b = self.value, o.value
        return a is b or type(a) is type(b) and isinstance(a, (int, str)) and a == b

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Known({self.value!r})"


@dataclasses.dataclass(frozen=True)
class Loose:
    """An int or bool of a type that may be static, or not: the index of an unrolled loop, a literal argument."""

    dtype: DType


SOME_INT, SOME_BOOL = Loose(Int64), Loose(Boolean)


@dataclasses.dataclass(frozen=True)
class RecordOf:
    """A record, of which its fields' types are known."""

    dtype: Any


def type_of(value: Any) -> Type:
    """What is known of a value that the code finds."""
    if isinstance(value, Number):
        return value.dtype
    if isinstance(value, (float, np.generic)):
        return type_of_class(type(value))
    if type(value) is Lanes:
        return value.dtype
    if type(value) is tuple:
        return tuple(map(type_of, value))
    return None if isinstance(value, Undefined) else Known(value)


def type_of_argument(value: Any) -> Type:
    """What Numba knows of an argument: of an int not the value, though it may be a literal."""
    if type(value) is Lanes:
        return value.dtype or SOME_INT
    if type(value) is tuple:
        return tuple(map(type_of_argument, value))
    if isinstance(value, Record):
        return Known(RecordOf(value._array.dtype))
    return loosened(type_of(representative(value)))


def loosened(t: Type) -> Type:
    """The same, of which the values of ints and bools are not known."""
    if type(t) is tuple:
        return tuple(map(loosened, t))
    if isinstance(t, Known) and type(t.value) in (int, bool):
        return SOME_BOOL if type(t.value) is bool else SOME_INT
    return t


def representative(value: Any) -> Any:
    """An object like one that a kernel holds, which may be used without a trace: with numbers for what differs between
    lanes, and structs of its own."""
    kind = type(value)
    if kind is Lanes:
        return 0 if value.dtype is None else CLASSES[value.dtype].make(0)
    if kind is LaneVector:
        return np.zeros(value.array.shape[1], value.array.dtype)
    if isinstance(value, Apart):
        every = value.every
        return np.zeros(every.shape[1:], every.dtype)
    if kind is tuple:
        return tuple(map(representative, value))
    if seam.is_struct_class(kind):
        copy = object.__new__(kind)
        for name, field in vars(value).items():
            object.__setattr__(copy, name, representative(field))
        return copy
    if seam.is_static_class(kind) and dataclasses.is_dataclass(value):
        return _like(value)
    return value


def _like(value: Any) -> Any:
    """The same of a static object, which is itself if it holds nothing of lanes."""
    held = vars(value)
    names = [f.name for f in dataclasses.fields(value)]
    new = [representative(held.get(name)) for name in names]
    if all(a is held.get(name) for a, name in zip(new, names)):
        return value
    copy = object.__new__(type(value))
    for name, field in zip(names, new):
        object.__setattr__(copy, name, field)
    return copy


NO_VALUE = object()


def value_of(t: Type) -> Any:
    """Return a value of a type: any number for a number. NO_VALUE if none is known."""
    if isinstance(t, DType):
        return CLASSES[t].make(0)
    if isinstance(t, Known) and not isinstance(t.value, RecordOf):
        return t.value
    if type(t) is tuple:
        values = tuple(map(value_of, t))
        return NO_VALUE if any(v is NO_VALUE for v in values) else values
    return NO_VALUE


def number_type(t: Type) -> DType | None:
    """The type of a number, run-time or literal; None if it is none."""
    if isinstance(t, DType):
        return t
    if isinstance(t, Loose):
        return t.dtype
    if isinstance(t, Known) and type(t.value) in (int, bool):
        return Boolean if type(t.value) is bool else Int64
    return None


def same(a: Type, b: Type) -> bool:
    """Whether two types are one."""
    return a is b or type(a) is type(b) and a == b


def join(a: Type, b: Type, doubtful: bool = False) -> Type:
    """What is known of a value that is one or the other, as Numba unifies them. doubtful: whether the compiler may know
    which of the two it is."""
    if a is NOTHING or b is NOTHING:
        return b if a is NOTHING else a
    if a is None or b is None:
        return None
    if same(a, b):
        return a
    if type(a) is tuple and type(b) is tuple:
        return tuple(join(x, y, doubtful) for x, y in zip(a, b)) if len(a) == len(b) else None
    x, y = number_type(a), number_type(b)
    if x is None or y is None:
        return None
    if doubtful:
        return Loose(x) if x is y and x in (Int64, Boolean) else None
    return unified(x, y)


def widened(old: Type, new: Type) -> Type:
    """The type of a value that had another before those were known that it is computed from."""
    if old is NOTHING or new is NOTHING:
        return new if old is NOTHING else old
    if type(old) is tuple and type(new) is tuple and len(old) == len(new):
        return tuple(map(widened, old, new))
    return join(old, new) if number_type(old) is not None and number_type(new) is not None else new


Spec = Any
"""What values are cast to where ways meet: a DType, a tuple of such, or None for what stays as it is."""


def spec_of(t: Type) -> Spec:
    """To what a value of a type is cast."""
    if isinstance(t, DType):
        return t
    if type(t) is tuple:
        specs = tuple(map(spec_of, t))
        return specs if any(s is not None for s in specs) else None
    return None


def must_cast(have: Type, spec: Spec) -> bool:
    """Whether a value of a type is another one when it is cast."""
    if spec is None or have is NOTHING:
        return False
    if isinstance(spec, DType):
        return number_type(have) is not spec
    return type(have) is not tuple or any(map(must_cast, have, spec))


def caster(spec: Spec) -> Callable[[Any], Any]:
    """What casts values; those that are no numbers stay as they are."""
    if isinstance(spec, DType):
        table = casts(spec)
        literal: type | None = {Int64: int, Boolean: bool}.get(spec)  # type: ignore[call-overload]  # it computes as a number of the type, and faster
        return lambda x: x if type(x) is literal else table[type(x)](x)
    each = [caster(s) if s is not None else _itself for s in spec]
    return lambda x: tuple(f(y) for f, y in zip(each, x)) if type(x) is tuple else x


def _itself(x: Any) -> Any:
    return x


def key_of(value: Any, changing: Changing) -> Any:
    """What tells arguments apart for `type_of_argument`. changing: says which fields of a class's objects are set."""
    kind = type(value)
    if kind is Lanes:
        return value.dtype or Int64
    if isinstance(value, Number):
        return value.dtype
    if kind in (int, bool, float):
        return kind
    if kind is tuple:
        return tuple(key_of(v, changing) for v in value)
    if isinstance(value, np.ndarray):
        return kind, value.dtype, value.ndim
    if isinstance(value, LaneVector):
        return kind, value.array.dtype
    if isinstance(value, Apart):
        return kind, value.every.dtype, value.every.ndim
    if isinstance(value, Record):
        return kind, value._array.dtype
    if seam.is_struct_class(kind) or is_plain(value):
        if any(value is x for x in _holding):
            return kind
        _holding.append(value)
        try:
            return kind, tuple((n, _key_of_field(n, v, changing)) for n, v in vars(value).items())
        finally:
            _holding.pop()
    if seam.is_static_class(kind):
        return _static_key(value, changing)
    if kind in _ITERATORS:  # of a comprehension, each time another: its class is all that is known of it
        return kind
    return (kind, value) if is_hashable(value) else kind


Changing = Callable[[type], frozenset[str]]
_holding: list[Any] = []
"""The objects whose fields are looked at: one that holds itself is not looked at in itself."""


def _key_of_field(name: str, value: Any, changing: Changing) -> Any:
    """What tells a field's values apart: a number that no function sets is known."""
    key = key_of(value, changing)
    return (key, value) if key in (int, bool) and name not in changing(type(_holding[-1])) else key


def is_hashable(value: Any) -> bool:
    """Return whether an object may be a key."""
    try:
        hash(value)
    except (TypeError, seam.CuteError):  # or what it holds is known only at run time
        return False
    return True


_EMPTY: tuple[Iterable[Any], ...] = ((), [], range(0), range(1 << 65), {}, set(), zip(), enumerate(()))
_ITERATORS = frozenset(type(iter(x)) for x in _EMPTY)


def _static_key(value: Any, changing: Changing) -> Any:
    held = value.__dict__
    found = held.get(_KEY)
    if found is None:
        fields = dataclasses.fields(value)
        found = held[_KEY] = (type(value), *(key_of(held.get(f.name), changing) for f in fields))
    return found


_KEY = "__cute_argument_key__"
