# SPDX-License-Identifier: Apache-2.0
"""Blocks and branches as nested loops and conditions.

Every reducible graph of blocks has such a form. Where a region can be left in several ways (by `break`, an early
`return`, a condition of several parts), a selector says which way it was: `Go` sets it, a `Condition` asks it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from ..seam import CuteError
from .form import Block, Branch, Copy, Function, Jump, Next, Return, Set, Statement, read_by
from .graph import Graph
from .iteration import Iteration, iteration_of
from .rotation import unrotated

EXIT = -1
"""The label of what follows a function's end."""
RESULT = "$result"
"""The variable that holds what a function returns."""


@dataclass(frozen=True)
class Condition:
    """A condition: the variable is true, or, if it is a selector, it is `label`. negated: the contrary."""

    variable: str
    label: int | None = None
    negated: bool = False


@dataclass
class Go:
    """Set a selector to a label."""

    selector: str
    label: int


@dataclass
class Choose:
    """Set a selector of two labels to `then` if a condition holds, else to `otherwise`."""

    selector: str
    condition: Condition
    then: int
    otherwise: int


@dataclass
class If:
    """Run `then` if a condition holds, else `otherwise`. line, marks: as of statements, here and below."""

    condition: Condition
    then: Region
    otherwise: Region
    line: int = 0
    marks: tuple[int, ...] = ()


@dataclass
class For:
    """Run `body` for each number of a range, in `index`. start, stop, step: variables; None for 0 and 1."""

    index: str
    start: str | None
    stop: str
    step: str | None
    body: Region
    line: int = 0
    marks: tuple[int, ...] = ()


@dataclass
class While:
    """Run `test`; while its condition holds, run `body` and `test` again."""

    test: Region
    condition: Condition
    body: Region
    line: int = 0
    marks: tuple[int, ...] = ()


@dataclass
class Repeat:
    """Run `body`, and again while a condition holds (None: for ever)."""

    body: Region
    again: Condition | None
    line: int = 0
    marks: tuple[int, ...] = ()


Node: TypeAlias = "Statement | Go | Choose | If | For | While | Repeat"
Region: TypeAlias = "list[Node]"


@dataclass
class Structured:
    """A function's body. selectors: the labels of each; of two the first is the one that a Boolean calls true.
    variables: those that were added, with what they hold."""

    body: Region
    selectors: dict[str, tuple[int, ...]] = field(default_factory=dict)


def structured(function: Function) -> Structured:
    """Give a function's blocks as nested loops and conditions. Raises CuteError for blocks that have no such form, and
    for loops over what no loop of the IR goes over."""
    return _Structure(unrotated(function)).done()


@dataclass(frozen=True)
class _Fork:
    """A branch on a condition."""

    condition: Condition
    then: int
    otherwise: int
    line: int = 0
    marks: tuple[int, ...] = ()


