# SPDX-License-Identifier: Apache-2.0
"""Record what compiling a function of the user's may read (`reach`), to ask later in this process whether all of it is
unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import BuiltinFunctionType, FunctionType
from typing import Any, NamedTuple

from ...seam.ground.packages import KERNELS, package_of
from ..ground.numba_cuda import types
from .exact import is_exact
from .holdings import MISSING, attribute, own
from .lasting import is_lasting_function, is_lasting_value, lasts
from .object_types import StructRef, Value
from .reach import Walk
from .walking import Read, Unfollowed

_NUMBERS = (int, bool, float, complex, str, bytes)


class Reads(Walk):
    """The state of all that some objects lead to, as it is now."""

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


class Place(NamedTuple):
    """The place that a name leads to. kind: ATTRIBUTE of an object, ITEM of a dictionary, or all ITEMS of one. value:
    its value now; MISSING for nothing; for ITEMS the keys and values by turns."""

    kind: int
    holder: Any
    name: Any
    value: Any

    def holds(self) -> bool:
        """Say whether it leads there now."""
        if self.kind == ATTRIBUTE:
            return attribute(self.holder, self.name) is self.value
        if self.kind == ITEM:
            return self.holder.get(self.name, MISSING) is self.value
        return _same(own(self.holder), own(dict(zip(self.value[::2], self.value[1::2]))))


ATTRIBUTE, ITEM, ITEMS = range(3)
_RUN = (FunctionType, BuiltinFunctionType)


class HostReads(Reads):
    """The reads of a function that the host runs: by places where machine code can look. Nothing is read where it
    appends to a list, or calls the ready-made kernels' code."""

    def __init__(self, function: Any) -> None:
        self.places: list[Place] = []
        super().__init__((function,), prints=True)

    def hold(self) -> bool:
        return all(p.holds() for p in self.places) and super().hold()

    @property
    def all_in_places(self) -> bool:
        """Say whether places alone show every change."""
        return not self._states

    def attribute(self, holder: Any, name: str) -> Any:
        return self._place(ATTRIBUTE, holder, name, attribute(holder, name))

    def item(self, holder: Any, key: str) -> Any:
        return self._place(ITEM, holder, key, holder.get(key, MISSING))

    def items(self, holder: Any) -> dict[Any, Any]:
        self._place(ITEMS, holder, None, tuple(x for item in holder.items() for x in item))
        return own(holder)

    def put(self, cls: type, name: str) -> Any:
        return vars(cls)[name]  # not asked again: there is no place where machine code can look

    def _place(self, kind: int, holder: Any, name: Any, value: Any) -> Any:
        self.places.append(Place(kind, holder, name, value))
        return value

    def refer(self, obj: Any, name: str) -> None:
        if isinstance(obj, _RUN) or not is_exact(obj):
            super().refer(obj, name)

    def is_constant(self, obj: Any) -> bool:
        kernels = isinstance(obj, FunctionType) and package_of(obj.__globals__.get("__name__")) == KERNELS
        return kernels or super().is_constant(obj)

    def is_seen_where_read(self, obj: Any, chain: tuple[str, ...] | None = None) -> bool:
        appends = type(obj) is list and (chain is None or chain[:1] == ("append",))
        return appends or super().is_seen_where_read(obj, chain)


def reads_of(function: Any, given: tuple[Any, ...], prints: bool) -> Callable[[], bool] | None:
    """Record what compiling a function for some objects may read; gives what asks whether it is as it was, None if it
    cannot be followed. prints: what it prints while it is compiled is nobody's."""
    try:
        return Reads((function, *given), prints).hold
    except Unfollowed:
        return None


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
