# SPDX-License-Identifier: Apache-2.0
"""Spread a call's rows: chosen on the host by their length, element types and alignment, from what an H200 said
(`python -m benchmarks rows`), within the limits of the GPU."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from numba import cuda

import numba_cute as cute
from numba_cute.isa.form.targets import asked
from numba_cute.kernels import entry, tuning
from numba_cute.kernels.rows.spread import CHUNK, Spread
from numba_cute.seam import CuteError
from numba_cute.seam.ground.records import dataclass

__all__ = ["Habit", "Spreading", "blocks_at", "bounded", "matrix", "of_rows", "separate", "spread_rows"]

MOST_THREADS = 512
"""That share a row in a block."""
BESIDE = 7 * 1024
"""Bytes of shared memory that a block has for other things than rows that are on their way."""
OWN_NUMBERS = 16
"""Vectors of a thread of a short row that each take numbers of their own, for which it has registers."""


@dataclass(frozen=True)
class Habit:
    """The way in which a kernel takes rows.

    name: by which the table of a GPU knows what was measured of the kernel; those without have what all have.
    elements: of a row that a thread holds in registers at most. again: whether it can read a row from shared memory
    once more after the reduction. whole: whether its teams go through the whole matrix, because they keep sums over
    rows; else each has one row. hold: whether it holds lines (weight and bias) in shared memory where
    its teams go through the matrix, as they then do with long rows. beside: bytes of shared memory of a team besides
    its row. far: blocks of MOST_THREADS that an SM is to hold where rows are far: of 2 a thread has 64 registers.
    """

    name: str = ""
    elements: int = 64
    again: bool = False
    whole: bool = False
    hold: bool = False
    beside: int = 0
    far: int = 2


@dataclass(frozen=True)
class Limits:
    """The limits of a GPU for rows. shared: bytes of a block's shared memory, and of an SM's, for those on their way.
    blocks: of a cluster. bulk: whether bulk copies bring rows. threads: of an SM."""

    shared: int
    blocks: int
    bulk: bool
    threads: int


def limits_at(x: Any) -> Limits:
    """Give the limits of the GPU that `x` lies on, or that is simulated or compiled for; an H200's for others."""
    t = entry.target_at(x) or asked() or cute.target("sm_90a")
    return Limits(t.smem_per_block - BESIDE, t.cluster_size, "tma" in t.features, t.threads_per_sm)


@functools.cache
def bounded(function: Any, threads: int, blocks: int = 1) -> Any:
    """Make the kernel of `function` for `blocks` blocks of `threads` threads on an SM at once: it gets the registers
    that leaves."""
    return cuda.jit(launch_bounds=(threads, blocks))(function)


@dataclass(frozen=True)
class Spreading:
    """A spread, the groups of blocks (clusters, or single ones) to launch, and how many blocks an SM is to hold."""

    spread: Spread
    groups: int
    resident: int = 1

    def work(self, function: Any, static: tuple[Any, ...]) -> entry.Work:
        """Give the work of the kernel of `function`, whose arguments besides arrays are `static`."""
        s = self.spread
        kernel = bounded(function, s.block, self.resident)
        return entry.Work(
            kernel, self.groups * s.cluster, s.block, s.cluster if s.cluster > 1 else None, static=static
        )  # fmt: skip


def matrix(x: Any, what: str = "rows") -> Any:
    """View `x`, a result, a tensor of torch's, as rows of its last mode, as `rows_of` does. CuteError where strides do
    not allow it. what: the entry, for that message."""
    if x is None:
        return None
    seen = as_rows(x)
    if seen is None:
        raise CuteError(
            f"{what}: out is {entry.described(x)}, which cannot be seen as rows of its last mode: give one that "
            "is dense"
        )
    return seen


def separate(x: Any) -> bool:
    """Say whether no two elements of `x` share memory, as far as each stride is beyond what smaller ones reach."""
    reach = 0
    for stride, extent in sorted(zip(entry.strides(x), x.shape)):
        if extent > 1 and stride <= reach:
            return False
        reach += stride * max(0, extent - 1)
    return True


def rows_of(x: Any) -> Any:
    """Give `x`, a tensor of torch's which is read alone, as rows of its last mode: (M, N), or (tokens, heads, N) where
    its strides need two modes for rows (heads of packed q, k and v); a copy where they need more."""
    if x is None:
        return None
    seen = as_rows(x)
    return x.reshape((-1, x.shape[-1])) if seen is None else seen


