# SPDX-License-Identifier: Apache-2.0
"""A grouped GEMM for Hopper that sums over the rows of groups: C[g] = X[rows of g].T @ Y[rows of g], the gradient of
the matrices of a grouped GEMM.

X (rows, M) and Y (rows, N) lie as they are, contiguous along M and N, which wgmma takes of 16 bits. Where a group ends
stands on the device. Its last stage has as many rows as are left: the tensor maps have two modes for rows, of which one
ends after a stage's, so that TMA fills with zeros what would be the next group's (`outer.py`). A group without rows
gives zeros. `warps_grouped.py` has the kernel for mma.sync, `umma_outer.py` Blackwell's.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import cpasync, warp, warpgroup

from .. import entry
from . import multiply
from .cuts import Umma, Warps
from .operands import (
    CONSUMER_REGISTERS,
    CONSUMER_WARPS,
    PRODUCER_REGISTERS,
    THREADS,
    check_rows,
    load_atom,
    mapped,
    most_clusters,
    padded,
    tensor_of,
)  # fmt: skip
from .outer import DEPTH, ragged, tile_of
from .output import ROWS as STORE_ROWS, Stores, of_warpgroup, partition
from .plan import mma_op, smem_layout

if TYPE_CHECKING:
    import torch

TILE_M, STORE_N = 128, 64  # rows of a tile of C, and columns of a piece of it
STAGES = 4


@cuda.jit(launch_bounds=(THREADS, 1))
def outer(dtype, tma_x, mX, tma_y, mY, tma_c, mC, ends, tiles_m, tiles_n, tiles, tiled_mma, store, layouts):
    x_layout, y_layout, c_layout = layouts
    tile_n = cute.size(y_layout, mode=[0])
    tidx, _, _ = arch.thread_idx()
    block, _, _ = arch.block_idx()
    blocks, _, _ = arch.grid_dim()
    warp_idx = arch.make_warp_uniform(arch.warp_idx())
    if warp_idx == 0:
        cpasync.prefetch_descriptor(tma_x)
        cpasync.prefetch_descriptor(tma_y)
        cpasync.prefetch_descriptor(tma_c)
    arch.griddepcontrol_launch_dependents()
    arch.griddepcontrol_wait()  # what was launched before has written X, Y and the ends
    smem = utils.SmemAllocator()
    sX = smem.allocate_tensor(dtype, x_layout.outer, 1024, x_layout.inner, "sX")
    sY = smem.allocate_tensor(dtype, y_layout.outer, 1024, y_layout.inner, "sY")
    sC = smem.allocate_tensor(dtype, c_layout.outer, 1024, c_layout.inner, "sC")
    mainloop = pipeline.PipelineTmaAsync.create(
        num_stages=STAGES,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, CONSUMER_WARPS),
        tx_count=(TILE_M + tile_n) * DEPTH * dtype.width // 8,
        barrier_storage=smem.allocate_array(cute.Int64, 2 * STAGES, name="barriers"),
        tidx=tidx,
        name="mainloop",
    )
    producer, consumer = mainloop.make_participants()
    group_ends = cute.make_tensor(ends)

    if warp_idx < 4:
        arch.setmaxregister_decrease(PRODUCER_REGISTERS)
        if warp_idx == 0:
            for index in cute.range(block, tiles, blocks, unroll=1):
                _, begin, end, m, n = tile_of(index, group_ends, tiles_m, tiles_n)
                for row in cute.range(begin, end, DEPTH, unroll=1):
                    left = cute.min(cute.Int32(end - row), cute.Int32(DEPTH))
                    there = (0, DEPTH - left, row + left)
                    gX = cute.local_tile(cute.domain_offset(there, mX), (TILE_M, DEPTH), (m, None, 0))
                    gY = cute.local_tile(cute.domain_offset(there, mY), (tile_n, DEPTH), (n, None, 0))
                    tXsX, tXgX = partition(tma_x, sX, gX)
                    tYsY, tYgY = partition(tma_y, sY, gY)
                    stage = producer.acquire_and_advance()
                    cute.copy(tma_x, tXgX[None, 0], tXsX[None, stage.index], tma_bar_ptr=stage.barrier)
                    cute.copy(tma_y, tYgY[None, 0], tYsY[None, stage.index], tma_bar_ptr=stage.barrier)
                    stage.commit()
            producer.tail()
    else:
        arch.setmaxregister_increase(CONSUMER_REGISTERS)
        half = cute.Int32((warp_idx - 4) // 4)  # which warpgroup: rows 64 * half of the tile
        mma = tiled_mma.get_slice(cute.Int32(half * 128))
        tCrX = tiled_mma.make_fragment_A(mma.partition_A(sX))
        tCrY = tiled_mma.make_fragment_B(mma.partition_B(sY))
        acc = tiled_mma.make_fragment_C(tiled_mma.partition_shape_C((TILE_M, tile_n)))
        pieces = tile_n // STORE_N
        sums = cute.make_tensor(acc.iterator, cute.make_layout((64 * STORE_N // 128, pieces)))
        sC_half = of_warpgroup(sC, half)
        stores = Stores.create(store, tiled_mma, sC, cute.Int32(tidx - 128), half, warp_idx % 4 == 0)
        for index in cute.range(block, tiles, blocks, unroll=1):
            group, begin, end, m, n = tile_of(index, group_ends, tiles_m, tiles_n)
            if end > begin:
                multiply.plainly(consumer, tiled_mma, acc, tCrX, tCrY, cute.Int32((end - begin + DEPTH - 1) // DEPTH))
            else:
                acc.fill(0.0)
            gC = cute.local_tile(mC[None, None, group], (STORE_ROWS, STORE_N), (2 * m + half, None))
            tCsC, tCgC = partition(tma_c, sC_half, gC)
            for piece in cute.range_constexpr(pieces):
                stores.put(sums[None, piece].load(), piece, tma_c, tCsC[None, piece], tCgC[None, pieces * n + piece])
        stores.tail()


def plan(x: Any, y: Any, ends: Any, c: Any, cut: Any = None) -> Any:
    """Plan the launch for x (rows, M), y (rows, N), ends (groups,), and c (groups, M, N). cut: a Warps, for mma.sync,
    an Umma, for tcgen05, or None."""
    groups, m, n = c.shape
    if 0 in (groups, m, n):
        return lambda *tensors: None
    if not x.shape[0]:
        return lambda x, y, ends, c: c.zero_()
    family = entry.check_target("grouped_gemm", x, entry.WARPGROUPS, entry.WARPS, entry.TENSOR_MEMORY)
    if family == entry.WARPS or isinstance(cut, Warps):
        from . import warps_grouped

        return warps_grouped.plan_outer(x, y, ends, c, cut)
    check_rows("grouped_gemm", a=x, gradient=y, result=c)
    if family == entry.TENSOR_MEMORY or isinstance(cut, Umma):
        from . import umma_outer

        return umma_outer.plan(x, y, ends, c, cut)
    tile_n = 192 if n > 128 else 128
    tiles_m, tiles_n = math.ceil(m / TILE_M), math.ceil(n / tile_n)
    tiles = tiles_m * tiles_n * groups

    def arguments(x: Any, y: Any, ends: Any, c: Any) -> Any:
        dtype, by_m = entry.element_type(x), warpgroup.OperandMajorMode.MN
        tiled_mma = cute.make_tiled_mma(mma_op(dtype, tile_n, by_m, by_m), (TILE_M // 64, 1, 1))
        x_layout, y_layout = (smem_layout(dtype, 0, rows, DEPTH, STAGES) for rows in (TILE_M, tile_n))
        c_layout = smem_layout(dtype, 1, TILE_M, STORE_N, tile_n // STORE_N)  # a slot for each piece
        tC = tensor_of(c, 2)
        tma_c, mC = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileS2GOp(), cute.make_tensor(tC.iterator, cute.select(tC.layout, mode=[1, 2, 0])),
            smem_layout(dtype, 1, STORE_ROWS, STORE_N), (STORE_ROWS, STORE_N),
        )  # fmt: skip
        return (
            dtype, *load_atom(ragged(x), x_layout, (TILE_M, DEPTH)), *load_atom(ragged(y), y_layout, (tile_n, DEPTH)),
            tma_c, mC, ends, *map(cute.Int32, (tiles_m, tiles_n, tiles)), tiled_mma,
            cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), dtype), (x_layout, y_layout, c_layout),
        )  # fmt: skip

    return mapped(outer, (min(tiles, most_clusters(x, 1)), 1, 1), (1, 1, 1), (x, y, ends, c), arguments)


def _result(x: torch.Tensor, y: torch.Tensor, ends: torch.Tensor) -> Any:
    return padded((ends.shape[0], x.shape[1], y.shape[1]), x)


OUTER = entry.Operator("numba_cute::grouped_outer_backward", plan, _result)
