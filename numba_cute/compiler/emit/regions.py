# SPDX-License-Identifier: Apache-2.0
"""The parts of traced code that run under a run-time condition, or many times, and structs that such a part may change.

A struct that traced code makes is Python's: its fields are values of the place where they were set. Inside of a `when`
or `loop` a field that is set would be a value of that part alone. So structs that were made before get their slots in
the frame there, where what is set stays.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...seam.ground import watching

Keep = Callable[[Any, Any], None]
_keeping: list[Keep] = []


def keeps(keep: Keep) -> Keep:
    """Decorate the one function that gives a struct of traced code its slot: it needs the types of structs, and stands
    above (bridge/values.py). It is given the struct and the tracer."""
    _keeping.append(keep)
    return keep


class Region:
    """A part of traced code. of: what traces it."""

    def __init__(self, of: Regions) -> None:
        self._of = weakref.ref(of)

    def here(self) -> bool:
        """Say whether this part is the innermost of those that are being traced, or tracing is over."""
        of = self._of()
        return of is None or of.regions[-1] is self


class Regions:
    """Knows the parts of traced code, and the structs that are made in them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.regions = [Region(self)]
        self.signals: list[Any] = []
        self._made: list[Any] = []

    def makes(self, made: Any) -> Region:
        """Note that a struct is made here; gives the place."""
        self._made.append(weakref.ref(made))
        return self.regions[-1]

    @contextmanager
    def region(self, repeats: bool = False) -> Iterator[None]:
        """Trace a part: the structs of those around it get slots. repeats: whether it may run many times."""
        self._made = [ref for ref in self._made if ref() is not None]
        for ref in self._made:
            made = ref()
            if made.__dict__.get("_cute_region") in self.regions:
                (keep,) = _keeping
                keep(made, self)
        self.regions.append(Region(self))
        watcher = watching.now
        if watcher is not None:
            watcher.enter()
        try:
            yield
        finally:
            self.regions.pop()
        if watcher is not None:
            watcher.leave(repeats)
