# SPDX-License-Identifier: Apache-2.0
"""Attention on Hopper, forward: O = softmax(scale Q K^T) V, and the log of each row's sum of exponentials.

A persistent CTA takes tiles of queries, one after the other. One warp feeds shared memory by TMA; two or three
warpgroups have 64 rows of the tile each: S = Q K^T by wgmma into registers, its softmax there, and O += P V by wgmma
with P in registers. While a block's softmax is computed, the product of the last block's P and V runs; and the
warpgroups take turns in issuing, so that one's softmax runs beside the other's products.
"""

import functools
import math
from typing import NamedTuple

from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import cpasync, warp, warpgroup
from numba_cute.pipeline import Agent, CooperativeGroup

from . import masks, softmax
from .schedule import section_of, tile_at

STAGES = 2  # tiles of K, and of V, in shared memory
TURN, STORED = 1, 5  # the first of the named barriers by which warpgroups take turns, and of those at a tile's end


class Form(NamedTuple):
    """What the kernel knows when it is compiled.

    dtype: of Q, K, V and O. d, dv: head dimensions of Q and K, and of V and O. group: query heads that share the keys
    and values of one. tile_m, tile_n: queries and keys of a tile. left, right: whether a query's window of keys ends on
    that side. turns: whether the warpgroups take turns. draws: whether a CTA that is done draws the next tile from a
    counter, or takes every so manieth.
    """

    dtype: cute.DType
    d: int
    dv: int
    group: int
    tile_m: int
    tile_n: int
    left: bool = False
    right: bool = False
    turns: bool = True
    draws: bool = False

    @property
    def groups(self):
        return self.tile_m // 64

    @property
    def threads(self):
        return 128 * (self.groups + 1)

    @property
    def registers(self):
        """Of a thread of the producer's warpgroup, and of the others."""
        return (24, 240) if self.groups == 2 else (32, 160)


def multiplies(form):
    """The tiled MMAs of S = Q K^T and of O = P V."""
    smem, rmem = warpgroup.OperandSource.SMEM, warpgroup.OperandSource.RMEM
    K, MN = warpgroup.OperandMajorMode.K, warpgroup.OperandMajorMode.MN
    scores = warpgroup.MmaF16BF16Op(form.dtype, cute.Float32, (64, form.tile_n, 16), smem, K, K)
    values = warpgroup.MmaF16BF16Op(form.dtype, cute.Float32, (64, form.dv, 16), rmem, K, MN)
    return cute.make_tiled_mma(scores, (form.groups, 1, 1)), cute.make_tiled_mma(values, (form.groups, 1, 1))


def layouts(form):
    """The layouts of Q, K, V and O in shared memory: columns of 128 bytes, swizzled."""
    kind = warpgroup.SmemLayoutAtomKind
    rows, columns = (warpgroup.make_smem_layout_atom(k, form.dtype) for k in (kind.K_SW128, kind.MN_SW128))
    q = cute.tile_to_shape(rows, (form.tile_m, form.d), (0, 1))
    k = cute.tile_to_shape(rows, (form.tile_n, form.d, STAGES), (0, 1, 2))
    v = cute.tile_to_shape(columns, (form.dv, form.tile_n, STAGES), (1, 0, 2))
    o = cute.tile_to_shape(rows, (form.tile_m, form.dv), (0, 1))
    return q, k, v, o


