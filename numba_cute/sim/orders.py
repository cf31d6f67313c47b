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
from ..seam.marks.constexpr import static_arguments
from .exploring.deviations import explore
from .prove.proof import Proof

Snapshot = list[tuple[Any, Any]]
"""Allocations of global memory, and what they held."""


def restore(before: Snapshot) -> None:
    """Undo what runs have written."""
    for allocation, data in before:
        if not np.array_equal(allocation.data, data):  # if not, it may be read-only
            allocation.data[...] = data


@dataclasses.dataclass(frozen=True)
class Exploration:
    """See `Simulated.explore`."""

    simulated: Any
    most: int
    deviations: int
    choices: dict[int, int] | None

    def __getitem__(self, config: Any) -> Callable[..., int]:
        return partial(self._explore, *self.simulated.configured(config))

    def _explore(self, grid: Any, block: Any, smem: int, *args: Any, **named: Any) -> int:
        args = static_arguments(self.simulated.kernel, args, named)
        self.simulated._compiled_too(grid, block, args)
        before: Snapshot = []

        def run(choices: dict[int, int]) -> dict[int, int]:
            known = bool(before)
            restore(before)
            done = self.simulated.once(grid, block, smem, args, None, choices, None if known else before)
            return done.choices.options  # type: ignore[no-any-return]

        try:
            with answering_for(self.simulated.arch, self.simulated.sms):
                return self._orders(run)
        finally:
            restore(before)

    def _orders(self, run: Callable[[dict[int, int]], dict[int, int]]) -> int:
        if self.choices is not None:
            run(self.choices)
            return 1
        return explore(run, self.most, self.deviations)


@dataclasses.dataclass(frozen=True)
class Proving:
    """See `Simulated.prove`."""

    simulated: Any

    def __getitem__(self, config: Any) -> Callable[..., Proof]:
        return partial(self._prove, *self.simulated.configured(config))

    def __call__(self, *args: Any, **named: Any) -> list[Proof]:
        """Run a host function, and prove each of its launches. CuteError for a kernel."""
        proofs: list[Proof] = []
        token = PROOFS.set(proofs)
        try:
            self.simulated(*args, **named)
        finally:
            PROOFS.reset(token)
        return proofs

    def _prove(self, grid: Any, block: Any, smem: int, *args: Any, **named: Any) -> Proof:
        proofs: list[Proof] = []
        token = PROOFS.set(proofs)
        try:
            self.simulated[grid, block, 0, smem](*args, **named)
        finally:
            PROOFS.reset(token)
        return proofs[0]


PROOFS: ContextVar[list[Proof] | None] = ContextVar("PROOFS", default=None)
"""Where the proof of each launch goes, while some are to be proved."""
PROVES: ContextVar[bool] = ContextVar("PROVES", default=False)
"""Whether each launch is to be proved (see numba_cute_pytest)."""
