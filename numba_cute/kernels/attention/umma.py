# SPDX-License-Identifier: Apache-2.0
"""Attention on Blackwell (sm_100a, sm_103a), forward: O = softmax(scale Q K^T) V, and the log of each row's sum of
exponentials.

A persistent CTA takes two tiles of 128 queries at once, one after the other, each with a warpgroup for its softmax, so
that the tensor cores multiply for one while the other takes exponentials; few queries are one tile. S, P and O are in
tensor memory. One warp feeds shared memory by TMA (`load`), one issues tcgen05.mma (`multiply`), the warpgroups of
`softmax` read their S and write P in its place, and a last one (`correct`) scales O where a maximum has grown so much
that it must, beside the exponentials, and in the end writes it.

    products   a stage is a group's tile: S is complete, and with it the product before; then P is there, and O scaled
    rows       from softmax to correction: what each row of O is to be multiplied with, and in the end the log
    results    O is complete; then it has been read

A thread has rows as wgmma leaves them (umma_roles.py), so that softmax, masks, functions of scores, and how results
leave are those of Hopper. It has run in the simulator and through the assembler; on Blackwell itself it has not run.
"""

import functools

from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import cpasync
from numba_cute.pipeline import Agent, CooperativeGroup

from .schedule import TICKETS, begin_tickets
from .umma_correction import make_correction_role
from .umma_form import ROWS, lies
from .umma_load import make_load_role
from .umma_multiply import make_multiply_role
from .umma_parts import Given
from .umma_softmax import make_softmax_role


