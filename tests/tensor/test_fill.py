# SPDX-License-Identifier: Apache-2.0
"""`fill` sets memory by the widest accesses that layout, swizzle and alignment allow, and each element of it once."""

import re

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.sim import simulate

SWIZZLED = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, cute.make_layout((8, 64), stride=(64, 1)))
PLAIN = cute.make_layout((8, 64), stride=(64, 1))


def filled(layout, dtype, alignment, part):
    """A kernel whose first thread fills a part of a tile in shared memory; all is copied out, in coordinate order."""

    @cuda.jit
    def kernel(out):
        smem = cute.utils.SmemAllocator()
        memory = smem.allocate_tensor(dtype, cute.make_layout(512), 1024)
        start = cute.make_ptr(dtype, memory.iterator.toint(), cute.AddressSpace.smem, assumed_align=alignment)
        tile = cute.make_tensor(start, layout)
        for i in range(512):
            memory[i] = dtype(1)
        tile[part].fill(7)
        for i in range(512):
            out[i // 64, i % 64] = tile[i // 64, i % 64]

    return kernel


CASES = {
    "a swizzle's vectors": (SWIZZLED, cute.Float16, 1024, (3, None), r"st\.shared\.v4", 8),
    "all of a swizzle": (SWIZZLED, cute.Float16, 1024, (None, None), r"st\.shared\.v4", 64),
    "bytes": (PLAIN, cute.Uint8, 1024, (3, None), r"st\.shared\.v4", 4),
    "down a column": (SWIZZLED, cute.Float16, 1024, (None, 5), r"st\.shared\.[bu]16", 8),
    "memory that is aligned to 4": (PLAIN, cute.Float16, 4, (3, None), r"st\.shared\.[bu]32", 32),
}


@pytest.mark.parametrize("case", CASES)
def test_memory_is_filled_by_wide_stores(case):
    layout, dtype, alignment, part, store, count = CASES[case]
    kernel = filled(layout, dtype, alignment, part)
    got, want = np.zeros((8, 64), dtype.numpy), np.ones((8, 64), dtype.numpy)
    want[tuple(slice(None) if p is None else p for p in part)] = 7
    simulate(kernel)[1, 1](got)
    np.testing.assert_array_equal(got, want)
    ptx = cute.compile(kernel, got, arch="sm_80").ptx
    assert len(re.findall(store, ptx)) >= count


@cuda.jit
def by_run_time_strides(x, n):
    t = cute.make_tensor(x.iterator, cute.make_layout((4, 4), stride=(cute.assume(n, divby=4), 1)))
    t.fill(3.0)


def test_global_memory_with_run_time_strides_is_filled_too():
    x = np.zeros((4, 8), np.float32)
    tensor = cute.runtime.from_dlpack(x, assumed_align=16)
    simulate(by_run_time_strides)[1, 1](tensor, np.int32(8))
    np.testing.assert_array_equal(x, np.pad(np.full((4, 4), 3.0, np.float32), ((0, 0), (0, 4))))
    ptx = cute.compile(by_run_time_strides, tensor, np.int32(8), arch="sm_80").ptx
    assert len(re.findall(r"st\.global\.v4", ptx)) == 4
