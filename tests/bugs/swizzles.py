# SPDX-License-Identifier: Apache-2.0
"""Bugs of swizzles: shared memory that one view writes and another reads."""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import utils
from numba_cute.nvgpu import cpasync, warp, warpgroup
from numba_cute.runtime import from_dlpack
from numba_cute.sim import SwizzleError
from numba_cute.sim.checks.swizzles import Swizzles

from .zoo import bug

S128, S64 = cute.make_swizzle(3, 4, 3), cute.make_swizzle(2, 4, 3)
ROWS = cute.make_layout((64, 64), stride=(64, 1))
K32 = cute.make_layout((64, 32), stride=(32, 1))


@cute.struct
class Storage:
    bar: cute.Int64
    tile: cute.struct.Align[cute.struct.MemRange[cute.Float16, 4096], 1024]


def aligned(shape):
    room = np.zeros(int(np.prod(shape)) + 64, np.float16)
    start = -room.ctypes.data % 128 // 2
    array = room[start : start + int(np.prod(shape))].reshape(shape)
    array[...] = np.arange(array.size).reshape(shape) % 97
    return array


def tile(op, swizzle, lay=ROWS):
    held = cute.make_composed_layout(swizzle, 0, lay)
    return cpasync.make_tiled_tma_atom(op, from_dlpack(aligned(lay.shape), assumed_align=16), held, lay.shape)


def load():
    return (*tile(cpasync.CopyBulkTensorTileG2SOp(), S128), np.zeros(32, np.float32))


def loaded_and(read):
    """A kernel in which TMA loads a swizzled tile, and `read(storage, out)` reads it."""

    @cuda.jit
    def kernel(atom, coords, out):
        storage = utils.SmemAllocator().allocate(Storage)
        s = storage.tile.get_tensor(ROWS, swizzle=S128)
        if cuda.threadIdx.x == 0:
            cute.arch.mbarrier_init(storage.bar.ptr, 1)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        utils.block_copy(atom, cute.local_tile(coords, (64, 64), (0, 0)), s, tma_bar_ptr=storage.bar.ptr)
        if cuda.threadIdx.x == 0:
            cute.arch.mbarrier_arrive_and_expect_tx(storage.bar.ptr, 8192)
        cute.arch.mbarrier_wait(storage.bar.ptr, 0)
        read(storage, out)

    return kernel


def swizzle_bug(*words, **more):
    return bug(SwizzleError, *words, check=Swizzles, threads=32, smem=0, **more)


@swizzle_bug("wrong swizzle", "without a swizzle by thread", "cp_async_bulk_tensor_g2s", "S<3,4,3>", arguments=load)
def tile_of_tma_read_without_its_swizzle(mended):
    swizzle = S128 if mended else None

    def read(storage, out):
        t = cuda.threadIdx.x
        out[t] = cute.Float32(storage.tile.get_tensor(ROWS, swizzle=swizzle)[t, 3])

    return loaded_and(read)


@swizzle_bug("wrong swizzle", "by the swizzle S<2,4,3> by thread", "cp_async_bulk_tensor_g2s", arguments=load)
def tile_of_tma_read_by_another_swizzle(mended):
    swizzle = S128 if mended else S64

    def read(storage, out):
        t = cuda.threadIdx.x
        out[t] = cute.Float32(storage.tile.get_tensor(ROWS, swizzle=swizzle)[t, 3])

    return loaded_and(read)


@swizzle_bug("wrong swizzle", "ldmatrix", "without a swizzle", "cp_async_bulk_tensor_g2s", arguments=load)
def tile_of_tma_read_by_ldmatrix_without_its_swizzle(mended):
    swizzle = S128 if mended else None
    atom = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 1), cute.Float16)

    def read(storage, out):
        t = cuda.threadIdx.x
        row = cute.make_rmem_tensor((2,), cute.Float16)
        s = storage.tile.get_tensor(ROWS, swizzle=swizzle)
        cute.copy(atom, cute.local_tile(s, (1, 8), (t % 8, 0))[0, None], row)
        out[t] = cute.Float32(row[0])

    return loaded_and(read)


