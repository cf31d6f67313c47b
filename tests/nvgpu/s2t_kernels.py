# SPDX-License-Identifier: Apache-2.0
"""Kernels that copy from shared to tensor memory by make_s2t_copy."""

from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import tcgen05

from .tmem_kernels import words
from .umma_kernels import fence_after, meet

THREADS = 128


def copier(atom, there, here, swizzle, count, columns):
    """A kernel (x, out): x (CTAs, count) fills shared memory, which has the layout `here`; tensor memory of the layout
    `there` gets it; out (CTAs, 128, columns) are its words."""
    op, dtype = atom.op, atom.value_type
    ctas, group = op.cta_group.value, op.cta_group

    @cute.cluster_shape(ctas, 1)
    @cuda.jit
    def kernel(x, out):
        tid, _, _ = arch.thread_idx()
        warp = arch.make_warp_uniform(arch.warp_idx())
        rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
        smem = utils.SmemAllocator()
        flat = smem.allocate_tensor(dtype, cute.make_layout(count), 1024, swizzle)
        bar = smem.allocate_array(cute.Int64, 1)
        tmem = utils.TmemAllocator(None, pipeline.NamedBarrier(1, THREADS), 0, ctas == 2)
        if tid == 0:
            arch.mbarrier_init(bar, 1)
        for i in range(tid, count, THREADS):
            flat[i] = x[rank, i]
        arch.fence_proxy("async.shared", space="cta")
        pipeline.pipeline_init_arrive((ctas, 1))
        pipeline.pipeline_init_wait((ctas, 1))
        tmem.allocate(columns)
        tmem.wait_for_alloc()
        to = cute.make_tensor(tmem.retrieve_ptr(dtype), there)
        raw = cute.make_rmem_tensor(columns, cute.Uint32)
        for j in cute.range_constexpr(columns):
            raw[j] = 0
        words(raw, to.iterator, warp, columns, True)
        meet()
        if warp == 0 and rank == 0:
            tiled = tcgen05.make_s2t_copy(atom, to)
            mine = tiled.get_slice(0)
            source = mine.partition_S(cute.make_tensor(flat.iterator, here))
            cute.copy(tiled, tcgen05.get_s2t_smem_desc_tensor(tiled, source), mine.partition_D(to))
            tcgen05.commit(bar, 3 if ctas == 2 else None, group)
        arch.mbarrier_wait(bar, 0)
        fence_after()
        words(raw, to.iterator, warp, columns, False)
        for j in cute.range_constexpr(columns):
            out[rank, tid, j] = raw[j]
        tmem.wait_for_alloc()
        tmem.relinquish_alloc_permit()
        tmem.free(to.iterator)

    return kernel
