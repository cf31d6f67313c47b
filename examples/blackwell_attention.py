# SPDX-License-Identifier: Apache-2.0
"""Attention on Blackwell, forward: O = softmax(Q K^T / sqrt(d)) V, with S, P and O in tensor memory.

A CTA takes two tiles of 128 queries, each with a warpgroup for its softmax, so that the tensor cores multiply for one
while the other takes exponentials. A thread has a row: it reads its S from tensor memory, writes its P in the same
columns, and scales its O there when the row's maximum has grown so much that it must. One pipeline, with a stage for
each tile, carries it all: a commit says that S is complete, and with it the product before, which was issued earlier;
the threads' release says that P is there.

It has run in the simulator and through the assembler; on Blackwell itself it has not run.

    python examples/blackwell_attention.py                                      a small problem, in the simulator
    python examples/blackwell_attention.py --causal --queries 300 --keys 300 --heads 2 --kv-heads 1 --head-dim 64
    python examples/blackwell_attention.py --compile-only                       PTX and cubin for sm_100a into out/
"""

import argparse
import functools
import math
import sys
from typing import NamedTuple

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import CopyUniversalOp, cpasync, make_tiled_tma_atom_A, make_tiled_tma_atom_B, tcgen05
from numba_cute.nvgpu.tcgen05 import CtaGroup, OperandMajorMode, OperandSource, Repetition
from numba_cute.pipeline import Agent, CooperativeGroup
from numba_cute.runtime import from_dlpack
from numba_cute.utils import sm100

import gemm_host

TILE, TILES = 128, 2  # queries of a tile, tiles of a CTA; keys of a block, too
KV_STAGES = 3
MMA_WARP, TMA_WARP, WARPS = 8, 9, 12  # of three warpgroups
SOFTMAX_REGISTERS, OTHER_REGISTERS = 224, 56
THREADS = 32 * WARPS
TARGET = "sm_100a"
GROWN = 8.0  # O and the sums are scaled when a maximum has grown by this power of 2: P stays below 2^8
PIECE = 32  # columns that a thread scales or stores at once
ONE, ROWS = CooperativeGroup(Agent.Thread), CooperativeGroup(Agent.Thread, TILE)
DTYPES = {"bf16": cute.BFloat16, "f16": cute.Float16}


class Form(NamedTuple):
    """The static part of a problem. group: query heads that share the keys and values of one."""

    dtype: cute.DType
    head_dim: int
    group: int
    causal: bool


def multiplies(form):
    """The tiled MMAs of S = Q K^T and of O = P V, whose A is in tensor memory."""
    K, MN = OperandMajorMode.K, OperandMajorMode.MN
    one, types = CtaGroup.ONE, (form.dtype, K)
    return (
        sm100.make_trivial_tiled_mma(*types, K, cute.Float32, one, (TILE, TILE)),
        sm100.make_trivial_tiled_mma(*types, MN, cute.Float32, one, (TILE, form.head_dim), OperandSource.TMEM),
    )


def layouts(form):
    """The layouts of Q, K, V and O in shared memory."""
    scores, values = multiplies(form)
    d, row = form.head_dim, utils.LayoutEnum.ROW_MAJOR
    q = sm100.make_smem_layout_a(scores, (TILE, TILE, d), form.dtype, TILES)
    k = sm100.make_smem_layout_b(scores, (TILE, TILE, d), form.dtype, KV_STAGES)
    v = sm100.make_smem_layout_b(values, (TILE, d, TILE), form.dtype, KV_STAGES)
    return q, k, v, sm100.make_smem_layout_epi(form.dtype, row, (TILE, d), TILES)


