# SPDX-License-Identifier: Apache-2.0
"""Find the assignments that reach a place in a function's IR, before Numba brings it into SSA form.

There a name is no value: `t = N // 2` in front of a loop and `t //= 2` in it both set `t`. What holds of a use of it is
what holds of every assignment that reaches that use.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..ground.numba_cuda import ir


class Place(NamedTuple):
    """A statement: its block's label and its index there."""

    label: int
    index: int  # type: ignore[assignment]  # which hides a tuple's method


_place = functools.partial(tuple.__new__, Place)
"""Make a place of a label and an index: half of the time of `Place(…)`, and a kernel has a million."""


def statements(blocks: dict[int, Any]) -> Iterator[tuple[Place, Any]]:
    """Go over every statement of a function with its place, block by block."""
    for label in sorted(blocks):
        for index, inst in enumerate(blocks[label].body):
            yield _place((label, index)), inst


def instructions(blocks: dict[int, Any]) -> list[Any]:
    """List every statement of a function, block by block."""
    return [inst for label in sorted(blocks) for inst in blocks[label].body]


class Definitions:
    """The assignments of a function's variables. It is of one state of the IR: statements that are added or moved make
    it stale, a new right-hand side in place does not."""

    def __init__(self, blocks: dict[int, Any]) -> None:
        self._blocks = blocks
        self._places: dict[str, list[Place]] = {}
        self._in_block: dict[tuple[int, str], list[int]] = {}
        for label in sorted(blocks):
            for index, inst in enumerate(blocks[label].body):
                if type(inst) is ir.Assign:
                    name = inst.target.name
                    self._places.setdefault(name, []).append(_place((label, index)))
                    self._in_block.setdefault((label, name), []).append(index)
        self._follow()

    def _follow(self) -> None:
        """Find which blocks follow which."""
        self._into: dict[int, list[int]] = {label: [] for label in self._blocks}
        for label, block in self._blocks.items():
            for target in block.terminator.get_targets():
                self._into[target].append(label)
        self._at_entry: dict[tuple[int, str], tuple[Place, ...]] = {}

    def after_pruning(self) -> None:
        """Note that blocks were left out, and ends of others changed: other statements stand where they stood."""
        for name, places in self._places.items():
            if any(p[0] not in self._blocks for p in places):
                self._places[name] = [p for p in places if p[0] in self._blocks]
        self._follow()

    def is_there(self, place: Place) -> bool:
        """Say whether the block of a place was not left out."""
        return place[0] in self._blocks

    def is_single(self, name: str) -> bool:
        """Say whether a variable has one assignment at most."""
        return len(self._places.get(name, ())) <= 1

    def at(self, place: Place) -> Any:
        """Return the statement at a place."""
        return self._blocks[place.label].body[place.index]

    def reaching(self, name: str, use: Place) -> tuple[Place, ...]:
        """Return the assignments of `name` whose value the statement at `use` may read; none if nothing assigns it."""
        known = self._places.get(name, [])
        if len(known) <= 1:  # what runs before the only assignment is an error in Python
            return tuple(known)
        before = [i for i in self._in_block.get((use.label, name), ()) if i < use.index]
        return (Place(use.label, before[-1]),) if before else self._entering(name, use.label)

    def _entering(self, name: str, label: int) -> tuple[Place, ...]:
        """Return the assignments of `name` that reach the start of a block."""
        key = label, name
        if key not in self._at_entry:
            found, seen, todo = set(), {label}, list(self._into[label])
            while todo:
                before = todo.pop()
                inside = self._in_block.get((before, name))
                if inside:
                    found.add(Place(before, inside[-1]))
                elif before not in seen:
                    todo.extend(self._into[before])
                seen.add(before)
            self._at_entry[key] = tuple(sorted(found, key=lambda p: (p.label, p.index)))
        return self._at_entry[key]
