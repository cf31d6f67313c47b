# SPDX-License-Identifier: Apache-2.0
"""A kernel and the functions of the user's that it calls as one: each call is its function's blocks, with variables of
that call's own. A call of what is not known, of itself within itself, or beyond a limit, stays a call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...seam.hooks.audits import Body, Callee, Code, Given, Spot, Step

_MOST_STEPS = 20_000
"""Of a kernel with all that it calls, where functions are called in many places that are called in many."""

_OF = "\0"
"""Stands between a call and a variable of it, in its name."""


def joined(code: Code, body_of: Callable[[Any], Body | None]) -> Code:
    """Return a kernel with all that it calls in its place. body_of: finds a function by `Callee.key`."""
    made = _Joined(code, body_of)
    made.add(code, "", (), ())
    of = made.values

    def value(var: str) -> Any:
        frame, _, name = var.rpartition(_OF)
        return of[frame](name)

    regions = _regions(made.follows)
    steps = [replace(s, region=regions[s.block]) for s in made.steps]
    return Code(steps, made.follows, made.conditions, made.loops, value, code.note, code.threads)


class _Joined:
    """What is joined so far. values: what tells of variables, by the call that they are of."""

    def __init__(self, code: Code, body_of: Callable[[Any], Body | None]) -> None:
        self.steps: list[Step] = []
        self.follows: dict[int, tuple[int, ...]] = {}
        self.conditions: dict[int, str] = {}
        self.loops: dict[int, str] = {}
        self.values: dict[str, Callable[[str], Any]] = {}
        self._body_of = body_of
        self._file = code.steps[0].at.file if code.steps else ""
        self._spots: dict[Spot, Spot] = {}

    def add(self, body: Body, frame: str, given: tuple[Given, ...], around: tuple[Any, ...]) -> tuple[int, Any]:
        """Add a function's blocks; gives the first, and those at whose end it returns, each with the variable that it
        gives. frame: begins the names of its variables. around: the keys of the functions that are being added."""
        self.values[frame] = body.value
        order = sorted(body.follows)
        entry = {at: self._block() for at in order}
        own: dict[int, list[Step]] = {at: [] for at in order}
        for s in body.steps:
            own[s.block].append(s)
        ends = []
        for at in order:
            block = entry[at]
            for s in own[at]:
                block = self._step(s, block, frame, given, around)
            self.follows[block] = tuple(entry[f] for f in body.follows[at])
            if at in body.conditions:
                self.conditions[block] = _named(frame, body.conditions[at])
            if at in body.loops:
                self.loops[entry[at]] = _named(frame, body.loops[at])
            if own[at] and own[at][-1].kind == "return":
                ends.append((block, self.steps[-1].of))
        return entry[order[0]], ends

    def _block(self) -> int:
        number = len(self.follows)
        self.follows[number] = ()
        return number

    def _step(self, s: Step, block: int, frame: str, given: tuple[Given, ...], around: tuple[Any, ...]) -> int:
        """Add a step to a block; gives the block in which the next one stands."""
        s = self._of_call(s, block, frame)
        called = s.calls
        body = None
        if called is not None and called.key not in around and len(self.steps) <= _MOST_STEPS:
            body = self._body_of(called.key)
        if s.kind == "argument" and frame:
            s = _bound(s, given[s.of] if s.of < len(given) else None)
        if called is None or body is None:
            self.steps.append(s)
            return block
        inner = f"{frame}/{len(self.values)}"
        first, ends = self.add(body, inner, called.given, (*around, called.key))
        after = self._block()
        self.follows[block] = (first,)
        for end, _ in ends:
            self.follows[end] = (after,)
        results = tuple(var for _, var in ends)
        kind, of = ("alias", results[0]) if len(results) == 1 else ("phi", None)
        self.steps.append(
            replace(s, kind=kind, of=of, name=None, args=results, named={}, uses={*results}, block=after, calls=None)
        )
        return after

    def _of_call(self, s: Step, block: int, frame: str) -> Step:
        """Return a step as of this call."""
        at = s.at if s.at.file == self._file else self._spots.setdefault(s.at, replace(s.at, foreign=True))
        if not frame:
            return replace(s, block=block, at=at)
        calls = s.calls and Callee(s.calls.key, tuple(_given(frame, g) for g in s.calls.given))
        return Step(
            s.kind, _named(frame, s.target) if s.target else "", _named(frame, s.of) if isinstance(s.of, str) else s.of,
            s.name, tuple([_named(frame, v) for v in s.args]), {k: _named(frame, v) for k, v in s.named.items()},
            {_named(frame, v) for v in s.uses}, s.region, at, block, calls,
        )  # fmt: skip


def _named(frame: str, var: str) -> str:
    return f"{frame}{_OF}{var}" if frame else var


def _given(frame: str, given: Given) -> Given:
    if given is None:
        return None
    return _named(frame, given) if isinstance(given, str) else tuple(_named(frame, v) for v in given)


def _bound(s: Step, given: Given) -> Step:
    """Return the step for a parameter that a call gives a variable."""
    if isinstance(given, str):
        return replace(s, kind="alias", of=given, name=None, uses={given})
    if given is None:  # a default, or what a partial function holds
        return replace(s, kind="other", of=None, name=None)
    return replace(s, kind="tuple", of=None, name=None, args=given, uses={*given})


def _regions(follows: dict[int, tuple[int, ...]]) -> dict[int, int]:
    """Find for each block the first of those that always run one after the other with it."""
    into: dict[int, list[int]] = {b: [] for b in follows}
    for b, following in follows.items():
        for f in following:
            into[f].append(b)
    found: dict[int, int] = {}

    def before(b: int) -> int | None:
        return into[b][0] if len(into[b]) == 1 and len(follows[into[b][0]]) == 1 else None

    for b in follows:
        chain: list[int] = []
        at: int | None = b
        while at is not None and at not in found and at not in chain:
            chain.append(at)
            at = before(at)
        first = found[at] if at is not None and at in found else chain[-1]
        found.update(dict.fromkeys(chain, first))
    return found
