# SPDX-License-Identifier: Apache-2.0
"""`dot` over every kind of matrix instruction, and the layouts of tensor memory that go with it."""

from __future__ import annotations

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import arch, experimental as ext, utils
from numba_cute.nvgpu import OperandMajorMode, OperandSource, tcgen05, warp, warpgroup
from numba_cute.seam import CuteError, traced
from numba_cute.utils import sm100

from .kernels import RMEM, SMEM, TMEM, aligned, tensor

F16, F32 = cute.Float16, cute.Float32
K = OperandMajorMode.K
KINDS = ext.OperationTypeEnum


def operands(m, n, k):
    a, b = aligned((m, k)), aligned((n, k))
    a[...], b[...] = a % 5 - 2, b % 7 - 3
    c = aligned((m, n), np.float32)
    return a, b, c, a.astype(np.float32) @ b.astype(np.float32).T


WARP = cute.make_tiled_mma(warp.MmaF16BF16Op(F16, F32, (16, 8, 16)))


@ext.kernel
def by_a_warp(a, b, c):
    """16 x 8 x 32 in registers: the first step of K gives, the second adds."""
    tidx, _, _ = arch.thread_idx()
    mma = WARP.get_slice(tidx)
    acc = WARP.make_fragment_C(WARP.partition_shape_C((16, 8)))
    for k in cute.range_constexpr(2):
        tA, tB = (
            mma.partition_A(cute.local_tile(a, (16, 16), (0, k))),
            mma.partition_B(cute.local_tile(b, (8, 16), (0, k))),
        )
        rA, rB = WARP.make_fragment_A(tA), WARP.make_fragment_B(tB)
        ext.simt_auto_vec_copy(tA, rA)
        ext.simt_auto_vec_copy(tB, rB)
        ext.dot(WARP.set(warpgroup.Field.ACCUMULATE, k > 0), rA, rB, acc)
    ext.simt_auto_vec_copy(acc, mma.partition_C(c))


def test_a_warp_multiplies_registers(run):
    a, b, c, want = operands(16, 8, 32)
    arguments = [tensor(a, False), tensor(b, False), tensor(c, False)]
    run(by_a_warp, 1, 32, arguments, outputs=[c], check=lambda: np.testing.assert_array_equal(c, want))


GROUP = utils.sm90.make_trivial_tiled_mma(F16, F16, K, K, F32, (1, 1, 1), (64, 64))
TILE = (64, 64, 64)
A_SMEM = utils.make_smem_layout_a(utils.LayoutEnum.ROW_MAJOR, TILE, F16, 1)
B_SMEM = utils.make_smem_layout_b(utils.LayoutEnum.ROW_MAJOR, TILE, F16, 1)


@ext.kernel(launch_bounds=(128, 1))
def by_a_warpgroup(a, b, c):
    """A and B from shared memory as it was allocated, instruction by instruction along K."""
    tidx, _, _ = arch.thread_idx()
    sA = ext.allocate(F16, SMEM, A_SMEM, alignment=1024)[None, None, 0]
    sB = ext.allocate(F16, SMEM, B_SMEM, alignment=1024)[None, None, 0]
    pipe = ext.TMAToAsyncPipeline.create(num_stages=1, consumer_arv_count=128, consumer=KINDS.SM90_MMA_SS)
    if arch.make_warp_uniform(arch.warp_idx()) == 0:
        stage, _ = pipe.producer_acquire_and_get_stage()
        ext.tma_load(a, sA, ext.get_mbarrier(stage), cta_v_map=ext.get_cta_v_map_c(a, (64, 64)))
        ext.tma_load(cute.local_tile(b, (64, 64), (0, 0)), sB, ext.get_mbarrier(stage))
        pipe.producer_commit()
    pipe.consumer_wait()
    mma = GROUP.get_slice(tidx)
    tA, tB = mma.partition_A(sA), mma.partition_B(sB)
    acc = GROUP.make_fragment_C(GROUP.partition_shape_C((64, 64)))
    warpgroup.fence()
    for k in cute.range_constexpr(4):
        ext.dot(GROUP.set(warpgroup.Field.ACCUMULATE, k > 0), tA[None, None, k], tB[None, None, k], acc)
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    ext.simt_auto_vec_copy(acc, mma.partition_C(c))


def test_a_warpgroup_multiplies_shared_memory(run):
    a, b, c, want = operands(64, 64, 64)
    arguments = [tensor(a), tensor(b), tensor(c, False)]
    run(by_a_warpgroup, 1, 128, arguments, outputs=[c], check=lambda: np.testing.assert_array_equal(c, want))


