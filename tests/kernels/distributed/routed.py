# SPDX-License-Identifier: Apache-2.0
"""Experts on several simulated GPUs: memory of each rank, the plans of its kernels, and runs of all ranks at once."""

from __future__ import annotations

from typing import Any

import numpy as np

import numba_cute as cute
from numba_cute.kernels.distributed import experts_plan, routes
from numba_cute.kernels.distributed.experts_plan import Extents
from numba_cute.kernels.gemm import grouped
from numba_cute.kernels.gemm.dense import THREADS

from .ranks import random, signals_of

NARROW = grouped.Cut(128, (1, 1), True)


def together(plans: list[Any], threads: int, cluster: Any = None, order: Any = None, **options: Any) -> None:
    """Run what each rank planned, (kernel, arguments, grid, …), all at once. order: the seed of another one."""
    options |= {} if order is None else {"seed": order}
    kernel, first, grid, *_ = plans[0]
    columns = list(zip(*(arguments for _, arguments, *_ in plans), strict=True))
    given = [x if isinstance(x, int) else cute.sim.PerRank(*column) for x, column in zip(first, columns)]
    cute.simulate(kernel, ranks=len(plans), cluster=cluster, **options)[grid, threads](*given)


class Routed:
    """Memory of all ranks for experts, and where tokens go."""

    def __init__(self, extents: Extents, dtype: Any = cute.BFloat16) -> None:
        self.extents, self.dtype, ranks = extents, dtype, extents.world
        self.sorted = cute.sim.symmetric((extents.sorted,), np.int32, ranks)
        self.peers = cute.runtime.from_symmetric(self.sorted)
        self.rooms = [self.room() for _ in range(ranks)]
        self.signals = signals_of(routes.SLOTS, ranks)

    def room(self) -> experts_plan.Room:
        return experts_plan.Room.make(
            self.extents, lambda shape: np.full(shape, np.nan, self.dtype.numpy),
            lambda shape: np.zeros(shape, np.int32), np.zeros(routes.WORDS, np.int32),
        )  # fmt: skip

    def route(self, indices: list[Any], blocks: int = 1, **options: Any) -> None:
        plans = [
            experts_plan.route(indices[r], self.peers, self.extents, room, r, signals, blocks)
            for r, (room, signals) in enumerate(zip(self.rooms, self.signals))
        ]
        together(plans, plans[0][3], **options)

    def wanted(self, indices: list[Any], rank: int) -> tuple[list[tuple[int, int]], list[int]]:
        """The rows that come to a rank, (rank of origin, pair), and where each of its experts' end."""
        world, experts = self.extents.world, self.extents.experts
        own, rows, ends = experts // world, [], []
        for expert in range(rank * own, (rank + 1) * own):
            for hop in range(world):
                source = (rank + hop) % world
                rows += [(source, pair) for pair, e in enumerate(indices[source].ravel()) if e == expert]
            ends.append(len(rows))
        return rows, ends


