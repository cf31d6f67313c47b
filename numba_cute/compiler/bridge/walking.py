# SPDX-License-Identifier: Apache-2.0
"""Visit what is reached from some objects, each once, and of those that are not looked at whole what code names."""

from __future__ import annotations

import abc
import collections
import functools
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ...seam.marks.plain import is_users_module
from . import code_reads
from .holdings import MISSING, attribute, own

Read = Callable[[], Any]
ATOMS = frozenset(
    (int, bool, float, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented), range, CodeType)
)


class Unfollowed(Exception):
    """Compiling reads something that cannot be followed; says what."""


class Walking(abc.ABC):
    """Visits what is reached from some objects, each once, in the same order in every process."""

    most = 2000
    largest = 1 << 16
    """Objects, and bytes of an array, that are looked at."""

    def __init__(self, prints: bool = False) -> None:
        """prints: what is printed while the function is compiled is nobody's."""
        self._prints = prints
        self._numbers: dict[int, int] = {}
        self._alive: list[Any] = []
        self._todo: collections.deque[tuple[Any, str]] = collections.deque()
        self._open: list[tuple[Any, str, set[str]]] = []
        self._attributes: set[str] = set()
        self._looks: dict[type, Any] = {}
        self.names: set[str] = set()

    # ------------------------------------------------------------ for subclasses

    @abc.abstractmethod
    def read(self, get: Read) -> Any:
        """Return what `get` finds now: objects that may be others the next time."""

    @abc.abstractmethod
    def value(self, get: Read) -> None:
        """Note a plain value that `get` finds, which may be another the next time."""

    @abc.abstractmethod
    def tell(self, *constants: Any) -> None:
        """Note what an object is, as long as it is that object."""

    def tell_class(self, what: str, cls: type) -> None:
        """Note the name of a class, and what its object is looked at as."""
        self.tell(what, cls.__module__, cls.__qualname__)

    @abc.abstractmethod
    def unordered(self, items: Iterable[Any]) -> None:
        """Refer to the items of a set."""

    def attribute(self, holder: Any, name: str) -> Any:
        """Read an attribute, or what a cell holds."""
        return self.read(lambda: attribute(holder, name))

    def item(self, holder: Any, key: str) -> Any:
        """Read what a dictionary has under a key."""
        return self.read(functools.partial(holder.get, key, MISSING))

    def items(self, holder: Any) -> dict[Any, Any]:
        """Read a whole dictionary, but for what this library keeps there."""
        return self.read(lambda: own(holder))  # type: ignore[no-any-return]

    def put(self, cls: type, name: str) -> Any:
        """Read an attribute of a class that is not a user's."""
        return self.read(lambda: vars(cls).get(name, MISSING))

    def is_constant(self, obj: Any) -> bool:
        """Say whether an object's identity tells all of it."""
        return False

    def is_seen_where_read(self, obj: Any, chain: tuple[str, ...] | None = None) -> bool:
        """Say whether of what a name stands for only that counts which code takes of it. chain: the attributes; None
        where they are not known yet."""
        return isinstance(obj, ModuleType)

    # ------------------------------------------------------------ the walk

    def go(self, roots: Iterable[tuple[Any, str]]) -> None:
        """Visit some objects, with their names, and all that is reached from them."""
        for obj, name in roots:
            self.refer(obj, name)
        while self._todo:
            while self._todo:
                self._look(*self._todo.popleft())
            self._look_at_what_is_named()

    def refer(self, obj: Any, name: str) -> None:
        """Note that an object is reached. name: what the user calls it."""
        if type(obj) in ATOMS:
            self.tell(obj)
            return
        number = self._numbers.setdefault(id(obj), len(self._numbers))
        self.tell(number)
        if number == len(self._alive):
            if number >= self.most:
                raise Unfollowed(f"it reaches more than {self.most} objects")
            self._alive.append(obj)
            self._todo.append((obj, name))

    def refer_all(self, objects: Iterable[Any], name: str) -> None:
        for i, obj in enumerate(objects):
            self.refer(obj, name if type(obj) in ATOMS else f"{name}[{i}]")

    def refer_named(self, held: dict[Any, Any], name: str, form: str = "{}.{}") -> None:
        """Refer to what stands under keys."""
        for key, obj in held.items():
            self.refer(key, name)
            self.refer(obj, name if type(obj) in ATOMS else form.format(name, key))

    @abc.abstractmethod
    def _look(self, obj: Any, name: str) -> None:
        """Look at an object, and refer to what it leads to."""

    # ------------------------------------------------------------ what is looked at only where code names it

    def _partly(self, x: Any, name: str) -> None:
        """Look of an object at what any code names of it."""
        self._open.append((x, name, set()))

    def _look_at_what_is_named(self) -> None:
        for x, name, seen in self._open:
            new = self._attributes - seen
            seen |= new
            if isinstance(x, ModuleType):
                for n in sorted(new & vars(x).keys()):
                    self.refer(self.item(vars(x), n), f"{name}.{n}")
                continue
            beyond = sorted(new & code_reads.sees_more(x))
            if beyond:
                raise Unfollowed(f"`{name}.{beyond[0]}` reads or does more than its arguments say")
            if isinstance(x, np.ndarray) and "base" in new:
                self.refer(self.read(functools.partial(getattr, x, "base")), f"{name}.base")
            if isinstance(x, type):
                for n in sorted(new & vars(x).keys()):
                    self._put_there(self.put(x, n), f"{name}.{n}")

    def _put_there(self, x: Any, name: str) -> None:
        """Look at an attribute of a class of others, if it may be the user's."""
        if type(x) in ATOMS or isinstance(x, FunctionType) and is_users_module(x.__module__ or ""):
            self.refer(x, name)