# ------------------------------------------------------------------------------------------------------------ Blackwell

SS = sm100.make_trivial_tiled_mma(F16, K, K, F32, tcgen05.CtaGroup.ONE, (128, 64))
TS = sm100.make_trivial_tiled_mma(F16, K, K, F32, tcgen05.CtaGroup.ONE, (128, 64), OperandSource.TMEM)
TILER = (128, 64, 32)
ACC, A_TMEM = ext.make_tmem_layout_acc(TS, TILER, 1), ext.make_tmem_layout_a(TS, TILER, 1)
B_STAGES = sm100.make_smem_layout_b(TS, TILER, F16, 1)
LOAD = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x64), F32)
STORE = cute.make_copy_atom(tcgen05.St32x32bOp(tcgen05.Repetition.x16), F16)


@ext.kernel(launch_bounds=(128, 1))
def from_tensor_memory(a, b, c):
    """Threads put A into tensor memory and B into shared memory; a warp multiplies; the threads take the results."""
    tidx, _, _ = arch.thread_idx()
    sB = ext.allocate(F16, SMEM, B_STAGES, alignment=1024)
    tC, tA = ext.allocate(F32, TMEM, ACC), ext.allocate(F16, TMEM, A_TMEM)  # the larger first
    filled = ext.AsyncToUMMAPipeline.create(
        num_stages=1, producer_arv_count=128, mma_operation_type=KINDS.SM100_MMA_1SM_TS, producer=KINDS.SM100_COPY_R2T
    )
    done = ext.UMMAtoAsyncPipeline.create(
        num_stages=1, mma_operation_type=KINDS.SM100_MMA_1SM_TS, consumer_arv_count=128, consumer=KINDS.SIMT
    )
    filled.producer_acquire()
    rows = cute.make_tensor(tA.iterator, cute.make_layout((128, 32), stride=(131072, 1)))
    put = tcgen05.make_tmem_copy(STORE, rows)
    r = ext.allocate(F16, RMEM, 32)
    ext.simt_auto_vec_copy(a[tidx, None], r)
    ext.partition_and_copy(put.get_slice(tidx), r, rows)
    if tidx < 64:
        for j in range(32):
            sB[(tidx, j % 16), 0, j // 16, 0] = b[tidx, j]
    arch.fence_proxy("async.shared", space="cta")
    arch.tcgen05_fence_before_thread_sync()
    filled.producer_commit()
    if arch.make_warp_uniform(arch.warp_idx()) == 0:
        filled.consumer_wait()
        arch.tcgen05_fence_after_thread_sync()
        for k in cute.range_constexpr(2):
            atom = TS.set(tcgen05.Field.ACCUMULATE, k > 0)
            ext.dot(atom, tA[None, None, k, 0], sB[None, None, k, 0], tC[None, None, None, 0])
        done.producer_commit()
    done.consumer_wait()
    columns = tC[(None, None), 0, 0, 0]
    get = tcgen05.make_tmem_copy(LOAD, columns)
    s = ext.allocate(F32, RMEM, ext.make_t2r_rmem_layout(get, cute.flat_divide(c, (128, 64)), tidx))
    ext.partition_and_copy(get.get_slice(tidx), columns, s)
    ext.simt_auto_vec_copy(cute.make_tensor(s.iterator, cute.make_layout(64)), c[tidx, None])


@traced
def doubled(values):
    return values + values


@ext.kernel(launch_bounds=(128, 1))
def stored_doubled(a, b, c):
    """The same, but TMA stores the results, twice what they are."""
    tidx, _, _ = arch.thread_idx()
    sB = ext.allocate(F16, SMEM, B_STAGES, alignment=1024)
    tC, tA = ext.allocate(F32, TMEM, ACC), ext.allocate(F16, TMEM, A_TMEM)  # the larger first
    filled = ext.AsyncToUMMAPipeline.create(
        num_stages=1, producer_arv_count=128, mma_operation_type=KINDS.SM100_MMA_1SM_TS, producer=KINDS.SM100_COPY_R2T
    )
    done = ext.UMMAtoAsyncPipeline.create(
        num_stages=1, mma_operation_type=KINDS.SM100_MMA_1SM_TS, consumer_arv_count=128, consumer=KINDS.SIMT
    )
    filled.producer_acquire()
    rows = cute.make_tensor(tA.iterator, cute.make_layout((128, 32), stride=(131072, 1)))
    put = tcgen05.make_tmem_copy(STORE, rows)
    r = ext.allocate(F16, RMEM, 32)
    ext.simt_auto_vec_copy(a[tidx, None], r)
    ext.partition_and_copy(put.get_slice(tidx), r, rows)
    if tidx < 64:
        for j in range(32):
            sB[(tidx, j % 16), 0, j // 16, 0] = b[tidx, j]
    arch.fence_proxy("async.shared", space="cta")
    arch.tcgen05_fence_before_thread_sync()
    filled.producer_commit()
    if arch.make_warp_uniform(arch.warp_idx()) == 0:
        filled.consumer_wait()
        arch.tcgen05_fence_after_thread_sync()
        for k in cute.range_constexpr(2):
            atom = TS.set(tcgen05.Field.ACCUMULATE, k > 0)
            ext.dot(atom, tA[None, None, k, 0], sB[None, None, k, 0], tC[None, None, None, 0])
        done.producer_commit()
    done.consumer_wait()
    stores = ext.TMAStorePipeline(stages=2, arv_count=128, barrier_id=1, tma_warp_id=1)
    ext.epilogue_tma_store(TILER, False, tC[(None, None), 0, 0, 0], c, (0, 0), stores, 1, doubled).tail()


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "run-time"])
def test_an_epilogue_stores_what_its_operation_makes_of_results(run, dynamic):
    """Of a tile that ends within the tensor too."""
    a, b, c, want = operands(128, 64, 32)
    c = aligned((120, 60) if dynamic else (128, 64), np.float32)
    arguments = [tensor(a, False), tensor(b, False), tensor(c, dynamic)]
    run(
        stored_doubled, 1, 128, arguments, outputs=[c], arch="sm_100a",
        check=lambda: np.testing.assert_array_equal(c, 2 * want[: c.shape[0], : c.shape[1]]),
    )  # fmt: skip


