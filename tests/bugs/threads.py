# SPDX-License-Identifier: Apache-2.0
"""Bugs in plain Numba: shared and local arrays, atomics, shuffles, barriers in branches, blocks and grids."""

import numba
import numpy as np
from numba import cuda

from numba_cute.isa.rows import sync
from numba_cute.sim import (
    BarrierError,
    DeadlockError,
    DivergenceError,
    OutOfBoundsError,
    RaceError,
    SimError,
    UninitializedReadError,
)
from numba_cute.sim.checks.races import Races
from numba_cute.sim.checks.uninitialised import Uninitialised

from .barriers import ints
from .zoo import BUF, bug, get, put


@bug(OutOfBoundsError, "index 64 of an array of shape (64,)", "tile[t + 1]", check=Races, arguments=ints(64))
def shared_index_one_beyond(mended):
    def kernel(a, out):
        tile = cuda.shared.array(64, numba.int32)
        t = cuda.threadIdx.x
        tile[t] = a[t]
        cuda.syncthreads()
        if not mended or t < 63:
            out[t] = tile[t + 1]

    return kernel


@bug(OutOfBoundsError, "index 4 of", "local array", "mine[i] = i", check=Uninitialised, threads=32, arguments=ints(32))
def local_index_one_beyond(mended):
    def kernel(a, out):
        mine = cuda.local.array(4, numba.int32)
        for i in range(4 if mended else 5):
            mine[i] = i
        out[cuda.threadIdx.x] = mine[3]

    return kernel