def make_kernel(form):
    """The kernel of a form."""
    dtype, d, group, causal = form
    scores, values = multiplies(form)
    q_layout, k_layout, v_layout, o_layout = layouts(form)
    s_layout = scores.make_fragment_C(scores.partition_shape_C((TILE, TILE))).layout
    p_fragment = values.make_fragment_A(values.partition_shape_A((TILE, TILE))).layout
    rows, part = cute.get(p_fragment, mode=[0, 0]), cute.get(p_fragment, mode=[0, 1])
    p_layout = cute.make_layout((rows.shape, TILE), stride=(rows.stride, part.stride))  # the same, row by row
    acc_layout = values.make_fragment_C(values.partition_shape_C((TILE, d))).layout
    load_words = cute.make_copy_atom(tcgen05.Ld32x32bOp(Repetition.x32), cute.Float32)
    store_p = cute.make_copy_atom(tcgen05.St32x32bOp(Repetition.x16), dtype)
    store_o = cute.make_copy_atom(tcgen05.St32x32bOp(Repetition.x32), cute.Float32)
    to_smem = cute.make_copy_atom(CopyUniversalOp(), dtype, 128)
    stage_bytes = TILE * d * dtype.width // 8

    @cuda.jit
    def blocks_of(first_query, keys):
        """Count the blocks of keys that a tile of queries sees."""
        seen = min(keys, first_query + TILE) if causal else keys
        return (seen + TILE - 1) // TILE

    @cuda.jit
    def leave_out(rS, coords, first_key, query, keys):
        """Mask the keys beyond the last, and those after the query."""
        last = min(keys, query + 1) if causal else keys
        for i in cute.range_constexpr(TILE):
            if first_key + coords[i][1] >= last:
                rS[i] = -math.inf

    @cuda.jit
    def scale(tO, thread, factor):
        """Multiply this thread's row of O."""
        load, store = tcgen05.make_tmem_copy(load_words, tO), tcgen05.make_tmem_copy(store_o, tO)
        source, target = load.get_slice(thread).partition_S(tO), store.get_slice(thread).partition_D(tO)
        rO = cute.make_rmem_tensor(PIECE, cute.Float32)
        for piece in cute.range_constexpr(d // PIECE):
            cute.copy(load, source[None, 0, piece], rO)
            arch.fence_view_async_tmem_load()
            rO.store(rO.load() * factor)
            cute.copy(store, rO, target[None, 0, piece])

    @cuda.jit
    def leave(tO, sO, thread, factor):
        """Multiply this thread's row of O and write it to shared memory."""
        load = tcgen05.make_tmem_copy(load_words, tO)
        store = cute.make_tiled_copy_D(to_smem, load)
        shape = load.get_slice(thread).partition_D(cute.make_identity_tensor((TILE, d))).shape
        rO, rounded = cute.make_rmem_tensor(shape, cute.Float32), cute.make_rmem_tensor(shape, dtype)
        cute.copy(load, load.get_slice(thread).partition_S(tO), rO)
        arch.fence_view_async_tmem_load()
        rounded.store((rO.load() * factor).to(dtype))
        cute.copy(store, store.retile(rounded), store.get_slice(thread).partition_D(sO))

    @cuda.jit
    def softmax(ready, tS, tP, tO, thread, query, keys, blocks, scale_log2):
        """Turn S into P, block by block, and scale O where a maximum has grown. Gives the maximum of this thread's row
        (that P was made with) and the sum of its P."""
        load, store = tcgen05.make_tmem_copy(load_words, tS), tcgen05.make_tmem_copy(store_p, tP)
        coords = load.get_slice(thread).partition_D(cute.make_identity_tensor((TILE, TILE)))
        source, target = load.get_slice(thread).partition_S(tS), store.get_slice(thread).partition_D(tP)
        rS, rP = cute.make_rmem_tensor(coords.shape, cute.Float32), cute.make_rmem_tensor(PIECE, dtype)
        highest, total = cute.Float32(-math.inf), cute.Float32(0)
        for block in range(blocks):
            ready.wait()  # for S, and for the product with the last P
            cute.copy(load, source, rS)
            arch.fence_view_async_tmem_load()
            first_key = block * TILE
            if first_key + TILE > (min(keys, query + 1) if causal else keys):
                leave_out(rS, coords, first_key, query, keys)
            top = rS.load().reduce(cute.ReductionOp.MAX, -math.inf) * scale_log2
            if arch.vote_any_sync(top > highest + cute.Float32(GROWN)):
                new = max(highest, top)
                factor = cute.math.exp2(highest - new)
                highest, total = new, total * factor
                if block > 0:
                    scale(tO, thread, factor)
            for piece in cute.range_constexpr(TILE // PIECE):
                p = cute.math.exp2(rS[None, 0, piece].load() * scale_log2 - highest)
                total += p.reduce(cute.ReductionOp.ADD, 0.0)
                rP.store(p.to(dtype))
                cute.copy(store, rP, target[None, 0, piece])
            arch.fence_view_async_tmem_store()
            ready.release()
            ready.advance()  # the other tile's stage
            ready.advance()
        return highest, total

    @cuda.jit(launch_bounds=(THREADS, 1))
    def kernel(tma_q, mQ, tma_k, mK, tma_v, mV, tma_o, mO, lse, queries, keys, scale_log2):
        tidx, _, _ = arch.thread_idx()
        pair, head, _ = arch.block_idx()
        warp = arch.make_warp_uniform(arch.warp_idx())
        first_query, kv_head = pair * TILES * TILE, head // group
        if warp == TMA_WARP:
            cpasync.prefetch_descriptor(tma_q)
            cpasync.prefetch_descriptor(tma_k)
            cpasync.prefetch_descriptor(tma_v)
            cpasync.prefetch_descriptor(tma_o)

        smem = utils.SmemAllocator()
        sQ = smem.allocate_tensor(dtype, q_layout.outer, 1024, q_layout.inner, "sQ")
        sK = smem.allocate_tensor(dtype, k_layout.outer, 1024, k_layout.inner, "sKV")
        sV = cute.make_tensor(sK.iterator, v_layout.outer)  # keys and values take turns in the same stages
        sO = smem.allocate_tensor(dtype, o_layout.outer, 1024, o_layout.inner, "sO")
        q_pipe = pipeline.PipelineTmaUmma.create(
            num_stages=TILES, producer_group=ONE, consumer_group=ONE, tx_count=stage_bytes,
            barrier_storage=smem.allocate_array(cute.Int64, 2 * TILES), defer_sync=True, name="Q",
        )  # fmt: skip
        kv_pipe = pipeline.PipelineTmaUmma.create(
            num_stages=KV_STAGES, producer_group=ONE, consumer_group=ONE, tx_count=stage_bytes,
            barrier_storage=smem.allocate_array(cute.Int64, 2 * KV_STAGES), defer_sync=True, name="KV",
        )  # fmt: skip
        work = pipeline.PipelineUmmaAsync.create(  # a stage is a tile
            num_stages=TILES, producer_group=ONE, consumer_group=ROWS,
            barrier_storage=smem.allocate_array(cute.Int64, 2 * TILES), defer_sync=True, name="tiles",
        )  # fmt: skip
        tmem = utils.TmemAllocator(
            smem.allocate_array(cute.Int32, 1), barrier_for_retrieve=pipeline.NamedBarrier(1, 32 * (MMA_WARP + 1))
        )
        pipeline.pipeline_init_arrive()
        pipeline.pipeline_init_wait()

        blocks = blocks_of(first_query, keys), blocks_of(first_query + TILE, keys)
        most = max(blocks[0], blocks[1])

        if warp >= MMA_WARP:
            arch.setmaxregister_decrease(OTHER_REGISTERS)
            if warp == TMA_WARP:
                gQ = cute.local_tile(mQ[None, None, head], (TILE, d), (None, 0))
                gK = cute.local_tile(mK[None, None, kv_head], (TILE, d), (None, 0))
                gV = cute.local_tile(mV[None, None, kv_head], (d, TILE), (0, None))
                tQsQ, tQgQ = cpasync.tma_partition(
                    tma_q, 0, cute.make_layout(1), cute.group_modes(sQ, 0, 3),
                    cute.group_modes(scores.get_slice(0).partition_A(gQ), 0, 3),
                )  # fmt: skip
                tKsK, tKgK = cpasync.tma_partition(
                    tma_k, 0, cute.make_layout(1), cute.group_modes(sK, 0, 3),
                    cute.group_modes(scores.get_slice(0).partition_B(gK), 0, 3),
                )  # fmt: skip
                tVsV, tVgV = cpasync.tma_partition(
                    tma_v, 0, cute.make_layout(1), cute.group_modes(sV, 0, 3),
                    cute.group_modes(values.get_slice(0).partition_B(gV), 0, 3),
                )  # fmt: skip
                loads_q, loads_kv = q_pipe.make_producer(), kv_pipe.make_producer()
                for tile in range(TILES):
                    stage = loads_q.acquire_and_advance()
                    cute.copy(
                        tma_q, tQgQ[None, TILES * pair + tile], tQsQ[None, stage.index], tma_bar_ptr=stage.barrier
                    )
                for block in range(most):
                    stage = loads_kv.acquire_and_advance()
                    cute.copy(tma_k, tKgK[None, block], tKsK[None, stage.index], tma_bar_ptr=stage.barrier)
                    stage = loads_kv.acquire_and_advance()
                    cute.copy(tma_v, tVgV[None, block], tVsV[None, stage.index], tma_bar_ptr=stage.barrier)
                loads_kv.tail()

            elif warp == MMA_WARP:
                tmem.wait_for_alloc()
                base = tmem.retrieve_ptr(cute.Float32)
                fQ, fK, fV = scores.make_fragment_A(sQ), scores.make_fragment_B(sK), values.make_fragment_B(sV)
                full_q, full_kv, tiles = q_pipe.make_consumer(), kv_pipe.make_consumer(), work.make_producer()
                key = full_kv.wait_and_advance()
                for tile in cute.range_constexpr(TILES):
                    full_q.wait_and_advance()
                    product = tiles.acquire_and_advance()
                    multiply(scores, cute.make_tensor(base + tile * TILE, s_layout), fQ[None, None, None, tile],
                             fK[None, None, None, key.index], False)  # fmt: skip
                    product.commit()
                key.release()
                for block in range(most):
                    value = full_kv.wait_and_advance()
                    more = block + 1 < most
                    if more:
                        key = full_kv.wait_and_advance()
                    for tile in cute.range_constexpr(TILES):
                        if block < blocks[tile]:
                            product = tiles.acquire()  # P is there, and O is scaled
                            ptr = base + tile * TILE
                            fP = cute.make_tensor(cute.recast_ptr(ptr, dtype=dtype), p_fragment)
                            tO = cute.make_tensor(base + TILES * TILE + tile * d, acc_layout)
                            multiply(values, tO, fP, fV[None, None, None, value.index], block > 0)
                            if block + 1 < blocks[tile]:
                                multiply(scores, cute.make_tensor(ptr, s_layout), fQ[None, None, None, tile],
                                         fK[None, None, None, key.index], False)  # fmt: skip
                            product.commit()
                        tiles.advance()
                    value.release()
                    if more:
                        key.release()

        else:
            arch.setmaxregister_increase(SOFTMAX_REGISTERS)
            tmem.allocate(512)
            tmem.wait_for_alloc()
            base = tmem.retrieve_ptr(cute.Float32)
            tile, thread = warp // 4, tidx % TILE
            query = first_query + tile * TILE + thread
            ptr = base + tile * TILE
            tS = cute.make_tensor(ptr, s_layout)[(None, None), 0, 0]
            tP = cute.make_tensor(cute.recast_ptr(ptr, dtype=dtype), p_layout)
            tO = cute.make_tensor(base + TILES * TILE + tile * d, acc_layout)[(None, None), 0, 0]
            ready = work.make_consumer()
            if tile == 1:
                ready.advance()
            mine = blocks[0] if tile == 0 else blocks[1]
            highest, total = softmax(ready, tS, tP, tO, thread, query, keys, mine, scale_log2)
            ready.wait()  # for the last product
            if query < queries:
                lse[query, head] = (highest + cute.math.log2(total)) * cute.Float32(math.log(2))
            leave(tO, cute.local_tile(sO, (TILE, d), (0, 0, tile)), thread, cute.Float32(1) / total)
            arch.fence_proxy("async.shared", space="cta")
            pipeline.NamedBarrier(2 + tile, TILE).arrive_and_wait()
            if warp % 4 == 0:
                gO = cute.local_tile(mO[None, None, head], (TILE, d), (None, 0))
                tOsO, tOgO = cpasync.tma_partition(
                    tma_o, 0, cute.make_layout(1), cute.group_modes(sO, 0, 2), cute.group_modes(gO, 0, 2)
                )
                cute.copy(tma_o, tOsO[None, tile], tOgO[None, TILES * pair + tile])
                arch.cp_async_bulk_commit_group()
                arch.cp_async_bulk_wait_group(0, read=True)
            tmem.relinquish_alloc_permit()
            pipeline.NamedBarrier(4, 32 * MMA_WARP).arrive_and_wait()
            tmem.free(base)

    return kernel


@cuda.jit
def multiply(tiled_mma, acc, a, b, accumulate):
    """acc (+)= a @ b.T, over all of K."""
    for k in cute.range_constexpr(cute.size(a, mode=[2])):
        adds = tiled_mma.set(tcgen05.Field.ACCUMULATE, accumulate or k > 0)
        cute.gemm(adds, acc, a[None, None, k], b[None, None, k], acc)


class Problem(NamedTuple):
    """Arrays: q, o (queries, heads, d), k, v (keys, KV heads, d), lse (queries, heads) in float32."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    o: np.ndarray
    lse: np.ndarray


def problem(queries, keys, heads, kv_heads, head_dim, dtype, seed=0):
    """Normal random Q, K and V, and poisoned O and LSE."""
    rng = np.random.default_rng(seed)
    q, k, v = (
        gemm_host.random(rng, (n, h, head_dim), dtype)
        for n, h in ((queries, heads), (keys, kv_heads), (keys, kv_heads))
    )
    return Problem(q, k, v, np.full_like(q, math.nan), np.full((queries, heads), math.nan, np.float32))


def reference(p, causal):
    """O and LSE in float64."""
    q, k, v = (x.astype(np.float64) for x in p[:3])
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    s = np.einsum("qhd,khd->hqk", q, k) / math.sqrt(q.shape[2])
    if causal:
        s = np.where(np.arange(k.shape[0])[None, :] <= np.arange(q.shape[0])[:, None], s, -math.inf)
    top = s.max(-1, keepdims=True)
    weights = np.exp(s - top)
    total = weights.sum(-1, keepdims=True)
    return np.einsum("hqk,khd->qhd", weights / total, v), (top + np.log(total))[..., 0].T


def check(p, causal):
    """The relative error of O against float64; an exception if it is more than rounding can do."""
    want, lse = reference(p, causal)
    unit = {"bfloat16": 2.0**-8, "float16": 2.0**-11}[p.o.dtype.name]
    got = p.o.astype(np.float64)
    error = np.linalg.norm(got - want) / np.linalg.norm(want)
    if not (np.abs(got - want) <= 4 * unit * (np.abs(want) + np.abs(p.v.astype(np.float64)).max() / 8)).all():
        raise SystemExit(f"WRONG: relative error of O {error}")
    if not np.abs(p.lse - lse).max() <= 1e-4:
        raise SystemExit(f"WRONG: LSE is off by {np.abs(p.lse - lse).max()}")
    return error


def tensor(array, modes):
    """A tensor over an array (rows, heads, d) with its modes in another order; extents are known at run time."""
    t = from_dlpack(array, assumed_align=16).mark_layout_dynamic(leading_dim=2)
    return cute.make_tensor(t.iterator, cute.select(t.layout, mode=modes))


kernel_of = functools.cache(make_kernel)


def arguments(p, causal):
    """The kernel, its arguments and grid for arrays of the host (to simulate or compile) or of the device."""
    (queries, heads, d), (keys, kv_heads, _) = p.q.shape, p.k.shape
    dtype = from_dlpack(p.q).element_type
    form = Form(dtype, d, heads // kv_heads, causal)
    scores, values = multiplies(form)
    q_layout, k_layout, v_layout, o_layout = layouts(form)
    rows, columns = [0, 2, 1], [2, 0, 1]
    load, put = cpasync.CopyBulkTensorTileG2SOp(), cpasync.CopyBulkTensorTileS2GOp()
    stage = (None, None, None, 0)
    tq = make_tiled_tma_atom_A(load, tensor(p.q, rows), cute.slice_(q_layout, stage), (TILE, TILE, d), scores)
    tk = make_tiled_tma_atom_B(load, tensor(p.k, rows), cute.slice_(k_layout, stage), (TILE, TILE, d), scores)
    tv = make_tiled_tma_atom_B(load, tensor(p.v, columns), cute.slice_(v_layout, stage), (TILE, d, TILE), values)
    to = cpasync.make_tiled_tma_atom(put, tensor(p.o, rows), cute.select(o_layout, mode=[0, 1]), (TILE, d))
    lse = from_dlpack(p.lse)
    numbers = cute.Int32(queries), cute.Int32(keys), cute.Float32(math.log2(math.e) / math.sqrt(d))
    return kernel_of(form), (*tq, *tk, *tv, *to, lse, *numbers), (math.ceil(queries / (TILES * TILE)), heads)


def simulate(p, causal, **options):
    """Run the attention in the simulator."""
    kernel, args, grid = arguments(p, causal)
    cute.simulate(kernel, arch=TARGET, **options)[grid, THREADS](*args)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("queries", 256), ("keys", 256), ("heads", 1), ("kv-heads", 1), ("head-dim", 128)):
        options.add_argument(f"--{name}", type=int, default=default)
    options.add_argument("--dtype", choices=tuple(DTYPES), default="bf16")
    options.add_argument("--causal", action="store_true", help="a query sees the keys up to its own number")
    options.add_argument("--arch", default="sm_100a", help="the target of --compile-only")
    options.add_argument("--compile-only", action="store_true", help="write PTX and cubin into out/; needs no GPU")
    args = options.parse_args()
    shape = args.queries, args.keys, args.heads, args.kv_heads, args.head_dim
    p = problem(*shape, DTYPES[args.dtype])
    if args.compile_only:
        kernel, made, _ = arguments(p, args.causal)
        gemm_host.compile_only(kernel, made, f"blackwell_attention_{args.dtype}_{args.head_dim}", args.arch)
        return
    simulate(p, args.causal, progress=sys.stderr.isatty())
    print(f"queries, keys, heads, KV heads, d {shape}: relative error against float64 {check(p, args.causal):.2e}")


if __name__ == "__main__":
    main()
