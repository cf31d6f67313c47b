# SPDX-License-Identifier: Apache-2.0
"""Memory of every kind where a kernel asks for it; copies that mind a tensor's bounds."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, experimental as ext, utils
from numba_cute.nvgpu import CopyUniversalOp, tcgen05
from numba_cute.runtime import from_dlpack
from numba_cute.seam import CuteError

from .kernels import RMEM, SMEM, TMEM, aligned, swizzled, tensor

F16, F32 = cute.Float16, cute.Float32
K128 = swizzled((64, 64), 3, F16, 1)


@ext.kernel
def many_allocations(out):
    """Each is written and read with others in between: none overlaps another, each is aligned as asked."""
    tidx, _, _ = arch.thread_idx()
    a = ext.allocate(cute.Int32, SMEM, 32)
    b = ext.allocate(cute.Int8, SMEM, cute.make_layout(3))
    c = ext.allocate(F16, SMEM, K128, alignment=1024)
    d = ext.allocate(cute.Int32, SMEM, 32, alignment=512)
    r = ext.allocate(cute.Int32, RMEM, 4, alignment=32)
    a[tidx] = tidx
    d[tidx] = 2 * tidx
    c[tidx, 63] = F16(tidx)
    r.fill(7)
    if tidx < 3:
        b[tidx] = cute.Int8(5)
    arch.sync_threads()
    other = 31 - tidx
    out[tidx] = a[other] + d[other] + int(c[other, 63]) + r[3] + b[0]
    if tidx == 0:
        out[32] = c.iterator.address % 1024 + d.iterator.address % 512
        out[33] = c.iterator.address - a.iterator.address


def test_each_allocation_is_its_own(run):
    out = np.zeros(34, np.int32)

    def right():
        np.testing.assert_array_equal(out[:32], 4 * (31 - np.arange(32)) + 12)
        assert out[32] == 0 and out[33] == 1024

    run(many_allocations, 1, 32, [out], outputs=[out], check=right)


def test_the_launch_is_given_what_allocations_take():
    compiled = cute.compile(many_allocations, (np.zeros(34, np.int32),), arch="sm_90a")
    assert compiled.resources.dynamic_shared == 1024 + 8192 + 128


@cuda.jit
def allocating():
    return ext.allocate(F32, SMEM, 32)


@ext.kernel
def in_a_device_function(out):
    out[0] = allocating()[0]


@ext.kernel
def with_an_allocator(out):
    a = ext.allocate(F32, SMEM, 32)
    b = utils.SmemAllocator().allocate_tensor(F32, cute.make_layout(32))
    out[0] = a[0] + b[0]


def test_device_functions_and_allocators_do_not_share_a_kernels_memory():
    with pytest.raises(CuteError, match="allocating, which several kernels may share: allocate in the kernel"):
        cute.compile(in_a_device_function, (np.zeros(1, np.float32),), arch="sm_90a")
    for way in (
        lambda out: cute.compile(with_an_allocator, (out,), arch="sm_90a"),
        lambda out: cute.simulate(with_an_allocator)[1, 32](out),
    ):
        with pytest.raises(CuteError, match="use one of them in a kernel"):
            way(np.zeros(1, np.float32))


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ((F32, cute.AddressSpace.gmem, 32), "global memory is the host's"),
        ((3, SMEM, 32), r"type \? is not an element type"),
        ((F32, TMEM, 32), "must be a layout"),
        ((F32, TMEM, cute.make_layout((128, 1024), stride=(65536, 1))), "1024 columns of tensor memory"),
    ],
    ids=["global", "type", "shape", "columns"],
)
def test_what_cannot_be_allocated_is_refused(arguments, word):
    @cuda.jit
    def allocates():
        ext.allocate(*arguments)

    with pytest.raises(CuteError, match=word):
        cute.simulate(allocates, arch="sm_100a")[1, 128]()


# -------------------------------------------------------------------------------------------------------- tensor memory

LAYOUT = cute.make_layout((128, 32), stride=(65536, 1))
LOAD = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), F32)
STORE = cute.make_copy_atom(tcgen05.St32x32bOp(tcgen05.Repetition.x32), F32)


@ext.kernel
def through_tensor_memory(src, dst):
    """Twice, into two allocations: both are freed at the end."""
    tidx, _, _ = arch.thread_idx()
    one, two = ext.allocate(F32, TMEM, LAYOUT), ext.allocate(F32, TMEM, LAYOUT)
    put, get = tcgen05.make_tmem_copy(STORE, one), tcgen05.make_tmem_copy(LOAD, one)
    lay = ext.make_t2r_rmem_layout(get, cute.flat_divide(dst, (128, 32)), tidx)
    r, s = ext.allocate(F32, RMEM, lay), ext.allocate(F32, RMEM, lay)
    cute.autovec_copy(src[tidx, None], cute.make_tensor(r.iterator, cute.make_layout(32)))
    ext.partition_and_copy(put.get_slice(tidx), r, one)
    ext.partition_and_copy(get.get_slice(tidx), one, s)
    s.store(s.load() + 1)
    ext.partition_and_copy(put.get_slice(tidx), s, two)
    ext.partition_and_copy(get.get_slice(tidx), two, r)
    cute.autovec_copy(cute.make_tensor(r.iterator, cute.make_layout(32)), dst[tidx, None])


def test_tensor_memory_is_allocated_where_asked_and_freed_at_the_end(run):
    src, dst = aligned((128, 32), np.float32), aligned((128, 32), np.float32)
    run(
        through_tensor_memory, 1, 128, [tensor(src, False), tensor(dst, False)], outputs=[dst], arch="sm_100a",
        check=lambda: np.testing.assert_array_equal(dst, src + 1),
    )  # fmt: skip


def test_tensor_memory_is_freed_before_every_return():
    args = tuple(from_dlpack(aligned((128, 32), np.float32), assumed_align=16) for _ in range(2))
    ptx = cute.compile(through_tensor_memory, args, arch="sm_100a").ptx
    assert ptx.count("tcgen05.alloc.") == ptx.count("tcgen05.dealloc.") == 2
    assert ptx.count("tcgen05.relinquish") == 2


# --------------------------------------------------------------------------------------------------------------- copies

ATOM = cute.make_copy_atom(CopyUniversalOp(), F16, num_bits_per_copy=128)
TV = cute.make_layout(((16, 8), (8, 1)), stride=((8, 128), (1, 1024)))


@ext.kernel
def bounded_copy(src, dst):
    """Tiles of 128 x 64, each thread 8 elements of 8 columns, of a tensor that ends within a tile."""
    tidx, _, _ = arch.thread_idx()
    m, n, b = arch.block_idx()
    tile = (None, None), (m, n, b)
    s, d = cute.zipped_divide(src, (128, 64))[tile], cute.zipped_divide(dst, (128, 64))[tile]
    mine = ext.partition(s, tidx, layout_tv=TV, tiler=(128, 8))
    theirs = ext.partition(d, tidx, layout_tv=TV, tiler=(128, 8))
    r = ext.allocate(F16, RMEM, cute.make_layout(((8, 1), (1, 8)), stride=((1, 8), (1, 8))), alignment=16)
    r.fill(F16(0))
    ext.copy(mine, r, copy_atom=ATOM)
    r.store(r.load() + F16(5))
    ext.copy(r, theirs, copy_atom=ATOM)


def columns(array):
    def place(of):
        t = from_dlpack(of(array), assumed_align=16)
        return t.mark_layout_dynamic(leading_dim=0).mark_compact_shape_dynamic(0, (2, 1, 0), divisibility=8)

    return place


@pytest.mark.parametrize("shape", [(136, 7, 3), (128, 64, 1), (8, 65, 1)], ids=str)
def test_copies_leave_out_what_lies_outside(run, shape):
    src, dst = aligned(shape, order="F"), aligned(shape, order="F")
    grid = -(-shape[0] // 128), -(-shape[1] // 64), shape[2]
    run(
        bounded_copy, grid, 128, [columns(src), columns(dst)], outputs=[dst],
        check=lambda: np.testing.assert_array_equal(dst, src + 5),
    )  # fmt: skip


def test_an_access_that_may_be_half_outside_is_refused():
    args = tuple(
        from_dlpack(aligned((136, 7, 3), order="F"), assumed_align=16).mark_layout_dynamic(leading_dim=0)
        for _ in range(2)
    )
    with pytest.raises(CuteError, match="an access of 8 elements may reach over the end of a mode"):
        cute.compile(bounded_copy, args, arch="sm_90a")


def test_partitions_and_copies_name_what_they_cannot_take():
    t = cute.make_tensor(cute.make_ptr(F16, 0, SMEM, assumed_align=16), cute.make_layout((8, 8)))
    with pytest.raises(CuteError, match="must be a tensor of at least 3 modes"):
        ext.partition(t, 0, layout_tv=TV, tiler=(1, 1, 1))
    with pytest.raises(CuteError, match="layout_tv .* two modes"):
        ext.partition(t, 0, layout_tv=cute.make_layout(8), tiler=(8, 8))
    with pytest.raises(CuteError, match="is no copy atom"):
        ext.copy(t, t, copy_atom=3)
    with pytest.raises(CuteError, match="is not a thread's slice"):
        ext.partition_and_copy(ATOM, t, t)
