# SPDX-License-Identifier: Apache-2.0
"""Tensors of elements narrower than a byte: packed, read and set one by one and as wide as can be proved."""

import re

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import dtypes
from numba_cute.runtime import from_dlpack, make_fake_tensor, pack, unpack

FOUR = (cute.Float4E2M1FN, cute.Int4, cute.Uint4)
SIX = (cute.Float6E2M3FN, cute.Float6E3M2FN)
NAMES = {"ids": lambda d: d.name}


def random(rng, shape, dtype):
    return rng.integers(0, 1 << dtype.width, shape).astype(np.uint8).view(dtype.numpy)


def aligned(bytes_):
    raw = np.zeros(bytes_.size + 16, np.uint8)
    start = -raw.ctypes.data % 16
    out = raw[start : start + bytes_.size].reshape(bytes_.shape)
    out[...] = bytes_
    return out


def narrow(x, dtype, align=None):
    return lambda place: cute.recast_tensor(from_dlpack(place(x), assumed_align=align), dtype)


@pytest.mark.parametrize("dtype", FOUR + SIX, **NAMES)
def test_packing_is_undone_by_unpacking_and_the_first_element_is_lowest(rng, dtype):
    a = random(rng, (3, 8), dtype)
    packed = pack(a)
    assert packed.dtype == np.uint8 and packed.shape == (3, dtype.width)
    np.testing.assert_array_equal(unpack(packed, dtype).view(np.uint8), a.view(np.uint8))
    first, second = a.view(np.uint8)[0, :2].tolist()
    assert int(packed[0, 0]) | int(packed[0, 1]) << 8 == int(packed[0, :2].view(np.uint16)[0])
    low = int(packed[0, :2].view(np.uint16)[0]) & ((1 << 2 * dtype.width) - 1)
    assert low == first | second << dtype.width


def test_what_is_not_packed_is_refused_with_the_way_to_pack_it():
    with pytest.raises(cute.CuteError, match=r"runtime.pack\(x\)\), cute.Float4E2M1FN"):
        from_dlpack(np.zeros((4, 8), ml_dtypes.float4_e2m1fn))
    with pytest.raises(cute.CuteError, match="does not make whole bytes"):
        pack(np.zeros((4, 3), ml_dtypes.int4))
    with pytest.raises(cute.CuteError, match="not narrower than a byte"):
        pack(np.zeros((4, 4), np.uint8))


def test_the_layout_counts_elements():
    t = cute.recast_tensor(from_dlpack(np.zeros((4, 6), np.uint8)), cute.Float4E2M1FN)
    assert repr(t.layout) == "(4,12):(12,1)" and t.element_type is cute.Float4E2M1FN
    assert repr(cute.recast_tensor(t, cute.Uint16).layout) == "(4,3):(3,1)"
    with pytest.raises(cute.CuteError, match="inside of a byte"):
        cute.recast_ptr(t.iterator + 1, dtype=cute.Uint8)


@cuda.jit
def one_by_one(a, b):
    """Element (i, j) of b is that of a in the mirror: thread i has a row to itself."""
    i, _, _ = cute.arch.thread_idx()
    for j in range(cute.size(a, mode=[1])):
        b[i, j] = a[i, 15 - j]


@pytest.mark.parametrize("dtype", FOUR + SIX, **NAMES)
def test_elements_are_read_and_set_one_by_one(run, rng, dtype):
    a = random(rng, (6, 16), dtype)
    src, out = pack(a), pack(random(rng, (6, 16), dtype))

    def check():
        np.testing.assert_array_equal(out, pack(np.ascontiguousarray(a[:, ::-1])))

    run(one_by_one, 1, 6, [narrow(src, dtype), narrow(out, dtype)], outputs=[out], check=check)


@cuda.jit
def neighbours(out):
    """Setting one element leaves those beside it as they are."""
    for j in cute.range_constexpr(1, 16, 3):
        out[0, j] = 1


@pytest.mark.parametrize("dtype", FOUR + SIX, **NAMES)
def test_the_neighbours_of_an_element_stay(run, rng, dtype):
    before = random(rng, (1, 16), dtype)
    out, want = pack(before), before.copy()
    want[0, 1::3] = 1

    def check():
        np.testing.assert_array_equal(out, pack(want))

    run(neighbours, 1, 1, [narrow(out, dtype)], inouts=[out], check=check)


@cuda.jit
def through_registers(a, b):
    i, _, _ = cute.arch.thread_idx()
    regs = cute.make_rmem_tensor_like(a[i, None])
    cute.autovec_copy(a[i, None], regs)
    cute.autovec_copy(regs, b[i, None])


@cuda.jit
def straight(a, b):
    i, _, _ = cute.arch.thread_idx()
    cute.autovec_copy(a[i, None], b[i, None])


