# SPDX-License-Identifier: Apache-2.0
"""GEMMs of one tile along M and several along N, with operands by plain stores, whose results leave by
`utils.gemm.sm100`."""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, seam, utils
from numba_cute.nvgpu import cpasync, tcgen05
from numba_cute.nvgpu.tcgen05 import Field
from numba_cute.pipeline import Agent, CooperativeGroup
from numba_cute.runtime import from_dlpack

from ..nvgpu import umma_kernels as umma

THREADS, STAGES, TILES = 160, 2, 3
EPILOGUE = CooperativeGroup(Agent.Thread, 128)


@seam.traced
def doubled(values):
    return values * values.dtype(2)


class Problem:
    """What the kernel and its caller know: the operation, C's type and order, and the parts in which it leaves."""

    def __init__(self, op, k, c_type, order, c_stages=2):
        self.op, self.mma, self.k, self.c_type = op, cute.make_tiled_mma(op), k, c_type
        self.ctas = op.cta_group.value
        self.m, self.n, self.k_of_one = op.shape_mnk
        cta = (self.m // self.ctas, self.n, k)
        self.epi_tile = utils.sm100.compute_epilogue_tile_shape(cta, self.ctas == 2, order, c_type)
        self.params = utils.gemm.sm100.EpilogueParams(
            op.accumulator, c_type, order, cta, self.ctas == 2, num_c_stage=c_stages
        )
        self.c_layout = utils.sm100.make_smem_layout_epi(c_type, order, self.epi_tile, c_stages)

    def tma(self, c):
        one = cute.slice_(self.c_layout, (None, None, 0))
        op = cpasync.CopyBulkTensorTileS2GOp()
        return tuple(cpasync.make_tiled_tma_atom(op, from_dlpack(c), one, self.epi_tile))


def fill(size_a, size_b):
    @cuda.jit(device=True)
    def filled(a, b, s_a, s_b, tid, rank):
        for i in range(tid, size_a, THREADS):
            s_a[i] = a[rank, i]
        for t in range(TILES):
            for i in range(tid, size_b, THREADS):
                s_b[None, None, None, t][i] = b[t, rank, i]
        arch.fence_proxy("async.shared", space="cta")

    return filled


def multiplier(mma, overlaps):
    @seam.traced
    def multiply(results, state, accs, s_a, s_b):
        acc = accs[None, None, None, state.phase ^ 1 if overlaps else state.index]
        results.producer_acquire(state)
        cute.gemm(mma.set(Field.ACCUMULATE, False), acc, mma.make_fragment_A(s_a), mma.make_fragment_B(s_b), acc)
        results.producer_commit(state)

    return multiply


def layouts(p):
    """Shared memory for A and for all of B's tiles, and the accumulators."""
    mma, type_b = p.mma, umma.held(p.op.b_type)
    shape_a, shape_b = mma.partition_shape_A((p.m, p.k)), mma.partition_shape_B((p.n, p.k))
    lay_a = umma.smem_layout(shape_a, umma.held(p.op.a_type), "K", "SW128")
    kind = tcgen05.make_smem_layout_atom(tcgen05.SmemLayoutAtomKind.K_SW128, type_b)
    fragment = mma.make_fragment_C((*mma.partition_shape_C((p.m, p.n)), STAGES))
    return lay_a, tcgen05.tile_to_mma_shape(kind, (*shape_b, TILES), (0, 1, 2)), fragment


def overlapping(lay, n, shared):
    """The accumulators' layout, whose two places share so many columns, if any."""
    return cute.make_layout(lay.shape, stride=(*lay.stride[:3], n - shared)) if shared else lay


def direct(p, op, bounded, overlaps):
    mma, tile = p.mma, (p.m, p.n)

    @seam.traced
    def store(c, rank, tid, acc, t, state, results):
        """Store tile `t` from registers: all of it, or what lies in `c`."""
        part = lambda x: mma.get_slice(rank).partition_C(cute.local_tile(x, tile, (None, None)))  # noqa: E731
        return utils.epilogue(
            p.params, tid, acc, part(c), p.epi_tile, op, (0, t), state, results,
            tCcC_base=part(cute.make_identity_tensor(c.shape)) if bounded else None, mC_mnl=c if bounded else None,
            overlapping_accum=overlaps,
        )  # fmt: skip

    return store


def gemm(p, by_tma, op=None, each_thread=False, bounded=False, shared=0):
    """A kernel (a, b, c): c is C's tensor, or TMA's atom and tensor. bounded: C may be smaller than its tiles. shared:
    columns that the two places of the accumulators' one stage share."""
    m, n, ctas, mma, params, epi_tile = p.m, p.n, p.ctas, p.mma, p.params, p.epi_tile
    type_a, type_b, c_type, acc_type = umma.held(p.op.a_type), umma.held(p.op.b_type), p.c_type, p.op.accumulator
    lay_a, lay_b, fragment = layouts(p)
    filled, multiply = fill(cute.size(lay_a), cute.size(lay_b) // TILES), multiplier(mma, shared > 0)
    c_layout, vmnk, store = p.c_layout, cute.make_layout((ctas, 1, 1, 1)), direct(p, op, bounded, shared > 0)
    stages, acc_layout = 1 if shared else STAGES, overlapping(fragment.layout, n, shared)
    consumers, columns = 4 * ctas * (32 if each_thread else 1), utils.get_num_tmem_alloc_cols(fragment)

    @cute.cluster_shape(ctas, 1)
    @cuda.jit
    def kernel(a, b, c):
        tid, _, _ = arch.thread_idx()
        warp = arch.make_warp_uniform(arch.warp_idx())
        rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
        smem = utils.SmemAllocator()
        s_a = smem.allocate_tensor(type_a, lay_a.outer, 1024, lay_a.inner)
        s_b = smem.allocate_tensor(type_b, lay_b.outer, 1024, lay_b.inner)
        s_c = smem.allocate_tensor(c_type, c_layout.outer, 1024, c_layout.inner)
        results = pipeline.PipelineUmmaAsync.create(
            num_stages=stages, producer_group=CooperativeGroup(Agent.Thread),
            consumer_group=CooperativeGroup(Agent.Thread, consumers), cta_layout_vmnk=vmnk,
            barrier_storage=smem.allocate_array(cute.Int64, 2 * stages), defer_sync=True,
        )  # fmt: skip
        tmem = utils.TmemAllocator(None, pipeline.NamedBarrier(2, THREADS), 0, ctas == 2)
        filled(a, b, s_a, s_b, tid, rank)
        pipeline.pipeline_init_arrive((ctas, 1))
        pipeline.pipeline_init_wait((ctas, 1))
        tmem.allocate(columns)
        tmem.wait_for_alloc()
        acc = cute.make_tensor(tmem.retrieve_ptr(acc_type), acc_layout)
        if warp == 4:
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, stages)
            for t in range(TILES):
                if rank == 0:
                    multiply(results, state, acc, s_a, s_b[None, None, None, t])
                state.advance()
            results.producer_tail(state)
        else:
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, stages)
            if by_tma:
                atom, coords = c
                stores = pipeline.PipelineTmaStore.create(num_stages=2, producer_group=EPILOGUE)
                mine = mma.get_slice(rank).partition_C(cute.local_tile(coords, (m, n), (None, None)))
                for t in range(TILES):
                    state = utils.epilogue_tma_store(
                        params, tid, warp, atom, acc, s_c, mine, epi_tile, t, op, (0, t), state, results, stores
                    )
                if warp == 0:
                    stores.producer_tail()
            else:
                for t in range(TILES):
                    state = store(c, rank, tid, acc, t, state, results)
        tmem.wait_for_alloc()
        tmem.relinquish_alloc_permit()
        tmem.free(acc.iterator)

    return kernel


def operands(p, rng):
    """(a, b) as the kernel takes them, and their product (M, TILES * N) in float64."""
    low = 0 if p.op.a_type is cute.Uint8 else -2
    a = rng.integers(low, 3, (p.m, p.k)).astype(np.float64)
    b = rng.integers(low, 3, (TILES, p.n, p.k)).astype(np.float64)
    numpy_a, numpy_b = (umma.held(t).numpy for t in (p.op.a_type, p.op.b_type))
    a_in = umma.parts(a.astype(numpy_a), p.m, p.k_of_one, p.ctas)
    b_in = np.stack([umma.parts(x.astype(numpy_b), p.n, p.k_of_one, p.ctas) for x in b])
    return a_in, b_in, np.concatenate([a @ x.T for x in b], axis=1)
