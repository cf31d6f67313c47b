# SPDX-License-Identifier: Apache-2.0
"""Rows that threads read or write, where TMA cannot: A's rows that an index names, and C's, named by an index or lying
at no multiples of 16 bytes.

A warp gathers A's rows by cp.async, some stages of shared memory ahead, in the order in which wgmma and TMA have them
there, and says that they are in when it has fenced them for the tensor cores. A row that the matrix has not is NaN in
all of its elements when it is read, and is not written.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba_cute as cute
from numba_cute import arch
from numba_cute.nvgpu import cpasync
from numba_cute.seam import CuteError, current, frozen, traced
from numba_cute.tilelang.cpasync import cp_async_shared_global

from .operands import Source, view
from .shares import part_of_k, share_of

VECTOR, WARP = 16, 32  # bytes that a thread copies at once; threads
SWIZZLED = 8  # rows after which a swizzle of shared memory repeats itself
BEYOND, NONE = -1, -2  # in the place of a row's number: there is no such row of the product; the index names none
LAG = 2  # stages that are on their way at once


# ---------------------------------------------------------------- on the host


class Named(NamedTuple):
    """Rows that an index names. index: integers, one for each row of the product, or None: its own. rows: how many
    rows the matrix has that they are of. step: how many elements these are apart, which one row would not tell."""

    index: Any
    rows: int
    step: int


def of_product(t: Any, rows: int) -> Any:
    """View a matrix as if it had the product's rows. t: the matrix. rows: how many these are."""
    t = view(t, VECTOR)
    return cute.make_tensor(t.iterator, cute.make_layout((rows, t.shape[1]), stride=t.stride))


def named_of(a: Any, c: Any, named: tuple[bool, bool], others: Any) -> Any:
    """Give A and C with the product's rows, a Named of each or None, and what is left of the `others`. named: whether
    an index, the next of the others, names rows of A, and of C."""
    if not any(named):
        return a, c, None, None, others
    left, made = list(others), []
    rows = left[0].shape[0]
    for t, has in zip((view(a, VECTOR), view(c, VECTOR)), named):
        made.append((of_product(t, rows), Named(left.pop(0), int(t.shape[0]), int(t.stride[0]))) if has else (t, None))
    return made[0][0], made[1][0], made[0][1], made[1][1], tuple(left)


def in_vectors(c: Any, width: int) -> bool:
    """Say whether an array's rows (or columns, if these are contiguous) are multiples of 16 bytes, or it is a Source,
    which knows how it is written. width: bits of its elements."""
    if isinstance(c, Source):
        return True
    t = view(c)
    unit = 8 * VECTOR // width
    return not any(s % unit for n, s in zip(t.shape, t.stride) if n > 1 and s != 1)


def by_index(tensor: Any, named: Named, extent: Any) -> Rows:
    """Make the rows of a kernel's matrix. tensor: of `operand`, of the product's rows. extent: how many these are."""
    (_, columns, *batch), (_, *steps) = tensor.shape, tensor.stride
    apart = named.step * tensor.element_type.width // 8
    if apart >= 2**32:
        raise CuteError(f"gemm: rows are {apart} bytes apart, and must be fewer than {2**32}: give a copy")
    layout = cute.make_layout((cute.Int32(named.rows), columns, *batch), stride=(cute.Int64(named.step), *steps))
    matrix = cute.make_tensor(tensor.iterator, layout)
    vector = math.gcd(
        8 * VECTOR // int(tensor.element_type.width), named.step, *(int(n) for n in (columns, *steps[1:]))
    )
    index = None if named.index is None else view(named.index).mark_layout_dynamic()
    return Rows(matrix, index, cute.Int32(int(extent)), vector)


# ---------------------------------------------------------------- in the kernel


