# SPDX-License-Identifier: Apache-2.0
"""The registries of Numba's contexts, which it looks through for each function, method and missing implementation.

While a kernel is compiled they are looked through only if one has grown. And what loads them for the first kernel of a
process does so once: Numba goes through all of them for each template of a method that it meets on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from weakref import WeakKeyDictionary

from ...seam.ground.collecting import staying
from ..ground.building import building_kernel

_SEEN: WeakKeyDictionary[Any, Registries] = WeakKeyDictionary()
"""By context of Numba's: its registries, as it knows them."""
_REFRESHED: list[Any] = []
"""The contexts that are looked through now, innermost last."""
_LATER: list[Any] = []
"""Contexts of lowering to look through when the outermost of these is done."""


def refreshing(refresh: Callable[[Any], None]) -> Callable[[Any], None]:
    """Make of a context's `refresh` one that looks through the registries only if one has grown, while a kernel is
    compiled: Numba asks for it for each function."""

    def refreshed(self: Any) -> None:
        if not building_kernel():
            refresh(self)
            return
        seen = _SEEN.get(self)
        if seen is not None and not seen.grew():
            return
        if seen is not None and _REFRESHED and hasattr(self, "typing_context"):
            if self not in _LATER:
                _LATER.append(self)
            return
        with staying if seen is None else nullcontext(), _going_through(self):  # what is loaded first stays
            refresh(self)
        _SEEN[self] = Registries(self)
        if not _REFRESHED:
            while _LATER:
                _LATER.pop().refresh()

    return refreshed


@contextmanager
def _going_through(context: Any) -> Iterator[None]:
    _REFRESHED.append(context)
    try:
        yield
    finally:
        _REFRESHED.pop()


class Registries:
    """The registries of a context of Numba's, of lowering with those of typing, which only grow. known: how many
    entries they had."""

    def __init__(self, context: Any) -> None:
        both = (context, context.typing_context) if hasattr(context, "typing_context") else (context,)
        self._loaders = [x._registries for x in both]
        self._lists: list[Any] = []
        self._known: tuple[int, int] = (0, 0)
        self.grew()

    def grew(self) -> bool:
        """Say whether they have other entries than when this was asked last."""
        registries = sum(map(len, self._loaders))
        if registries != self._known[0]:
            found = [item for loaders in self._loaders for item in loaders.items()]
            self._lists = [getattr(registry, name) for registry, of in found for name in of.registry_items]
        before, self._known = self._known, (registries, sum(map(len, self._lists)))
        return before != self._known
