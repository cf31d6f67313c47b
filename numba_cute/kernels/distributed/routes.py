# SPDX-License-Identifier: Apache-2.0
"""The ways of rows: tokens of each GPU of a group go to the GPUs of their experts, and come back.

A token and one of its choices make a *pair*, numbered by token and then by choice. A kernel of its own finds, before
the rows travel, what a GPU receives: a block sorts this GPU's pairs by expert, in their order, for the others to read;
then each block waits for all GPUs, and finds its part of the rows that come here. They lie by expert, of an expert by
the GPU that they are from, this one first and then around: so the GPUs do not all read from the same. The host learns
nothing of it, so that a CUDA graph replays.
"""

from __future__ import annotations

from typing import Any

from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.seam import frozen

from ..gemm.groups import up_to_lane
from .ring import SLOTS as COMMON, around, blocks_of

SLABS = 2
ROUTED, SENT, SLOTS = COMMON, COMMON + 1, COMMON + 1 + SLABS
"""Slots of the signals of experts: a GPU has sorted its pairs; it has sent all rows that it computed, for each slab of
columns, of which there are so many at most."""
WARP, EVERY = 32, 0xFFFFFFFF
TOGETHER = 4
"""Pairs of a lane that are read at once."""
NOWHERE, WRONG = -1, -2
"""Numbers in the place of a pair's expert: it has none; its index is too large, or there was no room."""
OVERFLOWED, NEEDED, NAMED = 0, 1, 2
"""Words of a report: the rank that had no room, and 1; how many rows it was to take; an expert that there is not."""
WORDS = 4
MOST_EXPERTS = 8192
MOST_SHARED = 32768  # counts, of 4 bytes, that a block has in shared memory, beside two words for each expert
MOST_WARPS = 32


@frozen
class Routes:
    """The ways of a GPU's pairs, and of those that come here. rank: this GPU's number. experts: of all GPUs. pairs: of
    a GPU, at most. sorted: memory of all GPUs, (experts + 1 + pairs, GPUs): where the pairs of each expert begin, and
    the pairs in their order. chosen: the expert of each pair of this GPU, NOWHERE or WRONG, (pairs,). origins: of each
    row that comes here the GPU that it is from times `pairs`, and its pair, (capacity,). ends: the row after the last
    one of each of this GPU's experts. arrived: of blocks of rows what has come, which is made 0. report: words for the
    host. signals: of `Signals`, with `SLOTS` slots."""

    rank: Any
    experts: int
    pairs: int
    sorted: Any
    chosen: Any
    origins: Any
    ends: Any
    arrived: Any
    report: Any
    signals: Any


