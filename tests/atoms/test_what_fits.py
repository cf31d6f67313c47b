# SPDX-License-Identifier: Apache-2.0
"""What fits is taken, and lies where it should: beside what test_makers_fit.py has refused."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import utils
from numba_cute.runtime import from_dlpack

from ..engines import SIMULATOR_AND_GPU, on
from .test_makers_fit import BF16, F16, F32, S128, SPARSE, SQUARE, TILED, memory

EIGHT = cute.make_layout((8, 64), stride=(64, 1))


@pytest.mark.parametrize("dtypes", [(F16, F16), (F32, cute.TFloat32), (F16, cute.Int16), (cute.Uint16, BF16)], ids=str)
def test_bits_are_copied_where_they_are_the_same_number_or_only_carried(dtypes):
    source, target = dtypes

    @cuda.jit
    def kernel():
        cute.autovec_copy(memory(source, SQUARE, 128, None), memory(target, SQUARE, 128, None))

    cute.compile(kernel, (), arch="sm_90a")


def test_a_tile_that_ends_beyond_global_memory_is_left_to_its_predicate():
    @cuda.jit
    def kernel(x):
        cute.print_tensor(TILED.get_slice(0).partition_S(x)[None, 0, 0])

    cute.compile(kernel, (from_dlpack(np.zeros((12, 32), np.float16), assumed_align=16),), arch="sm_90a")


def test_room_is_made_for_what_a_swizzle_of_bytes_moves():
    """S<3,4,3> puts the 16 bytes of the last row 112 bytes on."""
    lay = SPARSE

    @cuda.jit
    def kernel(out):
        smem = utils.SmemAllocator()
        s = smem.allocate_tensor(F16, lay, 1024, S128)
        after = smem.allocate_tensor(F16, cute.make_layout(64), 16)
        for i in range(64):
            after[i] = F16(7)
        for i in range(cute.size(lay)):
            s[i] = F16(1)
        for i in range(64):
            out[i] = F32(after[i])

    out = np.zeros(64, np.float32)
    cute.simulate(kernel)[1, 1](out)
    assert (out == 7).all()
    assert cute.compile(kernel, (out,), arch="sm_90a").resources.dynamic_shared == 64 * 128 + 128


@pytest.mark.parametrize("engine", SIMULATOR_AND_GPU)
def test_a_pointer_to_a_peers_memory_keeps_its_swizzle(engine):
    @cute.cluster_shape(2)
    @cuda.jit
    def kernel(out):
        t, rank = cuda.threadIdx.x, cute.arch.block_idx_in_cluster()
        s = utils.SmemAllocator().allocate_tensor(F16, EIGHT, 1024, S128)
        for i in range(t, 64, 32):
            s[i % 8, i // 8] = F16(i % 8 + 64 * rank)
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        peer = cute.arch.map_dsmem_ptr(s.iterator, 1 - rank)
        out[rank, t] = F32(cute.arch.load(peer + (64 * (t % 8) + 3), F16, ss="cluster"))
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()

    out = np.zeros((2, 32), np.float32)
    on(engine, kernel)[2, 32](out)
    t = np.arange(32) % 8
    np.testing.assert_array_equal(out, [t + 64, t])


EMPTY, FULL, COPY = (
    cute.make_layout((0, 4)),
    cute.make_layout((4, 4)),
    cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), F32),
)
MMA = cute.make_mma_atom(cute.nvgpu.MmaUniversalOp(F32))
MADE_OF_NOTHING = [
    (cute.make_layout_tv, (EMPTY, FULL), "thr_layout"),
    (cute.make_layout_tv, (FULL, EMPTY), "val_layout"),
    (cute.make_tiled_copy_tv, (COPY, FULL, EMPTY), "val_layout"),
    (cute.make_tiled_copy, (COPY, EMPTY, (4, 4)), "layout_tv"),
    (cute.make_tiled_copy, (COPY, FULL, (0, 4)), "tiler"),
    (cute.make_cotiled_copy, (COPY, EMPTY, FULL), "atom_layout_tv"),
    (cute.make_cotiled_copy, (COPY, FULL, EMPTY), "data_layout"),
    (cute.make_tiled_mma, (MMA, (0, 1, 1)), "atom_layout_mnk"),
    (cute.make_tiled_mma, (MMA, (1, 1, 1), (None, 0, 1)), "permutation_mnk"),
]


@pytest.mark.parametrize("make, given, name", MADE_OF_NOTHING, ids=lambda x: getattr(x, "__name__", None))
def test_no_thread_and_no_value_is_no_tile(make, given, name):
    with pytest.raises(cute.CuteError, match=rf"{name} .* is empty: give extents of at least 1"):
        make(*given)


def test_threads_and_values_reach_elements_and_no_coordinates():
    with pytest.raises(cute.CuteError, match=r"layout_tv \(4,4\):\(1@0,1@1\) reaches coordinates"):
        cute.make_tiled_copy(COPY, cute.make_identity_layout((4, 4)), (4, 4))
