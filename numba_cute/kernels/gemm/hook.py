# SPDX-License-Identifier: Apache-2.0
"""Change a GEMM's sums before they are stored: functions of the sums and of tensors of their own, in a row.

A thread has of a piece of C (some rows, a few blocks of 8 columns) the values (2 columns, 2 rows, blocks): what wgmma
leaves it of 64 rows, and mma.sync of 16 for each warp. Which rows and columns those are, its `Place` says. A step's
function gets them as one vector of Float32, and what it takes beside as vectors that broadcast to it: it is written as
if for whole matrices. See docs/kernels.md.
"""

from __future__ import annotations

from typing import Any

import numba_cute as cute
from numba_cute import arch
from numba_cute.seam import current, frozen, traced

ROWS = 64  # of a piece of a warpgroup
FOLD = {"sum": cute.ReductionOp.ADD, "max": cute.ReductionOp.MAX}


# ---------------------------------------------------------------- in the kernel


@frozen
class Vector:
    """A value for each row or column of C, from global memory. values: a tensor of one mode, or of two, the second
    being the batch. along: "rows", "columns", or "all" for one value."""

    values: cute.Tensor
    along: str

    def fetch(self, place: Any, shared: Any, shift: Any, thread: Any, threads: int) -> None:
        """Put those of a piece in shared memory, `shift` behind its own. thread: this one of so many that do so."""
        height, columns = place.extents
        width = {"rows": height, "columns": columns, "all": 1}[self.along]
        first = {"rows": place.first_row, "columns": place.first_column, "all": 0}[self.along]
        for start in range(0, width, threads):
            index = thread + start
            last = cute.Int32(cute.size(self.values, mode=[0]) - 1)
            source = cute.min(cute.Int32(first + shift + index), last)  # none beyond

            def put(index: Any = index, source: Any = source) -> None:
                where = (source, place.batch) if cute.rank(self.values) == 2 else source
                shared[index] = cute.Float32(self.values[where])

            if width - start >= threads:
                put()
            else:
                current().when(current().compare("<", index, width), put)

    def behind(self, row: Any) -> Vector:
        """Give that of C's rows from `row` on, which are counted from 0."""
        if self.along != "rows":
            return self
        return Vector(
            cute.make_tensor(
                self.values.iterator + row * self.values.stride[0],
                cute.make_layout(cute.Int32(self.values.shape[0] - row), stride=self.values.stride[0]),
            ),
            self.along,
        )

    def of_thread(self, place: Any, shared: Any) -> Any:
        """Give this thread's values, of a shape that broadcasts to those of its sums."""
        if self.along == "all":
            return cute.make_tensor(shared.iterator, cute.make_layout((1, 1, 1))).load()
        if self.along == "rows":
            return cute.make_tensor(shared.iterator + place.row, cute.make_layout((1, 2, 1), stride=(0, 8, 0))).load()
        layout = cute.make_layout((2, 1, place.columns_of.shape), stride=(1, 0, place.columns_of.stride))
        own = cute.make_tensor(shared.iterator + place.column, layout).load()
        return own.reshape((2, 1, place.blocks))


@frozen
class HostNumber:
    """A number from the host. value: Float32."""

    value: Any


@frozen
class Matrix:
    """A matrix like C, of its element type, whose pieces TMA brings to where C's will leave from."""


