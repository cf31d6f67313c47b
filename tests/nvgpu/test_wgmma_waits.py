# SPDX-License-Identifier: Apache-2.0
"""A wait for wgmma that stands behind the values it is given, in machine code; and what is said of waits."""

import functools

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.nvgpu import warpgroup
from numba_cute.seam import CuteError

K, SMEM = warpgroup.OperandMajorMode.K, warpgroup.OperandSource.SMEM
MMA = cute.make_tiled_mma(warpgroup.MmaF16BF16Op(cute.BFloat16, cute.Float32, (64, 32, 16), SMEM, K, K))
ATOM = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW32, cute.BFloat16)
A, B = cute.tile_to_shape(ATOM, (64, 16), (0, 1)), cute.tile_to_shape(ATOM, (32, 16), (0, 1))


@functools.cache
def kernel(held, after=None):
    """Two products; the exponentials of the first are taken beside the second."""

    @cuda.jit(launch_bounds=(128, 1))
    def beside(x, sums, out):
        arch.setmaxregister_decrease(104)
        tidx, _, _ = arch.thread_idx()
        smem = utils.SmemAllocator()
        sA = smem.allocate_tensor(cute.BFloat16, A.outer, 1024, A.inner)
        sB = smem.allocate_tensor(cute.BFloat16, B.outer, 1024, B.inner)
        for i in range(8):
            sA[tidx % 64, tidx // 64 * 8 + i] = cute.BFloat16(x[tidx % 64])
            if tidx % 64 < 32:
                sB[tidx % 32, tidx // 64 * 8 + i] = cute.BFloat16(1)
        arch.fence_proxy("async.shared", space="cta")
        cuda.syncthreads()
        mma = MMA.get_slice(tidx)
        a, b = MMA.make_fragment_A(mma.partition_A(sA)), MMA.make_fragment_B(mma.partition_B(sB))
        first, second = [MMA.make_fragment_C(MMA.partition_shape_C((64, 32))) for _ in range(2)]
        fresh = MMA.set(warpgroup.Field.ACCUMULATE, False)
        warpgroup.fence()
        cute.gemm(fresh, first, a[None, None, 0], b[None, None, 0], first)
        warpgroup.commit_group()
        cute.gemm(fresh, second, a[None, None, 0], b[None, None, 0], second)
        warpgroup.commit_group()
        warpgroup.wait_group(1)
        total = cute.make_rmem_tensor(1, cute.Float32)
        first.store(cute.math.exp2(first.load(), fastmath=True))
        total[0] = first.load().reduce(cute.ReductionOp.ADD, 0.0)
        if cute.const_expr(held):
            warpgroup.wait_group(0, after=total if after is None else after)
        else:
            warpgroup.wait_group(0)
        sums[tidx] = total[0]
        out[tidx] = second[0] + second[1]

    return beside


def arguments():
    x = np.linspace(-1, 1, 64, dtype=np.float32).astype(ml_dtypes.bfloat16).astype(np.float32)
    return x, np.zeros(128, np.float32), np.zeros(128, np.float32)


def test_a_wait_stands_behind_the_values_that_it_is_given():
    compiled = cute.compile(kernel(True), arguments(), arch="sm_90a")
    one, none = compiled.waits
    assert (one.pending, none.pending) == (1, 0)
    assert none.beside["MUFU.EX2"] == 16 and none.beside["FADD"] >= 15
    assert compiled.resources.group_registers == (104,)
    assert not compiled.notes


def test_it_waits_for_the_same():
    results = {}
    for held in (False, True):
        x, sums, out = arguments()
        cute.simulate(kernel(held), arch="sm_90a")[1, 128](x, sums, out)
        results[held] = sums, out
    rows = x[np.arange(128) // 32 * 16 + np.arange(128) % 32 // 4]
    np.testing.assert_array_equal(results[True][0], results[False][0])
    np.testing.assert_allclose(results[True][1], 32 * rows, rtol=1e-6)


@pytest.mark.parametrize("run", [cute.simulate, cute.compile], ids=["simulated", "compiled"])
def test_what_is_no_vector_of_32_bit_elements_is_refused(run):
    with pytest.raises(CuteError, match="wait_group: after 3 must be a vector, or a tensor in registers, of 32-bit"):
        if run is cute.compile:
            cute.compile(kernel(True, 3), arguments(), arch="sm_90a")
        else:
            cute.simulate(kernel(True, 3), arch="sm_90a")[1, 128](*arguments())
