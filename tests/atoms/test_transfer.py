# SPDX-License-Identifier: Apache-2.0
"""What a copy becomes: the width of its accesses, in whatever mode the elements lie together, and 64-bit offsets."""

import re

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.runtime import from_dlpack, make_fake_tensor


def through_registers(shape, stride, regs_stride):
    """A kernel whose thread i copies block i, of a shape and strides, through registers laid out by other strides."""
    block, regs_layout = cute.make_layout(shape, stride=stride), cute.make_layout(shape, stride=regs_stride)
    reach = cute.cosize(block)

    @cuda.jit
    def kernel(a, b):
        i, _, _ = cute.arch.thread_idx()
        src = cute.make_tensor(cute.local_tile(a, (reach,), (i,)).iterator, block)
        dst = cute.make_tensor(cute.local_tile(b, (reach,), (i,)).iterator, block)
        regs = cute.make_rmem_tensor(regs_layout, a.element_type)
        cute.autovec_copy(src, regs)
        cute.autovec_copy(regs, dst)

    return kernel, reach


CASES = [
    ((4, 4), (1, 4), (1, 4), 4),
    ((4, 4), (4, 1), (4, 1), 4),
    ((2, 8), (8, 1), (8, 1), 4),
    ((1, 2, 4), (0, 4, 1), (1, 4, 1), 2),
    ((4, 4), (4, 1), (1, 4), 16),
]


@pytest.mark.parametrize("shape, stride, regs_stride, loads", CASES, ids=str)
def test_the_contiguous_mode_may_be_any(run, rng, shape, stride, regs_stride, loads):
    kernel, reach = through_registers(shape, stride, regs_stride)
    raw = np.zeros(4 * reach + 4, np.float32)
    start = -raw.ctypes.data % 16 // 4
    a = raw[start : start + 4 * reach]
    a[...] = rng.standard_normal(4 * reach)
    b = np.zeros(4 * reach, np.float32)
    arguments = [lambda place, x=x: from_dlpack(place(x)) for x in (a, b)]
    run(kernel, 1, 4, arguments, outputs=[b], check=lambda: np.testing.assert_array_equal(a, b))
    fake = make_fake_tensor(cute.Float32, (4 * reach,), (1,), assumed_align=16)
    ptx = cute.compile(kernel, (fake, fake)).ptx
    assert len(re.findall(r"ld\.global\S*", ptx)) == loads


@cuda.jit
def one_element(t, out):
    i, _, _ = cute.arch.block_idx()
    out[i] = t[i, 2]


@cuda.jit
def one_column(t, out):
    i, _, _ = cute.arch.block_idx()
    out[i] = t[None, i][3]


@pytest.mark.parametrize("kernel, lead", [(one_element, 1), (one_column, 0)])
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "run-time"])
def test_offsets_into_a_huge_tensor_are_computed_in_64_bits(kernel, lead, dynamic):
    n = 1 << 20
    extent, step = (cute.Int32(n), cute.Int64(n)) if dynamic else (n, n)
    t = make_fake_tensor(cute.Float32, (extent, extent), (step, 1) if lead else (1, step))
    ptx = cute.compile(kernel, (t, make_fake_tensor(cute.Float32, (256,), (1,)))).ptx
    assert not re.search(r"\b(mul\.lo|mad\.lo|shl)\.(s|u|b)32", ptx)
    assert re.search(r"\b(mul\.wide\.s32|mul\.lo\.s64|mad\.lo\.s64)\b", ptx)


N = 1 << 33


@cuda.jit
def beyond(origin, data, out):
    i, _, _ = cute.arch.thread_idx()
    t = cute.make_tensor(origin, cute.make_layout(1 << 34))
    out[i] = t[N + 2 + i] + 0 * data[0]


def test_elements_beyond_2_to_the_31_are_reached_in_the_simulator():
    """Element N of a tensor of 2**34 elements is data[0]; the rest of it is not there, and not touched."""
    data, out = np.arange(8, dtype=np.float32), np.zeros(4, np.float32)
    origin = cute.make_ptr(cute.Float32, data.ctypes.data - 4 * N, cute.AddressSpace.gmem)
    cute.simulate(beyond)[1, 4](origin, from_dlpack(data), from_dlpack(out))
    np.testing.assert_array_equal(out, data[2:6])
