# SPDX-License-Identifier: Apache-2.0
"""Sums over the GPUs that are left when a block's tiles are done: parts of all GPUs that are added up, and others' sums
that are brought to where they go. By the threads that multiplied, in units of 64 rows and a tile's columns."""

from __future__ import annotations

import math
from typing import Any

import numba_cute as cute
from numba_cute import arch, pipeline
from numba_cute.seam import traced

from ..gemm.output import ROWS
from .ring import blocks_of

VECTOR, THREADS = 16, 256
"""Bytes that a thread copies at once; and threads of a block that multiply."""
MEET = 3
"""Of named barriers, one that neither warpgroup uses alone."""
TOGETHER = 8
"""Vectors that a thread has on their way."""


@cute.jit
def send_piece(parts, shared, row, column, gpu, waits):
    """Store a piece, (rows, columns) in shared memory, to a GPU's memory, without what is beyond the edges. A whole
    warp. parts: `Rows` of all GPUs. row, column: the piece's first. waits: whether until it is there: what queues for
    NVLink delays the next tile's loads."""
    along = cute.const_expr(cute.size(shared, mode=[1]) // parts.vector)  # lanes of a row
    once = cute.const_expr(32 // along)
    down, across = arch.lane_idx() // along, arch.lane_idx() % along
    first, left = cute.Int32(row + down), cute.Int32(parts.extent - row - down)
    at = cute.Int32(column + across * parts.vector)
    if at < parts.matrix.shape[1]:
        for i in cute.range(0, cute.size(shared, mode=[0]), once, unroll=1):
            if i < left:
                value = cute.local_tile(shared, (1, parts.vector), (i + down, across))
                there = parts.at(first + i, at, gpu, parts.vector)
                cute.autovec_copy(cute.make_tensor(value.iterator, there.layout), there)
    if waits:
        arch.fence_acq_rel_sys()
    arch.sync_warp()


@cute.jit
def add_up(of, totals, epoch, thread):
    """Add up this block's share of the units, in the order of the GPUs, once their parts are there. All threads that
    multiply. of: a `Scatter`. totals: where the sums go. epoch: the launch's. thread: which one of them."""
    block, blocks = blocks_of()
    meet = pipeline.NamedBarrier(MEET, THREADS)
    rows, columns = of.units
    for unit in range(cute.Int32(block), rows * columns, cute.Int32(blocks)):
        row, column = unit // columns, unit % columns
        await_parts(of, row, column, epoch, thread)
        meet.arrive_and_wait()
        add_unit(of, totals, row, column, thread)


@cute.jit
def await_parts(of, row, column, epoch, thread):
    """Wait until all parts of a unit are there. All threads, each warp for some of the GPUs."""
    if thread % 32 == 0:
        for source in range(thread // 32, of.signals.world, THREADS // 32):
            of.signals.wait(source, of.slot(row, column), epoch)


@cute.jit
def bring_sums(of, totals, epoch, thread):
    """Bring this block's share of the units that others own to where they go, once they are there. All as of
    `add_up`."""
    block, blocks = blocks_of()
    meet = pipeline.NamedBarrier(MEET, THREADS)
    rows, columns = of.units
    for unit in range(cute.Int32(block), rows * columns * of.others, cute.Int32(blocks)):
        owner = of.peer(1 + unit // (rows * columns))
        row, column = unit // columns % rows, unit % columns
        await_sums(of, row, column, owner, epoch, thread)
        meet.arrive_and_wait()
        copy_unit(of, totals, row, column, owner, thread)


@cute.jit
def await_sums(of, row, column, owner, epoch, thread):
    """Wait until the sums of a unit are there. All threads."""
    if thread == 0:
        of.signals.wait(owner, of.shared_slot(row, column), epoch)


@cute.jit
def add_unit(of, totals, row, column, thread):
    """Add up the parts of a unit, which are there. All threads. thread: which one."""
    dtype = totals.element_type
    vector, each, together = vectors_of(of.parts.element_type, of.tile_n)
    rows, n = cute.Int32(of.parts.shape[0]), cute.Int32(of.parts.shape[1])
    values = cute.make_rmem_tensor((vector, together), of.parts.element_type)
    sums = cute.make_rmem_tensor((vector, together), cute.Float32)
    made = cute.make_rmem_tensor((vector, together), dtype)
    for first in range(0, each, together):
        sums.fill(0.0)
        for source in cute.range(of.signals.world, unroll=2):
            for i in cute.range_constexpr(together):
                m, at = place(thread + THREADS * (first + i), of.tile_n, row, column, vector)
                m, at = min(m, rows - 1), min(at, n - vector)  # what is beyond is read from elsewhere, and left out
                cute.autovec_copy(vector_at(of.parts, vector, m, at, source), values[None, i])
            sums.store(sums.load() + values.load().to(cute.Float32))
        made.store(sums.load().to(dtype))
        for i in cute.range_constexpr(together):
            m, at = place(thread + THREADS * (first + i), of.tile_n, row, column, vector)
            if m < rows and at < n:
                cute.autovec_copy(made[None, i], vector_at(totals, vector, m, at))


@cute.jit
def copy_unit(of, totals, row, column, owner, thread):
    """Copy the sums of a unit, which are there, to where they go. All threads. thread: which one."""
    dtype = totals.element_type
    vector, each, together = vectors_of(dtype, of.tile_n)
    rows, n = cute.Int32(of.parts.shape[0]), cute.Int32(of.parts.shape[1])
    values = cute.make_rmem_tensor((vector, together), dtype)
    for first in range(0, each, together):
        for i in cute.range_constexpr(together):
            m, at = place(thread + THREADS * (first + i), of.tile_n, row, column, vector)
            m, at = min(m, rows - 1), min(at, n - vector)
            cute.autovec_copy(vector_at(of.shared, vector, m, at, owner), values[None, i])
        for i in cute.range_constexpr(together):
            m, at = place(thread + THREADS * (first + i), of.tile_n, row, column, vector)
            if m < rows and at < n:
                cute.autovec_copy(values[None, i], vector_at(totals, vector, m, at, owner))


@traced
def vectors_of(dtype: Any, tile_n: int) -> tuple[int, int, int]:
    """Give how many elements a thread copies at once, how often of a unit, and how often before it goes on."""
    vector = 8 * VECTOR // dtype.width
    each = ROWS * tile_n // vector // THREADS
    return vector, each, math.gcd(TOGETHER, each)


@traced
def place(number: Any, tile_n: int, row: Any, column: Any, vector: int) -> tuple[Any, Any]:
    """Give where a vector of a unit is, by its number. row, column: of the unit."""
    across = tile_n // vector
    return cute.Int32(ROWS * row + number // across), cute.Int32(tile_n * column + number % across * vector)


@traced
def vector_at(tensor: Any, count: int, row: Any, column: Any, *more: Any) -> Any:
    """Give `count` elements of a row, as a tensor whose memory begins at a multiple of them."""
    offset = cute.Int64(column)
    for place, step in zip((row, *more), (tensor.stride[0], *tensor.stride[2:])):
        offset = offset + cute.Int64(place) * cute.Int64(step)
    dtype = tensor.element_type
    place = (tensor.iterator + offset).toint()
    return cute.make_tensor(
        cute.make_ptr(dtype, place, cute.AddressSpace.gmem, count * dtype.width // 8), cute.make_layout(count)
    )