def make_kernel(form):
    """The kernel of a form."""
    dtype, groups, threads = form.dtype, form.groups, form.threads
    correction = 4 * groups  # its first warp; the warpgroups before it take softmax
    multiplies, loads = correction + 4, correction + 5
    softmax_registers, correction_registers, other_registers = form.registers
    q_stages, k_stages, v_stages = groups * form.q_stages, form.stages_k, form.stages_v
    (q_layout, k_layout, v_layout), _ = lies(form)
    each = dtype.width // 8
    q_bytes, k_bytes, v_bytes = ROWS * form.d * each, form.tile_n * form.d * each, form.tile_n * form.dv * each
    columns = max(32, 1 << (form.columns - 1).bit_length())
    load_tiles, multiply_tiles = make_load_role(form), make_multiply_role(form)
    soften_tiles, correct_tiles = make_softmax_role(form), make_correction_role(form)
    one, rows_of, both = (CooperativeGroup(Agent.Thread, n) for n in (1, ROWS, 2 * ROWS))

    @cuda.jit(launch_bounds=(threads, 1))
    def kernel(
        tma_q, mQ, tma_k, mK, tma_v, mV, mO, mL, counter, cu_q, cu_k, used, pages, sink, aux, splits, by_q, by_k,
        by_v, mask_aux, listed, queries, keys, order, left, right, scale, scale_log2,
    ):  # fmt: skip
        tidx, _, _ = arch.thread_idx()
        warp = arch.make_warp_uniform(arch.warp_idx())
        if warp == loads:
            cpasync.prefetch_descriptor(tma_q)
            cpasync.prefetch_descriptor(tma_k)
            cpasync.prefetch_descriptor(tma_v)

        smem = utils.SmemAllocator()
        sQ = smem.allocate_tensor(dtype, q_layout.outer, 1024, q_layout.inner, "sQ")
        sK = smem.allocate_tensor(dtype, k_layout.outer, 1024, k_layout.inner, "sK")
        sV = smem.allocate_tensor(dtype, v_layout.outer, 1024, v_layout.inner, "sV")
        slots = smem.allocate_tensor(cute.Float32, cute.make_layout((ROWS, 2, groups)), 16, None, "rows")
        q_pipe = pipeline.PipelineTmaUmma.create(
            num_stages=q_stages, producer_group=one, consumer_group=one, tx_count=q_bytes,
            barrier_storage=smem.allocate_array(cute.Int64, 2 * q_stages), defer_sync=True, name="Q",
        )  # fmt: skip
        k_pipe = pipeline.PipelineTmaUmma.create(
            num_stages=k_stages, producer_group=one, consumer_group=one, tx_count=k_bytes,
            barrier_storage=smem.allocate_array(cute.Int64, 2 * k_stages), defer_sync=True, name="K",
        )  # fmt: skip
        v_pipe = pipeline.PipelineTmaUmma.create(
            num_stages=v_stages, producer_group=one, consumer_group=one, tx_count=v_bytes,
            barrier_storage=smem.allocate_array(cute.Int64, 2 * v_stages), defer_sync=True, name="V",
        )  # fmt: skip
        products = pipeline.PipelineUmmaAsync.create(
            num_stages=groups, producer_group=one, consumer_group=both,
            barrier_storage=smem.allocate_array(cute.Int64, 2 * groups), defer_sync=True, name="products",
        )  # fmt: skip
        rows = pipeline.PipelineAsync.create(
            num_stages=groups, producer_group=rows_of, consumer_group=rows_of,
            barrier_storage=smem.allocate_array(cute.Int64, 2 * groups), defer_sync=True, name="rows",
        )  # fmt: skip
        results = pipeline.PipelineUmmaAsync.create(
            num_stages=groups, producer_group=one, consumer_group=rows_of,
            barrier_storage=smem.allocate_array(cute.Int64, 2 * groups), defer_sync=True, name="results",
        )  # fmt: skip
        tickets = smem.allocate_tensor(cute.Int32, cute.make_layout(TICKETS), 16, None, "tickets")
        told = smem.allocate_array(cute.Int64, 2 * TICKETS, name="told")
        if tidx == 0:
            begin_tickets(told, correction + 5)
        tmem = utils.TmemAllocator(
            smem.allocate_array(cute.Int32, 1), allocator_warp_id=correction,
            barrier_for_retrieve=pipeline.NamedBarrier(1, 32 * (correction + 5)),
        )  # fmt: skip
        pipeline.pipeline_init_arrive()
        pipeline.pipeline_init_wait()
        arch.griddepcontrol_launch_dependents()
        arch.griddepcontrol_wait()  # what was launched before has written Q, K and V
        given = Given(
            cu_q, cu_k, used, pages, sink, splits, listed, queries, keys, order, left, right, scale, scale_log2,
            tickets, told, cute.Int32(arch.block_idx()[0]), cute.Int32(arch.grid_dim()[0]),
        )  # fmt: skip

        if warp >= multiplies:
            arch.setmaxregister_decrease(other_registers)
            if warp == loads:
                load_tiles(
                    q_pipe.make_producer(), k_pipe.make_producer(), v_pipe.make_producer(), tma_q, mQ, tma_k, mK,
                    tma_v, mV, sQ, sK, sV, counter, given,
                )  # fmt: skip
            elif warp == multiplies:
                tmem.wait_for_alloc()
                multiply_tiles(
                    q_pipe.make_consumer(), q_pipe.make_consumer(), k_pipe.make_consumer(), v_pipe.make_consumer(),
                    products.make_producer(), results.make_producer(), tmem.retrieve_ptr(cute.Float32), sQ, sK, sV,
                    given,
                )  # fmt: skip
        elif warp >= correction:
            arch.setmaxregister_decrease(correction_registers)
            tmem.allocate(columns)
            tmem.wait_for_alloc()
            base = tmem.retrieve_ptr(cute.Float32)
            correct_tiles(
                v_pipe.make_consumer(), products.make_consumer(), rows.make_consumer(), results.make_consumer(), slots,
                base, sV, mO, mL, tidx % ROWS, given,
            )  # fmt: skip
            tmem.relinquish_alloc_permit()
            pipeline.NamedBarrier(2, ROWS).arrive_and_wait()  # all have read their results
            tmem.free(base)
        else:
            arch.setmaxregister_increase(softmax_registers)
            tmem.wait_for_alloc()
            ready, own, g = products.make_consumer(), rows.make_producer(), arch.make_warp_uniform(warp // 4)
            for _ in range(g):
                ready.advance()
                own.advance()
            soften_tiles(ready, own, slots, tmem.retrieve_ptr(cute.Float32), tidx % ROWS, g, aux, mask_aux, given)

    return kernel


kernel_of = functools.cache(make_kernel)
