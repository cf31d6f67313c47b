# SPDX-License-Identifier: Apache-2.0
"""Kernels that copy by TMA in every mode, and write out what they saw in shared memory."""

from __future__ import annotations

from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.nvgpu import cpasync
from numba_cute.seam import traced


@traced
def by_tiles(tensor, tiler):
    """((tile), (tiles))"""
    n = cute.rank(tiler)
    tiles = cute.local_tile(tensor, tiler, (None,) * n)
    return cute.group_modes(cute.group_modes(tiles, 0, n), 1, n + 1)


@traced
def one_mode(tensor):
    return cute.group_modes(tensor, 0, cute.rank(tensor))


@traced
def allocated(smem, dtype, layout):
    """Shared memory of a layout, swizzled or not, as TMA takes it."""
    if isinstance(layout, cute.ComposedLayout):
        return smem.allocate_tensor(dtype, layout.outer, 1024, layout.inner, "s")
    return smem.allocate_tensor(dtype, layout, 1024, None, "s")


def dump(s, seen):
    """The bytes of a buffer as they lie, to a column of `seen`. One thread."""
    n = cute.size(seen)
    raw = cute.make_tensor(cute.recast_ptr(s.iterator, None, cute.Uint8), cute.make_layout(n))
    cute.copy(cute.make_copy_atom(cpasync.CopyBulkS2GOp(), cute.Uint8, 8 * n), raw, seen)


def from_column(column):
    @cuda.jit
    def tile_from_column(load, src, layout):
        """A tile that begins at a column of the tensor known when compiling."""
        smem = utils.SmemAllocator()
        s = smem.allocate_tensor(cute.Float32, layout, 1024, None, "s")
        bar = smem.allocate_array(cute.Int64, 1, name="bar")
        tile = cute.local_tile(cute.domain_offset((0, column), src), layout.shape, (0, 0))
        s_in, g_in = cpasync.tma_partition(load, 0, cute.make_layout(1), one_mode(s), one_mode(tile))
        if arch.elect_one():
            arch.mbarrier_init(bar, 1)
            arch.mbarrier_init_fence()
            arch.mbarrier_arrive_and_expect_tx(bar, cute.size_in_bytes(cute.Float32, layout))
        arch.sync_warp()
        cute.copy(load, g_in, s_in, tma_bar_ptr=bar)
        arch.mbarrier_wait(bar, 0)

    return tile_from_column


def to_row(row):
    @cuda.jit
    def tile_to_row(store, dst, layout):
        """A store of a tile that begins at a row of the tensor known when compiling."""
        s = utils.SmemAllocator().allocate_tensor(cute.Float32, layout, 1024, None, "s")
        tile = cute.local_tile(cute.domain_offset((row, 0), dst), layout.shape, (0, 0))
        s_out, g_out = cpasync.tma_partition(store, 0, cute.make_layout(1), one_mode(s), one_mode(tile))
        cute.copy(store, s_out, g_out)

    return tile_to_row


@cuda.jit
def there_and_back(load, src, store, dst, seen, dtype, layout):
    """Each block: a tile by TMA to shared memory, its bytes to `seen`, and by TMA to dst."""
    block = arch.block_idx()[0]
    smem = utils.SmemAllocator()
    s = allocated(smem, dtype, layout)
    bar = smem.allocate_array(cute.Int64, 1, name="bar")
    one = cute.make_layout(1)
    s_in, g_in = cpasync.tma_partition(load, 0, one, one_mode(s), by_tiles(src, layout.shape))
    s_out, g_out = cpasync.tma_partition(store, 0, one, one_mode(s), by_tiles(dst, layout.shape))
    cpasync.prefetch_descriptor(load)
    if arch.elect_one():
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        arch.mbarrier_arrive_and_expect_tx(bar, cute.size_in_bytes(dtype, layout))
    arch.sync_warp()
    cute.prefetch(load, g_in[None, block])
    cute.copy(load, g_in[None, block], s_in[None], tma_bar_ptr=bar)
    arch.mbarrier_wait(bar, 0)
    cute.copy(store, s_out[None], g_out[None, block])
    if arch.elect_one():
        dump(s, seen[None, block])
    arch.cp_async_bulk_commit_group()
    arch.cp_async_bulk_wait_group(0)


@cuda.jit
def shared_among_blocks(load, src, seen, dtype, layout, blocks):
    """The blocks of a cluster load the parts of one tile for each other."""
    rank = arch.block_idx_in_cluster()
    smem = utils.SmemAllocator()
    s = allocated(smem, dtype, layout)
    bar = smem.allocate_array(cute.Int64, 1, name="bar")
    to, source = cpasync.tma_partition(load, rank, blocks, one_mode(s), by_tiles(src, layout.shape))
    if arch.elect_one():
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        arch.mbarrier_arrive_and_expect_tx(bar, cute.size_in_bytes(dtype, layout))
    arch.cluster_arrive()
    arch.cluster_wait()
    mask = cpasync.create_tma_multicast_mask(cute.make_layout((1, 1, cute.size(blocks), 1)), (0, 0, rank, 0), 2)
    cute.copy(load, source[None, 0], to[None], tma_bar_ptr=bar, mcast_mask=mask)
    arch.mbarrier_wait(bar, 0)
    if arch.elect_one():
        dump(s, seen[None, rank])
    arch.cp_async_bulk_commit_group()
    arch.cp_async_bulk_wait_group(0)
    arch.cluster_arrive()
    arch.cluster_wait()


@cuda.jit
def combined(load, src, reduce, dst, dtype, layout, policy):
    """dst combined with src, by a TMA load and a TMA reduction."""
    smem = utils.SmemAllocator()
    s = allocated(smem, dtype, layout)
    bar = smem.allocate_array(cute.Int64, 1, name="bar")
    one = cute.make_layout(1)
    block = arch.block_idx()[0]
    s_in, g_in = cpasync.tma_partition(load, 0, one, one_mode(s), by_tiles(src, layout.shape))
    s_out, g_out = cpasync.tma_partition(reduce, 0, one, one_mode(s), by_tiles(dst, layout.shape))
    if arch.elect_one():
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        arch.mbarrier_arrive_and_expect_tx(bar, cute.size_in_bytes(dtype, layout))
    arch.sync_warp()
    hint = cute.Int64(policy)
    cute.copy(load, g_in[None, block], s_in[None], tma_bar_ptr=bar, cache_policy=hint)
    arch.mbarrier_wait(bar, 0)
    cute.copy(reduce, s_out[None], g_out[None, block], cache_policy=hint)
    arch.cp_async_bulk_commit_group()
    arch.cp_async_bulk_wait_group(0)