@frozen
class Rows:
    """Rows of a matrix. matrix: (rows, columns), or with a batch last, contiguous along columns. index: of each row of
    the product, or None. extent: rows of the product. vector: elements that are written at once."""

    matrix: cute.Tensor
    index: Any
    extent: Any
    vector: int = 1

    def number(self, row: Any) -> Any:
        """Give the number in the matrix of a row of the product, BEYOND or NONE."""
        b = current()
        there: Any = cute.Int32(row)
        if self.index is not None:
            last = cute.Int32(self.extent - 1)
            there = cute.Int64(self.index[cute.min(there, last)])
            within = (there >= 0) & (there < cute.Int64(self.matrix.shape[0]))
            there = b.select(within, cute.Int32(there), cute.Int32(NONE))
        return b.select(b.compare("<", row, self.extent), there, cute.Int32(BEYOND))

    def part(self, begin: Any, end: Any) -> Rows:
        """Give those of the product's rows from `begin` up to `end`, which are counted from 0."""
        index = None if self.index is None else cute.domain_offset((begin,), self.index)
        return Rows(self.matrix, index, cute.Int32(cute.min(cute.Int32(end), self.extent) - begin), self.vector)

    def at(self, number: Any, column: Any, batch: Any, count: int) -> Any:
        """Give `count` elements of a row, as a tensor whose memory begins at a multiple of them."""
        steps = self.matrix.stride
        offset = cute.Int64(number) * cute.Int64(steps[0]) + cute.Int64(column)
        if len(steps) == 3:
            offset = offset + cute.Int64(batch) * cute.Int64(steps[2])
        dtype, nbytes = self.matrix.element_type, count * self.matrix.element_type.width // 8
        place = (self.matrix.iterator + offset).toint()
        return cute.make_tensor(cute.make_ptr(dtype, place, cute.AddressSpace.gmem, nbytes), cute.make_layout(count))

    # ------------------------------------------------ A's

    def of_lane(self, first: Any, tile: int) -> Any:
        """Read the numbers of a tile's rows, each lane those of every 32nd. first: the tile's first row."""
        numbers = cute.make_rmem_tensor(tile // WARP, cute.Int32)
        for i in range(tile // WARP):
            numbers[i] = self.number(cute.Int32(first) + arch.lane_idx() + WARP * i)
        return numbers

    @property
    def step(self) -> int:
        """Elements that cp.async copies at once."""
        return 8 * VECTOR // int(self.matrix.element_type.width)

    def places(self, numbers: Any, shared: Any) -> Any:
        """Give in turn what this lane copies of a tile, of the same columns each: the row's number, and where it goes.

        There are not registers for all of these: a swizzle repeats itself every 8 rows, so that the places of two rows
        are all that is found, and the others lie at distances from there that are known."""
        step, lane, size = self.step, arch.lane_idx(), VECTOR // self.step
        along = cute.size(shared, mode=[1]) // step  # vectors of a row
        once, first, found = WARP // along, shared.iterator, []
        for row in range(0, SWIZZLED, once):
            offset = cute.crd2idx((row + lane // along, lane % along * step), shared.layout) * size
            found.append(first.toint() + first.swizzle(cute.Int32(offset)))
        for i in range(cute.size(shared, mode=[0]) // once):
            row = once * i
            number = arch.shuffle_sync(numbers[row // WARP], cute.Int32(row % WARP + lane // along))
            beyond = int(cute.crd2idx((row // SWIZZLED * SWIZZLED, 0), shared.layout)) * size
            place = found[i % len(found)] + beyond
            there = cute.make_ptr(first.dtype, place, cute.AddressSpace.smem, VECTOR)
            yield number, cute.make_tensor(there, cute.make_layout(step))

    def copy(self, numbers: Any, first: Any, shared: Any) -> None:
        """Begin to copy a tile's rows, from column `first` on, with zeros behind the last. A row that there is not is
        another: nobody has its products, or `spoil` follows. A whole warp."""
        b, step, tile = current(), self.step, int(cute.size(shared, mode=[1]))
        column = cute.Int32(first) + arch.lane_idx() % (tile // step) * step
        left = cute.Int32(self.matrix.shape[1]) - cute.Int32(first)

        def at_once() -> None:
            self._copy(numbers, shared, column)

        def some() -> None:
            count = cute.max(cute.Int32(0), cute.min(cute.Int32(self.matrix.shape[1]) - column, cute.Int32(step)))
            self._copy(numbers, shared, b.select(b.compare(">", count, 0), column, cute.Int32(0)), count)

        b.when(b.compare(">=", left, tile), at_once)
        b.when(b.compare("<", left, tile), some)  # a size costs eight instructions for each copy

    def _copy(self, numbers: Any, shared: Any, column: Any, count: Any = None) -> None:
        """Begin to copy of each row `count` elements from `column` on, all that one copy brings if it is None."""
        begin, step = (self.matrix.iterator + column).toint(), self.step
        apart = cute.Uint32(cute.Uint32(self.matrix.stride[0]) * (VECTOR // step))  # bytes
        size = {} if count is None else {"src_size": count * (VECTOR // step)}
        for number, target in self.places(numbers, shared):
            row = begin + cute.Int64(cute.Uint64(cute.Uint32(number)) * cute.Uint64(apart))
            place = cute.make_ptr(self.matrix.element_type, row, cute.AddressSpace.gmem, VECTOR)
            source = cute.make_tensor(place, cute.make_layout(step))
            cp_async_shared_global(target, source, VECTOR, cpasync.LoadCacheMode.GLOBAL, **size)

    def spoil(self, first: Any, shared: Any) -> None:
        """Write NaN over the rows of a tile that the index names nowhere. first: the tile's first row. A whole warp,
        whose copies are done."""
        b, poison = current(), cute.make_rmem_tensor(self.step, self.matrix.element_type)
        numbers = self.of_lane(first, int(cute.size(shared, mode=[0])))
        words = cute.recast_tensor(poison, cute.Int32)
        words.fill(-1)  # of every type of floats
        for number, target in self.places(numbers, shared):

            def put(target: Any = target) -> None:
                cute.autovec_copy(poison, target)

            b.when(b.compare("==", number, NONE), put)

    # ------------------------------------------------ C's

    def store(self, shared: Any, row: Any, column: Any, batch: Any, lane: Any) -> None:
        """Write a piece, (rows, columns) in shared memory, without what is beyond the edges. row, column: its first. A
        whole warp."""
        b, n = current(), self.vector
        rows, columns = (cute.size(shared, mode=[i]) for i in range(2))
        along = min(WARP, columns // n)  # lanes of a row
        beside = cute.Int32(lane) // along

        def put(i: Any) -> None:
            down = cute.Int32(i) * (WARP // along) + beside
            number = self.number(cute.Int32(row) + down)
            for j in range(columns // n // along):
                across = j * along + cute.Int32(lane) % along
                left = cute.Int32(self.matrix.shape[1]) - cute.Int32(column) - across * n

                def one(across: Any = across) -> None:
                    value = cute.local_tile(shared, (1, n), (down, across))
                    value = cute.make_tensor(value.iterator, cute.make_layout(n))
                    cute.autovec_copy(value, self.at(number, cute.Int32(column) + across * n, batch, n))

                b.when(b.compare(">=", number, 0) & b.compare(">", left, 0), one)

        b.loop(0, rows * along // WARP, put)


@traced
def store_piece(rows: Any, shared: Any, row: Any, column: Any, batch: Any) -> None:
    """Write a piece of C, which TMA may fill with something else then. A whole warp."""
    rows.store(shared, row, column, batch, arch.lane_idx())
    arch.sync_warp()


@cute.jit
def hand_over(filled):
    """Say that the next stage is filled. The whole warp, whose copies to it are done."""
    arch.fence_proxy("async.shared", space="cta")  # the tensor cores read it
    arch.sync_warp()
    filled.commit()
    filled.advance()


@cute.jit
def gather_tile(rows, ahead, filled, sA, first_row, first_k, end_k, under_way):
    """Bring A's rows to the stages of a tile, and give how many are on their way then. A whole warp. rows: a Rows.
    ahead, filled: of the pipeline, the stage that is copied to next, and the one that is said to be in. under_way: how
    many stages are between them."""
    tile_m, tile_k = cute.size(sA, mode=[0]), cute.size(sA, mode=[1])
    lag = min(LAG, cute.size(sA, mode=[2]) - 2)
    numbers = rows.of_lane(first_row, tile_m)
    lost = cute.Int32(0)
    for i in cute.range_constexpr(tile_m // WARP):
        lost = cute.Int32(lost | (numbers[i] == NONE))
        numbers[i] = max(numbers[i], cute.Int32(0))
    lost = cute.Int32(arch.vote_any_sync(lost))
    for k in range(cute.Int32(first_k), cute.Int32(end_k)):
        stage = ahead.acquire_and_advance()
        shared = sA[None, None, stage.index]
        rows.copy(numbers, cute.Int32(k * tile_k), shared)
        arch.cp_async_commit_group()
        if lost != 0:
            arch.cp_async_wait_group(0)
            rows.spoil(first_row, shared)
        if under_way == lag:
            arch.cp_async_wait_group(lag)
            hand_over(filled)
        else:
            under_way += 1
    return under_way


@cute.jit
def gather_end(ahead, filled, under_way):
    """Say that the last stages are filled, and wait until all have been read. A whole warp."""
    arch.cp_async_wait_group(0)
    for _ in range(under_way):
        hand_over(filled)
    ahead.tail()


@cute.jit
def gather(rows, stages, sA, scheduler, splits, part, parts, k_tiles):
    """Bring A's rows to all stages of all tiles of a CTA. A whole warp. rows: a Rows. stages: their pipeline."""
    ahead, filled = stages.make_producer(), stages.make_producer()
    under_way = cute.Int32(0)
    work = scheduler.initial_work_tile_info()
    while work.is_valid_tile:
        m, _, layer = work.tile_idx
        _, split = share_of(layer, splits)
        first_k, end_k = part_of_k(k_tiles, split, splits, part, parts)
        under_way = gather_tile(rows, ahead, filled, sA, m * cute.size(sA, mode=[0]), first_k, end_k, under_way)
        scheduler.advance_to_next_work()
        work = scheduler.get_current_work()
    gather_end(ahead, filled, under_way)
