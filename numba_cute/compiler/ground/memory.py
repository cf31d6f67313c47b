# SPDX-License-Identifier: Apache-2.0
"""Remember the results of calls: during one compilation, and some of them for the next.

Tracing reads the user's Python: globals, attributes, lists, closures. Its results hold for one compilation, so one
`Memory` owns them for that time. The results of this library's own functions for its own types never change
(`LASTING`). A compiled function of the user's (`kept_of`) serves as long as everything that compiling it may read is
unchanged.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from ...seam import CuteError
from ...typed.meetings import Meetings
from .numba_cuda import ConfigStack, NumbaError, OverloadSelector


class Question(NamedTuple):
    """A question whether a device function that was compiled before can be used again. key: its function, types and
    setting. read: records what compiling it may read, and returns a check that it is unchanged; None if the reading
    cannot be followed. stored: returns the names of fields that a kernel of some roots sets."""

    key: Any
    read: Callable[[], Callable[[], bool] | None]
    stored: Callable[[Any], frozenset[str]]


class Loss(NamedTuple):
    """A line that costs speed, and why. in_float64: it does only if the PTX computes in float64 at all. likely_wrong:
    it costs no speed, but is likely a mistake."""

    why: str
    file: str
    line: int
    in_float64: bool = False
    likely_wrong: bool = False


class Kept(NamedTuple):
    """A compiled device function, and what compiling it added to the `Memory`. inner: the functions that it calls."""

    compiled: Any
    holds: Callable[[], bool]
    meetings: Meetings
    effects: dict[Any, Any]
    bodies: dict[Any, Any]
    device: dict[Any, Any]
    roots: list[Any]
    stored: frozenset[str] | None
    ours: bool
    inner: list[Kept]


class _OfFunction(dict[Any, Any]):
    """The results of a function, kept in its attribute `_ATTRIBUTE` as long as it lives. A copy or pickle has none."""

    def __reduce__(self) -> Any:
        return _OfFunction, ()


_ATTRIBUTE = "_cute_kept"


def kept_of(function: Any) -> dict[Any, Any]:
    """Return the results kept of a user's function from one compilation to the next, by `Question.key` (which names the
    function: a decorator may have copied the attributes of another)."""
    found: dict[Any, Any] = vars(function).setdefault(_ATTRIBUTE, _OfFunction())
    return found


class Memory:
    """The results of calls. results: the types that traced calls gave, by call. jitted: the plain functions that
    tracing could not follow, by call. dispatchers: the jitted forms of functions. compiled: what device functions
    became, by dispatcher and arguments' types; refused: why others became nothing. meetings: where values are converted
    (`typed.meetings`). inlined: by the variables of functions that were inlined, what those were called. effects: what
    calls do with objects, by the key of their lowering, and of functions that Numba compiles, by the function and its
    arguments' types (bridge/effects.py). bodies: by the same keys, what functions of the user's do that may concern the
    checks of kernels (`seam.hooks.audits`). roots: the kernel, and the host's objects that it is given. stored: the
    fields' names that are set from there (bridge/settings.py). ours: a function of this library's has been met, so that
    what it calls is too. losses: what costs the function speed that is compiled now (of those that it calls see
    `losses_in`). lowers: what lowers functions now, innermost last. aside: how often a device function told the kernel
    what no other kernel would hear of."""

    def __init__(self) -> None:
        self.results: dict[Any, Any] = {}
        self.jitted: dict[Any, Any] = {}
        self.dispatchers: dict[Any, Any] = {}
        self.compiled: dict[Any, Any] = {}
        self.refused: dict[Any, Exception] = {}
        self.meetings: Meetings = {}
        self.inlined: dict[str, str] = {}
        self.effects: dict[Any, Any] = {}
        self.bodies: dict[Any, Any] = {}
        self.roots: list[Any] = []
        self.stored: frozenset[str] | None = None
        self.ours = False
        self.losses: dict[Loss, None] = {}
        self.lowers: list[Any] = []
        self.aside = 0
        self._calls: list[list[Kept | None]] = []
        self._met: dict[Any, Kept | None] = {}
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

    def device(
        self, dispatcher: Any, args: Any, lasts: Callable[[], bool] | None, compile: Callable[[], Any],
        ask: Callable[[], Question | None],
    ) -> Any:  # fmt: skip
        """Return what `compile` makes of a device function for arguments of these types. lasts: asked of one of this
        library's own functions, whether it is kept for others; None of a user's. ask: gives what tells whether a user's
        that was compiled before will do; None if it is not kept."""
        if lasts is not None:
            if args not in dispatcher.overloads and not lasts():
                self._passing.append((dispatcher, args))
            found = self.compiled[dispatcher, args] = self._noting(compile)
            return found
        if dispatcher not in self._before:
            self._before[dispatcher], dispatcher.overloads = dispatcher.overloads, {}
        if args not in dispatcher.overloads:
            if (dispatcher, args) in self.refused:
                raise _again(self.refused[dispatcher, args])
            question = ask()
            known = None if question is None else kept_of(dispatcher.py_func).get(question.key)
            if question is not None and known is not None and known.holds() and self._suits(known, question):
                self._take(known, set())
                dispatcher.overloads[args] = made = known.compiled
                made.target_context.insert_user_function(made.entry_point, made.fndesc, [made.library])
            else:
                try:
                    known = self._compile(dispatcher, compile, question)
                except (NumbaError, CuteError) as e:
                    # Numba types a call that failed once more, and so do those that call: 3**depth times in all
                    self.refused[dispatcher, args] = _again(e)
                    raise
            self._met[dispatcher, args] = known
        if self._calls:
            self._calls[-1].append(self._met[dispatcher, args])
        found = self.compiled[dispatcher, args] = dispatcher.overloads[args]
        return found

    def _compile(self, dispatcher: Any, compile: Callable[[], Any], question: Question | None) -> Kept | None:
        """Compile a device function, and return what is kept of it; None if it is not."""
        holds = None if question is None else question.read()
        outer, self.meetings = self.meetings, {}
        self._calls.append([])
        begun = len(self.effects), len(self.bodies), len(self.compiled), len(self.roots), self.aside
        try:
            made = self._noting(compile)
        finally:
            meetings, self.meetings = self.meetings, outer
            inner = self._calls.pop()
            _join(outer, meetings)
        if question is None or holds is None or self.aside != begun[4] or None in inner:
            return None
        known = [k for k in inner if k is not None]
        told, bodies, device = map(_since, (self.effects, self.bodies, self.compiled), begun)
        kept = Kept(made, holds, meetings, told, bodies, device, self.roots[begun[3] :], self.stored, self.ours, known)
        kept_of(dispatcher.py_func)[question.key] = kept
        return kept

    def _noting(self, compile: Callable[[], Any]) -> Any:
        """Return what `compile` makes of a device function; what of it costs speed goes where its code goes."""
        outer, self.losses = self.losses, {}
        try:
            made = compile()
            if self.losses:
                made.library._cute_losses = tuple(self.losses)
            return made
        finally:
            self.losses = outer

    def losses_in(self, library: Any) -> dict[Loss, None]:
        """Return what costs a kernel speed. library: its code, which knows the device functions' that it calls: others
        were compiled for a branch that is none."""
        found, left, seen = dict(self.losses), [library], {id(library)}
        for linked in left:
            found.update(dict.fromkeys(getattr(linked, "_cute_losses", ())))
            # code of a file has none
            more = [x for x in getattr(linked, "_linking_libraries", ()) if id(x) not in seen]
            seen.update(map(id, more))
            left += more
        return found

    def _suits(self, kept: Kept, question: Question) -> bool:
        """Say whether this kernel sets the fields that the one for which a device function was compiled did."""
        if kept.stored is None:
            return True
        stored = self.stored if self.stored is not None else question.stored([*self.roots, *kept.roots])
        if stored == kept.stored:
            self.stored = stored
        return stored == kept.stored

    def _take(self, kept: Kept, seen: set[int]) -> None:
        """Note what compiling a device function, and those that it calls, told."""
        if id(kept) in seen:
            return
        seen.add(id(kept))
        _join(self.meetings, kept.meetings)
        self.effects.update(kept.effects)
        self.bodies.update(kept.bodies)
        self.compiled.update(kept.device)
        self.roots += kept.roots
        self.ours = self.ours or kept.ours
        for inner in kept.inner:
            self._take(inner, seen)

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


def _since(found: dict[Any, Any], count: int) -> dict[Any, Any]:
    """Return what was added to a dict after the first so many."""
    return dict(itertools.islice(found.items(), count, None))


def _again(e: Exception) -> Exception:
    """Return an error to raise once more: Numba adds to what it catches."""
    made = copy.copy(e)
    made.__cause__ = e.__cause__
    if isinstance(made, NumbaError):
        made._contexts = list(made.contexts)
    return made


def _join(into: Meetings, new: Meetings) -> None:
    for code, versions in new.items():
        into.setdefault(code, set()).update(versions)


def _forget(compiled: Any) -> None:
    with suppress(KeyError):
        compiled.target_context.remove_user_function(compiled.entry_point)


LASTING = Memory()
"""Results of this library's own functions for its own types."""
_memories: list[Memory] = []
"""The memories of the compilations under way, innermost last."""
_loose = [Memory()]
"""The memory of a function that Numba compiles within none of those."""


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


def body_of(key: Any) -> Any:
    """Return what a function of this compilation does; None if that is not known, or concerns no check."""
    found = memory().bodies.get(key)
    return LASTING.bodies.get(key) if found is None else found


def lowering_of(key: Any) -> OverloadSelector | None:
    """Return what lowers a call of this compilation; None for what Numba lowers."""
    return memory().lowering(key) or LASTING.lowering(key)