@bug(UninitializedReadError, "local array", "nobody|never", "+= a[t]", threads=32, arguments=ints(32))
def local_array_that_is_never_cleared(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        mine = cuda.local.array(4, numba.int32)
        if mended:
            mine[1] = 0
        mine[1] += a[t]
        out[t] = mine[1]

    return kernel


@bug(UninitializedReadError, "cuda.shared.array", "nobody has written it", arguments=ints(64))
def histogram_that_is_never_cleared(mended):
    def kernel(a, out):
        bins = cuda.shared.array(8, numba.int32)
        t = cuda.threadIdx.x
        if mended and t < 8:
            bins[t] = 0
        cuda.syncthreads()
        cuda.atomic.add(bins, a[t] % 8, 1)
        cuda.syncthreads()
        if t < 8:
            out[t] = bins[t]

    return kernel


@bug(RaceError, "updated it atomically|is written by|is read by", "bins", arguments=ints(64))
def histogram_read_without_a_barrier(mended):
    def kernel(a, out):
        bins = cuda.shared.array(8, numba.int32)
        t = cuda.threadIdx.x
        if t < 8:
            bins[t] = 0
        cuda.syncthreads()
        cuda.atomic.add(bins, a[t] % 8, 1)
        if mended:
            cuda.syncthreads()
        if t < 8:
            out[t] = bins[t]

    return kernel


@bug(RaceError, "bins", "is written by|wrote it", arguments=ints(64))
def histogram_with_a_plain_add(mended):
    def kernel(a, out):
        bins = cuda.shared.array(8, numba.int32)
        t = cuda.threadIdx.x
        if t < 8:
            bins[t] = 0
        cuda.syncthreads()
        if mended:
            cuda.atomic.add(bins, a[t] % 8, 1)
        else:
            bins[a[t] % 8] += 1
        cuda.syncthreads()
        if t < 8:
            out[t] = bins[t]

    return kernel


@bug(RaceError, "tile", "cuda.syncthreads()", arguments=ints(64))
def reduction_tree_without_a_barrier_in_its_loop(mended):
    def kernel(a, out):
        tile = cuda.shared.array(64, numba.int32)
        t = cuda.threadIdx.x
        tile[t] = a[t]
        cuda.syncthreads()
        step = 32
        while step:
            if t < step:
                tile[t] += tile[t + step]
            if mended:
                cuda.syncthreads()
            step //= 2
        if t == 0:
            out[0] = tile[0]

    return kernel


@bug(RaceError, "tile", "cuda.syncwarp()", threads=32, arguments=ints(32))
def warp_synchronous_reduction_without_syncwarp(mended):
    def kernel(a, out):
        tile = cuda.shared.array(32, numba.int32)
        t = cuda.threadIdx.x
        tile[t] = a[t]
        cuda.syncwarp()
        for i in range(4):
            step = 16 >> i
            if t < step:
                tile[t] += tile[t + step]
            if mended:
                cuda.syncwarp()
        if t == 0:
            out[0] = tile[0]

    return kernel


@bug(RaceError, "tile", "is read by|read it", arguments=ints(64))
def transposed_tile_without_a_barrier(mended):
    def kernel(a, out):
        tile = cuda.shared.array((8, 9), numba.int32)
        x, y = cuda.threadIdx.x % 8, cuda.threadIdx.x // 8
        tile[y, x] = a[cuda.threadIdx.x]
        if mended:
            cuda.syncthreads()
        out[cuda.threadIdx.x] = tile[x, y]

    return kernel


@bug(RaceError, "flag", "is written by|wrote it", arguments=ints(64))
def broadcast_through_shared_memory_without_a_barrier(mended):
    def kernel(a, out):
        flag = cuda.shared.array(1, numba.int32)
        t = cuda.threadIdx.x
        if t == 0:
            flag[0] = a[5]
        if mended:
            cuda.syncthreads()
        out[t] = flag[0]

    return kernel


@bug(SimError, "syncthreads", "warp", check=Races, arguments=ints(64))
def syncthreads_in_a_branch_of_a_warp(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        if mended or t % 2:
            cuda.syncthreads()
        else:
            out[t] = 1
            cuda.syncthreads()

    return kernel


@bug(DeadlockError, "syncthreads", "32 of 64 threads have arrived", arguments=ints(64))
def syncthreads_against_a_named_barrier(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        if t < 32 or mended:
            cuda.syncthreads()
        else:
            sync.bar_sync(1, 64)

    return kernel


@bug(DeadlockError, "syncthreads", "of 64 threads have arrived", arguments=ints(64))
def loop_with_syncthreads_that_warps_leave_at_different_times(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        for _ in range(3 if mended or t < 32 else 2):
            cuda.syncthreads()
        if t >= 32:
            sync.bar_sync(1, 64)
        else:
            sync.bar_arrive(1, 64)

    return kernel


@bug(BarrierError, "named barrier 0", "syncthreads|all", check=Races, arguments=ints(96), threads=96)
def named_barrier_0_beside_syncthreads(mended):
    def kernel(a, out):
        if cuda.threadIdx.x < 64:
            sync.bar_sync(1 if mended else 0, 64)
        cuda.syncthreads()

    return kernel


# ---------------------------------------------------------------- warps


@bug(DivergenceError, "shfl_sync", "not in its own mask 0xffff", threads=32, arguments=ints(32))
def shuffle_by_a_lane_outside_its_mask(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        out[t] = cuda.shfl_sync(0xFFFFFFFF if mended else 0xFFFF, a[t], 0)

    return kernel


@bug(DeadlockError, "shfl_xor_sync", "lanes 16-31", "exited", threads=32, arguments=ints(32))
def shuffle_that_names_lanes_that_have_left(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        if t >= 16:
            return
        out[t] = cuda.shfl_xor_sync(0xFFFF if mended else 0xFFFFFFFF, a[t], 1)

    return kernel


@bug(SimError, "shfl_xor_sync", "mask", threads=32, arguments=ints(32))
def shuffle_in_a_branch_with_the_whole_mask(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        if t < 16:
            out[t] = cuda.shfl_xor_sync(0xFFFF if mended else 0xFFFFFFFF, a[t], 1)
        else:
            out[t] = cuda.shfl_xor_sync(0xFFFF0000, a[t], 1)

    return kernel


@bug(DivergenceError, "shfl_sync", "lane 20", "not in", check=Races, threads=32, arguments=ints(32))
def shuffle_from_a_lane_outside_the_mask(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        if t < 16:
            out[t] = cuda.shfl_sync(0xFFFF, a[t], 2 if mended else 20)

    return kernel


@bug(
    DivergenceError,
    "shfl_down_sync",
    "not in",
    check=Races,
    threads=32,
    arguments=lambda: (np.ones(32, np.float32), np.zeros(1)),
)
def warp_sum_that_takes_lanes_outside_its_mask(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        if t < 16:
            x = a[t]
            for step in (8, 4, 2, 1) if mended else (16, 8, 4, 2, 1):
                x += cuda.shfl_down_sync(0xFFFF, x, step)
            if t == 0:
                out[0] = x

    return kernel


@bug(SimError, "ballot_sync", threads=32, arguments=ints(32))
def vote_after_some_lanes_have_returned(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        mask = cuda.ballot_sync(0xFFFFFFFF, t < 20)
        if t < 20:
            out[t] = cuda.ballot_sync(mask if mended else 0xFFFFFFFF, a[t] > 3)

    return kernel


@bug(DeadlockError, "syncwarp", threads=32, arguments=ints(32))
def syncwarp_that_half_the_warp_skips(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        put(BUF + 4 * t, t)
        if t < 16 or mended:
            cuda.syncwarp()
        out[t] = get(BUF + 4 * t)

    return kernel


@bug(DeadlockError, "elect_sync", "lanes 16-31 of warp 0", threads=32, arguments=ints(32))
def elect_in_a_branch(mended):
    def kernel(a, out):
        if mended or cuda.threadIdx.x < 16:
            if sync.elect_sync():
                out[0] = 1

    return kernel


# ---------------------------------------------------------------- blocks and grids


@bug(RaceError, "global memory out", "nothing orders blocks", blocks=2, arguments=ints(65))
def neighbouring_blocks_write_one_element(mended):
    def kernel(a, out):
        t, b = cuda.threadIdx.x, cuda.blockIdx.x
        if t < (32 if mended else 33):  # one too many
            out[32 * b + t] = b

    return kernel


@bug(RaceError, "global memory a", "nothing orders blocks", blocks=2, threads=32, arguments=ints(64))
def stencil_in_place_over_two_blocks(mended):
    def kernel(a, out):
        i = cuda.grid(1)
        x = a[i] + (a[i + 1] if i < 63 else 0)
        cuda.syncthreads()
        if mended:
            out[i] = x
        else:
            a[i] = x

    return kernel


@bug(RaceError, "global memory a", "put a barrier between them", arguments=ints(64))
def stencil_in_place_in_one_block(mended):
    def kernel(a, out):
        t = cuda.threadIdx.x
        x = a[t] + (a[t + 1] if t < 63 else 0)
        if mended:
            cuda.syncthreads()
        a[t] = x

    return kernel


@bug(DeadlockError, "grid", "ended without", blocks=2, arguments=ints(64))
def grid_sync_that_one_block_skips(mended):
    def kernel(a, out):
        if mended or cuda.blockIdx.x == 0:
            cuda.cg.this_grid().sync()

    return kernel


@bug(DeadlockError, "warp 1 (32 threads)", "ended without the sync of the grid", blocks=2, arguments=ints(64))
def grid_sync_that_one_warp_skips(mended):
    def kernel(a, out):
        if mended or cuda.threadIdx.x < 32:
            cuda.cg.this_grid().sync()

    return kernel


@bug(RaceError, "global memory out", "nothing orders blocks", blocks=2, arguments=ints(128))
def other_blocks_result_without_a_grid_sync(mended):
    def kernel(a, out):
        i = cuda.grid(1)
        out[i] = a[i]
        if mended:
            cuda.cg.this_grid().sync()
        a[i] = out[127 - i]

    return kernel


@bug(DeadlockError, "again and again", "atomic", threads=64, arguments=ints(1))
def lock_that_is_never_released(mended):
    def kernel(lock, out):
        if cuda.threadIdx.x % 32 == 0:
            while cuda.atomic.cas(lock, 0, 0, 1) != 0:
                pass
            cuda.threadfence()
            out[0] += 1
            cuda.threadfence()
            if mended:
                cuda.atomic.exch(lock, 0, 0)

    return kernel


@bug(RaceError, "global memory out", threads=64, arguments=ints(1))
def lock_without_fences(mended):
    def kernel(lock, out):
        if cuda.threadIdx.x % 32 == 0:
            while cuda.atomic.cas(lock, 0, 0, 1) != 0:
                pass
            if mended:
                cuda.threadfence()
            out[0] += 1
            if mended:
                cuda.threadfence()
            cuda.atomic.exch(lock, 0, 0)

    return kernel


@bug(RaceError, "global memory a", blocks=2, threads=32, arguments=ints(64))
def flag_raised_before_the_data_is_published(mended):
    def kernel(a, out):
        t, b = cuda.threadIdx.x, cuda.blockIdx.x
        if b == 0 and t == 0:
            a[5] = 7
            if mended:
                cuda.threadfence()
            cuda.atomic.add(out, 0, 1)
        if b == 1 and t == 0:
            while cuda.atomic.add(out, 0, 0) == 0:
                pass
            cuda.threadfence()
            out[1] = a[5]

    return kernel