@frozen
class Result:
    """A second result of a step: reduced over rows, columns or all of C, and combined with what is in `values` by
    `fold`: "sum" or "max" (of magnitudes). along: what is left: "rows", "columns" or "all"."""

    values: cute.Tensor
    along: str
    fold: str

    def take(self, place: Any, value: Any) -> None:
        """Reduce this thread's values with the warp's, and with those in global memory."""
        value, nothing = cute.where(place.inside(), value, 0.0), 0.0
        if self.fold == "max":  # the bits of magnitudes have their order, and a NaN's are more than all
            value, nothing = value.bitcast(cute.Int32) & 0x7FFFFFFF, 0
        op, lanes = FOLD[self.fold], {"rows": (1, 2), "columns": (4, 8, 16), "all": (1, 2, 4, 8, 16)}[self.along]
        lane = arch.lane_idx()
        b = current()
        if self.along == "all":
            parts = [(value.reduce(op, nothing), 0, None)]
            first = b.compare("==", lane, 0)
        elif self.along == "rows":
            kept = value.reduce(op, nothing, (1, None, 1))
            parts = [(kept[i], place.first_row + place.row + 8 * i, place.rows) for i in range(2)]
            first = b.compare("==", lane % 4, 0)
        else:
            kept = value.reduce(op, nothing, (None, 1, None))
            column = place.first_column + place.column
            apart = [place.columns_of(j) for j in range(place.blocks)]
            parts = [(kept[i, j], column + i + d, place.columns) for j, d in enumerate(apart) for i in range(2)]
            first = b.compare("<", lane, 4)
        for part, index, extent in parts:
            for distance in lanes:
                other = arch.shuffle_sync_bfly(part, distance)
                part = part + other if self.fold == "sum" else cute.max(part, other)
            self._combine(part, index, extent, first, place.batch)

    def _combine(self, part: Any, index: Any, extent: Any, first: Any, batch: Any) -> None:
        b = current()

        def combine() -> None:
            where = (index, batch) if cute.rank(self.values) == 2 else (index,)
            there = self.values.iterator + cute.crd2idx(where, self.values.layout)
            if self.fold == "sum":
                arch.red(there, part, "add", cute.Float32)
            else:
                arch.atomic_max(cute.recast_ptr(there, dtype=cute.Int32), part)

        def within() -> None:
            b.when(b.compare("<", index, extent), combine)

        b.when(first, combine if extent is None else within)


@frozen
class Step:
    """A function of the sums: function(x, *inputs) gives their next values, or these and one vector for each of
    `results`. pairs: x is two vectors, the values of two columns of B of which one of C is made."""

    function: Any
    inputs: tuple[Any, ...]
    results: tuple[Any, ...]
    pairs: bool


@frozen
class Place:
    """A thread's values of C. first_row, first_column, batch: where the piece begins. row, column: of the
    thread's first value in it. rows, columns: C's extents. columns_of: a layout, which columns behind `column` each of
    its blocks of 8 begins. extents: rows and columns of the piece whose vectors lie in shared memory.

    Of a warp's lanes, four that follow each other share a row, in both instructions."""

    first_row: Any
    first_column: Any
    batch: Any
    row: Any
    column: Any
    rows: Any
    columns: Any
    columns_of: Any
    extents: tuple[int, int]

    @property
    def blocks(self) -> int:
        """Count its blocks of 8 columns."""
        return int(cute.size(self.columns_of))

    def inside(self) -> Any:
        """Say which of the thread's values are C's own, and not beyond its edges."""
        of_rows = cute.make_layout((1, 2, 1), stride=(0, 8, 0))
        of_columns = cute.make_layout((2, 1, self.columns_of.shape), stride=(1, 0, self.columns_of.stride))
        row = _counted((1, 2, 1), of_rows) + cute.Int32(self.first_row + self.row)
        column = _counted((2, 1, self.blocks), of_columns) + cute.Int32(self.first_column + self.column)
        return (row < cute.Int32(self.rows)) & (column < cute.Int32(self.columns))


@traced
def _counted(shape: Any, layout: Any) -> Any:
    """A vector of Int32 of a shape: at each of its places what a layout gives."""
    out = cute.make_rmem_tensor(shape, cute.Int32)
    for i in range(cute.size(shape)):
        out[i] = layout(i)
    return out.load()


