# SPDX-License-Identifier: Apache-2.0
"""A thread's part of a tiled copy or MMA has what the whole has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def with_properties_of(whole: type, field: str) -> Callable[[T], T]:
    """Give a class the fields and properties of another, as far as it lacks them.

    whole: the other. field: where an object of it is.
    """

    def add(cls: Any) -> Any:
        own = {n: m.__doc__ for n, m in vars(whole).items() if isinstance(m, property) and not n.startswith("_")}
        for name, doc in ({n: f"Return the whole's `{n}`." for n in whole.__annotations__} | own).items():
            if name not in dir(cls):
                setattr(cls, name, _property(field, name, doc))
        return cls

    return add


def _property(field: str, name: str, doc: str | None) -> property:
    def get(self: Any) -> Any:
        return getattr(getattr(self, field), name)

    get.__name__, get.__doc__ = name, doc
    return property(get)
