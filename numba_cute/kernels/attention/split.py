# SPDX-License-Identifier: Apache-2.0
"""Attention of few queries over many keys: CTAs share a tile's keys, and a second kernel joins what they found.

Each writes its part's O, normalised, and the log of its sum of exponentials, both in Float32; O is then the mean of the
parts, weighed by their sums. The parts are joined in their order: the result is the same each time.
"""

import functools
import math

from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils

from .. import tuning
from ..reduce import LEAST, exp, joined, over_lanes
from .softmax import LN_2, rows_of

LEAST_BLOCKS = 2  # of a part, unless its tile has fewer
MOST_SPLITS = 256
BEYOND = 1 << 20  # a block
THREADS = 128  # that join a row
BOUNDS = {True: THREADS, False: (THREADS, 4)}  # before Hopper ptxas takes 40 registers by itself, and spills
AHEAD = 8  # parts whose O a thread has on its way


def splits_of(tiles, blocks, sms, ragged, entry="flash_attention"):
    """Return the number of CTAs that share a tile's keys: the best by a model of the time.

    tiles: of all queries. blocks: of keys that a tile has at most. sms: of the GPU. ragged: whether some have fewer, by
    lengths that only the GPU knows: then small parts, which are drawn when a CTA is done, end about together. entry:
    whose kernel. Of a GPU it knows what a part costs beside its blocks (`tile`), and the kernel that joins parts
    (`join`): in the time of a block.
    """
    known = tuning.numbers(entry)

    def time(splits):
        each = max(math.ceil(blocks / splits), LEAST_BLOCKS)
        waves = tiles * math.ceil(blocks / each) / sms
        waves = waves + 0.25 if ragged else math.ceil(waves)
        return waves * (each + known.tile) + (known.join if splits > 1 else 0)

    return min(range(1, max(1, min(MOST_SPLITS, blocks // LEAST_BLOCKS)) + 1), key=time)


@cuda.jit
def part_of(begin, end, split, splits):
    """Give the `split`-th of `splits` parts, a divisor, of blocks [begin, end): its first, and the one after its last.
    Where there is none it is a block beyond all keys, which is neither fetched nor seen."""
    each = max((max(end - begin, 0) + splits.divisor - 1) // splits, LEAST_BLOCKS)
    first = begin + split * each
    if first >= end:
        first, end = BEYOND, BEYOND
    return first, min(end, first + each)


@cuda.jit
def store_row(acc, r, factor, row):
    """Write row `r` of a wgmma accumulator, times `factor`, in Float32 to `row`, in global memory: of every eight
    columns two. What is in the accumulator stays."""
    values, column = rows_of(acc), arch.lane_idx() % 4 * 2
    for i in cute.range_constexpr(cute.size(values, mode=[1]) // 2):
        arch.store(row.iterator + (column + 8 * i), (values[r, 2 * i] * factor, values[r, 2 * i + 1] * factor))


@cuda.jit
def add_parts(totals, sums, logs, row, column, first, step, splits, most):
    """Add four columns of AHEAD parts of a row of O to `totals`, each `step` after the other, from part `first` on.
    row: the query, the head and the sequence. most: the highest of the logs."""
    query, head, b = row
    parts, weights = cute.make_rmem_tensor((4, AHEAD), cute.Float32), cute.make_rmem_tensor(AHEAD, cute.Float32)
    for i in cute.range_constexpr(AHEAD):  # all are asked for before any is looked at
        split = min(cute.Int32(first + i * step), cute.Int32(splits - 1))
        weights[i] = logs[query, head, (b, split)]
        values = arch.load(sums[query, None, head, (b, split)].iterator + column, cute.Float32, count=4)
        for j in cute.range_constexpr(4):
            parts[j, i] = values[j]
    for i in cute.range_constexpr(AHEAD):
        there = first + i * step < splits and weights[i] != -math.inf  # a part without keys has written no O
        weight = exp(weights[i] - most)
        for j in cute.range_constexpr(4):
            totals[j] += cute.where(there, weight * parts[j, i], cute.Float32(0))


@functools.cache
def make_join(dtype, dv, overlaps=True):
    """The kernel that joins the parts of rows of O. Its grid: a CTA for each row. overlaps: whether it begins while the
    one before it ends."""
    across = dv // 4  # threads of a row: each has four columns
    teams = THREADS // across  # each takes every so manieth part

    @cuda.jit(launch_bounds=BOUNDS[bool(overlaps)])
    def join(sums, logs, o, lse, sink, cu_q, heads, queries, batch, splits):
        tidx, _, _ = arch.thread_idx()
        row = cute.Int32(arch.block_idx()[0])
        head, query, b = row % heads, row // heads % queries, row // heads // queries
        team, column = tidx // across, tidx % across * 4
        if cute.const_expr(overlaps):
            arch.griddepcontrol_launch_dependents(), arch.griddepcontrol_wait()  # the parts are written
        within = True
        if cute.const_expr(cu_q is not None):
            within = query < cu_q[batch]

        most, whole = cute.Float32(LEAST), cute.Float32(0)
        for first in range(0, splits, 32):
            split = first + tidx % 32
            log = logs[query, head, (b, split)] if split < splits else cute.Float32(-math.inf)
            part = (max(log, cute.Float32(LEAST)), cute.where(log == -math.inf, cute.Float32(0), cute.Float32(1)))
            most, whole = joined((most, whole), part)
        most, whole = over_lanes((most, whole), joined)
        if cute.const_expr(sink is not None):
            most, whole = joined((most, whole), (sink[head], cute.Float32(1)))

        totals = cute.make_rmem_tensor(4, cute.Float32)
        totals.fill(0)
        for first in range(team, splits, teams * AHEAD):
            if team < teams:
                add_parts(totals, sums, logs, (query, head, b), column, first, teams, splits, most)

        smem = utils.SmemAllocator()
        meet = smem.allocate_tensor(cute.Float32, cute.make_layout((4, THREADS), stride=(1, 4)), 16, None, "totals")
        for j in cute.range_constexpr(4):
            meet[j, tidx] = totals[j]
        arch.sync_threads()
        if team == 0 and within:
            rounded = cute.make_rmem_tensor(4, dtype)
            for j in cute.range_constexpr(4):
                total = totals[j]
                for other in cute.range_constexpr(1, teams):
                    total += meet[j, other * across + tidx]
                rounded[j] = cute.where(whole == 0, cute.Float32(0), total / whole).to(dtype)
            target = o[query, None, head, b]
            arch.store(target.iterator + column, (rounded[0], rounded[1], rounded[2], rounded[3]))
            if tidx == 0:
                log = most + cute.math.log2(whole, fastmath=True) * cute.Float32(LN_2)
                lse[query, head, b] = cute.where(whole == 0, cute.Float32(-math.inf), log)

    return join
