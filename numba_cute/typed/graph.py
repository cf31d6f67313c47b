# SPDX-License-Identifier: Apache-2.0
"""The graph of a function's blocks: what dominates what, loops, where ways meet."""

from __future__ import annotations

from collections.abc import Mapping


class Graph:
    """targets: where each block goes on; a target that is not a block is an end. loops: by its header, the blocks of
    each natural loop. reducible: no loop is entered but by its header."""

    def __init__(self, targets: Mapping[int, tuple[int, ...]], entry: int) -> None:
        self._targets = dict(targets)
        self._order = {label: i for i, label in enumerate(self._reversed_postorder(entry))}
        self._into: dict[int, list[int]] = {}
        for label in self._order:
            for t in self._targets.get(label, ()):
                self._into.setdefault(t, []).append(label)
        self._dominator = self._dominators(entry)
        self.loops: dict[int, set[int]] = {}
        self.reducible = True
        for label in self._order:
            for t in self._targets.get(label, ()):
                if self._dominates(t, label):
                    self.loops.setdefault(t, {t}).update(self._running_to(label, t))
                elif self._order[t] <= self._order[label]:
                    self.reducible = False

    def _reversed_postorder(self, entry: int) -> list[int]:
        done: list[int] = []
        seen, todo = {entry}, [(entry, iter(self._targets.get(entry, ())))]
        while todo:
            label, rest = todo[-1]
            t = next((t for t in rest if t not in seen), None)
            if t is None:
                done.append(label)
                todo.pop()
            else:
                seen.add(t)
                todo.append((t, iter(self._targets.get(t, ()))))
        return done[::-1]

    def _dominators(self, entry: int) -> dict[int, int]:
        """Find the immediate dominator of each block."""
        found = {entry: entry}
        changed = True
        while changed:
            changed = False
            for label in self._order:
                known = [p for p in self._into.get(label, ()) if p in found]
                if label == entry or not known:
                    continue
                new = known[0]
                for p in known[1:]:
                    new = self._common(found, new, p)
                if found.get(label) != new:
                    found[label], changed = new, True
        return found

    def _common(self, found: dict[int, int], a: int, b: int) -> int:
        while a != b:
            if self._order[a] > self._order[b]:
                a = found[a]
            else:
                b = found[b]
        return a

    def _dominates(self, a: int, b: int) -> bool:
        while self._order[b] > self._order[a]:
            b = self._dominator[b]
        return a == b

    def _running_to(self, label: int, header: int) -> set[int]:
        """Find the blocks from which `label` is reached without passing `header`."""
        found, todo = {label}, [label]
        while todo:
            at = todo.pop()
            if at != header:
                new = [p for p in self._into.get(at, ()) if p not in found]
                found.update(new)
                todo += new
        return found

    def add(self, label: int, targets: tuple[int, ...]) -> None:
        """Add a block that runs before all of its targets."""
        self._targets[label] = targets
        self._order[label] = min(map(self.order, targets))

    def order(self, label: int) -> int:
        """Tell blocks' places in an order in which each stands before what follows it, but for loops."""
        return self._order[label]

    def targets(self, label: int) -> tuple[int, ...]:
        """Return where a block goes on."""
        return self._targets.get(label, ())

    def exits(self, header: int) -> list[int]:
        """List where a loop goes on when it ends."""
        loop = self.loops[header]
        return sorted({t for label in loop for t in self.targets(label)} - loop, key=self.order)

    def leaving(self, header: int) -> list[int]:
        """List the blocks of a loop that may end it."""
        loop = self.loops[header]
        return sorted(label for label in loop if not loop.issuperset(self.targets(label)))

    def reached(self, label: int, stops: frozenset[int]) -> set[int]:
        """Find what is reached from a block, itself included, up to `stops`."""
        found, todo = {label}, [label]
        while todo:
            at = todo.pop()
            if at not in stops:
                new = set(self.targets(at)) - found
                found |= new
                todo += new
        return found

    def joins(self, a: int, b: int, stops: frozenset[int]) -> frozenset[int]:
        """Find where the ways from two blocks meet again or stop: the first blocks that are no longer of one of these
        ways alone."""
        from_a, from_b = self.reached(a, stops), self.reached(b, stops)
        found = set()
        for start, mine, other in ((a, from_a, from_b), (b, from_b, from_a)):
            alone = mine - other - stops
            found |= ({start} | {t for label in alone for t in self.targets(label)}) - alone
        return frozenset(found)
