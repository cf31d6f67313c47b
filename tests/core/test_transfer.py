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
    i, _, _ = cute.arch.thread_idx()
    out[i] = t[i, 2]


@cuda.jit
def one_column(t, out):
    i, _, _ = cute.arch.thread_idx()
    out[i] = t[None, i][3]


@pytest.mark.parametrize("kernel", [one_element, one_column])
@pytest.mark.parametrize("wide", [False, True], ids=["small", "huge"])
def test_offsets_are_64_bit_where_a_tensor_is_huge(kernel, wide):
    """The row index times the stride: mul.wide or mad.wide of 32-bit numbers gives 64 bits, mul.lo.s32 would wrap."""
    n = 1 << (20 if wide else 8)
    t = make_fake_tensor(cute.Float32, (n, n), (n, 1)) if kernel is one_element else \
        make_fake_tensor(cute.Float32, (n, n), (1, n))  # fmt: skip
    out = make_fake_tensor(cute.Float32, (256,), (1,))
    ptx = cute.compile(kernel, (t, out)).ptx
    shifts = re.findall(r"(?:shl\.b32|mul\.lo\.s32)\s+%r\d+, %r\d+, (\d+)", ptx)
    assert any(int(s) in (8, 20, n) for s in shifts) is not wide


def test_elements_beyond_2_to_the_31_are_reached_in_the_simulator():
    data, out = np.arange(8, dtype=np.float32), np.zeros(4, np.float32)
    n = 1 << 33
    origin = data.ctypes.data - 4 * (n + 2)  # the tensor's rows n to n + 7 of stride 1 lie in `data`

    @cuda.jit
    def kernel(t, out):
        i, _, _ = cute.arch.thread_idx()
        out[i] = t[n + 2 + i]

    pointer = cute.make_ptr(cute.Float32, origin, cute.AddressSpace.gmem)
    huge = cute.make_tensor(pointer, cute.make_layout(1 << 34))
    keeps = from_dlpack(data)

    @cuda.jit
    def with_data(t, keeps, out):
        i, _, _ = cute.arch.thread_idx()
        out[i] = t[n + 2 + i] + 0 * keeps[0]

    with pytest.raises(cute.CuteError):
        cute.simulate(kernel)[1, 4](huge, from_dlpack(out))
    cute.simulate(with_data)[1, 4](huge, keeps, from_dlpack(out))
    np.testing.assert_array_equal(out, data[:4])