def as_rows(x: Any) -> Any:
    """View `x` so; None where its strides need more than two modes for rows."""
    if len(x.shape) == 2:
        return x
    if x.is_contiguous():
        return x.view((-1, x.shape[-1]) if len(x.shape) > 2 else (1, -1))
    outer: list[tuple[int, int]] = []
    for extent, stride in zip(x.shape[:-1], x.stride()[:-1]):
        if extent == 1:
            continue
        if outer and outer[-1][1] == extent * stride:
            outer[-1] = outer[-1][0] * extent, stride
        else:
            outer.append((extent, stride))
    if len(outer) > 2:
        return None
    extents, strides = zip(*(outer or [(1, x.shape[-1])]))
    return x.as_strided((*extents, x.shape[-1]), (*strides, 1))


def of_rows(
    what: str, work: Callable[..., entry.Work], matrices: tuple[bool, ...], results: int = 1
) -> Callable[..., Any]:  # fmt: skip
    """Make the plan of an operator that launches `work` on its tensors, each seen as a matrix or, where `matrices` says
    False, as a line; `work` gets its other arguments too. what: the entry. results: how many of the tensors, the last,
    are written."""

    def one(t: Any, is_matrix: bool, is_result: bool) -> Any:
        if is_matrix:
            return matrix(t, what) if is_result else rows_of(t)
        return t.view(-1) if is_result else t.reshape(-1)

    def plan(*given: Any) -> Any:
        def seen(tensors: Any) -> list[Any]:
            last = len(matrices) - results
            return [one(t, is_matrix, i >= last) for i, (is_matrix, t) in enumerate(zip(matrices, tensors))]

        launch = work(*seen(given), *given[len(matrices) :]).launcher()
        return lambda *tensors: launch(*seen(tensors))

    return plan


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
    steps = zip(array.shape[:-1], entry.strides(array))
    return all(extent == 1 or step * array.itemsize % access == 0 for extent, step in steps)


