# SPDX-License-Identifier: Apache-2.0
"""Effects of a call on objects (structs, register files): which of its arguments it returns, whether it makes new ones,
and what it stores in which. Typing finds those of traced calls, passes/identity.py those of others.

Objects are told by the numbers of the arguments that hold them or lead to them, or by a pair: that of a tuple, and
which of its items it is; NEW stands for those that a call makes.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from types import FunctionType
from typing import Any, NamedTuple

from ... import seam
from ...seam.marks import plain
from ..emit.leaves import NumberLeaf, RegFile
from ..ground.memory import effects_of
from ..ground.numba_cuda import types
from . import tree
from .leaf_types import Registers
from .object_types import StructRef, Value

NEW = -1
Sources = frozenset[Any]
NOTHING: Sources = frozenset()


class Effects(NamedTuple):
    """The effects of a call. result: the sources of its result, and of each item, if that is a tuple. inside: what new
    objects hold, besides those. stores: pairs (into, what)."""

    result: Sources
    items: tuple[Sources, ...] | None = None
    inside: Sources = NOTHING
    stores: frozenset[tuple[Sources, Sources]] = frozenset()


class Jitted(NamedTuple):
    """A call of a function that Numba compiles: what it does, `of` says, in the numbers of its own parameters. itself:
    those that what is called gives itself, as a partial does."""

    function: Any
    args: tuple[Any, ...]
    numbers: tuple[int, ...]
    itself: frozenset[int] = frozenset()


def of(key: Any) -> Effects | None:
    """Return what a call does, by the key and the arguments of its lowering; None if that is not known."""
    found: Effects | Jitted | None = effects_of(key)
    if not isinstance(found, Jitted):
        return found
    inner = effects_of((found.function, found.args))
    return None if inner is None else _renumbered(inner, found.numbers)


def _renumbered(effects: Effects, numbers: tuple[int, ...]) -> Effects:
    def of(sources: Sources) -> Sources:
        return frozenset(map(renumbered, sources))

    def renumbered(source: Any) -> Any:
        if isinstance(source, tuple):
            return numbers[source[0]], source[1]
        return NEW if source == NEW else numbers[source]

    return Effects(
        of(effects.result), None if effects.items is None else tuple(map(of, effects.items)), of(effects.inside),
        frozenset((of(a), of(b)) for a, b in effects.stores),
    )  # fmt: skip


# ---------------------------------------------------------------- types


@functools.cache
def kinds(ty: Any) -> frozenset[Any]:
    """Return what tells the objects apart that a value of a type is, or leads to."""
    if isinstance(ty, StructRef):
        return frozenset((ty._key,)).union(*(kinds(t) for _, t in ty.fields))
    if isinstance(ty, Registers):
        return frozenset((ty,))
    if isinstance(ty, Value):
        return frozenset().union(*map(kinds, ty.leaves))
    if isinstance(ty, types.BaseTuple):
        return frozenset().union(*map(kinds, ty))
    if isinstance(ty, types.Optional):
        return kinds(ty.type)
    return kinds(ty.this) if isinstance(getattr(ty, "this", None), types.Type) else frozenset()


# ---------------------------------------------------------------- of traced calls


class Trail:
    """The origins of the objects of a traced call, while its result is typed."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, Sources]] = {}
        self._stores: set[tuple[Sources, Sources]] = set()

    def note(self, value: Any, sources: Sources) -> None:
        """Note where the objects in a value come from."""
        for x in objects_in(value):
            self._known[id(x)] = (x, sources)

    def note_argument(self, value: Any, number: int) -> None:
        """Note where the objects in an argument come from."""
        if isinstance(value, tuple):
            for k, item in enumerate(value):
                self.note(item, frozenset(((number, k),)))
        else:
            self.note(value, frozenset((number,)))

    def of(self, value: Any) -> Sources:
        """Return where the objects in a value come from."""
        return NOTHING.union(*(self._one(x) for x in objects_in(value)))

    def _one(self, x: Any) -> Sources:
        return self._known[id(x)][1] if id(x) in self._known else frozenset((NEW,))

    def store(self, into: Any, value: Any) -> None:
        """Note that an object holds another from now on."""
        what = self.of(value)
        if what:
            self._stores.add((self.of(into), what))

    def effects(self, result: Any) -> Effects:
        """Return what the call did that gave this result."""
        items = tuple(map(self.of, result)) if isinstance(result, (tuple, list)) else None
        return Effects(self.of(result), items, stores=frozenset(self._stores))


_NO_OBJECTS = frozenset((NumberLeaf, int, bool, float, str, type(None)))


def objects_in(value: Any) -> Iterator[Any]:
    """Go over the objects that a value of traced code is or holds, and the fields of those that it made itself."""
    kind = type(value)
    if kind in _NO_OBJECTS:
        return
    if isinstance(value, (RegFile, tree.ByReference)):
        yield value
    elif isinstance(value, (tuple, list)):
        for x in value:
            yield from objects_in(x)
    elif kind is functools.partial:
        yield from objects_in((value.func, *value.args, *value.keywords.values()))
    elif kind is FunctionType:
        for x in tree.cells(value):
            yield from objects_in(x)
    elif kind.__name__ == "method" and hasattr(value, "__self__"):
        yield from objects_in(value.__self__)
    elif seam.is_struct_class(kind) or plain.is_plain(value):
        yield value
        yield from objects_in(tuple(plain.fields_of(value).values()))
    elif seam.is_frozen_class(kind) and dataclasses.is_dataclass(value):
        yield from objects_in(tuple(getattr(value, f, None) for f in tree.fields_of(kind)))
