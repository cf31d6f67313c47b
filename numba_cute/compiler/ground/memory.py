# SPDX-License-Identifier: Apache-2.0
"""What is remembered of calls while a kernel is compiled, and no longer.

Tracing reads the user's Python: globals, attributes, lists, closures. A result that was found so holds for one
compilation, so one object owns all that is remembered, for the time of one. Only what this library's own functions give
for its own types is remembered for ever (`LASTING`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from numba.cuda.core.base import OverloadSelector
from numba.cuda.core.targetconfig import ConfigStack

from ...typed.meetings import Meetings


class Memory:
    """What was found of calls. results: the types that traced calls gave, by call. jitted: the plain functions that
    tracing could not follow, by call. dispatchers: the jitted forms of functions. compiled: what device functions
    became, by dispatcher and arguments' types. meetings: where values are converted (`typed.meetings`). inlined: by the
    variables of functions that were inlined, what those were called. effects: what calls do with objects, by the key of
    their lowering, and of functions that Numba compiles, by the function and its arguments' types (bridge/effects.py).
    roots: the kernel, and the host's objects that it is given. stored: the fields' names that are set from there
    (bridge/settings.py). ours: a function of this library's has been met, so that what it calls is too."""

    def __init__(self) -> None:
        self.results: dict[Any, Any] = {}
        self.jitted: dict[Any, Any] = {}
        self.dispatchers: dict[Any, Any] = {}
        self.compiled: dict[Any, Any] = {}
        self.meetings: Meetings = {}
        self.inlined: dict[str, str] = {}
        self.effects: dict[Any, Any] = {}
        self.roots: list[Any] = []
        self.stored: frozenset[str] | None = None
        self.ours = False
        self._lowerings: dict[Any, OverloadSelector] = {}
        self._before: dict[Any, dict[Any, Any]] = {}
        self._passing: list[tuple[Any, Any]] = []

    def register(self, key: Any, lower: Any) -> None:
        """Note how a call is lowered. key: what Numba asks for it by; the arguments' types come last."""
        selector = self._lowerings[key] = OverloadSelector()
        selector.append(lower, key[-1])

    def lowering(self, key: Any) -> OverloadSelector | None:
        """Return what lowers a call; None if it is not known here."""
        return self._lowerings.get(key)

    def device(self, dispatcher: Any, args: Any, lasts: Callable[[], bool] | None, compile: Callable[[], Any]) -> Any:
        """Return what `compile` makes of a device function for arguments of these types: for this compilation alone.
        lasts: asked of one of this library's own functions, whether it is kept for others; None of a user's."""
        if lasts is None and dispatcher not in self._before:
            self._before[dispatcher], dispatcher.overloads = dispatcher.overloads, {}
        if lasts is not None and args not in dispatcher.overloads and not lasts():
            self._passing.append((dispatcher, args))
        found = self.compiled[dispatcher, args] = compile()
        return found

    def close(self) -> None:
        """End the compilation: device functions are again what they were."""
        for dispatcher, before in self._before.items():
            for compiled in dispatcher.overloads.values():
                _forget(compiled)
            dispatcher.overloads = before
        for dispatcher, args in self._passing:
            compiled = dispatcher.overloads.pop(args, None)
            if compiled is not None:
                _forget(compiled)


def _forget(compiled: Any) -> None:
    with suppress(KeyError):
        compiled.target_context.remove_user_function(compiled.entry_point)


LASTING = Memory()
"""What this library's own functions give for its own types."""
_memories: list[Memory] = []
"""Of the compilations that are going on, innermost last."""
_loose = [Memory()]
"""Of the function that Numba compiles within none of those."""


@contextmanager
def remembering() -> Iterator[Memory]:
    """Begin a compilation, which remembers nothing of others."""
    begin()
    try:
        yield _memories[-1]
    finally:
        end()


def begin() -> None:
    """Begin a compilation (see `remembering`)."""
    _memories.append(Memory())


def end() -> None:
    """End the innermost compilation."""
    _memories.pop().close()


def compiling() -> bool:
    """Say whether a compilation is going on."""
    return bool(_memories)


def compiling_anything() -> bool:
    """Say whether Numba compiles anything now."""
    return len(ConfigStack()) > 0


def loosen() -> None:
    """Remember nothing of before, where Numba begins to compile a function on its own, within no kernel of ours."""
    if not compiling() and len(ConfigStack()) < 2:
        _loose[0] = Memory()


def memory() -> Memory:
    """Return what is remembered of this compilation."""
    return (_memories or _loose)[-1]


def effects_of(key: Any) -> Any:
    """Return what a call or a function of this compilation does with objects; None if that is not known."""
    found = memory().effects.get(key)
    return LASTING.effects.get(key) if found is None else found


def lowering_of(key: Any) -> OverloadSelector | None:
    """Return what lowers a call of this compilation; None for what Numba lowers."""
    return memory().lowering(key) or LASTING.lowering(key)