@swizzle_bug("wrong swizzle", "by the swizzle S<2,4,3> by", "cp_async_bulk_tensor_g2s", arguments=load)
def tile_of_tma_read_by_rows_of_a_layout_with_another_swizzle(mended):
    """A row is a plain layout, whose addresses are by the swizzle of the whole."""
    by_elements = cute.make_composed_layout(cute.make_swizzle(3 if mended else 2, 3, 3), 0, ROWS)

    def read(storage, out):
        t = cuda.threadIdx.x
        row = storage.tile.get_tensor(by_elements)[t, None]
        again = cute.make_tensor(row.iterator, row.layout)
        held = cute.make_rmem_tensor((64,), cute.Float16)
        cute.autovec_copy(again, held)
        out[t] = cute.Float32(held[40])

    return loaded_and(read)


@swizzle_bug("wrong elements", "elements of 32 bits", "elements of 16 bits", "cp_async_bulk_tensor_g2s", arguments=load)
def tile_of_tma_read_as_wider_elements_by_its_swizzle(mended):
    def read(storage, out):
        t = cuda.threadIdx.x
        if cute.const_expr(mended):
            words = cute.recast_tensor(storage.tile.get_tensor(ROWS, swizzle=S128), cute.Float32)
        else:
            words = storage.tile.get_tensor(K32, swizzle=S128, dtype=cute.Float32)
        out[t] = words[t, 3]

    return loaded_and(read)


@swizzle_bug("wrong swizzle", "without a swizzle", "a store", "S<3,4,3>", arguments=load)
def stores_by_a_swizzle_read_without(mended):
    """Bytes that are meant as they lie are said to be."""

    @cuda.jit
    def kernel(atom, coords, out):
        t = cuda.threadIdx.x
        s = utils.SmemAllocator().allocate_tensor(cute.Float16, ROWS, 1024, S128)
        s[t, 0] = t
        cute.arch.sync_threads()
        if cute.const_expr(mended):
            raw = cute.recast_ptr(s.iterator, reinterpret=True)
        else:
            raw = cute.recast_ptr(s.iterator)
        row = 31 - t
        out[t] = cute.Float32((raw + (64 * row + 8 * (row % 8))).load())

    return kernel


def store():
    return (*tile(cpasync.CopyBulkTensorTileS2GOp(), S64, K32), np.zeros(32, np.float32))


@swizzle_bug("wrong swizzle", "by the swizzle S<2,4,3> by cp_async_bulk_tensor_s2g", "a store", arguments=store)
def stores_by_one_swizzle_that_tma_takes_by_another(mended):
    swizzle = S64 if mended else S128

    @cuda.jit
    def kernel(atom, coords, out):
        t = cuda.threadIdx.x
        storage = utils.SmemAllocator().allocate(Storage)
        s = storage.tile.get_tensor(K32, swizzle=swizzle)
        for i in range(64):
            s[i, t] = i
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        taken = storage.tile.get_tensor(K32, swizzle=S64)
        utils.block_copy(atom, taken, cute.local_tile(coords, (64, 32), (0, 0)))
        cute.arch.cp_async_bulk_commit_group()
        cute.arch.cp_async_bulk_wait_group(0, read=True)

    return kernel


@swizzle_bug(
    "wrong elements", "16 bits by the swizzle S<2,4,3> by cp_async_bulk_tensor_s2g", "a store", arguments=store
)
def bytes_that_tma_stores_as_wider_elements(mended):
    """The same bytes: the recast says that they are meant."""

    @cuda.jit
    def kernel(atom, coords, out):
        t = cuda.threadIdx.x
        storage = utils.SmemAllocator().allocate(Storage)
        taken = storage.tile.get_tensor(K32, swizzle=S64)
        if cute.const_expr(mended):
            s = cute.recast_tensor(taken, cute.Uint8)
        else:
            s = storage.tile.get_tensor(ROWS, swizzle=S64, dtype=cute.Uint8)
        for i in range(64):
            s[i, t] = i
            s[i, t + 32] = i
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        utils.block_copy(atom, taken, cute.local_tile(coords, (64, 32), (0, 0)))
        cute.arch.cp_async_bulk_commit_group()
        cute.arch.cp_async_bulk_wait_group(0, read=True)

    return kernel


MMA = warpgroup.MmaF16BF16Op(
    cute.Float16, cute.Float32, (64, 64, 16), warpgroup.OperandSource.SMEM, warpgroup.OperandMajorMode.K,
    warpgroup.OperandMajorMode.K,
)  # fmt: skip


def rows():
    return from_dlpack(aligned((64, 32)), assumed_align=16), np.zeros(128, np.float32)


