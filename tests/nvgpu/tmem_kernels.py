# SPDX-License-Identifier: Apache-2.0
"""Kernels that move matrices between registers and tensor memory by make_tmem_copy."""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, dtypes, isa, seam, utils
from numba_cute.isa.facts.tensor_memory import lane_stride
from numba_cute.nvgpu import tcgen05

THREADS = 128
MMA = cute.make_tiled_mma(
    tcgen05.MmaF16BF16Op(
        cute.Float16, cute.Float32, (128, 64), tcgen05.CtaGroup.ONE, tcgen05.OperandSource.SMEM,
        tcgen05.OperandMajorMode.K, tcgen05.OperandMajorMode.K,
    )
)  # fmt: skip


def matrix(rows, columns, width, apart):
    """Where the elements of a matrix (rows, columns) lie: 64 rows in 16 of each 32 lanes. apart: in a column each."""
    lane, column = lane_stride(width), 32 // width if apart else 1
    lanes = cute.make_layout((16, 4), stride=(lane, 32 * lane)) if rows == 64 else cute.make_layout(128, stride=lane)
    return cute.make_layout((lanes, cute.make_layout(columns, stride=column)))


@seam.traced
def after_and_before():
    isa.tcgen05_fence_before()
    arch.sync_threads()
    isa.tcgen05_fence_after()


@seam.traced
def words(regs, ptr, warp, num, store):
    """This warp's 32 lanes of `num` columns, by plain instructions."""
    span = seam.Regs(regs.iterator.address, dtypes.Uint32, 0, num)
    at = ptr.address + ((warp * 32) << 16)
    if store:
        isa.tcgen05_st(taddr=at, src=span, shape="32x32b", num=num)
        isa.tcgen05_wait_st()
    else:
        isa.tcgen05_ld(dst=span, taddr=at, shape="32x32b", num=num)
        isa.tcgen05_wait_ld()


def mover(op, dtype, lay, columns):
    """A kernel (x, out): `op` moves a matrix. Loads: words x (128, columns) to the matrix out. Stores: the matrix x to
    the words out."""
    atom, loads = cute.make_copy_atom(op, dtype), isinstance(op, LOADS)
    shape = tuple(cute.size(lay, (i,)) for i in (0, 1))
    each = shape[0] * shape[1] // THREADS  # of a thread; bounds that only types tell are slow to unroll

    @cuda.jit
    def kernel(x, out):
        tid, _, _ = arch.thread_idx()
        warp = arch.make_warp_uniform(arch.warp_idx())
        slot = utils.SmemAllocator().allocate_array(cute.Int32, 1)
        if warp == 0:
            arch.alloc_tmem(columns, slot)
        after_and_before()
        ptr = arch.retrieve_tmem_ptr(dtype, 16, slot)
        there = cute.make_tensor(ptr, lay)
        raw = cute.make_rmem_tensor(columns, cute.Uint32)
        for j in cute.range_constexpr(columns):
            raw[j] = 0
            if loads:
                raw[j] = x[tid, j]
        words(raw, ptr, warp, columns, True)
        thr = tcgen05.make_tmem_copy(atom, there).get_slice(tid)
        where = cute.make_identity_tensor(shape)
        if loads:
            here = thr.partition_D(where)
            regs = cute.make_rmem_tensor(here.shape, dtype)
            cute.copy(atom, thr.partition_S(there), regs)
            arch.fence_view_async_tmem_load()
            for j in cute.range_constexpr(each):
                out[here[j][0], here[j][1]] = regs[j]
        else:
            here = thr.partition_S(where)
            regs = cute.make_rmem_tensor(here.shape, dtype)
            for j in cute.range_constexpr(each):
                regs[j] = x[here[j][0], here[j][1]]
            cute.copy(atom, regs, thr.partition_D(there))
            arch.fence_view_async_tmem_store()
            words(raw, ptr, warp, columns, False)
            for j in cute.range_constexpr(columns):
                out[tid, j] = raw[j]
        after_and_before()
        if warp == 0:
            arch.dealloc_tmem(ptr, columns)

    return kernel


LOADS = (tcgen05.Ld16x64bOp, tcgen05.Ld16x128bOp, tcgen05.Ld16x256bOp, tcgen05.Ld16x32bx2Op, tcgen05.Ld32x32bOp)
STORES = (tcgen05.St16x64bOp, tcgen05.St16x128bOp, tcgen05.St16x256bOp, tcgen05.St16x32bx2Op, tcgen05.St32x32bOp)


def as_matrix(held, lay, dtype):
    """The matrix that words (128, columns) hold."""
    rows, columns = (cute.size(lay, (i,)) for i in (0, 1))
    per = 32 // dtype.width
    at = np.array([lay(i) for i in range(rows * columns)])
    lane, element = at // lane_stride(dtype.width), at % lane_stride(dtype.width)
    parts = np.ascontiguousarray(held).view(f"u{dtype.width // 8}").reshape(128, -1, per)
    return parts[lane, element // per, element % per].view(dtype.numpy).reshape(columns, rows).T


def reducer(op, dtype, lay, columns):
    """A kernel (x, out, red) of words x (128, columns): the matrix out, and each thread's `columns` by instructions."""
    atom, least_of = cute.make_copy_atom(op, dtype), columns // op.repeat.value // op.shape.halves
    shape = tuple(cute.size(lay, (i,)) for i in (0, 1))
    each = shape[0] * shape[1] // THREADS  # of a thread; bounds that only types tell are slow to unroll

    @cuda.jit
    def kernel(x, out, red):
        tid, _, _ = arch.thread_idx()
        warp = arch.make_warp_uniform(arch.warp_idx())
        slot = utils.SmemAllocator().allocate_array(cute.Int32, 1)
        if warp == 0:
            arch.alloc_tmem(columns, slot)
        after_and_before()
        ptr = arch.retrieve_tmem_ptr(dtype, 16, slot)
        there = cute.make_tensor(ptr, lay)
        raw = cute.make_rmem_tensor(columns, cute.Uint32)
        for j in cute.range_constexpr(columns):
            raw[j] = x[tid, j]
        words(raw, ptr, warp, columns, True)
        thr = tcgen05.make_tmem_copy(atom, there).get_slice(tid)
        here = thr.partition_D(cute.make_identity_tensor(shape))
        regs = cute.make_rmem_tensor(here.shape, dtype)
        least = cute.make_rmem_tensor((1, here.shape[1], here.shape[2]), dtype)
        cute.copy(atom, thr.partition_S(there), (regs, least))
        arch.fence_view_async_tmem_load()
        for j in cute.range_constexpr(each):
            out[here[j][0], here[j][1]] = regs[j]
        for j in cute.range_constexpr(least_of):
            red[tid, j] = least[j]
        after_and_before()
        if warp == 0:
            arch.dealloc_tmem(ptr, columns)

    return kernel
