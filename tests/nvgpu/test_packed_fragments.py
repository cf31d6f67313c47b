# SPDX-License-Identifier: Apache-2.0
"""4-bit operands of a warp's mma.sync, loaded by ldmatrix as the elements that they are."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute.nvgpu import warp
from numba_cute.runtime import from_dlpack

F4 = cute.Float4E2M1FN


@cuda.jit
def kernel(a, b, out):
    lane = cute.arch.lane_idx()
    smem = cute.utils.SmemAllocator()
    sa = smem.allocate_tensor(F4, cute.make_layout((16, 64), stride=(64, 1)), 128)
    sb = smem.allocate_tensor(F4, cute.make_layout((16, 64), stride=(64, 1)), 128)
    wa, wb = cute.recast_tensor(sa, cute.Uint32), cute.recast_tensor(sb, cute.Uint32)
    for i in range(lane, 16 * 8, 32):
        wa[i // 8, i % 8] = a[i // 8, i % 8]
        wb[i // 8, i % 8] = b[i // 8, i % 8]
    cute.arch.sync_warp()
    op = warp.MmaMXF4Op(F4, cute.Float32, cute.Float8E8M0FNU)
    mma = cute.make_tiled_mma(op, cute.make_layout((1, 1, 1)), permutation_mnk=(16, 16, 64))
    load = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), F4)
    copies = cute.make_tiled_copy_A(load, mma), cute.make_tiled_copy_B(load, mma)
    of = mma.get_slice(lane)
    ra, rb = mma.make_fragment_A(of.partition_A(sa)), mma.make_fragment_B(of.partition_B(sb))
    acc = cute.make_rmem_tensor(of.partition_C(out).shape, cute.Float32)
    acc.fill(0.0)
    ones = cute.Uint32(0x7F7F)  # of factors that are 1
    for copy, s, r in ((copies[0], sa, ra), (copies[1], sb, rb)):
        mine = copy.get_slice(lane)
        cute.copy(copy, mine.partition_S(s), mine.retile(r))
    cute.gemm(mma.set(warp.Field.SFA, ones).set(warp.Field.SFB, ones), acc, ra, rb, acc)
    cute.autovec_copy(acc, of.partition_C(out))


def test_elements_of_four_bits_are_loaded_by_ldmatrix():
    numbers = np.random.default_rng(1).integers(-2, 3, (2, 16, 64)).astype(np.float32)
    codes = numbers.astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    packed = [np.ascontiguousarray(c[:, ::2] | c[:, 1::2] << 4).view(np.uint32) for c in codes]
    out = np.zeros((16, 16), np.float32)
    args = [*map(from_dlpack, packed), from_dlpack(out)]
    cute.simulate(kernel, arch="sm_120a")[1, 32](*args)
    assert (out == numbers[0] @ numbers[1].T).all()
    made = cute.compile(kernel, *args, arch="sm_120a")
    assert "ldmatrix.sync.aligned.m8n8.x4" in made.ptx and "mxf4" in made.ptx
