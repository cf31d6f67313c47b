# SPDX-License-Identifier: Apache-2.0
"""Parts of tensors with a swizzled layout: their iterator and their plain layout lead where the whole one does, in
memory of every kind. NumPy says where each element lies."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import utils
from numba_cute.runtime import from_dlpack

from ..native import Native

SMALL = cute.make_composed_layout(cute.make_swizzle(2, 2, 2), 0, cute.make_layout((16, 16), stride=(16, 1)))
PLACES = np.array([SMALL(i) for i in range(256)]).reshape(16, 16).T
LAYOUT = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, cute.make_layout((16, 64), stride=(64, 1)))


@cuda.jit
def rows_and_tiles(x, y):
    """A row for each thread, by its layout over its iterator; and a tile of four rows."""
    t = cuda.threadIdx.x
    row = cute.make_tensor(x, SMALL)[t, None]
    again = cute.make_tensor(row.iterator, row.layout)
    for i in cute.range_constexpr(16):
        again[i] = 16 * t + i
    tile = cute.local_tile(cute.make_tensor(y, SMALL), (4, 4), (t // 4, t % 4))
    for i in range(16):
        tile[i] = 100 * t + i


def check_rows_and_tiles(run):
    x, y = np.zeros(256, np.float32), np.zeros(256, np.float32)
    run(x, y)
    np.testing.assert_array_equal(x[PLACES], np.arange(256).reshape(16, 16))
    want = np.zeros((16, 16))
    for t in range(16):
        want[t // 4 * 4 :, t % 4 * 4 :][:4, :4] = 100 * t + np.arange(16).reshape(4, 4).T
    np.testing.assert_array_equal(y[PLACES], want)


@pytest.mark.parametrize("engine", ["simulator", "compiled"])
def test_global_memory(engine):
    if engine == "simulator":
        check_rows_and_tiles(lambda *given: cute.simulate(rows_and_tiles)[1, 16](*given))
    else:
        check_rows_and_tiles(lambda *given: Native(rows_and_tiles, given).run(16, *given))


FEW = cute.make_composed_layout(cute.make_swizzle(1, 1, 2), 0, cute.make_layout((4, 4), stride=(4, 1)))


@cuda.jit
def registers(out):
    r = cute.make_rmem_tensor(FEW, cute.Float32)
    for i in cute.range_constexpr(4):
        row = r[i, None]
        for j in cute.range_constexpr(4):
            row[j] = 4 * i + j
    file = cute.make_tensor(r.iterator, cute.make_layout(16))
    for i in cute.range_constexpr(16):
        out[i] = file[i]


@pytest.mark.parametrize("engine", ["simulator", "compiled"])
def test_registers(engine):
    out = np.zeros(16, np.float32)
    if engine == "simulator":
        cute.simulate(registers)[1, 1](out)
    else:
        Native(registers, (out,)).run(1, out)
    np.testing.assert_array_equal(out[[FEW((i, j)) for i in range(4) for j in range(4)]], np.arange(16))


@cuda.jit
def by_hand(x, y):
    """A thread's part of swizzled shared memory: the pointer is swizzled by hand, and the layout is that of the part of
    a tensor whose layout is swizzled. Parts of it go on from there."""
    t, _, _ = cute.arch.thread_idx()
    s = utils.SmemAllocator().allocate_tensor(cute.Float16, LAYOUT.outer, 1024, cute.make_swizzle(3, 4, 3))
    copy = cute.make_tiled_copy_tv(
        cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float16, num_bits_per_copy=128),
        cute.make_layout((16, 2), stride=(2, 1)), cute.make_layout((1, 8)),
    )  # fmt: skip
    mine = copy.get_slice(t)
    at = mine.partition_D(s).iterator.toint()
    at = at ^ ((at & 0x380) >> 3)
    bare = cute.make_tensor(cute.recast_ptr(s.iterator, dtype=cute.Float16), LAYOUT)
    lay = mine.partition_D(bare).layout
    part = cute.make_tensor(cute.make_ptr(cute.Float16, at, cute.AddressSpace.smem, assumed_align=16), lay)
    cute.copy(copy, mine.partition_S(x), part)
    cute.arch.sync_threads()
    y[t // 2, t % 2] = s[t // 2, 32 * (t % 2) + 5]


def test_a_part_s_layout_goes_with_a_pointer_that_is_swizzled_by_hand():
    x = np.arange(1024, dtype=np.float16).reshape(16, 64)
    y = np.zeros((16, 2), np.float16)
    given = from_dlpack(x, assumed_align=16), from_dlpack(y)
    cute.simulate(by_hand)[1, 32](*given)
    np.testing.assert_array_equal(y, x[:, [5, 37]])
    ptx = cute.compile(by_hand, given, arch="sm_80").ptx
    assert ptx.count("st.shared.v4") == 4
