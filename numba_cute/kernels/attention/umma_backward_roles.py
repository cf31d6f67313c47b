# SPDX-License-Identifier: Apache-2.0
"""Parts that the warps of attention's backward kernel on Blackwell share, and the roles of those that move its tiles:
who loads them, who adds up dQ in memory, and who stores dK and dV."""

import functools
from typing import Any, NamedTuple

from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline
from numba_cute.nvgpu import cpasync, tcgen05
from numba_cute.nvgpu.tcgen05 import Repetition
from numba_cute.pipeline import Agent, CooperativeGroup, NamedBarrier
from numba_cute.seam import traced

from . import visits
from .backward_rows import load_rows, sequence
from .backward_tiles import load_numbers
from .schedule import tile_at
from .umma_backward_plan import PIECE, SLOTS, TILE, columns_of

COMPUTE_WARPS, REDUCE_WARP, MMA_WARP, LOAD_WARP = 8, 8, 12, 13  # reduce: the first of four
THREADS, LAUNCHED = 512, 128  # registers of a thread at first
REDUCED = 3  # the named barrier of the threads that add up dQ
ONE = CooperativeGroup(Agent.Thread)
OF_COMPUTE, OF_REDUCE = CooperativeGroup(Agent.Thread, 32 * COMPUTE_WARPS), CooperativeGroup(Agent.Thread, TILE)


@traced
def take_registers(count):
    """Have so many registers from now on. A whole warpgroup."""
    (arch.setmaxregister_increase if count > LAUNCHED else arch.setmaxregister_decrease)(count)


def words_of(columns):
    """Say how so many columns of tensor memory lie, and give the copy atom that takes a piece of them."""
    return (
        cute.make_layout((TILE, columns), stride=(1 << 16, 1)),
        cute.make_copy_atom(tcgen05.Ld32x32bOp(Repetition(PIECE)), cute.Float32),
    )


class Walk(NamedTuple):
    """Say what a CTA does. tile: of keys. head: of K and V. group: heads of Q that share it. first, last: the tiles of
    queries that it meets of each head, `last` after them. rounds: of all heads. queries, keys: of the sequence; q_row,
    k_row: its first ones; q_batch, k_batch: where it lies. behind, before: a query sees the keys from its number and
    `behind` on, up to its number and `before`. row: of the tiles of queries in memory, of all heads, the first of
    these; tiles: how many each head has there. listed: `visits.Visits` of the columns of blocks, or ()."""

    tile: Any
    head: Any
    batch: Any
    group: Any
    first: Any
    last: Any
    rounds: Any
    queries: Any
    keys: Any
    q_row: Any
    k_row: Any
    q_batch: Any
    k_batch: Any
    behind: Any
    before: Any
    row: Any
    tiles: Any
    listed: Any


@cuda.jit
def start(walk):
    """Give the place, the last one and the head before those of the first tile of queries, for `visits.make_heads`'
    `following`."""
    return cute.Int32(0), cute.Int32(0), cute.Int32(walk.head * walk.group - 1)


@cuda.jit
def row_of(head, walk):
    """Give the first row of a head's tiles of queries in memory."""
    return cute.Int32(walk.row + (head - walk.head * walk.group) * walk.tiles)


class Pipes(NamedTuple):
    """Hold the pipelines. own: K, and V. q, do: of their tiles. numbers: of each query. s, dp: one full, its threads
    give back P, and dS. dq: its threads give back its columns. sums: dV and dK, complete."""

    own: Any
    q: Any
    do: Any
    numbers: Any
    s: Any
    dp: Any
    dq: Any
    sums: Any


class Tiles(NamedTuple):
    """Hold what lies in shared memory. numbers: (queries, 2, stages), the logs and the rows' sums. dq: pieces on their
    way to memory."""

    q: Any
    do: Any
    k: Any
    v: Any
    ds: Any
    dq: Any
    numbers: Any


def allocated(smem, dtype, lies, stages):
    """Reserve shared memory for tiles. lies: as of `matrices`. stages: of Q."""
    of = lies.q, lies.do, lies.kv, lies.kv, lies.ds
    names = "sQ", "sdO", "sK", "sV", "sdS"
    q, do, k, v, ds = [smem.allocate_tensor(dtype, x.outer, 1024, x.inner, name) for x, name in zip(of, names)]
    pieces = smem.allocate_tensor(cute.Float32, cute.make_layout((PIECE * TILE, SLOTS)), 128, None, "sdQ")
    numbers = cute.make_layout((TILE, 2, stages))
    return Tiles(q, do, k, v, ds, pieces, smem.allocate_tensor(cute.Float32, numbers, 128, None, "numbers"))