@bug(SwizzleError, "by the swizzle S<2,4,3> by wgmma", check=Swizzles, threads=128, smem=0, arguments=rows)
def operand_of_wgmma_that_was_written_by_another_swizzle(mended):
    swizzle = S64 if mended else S128

    @cuda.jit
    def kernel(x, out):
        t = cuda.threadIdx.x
        storage = utils.SmemAllocator().allocate(Storage)
        s = storage.tile.get_tensor(K32, swizzle=swizzle)
        atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cute.Float16, num_bits_per_copy=128)
        g2s = cute.make_tiled_copy_tv(atom, cute.make_layout((32, 4), stride=(4, 1)), cute.make_layout((1, 8)))
        mine = g2s.get_slice(t)
        cute.copy(g2s, mine.partition_S(x), mine.partition_D(s))
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        taken = storage.tile.get_tensor(K32, swizzle=S64)
        mma = cute.make_tiled_mma(cute.make_mma_atom(MMA))
        part = mma.get_slice(t)
        a, b = mma.make_fragment_A(part.partition_A(taken)), mma.make_fragment_B(part.partition_B(taken))
        acc = mma.make_fragment_C(part.partition_shape_C((64, 64)))
        acc.fill(0.0)
        warpgroup.fence()
        cute.gemm(mma, acc, a, b, acc)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        out[t] = acc[0]

    return kernel


F8 = cute.Float8E4M3FN
MMA8 = warpgroup.MmaF8Op(
    F8, F8, cute.Float32, (64, 64, 32), warpgroup.OperandSource.SMEM, warpgroup.OperandMajorMode.K,
    warpgroup.OperandMajorMode.K,
)  # fmt: skip


@bug(SwizzleError, "elements of 8 bits by the swizzle S<2,4,3> by wgmma", check=Swizzles, threads=128, smem=0)
def operand_of_wgmma_that_was_written_as_wider_elements(mended):
    dtype = F8 if mended else cute.Float16
    lay = cute.make_layout((64, 64), stride=(64, 1)) if mended else K32

    @cuda.jit
    def kernel():
        t = cuda.threadIdx.x
        storage = utils.SmemAllocator().allocate(Storage)
        s = storage.tile.get_tensor(lay, swizzle=S64, dtype=dtype)
        for i in range(t, cute.size(lay), 128):
            s[i] = dtype(1.0)
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        taken = storage.tile.get_tensor(cute.make_layout((64, 64), stride=(64, 1)), swizzle=S64, dtype=F8)
        mma = cute.make_tiled_mma(cute.make_mma_atom(MMA8))
        part = mma.get_slice(t)
        a, b = mma.make_fragment_A(part.partition_A(taken)), mma.make_fragment_B(part.partition_B(taken))
        acc = mma.make_fragment_C(part.partition_shape_C((64, 64)))
        acc.fill(0.0)
        warpgroup.fence()
        cute.gemm(mma, acc, a, b, acc)
        warpgroup.commit_group()
        warpgroup.wait_group(0)

    return kernel


@swizzle_bug("wrong swizzle", "ldmatrix", "by the swizzle S<1,4,3> by", "cp_async", arguments=rows)
def rows_by_cp_async_read_as_columns_of_another_swizzle(mended):
    """A transposed view of a swizzled layout, of which ldmatrix takes a thread's part."""
    held = cute.make_composed_layout(cute.make_swizzle(2, 3, 3), 0, K32)
    other = held if mended else cute.make_composed_layout(cute.make_swizzle(1, 3, 3), 0, K32)

    @cuda.jit
    def kernel(x, out):
        t = cuda.threadIdx.x
        storage = utils.SmemAllocator().allocate(Storage)
        s, v = storage.tile.get_tensor(held), storage.tile.get_tensor(other)
        atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cute.Float16, num_bits_per_copy=128)
        g2s = cute.make_tiled_copy_tv(atom, cute.make_layout((8, 4), stride=(4, 1)), cute.make_layout((1, 8)))
        mine = g2s.get_slice(t)
        cute.copy(g2s, mine.partition_S(x), mine.partition_D(s))
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        turned = cute.composition(v, cute.make_layout((32, 64), stride=(64, 1)))
        mma = cute.make_tiled_mma(warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)))
        b = mma.make_fragment_B(mma.get_slice(t).partition_B(turned))
        s2r = cute.make_tiled_copy_B(cute.make_copy_atom(warp.LdMatrix8x8x16bOp(True, 2), cute.Float16), mma)
        thread = s2r.get_slice(t)
        part = thread.partition_S(turned)
        cute.copy(s2r, part[None, None, 1], thread.retile(b)[None, None, 1])
        out[t] = cute.Float32(b[0, 1, 1])

    return kernel
