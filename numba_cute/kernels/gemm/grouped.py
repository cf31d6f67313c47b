# SPDX-License-Identifier: Apache-2.0
"""A grouped GEMM: rows sorted by group, each group with a matrix of its own, as mixtures of experts need.

C[r] = A[r] @ B[g].T for the rows r of group g, with A (rows, K), B (groups, N, K) and C (rows, N). Where the groups
end stands on the device, and a group may have any number of rows: nothing is padded. A tile loads whatever rows follow
its group's last one, and does not store them: C's tensor map has two modes for rows, of which one ends after 64 rows.
A store whose box begins at row 64 - n of that mode writes the n rows that are left (`ragged_rows`).

The kernel is Hopper's; `warps_grouped.py` has the one for mma.sync, `umma_grouped.py` Blackwell's. Warps, stages and
tiles are like those of `dense`; the schedule (`groups.py`) and the two ends of the rows differ.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import cpasync, warp, warpgroup
from numba_cute.seam import CuteError

from .. import entry, tuning
from . import multiply, umma_grouped, warps_grouped
from .grouped_outer import OUTER, padded
from .groups import GroupedTiles, hear, ragged_rows, tell
from .operands import (
    CONSUMER_REGISTERS,
    CONSUMER_WARPS,
    PRODUCER_REGISTERS,
    THREADS,
    check_rows,
    load_atom,
    mapped,
    most_clusters,
    tensor_of,
)  # fmt: skip
from .output import ROWS as STORE_ROWS, Stores, of_warpgroup, partition
from .plan import mma_op, smem_layout
from .umma_plan import Umma
from .warps_plan import Warps

if TYPE_CHECKING:
    import torch

TILE_M, ROW = 128, 128  # ROW bytes along K, or of a piece of the output: one swizzle
STAGES, STORE_STAGES, PLACES = 4, 2, 2
KINDS = ("bfloat16", "float16", "float8_e4m3fn", "float8_e5m2")


@cuda.jit(launch_bounds=(THREADS, 1))
def grouped(
    dtype, c_dtype, tma_a, mA, tma_b, mB, tma_c, mC, ends, columns, tiled_mma, store, a_layout, b_layout, c_layout,
    cluster, share_a, share_b, scales_a, scales_b, counter,
):  # fmt: skip
    tile_n = cute.size(b_layout, mode=[0])
    _, cluster_m, cluster_n, _ = cluster.shape
    ctas = cute.size(cluster)
    tidx, _, _ = arch.thread_idx()
    block, _, _ = arch.block_idx()
    blocks, _, _ = arch.grid_dim()
    warp_idx = arch.make_warp_uniform(arch.warp_idx())
    rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
    rank_m, rank_n = rank % cluster_m, rank // cluster_m
    if warp_idx == 0:
        cpasync.prefetch_descriptor(tma_a)
        cpasync.prefetch_descriptor(tma_b)
        cpasync.prefetch_descriptor(tma_c)

    arch.griddepcontrol_launch_dependents()
    arch.griddepcontrol_wait()  # what was launched before has written A, B and the ends
    tiles = GroupedTiles(
        cute.make_tensor(ends), cluster_m * TILE_M, columns, block // ctas, blocks // ctas,
        counter=None if cute.const_expr(counter is None) else cute.make_tensor(counter),
    )  # fmt: skip
    if warp_idx == 1:
        tiles.spread()  # the ends come while the barriers are made

    smem = utils.SmemAllocator()
    sA = smem.allocate_tensor(dtype, a_layout.outer, 1024, a_layout.inner, "sA")
    sB = smem.allocate_tensor(dtype, b_layout.outer, 1024, b_layout.inner, "sB")
    sC = smem.allocate_tensor(c_dtype, c_layout.outer, 1024, c_layout.inner, "sC")
    barriers = smem.allocate_array(cute.Int64, 2 * STAGES, name="barriers")
    mainloop = pipeline.PipelineTmaAsync.create(
        num_stages=STAGES,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, ctas * CONSUMER_WARPS),
        tx_count=(TILE_M + tile_n) * ROW,
        barrier_storage=barriers,
        cta_layout_vmnk=cluster,
        tidx=tidx,
        name="mainloop",
    )
    producer, consumer = mainloop.make_participants()
    # Of each tile a warp finds the place, and tells the others: the group, its end, the tile's first row and column.
    places = smem.allocate_tensor(cute.Int32, cute.make_layout((4, PLACES)), 16, name="places")
    tells = pipeline.PipelineAsync.create(
        num_stages=PLACES,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Warp),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Warp, CONSUMER_WARPS + 1),
        barrier_storage=smem.allocate_array(cute.Int64, 2 * PLACES, name="tells"),
        name="places",
    )
    teller, told = tells.make_participants()
    tile_k = 8 * ROW // dtype.width

    if warp_idx < 4:
        arch.setmaxregister_decrease(PRODUCER_REGISTERS)
        if warp_idx == 0:
            gB = cute.local_tile(mB, (tile_n, tile_k), (None, None, None))
            tBsB, tBgB = partition(tma_b, sB, gB, rank_m, cluster_m)
            while True:
                group, _, row, n = hear(told, places)
                if group < 0:
                    break
                gA = cute.local_tile(cute.domain_offset((row, 0), mA), (TILE_M, tile_k), (0, None))
                tAsA, tAgA = partition(tma_a, sA, gA, rank_n, cluster_n)
                for k in range(tBgB.shape[2]):
                    stage = producer.acquire_and_advance()
                    cute.copy(
                        tma_a, tAgA[None, k], tAsA[None, stage.index], tma_bar_ptr=stage.barrier, mcast_mask=share_a
                    )
                    cute.copy(
                        tma_b, tBgB[None, n, k, group], tBsB[None, stage.index],
                        tma_bar_ptr=stage.barrier, mcast_mask=share_b,
                    )  # fmt: skip
                    stage.commit()
            producer.tail()
        elif warp_idx == 1:
            while tiles.find():
                row = tiles.begin + (tiles.m * cluster_m + rank_m) * TILE_M
                tell(teller, places, tiles.group, tiles.end, row, tiles.n * cluster_n + rank_n)
                tiles.advance()
            tell(teller, places, -1, 0, 0, 0)
            teller.tail()
    else:
        arch.setmaxregister_increase(CONSUMER_REGISTERS)
        group = cute.Int32((warp_idx - 4) // 4)  # which consumer warpgroup: rows 64 * group of the tile
        mma = tiled_mma.get_slice(cute.Int32(group * 128))
        tCrA = tiled_mma.make_fragment_A(mma.partition_A(sA))
        tCrB = tiled_mma.make_fragment_B(mma.partition_B(sB))
        acc = tiled_mma.make_fragment_C(tiled_mma.partition_shape_C((TILE_M, tile_n)))
        k_tiles = cute.ceil_div(mB.shape[1], tile_k)

        # How the accumulators leave, in pieces of 64 x ROW bytes: registers -> shared memory -> (TMA) -> C
        store_n = 8 * ROW // c_dtype.width
        stores_of_tile = tile_n // store_n
        sums = cute.make_tensor(acc.iterator, cute.make_layout((64 * store_n // 128, stores_of_tile)))
        sC_group = of_warpgroup(sC, group)
        stores = Stores.create(store, tiled_mma, sC, cute.Int32(tidx - 128), group, warp_idx % 4 == 0)

        while True:
            expert, end, row, n = hear(told, places)
            if expert < 0:
                break
            row += group * STORE_ROWS
            left = cute.max(cute.Int32(0), cute.min(cute.Int32(STORE_ROWS), cute.Int32(end - row)))
            if left > 0:
                if cute.const_expr(scales_a is None):
                    multiply.plainly(consumer, tiled_mma, acc, tCrA, tCrB, k_tiles)
                else:
                    own_row = cute.Int32(row + warp_idx % 4 * 16 + arch.lane_idx() // 4)
                    n_block = cute.Int32(n * (tile_n // multiply.BLOCK))
                    multiply.scaled(
                        consumer, tiled_mma, acc, tCrA, tCrB, k_tiles, cute.make_tensor(scales_a), own_row,
                        cute.make_tensor(scales_b), expert, n_block,
                    )  # fmt: skip
                gC = cute.local_tile(
                    cute.domain_offset((STORE_ROWS - left, 0, row + left), mC), (STORE_ROWS, store_n), (0, None, 0)
                )
                tCsC, tCgC = partition(tma_c, sC_group, gC)
                for piece in cute.range_constexpr(stores_of_tile):
                    slot = piece % STORE_STAGES
                    there = tCgC[None, stores_of_tile * n + piece]
                    stores.put(sums[None, piece].load(), slot, tma_c, tCsC[None, slot], there)
            else:  # these rows are another group's
                multiply.nothing(consumer, k_tiles)
        stores.tail()


class Cut(NamedTuple):
    """How the tiles of a problem are cut. tile_n: columns of a CTA's. cluster: CTAs of a cluster along M and N. draws:
    whether CTAs draw tiles where groups end in half tiles; single ones."""

    tile_n: int = 256
    cluster: tuple[int, int] = (2, 1)
    draws: bool = False


def cut_of(rows, groups, n):
    """Choose the cut for so many rows in so many groups, and N columns."""
    known = tuning.numbers("grouped_gemm")
    if n <= known.narrow:
        return Cut(128, (1, 1), True)
    return Cut(256, (2, 1)) if rows >= known.shared_rows * groups else Cut(256, (1, 1), True)


def plan(a, b, ends, c, scales_a=None, scales_b=None, cut=None):
    """Plan the launch for tensors as `grouped_gemm` and `blockscaled_gemm` take them. cut: a Cut, of `grouped_gemm` a
    Warps or an Umma too, or None for the one that is thought best for the GPU."""
    (rows, _), (groups, n, _) = a.shape, b.shape
    if 0 in (rows, groups, n):
        return lambda *tensors: None
    what = "grouped_gemm" if scales_a is None else "blockscaled_gemm"
    families = (entry.WARPGROUPS, entry.WARPS, entry.TENSOR_MEMORY) if scales_a is None else (entry.WARPGROUPS,)
    family = entry.check_target(what, a, *families)
    if family == entry.WARPS or isinstance(cut, Warps):
        return warps_grouped.plan(a, b, ends, c, cut)
    check_rows(what, a=a, b=b, out=c)
    if family == entry.TENSOR_MEMORY or isinstance(cut, Umma):
        return umma_grouped.plan(a, b, ends, c, cut)
    cut = cut or cut_of(rows, groups, n)
    tile_n, (cluster_m, cluster_n), draws = cut
    ctas = cluster_m * cluster_n
    if tile_n not in (128, 256) or ctas not in (1, 2, 4) or (draws and ctas > 1):
        raise CuteError(f"{what}: {cut}: tile_n is 128 or 256, a cluster has 1, 2 or 4 CTAs, and only single ones draw")
    columns = math.ceil(n / (tile_n * cluster_n))
    most_tiles = (rows // (TILE_M * cluster_m) + min(groups, rows)) * columns
    clusters = max(1, min(most_clusters(a, ctas), most_tiles))
    tensors = (a, b, ends, c) if scales_a is None else (a, b, ends, scales_a, scales_b, c)
    ready = _all_rows(a) if ends is None else None

    def arguments(*tensors):
        return arguments_of(cut, columns, *tensors)

    return mapped(grouped, (clusters * ctas, 1, 1), (ctas, 1, 1), tensors, arguments, ready, counts=draws)


def arguments_of(cut, columns, a, b, ends, *others):
    """Give the kernel's arguments. cut: a Cut. columns: tiles of clusters along N. a, b, ends: as `grouped_gemm` takes
    them. others: the scales of A and B, if there are any, the result, and of single CTAs a counter."""
    tile_n, (cluster_m, cluster_n), draws = cut
    *scales, c, counter = others if draws else (*others, None)
    scales_a, scales_b = scales or (None, None)
    dtype, c_dtype = entry.element_type(a), entry.element_type(c)
    b_mode = 2 if entry.strides(b)[2] == 1 else 1
    tB = tensor_of(b, b_mode)
    tB = cute.make_tensor(tB.iterator, cute.select(tB.layout, mode=[1, 2, 0]))  # N, K, groups
    k_major, n_major = warpgroup.OperandMajorMode.K, warpgroup.OperandMajorMode.MN
    op = mma_op(dtype, multiply.BLOCK if scales else tile_n, k_major, k_major if b_mode == 2 else n_major)
    tiled_mma = cute.make_tiled_mma(op, (TILE_M // 64, 1, 1))
    tile_k, store_n = 8 * ROW // dtype.width, 8 * ROW // c_dtype.width
    a_layout = smem_layout(dtype, 1, TILE_M, tile_k, STAGES)
    b_layout = smem_layout(dtype, b_mode - 1, tile_n, tile_k, STAGES)
    c_layout = smem_layout(c_dtype, 1, TILE_M, store_n, STORE_STAGES)
    store = cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), c_dtype)
    tma_a, mA = load_atom(tensor_of(a, 1), a_layout, (TILE_M, tile_k), cluster_n)
    tma_b, mB = load_atom(tB, b_layout, (tile_n, tile_k), cluster_m)
    tma_c, mC = cpasync.make_tiled_tma_atom(
        cpasync.CopyBulkTensorTileS2GOp(), ragged_rows(tensor_of(c, 1), STORE_ROWS),
        smem_layout(c_dtype, 1, STORE_ROWS, store_n), (STORE_ROWS, store_n),
    )  # fmt: skip
    share_a, share_b = (None if count == 1 else (1 << count) - 1 for count in (cluster_n, cluster_m))
    return (
        dtype, c_dtype, tma_a, mA, tma_b, mB, tma_c, mC, ends, cute.Int32(columns), tiled_mma, store, a_layout,
        b_layout, c_layout, cute.make_layout((1, cluster_m, cluster_n, 1)), share_a, share_b, scales_a, scales_b,
        counter,
    )  # fmt: skip


def _all_rows(a):
    """Make the end of the only group of A's rows, where they are."""
    if hasattr(a, "data_ptr"):
        return entry.pytorch().tensor([a.shape[0]], dtype=entry.pytorch().int32, device=a.device)
    return np.array([a.shape[0]], np.int32)


