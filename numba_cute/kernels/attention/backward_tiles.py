# SPDX-License-Identifier: Apache-2.0
"""Parts that attention's backward kernels share: their tiles in shared memory, a number of each query, and
multiplies."""

import math

from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.nvgpu import cpasync, warpgroup

from .masks import before, lowest


def rows_of(dtype, rows, columns, *stages):
    """Shared memory for rows of `columns` elements, as wgmma and TMA take them."""
    atom = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, dtype)
    return cute.tile_to_shape(atom, (rows, columns, *stages), (0, 1, 2)[: 2 + len(stages)])


def turned(t):
    """A tensor with its first two modes exchanged."""
    return cute.make_tensor(t.iterator, cute.select(t.layout, [1, 0, *range(2, cute.rank(t))]))


def statistics(sums, stage, place, queries):
    """Return this thread's part of a stage of one number a query: (2, 1, queries / 8), its columns of S^T."""
    held = cute.make_rmem_tensor((2, 1, queries // 8), cute.Float32)
    mine = cute.make_tensor(
        sums.iterator + cute.assume(stage * queries + 2 * place, divby=2),
        cute.make_layout((2, 1, queries // 8), stride=(1, 0, 8)),
    )
    cute.autovec_copy(mine, held)
    return held


def multiply(tiled_mma, acc, a, b, adds):
    """Issue the multiplies of a tile, block by block of K. adds: whether to what is in `acc`, which may be known only
    when it runs."""
    for block in range(cute.size(b, mode=[2])):
        first = tiled_mma.set(warpgroup.Field.ACCUMULATE, True if block else adds)
        cute.gemm(first, acc, a[None, None, block], b[None, None, block], acc)


@cuda.jit
def publish(barrier):
    """Tell who waits at `barrier` that this warp has written its part of shared memory, for TMA and wgmma to read."""
    arch.fence_proxy("async.shared", space="cta")
    arch.sync_warp()
    if arch.elect_one():
        arch.mbarrier_arrive(barrier)


@cuda.jit
def release(barrier):
    """Tell who fills what `barrier` is of that this warp has done with it."""
    if arch.elect_one():
        arch.mbarrier_arrive(barrier)


@cuda.jit
def leave_out(rS, last, queries):
    """Mask the keys of this thread's two rows of S^T that its columns, two of each 8 of so many `queries`, do not see.
    last: of the keys that the first column sees, seen from the first row. queries: known when it is compiled."""
    columns = queries // 4
    for first in cute.range_constexpr(0, columns + 2, 32):
        # a bit for each column that the second row does not see; the first, 8 keys before, does not see two fewer
        hidden = lowest(before(-last) + 2 - first)
        for column in cute.range_constexpr(first, min(first + 32, columns + 2)):
            if hidden & (1 << (column - first)) != 0:
                if cute.const_expr(column < columns):
                    rS[column // 2 * 4 + 2 + column % 2] = -math.inf
                if cute.const_expr(column >= 2):
                    rS[column // 2 * 4 - 4 + column % 2] = -math.inf


@cuda.jit
def leave_out_beyond(rS, there, queries):
    """Mask the keys of this thread's two rows of S^T that there are not. there: how many, from the first row on."""
    for i in cute.range_constexpr(queries // 2):
        if 8 * (i // 2 % 2) >= there:
            rS[i] = -math.inf


@cuda.jit
def load_tile(tma, coords, shared, shape, tile, head, batch, barrier):
    """Load a tile of `shape`, rows and columns, to shared memory. coords: (rows, columns, heads, batches)."""
    tiles = cute.local_tile(coords[None, None, head, batch], shape, (None, 0))
    to, of = cpasync.tma_partition(
        tma, 0, cute.make_layout(1), cute.group_modes(shared, 0, 2), cute.group_modes(tiles, 0, 2)
    )
    cute.copy(tma, of[None, tile], to, tma_bar_ptr=barrier)


@cuda.jit
def load_numbers(numbers, place, to, barrier, queries):
    """Load a Float32 of each of so many queries, from `place` on, to shared memory. One thread."""
    atom = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.Float32, 32 * queries)
    cute.copy(
        atom, cute.make_tensor(numbers.iterator + place, cute.make_layout(queries)), to, tma_bar_ptr=barrier
    )  # fmt: skip
