# SPDX-License-Identifier: Apache-2.0
"""Vectors of a tensor whose layout is swizzled: an address that is computed apart is still one by that swizzle."""

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.runtime import from_dlpack
from numba_cute.sim import SwizzleError

SWIZZLED = cute.tile_to_shape(
    cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, cute.make_layout((8, 64), stride=(64, 1))),
    (32, 64),
    (0, 1),
)
PAIRS = cute.make_layout((32, 4), stride=(4, 1)), cute.make_layout((1, 2))
VECTORS = cute.make_layout((16, 8), stride=(8, 1)), cute.make_layout((1, 8))


@cute.kernel
def through_vectors(out, wrong: cute.Constexpr):
    """Write a swizzled tensor of the layout's in pairs, and read it, or by mistake its memory, in vectors."""
    tidx, _, _ = cute.arch.thread_idx()
    memory = cute.utils.SmemAllocator().allocate_tensor(cute.Float16, cute.make_layout(2048), 1024)
    s = cute.make_tensor(memory.iterator, SWIZZLED)
    write = cute.make_tiled_copy_tv(cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float16), *PAIRS)
    to = write.get_slice(tidx).partition_D(s)
    number = write.get_slice(tidx).partition_D(cute.make_identity_tensor((32, 64)))
    mine = cute.make_fragment_like(to)
    for i in cute.range_constexpr(cute.size(mine)):
        mine[i] = cute.Float16(number[i][0] * 32 + number[i][1] % 32)
    cute.copy(write, mine, to)
    cute.arch.sync_threads()
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float16, num_bits_per_copy=128)
    read = cute.make_tiled_copy_tv(atom, *VECTORS)
    if cute.const_expr(wrong):
        s = cute.make_tensor(memory.iterator, SWIZZLED.outer)
    source = read.get_slice(tidx).partition_S(s)
    got = cute.make_fragment_like(source)
    cute.copy(read, source, got)
    cute.copy(read, got, read.get_slice(tidx).partition_D(out))


def test_what_is_written_by_a_swizzled_layout_is_read_by_it_in_vectors():
    out = np.zeros((32, 64), np.float16)
    cute.simulate(through_vectors)[1, 128](from_dlpack(out, assumed_align=16), False)
    row, column = np.indices((32, 64))
    np.testing.assert_array_equal(out, (row * 32 + column % 32).astype(np.float16))
    compiled = cute.compile(through_vectors, (from_dlpack(out, assumed_align=16), False), arch="sm_90a")
    assert "ld.shared.v4" in compiled.ptx or "ld.shared.v2.b64" in compiled.ptx


def test_what_is_written_by_a_swizzled_layout_is_not_read_without_it():
    with pytest.raises(SwizzleError, match="is read without a swizzle"):
        cute.simulate(through_vectors)[1, 128](from_dlpack(np.zeros((32, 64), np.float16), assumed_align=16), True)
