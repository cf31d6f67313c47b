# SPDX-License-Identifier: Apache-2.0
"""What names say that no kernel beside these asks: each has a test that fails when it does nothing (tests/nothing)."""

from __future__ import annotations

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import CuteError, arch, experimental as ext
from numba_cute.experimental import OperationTypeEnum as KINDS

from .kernels import SMEM, aligned, tensor

VMNK = cute.make_layout((1, 2, 2, 1))


@ext.kernel
def told(out):
    plain = ext.TMAToUMMAPipeline.create(num_stages=3, mma_operation_type=KINDS.SM100_MMA_1SM_SS)
    masked = ext.TMAToUMMAPipeline.create_with_mask(
        num_stages=5, tma_operation_type=KINDS.SM90_TMA_LOAD_MULTICAST, mma_operation_type=KINDS.SM100_MMA_1SM_SS,
        cluster_layout_vmnk=VMNK,
    )  # fmt: skip
    if arch.thread_idx()[0] == 0 and arch.block_idx_in_cluster() == 0:
        out[0], out[1] = plain.num_stages, masked.num_stages
        out[2], out[3] = ext.get_arrival_count(plain.raw_pipeline)[1], ext.get_arrival_count(masked.raw_pipeline)[1]


def test_a_pipeline_tells_its_stages_and_who_empties_them():
    """With a mask the blocks whose multicast loads reach a block let each other know: three of a cluster of 2 x 2."""
    out = np.zeros(4, np.int32)
    cute.simulate(told, cluster=(2, 2), arch="sm_100a")[(2, 2), 32](out)
    np.testing.assert_array_equal(out, [3, 5, 1, 3])


@pytest.mark.parametrize("told", [True, False, None], ids=["told", "untold", "by itself"])
def test_a_load_tells_a_barrier_of_its_bytes_if_it_is_to(told):
    @ext.kernel
    def loaded(src, dst):
        tidx, _, _ = arch.thread_idx()
        bar = arch.alloc_smem(cute.Int64, 1)
        s = ext.allocate(cute.Float16, SMEM, cute.make_ordered_layout((8, 64), (1, 0)), alignment=128)
        if tidx == 0:
            arch.mbarrier_init(bar, 1)
            arch.mbarrier_init_fence()
        arch.sync_threads()
        if cute.const_expr(told is not True):
            if tidx == 0:
                arch.mbarrier_expect_tx(bar, 2 * 8 * 64)
        ext.tma_load(src, s, bar, update_expect_tx=told)
        if tidx == 0:
            arch.mbarrier_arrive(bar)
        arch.mbarrier_wait(bar, 0)
        for i in range(16):
            dst[i // 2, i % 2 * 32 + tidx] = s[i // 2, i % 2 * 32 + tidx]

    src, dst = aligned((8, 64)), np.zeros((8, 64), np.float16)
    args = tensor(src, False)(lambda a: a), dst
    cute.simulate(loaded)[1, 32](*args)
    np.testing.assert_array_equal(dst, src)
    assert cute.compile(loaded, args, arch="sm_90a").ptx.count("expect_tx") == 1


def test_what_is_neither_told_nor_untold_is_refused():
    @ext.kernel
    def loaded(src):
        s = ext.allocate(cute.Float16, SMEM, cute.make_ordered_layout((8, 64), (1, 0)), alignment=128)
        ext.tma_load(src, s, arch.alloc_smem(cute.Int64, 1), update_expect_tx="no")

    with pytest.raises(CuteError, match="tma_load: update_expect_tx 'no' must be True, False or None"):
        cute.simulate(loaded)[1, 32](tensor(aligned((8, 64)), False)(lambda a: a))