def test_tcgen05_multiplies_tensor_memory_that_threads_filled(run):
    a, b, c, want = operands(128, 64, 32)
    arguments = [tensor(a, False), tensor(b, False), tensor(c, False)]
    run(
        from_tensor_memory, 1, 128, arguments, outputs=[c], arch="sm_100a",
        check=lambda: np.testing.assert_array_equal(c, want),
    )  # fmt: skip


def test_the_layouts_of_tensor_memory_are_those_of_fragments():
    assert ext.make_tmem_layout_acc(SS, TILER, 2) == SS.make_fragment_C((*SS.partition_shape_C((128, 64)), 2)).layout
    assert cute.shape(A_TMEM) == ((128, 16), 1, 2, 1)
    with pytest.raises(CuteError, match="takes A from elsewhere"):
        ext.make_tmem_layout_a(SS, TILER, 1)
    with pytest.raises(CuteError, match=r"mnk_tiler \(128, 64\) must be \(M, N, K\)"):
        ext.make_tmem_layout_acc(SS, (128, 64), 1)
    with pytest.raises(CuteError, match="is not a tiled copy"):
        ext.make_t2r_rmem_layout(3, None, 0)


def test_the_map_of_an_operand_is_that_of_its_shared_memory():
    """From the elements of a block's tile as shared memory counts them to coordinates, for a pair too."""
    t = cute.make_tensor(cute.make_ptr(F16, 0, SMEM, assumed_align=16), cute.make_layout((512, 256)))
    found = ext.get_cta_v_map_ab(t, TILER, SS, "A")
    assert cute.shape(found) == ((128, 16), 1, 2)
    assert [found(i) for i in (0, 1, 128, 128 * 16)] == [(0, 0), (1, 0), (0, 1), (0, 16)]
    pair = sm100.make_trivial_tiled_mma(F16, K, K, F32, tcgen05.CtaGroup.TWO, (256, 64))
    assert cute.shape(ext.get_cta_v_map_ab(t, (256, 64, 32), pair, "B")) == ((32, 16), 1, 2)
    assert ext.get_cta_v_map_c(t, (64, 32))(64) == (0, 1)


def test_what_cannot_be_multiplied_is_named():
    with pytest.raises(CuteError, match="mma_atom 3 is neither"):
        ext.dot(3, None, None, None)
    with pytest.raises(CuteError, match="dot_block_scaled: a None is not a tensor"):
        ext.dot_block_scaled(SS, None, None, None, None, None)
