# SPDX-License-Identifier: Apache-2.0
"""A kernel in many orders: `simulate(kernel).explore()` tries them, `.prove()` shows that all agree."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Any

import numpy as np

from ..isa.form.targets import answering_for
from ..seam.ground.folding import folding
from .exploring.deviations import explore
from .exploring.recorder import Plan
from .exploring.search import Search
from .ground.report import count
from .prove.proof import UNCHECKED, Proof, proof
from .prove.prover import ATOMICS

RANKS = "the order of what ranks do to each other, but where warps, blocks and ranks deviate from the usual one"
Snapshot = list[tuple[Any, Any]]
"""Allocations of global memory, and what they held."""


def restore(before: Snapshot) -> None:
    """Undo what runs have written."""
    for allocation, data in before:
        if not np.array_equal(allocation.data, data):  # if not, it may be read-only
            allocation.data[...] = data


class Explored(int):
    """The number of orders of a kernel that ran without an error, as `Simulated.explore` gives it.

    differ: how many of them differ in more than the order of what commutes. all: whether no other order differs.
    assumptions: what the orders that ran take as one run had it, with the lines."""

    differ: int
    all: bool
    assumptions: tuple[str, ...]

    def __new__(cls, runs: int, differ: int, all: bool, assumptions: tuple[str, ...]) -> Explored:
        made = super().__new__(cls, runs)
        made.differ, made.all, made.assumptions = differ, all, assumptions
        return made

    def __str__(self) -> str:
        if self.all and self.differ == 1:
            first = "no order differs from the one that was run"
        elif self.all:
            first = f"all {self.differ} orders that differ were run"
        else:
            first = f"{count(int(self), 'order')} of more were run, of which {self.differ} are known to differ"
        return "\n".join([first, *(f"  assumed: {text}" for text in self.assumptions)])


@dataclasses.dataclass(frozen=True)
class Exploration:
    """See `Simulated.explore`."""

    simulated: Any
    most: int
    deviations: int
    choices: dict[int, Any] | None

    def __getitem__(self, config: Any) -> Callable[..., Explored]:
        return partial(self._explore, *self.simulated.configured(config))

    @folding
    def _explore(self, grid: Any, block: Any, smem: int, *args: Any, **named: Any) -> Explored:
        given = self.simulated._given(args, named)
        self.simulated._compiled_too(grid, block, given)
        before: Snapshot = []

        def run(order: Any) -> Any:
            known = bool(before)
            restore(before)
            return self.simulated.once(grid, block, smem, given, None, order, None if known else before)

        try:
            with answering_for(self.simulated.arch, self.simulated.sms):
                return self._orders(run)
        finally:
            restore(before)

    def _orders(self, run: Callable[[Any], Any]) -> Explored:
        if self.choices is not None:
            named = any(isinstance(c, str) for c in self.choices.values())
            run(Plan(choices=self.choices) if named else self.choices)
            return Explored(1, 1, False, ())

        def deviating(choices: dict[int, int]) -> Any:
            return run(choices).choices.options

        def followed(plan: Plan) -> Any:
            done = run(plan)
            for what in proof(done).assumptions:
                if not what.startswith(ATOMICS):
                    search.assume(what)
            return done

        if self.simulated.ranks > 1:  # of which no order of single steps is known to stand for others
            return Explored(explore(deviating, self.most, self.deviations), 1, False, (RANKS,))
        search = Search(followed)
        found = search.all(self.most)
        unknown = tuple(search.assumed)
        if found.all and all(text.startswith(UNCHECKED) for text in unknown):
            return Explored(found.runs, found.differ, True, unknown)
        further = explore(deviating, self.most - found.runs, self.deviations)
        return Explored(found.runs + further, found.differ, False, unknown)


@dataclasses.dataclass(frozen=True)
class Proving:
    """See `Simulated.prove`."""

    simulated: Any
    rounds: bool = False

    def __getitem__(self, config: Any) -> Callable[..., Proof]:
        return partial(self._prove, *self.simulated.configured(config))

    def __call__(self, *args: Any, **named: Any) -> list[Proof]:
        """Run a host function, and prove each of its launches. CuteError for a kernel."""
        return self._proofs(self.simulated, *args, **named)

    @folding
    def _prove(self, grid: Any, block: Any, smem: int, *args: Any, **named: Any) -> Proof:
        return self._proofs(self.simulated[grid, block, 0, smem], *args, **named)[0]

    @folding
    def _proofs(self, launch: Callable[..., Any], *args: Any, **named: Any) -> list[Proof]:
        proofs: list[Proof] = []
        tokens = PROOFS.set(proofs), ROUNDS.set(self.rounds)
        try:
            launch(*args, **named)
        finally:
            PROOFS.reset(tokens[0])
            ROUNDS.reset(tokens[1])
        return proofs


PROOFS: ContextVar[list[Proof] | None] = ContextVar("PROOFS", default=None)
"""The list that takes the proof of each launch, while some are to be proved."""
ROUNDS: ContextVar[bool] = ContextVar("ROUNDS", default=False)
"""True if these are to look for rounds too."""
PROVES: ContextVar[bool] = ContextVar("PROVES", default=False)
"""True if each launch is to be proved (see numba_cute_pytest)."""