@frozen
class Hook:
    """An epilogue as the kernel has it. steps: of `Step`. rows, columns: C's extents, at run time. run: of pairs, how
    many columns of one half of B come before as many of the other; None where there are none."""

    steps: tuple[Any, ...] = ()
    rows: Any = 0
    columns: Any = 0
    run: int | None = None

    def behind(self, row: Any) -> Hook:
        """Give the epilogue of C's rows from `row` on, which are counted from 0; it gives nothing beside C."""
        of = lambda x: x.behind(row) if isinstance(x, Vector) else x  # noqa: E731
        steps = tuple(Step(s.function, tuple(map(of, s.inputs)), s.results, s.pairs) for s in self.steps)
        return Hook(steps, self.rows - row, self.columns, self.run)

    @property
    def spread(self) -> int:
        """Count the columns of sums that make one of C."""
        return 2 if any(step.pairs for step in self.steps) else 1

    def vectors(self) -> list[Any]:
        """List what is read of global memory: (vector, which half of the columns, or None)."""
        paired, out = self.spread == 2, []
        for step in self.steps:
            for x in (x for x in step.inputs if isinstance(x, Vector)):
                twice = paired and not step.pairs and x.along == "columns"
                out += [(x, 0), (x, 1)] if twice else [(x, 0)]
            paired = paired and not step.pairs
        return out

    def layout(self, rows: int, columns: int, slots: int) -> Any:
        """Give the layout of the vectors of pieces, of Float32, in so many slots; None, if there are no vectors."""
        count = len(self.vectors())
        return cute.make_layout((max(rows, columns), count, slots)) if count else None

    def allocate(self, smem: Any, columns: int, slots: int) -> Any:
        """Reserve shared memory for the vectors of a warpgroup's pieces in so many slots."""
        layout = self.layout(ROWS, columns, slots)
        return None if layout is None else smem.allocate_tensor(cute.Float32, layout, 16, None, "vectors")

    def place(self, first_row: Any, first_column: Any, batch: Any, thread: Any, columns: int) -> Place:
        """Give the place of a thread of a warpgroup in a piece of so many columns."""
        lane, warp = thread % 32, thread // 32
        row, column, blocks = 16 * warp + lane // 4, 2 * (lane % 4), cute.make_layout(columns // 8, stride=8)
        where = (first_row, first_column, batch, row, column, self.rows, self.columns)
        return Place(*where, blocks, (ROWS, columns))

    def place_in(self, first_row: Any, first_column: Any, batch: Any, own: Any, extents: tuple[int, int]) -> Place:
        """Give the place of a thread of any multiply in a piece. own: coordinates in the piece of one of the thread's
        16 rows, ((2, 2), blocks), as the multiply's `partition_C` gives them. extents: of the piece."""
        row, column = own[0, 0]
        blocks = cute.flatten(cute.make_layout((own.layout[1].shape,), stride=(own.layout[1].stride,)))
        apart = cute.make_layout(blocks.shape, stride=tuple(s.value for s in blocks.stride))
        where = (first_row, first_column, batch, row, column, self.rows, self.columns)
        return Place(*where, apart, extents)

    def fetch(self, place: Any, vectors: Any, slot: Any, thread: Any, threads: int) -> None:
        """Put what the steps take of a piece in a slot. thread: this one of so many that do so."""
        for i, (vector, half) in enumerate(self.vectors()):
            vector.fetch(place, vectors[None, i, slot], half * self.columns, thread, threads)

    def apply(self, sums: Any, place: Any, vectors: Any, matrix: Any, slot: Any) -> Any:
        """Give what the steps make of a thread's sums. matrix: this thread's part of the matrix like C, or None."""
        if not self.steps:
            return sums.load()
        values = _halves(sums, place.blocks, self.run // 8) if self.run else (_whole(sums, place.blocks),)
        count = 0
        for step in self.steps:
            given = []
            for x in step.inputs:
                if isinstance(x, HostNumber):
                    both = [x.value] * 2
                elif isinstance(x, Matrix):
                    both = [matrix.load().to(cute.Float32).reshape((2, 2, place.blocks))]
                else:
                    twice = len(values) == 2 and not step.pairs and x.along == "columns"
                    both = [x.of_thread(place, vectors[None, count + i, slot]) for i in range(1 + twice)]
                    count += len(both)
                given.append(both)
            if step.pairs:
                made = (step.function(values, *(g[0] for g in given)),)
            else:
                made = tuple(step.function(v, *(g[i % len(g)] for g in given)) for i, v in enumerate(values))
            if step.results:
                made, *beside = made[0]
                for result, value in zip(step.results, beside, strict=True):
                    result.take(place, value)
                made = (made,)
            values = made
        return values[0]


@traced
def _whole(sums: Any, blocks: int) -> Any:
    return cute.make_tensor(sums.iterator, cute.make_layout((2, 2, blocks))).load().to(cute.Float32)


@traced
def _halves(sums: Any, blocks: int, run: int) -> Any:
    """The sums of two columns of B for each of C: `run` blocks of 8 of one half, and of the other, in turn."""
    layout = cute.make_layout((2, 2, (run, blocks // run)), stride=(1, 2, (4, 8 * run)))
    halves = [cute.make_tensor(sums.iterator + 4 * run * i, layout).load() for i in range(2)]
    return tuple(half.to(cute.Float32).reshape((2, 2, blocks)) for half in halves)