def make_kernel(form):
    """The kernel of a form."""
    dtype, d, dv, tile_m, tile_n, groups = form.dtype, form.d, form.dv, form.tile_m, form.tile_n, form.groups
    group, threads, has_left, has_right = form.group, form.threads, form.left, form.right
    turns, draws = form.turns, form.draws
    producer_registers, consumer_registers = form.registers
    scores_mma, values_mma = multiplies(form)
    q_layout, k_layout, v_layout, o_layout = layouts(form)
    bytes_each = dtype.width // 8
    q_bytes, k_bytes, v_bytes = tile_m * d * bytes_each, tile_n * d * bytes_each, tile_n * dv * bytes_each
    p_shape = values_mma.partition_shape_A((tile_m, tile_n))
    store = cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), dtype)

    @cuda.jit
    def blocks_of(m, queries, keys, left, right):
        """The blocks of keys that the queries of tile m see: the first, the one after the last, and which of them all
        queries see whole: the first, and the one after the last."""
        shift = keys - queries
        first, last = m * tile_m + shift, (m + 1) * tile_m - 1 + shift
        begin, end, whole_begin, whole_end = 0, keys, 0, keys
        if cute.const_expr(has_right):
            end, whole_end = min(keys, last + right + 1), min(keys, first + right + 1)
        if cute.const_expr(has_left):
            begin, whole_begin = max(0, first - left), max(0, last - left)
        begin, end = begin // tile_n, (end + tile_n - 1) // tile_n
        whole_begin, whole_end = (whole_begin + tile_n - 1) // tile_n, whole_end // tile_n
        end = max(end, begin + 1)  # a tile that sees no key has a block, all masked
        return begin, end, whole_begin, whole_end

    @cuda.jit
    def mask(scores, n, query, column, queries, keys, left, right):
        """Leave out the scores of block n that the thread's queries, `query` and the eighth after, do not see."""
        begin, end = cute.make_rmem_tensor(2, cute.Int32), cute.make_rmem_tensor(2, cute.Int32)
        for r in cute.range_constexpr(2):
            at = query + 8 * r + keys - queries
            end[r] = keys - n * tile_n
            if cute.const_expr(has_right):
                end[r] = min(keys, at + right + 1) - n * tile_n
            if cute.const_expr(has_left):
                begin[r] = at - left - n * tile_n
        masks.leave_out(scores, column, begin if has_left else None, end)

    @cuda.jit
    def multiply_scores(tQ, tK, acc, stage):
        """Begin S = Q K^T."""
        for k in cute.range_constexpr(d // 16):
            first = scores_mma.set(warpgroup.Field.ACCUMULATE, k > 0)
            cute.gemm(first, acc, tQ[None, None, k], tK[None, None, k, stage], acc)
        warpgroup.commit_group()

    @cuda.jit
    def multiply_values(rP, tV, acc, stage, accumulate):
        """Begin O (+)= P V."""
        for k in cute.range_constexpr(tile_n // 16):
            adds = values_mma.set(warpgroup.Field.ACCUMULATE, accumulate or k > 0)
            cute.gemm(adds, acc, rP[None, None, k], tV[None, None, k, stage], acc)
        warpgroup.commit_group()

    @cuda.jit
    def draw(counter, tiles, ctas):
        """Draw the number of the next tile; who draws the last one sets the counter back. A whole warp."""
        drawn = cute.Int32(0)
        if arch.lane_idx() == 0:
            drawn = cute.Int32(arch.atomic_add(counter.iterator, 1))
            if drawn == tiles - 1:
                arch.atomic_exch(counter.iterator, 0)
        return arch.shuffle_sync(drawn, 0) + ctas

    @cuda.jit(launch_bounds=(threads, 1))
    def kernel(
        tma_q, mQ, tma_k, mK, tma_v, mV, tma_o, mO, mL, counter, queries, keys, heads, batch, section, left, right,
        scale_log2,
    ):  # fmt: skip
        tidx, _, _ = arch.thread_idx()
        warp_idx = arch.make_warp_uniform(arch.warp_idx())
        if warp_idx == 0:
            cpasync.prefetch_descriptor(tma_q)
            cpasync.prefetch_descriptor(tma_k)
            cpasync.prefetch_descriptor(tma_v)
            cpasync.prefetch_descriptor(tma_o)

        smem = utils.SmemAllocator()
        sQ = smem.allocate_tensor(dtype, q_layout.outer, 1024, q_layout.inner, "sQ")
        sK = smem.allocate_tensor(dtype, k_layout.outer, 1024, k_layout.inner, "sK")
        sV = smem.allocate_tensor(dtype, v_layout.outer, 1024, v_layout.inner, "sV")
        sO = cute.make_tensor(sQ.iterator, o_layout.outer)  # a warpgroup's part of O takes the place of its part of Q
        one = CooperativeGroup(Agent.Thread)
        q_pipe = pipeline.PipelineTmaAsync.create(
            num_stages=1, producer_group=one, consumer_group=CooperativeGroup(Agent.Thread, groups), tx_count=q_bytes,
            barrier_storage=smem.allocate_array(cute.Int64, 2), defer_sync=True, name="Q",
        )  # fmt: skip
        k_pipe = pipeline.PipelineTmaAsync.create(
            num_stages=STAGES, producer_group=one, consumer_group=CooperativeGroup(Agent.Thread, 4 * groups),
            tx_count=k_bytes, barrier_storage=smem.allocate_array(cute.Int64, 2 * STAGES), defer_sync=True, name="K",
        )  # fmt: skip
        v_pipe = pipeline.PipelineTmaAsync.create(
            num_stages=STAGES, producer_group=one, consumer_group=CooperativeGroup(Agent.Thread, 4 * groups),
            tx_count=v_bytes, barrier_storage=smem.allocate_array(cute.Int64, 2 * STAGES), defer_sync=True, name="V",
        )  # fmt: skip
        drawn = smem.allocate_tensor(cute.Int32, cute.make_layout(STAGES), 16, None, "drawn")
        tile_pipe = pipeline.PipelineAsync.create(
            num_stages=STAGES, producer_group=CooperativeGroup(Agent.Warp),
            consumer_group=CooperativeGroup(Agent.Thread, 128 * groups),
            barrier_storage=smem.allocate_array(cute.Int64, 2 * STAGES), defer_sync=True, name="tiles",
        )  # fmt: skip
        pipeline.pipeline_init_arrive()
        pipeline.pipeline_init_wait()

        tiles_m = (queries + tile_m - 1) // tile_m
        tiles = tiles_m * heads * batch
        index, ctas = cute.Int32(arch.block_idx()[0]), cute.Int32(arch.grid_dim()[0])

        if warp_idx < 4:
            arch.setmaxregister_decrease(producer_registers)
            if warp_idx == 0:
                loads_q, loads_k, loads_v = q_pipe.make_producer(), k_pipe.make_producer(), v_pipe.make_producer()
                tells = tile_pipe.make_producer()
                while index < tiles:
                    m, head, b = tile_at(index, tiles_m, heads, batch, section, has_right)
                    begin, end, _, _ = blocks_of(m, queries, keys, left, right)
                    gQ = cute.local_tile(mQ[None, None, head, b], (tile_m, d), (None, 0))
                    gK = cute.local_tile(mK[None, None, head // group, b], (tile_n, d), (None, 0))
                    gV = cute.local_tile(mV[None, None, head // group, b], (dv, tile_n), (0, None))
                    tQsQ, tQgQ = cpasync.tma_partition(
                        tma_q, 0, cute.make_layout(1), cute.group_modes(sQ, 0, 2), cute.group_modes(gQ, 0, 2)
                    )
                    tKsK, tKgK = cpasync.tma_partition(
                        tma_k, 0, cute.make_layout(1), cute.group_modes(sK, 0, 2), cute.group_modes(gK, 0, 2)
                    )
                    tVsV, tVgV = cpasync.tma_partition(
                        tma_v, 0, cute.make_layout(1), cute.group_modes(sV, 0, 2), cute.group_modes(gV, 0, 2)
                    )
                    stage = loads_q.acquire_and_advance()
                    cute.copy(tma_q, tQgQ[None, m], tQsQ[None], tma_bar_ptr=stage.barrier)
                    stage = loads_k.acquire_and_advance()
                    cute.copy(tma_k, tKgK[None, end - 1], tKsK[None, stage.index], tma_bar_ptr=stage.barrier)
                    for i in range(1, end - begin):
                        stage = loads_k.acquire_and_advance()
                        cute.copy(tma_k, tKgK[None, end - 1 - i], tKsK[None, stage.index], tma_bar_ptr=stage.barrier)
                        stage = loads_v.acquire_and_advance()
                        cute.copy(tma_v, tVgV[None, end - i], tVsV[None, stage.index], tma_bar_ptr=stage.barrier)
                    stage = loads_v.acquire_and_advance()
                    cute.copy(tma_v, tVgV[None, begin], tVsV[None, stage.index], tma_bar_ptr=stage.barrier)
                    if cute.const_expr(draws):
                        index = draw(counter, tiles, ctas)
                        place = tells.acquire_and_advance()
                        if arch.lane_idx() == 0:
                            drawn[place.index] = index
                        place.commit()
                    else:
                        index += ctas
                if cute.const_expr(draws):
                    tells.tail()
                loads_q.tail()
                loads_k.tail()
                loads_v.tail()

        else:
            arch.setmaxregister_increase(consumer_registers)
            w = cute.Int32((warp_idx - 4) // 4)  # which consumer warpgroup: rows 64 * w of the tile
            thread = tidx % 128
            tQ = scores_mma.make_fragment_A(scores_mma.get_slice(128 * w).partition_A(sQ))
            tK = scores_mma.make_fragment_B(scores_mma.get_slice(128 * w).partition_B(sK))
            tV = values_mma.make_fragment_B(values_mma.get_slice(128 * w).partition_B(sV))
            rS = scores_mma.make_fragment_C(scores_mma.partition_shape_C((tile_m, tile_n)))
            rO = values_mma.make_fragment_C(values_mma.partition_shape_C((tile_m, dv)))
            rP = values_mma.make_fragment_A(p_shape)
            as_p = cute.make_tensor(rS.iterator, rP.layout)  # S in the order of P's registers: it is S's own
            scores = softmax.rows_of(rS)
            highest, total = cute.make_rmem_tensor(2, cute.Float32), cute.make_rmem_tensor(2, cute.Float32)
            factor, lse = cute.make_rmem_tensor(2, cute.Float32), cute.make_rmem_tensor(2, cute.Float32)
            row = 64 * w + thread // 32 * 16 + thread % 32 // 4  # of the tile: this thread's first
            column = thread % 4 * 2

            to_smem = cute.make_tiled_copy_S(store, cute.make_tiled_copy_C_atom(store, values_mma))
            rounded = cute.make_rmem_tensor(rO.layout.shape, dtype)
            own_O = cute.local_tile(sO, (64, 64), (w, None))
            together = pipeline.NamedBarrier(STORED + w, 128)
            mine = pipeline.NamedBarrier(TURN + w, 256)
            next_one = pipeline.NamedBarrier(TURN + (w + 1) % groups, 256)
            if cute.const_expr(turns):
                if w == groups - 1:
                    next_one.arrive()  # the first warpgroup begins

            full_q, full_k, full_v = q_pipe.make_consumer(), k_pipe.make_consumer(), v_pipe.make_consumer()
            told = tile_pipe.make_consumer()
            while index < tiles:
                m, head, b = tile_at(index, tiles_m, heads, batch, section, has_right)
                begin, end, whole_begin, whole_end = blocks_of(m, queries, keys, left, right)
                query = m * tile_m + row
                for r in cute.range_constexpr(2):
                    highest[r], total[r] = -math.inf, 0

                tile = full_q.wait_and_advance()
                stage_k = full_k.wait_and_advance()
                warpgroup.fence()
                multiply_scores(tQ, tK, rS, stage_k.index)
                warpgroup.wait_group(0)
                stage_k.release()
                mask(scores, end - 1, query, column, queries, keys, left, right)
                softmax.raise_maxima(scores, highest, total, factor, scale_log2, True)
                softmax.exponentials(scores, highest, total, scale_log2, True)
                rP.store(as_p.load().to(dtype))

                for i in range(1, end - begin):
                    n = end - 1 - i
                    stage_k = full_k.wait_and_advance()
                    if cute.const_expr(turns):
                        mine.arrive_and_wait()
                    warpgroup.fence()
                    multiply_scores(tQ, tK, rS, stage_k.index)
                    stage_v = full_v.wait_and_advance()
                    multiply_values(rP, tV, rO, stage_v.index, i > 1)
                    if cute.const_expr(turns):
                        next_one.arrive()
                    warpgroup.wait_group(1)
                    stage_k.release()
                    if cute.const_expr(has_right or has_left):
                        if n >= whole_end or n < whole_begin:
                            mask(scores, n, query, column, queries, keys, left, right)
                    softmax.raise_maxima(scores, highest, total, factor, scale_log2, has_right or has_left)
                    softmax.exponentials(scores, highest, total, scale_log2, has_right or has_left)
                    warpgroup.wait_group(0, after=total)
                    stage_v.release()
                    rP.store(as_p.load().to(dtype))
                    softmax.scale_rows(rO, factor)

                stage_v = full_v.wait_and_advance()
                warpgroup.fence()
                multiply_values(rP, tV, rO, stage_v.index, end - begin > 1)
                softmax.finish(highest, total, factor, lse, scale_log2)
                if thread % 4 == 0:
                    for r in cute.range_constexpr(2):
                        if query + 8 * r < queries:
                            mL[query + 8 * r, head, b] = lse[r]
                warpgroup.wait_group(0)
                stage_v.release()
                softmax.scale_rows(rO, factor)

                # O leaves through the shared memory of Q: this warpgroup's rows, which no other reads
                rounded.store(rO.load().to(dtype))
                together.arrive_and_wait()  # all of the warpgroup's products with Q are done
                cute.copy(to_smem, to_smem.retile(rounded), to_smem.get_slice(cute.Int32(tidx - 128)).partition_D(sO))
                arch.fence_proxy("async.shared", space="cta")
                together.arrive_and_wait()
                if warp_idx % 4 == 0:
                    gO = cute.local_tile(mO[None, None, head, b], (64, 64), (None, None))
                    tOsO, tOgO = cpasync.tma_partition(
                        tma_o, 0, cute.make_layout(1), cute.group_modes(own_O, 0, 2), cute.group_modes(gO, 0, 2)
                    )
                    for part in cute.range_constexpr(dv // 64):
                        cute.copy(tma_o, tOsO[None, part], tOgO[None, m * groups + w, part])
                    arch.cp_async_bulk_commit_group()
                    arch.cp_async_bulk_wait_group(0, read=True)
                    tile.release()
                if cute.const_expr(draws):
                    place = told.wait_and_advance()
                    index = drawn[place.index]
                    place.release()
                else:
                    index += ctas
            if cute.const_expr(turns):
                if w == 0:
                    mine.arrive_and_wait()  # the last arrival

    return kernel


kernel_of = functools.cache(make_kernel)


def tensor(array, modes):
    """A tensor over an array (batch, rows, heads, d) with its modes in another order; extents are known at run time."""
    t = cute.runtime.from_dlpack(array, assumed_align=16).mark_layout_dynamic(leading_dim=3)
    return cute.make_tensor(t.iterator, cute.select(t.layout, mode=modes))


def tile_of(d, dv, left, right):
    """Queries and keys of a tile, for head dimensions, and windows."""
    if d <= 64:
        return 192, 128
    if d <= 128:
        return 128, 128 if left or right else 176
    return 128, 128 if d <= 192 else 80


def arguments(q, k, v, o, lse, counter, sms, scale=None, window=(None, None), tile=None, turns=None, draws=None):
    """The kernel, its arguments, grid and block, for arrays of the host (to simulate or compile) or of the device.

    q, o: (batch, queries, heads, d), k, v: (batch, keys, KV heads, d); lse: (batch, heads, queries); counter: an int32
    that is 0 before and after a launch.
    """
    (batch, queries, heads, d), (_, keys, kv_heads, dv) = q.shape, v.shape
    dtype = cute.runtime.from_dlpack(q).element_type
    left, right = window
    tile_m, tile_n = tile or tile_of(d, dv, left is not None, right is not None)
    turns = d <= 128 if turns is None else turns
    draws = right is not None if draws is None else draws
    form = Form(dtype, d, dv, heads // kv_heads, tile_m, tile_n, left is not None, right is not None, turns, draws)
    q_layout, k_layout, v_layout, o_layout = layouts(form)
    rows, columns = [1, 3, 2, 0], [3, 1, 2, 0]
    load, put = cpasync.CopyBulkTensorTileG2SOp(), cpasync.CopyBulkTensorTileS2GOp()
    stage = (None, None, 0)
    tq = cpasync.make_tiled_tma_atom(load, tensor(q, rows), q_layout, (tile_m, d))
    tk = cpasync.make_tiled_tma_atom(load, tensor(k, rows), cute.slice_(k_layout, stage), (tile_n, d))
    tv = cpasync.make_tiled_tma_atom(load, tensor(v, columns), cute.slice_(v_layout, stage), (dv, tile_n))
    kind = warpgroup.SmemLayoutAtomKind.K_SW128
    piece = cute.tile_to_shape(warpgroup.make_smem_layout_atom(kind, dtype), (64, 64), (0, 1))
    to = cpasync.make_tiled_tma_atom(put, tensor(o, rows), piece, (64, 64))
    lse = cute.runtime.from_dlpack(lse)
    lse = cute.make_tensor(lse.iterator, cute.select(lse.mark_layout_dynamic(leading_dim=2).layout, mode=[2, 1, 0]))
    tiles = math.ceil(queries / tile_m) * heads * batch
    scale_log2 = softmax.LOG2_E * (1 / math.sqrt(d) if scale is None else scale)
    section = section_of(keys, d + dv, dtype.width // 8, heads // kv_heads)
    whole = [cute.Int32(x or 0) for x in (queries, keys, heads, batch, section, left, right)]
    args = (*tq, *tk, *tv, *to, lse, cute.runtime.from_dlpack(counter), *whole, cute.Float32(scale_log2))
    return kernel_of(form), args, min(tiles, sms), form.threads
