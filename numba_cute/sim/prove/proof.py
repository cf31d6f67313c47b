# SPDX-License-Identifier: Apache-2.0
"""Make a `Proof` of a finished run, for `simulate(kernel).prove()`."""

from __future__ import annotations

import dataclasses
import functools
from html import escape
from typing import Any

from ...seam.ground.drawing import brief
from ..ground.report import count
from .barriers import Barriers, barriers
from .memory import Memory, memory
from .order import RULES, Conflict
from .prover import Prover
from .recording import Record, Recording
from .repeating import Repeating
from .roles import Roles, roles

UNCHECKED = "that the kernel has no data race"
_MOST = 6  # conflicts in a report, and lines of an assumption


@dataclasses.dataclass(frozen=True)
class Proof:
    """A proof, or its failure, that every order of a launch's threads and asynchronous copies does what the run did.

    proved: no two orders differ in what a barrier's phases hold, so that the run's end, and its checks for races, hold
    for all orders of this launch. kernel, grid, block: of the launch. events: steps of synchronisation that were
    followed. assumptions: what the proof takes as the run had it, with the lines. conflicts: what another order could
    change. A Proof is true if `proved` is.
    rounds: of `prove(rounds=True)`, the lines of the steps that the threads do again and again, and that may be done
    any number of times: no order of the first cluster hangs then either; () where none are found, or something is
    assumed.
    roles, barriers, memory: pictures of the first cluster, to print, or to draw by `.svg()` and `.html()`: what each
    role of the warps does, with loops folded; arrivals and bytes of each mbarrier, who signals it and who waits;
    shared and tensor memory over time.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    events: int
    assumptions: tuple[str, ...]
    conflicts: tuple[str, ...]
    rounds: tuple[str, ...]
    record: Record = dataclasses.field(repr=False, compare=False)

    @functools.cached_property
    def roles(self) -> Roles:
        return roles(self.record)

    @functools.cached_property
    def barriers(self) -> Barriers:
        return barriers(self.record, self.roles)

    @functools.cached_property
    def memory(self) -> Memory:
        return memory(self.record, self.roles)

    @property
    def proved(self) -> bool:
        return not self.conflicts

    def __bool__(self) -> bool:
        return self.proved

    def __repr__(self) -> str:
        return brief(str(self))

    def _repr_html_(self) -> str:
        pictures = (self.roles, self.barriers, self.memory)
        return f"<pre>{escape(str(self))}</pre>" + "".join(p._repr_html_() for p in pictures)

    def __str__(self) -> str:
        launch = f"{self.kernel}[{self.grid}, {self.block}]"
        if self.proved:
            lines = [
                f"{launch}: proved. Every order of its threads and copies performs the {count(self.events, 'step')} of "
                f"synchronisation of this run in one partial order: none hangs, and the run's checks speak for all"
            ]
        else:
            lines = [f"{launch}: not proved: another order may do something else"]
            lines += [f"  {text}" for text in self.conflicts[:_MOST]]
            if len(self.conflicts) > _MOST:
                lines.append(f"  and {len(self.conflicts) - _MOST} more")
            lines.append("  to look for an order that fails: cute.simulate(kernel).explore()[grid, block](…)")
        if self.rounds:
            at = ", ".join(self.rounds)
            lines.append(f"  nor does one of the first cluster with fewer or more rounds of the steps at {at}")
        lines.append(
            "  assumed: the sizes and the data of this launch" + ("" if self.assumptions else "; nothing else")
        )
        return "\n".join([*lines, *(f"  assumed: {text}" for text in self.assumptions)])


def proof(run: Any) -> Proof:
    """The proof that a finished run gives, a `Prover` among whose checks has followed it."""
    prover = next(c for c in run.watch.checks if isinstance(c, Prover))
    assumed = [_assumption(what, places) for what, places in prover.assumed.items()]
    if not any(c.name == "races" for c in run.watch.checks):
        assumed.append(f"{UNCHECKED}: the check `races` was off")
    conflicts = tuple(map(_told, prover.conflicts.values()))
    record = next((c.record for c in run.watch.checks if isinstance(c, Recording)), None) or Record((), (), (), {})
    return Proof(run.kernel, run.grid, run.block, prover.events, tuple(assumed), conflicts, _rounds(prover), record)


def _rounds(prover: Prover) -> tuple[str, ...]:
    """The lines of the round that was found, if it may be repeated."""
    if not isinstance(prover, Repeating) or prover.assumed or prover.conflicts:
        return ()
    return tuple(p.short for p in prover.places)


def _assumption(what: str, places: Any) -> str:
    lines = [p.short for p in places]
    more = f" and {len(lines) - _MOST} more" if len(lines) > _MOST else ""
    return f"{what}, at {', '.join(lines[:_MOST])}{more}"


def _told(c: Conflict) -> str:
    """A conflict as two steps that another order exchanges."""
    first, second = (f"{s.thread} {s.how} at {s.place}" for s in (c.first, c.second))
    return (
        f"{c.barrier}, phase {c.phase}: {RULES[c.rule]}\n"
        f"    in this run:  {first}\n    comes before: {second}\n"
        f"    another order may have them the other way round"
    )