class Experts(Routed):
    """Two products, of rows that come and of those that go back. n: columns of the first."""

    def __init__(
        self, extents: Extents, n: int, dtype: Any = cute.BFloat16, cut: Any = NARROW, columns: int = 0
    ) -> None:  # fmt: skip
        super().__init__(extents, dtype)
        self.cut, self.n, ranks, own = cut, n, extents.world, extents.experts // extents.world
        self.columns = columns or extents.hidden
        self.x = cute.sim.symmetric((extents.tokens, extents.hidden), dtype, ranks)
        self.parts = cute.sim.symmetric((extents.pairs, self.columns), dtype, ranks)
        self.tokens, self.back = (cute.runtime.from_symmetric(t, assumed_align=16) for t in (self.x, self.parts))
        self.first = [random((own, n, extents.hidden), dtype, 10 + r) for r in range(ranks)]
        self.second = [random((own, self.columns, n), dtype, 20 + r) for r in range(ranks)]
        self.h = [np.full((extents.capacity, n), np.nan, dtype.numpy) for _ in range(ranks)]

    def tokens_of(self, indices: list[Any], seed: int) -> None:
        """Other tokens, and no results."""
        for r, x in enumerate(self.x.arrays):
            x[...] = np.nan
            count = len(indices[r])
            x[:count] = random((count, x.shape[1]), self.dtype, 100 * seed + r)
            self.h[r].fill(np.nan)
        self.route(indices)

    def find(self, indices: list[Any], seed: int = 0) -> None:
        """Find where rows go, and make such as the first product would give."""
        self.tokens_of(indices, seed)
        for r, h in enumerate(self.h):
            h[...] = random(h.shape, self.dtype, 10 * seed + r)

    def bring(self, indices: list[Any], seed: int = 0, blocks: int = 1, **options: Any) -> None:
        """Bring rows without a product, other ones each time, and check them."""
        self.tokens_of(indices, seed)
        plans = [
            experts_plan.dispatch(self.tokens, self.extents, room, r, signals, blocks)
            for r, (room, signals) in enumerate(zip(self.rooms, self.signals))
        ]
        together(plans, plans[0][3], **options)
        for r, room in enumerate(self.rooms):
            rows, _ = self.wanted(indices, r)
            for row, (source, pair) in enumerate(rows):
                assert (room.here[row] == self.x.arrays[source][pair // self.extents.topk]).all()

    def dispatch(self, indices: list[Any], seed: int = 0, clusters: int = 1, **options: Any) -> None:
        """One launch, of other tokens each time, and its check."""
        self.tokens_of(indices, seed)
        plans = [
            experts_plan.dispatch_matmul(
                self.tokens, self.first[r], self.h[r], self.extents, room, r, signals, lambda ctas: clusters, self.cut
            )
            for r, (room, signals) in enumerate(zip(self.rooms, self.signals))
        ]
        together(plans, THREADS, plans[0][3], **options)
        for r, h in enumerate(self.h):
            rows, ends = self.wanted(indices, r)
            begin = 0
            for expert, end in enumerate(ends):
                x = [self.x.arrays[s][pair // self.extents.topk] for s, pair in rows[begin:end]]
                if x:
                    close(h[begin:end], np.stack(x).astype(np.float64) @ self.first[r][expert].astype(np.float64).T)
                begin = end
            assert np.isnan(h[begin:].astype(np.float32)).all()

    def combine(
        self, indices: list[Any], seed: int = 0, clusters: int = 1, multiply: bool = True, **options: Any
    ) -> list[Any]:  # fmt: skip
        """One launch, of other weights each time, and its check. multiply: or rows go back as they are `here`."""
        weights = [np.random.default_rng(seed + r).random(x.shape, np.float32) for r, x in enumerate(indices)]
        out = [np.full((len(x), self.columns), np.nan, self.dtype.numpy) for x in indices]
        for parts in self.parts.arrays:
            parts.fill(np.nan)
        plans = []
        for r, (room, signals) in enumerate(zip(self.rooms, self.signals)):
            given = weights[r], out[r], self.back, self.extents, room, r, signals
            plans.append(
                experts_plan.matmul_combine(self.h[r], self.second[r], *given, lambda ctas: clusters, self.cut)
                if multiply
                else experts_plan.combine(room.here, *given, clusters)
            )
        together(plans, *((THREADS, plans[0][3]) if multiply else (plans[0][3],)), **options)
        self.check(indices, weights, out, multiply)
        return out

    def check(self, indices: list[Any], weights: list[Any], out: list[Any], multiply: bool) -> None:
        """Compare the sums with float64."""
        want, size = ([np.zeros(x.shape, np.float64) for x in out] for _ in range(2))
        for r in range(self.extents.world):
            rows, ends = self.wanted(indices, r)
            for row, (source, pair) in enumerate(rows):
                expert = sum(end <= row for end in ends)
                made = (
                    self.second[r][expert].astype(np.float64) @ self.h[r][row].astype(np.float64)
                    if multiply
                    else self.rooms[r].here[row].astype(np.float64)
                )
                token, choice = divmod(pair, self.extents.topk)
                made = weights[source][token, choice] * made
                want[source][token] += made
                size[source][token] += abs(made)
        for got, sums, sizes in zip(out, want, size):
            close(got, sums, sizes)


def close(got: Any, want: Any, parts: Any = 0) -> None:
    """Compare with what float64 gives. parts: the sizes of what was rounded before it was added up."""
    unit = 2.0**-8 if got.dtype.name == "bfloat16" else 2.0**-11
    off = np.abs(got.astype(np.float64) - want)
    assert (off <= 1.01 * unit * (np.abs(want) + parts) + 1e-4).all(), float(np.nanmax(off))