def warps_for(experts: int, pairs: int) -> int:
    """Choose how many warps a block has."""
    return max(1, min(MOST_WARPS, MOST_SHARED // experts, -(-pairs // WARP)))


@cute.jit
def sums_before(x, count):
    """Make of `count` numbers the sums of those before each, and write that of all behind them. A whole warp."""
    before = cute.Int32(0)
    for first in range(0, count, WARP):
        i = cute.Int32(first + arch.lane_idx())
        own = cute.Int32(0)
        if i < count:
            own = x[i]
        upto = up_to_lane(own)
        if i < count:
            x[i] = before + upto - own
        before += arch.shuffle_sync(upto, WARP - 1)
    if arch.lane_idx() == 0:
        x[count] = before


@cute.jit
def read(x, first, count, none):
    """Read `TOGETHER` words of a lane, WARP apart, which are on their way at once. count: the place after the last.
    none: what stands for those behind it."""
    found = cute.make_rmem_tensor(TOGETHER, x.element_type)
    for i in cute.range_constexpr(TOGETHER):
        place = cute.Int32(first + WARP * i)
        found[i] = none
        if place < count:
            found[i] = x[place]
    return found


@cute.jit
def choose(routes, indices, first, count, counts, wrong):
    """Find the experts of a warp's pairs, and count those of each. first, count: the first pair, and the one after the
    last. counts: of this warp, (experts,). wrong: what an expert that there is not is put in."""
    for start in range(first, count, WARP * TOGETHER):
        own = cute.Int32(start + arch.lane_idx())
        named = read(indices, own, count, NOWHERE)
        for i in cute.range_constexpr(TOGETHER):
            if start + WARP * i < count:
                pair, name = cute.Int32(own + WARP * i), cute.Int64(named[i])
                expert = cute.Int32(NOWHERE)
                if name >= routes.experts:
                    expert = cute.Int32(WRONG)
                    arch.atomic_max(wrong, cute.Int32(min(name, cute.Int64(0x7FFFFFFF))))
                elif name >= 0:
                    expert = cute.Int32(name)
                if pair < count:
                    routes.chosen[pair] = expert
                same = arch.match_sync(EVERY, expert)
                if expert >= 0 and same & arch.lanemask_lt() == 0:
                    counts[expert] += cute.Int32(arch.popc(same))
                arch.sync_warp()


@cute.jit
def sort(routes, first, count, places):
    """Write a warp's pairs where they belong. places: of the next pair of each expert. All as of `choose`."""
    for start in range(first, count, WARP * TOGETHER):
        own = cute.Int32(start + arch.lane_idx())
        chosen = read(routes.chosen, own, count, NOWHERE)
        for i in cute.range_constexpr(TOGETHER):
            if start + WARP * i < count:
                expert = cute.Int32(chosen[i])
                same = arch.match_sync(EVERY, expert)
                before = cute.Int32(arch.popc(same & arch.lanemask_lt()))
                if expert >= 0:
                    place = places[expert] + before
                    routes.sorted[routes.experts + 1 + place, routes.rank] = cute.Int32(own + WARP * i)
                arch.sync_warp()
                if expert >= 0 and before == 0:
                    places[expert] += cute.Int32(arch.popc(same))
                arch.sync_warp()


@cute.jit
def sort_all(routes, indices, count, counts, starts, wrong, warps):
    """Sort this GPU's pairs by expert. A whole block. counts: (experts, warps). starts: (experts + 1,)."""
    tidx, _, _ = arch.thread_idx()
    warp = cute.Int32(tidx // WARP)
    experts = routes.experts
    for i in range(tidx, experts * warps, warps * WARP):
        counts[i % experts, i // experts] = cute.Int32(0)
    if tidx == 0:
        wrong[0] = cute.Int32(-1)
    arch.sync_threads()
    each = (count + (warps * WARP - 1)) // (warps * WARP) * WARP
    first, end = warp * each, min(cute.Int32(count), (warp + 1) * each)
    choose(routes, indices, first, end, counts[None, warp], wrong.iterator)
    arch.sync_threads()
    for expert in range(tidx, experts, warps * WARP):
        sum = cute.Int32(0)
        for i in range(warps):
            own = counts[expert, i]
            counts[expert, i] = sum
            sum += own
        starts[expert] = sum
    arch.sync_threads()
    if warp == 0:
        sums_before(starts, experts)
    arch.sync_threads()
    for i in range(tidx, experts * warps, warps * WARP):
        counts[i % experts, i // experts] += starts[i % experts]
    for expert in range(tidx, experts + 1, warps * WARP):
        routes.sorted[expert, routes.rank] = starts[expert]
    arch.sync_threads()
    sort(routes, first, end, counts[None, warp])
    if tidx == 0 and wrong[0] >= 0:
        routes.report[NAMED] = wrong[0]
    arch.sync_threads()


@cute.jit
def find_room(routes, firsts, begins, totals, warps):
    """Find where the pairs of each expert and GPU begin there, and here, and what each GPU gets. A whole block. firsts:
    (experts,). begins: (experts + 1,). totals: (GPUs,). Gives the rank that has too little room, or -1."""
    tidx, _, _ = arch.thread_idx()
    world = routes.signals.world
    own = routes.experts // world
    if tidx < world:
        total = cute.Int32(0)
        for source in range(world):
            total += routes.sorted[(tidx + 1) * own, source] - routes.sorted[tidx * own, source]
        totals[tidx] = total
    for i in range(tidx, routes.experts, warps * WARP):
        expert = routes.rank * own + i // world
        source = around(routes.rank + i % world, world)
        first = routes.sorted[expert, source]
        firsts[i] = first
        begins[i] = routes.sorted[expert + 1, source] - first
    arch.sync_threads()
    if tidx < WARP:
        sums_before(begins, routes.experts)
    arch.sync_threads()
    full = cute.Int32(-1)
    for rank in range(world):
        if totals[rank] > routes.origins.shape[0]:
            full = cute.Int32(rank)
    return full


@cute.jit
def receive(routes, firsts, begins, warps):
    """Find of this block's part of the rows that come here where they are from. A whole block."""
    tidx, _, _ = arch.thread_idx()
    block, blocks = blocks_of()
    world = routes.signals.world
    for i in range(block, routes.experts, blocks):
        source = around(routes.rank + i % world, world)
        begin, first = begins[i], firsts[i]
        for row in range(tidx, begins[i + 1] - begin, warps * WARP):
            pair = routes.sorted[routes.experts + 1 + first + row, source]
            routes.origins[begin + row] = source * routes.pairs + pair


@cuda.jit(launch_bounds=MOST_WARPS * WARP)
def route(indices, count, routes, warps: cute.Constexpr):
    """Find where all rows go. indices: the experts of this GPU's pairs, `count` of them."""
    tidx, _, _ = arch.thread_idx()
    block, blocks = blocks_of()
    experts, world = routes.experts, routes.signals.world
    smem = utils.SmemAllocator()
    counts = smem.allocate_tensor(cute.Int32, cute.make_layout((experts, warps)), 16, None, "counts")
    firsts = smem.allocate_tensor(cute.Int32, cute.make_layout(experts), 16, None, "firsts")
    begins = smem.allocate_tensor(cute.Int32, cute.make_layout(experts + 1), 16, None, "begins")
    totals = smem.allocate_tensor(cute.Int32, cute.make_layout(world), 16, None, "totals")
    wrong = smem.allocate_tensor(cute.Int32, cute.make_layout(1), 16, None, "wrong")
    epoch = routes.signals.epoch()
    if block == 0:
        sort_all(routes, indices, count, counts, begins, wrong, warps)
        if tidx < world:
            routes.signals.put(around(routes.rank + tidx, world), ROUTED, epoch)
    if tidx < world:
        routes.signals.wait(tidx, ROUTED, epoch)
    arch.sync_threads()
    full = find_room(routes, firsts, begins, totals, warps)
    if full < 0:
        receive(routes, firsts, begins, warps)
    if block == 0:
        for i in range(tidx, experts // world, warps * WARP):
            routes.ends[i] = begins[(i + 1) * world] if full < 0 else cute.Int32(0)
        if full >= 0:
            for pair in range(tidx, count, warps * WARP):
                routes.chosen[pair] = cute.Int32(WRONG)
            if tidx == 0:
                routes.report[NEEDED] = totals[full]
                routes.report[OVERFLOWED] = full + 1
    for i in range(block * (warps * WARP) + tidx, routes.arrived.shape[0], blocks * (warps * WARP)):
        routes.arrived[i] = cute.Int32(0)
    arch.sync_threads()
    if tidx == 0:
        routes.signals.advance(blocks)