@pytest.mark.parametrize("kernel", [through_registers, straight], ids=["registers", "straight"])
@pytest.mark.parametrize("dtype", FOUR + SIX[:1], **NAMES)
def test_rows_are_copied(run, rng, dtype, kernel):
    a = random(rng, (4, 32), dtype)
    src, out = aligned(pack(a)), aligned(pack(a))
    args = [narrow(src, dtype, 8), narrow(out, dtype, 8)]
    run(kernel, 1, 4, args, outputs=[out], check=lambda: np.testing.assert_array_equal(out, src))


@pytest.mark.parametrize(
    "row, align, access", [(32, 16, "v4.u32"), (16, 8, "v2.u32"), (8, 4, "u32"), (4, 2, "u16"), (2, 1, "u8")]
)
def test_accesses_are_as_wide_as_the_alignment_proves(row, align, access):
    t = make_fake_tensor(cute.Float4E2M1FN, (8, row), (row, 1), assumed_align=align)
    for kernel in (through_registers, straight):
        ptx = cute.compile(kernel, (t, t)).ptx
        assert re.findall(r"(?:ld|st)\.global\S*", ptx) == [f"ld.global.{access}", f"st.global.{access}"]


def test_a_run_time_row_of_known_divisor_is_read_wide():
    t = make_fake_tensor(cute.Uint4, (8, 32), (cute.sym_int64(32), 1), assumed_align=16)
    ptx = cute.compile(through_registers, (t, t)).ptx
    assert re.findall(r"(?:ld|st)\.global\S*", ptx) == ["ld.global.v4.u32", "st.global.v4.u32"]


@cuda.jit
def scaled(a, scales, out):
    """Blocks of 16 e2m1 numbers with a ue8m0 scale each, as f16."""
    i, _, _ = cute.arch.thread_idx()
    x = a[i, None].load().to(cute.Float32) * cute.Float32(scales[i])
    out[i, None].store(x.to(cute.Float16))


def test_blocks_with_scales_become_floats(run, rng):
    a = random(rng, (8, 16), cute.Float4E2M1FN)
    packed, out = pack(a), np.zeros((8, 16), np.float16)
    scales = (2.0 ** rng.integers(-6, 7, 8)).astype(ml_dtypes.float8_e8m0fnu).view(np.uint8)

    def check():
        want = a.astype(np.float32) * scales.view(ml_dtypes.float8_e8m0fnu).astype(np.float32)[:, None]
        np.testing.assert_array_equal(out, want.astype(np.float16))

    def powers(place):
        return cute.recast_tensor(from_dlpack(place(scales)), cute.Float8E8M0FNU)

    args = [narrow(packed, cute.Float4E2M1FN), powers, lambda place: from_dlpack(place(out))]
    run(scaled, 1, 8, args, outputs=[out], check=check)


@cuda.jit
def shared(a, b):
    """Through shared memory: each thread a row in, a column's worth out."""
    i, _, _ = cute.arch.thread_idx()
    smem = cute.utils.SmemAllocator()
    tile = cute.recast_tensor(
        smem.allocate_tensor(cute.Uint8, cute.make_layout((4, 16), stride=(16, 1)), 16), a.element_type
    )
    cute.autovec_copy(a[i, None], tile[i, None])
    cute.arch.sync_threads()
    cute.autovec_copy(tile[3 - i, None], b[i, None])


def test_shared_memory_holds_narrow_elements_too(run, rng):
    a = random(rng, (4, 32), cute.Int4)
    src, out = aligned(pack(a)), aligned(pack(a))
    args = [narrow(src, cute.Int4, 16), narrow(out, cute.Int4, 16)]
    run(shared, 1, 4, args, outputs=[out], check=lambda: np.testing.assert_array_equal(out, src[::-1]))


def test_two_threads_that_share_a_byte_race():
    out = np.zeros((1, 1), np.uint8)

    @cuda.jit
    def kernel(out):
        i, _, _ = cute.arch.thread_idx()
        out[0, i] = 1

    with pytest.raises(cute.CuteError, match="race|without"):
        cute.simulate(kernel)[1, 64](cute.recast_tensor(from_dlpack(np.zeros((1, 32), np.uint8)), cute.Uint4))
    assert out[0, 0] == 0


def test_integers_of_four_bits_are_converted_before_they_are_added():
    @cuda.jit
    def kernel(a, b):
        b[0, None].store(a[0, None].load() + 1)

    t = make_fake_tensor(cute.Int4, (1, 8), (8, 1))
    with pytest.raises(cute.CuteError, match=r"Int4.*\.to\(cute\.Int8\)"):
        cute.compile(kernel, (t, t))


def test_every_narrow_type_is_named():
    assert set(FOUR + SIX) == set(dtypes.NARROW)