def check_groups(what, a, b, ends, kinds, optional=False):
    """Refuse matrices that are no rows by groups, each with a matrix of its own."""
    entry.check(what, "a", a, dtypes=kinds, rank=2)
    entry.check(what, "b", b, dtypes=(entry.type_name(a),), rank=3, shape=(None, None, a.shape[1]), last=False, like=a)
    entry.check(what, "ends", ends, dtypes=("int32",), rank=1, shape=(b.shape[0],), like=a, optional=optional)
    if not a.shape[1]:
        raise CuteError(f"{what}: a is {entry.described(a)}; K must not be 0")
    along_k = entry.strides(b)[2] == 1 or b.shape[2] == 1
    if not along_k and (entry.strides(b)[1] != 1 or entry.type_name(a).startswith("float8")):
        rule = "along K" if entry.type_name(a).startswith("float8") else "along N or K"
        raise CuteError(f"{what}: b is {entry.described(b)}; it must be contiguous {rule}: give b.contiguous()")


def _result(a: torch.Tensor, b: torch.Tensor, ends: torch.Tensor):
    check_groups("grouped_gemm", a, b, ends, KINDS)
    dtype = a.dtype if a.element_size() == 2 else entry.pytorch().bfloat16
    return a.new_empty((a.shape[0], b.shape[1]), dtype=dtype)


