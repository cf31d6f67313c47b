# SPDX-License-Identifier: Apache-2.0
"""A kernel whose operands TMA loads as tcgen05.mma takes them apart, by one CTA or a pair, multicast or not."""

from numba import cuda

import numba_cute as cute
from numba_cute import arch, layout, nvgpu, pipeline, seam, utils
from numba_cute.nvgpu import cpasync, tcgen05
from numba_cute.nvgpu.tcgen05 import Field
from numba_cute.pipeline import Agent, CooperativeGroup
from numba_cute.utils import sm100

from .umma_kernels import fence_after, fence_before, meet, read_words, result_words

STAGES, THREADS = 2, 128


def vmnk(mma, cluster):
    """The cluster's CTAs as (of a pair, M, N, K)."""
    return cute.tiled_divide(cute.make_layout((*cluster, 1)), (mma.thr_id.shape,))


def smem_layouts(mma, tile):
    op = mma.op
    return (
        sm100.make_smem_layout_a(mma, tile, op.a_type, STAGES),
        sm100.make_smem_layout_b(mma, tile, op.b_type, STAGES),
    )


def atoms(mma, tile, cluster, a, b):
    """The TMA atoms of A and B, with their tensors."""
    one = [cute.slice_(lay, (None, None, None, 0)) for lay in smem_layouts(mma, tile)]
    shape = vmnk(mma, cluster).shape
    load_a = sm100.cluster_shape_to_tma_atom_A(cluster, mma.thr_id)
    load_b = sm100.cluster_shape_to_tma_atom_B(cluster, mma.thr_id)
    return (
        *nvgpu.make_tiled_tma_atom_A(load_a, a, one[0], tile, mma, shape),
        *nvgpu.make_tiled_tma_atom_B(load_b, b, one[1], tile, mma, shape),
    )


@seam.traced
def part(atom, at, sharing, smem, gmem):
    """What this CTA copies of an operand: (in shared memory, in global memory), each (box, tiles…)."""
    return cpasync.tma_partition(
        atom, at, cute.make_layout(sharing), cute.group_modes(smem, 0, 3), cute.group_modes(gmem, 0, 3)
    )


def product_of(mma, acc_layout):
    """What one warp does with a stage: its multiplies."""

    @seam.traced
    def product(tmem, s_a, s_b, stage, first):
        acc = cute.make_tensor(tmem, acc_layout)
        f_a, f_b = mma.make_fragment_A(s_a), mma.make_fragment_B(s_b)
        made = mma.set(Field.ACCUMULATE, first)
        for i in range(cute.size(f_a, mode=[2])):
            coord = (None, None, i, stage)
            cute.gemm(made, acc, f_a[coord], f_b[coord], acc)
            made = mma.set(Field.ACCUMULATE, True)

    return product


def partitions_of(mma, tile, at_m, at_n):
    """What a CTA loads of A and B: (in shared memory, in global memory), each (box, blocks of K)."""
    m, n, k = tile

    @seam.traced
    def partitions(tma_a, a, tma_b, b, s_a, s_b, coord, tile_m, tile_n):
        mine = mma.get_slice(coord[0])
        g_a = mine.partition_A(cute.local_tile(a, (m, k), (None, None)))
        g_b = mine.partition_B(cute.local_tile(b, (n, k), (None, None)))
        to_a, from_a = part(tma_a, coord[2], at_n, s_a, g_a)
        to_b, from_b = part(tma_b, coord[1], at_m, s_b, g_b)
        return to_a, from_a[None, tile_m, None], to_b, from_b[None, tile_n, None]

    return partitions


@seam.traced
def make_mainloop(bars, lay_cluster, expected):
    _, m, n, _ = lay_cluster.shape
    return pipeline.PipelineTmaUmma.create(
        num_stages=STAGES, producer_group=CooperativeGroup(Agent.Thread),
        consumer_group=CooperativeGroup(Agent.Thread, m + n - 1), tx_count=expected,
        barrier_storage=bars, cta_layout_vmnk=lay_cluster, defer_sync=True, name="mainloop",
    )  # fmt: skip


