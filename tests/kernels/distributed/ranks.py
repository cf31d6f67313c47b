# SPDX-License-Identifier: Apache-2.0
"""Products over several simulated GPUs: operands of each rank, the kernel's plan on each, and one run of all."""

from __future__ import annotations

from typing import Any

import numpy as np

import numba_cute as cute
from numba_cute.kernels.distributed import plan
from numba_cute.kernels.distributed.bringing import USUAL
from numba_cute.kernels.gemm import plan as gemm_plan
from numba_cute.kernels.gemm.dense import THREADS
from numba_cute.utils.distributed import Signals


def random(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32).astype(dtype.numpy)


def signals_of(slots: int, ranks: int) -> list[Any]:
    """The signals of each rank."""
    flags = cute.runtime.from_symmetric(cute.sim.symmetric((slots + 1, ranks), np.int32, ranks))
    return [Signals(flags, cute.Int32(rank)) for rank in range(ranks)]


def run(plans: list[Any], **options: Any) -> None:
    """Run what each rank planned, (kernel, arguments, grid), all at once."""
    kernel, _, grid = plans[0]
    given = [cute.sim.PerRank(*column) for column in zip(*(arguments for _, arguments, _ in plans), strict=True)]
    cute.simulate(kernel, ranks=len(plans), **options)[grid, THREADS](*given)


class Gathered:
    """C = all rows of A @ B[rank].T on each rank. rows: of A, of a rank. n, k: of each rank's B. slots: of pieces."""

    def __init__(
        self, ranks: int, rows: int, n: int, k: int, dtype: Any = cute.BFloat16, cut: Any = None, slots: Any = USUAL
    ) -> None:  # fmt: skip
        self.cut, self.dtype, self.ranks, self.slots = cut or gemm_plan.Plan(64, 1), dtype, ranks, slots
        self.a = cute.sim.symmetric((rows, k), dtype, ranks)
        self.peers = cute.runtime.from_symmetric(self.a, assumed_align=16)
        self.b = [random((n, k), dtype, 10 + r) for r in range(ranks)]
        self.c = [np.zeros((ranks, rows, n), dtype.numpy) for _ in range(ranks)]
        self.rooms = [self.room(ranks, rows, k) for _ in range(ranks)]
        self.signals = signals_of(plan.GATHER_SLOTS, ranks)

    def room(self, *extents: int) -> plan.GatherRoom:
        return plan.GatherRoom.make(
            *extents, lambda shape: np.full(shape, np.nan, self.dtype.numpy), lambda shape: np.zeros(shape, np.int32)
        )

    def step(self, number: int, clusters: int = 1, **options: Any) -> None:
        """One launch, of other rows each time, and its check."""
        for rank, mine in enumerate(self.a.arrays):
            mine[...] = random(mine.shape, self.dtype, number + rank)
            self.c[rank].fill(np.nan)
        run([
            plan.all_gather_matmul(self.peers, b, c, self.dtype, rank, signals, room, clusters, self.cut,
                                   slots=self.slots)
            for rank, (b, c, signals, room) in enumerate(zip(self.b, self.c, self.signals, self.rooms))
        ], **options)  # fmt: skip
        a = np.stack(self.a.arrays).astype(np.float64)
        for b, c in zip(self.b, self.c):
            close(c, [a @ b.astype(np.float64).T])


class Scattered:
    """Rows of the sum over ranks of A[rank] @ B[rank].T, on the rank that owns them. rows: of a rank. n, k: of each
    rank's B."""

    def __init__(self, ranks: int, rows: int, n: int, k: int, dtype: Any = cute.BFloat16, cut: Any = None) -> None:
        self.cut, self.dtype, self.ranks = cut or gemm_plan.Plan(64, 1), dtype, ranks
        self.shape, self.k = (ranks, rows, n), k
        self.parts = cute.sim.symmetric(self.shape, dtype, ranks)  # from which rank
        self.peers = cute.runtime.from_symmetric(self.parts, assumed_align=16)
        self.signals = signals_of(plan.slots_of(rows, n, self.cut.tile_n), ranks)
        self.c = [np.zeros((rows, n), dtype.numpy) for _ in range(ranks)]

    def step(self, number: int, clusters: int = 1, **options: Any) -> None:
        """One launch, of other operands each time, and its check."""
        ranks, rows, n = self.shape
        a = [random((ranks, rows, self.k), self.dtype, number + r) for r in range(ranks)]
        b = [random((n, self.k), self.dtype, number + 10 + r) for r in range(ranks)]
        for part, c in zip(self.parts.arrays, self.c):
            part.fill(np.nan)
            c.fill(np.nan)
        run([
            plan.matmul_reduce_scatter(a[r], b[r], c, self.peers, self.dtype, r, signals, clusters, self.cut)
            for r, (c, signals) in enumerate(zip(self.c, self.signals))
        ], **options)  # fmt: skip
        parts = [x.astype(np.float64) @ y.astype(np.float64).T for x, y in zip(a, b)]
        for rank, c in enumerate(self.c):
            close(c, [part[rank] for part in parts])


class Reduced:
    """The sum over ranks of A[rank] @ B[rank].T, on each rank. m, n, k: of each rank's product."""

    def __init__(
        self, ranks: int, m: int, n: int, k: int, dtype: Any = cute.BFloat16, cut: Any = None, once: bool = False
    ) -> None:  # fmt: skip
        self.cut, self.dtype, self.once = cut or gemm_plan.Plan(64, 1), dtype, once
        rows = m if once else m // ranks
        self.shape, self.k, self.ranks = (m, n) if once else (ranks, rows, n), k, ranks
        self.parts = cute.sim.symmetric((ranks, rows, n), dtype, ranks)  # from which rank
        self.shared = None if once else cute.sim.symmetric((ranks, rows, n), dtype, ranks)  # of which owner
        self.memory = [t and cute.runtime.from_symmetric(t, assumed_align=16) for t in (self.parts, self.shared)]
        self.signals = signals_of(plan.slots_of(rows, n, self.cut.tile_n, not once), ranks)
        self.c = [np.zeros(self.shape, dtype.numpy) for _ in range(ranks)]

    def step(self, number: int, clusters: int = 1, **options: Any) -> None:
        """One launch, of other operands each time, and its check."""
        a = [random((*self.shape[:-1], self.k), self.dtype, number + r) for r in range(self.ranks)]
        b = [random((self.shape[-1], self.k), self.dtype, number + 10 + r) for r in range(self.ranks)]
        for x in (*self.c, *self.parts.arrays, *(self.shared.arrays if self.shared else ())):
            x.fill(np.nan)
        run([
            plan.matmul_all_reduce(a[r], b[r], c, *self.memory, self.dtype, r, signals, clusters, self.cut)
            for r, (c, signals) in enumerate(zip(self.c, self.signals))
        ], **options)  # fmt: skip
        parts = [x.astype(np.float64) @ y.astype(np.float64).T for x, y in zip(a, b)]
        for c in self.c:
            close(c, parts)


def close(got: Any, parts: Any) -> None:
    """Compare with the sum of parts, in float64. Each of several is rounded to the type of the result, as is their
    sum."""
    unit, want = 2.0**-8 if got.dtype.name == "bfloat16" else 2.0**-11, sum(parts)
    rounded = sum(map(abs, parts)) if len(parts) > 1 else 0
    off = np.abs(got.astype(np.float64) - want)
    assert (off <= 1.01 * unit * (np.abs(want) + rounded) + 1e-4).all(), float(off.max())