def piped(smem, q_stages, do_stages, nbytes, tidx):
    """Make the pipelines. nbytes: of a tile. All threads."""

    def loaded(stages, name):
        return pipeline.PipelineTmaUmma.create(
            num_stages=stages, producer_group=ONE, consumer_group=ONE, tx_count=nbytes,
            barrier_storage=smem.allocate_array(cute.Int64, 2 * stages), defer_sync=True, name=name,
        )  # fmt: skip

    def multiplied(threads, name):
        return pipeline.PipelineUmmaAsync.create(
            num_stages=1, producer_group=ONE, consumer_group=threads,
            barrier_storage=smem.allocate_array(cute.Int64, 2), defer_sync=True, name=name,
        )  # fmt: skip

    numbers = pipeline.PipelineTmaAsync.create(
        num_stages=q_stages, producer_group=ONE, consumer_group=CooperativeGroup(Agent.Thread, COMPUTE_WARPS),
        tx_count=2 * 4 * TILE, barrier_storage=smem.allocate_array(cute.Int64, 2 * q_stages), tidx=tidx,
        defer_sync=True, name="numbers",
    )  # fmt: skip
    return Pipes(
        loaded(2, "own"), loaded(q_stages, "Q"), loaded(do_stages, "dO"), numbers, multiplied(OF_COMPUTE, "S"),
        multiplied(OF_COMPUTE, "dP"), multiplied(OF_REDUCE, "dQ"), multiplied(OF_COMPUTE, "sums"),
    )  # fmt: skip


