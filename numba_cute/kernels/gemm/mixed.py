# SPDX-License-Identifier: Apache-2.0
"""A GEMM of 16-bit activations by weights of 4 bits, for Hopper: C = X @ W.T, with X (M, K), C (M, N), and W (N, K) of
numbers from 0 to 15, less a zero point, times a scale, of each row and a group of K: 32, 64 or 128 of it.

wgmma takes its first operand from registers, so that is the weights: a tile of C is turned. `pack.py` has put each
thread's numbers next to each other, so that it reads them as they come: 16 bytes are its share of 64 by 64 numbers. A
warpgroup widens the next of these while the tensor cores multiply the last.

Where there are few tokens, tiles are as narrow as the tokens are many, and stages are many. Where there are fewer tiles
than SMs, CTAs of a cluster take a part of K each, and read each other's sums of the columns that they store.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from typing import TYPE_CHECKING, NamedTuple

from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import cpasync, warp, warpgroup
from numba_cute.seam import CuteError, traced

from .. import entry, tuning
from .dense import get_sums, put_sums
from .groups import place
from .operands import (
    CONSUMER_REGISTERS,
    CONSUMER_WARPS,
    PRODUCER_REGISTERS,
    THREADS,
    check_rows,
    load_atom,
    mapped,
    most_clusters,
    some_clusters,
    tensor_of,
)  # fmt: skip
from .output import Stores, of_warpgroup, partition
from .pack import COLUMNS as TILE_K, ROWS as TILE_M, Int4Weights
from .plan import fastest, smem_layout
from .widened import MASK, factors_of, widen

if TYPE_CHECKING:
    import torch

TILES_N = (16, 32, 64, 128, 256)
UNIT = 512  # words of 8 numbers: 64 rows by 64 of K
SMEM = cute.target("sm_90a").smem_per_block - 1024  # but for barriers and factors


@traced
def makers_of(tile_n, parts):
    """Count the CTAs that make pieces of C, of those that share K: each makes 16 columns or more."""
    return 1 << min(parts, tile_n // 16).bit_length() - 1


@cuda.jit(launch_bounds=(THREADS, 1))
def mixed(
    dtype, tma_w, mW, tma_f, mF, tma_x, mX, tma_c, mC, tiled_mma, store, x_layout, c_layout, w_layout, f_layout, c,
    cluster, blocks_k, mask, stages: cute.Constexpr, per_stage: cute.Constexpr, middle: cute.Constexpr,
    groups: cute.Constexpr,
):  # fmt: skip
    tile_n = cute.size(x_layout, mode=[0])
    sharers, parts = cluster.shape[1], cluster.shape[2]  # CTAs that share the tokens, and those that share K
    tidx, _, _ = arch.thread_idx()
    bidx, _, _ = arch.block_idx()
    grid, _, _ = arch.grid_dim()
    warp_idx = arch.make_warp_uniform(arch.warp_idx())
    rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
    sharer, part = rank % sharers, rank // sharers
    if warp_idx == 0:
        cpasync.prefetch_descriptor(tma_w)
        cpasync.prefetch_descriptor(tma_f)
        cpasync.prefetch_descriptor(tma_x)
        cpasync.prefetch_descriptor(tma_c)

    arch.griddepcontrol_launch_dependents()
    arch.griddepcontrol_wait()  # what was launched before has written X
    smem = utils.SmemAllocator()
    sX = smem.allocate_tensor(dtype, x_layout.outer, 1024, x_layout.inner, "sX")
    sC = smem.allocate_tensor(dtype, c_layout.outer, 1024, c_layout.inner, "sC")
    sW = smem.allocate_tensor(cute.Uint32, w_layout, 1024, name="sW")
    sF = smem.allocate_tensor(cute.Uint16, f_layout, 128, name="sF")
    barriers = smem.allocate_array(cute.Int64, 2 * stages, name="barriers")
    mainloop = pipeline.PipelineTmaAsync.create(
        num_stages=stages,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, sharers * CONSUMER_WARPS),
        tx_count=per_stage * (tile_n * TILE_K * 2 + 2 * UNIT * 4) + TILE_M * cute.size(f_layout, mode=[1]) * 2,
        barrier_storage=barriers,
        cta_layout_vmnk=cluster,
        tidx=tidx,
        mcast_mode_mn=(0, 1),  # the tokens, along the weights' rows
        name="mainloop",
    )
    producer, consumer = mainloop.make_participants()
    ctas = sharers * parts
    tiles_m = cute.ceil_div(cute.Int32(c.shape[1]), TILE_M * sharers)
    tiles_n = cute.ceil_div(cute.Int32(c.shape[0]), tile_n)
    first_block, end_block = cute.Int32(part * blocks_k // parts), cute.Int32((part + 1) * blocks_k // parts)
    share = None if sharers == 1 else ((1 << sharers) - 1) << (part * sharers)
    store_n = cute.size(c_layout, mode=[1])
    own_pieces = tile_n // makers_of(tile_n, parts) // store_n  # of C's, those that a CTA makes

    if warp_idx < 4:
        arch.setmaxregister_decrease(PRODUCER_REGISTERS)
        if cute.const_expr(parts > 1):
            arch.cluster_arrive()
        if warp_idx == 0:
            gX = cute.local_tile(mX, (tile_n, TILE_K), (None, None))
            tXsX, tXgX = partition(tma_x, sX, gX, sharer, sharers)
            gW = cute.local_tile(mW, (cute.size(w_layout, mode=[0]), cute.size(w_layout, mode=[1])), (None, 0))
            tWsW, tWgW = partition(tma_w, sW, gW)
            gF = cute.local_tile(mF, (cute.size(f_layout, mode=[0]), cute.size(f_layout, mode=[1])), (0, 0, None))
            tFsF, tFgF = partition(tma_f, sF, gF)
            index = bidx // ctas
            while index < tiles_m * tiles_n:
                m, n = place(cute.Int32(index), tiles_m, tiles_n)
                row_tile = cute.Int32(m * sharers + sharer)
                for k in range(first_block * (2 // per_stage), end_block * (2 // per_stage)):
                    stage = producer.acquire_and_advance()
                    cute.copy(
                        tma_w, tWgW[None, row_tile * blocks_k * (2 // per_stage) + k], tWsW[None, stage.index],
                        tma_bar_ptr=stage.barrier,
                    )  # fmt: skip
                    cute.copy(
                        tma_f, tFgF[None, row_tile * blocks_k + k // (2 // per_stage)], tFsF[None, stage.index],
                        tma_bar_ptr=stage.barrier,
                    )  # fmt: skip
                    for i in cute.range_constexpr(per_stage):
                        cute.copy(
                            tma_x, tXgX[None, n, k * per_stage + i], tXsX[None, stage.index * per_stage + i],
                            tma_bar_ptr=stage.barrier, mcast_mask=share,
                        )  # fmt: skip
                    stage.commit()
                index += grid // ctas
            producer.tail()
        if cute.const_expr(parts > 1):
            arch.cluster_wait()
            arch.cluster_arrive()
            arch.cluster_wait()
    else:
        arch.setmaxregister_increase(CONSUMER_REGISTERS)
        group = cute.Int32((warp_idx - 4) // 4)
        thread = cute.Int32(tidx - 128)
        lane_row = cute.Int32(warp_idx % 4 * 16 + arch.lane_idx() // 4 + group * 64)
        tCrX = tiled_mma.make_fragment_B(tiled_mma.get_slice(cute.Int32(group * 128)).partition_B(sX))
        wide_0 = cute.make_rmem_tensor(tiled_mma.partition_shape_A((TILE_M, TILE_K)), dtype)
        wide_1 = cute.make_rmem_tensor(tiled_mma.partition_shape_A((TILE_M, TILE_K)), dtype)
        wides = (wide_0, wide_1)
        narrow = cute.make_rmem_tensor((4, per_stage), cute.Uint32)
        units = cute.make_tensor(sW.iterator, cute.make_layout((4, 128, 2, per_stage, stages)))
        acc = tiled_mma.make_fragment_C(tiled_mma.partition_shape_C((TILE_M, tile_n)))
        adds = tiled_mma.set(warpgroup.Field.ACCUMULATE, True)

        stores_of_tile = tile_n // store_n
        store_stages = cute.size(c_layout, mode=[2])
        all_sums = cute.make_tensor(acc.iterator, cute.make_layout((64 * store_n // 128, stores_of_tile)))
        gC = cute.local_tile(mC, (64, store_n), (None, None))
        tCsC, tCgC = partition(tma_c, of_warpgroup(sC, group), gC)
        stores = Stores.create(store, tiled_mma, sC, thread, group, warp_idx % 4 == 0)

        index = bidx // ctas
        while index < tiles_m * tiles_n:
            m, n = place(cute.Int32(index), tiles_m, tiles_n)
            row_tile = cute.Int32(m * sharers + sharer)
            stage = consumer.wait()
            previous = stage
            for block in range(first_block, end_block):
                for half in cute.range_constexpr(2):
                    if cute.const_expr(half == 0 or per_stage == 1):
                        stage = consumer.wait_and_advance()
                        cute.autovec_copy(units[None, thread % 128, group, None, stage.index], narrow)
                    if cute.const_expr(half == 0 or groups > 1):  # both halves of one group have the same
                        lower = factors_of(sF, lane_row, stage.index, middle, groups, half)
                        upper = factors_of(sF, lane_row + 8, stage.index, middle, groups, half)
                    within = half % per_stage
                    widen(wides[half], narrow[None, within], dtype, lower, upper, mask)
                    warpgroup.fence()
                    for kb in cute.range_constexpr(4):
                        if cute.const_expr(half == 0 and kb == 0):
                            mma = tiled_mma.set(warpgroup.Field.ACCUMULATE, block > first_block)
                            cute.gemm(
                                mma, acc, wides[half][None, None, kb],
                                tCrX[None, None, kb, stage.index * per_stage + within], acc,
                            )  # fmt: skip
                        else:
                            cute.gemm(
                                adds, acc, wides[half][None, None, kb],
                                tCrX[None, None, kb, stage.index * per_stage + within], acc,
                            )  # fmt: skip
                    warpgroup.commit_group()
                    warpgroup.wait_group(1)  # the tensor cores may still read these, but not the 64 of K before
                    if cute.const_expr(half == 0 or per_stage == 1):
                        if block > first_block or half == 1:
                            arch.sync_warp()
                            previous.release()
                        previous = stage
            warpgroup.wait_group(0)
            arch.sync_warp()
            previous.release()

            if cute.const_expr(parts > 1):  # one tile for each CTA: the tokens' memory is free
                shared_sums = cute.make_tensor(
                    cute.recast_ptr(sX.iterator, dtype=acc.element_type),
                    cute.make_layout((4, 2 * 128, cute.size(acc) // 4)),
                )
                put_sums(acc, shared_sums, thread)
            if part * own_pieces < stores_of_tile:
                for piece in cute.range_constexpr(own_pieces):
                    slot, column = piece % store_stages, part * own_pieces + piece
                    sums = all_sums[None, piece]
                    if cute.const_expr(parts > 1):
                        sums = get_sums(shared_sums, thread, column, sharer, cluster, sums)
                    there = tCgC[None, 2 * row_tile + group, stores_of_tile * n + column]
                    stores.put(sums.load(), slot, tma_c, tCsC[None, slot], there)
            index += grid // ctas
        if cute.const_expr(parts > 1):
            arch.cluster_arrive()  # the others' sums have been read
            arch.cluster_wait()
        stores.tail()


class Cut(NamedTuple):
    """A cut of a problem. tile_n: tokens of a tile. sharers: CTAs of a cluster that share the tokens, each with rows
    of its own. parts: CTAs of a cluster that share K. per_stage: K tiles of a stage, 1 or 2. stages: 0 for as many as
    there is room for."""

    tile_n: int
    sharers: int = 1
    parts: int = 1
    per_stage: int = 1
    stages: int = 0


def fitted(cut, blocks, factors):
    """Give a cut with its stages. blocks: of K. factors: of a row and a block. CuteError where the kernel does not take
    it."""
    tile_n, sharers, parts, per_stage, _ = cut
    rules = {
        "tile_n is 16, 32, 64, 128 or 256": tile_n in TILES_N,
        "per_stage is 1 or 2": per_stage in (1, 2),
        "a cluster has 1 to 8 CTAs": min(sharers, parts) >= 1 and sharers * parts <= 8,
        f"K has {blocks} blocks of 128, one for each part or more": parts <= blocks,
    }
    broken = next((rule for rule, holds in rules.items() if not holds), None)
    if broken is not None:
        raise CuteError(f"mixed_gemm: {cut}: {broken}")
    stage = per_stage * (tile_n * TILE_K * 2 + 2 * UNIT * 4) + TILE_M * factors * 2 + 16
    columns, slots = pieces_of(tile_n, parts)
    room = (SMEM - TILE_M * columns * 2 * slots) // stage
    stages = cut.stages or min(16, room)
    fewest = 2 if parts == 1 else max(2, 4 // per_stage)  # the sums of a tile go where its tokens were
    if not fewest <= stages <= room:
        raise CuteError(
            f"mixed_gemm: {cut}: {stages} stages of {stage} bytes; there must be {fewest} or more, and shared memory "
            f"has room for {room}"
        )
    return cut._replace(stages=stages)


def pieces_of(tile_n, parts):
    """Give the columns of a piece of C, whose rows are 64, and how many of them each warpgroup has in shared memory."""
    own = tile_n // makers_of(tile_n, parts)
    columns = min(64, own)
    return columns, min(2, own // columns)


def modelled(cut, tokens, row_tiles, blocks, room):
    """Estimate the microseconds of a cut. tokens, row_tiles, blocks, room: as of `cut_of`.

    Of a GPU it knows: `k_tile`, what a CTA takes for 64 of K, by its tokens; a `launch`, the begin and end of a `tile`,
    and the sum over a cluster (`sums`)."""
    known = tuning.numbers("mixed_gemm")
    clusters = math.ceil(row_tiles / cut.sharers) * math.ceil(tokens / cut.tile_n)
    at_once = room(cut.sharers * cut.parts)
    if not at_once:
        return math.inf
    rounds = math.ceil(clusters / at_once)
    tile = math.ceil(blocks / cut.parts) * 2 * known.k_tile[cut.tile_n] + known.tile
    return known.launch + rounds * (tile + (known.sums if cut.parts > 1 else 0))


def cut_of(tokens, row_tiles, blocks, factors, room):
    """Choose the cut that takes the least time, by the model.

    tokens: of the problem. row_tiles: of the weights. blocks, factors: as of `fitted`. room: a function that gives
    how many clusters of so many CTAs run at once, one on an SM.
    """
    found = []
    for tile_n, parts in itertools.product(TILES_N, range(1, min(8, blocks) + 1)):
        sharers = 2 if parts == 1 and tile_n == 256 and row_tiles > 1 and tokens > tile_n else 1
        with contextlib.suppress(CuteError):
            found.append(fitted(Cut(tile_n, sharers, parts, 1 if tile_n == 256 else 2), blocks, factors))
    usual = lambda cut: cut.parts in (1, 2, 4)  # noqa: E731 - few kernels for many extents
    return fastest(found, usual, lambda cut: modelled(cut, tokens, row_tiles, blocks, room))


def plan(x, words, factors, c, middle, n, cut=None):
    """Plan the launch. x: (M, K). words, factors: as in Int4Weights. c: (M, N). middle: the number that stands for zero
    where factors have no zero points, on BASE. n: N. cut: a Cut, one of `mixed_warps_plan`, or None for the one that is
    thought best. Blackwell's tensor cores are used as a warp's."""
    if 0 in c.shape:
        return lambda *tensors: None
    family = entry.check_target("mixed_gemm", x, entry.WARPGROUPS, entry.WARPS, entry.TENSOR_MEMORY)
    if family != entry.WARPGROUPS or not isinstance(cut, (Cut, type(None))):
        from . import mixed_warps_plan

        return mixed_warps_plan.plan(x, words, factors, c, middle, n, cut)
    check_rows("mixed_gemm", x=x, out=c)
    (row_tiles, _, _), (_, blocks, groups, kinds, _) = words.shape, factors.shape
    if cut is None:
        cut = cut_of(x.shape[0], row_tiles, blocks, groups * kinds, functools.partial(most_clusters, x))
    cut = fitted(cut, blocks, groups * kinds)
    tiles = math.ceil(words.shape[0] / cut.sharers) * math.ceil(x.shape[0] / cut.tile_n)
    ctas = cut.sharers * cut.parts
    room = some_clusters(f"mixed_gemm: {cut}", most_clusters(x, ctas), ctas)
    clusters = tiles if cut.parts > 1 else math.ceil(tiles / math.ceil(tiles / room))

    def arguments(*tensors):
        return arguments_of(cut, middle, *tensors)

    return mapped(mixed, (clusters * ctas, 1, 1), (ctas, 1, 1), (x, words, factors, c), arguments)


def arguments_of(cut, middle, x, words, factors, c):
    """Give the kernel's arguments. cut: a whole Cut. The others: as of `plan`."""
    tile_n, sharers, parts, per_stage, stages = cut
    (row_tiles, k_tiles, _), (_, blocks, groups, kinds, _) = words.shape, factors.shape
    each = groups * kinds  # factors of a row and a block
    dtype, k = entry.element_type(x), warpgroup.OperandMajorMode.K
    op = warpgroup.MmaF16BF16Op(dtype, cute.Float32, (64, tile_n, 16), warpgroup.OperandSource.RMEM, k, k)
    tiled_mma = cute.make_tiled_mma(op, (TILE_M // 64, 1, 1))
    store_n, slots = pieces_of(tile_n, parts)
    store = cute.make_copy_atom(warp.StMatrix8x8x16bOp(True, 4), dtype)
    x_layout = smem_layout(dtype, 1, tile_n, TILE_K, stages * per_stage)
    c_layout = smem_layout(dtype, 0, TILE_M, store_n, slots)
    w_layout = cute.make_layout((4 * per_stage, 256, stages), stride=(256, 1, 1024 * per_stage))
    f_layout = cute.make_layout((TILE_M, each, stages))
    rows_of_words = cute.make_layout((cute.Int32(row_tiles * k_tiles * 4), 256), stride=(256, 1))
    tW = cute.make_tensor(tensor_of(words, 2, cute.Uint32).iterator, rows_of_words)
    of_blocks = cute.make_layout((TILE_M, each, cute.Int32(row_tiles * blocks)), stride=(1, TILE_M, TILE_M * each))
    tF = cute.make_tensor(tensor_of(factors, 4, cute.Uint16).iterator, of_blocks)
    tC = tensor_of(c, 1)
    tma_w, mW = load_atom(tW, w_layout, (4 * per_stage, 256))
    tma_f, mF = load_atom(tF, f_layout, (TILE_M, each))
    tma_x, mX = load_atom(tensor_of(x, 1), x_layout, (tile_n, TILE_K), sharers)
    tma_c, mC = cpasync.make_tiled_tma_atom(
        cpasync.CopyBulkTensorTileS2GOp(), cute.make_tensor(tC.iterator, cute.select(tC.layout, mode=[1, 0])),
        smem_layout(dtype, 0, 64, store_n), (64, store_n),
    )  # fmt: skip
    return (
        dtype, tma_w, mW, tma_f, mF, tma_x, mX, tma_c, mC, tiled_mma, store, x_layout, c_layout, w_layout, f_layout, c,
        cute.make_layout((1, sharers, parts, 1)), cute.Int32(blocks), cute.Uint32(MASK), stages, per_stage, middle,
        groups,
    )  # fmt: skip


def _result(x: torch.Tensor, words: torch.Tensor, factors: torch.Tensor, middle: int, n: int):
    return x.new_empty((x.shape[0], n))


MIXED = entry.Operator("numba_cute::mixed_gemm", plan, _result)


def mixed_gemm(x, weights, *, out=None):
    """Multiply activations by weights of 4 bits: `x @ W.T`, with sums in float32, on a GPU of sm_80 to sm_89, sm_90a,
    sm_100a, sm_103a, sm_120 or sm_121.

    x: (M, K) of bfloat16 or float16, whose rows are multiples of 16 bytes. weights: of `int4_weights`, (N, K), with
    scales of x's type. out: (M, N), to write to. Gives the result, of x's type. CuteError says what is not so.

    >>> import torch
    >>> w, x = torch.ones(64, 128, dtype=torch.int8), torch.ones(1, 128, dtype=torch.float16)
    >>> weights = cute.kernels.int4_weights(w, torch.full((64, 1), 0.5, dtype=torch.float16))
    >>> with cute.simulation():
    ...     y = cute.kernels.mixed_gemm(x, weights)
    >>> y[0, 0]
    tensor(64., dtype=torch.float16)
    """
    what = "mixed_gemm"
    if not isinstance(weights, Int4Weights):
        raise CuteError(f"{what}: weights is {entry.described(weights)}; make it with int4_weights(w, scales)")
    entry.check(what, "x", x, dtypes=(weights.dtype,), rank=2, shape=(None, weights.shape[1]))
    entry.check(what, "weights.words", weights.words, like=x)
    return MIXED(x, weights.words, weights.factors, weights.middle, weights.shape[0], into=(out,))
