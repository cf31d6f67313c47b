# SPDX-License-Identifier: Apache-2.0
"""Find the assignments that reach a place in a function's IR, before Numba brings it into SSA form.

There a name is not a value: `t = N // 2` in front of a loop and `t //= 2` in it both set `t`. What holds of a use of it
is what holds of every assignment that reaches that use.
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


def unreached(blocks: dict[int, Any]) -> list[int]:
    """Return the labels of a function's blocks that nothing leads to."""
    seen, todo = set(), [min(blocks)]
    while todo:
        label = todo.pop()
        if label not in seen:
            seen.add(label)
            todo += blocks[label].terminator.get_targets()
    return [label for label in blocks if label not in seen]


class Definitions:
    """The assignments of a function's variables. It is of one state of the IR: statements that are added or moved make
    it stale, a new right-hand side in place does not. places: by variable, all of its assignments."""

    def __init__(self, blocks: dict[int, Any]) -> None:
        self.blocks = blocks
        places: dict[str, list[Place]] = {}
        for label in sorted(blocks):
            for index, inst in enumerate(blocks[label].body):
                if type(inst) is ir.Assign:
                    name = inst.target.name
                    if name in places:
                        places[name].append(_place((label, index)))
                    else:
                        places[name] = [_place((label, index))]
        self.places = {name: tuple(found) for name, found in places.items()}
        self._follow()

    def _follow(self) -> None:
        """Find which blocks follow which."""
        self._into: dict[int, list[int]] = {label: [] for label in self.blocks}
        for label, block in self.blocks.items():
            for target in block.terminator.get_targets():
                self._into[target].append(label)
        self._in_blocks: dict[str, dict[int, list[Place]]] = {}
        self._at_entry: dict[tuple[int, str], tuple[Place, ...]] = {}

    def after_pruning(self) -> None:
        """Note that blocks were left out, and ends of others changed: other statements stand where they stood."""
        for name, places in self.places.items():
            if any(p[0] not in self.blocks for p in places):
                self.places[name] = tuple([p for p in places if p[0] in self.blocks])
        self._follow()

    def is_there(self, place: Place) -> bool:
        """Say whether the block of a place was not left out."""
        return place[0] in self.blocks

    def at(self, place: Place) -> Any:
        """Return the statement at a place."""
        return self.blocks[place[0]].body[place[1]]

    def reaching(self, name: str, use: Place) -> tuple[Place, ...]:
        """Return the assignments of `name` whose value the statement at `use` may read; none if nothing assigns it."""
        known = self.places.get(name, ())
        if len(known) <= 1:  # what runs before the only assignment is an error in Python
            return known
        label, index = use
        before = [p for p in self._in_block(name).get(label, ()) if p[1] < index]
        return (before[-1],) if before else self._entering(name, label)

    def _in_block(self, name: str) -> dict[int, list[Place]]:
        """Return the assignments of a variable by their blocks."""
        found = self._in_blocks.get(name)
        if found is None:
            found = self._in_blocks[name] = {}
            for place in self.places[name]:
                found.setdefault(place[0], []).append(place)
        return found

    def _entering(self, name: str, label: int) -> tuple[Place, ...]:
        """Return the assignments of `name` that reach the start of a block."""
        key = label, name
        known = self._at_entry.get(key)
        if known is not None:
            return known
        found, seen, todo, into, in_block = set(), {label}, list(self._into[label]), self._into, self._in_block(name)
        while todo:
            before = todo.pop()
            if before in in_block:
                found.add(in_block[before][-1])
            elif before not in seen:
                todo += into[before]
            seen.add(before)
        made = self._at_entry[key] = tuple(sorted(found))
        return made