def spread_rows(
    what: str, streamed: Sequence[Any], others: Sequence[Any] = (), *, habit: Habit, unit: int = 0
) -> Spreading:
    """Choose how the rows of matrices are spread.

    what: the entry, for messages. streamed: the matrices that are read, (M, N) or (tokens, heads, N). others: what has
    rows of that length too, or is one. habit: the kernel's. unit: of how many elements no vector may have those of two,
    since each vector takes numbers of its own. Rows longer than a cluster holds, or a block where there are none, are
    far. CuteError for rows without elements.

    Of a GPU it knows, of all kernels, or of one in `habits`: `direct`, bytes of a row, of all streams, up to which it
    is loaded to registers; `resident`, blocks of MOST_THREADS of an SM that read rows once more, or as many threads,
    each with 40 registers; `again`, vectors of a thread of such a row, of all streams; `again_block`, threads of such a
    block at least, and `block`, of others; `short`, elements of a row of which a thread has `short_each` at most;
    `long`, elements of one that `long_threads` share at least where teams go through the matrix; `stages`, rows ahead,
    of those that go on, and `stages_full`, in the largest blocks: what is left of shared memory caches the weights.
    """
    *outer, length = streamed[0].shape
    rows = math.prod(outer)
    if length == 0:
        raise CuteError(f"{what}: the rows of {entry.described(streamed[0])} have no elements: give some")
    known, limits = known_of(habit), limits_at(streamed[0])
    streams = [a for a in streamed if a is not None]
    vector = vector_of(math.gcd(length, unit), [a for a in (*streams, *others) if a is not None])
    size = sum(a.itemsize for a in streams)
    straight = limits.bulk and all(vector * a.itemsize >= 16 for a in streams)  # as bulk copies want it
    again = habit.again and straight and length * size > known.direct
    most, threads = _shares(known, limits, habit, length, vector, len(streams), size, unit, again)
    cluster, count = _power(-(-length // (threads * most))), length // vector
    if cluster > 1 and cluster > blocks_at(streamed[0]):
        return _far(streamed[0], rows, length, vector, habit)
    vectors = -(-count // (threads * cluster))
    teams = max(1, (known.again_block if again else known.block) // threads) if cluster == 1 else 1
    while teams * threads > 32 and teams * habit.beside > limits.shared:
        teams //= 2
    each = vectors * vector * threads * teams * size  # bytes of a block's rows
    lines = sum(a.itemsize for a in others if a is not None and len(a.shape) == 1) * each // size  # all teams'
    whole = habit.whole or again and habit.hold and lines > 0 and 2 * each + lines <= limits.shared
    if again and whole:
        again, resident, stages = False, 1, 2
    elif again:
        wide = any(vector * a.itemsize > 16 for a in (*streams, *others) if a is not None)
        resident = (known.resident - (wide and len(streams) > 1)) * MOST_THREADS // (threads * teams)
        resident, stages = max(1, min(resident, limits.shared // (each + habit.beside * teams))), 1
    else:
        apart = len(streams) > 1 and vector < 4 and vectors * vector > 16  # each element comes to a register of its own
        many = habit.whole or vectors * vector > 32 or apart
        resident = max(1, 65536 // (threads * teams * (128 if many else 80 if limits.bulk else 96)))
        ring = habit.whole and straight and threads >= 32
        most_stages = known.stages_full if threads * teams == MOST_THREADS else known.stages
        stages = min(most_stages, limits.shared // (each * resident)) if ring else 0
    share = -(-count // cluster) if cluster > 1 else 0
    spread = Spread(length, vector, threads, vectors, teams, cluster, stages, again, share, not whole)
    groups, resident = max(1, -(-rows // teams)), max(1, min(resident, limits.threads // (threads * teams)))
    if whole:
        groups = min(groups, resident * max(1, _at_once(streamed[0], cluster)))
    return Spreading(spread, groups, resident)


def _far(x: Any, rows: int, length: int, vector: int, habit: Habit) -> Spreading:
    """Spread rows that are not on chip, each over a block. x: one of the matrices. The others: as of `spread_rows`."""
    vectors = -(-length // (vector * MOST_THREADS))
    alone, resident, groups = not habit.whole, 1 if habit.whole else habit.far, max(1, rows)
    spread = Spread(length, vector, MOST_THREADS, -(-vectors // CHUNK) * CHUNK, 1, alone=alone, far=True)
    return Spreading(spread, groups if alone else min(groups, max(1, _at_once(x, 1))), resident)


def _shares(
    known: Any, limits: Limits, habit: Habit, length: int, vector: int, streams: int, size: int, unit: int, again: bool
) -> tuple[int, int]:  # fmt: skip
    """Choose how many elements of a row a thread has at most, and the threads of a block that share it. streams: how
    many matrices are read. size: bytes of an element of all of them. again: whether rows are read once more. All
    others as of `spread_rows`."""
    if again:
        most = vector * max(1, known.again // streams)
        while most > vector and MOST_THREADS * most * size > limits.shared:
            most //= 2
        threads = max(32, min(MOST_THREADS, _power(-(-length // most))))
        while threads * most * limits.blocks < length and 2 * threads * most * size <= limits.shared:
            most *= 2  # the longest rows: fewer blocks share an SM
    else:
        most = min(habit.elements, known.short_each) if length <= known.short else habit.elements
        if not limits.bulk and (habit.beside or habit.whole and size > 8):  # longer ones have no registers there
            most = min(most, habit.elements // 2)
        if unit and length <= known.short:
            most = min(most, OWN_NUMBERS * vector)
        least = known.long_threads if habit.whole and length >= known.long else 8
        threads = max(least, min(MOST_THREADS, _power(-(-length // most))))
    return most, threads


def known_of(habit: Habit) -> Any:
    """Give what is known of the GPU for a kernel's habit."""
    known = vars(tuning.numbers("rows"))
    return SimpleNamespace(**{**known, **known["habits"].get(habit.name, {})})


def _power(n: int) -> int:
    """The least power of two that is at least `n`."""
    return 1 << max(0, n - 1).bit_length()


@functools.cache
def _clusters(index: int, size: int) -> int:
    return cute.utils.HardwareInfo(index).get_max_active_clusters(size)


def _at_once(x: Any, cluster: int) -> int:
    """Count the clusters of that many blocks, one to an SM, that run at once where `x` lies."""
    if cluster == 1 or getattr(getattr(x, "device", None), "type", None) != "cuda":
        return entry.multiprocessors(x) // cluster
    return _clusters(x.device.index, cluster)


def blocks_at(x: Any) -> int:
    """Count the blocks of the largest cluster that the GPU has room for on which `x` lies; arrays of NumPy's are on one
    with enough SMs."""
    blocks = limits_at(x).blocks
    while hasattr(x, "is_cuda") and blocks > 1 and not _at_once(x, blocks):
        blocks //= 2
    return blocks
