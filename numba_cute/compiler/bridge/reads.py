# SPDX-License-Identifier: Apache-2.0
"""Record what compiling a function of the user's may read (`reach`), to ask later in this process whether all of it is
unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any

from numba.cuda import types

from .holdings import MISSING
from .lasting import is_lasting_function, is_lasting_value, lasts
from .object_types import StructRef, Value
from .reach import Read, Unfollowed, Walk

_NUMBERS = (int, bool, float, complex, str, bytes)


class Reads(Walk):
    """What is reached from some objects, as it is now."""

    def __init__(self, roots: Iterable[Any], prints: bool = False) -> None:
        super().__init__(prints)
        self._states: list[tuple[Read, Any, Callable[[Any, Any], bool]]] = []
        self.go((x, getattr(x, "__name__", "an argument")) for x in roots)

    def hold(self) -> bool:
        """Say whether all is what it was."""
        return all(same(get(), before) for get, before, same in self._states)

    def read(self, get: Read) -> Any:
        now = get()
        self._states.append((get, now, _same))
        return now

    def value(self, get: Read) -> None:
        self._states.append((get, get(), _equal))

    def tell(self, *constants: Any) -> None:
        """Objects are told by their identity."""

    def unordered(self, items: Iterable[Any]) -> None:
        self.refer_all(items, "an item of a set")

    def is_constant(self, obj: Any) -> bool:
        return is_lasting_function(obj) if isinstance(obj, FunctionType) else is_lasting_value(obj)


def reads_of(function: Any, given: tuple[Any, ...], prints: bool) -> Callable[[], bool] | None:
    """Record what compiling a function for some objects may read; gives what asks whether it is as it was, None if it
    cannot be followed. prints: what it prints while it is compiled is nobody's."""
    try:
        return Reads((function, *given), prints).hold
    except Unfollowed:
        return None


def identity(x: Any) -> Any:
    """Return what tells an object from others, as long as it lives."""
    return (type(x), repr(x)) if type(x) in _NUMBERS else id(x)


def given_by(args: Iterable[Any]) -> tuple[Any, ...] | None:
    """Return the objects of the host that types of arguments say, but for this library's; None if a type does not tell
    them."""
    try:
        return tuple(x for ty in args for x in _held(ty))
    except Unfollowed:
        return None


def _held(ty: Any) -> Iterator[Any]:
    if lasts(ty):
        return
    if isinstance(ty, types.BaseTuple) and not hasattr(ty, "instance_class"):
        for t in ty:
            yield from _held(t)
    elif isinstance(ty, Value):
        yield from _in_spec(ty.spec)
    elif isinstance(ty, StructRef):
        yield ty.cls
        for _, t in ty.fields:
            yield from _held(t)
    else:
        raise Unfollowed


def _in_spec(spec: Any) -> Iterator[Any]:
    if spec[0] == "leaf":
        if isinstance(spec[1], StructRef):
            yield from _held(spec[1])
    elif spec[0] == "const":
        if type(spec[2]) in _NUMBERS or not is_lasting_value(spec[2]):
            yield spec[2]
    else:
        if spec[0] == "node":
            yield spec[1]
        for inner in spec[-1]:
            yield from _in_spec(inner)


def _equal(a: Any, b: Any) -> bool:
    return bool(a == b)


def _same(a: Any, b: Any) -> bool:
    """Say whether two states are the same objects, or lists or dicts of the same, or equal numbers or texts."""
    if a is b:
        return True
    if type(a) is not type(b) or a is MISSING:
        return False
    if type(a) is list:
        return len(a) == len(b) and all(map(_same_item, a, b))
    if type(a) is dict:
        return len(a) == len(b) and all(_same_item(x, y) and _same_item(a[x], b[y]) for x, y in zip(a, b))
    return _same_item(a, b)


def _same_item(a: Any, b: Any) -> bool:
    return a is b or type(a) is type(b) and type(a) in _NUMBERS and repr(a) == repr(b)
