# SPDX-License-Identifier: Apache-2.0
"""How a call's rows are spread: chosen on the host by their length, element types and alignment, from what an H200 said
(`python -m benchmarks rows`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numba_cute.kernels import entry
from numba_cute.kernels.rows.spread import Spread
from numba_cute.seam import CuteError

__all__ = ["Habit", "Spreading", "matrix", "spread_rows"]

MOST_THREADS = 512
"""That share a row in a block: each may then have 128 registers."""
MOST_BLOCKS = 16
SHARED = 220 * 1024
"""Bytes of shared memory of an SM for rows that are on their way."""
REGISTERS = 65536


@dataclass(frozen=True)
class Habit:
    """What a kernel needs, and how it goes best.

    streams: matrices that it reads. elements: of a row that a thread holds at most (its registers hold some vectors of
    so many Float32). block: threads of a block at least, where rows are short. ring: the bytes of a block's part of a
    row from which on a ring of stages is worth more than many blocks. stages: how many, at most. registers: that a
    thread takes, about, for each element that it holds; whole: whether blocks stay for the whole matrix in any case.
    """

    streams: int = 1
    elements: int = 64
    block: int = 256
    ring: int = 16384
    stages: int = 2
    registers: float = 1.6
    whole: bool = False


@dataclass(frozen=True)
class Spreading:
    """A spread, and the blocks to launch."""

    spread: Spread
    grid: int

    @property
    def groups(self) -> int:
        """Blocks, or clusters of them, that take rows of their own."""
        return self.grid // self.spread.cluster

    @property
    def launch(self) -> dict[str, Any]:
        """Grid, block and cluster, as `entry.Work` takes them."""
        s = self.spread
        return {"grid": self.grid, "block": s.block, "cluster": s.cluster if s.cluster > 1 else None}


def matrix(x: Any) -> Any:
    """View `x`, an array of torch's or NumPy's, as rows of its last mode. CuteError where strides do not allow it."""
    if x is None or len(x.shape) == 2:
        return x
    shape = (-1, x.shape[-1]) if len(x.shape) > 2 else (1, -1)
    try:
        if hasattr(x, "view") and hasattr(x, "stride"):
            return x.view(shape)
        made = x.view()
        made.shape = shape
        return made
    except (RuntimeError, AttributeError) as e:
        raise CuteError(
            f"rows: {entry.described(x)} cannot be seen as rows of its last mode: give .contiguous()"
        ) from e


def vector_of(length: int, arrays: Sequence[Any]) -> int:
    """Count the elements of the widest access that suits rows of `length` elements in all of `arrays`."""
    vector: int = 16 // min(a.itemsize for a in arrays)
    while vector > 1 and not all(_suits(a, length, vector) for a in arrays):
        vector //= 2
    return vector


def _suits(array: Any, length: int, vector: int) -> bool:
    if not entry.aligned(array) or length % vector:
        return False
    access = min(16, vector * array.itemsize)
    strides = entry.strides(array)
    return len(strides) < 2 or array.shape[0] == 1 or strides[0] * array.itemsize % access == 0


def spread_rows(what: str, streamed: Sequence[Any], others: Sequence[Any] = (), *, habit: Habit) -> Spreading:
    """Choose how the rows of matrices are spread.

    what: the entry, for messages. streamed: the matrices (M, N) that are read. others: what has rows of that length
    too, or is one. habit: the kernel's. CuteError for rows longer than a cluster holds, and for those without elements.
    """
    rows, length = streamed[0].shape
    if length == 0:
        raise CuteError(f"{what}: the rows of {entry.described(streamed[0])} have no elements; give some")
    arrays = [a for a in (*streamed, *others) if a is not None]
    streams = [a for a in streamed if a is not None]
    vector = vector_of(length, arrays)
    count = -(-length // vector)
    threads, cluster = 8, 1
    while threads * habit.elements < length and threads < MOST_THREADS:
        threads *= 2
    while threads * cluster * habit.elements < length:
        cluster *= 2
    if cluster > MOST_BLOCKS:
        most = MOST_THREADS * MOST_BLOCKS * habit.elements
        raise CuteError(f"{what}: rows of {length} elements are longer than a cluster holds, {most}: split them")
    vectors = -(-count // (threads * cluster))
    while cluster > 1 and vectors * vector * threads * (cluster - 1) >= length:  # the last block would have nothing
        cluster //= 2
        vectors = -(-count // (threads * cluster))
    teams = max(1, habit.block // threads)
    size = max(a.itemsize for a in streams)
    part = vectors * vector * threads
    stages = 0
    straight = all(vector * a.itemsize >= 16 for a in streams) and threads >= 32
    if straight and (habit.whole or part * size >= habit.ring):
        each = part * teams * sum(a.itemsize for a in streams)
        stages = max(0, min(habit.stages, SHARED // each))
    spread = Spread(length, vector, threads, vectors, teams, cluster, stages)
    groups = max(1, -(-rows // teams))
    if stages or habit.whole:
        groups = min(groups, max(1, entry.multiprocessors(streams[0]) * _resident(spread, streams, habit) // cluster))
    return Spreading(spread, groups * cluster)


def _resident(spread: Spread, streams: Sequence[Any], habit: Habit) -> int:
    """Blocks of an SM at once, about."""
    registers = 32 + int(spread.vector * spread.vectors * habit.registers)
    bound = min(2048, REGISTERS // registers) // spread.block
    if spread.stages:
        bound = min(bound, SHARED // (spread.part * spread.teams * spread.stages * sum(a.itemsize for a in streams)))
    return max(1, min(bound, 8))
