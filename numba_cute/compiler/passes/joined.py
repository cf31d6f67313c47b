# SPDX-License-Identifier: Apache-2.0
"""A kernel and the functions of the user's that it calls as one: each call is its function's blocks, with variables of
that call's own. A call of what is not known, or beyond a limit, stays a call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...seam.hooks.audits import Body, Callee, Code, Given, Spot, Step

_MOST_STEPS = 20_000
"""The most steps of a kernel with all that it calls, where functions are called in many places that are called in
many."""

_OF = "\0"
"""Stands between a call and a variable of it, in its name."""


def joined(code: Code) -> Code:
    """Return a kernel with all that it calls in its place."""
    made = _Joined(code)
    made.add(code, "", (), {at: at for at in code.follows})
    of = made.values

    def value(var: str) -> Any:
        frame, _, name = var.rpartition(_OF)
        return of[frame](name)

    return Code(made.steps, made.follows, made.conditions, made.loops, value, code.note, code.threads)


class _Joined:
    """Hold the code joined so far. values: for each call, the function that gives its variables' values."""

    def __init__(self, code: Code) -> None:
        self.steps: list[Step] = []
        self.follows: dict[int, tuple[int, ...]] = {}
        self.conditions: dict[int, str] = {}
        self.loops: dict[int, str] = {}
        self.values: dict[str, Callable[[str], Any]] = {}
        self._blocks = max(code.follows) + 1
        self._file = code.steps[0].at.file if code.steps else ""
        self._spots: dict[Spot, Spot] = {}

    def add(self, body: Body, frame: str, given: tuple[Given, ...], entry: dict[int, int]) -> list[tuple[int, str]]:
        """Add a function's blocks; gives those at whose end it returns, each with the variable that it gives. frame:
        begins the names of its variables. entry: the numbers of its blocks."""
        self.values[frame] = body.value
        own: dict[int, list[Step]] = {at: [] for at in sorted(body.follows)}
        for s in body.steps:
            own[s.block].append(s)
        ends = []
        for at, steps in own.items():
            block = entry[at]
            for s in steps:
                block = self._step(s, block, frame, given)
            self.follows[block] = tuple([entry[f] for f in body.follows[at]])
            if at in body.conditions:
                self.conditions[block] = _named(frame, body.conditions[at])
            if at in body.loops:
                self.loops[entry[at]] = _named(frame, body.loops[at])
            if steps and steps[-1].kind == "return":
                ends.append((block, self.steps[-1].of))
        return ends

    def _block(self) -> int:
        self._blocks += 1
        return self._blocks - 1

    def _step(self, s: Step, block: int, frame: str, given: tuple[Given, ...]) -> int:
        """Add a step to a block; gives the block in which the next one stands."""
        if frame or s.block != block or s.at.file != self._file:
            s = self._of_call(s, block, frame)
        if s.kind == "argument" and frame:
            s = _bound(s, given[s.of] if s.of < len(given) else None)
        if s.calls is None or len(self.steps) > _MOST_STEPS:
            self.steps.append(s)
            return block
        body, inner = s.calls.body, f"{frame}/{len(self.values)}"
        entry = {at: self._block() for at in sorted(body.follows)}
        self.follows[block] = (entry[min(entry)],)
        ends = self.add(body, inner, s.calls.given, entry)
        after = self._block()
        self.follows[after] = ()
        for end, _ in ends:
            self.follows[end] = (after,)
        results = tuple(var for _, var in ends)
        kind, of = ("alias", results[0]) if len(results) == 1 else ("phi", None)
        self.steps.append(Step(kind, s.target, of, None, results, {}, {*results}, s.at, after))
        return after

    def _of_call(self, s: Step, block: int, frame: str) -> Step:
        """Return a step as of this call."""
        at = s.at if s.at.file == self._file else self._spots.setdefault(s.at, replace(s.at, foreign=True))
        if not frame:
            return replace(s, block=block, at=at)
        calls = s.calls and Callee(s.calls.body, tuple(_given(frame, g) for g in s.calls.given))
        return Step(
            s.kind, _named(frame, s.target) if s.target else "", _named(frame, s.of) if isinstance(s.of, str) else s.of,
            s.name, tuple([_named(frame, v) for v in s.args]), {k: _named(frame, v) for k, v in s.named.items()},
            {_named(frame, v) for v in s.uses}, at, block, calls,
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
