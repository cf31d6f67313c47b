# SPDX-License-Identifier: Apache-2.0
"""Dictionaries of the host in kernels."""

from __future__ import annotations

from typing import Any

from ..ground.error import CuteError
from ..ground.leaf import Leaf
from ..ground.naming import shown
from .decorators import frozen


class NoSuchKey(CuteError, KeyError):
    """A dictionary has no such key."""

    __str__ = Exception.__str__  # not KeyError's, which quotes the words


@frozen
class Mapping:
    """A dictionary in a kernel: its content at the launch. Keys are static. names: the keys, in order. items_of: the
    values."""

    names: tuple[Any, ...]
    items_of: tuple[Any, ...]

    def __getitem__(self, key: Any) -> Any:
        found = self._at(key)
        if found is None:
            raise NoSuchKey(f"key {shown(key)} is not in the dictionary: it has {', '.join(map(shown, self.names))}")
        return self.items_of[found]

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value of a `key`; `default` where there is none."""
        found = self._at(key)
        return default if found is None else self.items_of[found]

    def __contains__(self, key: Any) -> bool:
        return self._at(key) is not None

    def __eq__(self, other: object) -> bool:
        kinds = (Mapping, dict)
        if not isinstance(other, kinds):
            return NotImplemented
        return len(self) == len(other) and all(k in other and other[k] == v for k, v in self.items())

    def __hash__(self) -> int:
        return hash(frozenset(self.names))

    def __len__(self) -> int:
        return len(self.names)

    def keys(self) -> tuple[Any, ...]:
        """Return the keys."""
        return self.names

    def values(self) -> tuple[Any, ...]:
        """Return the values."""
        return self.items_of

    def items(self) -> tuple[tuple[Any, Any], ...]:
        """Return the keys with their values."""
        return tuple(zip(self.names, self.items_of))

    def _at(self, key: Any) -> int | None:
        """Return the place of a key."""
        if isinstance(key, Leaf):
            raise CuteError("the key of a dictionary is known only at run time: keys are static in a kernel")
        return next((i for i, k in enumerate(self.names) if k is key or k == key), None)
