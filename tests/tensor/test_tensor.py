# SPDX-License-Identifier: Apache-2.0
"""Pointers and tensors: addressing, slicing, alignment, and what a thread loads and stores."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import runtime, seam
from numba_cute.seam import traced
from numba_cute.tensor.pointer import Pointer, access_alignment, advance, physical
from numba_cute.tensor.tensor import like_layout


class Wide(seam.Leaf):
    """A run-time number that records in how many bits it was computed."""

    def __init__(self, value, bits=32, divisor=1):
        self.value, self.bits, self.divisor = value, bits, divisor

    def _with(self, o, op, f):
        other = o.value if isinstance(o, Wide) else o
        return Wide(f(self.value, other), max(self.bits, getattr(o, "bits", 0)), seam.divisor_of(op, self, o))

    def __add__(self, o):
        return self._with(o, "add", lambda a, b: a + b)

    def __mul__(self, o):
        return self._with(o, "mul", lambda a, b: a * b)

    __radd__, __rmul__ = __add__, __mul__


class Casts:
    """A backend that only casts."""

    def cast(self, value, dtype):
        return Wide(getattr(value, "value", value), max(dtype.width, getattr(value, "bits", 0)))


def gmem(dtype=cute.Float32, address=4096, align=16, swizzle=None):
    return Pointer(dtype, cute.AddressSpace.gmem, address, 0, align, swizzle)


def test_pointer_moves_by_elements_and_keeps_the_alignment_it_can_prove():
    p = gmem(align=16)
    assert (p + 2).address == 4104 and (p + 2).alignment == 8
    assert (p + 8).alignment == 16
    assert (p - 1).address == 4092 and (p - 1).alignment == 4
    with seam.running(Casts()):
        assert advance(p, Wide(12, divisor=4)).alignment == 16


def test_pointer_aligns_upwards():
    p = gmem(address=4097, align=1).align(64)
    assert p.address == 4160 and p.alignment == 64


def test_swizzle_moves_the_access_and_not_the_address():
    p = gmem(cute.Float16, address=1024 + 128, align=128, swizzle=cute.Swizzle(3, 4, 3))
    assert p.address == 1152 and physical(p) == 1152 ^ (1 << 4)
    assert access_alignment(p) == 16


def test_recast_ptr_changes_the_type_alone():
    p = cute.recast_ptr(gmem(cute.Float16), dtype=cute.Uint8)
    assert p.dtype == cute.Uint8 and p.address == 4096 and p.alignment == 16


@pytest.mark.parametrize(
    "coord, address, shape",
    [((None, 3), 4096 + 3 * 4 * 8, (8,)), ((2, None), 4096 + 2 * 4, (16,)), ((None, None), 4096, (8, 16))],
)
def test_slice_keeps_the_modes_marked_none(coord, address, shape):
    t = cute.make_tensor(gmem(), cute.make_layout((8, 16)))[coord]
    assert t.iterator.address == address and t.shape == shape


def test_slice_of_a_row_keeps_the_alignment_of_the_stride():
    t = cute.make_tensor(gmem(align=64), cute.make_layout((8, 16), stride=(16, 1)))
    with seam.running(Casts()):
        assert t[Wide(3), None].iterator.alignment == 64
        assert t[None, Wide(3)].iterator.alignment == 4


@pytest.mark.parametrize("coord, align", [((Wide(1), 0, 0), 256), ((Wide(1), Wide(1), 0), 128), ((Wide(1), 0, 2), 64)])
def test_a_pointer_is_aligned_by_what_divides_each_step(coord, align):
    t = cute.make_tensor(gmem(align=512), cute.make_layout((4, 8, 3), stride=(64, 96, 8)))
    with seam.running(Casts()):
        assert (t.iterator + t.layout(coord)).alignment == align


def test_global_offsets_of_run_time_layouts_are_64_bit():
    t = cute.make_tensor(gmem(), cute.Layout((Wide(1 << 20), Wide(1 << 20)), (Wide(1 << 20), 1)))
    with seam.running(Casts()):
        p = t[Wide(1 << 16), None].iterator
    assert p.address.bits == 64 and p.address.value == 4096 + 4 * (1 << 36)


def test_identity_tensor_gives_coordinates():
    t = cute.make_identity_tensor((4, (2, 3)))
    assert t[3, (1, 2)] == (3, (1, 2))
    assert cute.local_tile(cute.make_identity_tensor((8, 8)), (4, 4), (1, 1))[1, 2] == (5, 6)


def test_local_tile_takes_the_projected_modes():
    t = cute.make_tensor(gmem(), cute.make_layout((64, 32), stride=(32, 1)))
    tile = cute.local_tile(t, (16, 8, 4), (1, 2, None), proj=(1, None, 1))
    assert tile.shape == (16, 4, 8) and tile.iterator.address == 4096 + 4 * 16 * 32


def test_local_tile_rounds_ragged_shapes_up():
    t = cute.make_tensor(gmem(), cute.make_layout((100, 30), stride=(30, 1)))
    assert cute.local_tile(t, (16, 8), (None, None)).shape == (16, 8, 7, 4)


def test_local_partition_deals_elements_to_threads():
    t = cute.make_identity_tensor((4, 6))
    threads = cute.make_layout((2, 3))
    seen = []
    for i in range(6):
        part = cute.local_partition(t, threads, i)
        seen += [part[c] for c in range(cute.size(part))]
    assert sorted(seen) == [(i, j) for i in range(4) for j in range(6)]


def test_like_layout_is_compact_in_the_order_of_the_strides():
    lay = like_layout(cute.make_layout((2, 4, 8), stride=(1, 100, 10)))
    assert lay == cute.make_layout((2, 4, 8), stride=(1, 16, 2))


def test_group_modes_and_divides_work_on_tensors():
    t = cute.make_tensor(gmem(), cute.make_layout((8, 16)))
    assert cute.group_modes(t, 0, 2).shape == ((8, 16),)
    assert cute.zipped_divide(t, (4, 4)).shape == ((4, 4), (2, 4))
    assert cute.size(t) == 128 and cute.size(t, mode=[1]) == 16 and cute.rank(t) == 2


def test_recast_tensor_scales_the_contiguous_mode():
    t = cute.recast_tensor(cute.make_tensor(gmem(), cute.make_layout((8, 4))), cute.Float16)
    assert t.shape == (16, 4) and t.stride == (1, 16) and t.element_type == cute.Float16


# What threads do


@cuda.jit
def transpose_through_registers(src, dst, n):
    i, _, _ = cute.arch.thread_idx()
    row = src[i, None]
    regs = cute.make_rmem_tensor_like(row)
    cute.autovec_copy(row, regs)
    for j in cute.range_constexpr(8):
        dst[j, i] = regs[j] + n


@cuda.jit
def vectors(src, dst):
    i, _, _ = cute.arch.thread_idx()
    dst[i, None].store(src[i, None].load().to(cute.Float16))


def test_threads_load_and_store_elements(run_sim):
    a = np.arange(32, dtype=np.float32).reshape(4, 8)
    b = np.full((8, 4), np.nan, np.float32)
    run_sim(transpose_through_registers, 4, runtime.from_dlpack(a), runtime.from_dlpack(b), 1.0)
    np.testing.assert_array_equal(b, a.T + 1)


def test_vectors_convert(run_sim):
    a = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    b = np.full((4, 8), np.nan, np.float16)
    run_sim(vectors, 4, runtime.from_dlpack(a), runtime.from_dlpack(b))
    np.testing.assert_array_equal(b, a.astype(np.float16))


@cuda.jit
def shared_swizzled(out):
    i, _, _ = cute.arch.thread_idx()
    smem = cute.utils.SmemAllocator()
    s = smem.allocate_tensor(cute.Float16, cute.make_layout((8, 64), stride=(64, 1)), 1024, cute.Swizzle(3, 4, 3))
    raw = cute.make_tensor(cute.recast_ptr(s.iterator, reinterpret=True), cute.make_layout((8, 64), stride=(64, 1)))
    for j in range(16):
        s[i // 4, 16 * (i % 4) + j] = cute.Float16(16 * i + j)
    cute.arch.sync_threads()
    for j in range(16):
        out[i // 4, 16 * (i % 4) + j] = raw[i // 4, 16 * (i % 4) + j]


def test_swizzled_shared_memory_lies_permuted(run_sim):
    out = np.full((8, 64), -1, np.float16)
    run_sim(shared_swizzled, 32, runtime.from_dlpack(out))
    chunk = np.arange(8)[None, :] ^ np.arange(8)[:, None]
    want = (64 * np.arange(8)[:, None, None] + 8 * chunk[:, :, None] + np.arange(8)).reshape(8, 64)
    np.testing.assert_array_equal(out, want.astype(np.float16))


@traced
def add_where_inside(x, y, coords, shape):
    for i in range(cute.size(x)):
        inside = cute.elem_less(coords[i], shape)
        seam.current().when(inside, lambda i=i: y.__setitem__(i, x[i] + 1))


@cuda.jit
def ragged(src, dst, threads):
    tidx, _, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    coords = cute.make_identity_tensor(src.shape)
    mine = cute.local_partition(cute.local_tile(src, (16, 8), (bx, by)), threads, tidx)
    out = cute.local_partition(cute.local_tile(dst, (16, 8), (bx, by)), threads, tidx)
    where = cute.local_partition(cute.local_tile(coords, (16, 8), (bx, by)), threads, tidx)
    add_where_inside(mine, out, where, src.shape)


@pytest.mark.parametrize("shape", [(16, 8), (17, 9), (40, 30), (1, 1)], ids=str)
@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
def test_ragged_tiles_are_guarded_by_their_coordinates(run, aligned, shape, static):
    src, dst = aligned(shape, np.float32), aligned(shape, np.float32, fill=np.nan)

    def tensor(place, array):
        t = runtime.from_dlpack(place(array))
        return t if static else t.mark_layout_dynamic(leading_dim=1)

    args = [lambda place: tensor(place, src), lambda place: tensor(place, dst), cute.make_layout((8, 4), stride=(4, 1))]
    grid = (-(-shape[0] // 16), -(-shape[1] // 8))
    want = src + np.float32(1)
    run(ragged, grid, 32, args, outputs=[dst], check=lambda: np.testing.assert_array_equal(dst, want))


def test_offsets_into_large_run_time_tensors_are_computed_in_64_bits():
    @cuda.jit
    def one(t, i, j):
        t[i, j] = 1.0

    fake = runtime.make_fake_tensor(cute.Float32, (1 << 20, 1 << 20), (1 << 20, 1)).mark_layout_dynamic()
    ptx = cute.compile(one, (fake, np.int32(1), np.int32(2)), arch="sm_90a").ptx
    assert "mul.lo.s64" in ptx or "mad.lo.s64" in ptx
    assert "mul.lo.s32" not in ptx