@cuda.jit(device=True)
def load(mainloop, tma_a, from_a, to_a, mask_a, tma_b, from_b, to_b, mask_b, blocks):
    """What the loading warp does."""
    producer = mainloop.make_producer()
    for i in range(blocks):
        stage = producer.acquire_and_advance()
        to = None, stage.index
        cute.copy(tma_a, from_a[None, i], to_a[to], tma_bar_ptr=stage.barrier, mcast_mask=mask_a)
        cute.copy(tma_b, from_b[None, i], to_b[to], tma_bar_ptr=stage.barrier, mcast_mask=mask_b)
    producer.tail()


def bytes_of(dtype, lay):
    """Of one stage."""
    return layout.size_in_bytes(dtype, cute.slice_(lay, (None, None, None, 0)).outer)


def gemm(op, tile, cluster):
    """A kernel (tma_a, a, tma_b, b, out, blocks): each CTA or pair multiplies one tile of `blocks` of K; out (CTAs of
    the cluster, 128, words)."""
    mma, v = cute.make_tiled_mma(op), op.cta_group.value
    lay_a, lay_b = smem_layouts(mma, tile)
    lay_cluster = vmnk(mma, cluster)
    _, at_m, at_n, _ = lay_cluster.shape
    words = result_words(op, tile)
    product = product_of(mma, mma.make_fragment_C(mma.partition_shape_C(tile[:2])).layout)
    partitions = partitions_of(mma, tile, at_m, at_n)
    expected = v * (bytes_of(op.a_type, lay_a) + bytes_of(op.b_type, lay_b))

    @cute.cluster_shape(*cluster)
    @cuda.jit
    def kernel(tma_a, a, tma_b, b, out, blocks):
        tid, x, y = arch.thread_idx()[0], *arch.block_idx()[:2]
        warp = arch.make_warp_uniform(arch.warp_idx())
        rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
        coord = lay_cluster.get_flat_coord(rank)
        smem = utils.SmemAllocator()
        s_a = smem.allocate_tensor(op.a_type, lay_a.outer, 1024, lay_a.inner)
        s_b = smem.allocate_tensor(op.b_type, lay_b.outer, 1024, lay_b.inner)
        bars, bar = smem.allocate_array(cute.Int64, 2 * STAGES), smem.allocate_array(cute.Int64, 1)
        slot = smem.allocate_array(cute.Int32, 1)
        mainloop = make_mainloop(bars, lay_cluster, expected)
        meet()  # a pair's allocation takes columns of both CTAs, which must have started
        if warp == 0:
            arch.alloc_tmem(512, slot, v == 2)
            fence_before()
        if tid == 0:
            arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        pipeline.pipeline_init_arrive(cluster)
        pipeline.pipeline_init_wait(cluster)
        fence_after()
        tmem = arch.retrieve_tmem_ptr(op.accumulator, 16, slot)
        if warp == 1:
            to_a, from_a, to_b, from_b = partitions(tma_a, a, tma_b, b, s_a, s_b, coord, x // v, y)
            mask_a = cpasync.create_tma_multicast_mask(lay_cluster, coord, 2)
            mask_b = cpasync.create_tma_multicast_mask(lay_cluster, coord, 1)
            load(mainloop, tma_a, from_a, to_a, mask_a, tma_b, from_b, to_b, mask_b, blocks)
        elif warp == 0 and coord[0] == 0:
            consumer = mainloop.make_consumer()
            for i in range(blocks):
                stage = consumer.wait_and_advance()
                product(tmem, s_a, s_b, stage.index, i > 0)
                stage.release()
            tcgen05.commit(bar, None if v == 1 else 3 << rank, op.cta_group)
        arch.mbarrier_wait(bar, 0)
        got = cute.make_rmem_tensor(words, cute.Uint32)
        read_words(got, tmem, warp, words)
        for j in cute.range_constexpr(words):
            out[x, y, tid, j] = got[j]
        meet()
        if warp == 0:
            arch.dealloc_tmem(tmem, 512, v == 2)

    return kernel