@functools.cache
def make_walk(form):
    """The function that finds what a CTA does."""
    left, right = form.left, form.right
    rounds_of, _, _ = visits.make_heads(form.block, TILE, TILE, form.bounded)

    @cuda.jit
    def walk_of(index, order, group, queries, keys, behind, before, cu_q, cu_k, used, listed):
        """Find the work of the CTA that comes `index`-th. queries, keys: of the longest sequence. behind, before: a
        window's sides, from a query's own key on."""
        tile, head, batch = tile_at(cute.Int32(index), order, False)
        tiles = cute.Int32((queries + TILE - 1) // TILE)
        q_row, queries, q_batch = sequence(cu_q, None, batch, queries)
        k_row, keys, k_batch = sequence(cu_k, used, batch, keys)
        shift, first, last = cute.Int32(keys - queries), cute.Int32(0), cute.Int32(queries)
        if cute.const_expr(right):
            first = cute.Int32(max(0, tile * TILE - shift - before))
        if cute.const_expr(left):
            last = cute.Int32(max(0, min(queries, (tile + 1) * TILE - shift + behind)))
        first, last = cute.Int32(first // TILE), cute.Int32((last + TILE - 1) // TILE)
        if tile * TILE >= keys:
            last = cute.Int32(0)
        first = cute.Int32(min(first, last))
        rounds = rounds_of(tile, head, group, batch, first, last, listed)
        return Walk(
            tile, head, batch, group, first, last, rounds, queries, keys, q_row, k_row, q_batch, k_batch,
            cute.Int32(shift - behind), cute.Int32(shift + before),
            cute.Int32((batch * order.heads.divisor + head) * group * tiles), tiles, listed,
        )  # fmt: skip

    return walk_of


@functools.cache
def make_load(form):
    """The role of the warp that loads."""
    d = form.d
    _, following, tile_of = visits.make_heads(form.block, TILE, TILE, form.bounded)

    @cuda.jit
    def load(tma_q, mQ, tma_k, mK, tma_v, mV, tma_do, mdO, logs, dots, tiles, pipes, walk):
        own, q, do = pipes.own.make_producer(), pipes.q.make_producer(), pipes.do.make_producer()
        numbers = pipes.numbers.make_producer()
        stage = own.acquire_and_advance()
        load_rows(tma_k, mK, tiles.k, walk.tile, walk.k_row, walk.keys, d, walk.head, walk.k_batch, stage.barrier)
        place, last, head = start(walk)
        for i in range(walk.rounds):
            place, last, head = following(place, last, head, walk.tile, walk.batch, walk.first, walk.last, walk.listed)
            m, _ = tile_of(place, head, walk.tile, walk.batch, walk.listed)
            stage = q.acquire_and_advance()
            to = tiles.q[None, None, stage.index]
            load_rows(tma_q, mQ, to, m, walk.q_row, walk.queries, d, head, walk.q_batch, stage.barrier)
            stage = numbers.acquire_and_advance()
            at = cute.assume(cute.Int32(row_of(head, walk) + m) * TILE, divby=TILE)
            if arch.elect_one():
                load_numbers(logs, at, tiles.numbers[None, 0, stage.index], stage.barrier, TILE)
                load_numbers(dots, at, tiles.numbers[None, 1, stage.index], stage.barrier, TILE)
            if i == 0:
                stage = own.acquire_and_advance()
                load_rows(
                    tma_v, mV, tiles.v, walk.tile, walk.k_row, walk.keys, d, walk.head, walk.k_batch, stage.barrier
                )
            stage = do.acquire_and_advance()
            to = tiles.do[None, None, stage.index]
            load_rows(tma_do, mdO, to, m, walk.q_row, walk.queries, d, head, walk.q_batch, stage.barrier)

    return load


@functools.cache
def make_leave(form):
    """The role of the threads that compute, at the end: dV, or dK, of a key each."""
    dtype, d, columns = form.dtype, form.d, columns_of(form)
    words, load_words = words_of(d)

    @cuda.jit
    def leave(ptr, to, strides, factor, walk, thread):
        """Write a row of sums, times `factor`, from tensor memory at `ptr` to `to`, (batch, keys, heads, d) by its
        strides; zeros where there are none."""
        tSums = cute.make_tensor(ptr, words)
        loads = tcgen05.make_tmem_copy(load_words, tSums)
        source = loads.get_slice(thread).partition_S(tSums)
        held, rounded = cute.make_rmem_tensor(PIECE, cute.Float32), cute.make_rmem_tensor(PIECE, dtype)
        held.fill(0.0)
        (batch, row, head), key = strides, cute.Int32(walk.tile * TILE + thread)
        at = walk.k_batch * batch + cute.Int64(walk.k_row + key) * row + walk.head * head
        for piece in cute.range_constexpr(d // PIECE):
            if walk.rounds > 0:
                cute.copy(loads, source[None, 0, piece], held)
                arch.fence_view_async_tmem_load()
            rounded.store((held.load() * factor).to(dtype))
            if key < walk.keys:
                there = cute.assume(at + piece * PIECE, divby=8)
                cute.autovec_copy(rounded, cute.make_tensor(to.iterator + there, cute.make_layout(PIECE)))

    @cuda.jit
    def leave_both(base, half, dk, dk_strides, dv, dv_strides, scale, walk, thread):
        """Write dV in the first warpgroup, dK in the other."""
        if half == 0:
            leave(base + columns.dv, dv, dv_strides, cute.Float32(1), walk, thread)
        else:
            leave(base + columns.dk, dk, dk_strides, scale, walk, thread)

    return leave_both


@functools.cache
def make_reduce(form):
    """The role of the threads that add up dQ in global memory."""
    d, columns, taken = form.d, columns_of(form), form.taken
    words, load_words = words_of(d)
    add = cute.make_copy_atom(cpasync.CopyReduceBulkS2GOp(), cute.Float32, 32 * TILE * PIECE)
    fours = cute.make_layout((4, PIECE // 4))
    _, following, tile_of = visits.make_heads(form.block, TILE, TILE, form.bounded)
    by_fours = cute.make_layout((4, PIECE // 4), stride=(1, 4 * TILE))

    @cuda.jit
    def reduce(base, tiles, pipes, walk, warp, thread, sums):
        """Do so for all rounds. thread: of these; it has a query."""
        tdQ = cute.make_tensor(base + columns.dq, words)
        loads = tcgen05.make_tmem_copy(load_words, tdQ)
        source = loads.get_slice(thread).partition_S(tdQ)
        of_dq, together = pipes.dq.make_consumer(), NamedBarrier(REDUCED, TILE)
        held = cute.make_rmem_tensor((PIECE, taken), cute.Float32)
        place, last, head = start(walk)
        for _ in range(walk.rounds):
            place, last, head = following(place, last, head, walk.tile, walk.batch, walk.first, walk.last, walk.listed)
            m, _ = tile_of(place, head, walk.tile, walk.batch, walk.listed)
            to = cute.Int64(row_of(head, walk) + m) * (TILE * d)
            ready = of_dq.wait_and_advance()
            for piece in cute.range_constexpr(d // PIECE):
                if cute.const_expr(piece % taken == 0):
                    for i in cute.range_constexpr(taken):
                        cute.copy(loads, source[None, 0, piece + i], held[None, i])
                    arch.fence_view_async_tmem_load()
                if cute.const_expr(piece + taken == d // PIECE):
                    ready.release()
                slot = tiles.dq[None, piece % SLOTS]
                mine = cute.make_tensor(slot.iterator + cute.assume(4 * thread, divby=4), by_fours)
                cute.autovec_copy(cute.make_tensor(held[None, piece % taken].iterator, fours), mine)
                arch.fence_proxy("async.shared", space="cta")
                if warp == REDUCE_WARP:
                    if arch.elect_one():
                        arch.cp_async_bulk_wait_group(0, read=True)  # the next piece's slot is free
                together.arrive_and_wait()
                if warp == REDUCE_WARP:
                    if arch.elect_one():
                        at = cute.assume(to + piece * (TILE * PIECE), divby=TILE * PIECE)
                        cute.copy(add, slot, cute.make_tensor(sums.iterator + at, cute.make_layout(TILE * PIECE)))
                        arch.cp_async_bulk_commit_group()
        if warp == REDUCE_WARP:
            if arch.elect_one():
                arch.cp_async_bulk_wait_group(0, read=True)

    return reduce
