# SPDX-License-Identifier: Apache-2.0
"""Device functions that are compiled apart: what is made of them for one purpose nobody else finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Overloads = Callable[[Any], dict[Any, Any]]
"""By a dispatcher, what it holds of its functions while they are compiled apart."""

_SWAPPED: list[tuple[Overloads, dict[Any, Any]]] = []
"""While functions are compiled apart, innermost last: what each dispatcher is to hold, and what it held before."""


@contextmanager
def apart(overloads: Overloads) -> Iterator[None]:
    """Compile device functions apart: a dispatcher holds what `overloads` gives for it."""
    _SWAPPED.append((overloads, {}))
    try:
        yield
    finally:
        for dispatcher, held in _SWAPPED.pop()[1].items():
            dispatcher.overloads = held


def keeping_apart(compile_device: Callable[..., Any]) -> Callable[..., Any]:
    """Make of a dispatcher's `compile_device` one that has other overloads while functions are compiled apart."""

    def compiled(self: Any, *args: Any, **named: Any) -> Any:
        if _SWAPPED:
            overloads, before = _SWAPPED[-1]
            if self not in before:
                before[self] = self.overloads
                self.overloads = overloads(self)
        return compile_device(self, *args, **named)

    return compiled
