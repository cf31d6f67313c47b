# SPDX-License-Identifier: Apache-2.0
"""The ways through a function that is compiled: what comes before what, and which threads come where."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np

from ... import dtypes
from ...arch import index, warp
from ...seam.hooks.audits import Code, Step

_MOST_THREADS = 1024
_OF_A_WARP = 32


class Flow:
    """The blocks of a function. Steps are named by their number."""

    def __init__(self, code: Code) -> None:
        self._code = code
        self.first = min(code.follows)
        self._steps: dict[int, list[int]] = {}
        for i, s in enumerate(code.steps):
            self._steps.setdefault(s.block, []).append(i)

    def leads(self, start: int, to: int, around: Collection[int] = ()) -> bool:
        """Say whether some way leads from a step to another, or to itself again, and meets none of the steps `around`
        before."""
        steps, seen, left = self._code.steps, set(), []
        block = steps[start].block
        found = self._meets([i for i in self._steps[block] if i > start], to, around)
        if found is None:
            left = list(self._code.follows[block])
        while found is None and left:
            block = left.pop()
            if block in seen:
                continue
            seen.add(block)
            found = self._meets(self._steps.get(block, []), to, around)
            if found is False:
                found = None
            elif found is None:
                left += self._code.follows[block]
        return bool(found)

    @staticmethod
    def _meets(steps: list[int], to: int, around: Collection[int]) -> bool | None:
        """Say which of `to` and `around` comes first: True, False, or None where neither does."""
        return next((i == to for i in steps if i == to or i in around), None)

    def always_before(self, first: int, then: int) -> bool:
        """Say whether every way to a step comes by another one."""
        a, b = (self._code.steps[i].block for i in (first, then))
        return first < then if a == b else self.block_always_before(a, b)

    def block_always_before(self, first: int, then: int) -> bool:
        """Say whether every way to a block comes by another one, or is of the same."""
        return first in self._dominators[then]

    def each_round(self, *blocks: int) -> bool:
        """Say whether some loop comes by all of these blocks in each of its rounds."""
        return any(
            body.issuperset(blocks)
            and all(self.block_always_before(b, last) for b in blocks for last in self.before[head] if last in body)
            for head, body in self.loops
        )

    def start_of(self, block: int) -> int:
        """Return the first step of a block."""
        return self._steps[block][0]

    @functools.cached_property
    def _dominators(self) -> dict[int, frozenset[int]]:
        """Find, for each block, the blocks through which every way to it goes."""
        found: dict[int, frozenset[int]] = {}
        todo = self._in_order()
        changed = True
        while changed:
            changed = False
            for b in todo:
                before = [found[p] for p in self.before[b] if p in found] if b != self.first else []
                now = frozenset.intersection(*before) | {b} if before else frozenset((b,))
                if found.get(b) != now:
                    found[b], changed = now, True
        everything = frozenset(self._code.follows)  # no way leads to the others
        return {b: found.get(b, everything) for b in self._code.follows}

    def _in_order(self) -> list[int]:
        """List the blocks to which ways lead, each after those before it, but for what loops lead back to."""
        done: list[int] = []
        seen, left = {self.first}, [(self.first, iter(self._code.follows[self.first]))]
        while left:
            block, following = left[-1]
            new = next((f for f in following if f not in seen), None)
            if new is None:
                done.append(block)
                left.pop()
            else:
                seen.add(new)
                left.append((new, iter(self._code.follows[new])))
        return done[::-1]

    @functools.cached_property
    def before(self) -> dict[int, list[int]]:
        """Find, for each block, the blocks that it may follow."""
        found: dict[int, list[int]] = {b: [] for b in self._code.follows}
        for b, following in self._code.follows.items():
            for f in following:
                found[f].append(b)
        return found

    @functools.cached_property
    def loops(self) -> list[tuple[int, set[int]]]:
        """The loops: the block that each begins with, and all of its blocks."""
        found = []
        for b, following in self._code.follows.items():
            for head in following:
                if head in self._dominators[b]:
                    body, left = {head, b}, [b]
                    while left:
                        at = left.pop()
                        new = [p for p in self.before[at] if p not in body] if at != head else []
                        body.update(new)
                        left += new
                    found.append((head, body))
        return found


def regions_of(code: Code) -> dict[int, int]:
    """Find for each block the first of those that always run one after the other with it."""
    if "regions" not in code.found:
        code.found["regions"] = _regions(code.follows)
    found: dict[int, int] = code.found["regions"]
    return found


def _regions(follows: dict[int, tuple[int, ...]]) -> dict[int, int]:
    into: dict[int, list[int]] = {b: [] for b in follows}
    for b, following in follows.items():
        for f in following:
            into[f].append(b)
    found: dict[int, int] = {}
    for b in follows:
        chain = [b]
        while len(into[b]) == 1 and len(follows[into[b][0]]) == 1 and into[b][0] not in chain:
            b = into[b][0]
            if b in found:
                break
            chain.append(b)
        found.update(dict.fromkeys(chain, found.get(b, b)))
    return found


class Threads:
    """The threads that come to each place, in a block of x alone: as many as the kernel is compiled for, or as a block
    may have.

    known: whether a block has no more threads than these."""

    def __init__(self, code: Code, flow: Flow) -> None:
        self._code, self._flow = code, flow
        self.known = code.threads is not None
        self._all = np.arange(code.threads or _MOST_THREADS)
        self._set: dict[str, Step] = {s.target: s for s in code.steps if s.target}
        self._values: dict[str, Any] = {}

    @functools.cached_property
    def flat(self) -> bool:
        """Say whether the function asks for x of the thread alone."""
        asks = [s for s in self._code.steps if s.kind == "call" and s.name is index.thread_idx]
        tuples, other = {s.target for s in asks}, set()
        for s in self._code.steps:
            if s.kind == "alias" and s.of in tuples:
                tuples.add(s.target)
            elif s.kind == "item" and s.of in tuples and s.name != 0:
                other.add(s.target)
            elif s.kind == "get" and s.name in ("y", "z") and self._is_thread_idx(s.of):
                return False
        named = {s.target for s in self._code.steps if s.kind == "alias" and s.of in other}
        return not any(v in s.uses for s in self._code.steps for v in named if s.kind != "alias" or s.of != v)

    @functools.cached_property
    def _come(self) -> dict[int, Any]:
        """By block, for each thread whether it may come there."""
        found = {b: np.zeros(len(self._all), bool) for b in self._code.follows}
        found[self._flow.first][:] = True
        self._spread(found, [self._flow.first], lambda b, f: True)
        return found

    def may(self, block: int) -> Any:
        """Return for each thread whether it may come to a block."""
        return self._come[block]

    def must(self, block: int) -> Any:
        """Return for each thread whether it surely comes to a block, where each loop around it has a round."""
        around = [(head, body) for head, body in self._flow.loops if block in body]
        passed = np.zeros(len(self._all), bool)
        found = {b: np.zeros(len(self._all), bool) for b in self._code.follows}
        if block != self._flow.first:
            found[self._flow.first][:] = True

        def goes(b: int, f: int) -> bool:
            nonlocal passed
            if f == block or any(b == head and f not in body for head, body in around):
                return False
            if any(f == head and b in body for head, body in around):
                passed = passed | found[b]
                return False
            return True

        self._spread(found, [self._flow.first], goes)
        for b, following in self._code.follows.items():
            if not following:
                passed = passed | found[b]
        return self._come[block] & ~passed

    def rounds(self, head: int) -> int | None:
        """Return how many rounds a `for` loop over a range has; None if that is not known."""
        step = self._set.get(self._code.loops.get(head, ""))
        while step is not None and step.kind in ("alias", "round"):
            step = self._set.get(step.of)
        if step is None or step.kind != "call" or step.name is not range:
            return None
        ends = [self._value(v) for v in step.args]
        return len(range(*ends)) if all(type(n) is int for n in ends) and (len(ends) < 3 or ends[2]) else None

    def _spread(self, found: dict[int, Any], left: list[int], goes: Callable[[int, int], bool]) -> None:
        while left:
            b = left.pop()
            for f, those in self._out(b):
                come = found[b] & those
                if goes(b, f) and (come & ~found[f]).any():
                    found[f] = found[f] | come
                    left.append(f)

    def _out(self, block: int) -> Iterator[tuple[int, Any]]:
        """Yield the blocks that follow one, with the threads that may go there."""
        following = self._code.follows[block]
        condition = self._code.conditions.get(block)
        chosen = None if condition is None or not self.flat else self._value(condition)
        if chosen is None or len(following) != 2:
            yield from ((f, True) for f in following)
        else:
            taken = np.broadcast_to(np.asarray(chosen, bool), self._all.shape)
            yield following[0], taken
            yield following[1], ~taken

    def _value(self, var: str) -> Any:
        """Return what a variable is in each thread, or in all; None if it is not known."""
        if var not in self._values:
            self._values[var] = None  # of what is computed from itself
            step = self._set.get(var)
            self._values[var] = None if step is None else self._computed(step)
        return self._values[var]

    def _computed(self, s: Step) -> Any:
        if s.kind == "known":
            return s.name if isinstance(s.name, (bool, int)) else None
        if s.kind == "alias":
            return self._value(s.of)
        if s.kind == "item" and s.name == 0 and self._is_call(s.of, index.thread_idx):
            return self._all
        if s.kind == "get" and s.name == "x" and self._is_thread_idx(s.of):
            return self._all
        if s.kind == "call" and s.of is None:
            return self._called(s)
        if s.kind != "operator" or s.name not in _OPERATORS:
            return None
        operands = [self._value(v) for v in s.args]
        if any(v is None for v in operands) or s.name in _DIVIDES and not np.all(operands[1]):
            return None
        return _OPERATORS[s.name](*operands)

    def _called(self, s: Step) -> Any:
        if s.name is index.warp_idx:
            return self._all // _OF_A_WARP
        if s.name is index.lane_idx:
            return self._all % _OF_A_WARP
        if len(s.args) != 1 or s.named:
            return None
        if s.name is warp.make_warp_uniform:
            value = self._value(s.args[0])
            each = None if value is None else np.broadcast_to(value, self._all.shape)
            return None if each is None else each[self._all // _OF_A_WARP * _OF_A_WARP]
        return self._value(s.args[0]) if s.name in (dtypes.Int32, dtypes.Int64, dtypes.Boolean) else None

    def _is_call(self, var: str, function: Any) -> bool:
        step = self._set.get(var)
        while step is not None and step.kind == "alias":
            step = self._set.get(step.of)
        return step is not None and step.kind == "call" and step.name is function

    def _is_thread_idx(self, var: str) -> bool:
        """Say whether a variable is Numba's `cuda.threadIdx`."""
        step = self._set.get(var)
        return step is not None and step.kind == "get" and step.name == "threadIdx"


_DIVIDES = (operator.floordiv, operator.mod)
_OPERATORS: dict[Any, Callable[..., Any]] = {
    f: f
    for f in (
        operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.and_, operator.or_,
        operator.xor, operator.rshift, operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
    )
} | {operator.not_: np.logical_not, operator.pos: operator.pos, operator.neg: operator.neg}  # fmt: skip