def _zeros(a: torch.Tensor, b: torch.Tensor, ends: torch.Tensor):
    check_groups("grouped_gemm", a, b, ends, KINDS[:2])
    return padded((a.shape[0], b.shape[1]), a, zeros=True)


ROWS_BACKWARD = entry.Operator("numba_cute::grouped_rows_backward", plan, _zeros)
"""The same product, with zeros for the rows that are no group's."""


def _keep(ctx, inputs, output):
    if entry.type_name(inputs[0]) not in KINDS[:2]:
        raise CuteError(
            f"grouped_gemm: a gradient is asked for, which there is of bfloat16 and float16, and a is "
            f"{entry.described(inputs[0])}: give a.detach(), or call it under torch.no_grad()"
        )
    ctx.save_for_backward(*inputs)


def _gradients(ctx, dc):
    """Give the gradient of a, a grouped product with the matrices transposed, and of b, a product over each group's
    rows."""
    (a, b, ends), (of_a, of_b, _), dc = ctx.saved_tensors, ctx.needs_input_grad, dc.contiguous()
    da = ROWS_BACKWARD(dc, b.mT, ends) if of_a else None
    turned = b.stride(1) == 1 and b.stride(2) != 1
    db = None if not of_b else OUTER(a, dc, ends).mT if turned else OUTER(dc, a, ends)
    return da, db, None


GROUPED = entry.Operator("numba_cute::grouped_gemm", plan, _result, backward=_gradients, setup_context=_keep)


def grouped_gemm(a, b, ends, *, out=None):
    """Multiply rows that are sorted by group, each group by a matrix of its own: `a[r] @ b[g].T` for the rows r of g,
    on a GPU of sm_80 to sm_89, sm_90a, sm_100a, sm_103a, sm_120 or sm_121.

    a: (rows, K) of bfloat16, float16 or, on Hopper and Blackwell, float8. b: (groups, N, K) of the same, contiguous
    along K, or, of 16 bits, along N. ends: (groups,) int32 on the GPU, the row after each group's last one: they do not
    decrease, and the kernel reads them, so that nobody waits. A group may be empty, or of any number of rows. out:
    (rows, N), to write to, of a's type, or bfloat16 where that is float8. Its rows after the last group's are left as
    they are. Rows of `a`, `b` and the result are multiples of 16 bytes. Gives the result. Autograd knows it, of 16
    bits: rows after the last group's have a gradient of 0, and so has the matrix of an empty group. CuteError says
    what is not so.
    """
    a, b = entry.under_autocast(a, b)
    return GROUPED(a, b, ends, into=(out,))
