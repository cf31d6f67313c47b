# SPDX-License-Identifier: Apache-2.0
"""TmemAllocator and TmemBufferPool: who allocates, who learns the address, parts, pairs, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, seam, utils
from numba_cute.nvgpu import tcgen05
from numba_cute.nvgpu.tcgen05 import Repetition
from numba_cute.tensor.pointer import AddressSpace, Pointer
from numba_cute.tensor.tensor import Tensor

LANE = 1 << 16
TILE = cute.make_layout((128, 32), stride=(LANE, 1))
LOAD = cute.make_copy_atom(tcgen05.Ld32x32bOp(Repetition.x32), cute.Float32)
STORE = cute.make_copy_atom(tcgen05.St32x32bOp(Repetition.x32), cute.Float32)


@cute.struct
class Storage:
    dealloc: cute.Int64
    holding: cute.Int32


def through(tensor_of, ctas=1, threads=160, allocator=4, given=True, columns=64):
    """A kernel (x, out) whose first four warps move x (ctas, 128, 32) by way of tensor memory that another allocates.
    tensor_of: gives the tensor of an allocator. given: whether it is given its words of shared memory."""

    @cute.cluster_shape(ctas, 1)
    @cuda.jit
    def kernel(x, out):
        tid, _, _ = arch.thread_idx()
        warp = arch.make_warp_uniform(arch.warp_idx())
        rank = arch.block_idx_in_cluster()
        barrier = pipeline.NamedBarrier(1, threads)
        if given:
            storage = utils.SmemAllocator().allocate(Storage)
            tmem = utils.TmemAllocator(
                storage.holding.ptr, barrier_for_retrieve=barrier, allocator_warp_id=allocator, is_two_cta=ctas == 2,
                two_cta_tmem_dealloc_mbar_ptr=storage.dealloc.ptr,
            )  # fmt: skip
        else:
            tmem = utils.TmemAllocator(None, barrier, allocator, ctas == 2)
        pipeline.pipeline_init_arrive((ctas, 1))
        pipeline.pipeline_init_wait((ctas, 1))
        there = tensor_of(tmem, columns)
        if warp < 4:
            stored, loaded = cute.make_rmem_tensor(32, cute.Float32), cute.make_rmem_tensor((32, 1, 1), cute.Float32)
            for j in cute.range_constexpr(32):
                stored[j] = x[rank, tid, j]
            to = tcgen05.make_tmem_copy(STORE, there).get_slice(tid).partition_D(there)
            cute.copy(STORE, cute.make_tensor(stored.iterator, cute.make_layout((32, 1, 1))), to)
            arch.fence_view_async_tmem_store()
            cute.copy(LOAD, tcgen05.make_tmem_copy(LOAD, there).get_slice(tid).partition_S(there), loaded)
            arch.fence_view_async_tmem_load()
            for j in cute.range_constexpr(32):
                out[rank, tid, j] = loaded[j]
        tmem.wait_for_alloc()  # the same barrier again
        tmem.relinquish_alloc_permit()
        tmem.free(there.iterator)

    return kernel


@seam.traced
def allocated(tmem, columns):
    tmem.allocate(columns)
    tmem.wait_for_alloc()
    return cute.make_tensor(tmem.retrieve_ptr(cute.Float32), TILE)


@seam.traced
def reserved(tmem, columns):
    return tmem.reserve(columns).allocate_tensor(TILE, cute.Float32)


@pytest.mark.parametrize("ctas, given", [(1, True), (1, False), (2, True), (2, False)])
def test_all_warps_learn_the_address_of_what_one_allocated(run, ctas, given):
    x = np.random.default_rng(0).random((ctas, 128, 32), np.float32)
    out = np.zeros_like(x)
    kernel = through(allocated if given else reserved, ctas, given=given)
    run(kernel, ctas, 160, [x, out], outputs=[out], arch="sm_100a",
        check=lambda: np.testing.assert_array_equal(out, x))  # fmt: skip


@cuda.jit
def parts(out):
    tid, _, _ = arch.thread_idx()
    tmem = utils.TmemAllocator(barrier_for_retrieve=pipeline.NamedBarrier(1, 128))
    pool = tmem.reserve(128)
    first = pool.allocate_tensor(TILE, cute.Float32)
    half = pool.allocate(cute.make_layout((128, 32), stride=(2 * LANE, 1)), cute.Float16)
    last = pool.allocate_tensor(TILE, cute.Float32)
    if tid == 0:
        out[0] = half.toint() - first.iterator.toint()
        out[1] = last.iterator.toint() - first.iterator.toint()
        out[2], out[3] = pool.remaining_cols, pool.current_offset
    tmem.wait_for_alloc()
    tmem.relinquish_alloc_permit()
    tmem.free(pool.base_ptr, 128)


def test_a_pool_gives_out_columns_one_after_the_other(run):
    out = np.zeros(4, np.int32)
    run(
        parts,
        1,
        128,
        [out],
        outputs=[out],
        arch="sm_100a",
        check=lambda: np.testing.assert_array_equal(out, [32, 48, 48, 80]),
    )


def tensor(lay, dtype=cute.Float32, space=AddressSpace.tmem):
    return Tensor(Pointer(dtype, space, 0, 0, 16), lay)


def test_the_columns_to_allocate():
    assert utils.get_num_tmem_alloc_cols(tensor(TILE)) == 32
    assert utils.get_num_tmem_alloc_cols([tensor(TILE)] * 3) == 128
    assert utils.get_num_tmem_alloc_cols([tensor(TILE)] * 3, False) == 96
    assert utils.get_num_tmem_alloc_cols(tensor(cute.make_layout((128, 8), stride=(LANE, 1))), arch="sm_103") == 32
    assert utils.compute_tmem_cols_from_layout(cute.make_layout((128, 64), stride=(2 * LANE, 1)), cute.Float16) == 32


def refused(make):
    @cuda.jit
    def kernel():
        make()

    return kernel


BAR = seam.traced(lambda: pipeline.NamedBarrier(1, 32))
REFUSED = [
    (lambda: utils.TmemAllocator(None, BAR()).allocate(48), "num_columns 48 must be a power of two from 32 to 512"),
    (lambda: utils.TmemAllocator(None, BAR()).check_valid_num_columns(1024), "num_columns 1024 must be a power of two"),
    (lambda: utils.TmemAllocator(None, None), "barrier_for_retrieve None must be a pipeline.NamedBarrier"),
    (lambda: utils.TmemAllocator(None, BAR(), arch="sm_90a"), "'sm_90a' has no tensor memory"),
    (lambda: utils.TmemAllocator(arch.alloc_smem(cute.Int64, 1), BAR()), "must be a Pointer to Int32 in shared memory"),
    (lambda: utils.TmemBufferPool(Pointer(cute.Float32, AddressSpace.tmem, 0), 16).allocate(TILE, cute.Float32),
     "32 columns for .* of Float32, but 16 of 16 are left"),
]  # fmt: skip


@pytest.mark.parametrize("make, why", REFUSED, ids=[why for _, why in REFUSED])
def test_what_cannot_be_allocated_is_refused(make, why):
    with pytest.raises(cute.CuteError, match=why):
        cute.simulate(refused(seam.traced(make)), arch="sm_100a")[1, 32]()


@pytest.mark.parametrize("call, why", [
    (lambda: utils.get_num_tmem_alloc_cols(tensor(TILE, space=AddressSpace.smem)), "must be a tensor in tensor memory"),
    (lambda: utils.get_num_tmem_alloc_cols([tensor(TILE)] * 17), "take 1024 columns, but sm_100 has 512"),
    (lambda: utils.compute_tmem_cols_from_layout((128, 8), cute.Float32), "must be a static layout"),
    (lambda: utils.compute_tmem_cols_from_layout(TILE, "f32"), "is not an element type"),
])  # fmt: skip
def test_what_has_no_columns_is_refused(call, why):
    with pytest.raises(cute.CuteError, match=why):
        call()