class _Structure:
    def __init__(self, function: Function) -> None:
        self._function = function
        self._statements: dict[int, list[Statement]] = {}
        self._ends: dict[int, Jump | _Fork] = {}
        for label, block in function.blocks.items():
            self._take(label, block)
        self._graph = Graph({label: self._targets(label) for label in self._ends}, function.entry)
        if not self._graph.reducible:
            raise CuteError(f"{function.name}: a loop is entered in several places, and has no structured form")
        self._selectors: dict[str, tuple[int, ...]] = {}
        self._added = EXIT

    def done(self) -> Structured:
        return Structured(self._region(self._function.entry, frozenset([EXIT])), self._selectors)

    def _take(self, label: int, block: Block) -> None:
        statements, end = list(block.statements), block.terminator
        if isinstance(end, Return):
            if end.value is not None:
                statements.append(Set(RESULT, Copy(end.value), end.line, end.marks))
            end = Jump(EXIT)
        self._statements[label] = statements
        if isinstance(end, Branch):
            self._ends[label] = _Fork(Condition(end.condition), end.then, end.otherwise, end.line, end.marks)
        else:
            self._ends[label] = end

    def _targets(self, label: int) -> tuple[int, ...]:
        end = self._ends[label]
        return (end.target,) if isinstance(end, Jump) else (end.then, end.otherwise)

    # ------------------------------------------------------------ regions

    def _region(
        self, at: int, stops: frozenset[int], selector: str | None = None, entering: int | None = None
    ) -> Region:
        """Give what runs from the block `at` until one of `stops`; where these are several, `selector` is set to the
        one that is reached. entering: the header of the loop whose body this is, which is one of them."""
        out: Region = []
        while at not in stops or at == entering:
            if at in self._graph.loops and at != entering:
                exits, chosen = self._loop(at, out)
                if not exits:
                    return out
                at = self._dispatch(chosen, exits)
                continue
            entering = None
            out.extend(self._statements[at])
            end = self._ends[at]
            if isinstance(end, Jump):
                at = end.target
                continue
            joins = self._graph.joins(end.then, end.otherwise, stops)
            inner = selector if joins <= stops else None
            if len(joins) > 1 and inner is None:
                inner = self._selector(sorted(joins, key=self._graph.order))
            out += self._fork(end, joins, inner if len(joins) > 1 else None)
            if not joins or (len(joins) > 1 and inner == selector):
                return out
            at = self._dispatch(inner, sorted(joins, key=self._graph.order))
        if selector is not None:
            out.append(Go(selector, at))
        return out

    def _fork(self, end: _Fork, joins: frozenset[int], selector: str | None) -> Region:
        then = self._region(end.then, joins, selector)
        otherwise = self._region(end.otherwise, joins, selector)
        if selector is not None and len(self._selectors[selector]) == 2:
            if all(len(r) == 1 and isinstance(r[0], Go) for r in (then, otherwise)):
                return [Choose(selector, end.condition, then[0].label, otherwise[0].label)]  # type: ignore[union-attr]
        return [If(end.condition, then, otherwise, end.line, end.marks)] if then or otherwise else []

    def _selector(self, labels: Iterable[int]) -> str:
        name = f"$selector.{len(self._selectors)}"
        self._selectors[name] = tuple(labels)
        return name

    def _dispatch(self, selector: str | None, labels: list[int]) -> int:
        """Give the label of a new block that goes where a selector says."""
        first, *others = labels
        if not others:
            return first
        assert selector is not None
        self._added -= 1
        label, rest = self._added, self._dispatch(selector, others)
        self._statements[label] = []
        self._ends[label] = _Fork(Condition(selector, first), first, rest)
        self._graph.add(label, (first, rest))
        return label

    # ------------------------------------------------------------ loops

    def _loop(self, header: int, out: Region) -> tuple[list[int], str | None]:
        """Append the loop of a header to `out`. Gives where it ends, and the selector that says which of these."""
        exits = self._graph.exits(header)
        statements, end = self._statements[header], self._ends[header]
        iteration = next((iteration_of(self._function, s) for s in statements if isinstance(s, Next)), None)
        if isinstance(end, _Fork) and len(exits) == 1 and self._graph.leaving(header) == [header]:
            leaves_by_then = end.then == exits[0]
            body = self._region(end.otherwise if leaves_by_then else end.then, frozenset([header]))
            if iteration is not None and iteration.upward:
                out += iteration.before
                marks = tuple(m for s in statements for m in s.marks) + end.marks
                rest = [s for s in statements if not isinstance(s, Next)]
                bounds = iteration.index, iteration.start, iteration.stop, iteration.step
                out.append(For(*bounds, [*iteration.each, *rest, *body], end.line, marks))
                out += _without_step(statements)  # the last time, when there is nothing more to go over
                return exits, None
            test = self._counted(iteration, statements, out)
            condition = Condition(end.condition.variable, end.condition.label, leaves_by_then)
            out.append(While([*test], condition, body, end.line, end.marks))
            return exits, None
        self._statements[header] = self._counted(iteration, statements, out)
        if not exits:
            out.append(Repeat(self._region(header, frozenset([header]), entering=header), None))
            return exits, None
        selector = self._selector([header, *exits])
        body = self._region(header, frozenset([header, *exits]), selector, header)
        out.append(Repeat(body, Condition(selector, header), getattr(end, "line", 0)))
        return exits, selector

    @staticmethod
    def _counted(iteration: Iteration | None, statements: list[Statement], out: Region) -> list[Statement]:
        """Write an iterator's step as arithmetic, its start to `out`."""
        if iteration is None:
            return statements
        out += iteration.before
        out += iteration.starting
        made: list[Statement] = []
        for s in statements:
            made += [*iteration.stepping, *iteration.each] if isinstance(s, Next) else [s]
        return made


def _without_step(statements: list[Statement]) -> list[Statement]:
    """Give those of a header's statements that do not need what its iterator gives."""
    unset: set[str] = set()
    found: list[Statement] = []
    for s in statements:
        if isinstance(s, Next):
            unset |= {s.value, s.valid}
        elif not isinstance(s, Set) or unset.isdisjoint(read_by(s.source)):
            found.append(s)
        else:
            unset.add(s.target)
    return found
