# SPDX-License-Identifier: Apache-2.0
"""Where tokens of several simulated GPUs go: found on them, and right in any order."""

from __future__ import annotations

import numpy as np

import numba_cute as cute
from numba_cute.kernels.distributed import experts_plan, routes

from .ranks import signals_of


class Routed:
    """The kernel on each rank. counts: tokens of each rank now."""

    def __init__(self, extents: experts_plan.Extents) -> None:
        self.extents, ranks = extents, extents.world
        self.sorted = cute.sim.symmetric((extents.sorted,), np.int32, ranks)
        self.peers = cute.runtime.from_symmetric(self.sorted)
        self.rooms = [
            experts_plan.Room.make(
                extents, lambda shape: np.full(shape, np.nan, np.float32), lambda shape: np.zeros(shape, np.int32),
                np.zeros(routes.WORDS, np.int32),
            )
            for _ in range(ranks)
        ]  # fmt: skip
        self.signals = signals_of(routes.SLOTS, ranks)

    def run(self, indices, blocks=1, **options):
        plans = [
            experts_plan.route(indices[r], self.peers, self.extents, self.rooms[r], r, self.signals[r], blocks)
            for r in range(self.extents.world)
        ]
        kernel, _, grid, block = plans[0]
        given = [cute.sim.PerRank(*x) for x in list(zip(*(p[1] for p in plans), strict=True))[:-1]]
        cute.simulate(kernel, ranks=len(plans), **options)[grid, block](*given, plans[0][1][-1])


def wanted(extents, indices, rank):
    """The rows that come to a rank, (rank of origin, pair), and where each of its experts' end."""
    own, rows, ends = extents.experts // extents.world, [], []
    for expert in range(rank * own, (rank + 1) * own):
        for hop in range(extents.world):
            source = (rank + hop) % extents.world
            rows += [(source, pair) for pair, e in enumerate(indices[source].ravel()) if e == expert]
        ends.append(len(rows))
    return rows, ends


def test_rows():
    extents = experts_plan.Extents(2, 30, 64, 2, 4, 120)
    it = Routed(extents)
    rng = np.random.default_rng(0)
    for step in range(2):
        indices = [rng.integers(-1, 4, (30 - 8 * step, 2)).astype(np.int32) for _ in range(2)]
        for room in it.rooms:
            room.arrived.fill(9)
        it.run(indices, 2)
        for rank, room in enumerate(it.rooms):
            rows, ends = wanted(extents, indices, rank)
            assert room.ends.tolist() == ends
            assert [divmod(x, 60) for x in room.origins[: len(rows)].tolist()] == rows
            assert not room.arrived.any()
            assert not room.report.any()
