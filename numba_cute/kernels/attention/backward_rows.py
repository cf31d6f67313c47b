# SPDX-License-Identifier: Apache-2.0
"""Parts of attention's wide backward kernels: loads of tiles, stores of sums, scores changed by a function and their
derivative, windows, and tiles of sequences of their own lengths."""

import functools
import math

from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline
from numba_cute.nvgpu import cpasync, warp, warpgroup
from numba_cute.pipeline import Agent, CooperativeGroup

from ..derivative import Dual, dual, slots_of
from . import masks
from .elements import kept, within

TILE = 64  # keys of a CTA, and queries that stream by; queries of a warpgroup, and keys that stream by
CONSUMER_WARPS = 8


@cute.seam.traced
def bent(score, s, batch, head, query, key, aux):
    """Call the function of the scores on a scaled score `s`; gives its value and the derivative by `s`."""
    made = score(dual(s, "s"), batch, head, query, key, *aux)
    found = slots_of(made).get("s", 0.0)
    return made.value if isinstance(made, Dual) else made, cute.Float32(found)


@functools.cache
def make_ask(mask):
    """The function that leaves out of this thread's scores of S^T those that the mask's function does not allow."""

    @cuda.jit
    def ask(rS, batch, head, query, key, queries, keys, aux):
        """Ask of no query and no key beyond the last. query, key: of the first score."""
        for e in cute.range_constexpr(cute.size(rS)):
            by = within(query + e // 4 * 8 + e % 2, queries)
            at = within(key + e // 2 % 2 * 8, keys)
            rS[e] = kept(mask(batch, head, by, at, *aux), rS[e], -math.inf)

    return ask


@cuda.jit
def sequence(cu, used, batch, rows):
    """Give the first row of sequence `batch`, its number of rows, and its batch in the array. cu, used: first rows and
    lengths of sequences, or None: then each has `rows`."""
    first, of = cute.Int32(0), cute.Int32(batch)
    if cute.const_expr(cu is not None):
        first = cute.Int32(cu[batch])
        rows = cute.Int32(cu[batch + 1] - first)
        of = cute.Int32(0)
    if cute.const_expr(used is not None):
        rows = cute.Int32(used[batch])
    return first, cute.Int32(rows), of


@cuda.jit
def rows_at(coords, tile, first, rows, width, head, batch):
    """Give the coordinates of a tile of a sequence, (its rows, width, 1): none beyond its `rows`. first: where it
    begins. coords: (rows of a tile, columns, rows, heads, batches), as `gradients.ragged` makes them."""
    height = cute.size(coords, mode=[0])
    left = cute.Int32(max(0, min(height, rows - tile * height)))
    there = cute.domain_offset(
        (height - left, 0, first + min(tile * height, rows) + left), coords[None, None, None, head, batch]
    )
    return cute.local_tile(there, (height, width), (0, None, 0))


@cuda.jit
def load_rows(tma, coords, shared, tile, first, rows, width, head, batch, barrier):
    """Load a tile of a sequence to shared memory, with zeros for what is not its."""
    to, of = cpasync.tma_partition(
        tma, 0, cute.make_layout(1), cute.group_modes(shared, 0, 2),
        cute.group_modes(rows_at(coords, tile, first, rows, width, head, batch), 0, 2),
    )  # fmt: skip
    cute.copy(tma, of[None, 0], to, tma_bar_ptr=barrier)


@cuda.jit
def stream_rows(tma, coords, shared, stage, tile, first, rows, width, cluster, rank, head, batch, barrier, share):
    """Load this CTA's part of a tile of a sequence, for all, to a stage."""
    to, of = cpasync.tma_partition(
        tma, rank, cute.make_layout(cluster), cute.group_modes(shared, 0, 2),
        cute.group_modes(rows_at(coords, tile, first, rows, width, head, batch), 0, 2),
    )  # fmt: skip
    cute.copy(tma, of[None, 0], to[None, stage], tma_bar_ptr=barrier, mcast_mask=share)


@cuda.jit
def hide(rS, key, query, keys, shift, behind, causal, left):
    """Mask this thread's two rows of S^T: `key`, and the eighth after. query: of its first column; it has two of each
    8. shift, behind: a query sees the keys up to shift after it, and from behind after it. causal, left: whether these
    count."""
    for r in cute.range_constexpr(2):
        seen = cute.Uint32(0xFFFFFFFF)
        if key + 8 * r >= keys:
            seen = cute.Uint32(0)
        if causal:
            seen &= masks.others(masks.before(key + 8 * r - shift - query))
        if left:
            seen &= masks.lowest(masks.before(key + 8 * r - behind + 1 - query))
        for j in cute.range_constexpr(TILE // 4):
            if seen & (1 << j) == 0:
                rS[j // 2 * 4 + 2 * r + j % 2] = -math.inf


def tiles_of(smem, dtype, layouts):
    """Shared memory for the tiles of Q, dO, K and V; a CTA has a tile of queries for each of its warpgroups, or one of
    keys, and stages for what streams by."""
    names = "sQ", "sdO", "sK", "sV"
    return tuple(smem.allocate_tensor(dtype, x.outer, 1024, x.inner, name) for x, name in zip(layouts, names))


def pipe_of(smem, stages, tx_count, cluster, tidx, name):
    """The pipeline of a tensor that streams by all CTAs of a cluster, each of which loads a part of it for all."""
    return pipeline.PipelineTmaAsync.create(
        num_stages=stages, producer_group=CooperativeGroup(Agent.Thread), tx_count=tx_count,
        consumer_group=CooperativeGroup(Agent.Thread, cluster * CONSUMER_WARPS),
        barrier_storage=smem.allocate_array(cute.Int64, 2 * stages), mcast_mode_mn=(0, 1),
        cta_layout_vmnk=cute.make_layout((1, cluster, 1, 1)), tidx=tidx, defer_sync=True, name=name,
    )  # fmt: skip


@cuda.jit
def hold(shared, held, columns, tiled_mma, thread):
    """Fill registers, as A of the tiled MMA, with the first columns of a tile in shared memory."""
    atom = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), shared.element_type)
    load = cute.make_tiled_copy_A(atom, tiled_mma)
    of = cute.local_tile(shared, (TILE, columns), (0, 0))
    cute.copy(load, load.get_slice(thread).partition_S(of), load.retile(held))


@cuda.jit
def multiply_by(tiled, from_registers, acc, held, a, b):
    """Issue the multiplies of S or dP, of whose A the first blocks stand in registers, `held`, too."""
    for block in cute.range_constexpr(cute.size(b, mode=[2])):
        if cute.const_expr(block < cute.size(held, mode=[2])):
            first = from_registers.set(warpgroup.Field.ACCUMULATE, block > 0)
            cute.gemm(first, acc, held[None, None, block], b[None, None, block], acc)
        else:
            first = tiled.set(warpgroup.Field.ACCUMULATE, block > 0)
            cute.gemm(first, acc, a[None, None, block], b[None, None, block], acc)


@cuda.jit
def stream(tma, coords, shared, width, cluster, rank, head, batch):
    """Return the destination and the source of this CTA's part of tiles: (…, stage) and (…, tile)."""
    tiles = cute.local_tile(coords[None, None, head, batch], (TILE, width), (None, 0))
    return cpasync.tma_partition(
        tma, rank, cute.make_layout(cluster), cute.group_modes(shared, 0, 2), cute.group_modes(tiles, 0, 2)
    )


@cuda.jit
def put(
    total, tiled_mma, atom, shared, tma, coords, tile, head, batch, width, thread, unread, written, lengths, first, rows
):
    """Write a warpgroup's sums, 64 rows, by way of shared memory to the array that they belong in. unread: the barrier
    of all who have multiplied what lies there; written: that of the warpgroup. lengths: whether the tile is of a
    sequence, which begins at `first` and has so many `rows`."""
    out = cute.make_tiled_copy_S(atom, cute.make_tiled_copy_C_atom(atom, tiled_mma))
    to_shared = out.get_slice(thread).partition_D(shared)
    rounded = cute.make_rmem_tensor(cute.shape(to_shared), shared.element_type)
    rounded.store(total)
    unread.arrive_and_wait()
    cute.copy(out, rounded, to_shared)
    arch.fence_proxy("async.shared", space="cta")
    written.arrive_and_wait()
    if thread < 32:
        parts = cute.local_tile(shared, (TILE, 64), (0, None))
        if cute.const_expr(lengths):
            tiles = rows_at(coords, tile, first, rows, 64, head, batch)
        else:
            tiles = cute.local_tile(coords[None, None, head, batch], (TILE, 64), (None, None))
        of, to = cpasync.tma_partition(
            tma, 0, cute.make_layout(1), cute.group_modes(parts, 0, 2), cute.group_modes(tiles, 0, 2)
        )
        for part in cute.range_constexpr(width // 64):
            if cute.const_expr(lengths):
                cute.copy(tma, of[None, part], to[None, part])
            else:
                cute.copy(tma, of[None, part], to[None, tile, part])
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0, read=True)
