# SPDX-License-Identifier: Apache-2.0
"""Copies: as wide as can be proved, tiled over threads, by ldmatrix and stmatrix, and out through TMA."""

import re

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.nvgpu import CopyUniversalOp, cpasync, warp, warpgroup
from numba_cute.runtime import from_dlpack, make_fake_tensor
from numba_cute.seam import traced
from numba_cute.tensor.move import vector_width
from numba_cute.tensor.pointer import Pointer


def in_memory(align, swizzle=None, dtype=cute.Float16):
    return Pointer(dtype, cute.AddressSpace.smem, 0, 0, align, swizzle)


REGS = Pointer(cute.Float16, cute.AddressSpace.rmem, None, 0, 16)


@pytest.mark.parametrize(
    "align, stride, swizzle, limit, width",
    [
        (16, (1, 8), None, 16, 8),
        (16, (1, 8), None, 4, 2),
        (4, (1, 8), None, 16, 2),
        (16, (1, 12), None, 16, 4),
        (16, (8, 1), None, 16, 1),
        (1024, (1, 8), cute.Swizzle(3, 4, 3), 16, 8),
        (1024, (1, 8), cute.Swizzle(2, 2, 3), 16, 2),
    ],
)
def test_a_vector_is_as_wide_as_layouts_alignment_and_swizzle_prove(align, stride, swizzle, limit, width):
    lay = cute.make_layout((8, 4), stride=stride)
    regs = cute.make_layout((8, 4))
    assert vector_width(in_memory(align, swizzle), lay, REGS, regs, limit) == width


@traced
def add_to_all(regs, more):
    for i in range(cute.size(regs)):
        regs[i] = regs[i] + more


@traced
def sum_of_coordinates(acc, coords):
    for i in range(cute.size(acc)):
        m, n = coords[i]
        acc[i] = cute.Float32(m + n)


@cuda.jit
def tiled_add(src, dst, copier, more):
    tidx, _, _ = cute.arch.thread_idx()
    thr = copier.get_slice(tidx)
    part, out = thr.partition_S(src), thr.partition_D(dst)
    regs = cute.make_rmem_tensor_like(part)
    cute.copy(copier, part, regs)
    add_to_all(regs, more)
    cute.copy(copier, regs, out)


def vector_copier(bits):
    atom = cute.make_copy_atom(CopyUniversalOp(), cute.Float32, bits)
    return cute.make_tiled_copy_tv(
        atom, cute.make_layout((4, 8), stride=(8, 1)), cute.make_layout((2, bits // 32), stride=(bits // 32, 1))
    )


@pytest.mark.parametrize("bits", [32, 64, 128])
def test_tiled_copies_cover_the_tensor(run, aligned, bits):
    src, dst = aligned((16, 64), np.float32), aligned((16, 64), np.float32, fill=np.nan)
    args = [
        lambda place: from_dlpack(place(src), 16),
        lambda place: from_dlpack(place(dst), 16),
        vector_copier(bits),
        1.0,
    ]
    want = src + np.float32(1)
    run(tiled_add, 1, 32, args, outputs=[dst], check=lambda: np.testing.assert_array_equal(dst, want))


def test_128_bit_copies_become_128_bit_instructions():
    t = make_fake_tensor(cute.Float32, (16, 64), (64, 1), assumed_align=16)
    ptx = cute.compile(tiled_add, (t, t, vector_copier(128), 1.0), arch="sm_90a").ptx
    assert len(re.findall(r"ld\.(?:global\.)?v4", ptx)) == len(re.findall(r"st\.(?:global\.)?v4", ptx)) == 8
    assert not re.search(r"(ld|st)\.global\.(f32|b32|u32)", ptx)


def test_a_universal_copy_without_a_width_is_as_wide_as_can_be():
    t = make_fake_tensor(cute.Float32, (16, 64), (64, 1), assumed_align=16)
    atom = cute.make_copy_atom(CopyUniversalOp(), cute.Float32)
    copier = cute.make_tiled_copy_tv(
        atom, cute.make_layout((4, 8), stride=(8, 1)), cute.make_layout((2, 4), stride=(4, 1))
    )
    ptx = cute.compile(tiled_add, (t, t, copier, 1.0), arch="sm_90a").ptx
    assert len(re.findall(r"ld\.(?:global\.)?v4", ptx)) == 8


@cuda.jit
def guarded(src, dst, n):
    tidx, _, _ = cute.arch.thread_idx()
    row, out = src[tidx, None], dst[tidx, None]
    pred = cute.make_rmem_tensor(8, cute.Boolean)
    for i in cute.range_constexpr(8):
        pred[i] = 8 * tidx + i < n
    cute.basic_copy_if(pred, row, out)


@pytest.mark.parametrize("n", [0, 3, 100, 256])
def test_predicated_elements_alone_are_copied(run, aligned, n):
    src, dst = aligned((32, 8), np.int32, fill=np.arange(256).reshape(32, 8)), aligned((32, 8), np.int32, fill=0)
    args = [lambda place: from_dlpack(place(src), 16), lambda place: from_dlpack(place(dst), 16), n]

    def check():
        assert (dst.ravel()[:n] == np.arange(n)).all()
        assert (dst.ravel().view(np.uint32)[n:] == 0xA5A5A5A5).all()

    run(guarded, 1, 32, args, outputs=[dst], check=check)


@cuda.jit
def through_matrices(src, dst, load, store, layout):
    lane, _, _ = cute.arch.thread_idx()
    smem = cute.utils.SmemAllocator()
    s = smem.allocate_tensor(cute.Float16, layout.outer, 1024, layout.inner)
    out = smem.allocate_tensor(cute.Float16, layout.outer, 1024, layout.inner)
    for j in range(16):
        if lane < 16:
            s[lane, j] = src[lane, j]
    cute.arch.sync_warp()
    part = load.get_slice(lane).partition_S(s)
    regs = cute.make_rmem_tensor(cute.shape(load.get_slice(lane).partition_D(s)), cute.Float16)
    cute.copy(load, part, regs)
    cute.copy(store, regs, store.get_slice(lane).partition_D(out))
    cute.arch.sync_warp()
    for j in range(16):
        if lane < 16:
            dst[lane, j] = out[lane, j]


def matrix_copier(op, side):
    """A 16 x 16 tile as four 8 x 8 matrices in registers: lane t holds rows t // 4 and columns 2 (t % 4) of each."""
    tv = cute.make_layout(((4, 8), (2, 2, 2)), stride=((32, 1), (16, 8, 128)))
    return cute.make_tiled_copy(cute.make_copy_atom(op, cute.Float16), tv, (16, 16))


@pytest.mark.parametrize("kind", [warpgroup.SmemLayoutAtomKind.K_SW32, warpgroup.SmemLayoutAtomKind.K_INTER])
def test_ldmatrix_and_stmatrix_invert_each_other(run, aligned, kind):
    src, dst = aligned((16, 16), np.float16), aligned((16, 16), np.float16, fill=np.nan)
    lay = cute.tile_to_shape(warpgroup.make_smem_layout_atom(kind, cute.Float16), (16, 16), (0, 1))
    load = matrix_copier(warp.LdMatrix8x8x16bOp(False, 4), "D")
    store = matrix_copier(warp.StMatrix8x8x16bOp(False, 4), "S")
    args = [lambda place: from_dlpack(place(src), 16), lambda place: from_dlpack(place(dst), 16), load, store, lay]
    run(through_matrices, 1, 32, args, outputs=[dst], check=lambda: np.testing.assert_array_equal(dst, src))


M, N, PIECE = 128, 128, 64


def make_epilogue(fenced):
    @cuda.jit
    def epilogue(tma, mC, layout, tiled_mma, to_smem):
        tidx, _, _ = cute.arch.thread_idx()
        warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        smem = cute.utils.SmemAllocator()
        sC = smem.allocate_tensor(cute.BFloat16, layout.outer, 1024, layout.inner)
        thr_mma = tiled_mma.get_slice(tidx)
        coords = thr_mma.partition_C(cute.make_identity_tensor((M, N)))
        acc = tiled_mma.make_fragment_C(coords)
        sum_of_coordinates(acc, coords)
        part = to_smem.get_slice(tidx).partition_D(sC)
        regs = cute.make_rmem_tensor(cute.shape(part), cute.BFloat16)
        pieces = cute.make_tensor(acc.iterator, cute.make_layout((cute.size(regs), N // PIECE)))
        gC = cute.local_tile(mC, (M, PIECE), (None, None))
        tCs, tCg = cpasync.tma_partition(
            tma, 0, cute.make_layout(1), cute.group_modes(sC, 0, 2), cute.group_modes(gC, 0, 2)
        )
        for piece in cute.range_constexpr(N // PIECE):
            regs.store(pieces[None, piece].load().to(cute.BFloat16))
            cute.copy(to_smem, regs, part)
            if fenced:
                cute.arch.fence_proxy("async.shared", space="cta")
            cute.arch.sync_threads()
            if warp_idx == 0:
                cute.copy(tma, tCs, tCg[None, 0, piece])
                cute.arch.cp_async_bulk_commit_group()
                cute.arch.cp_async_bulk_wait_group(0, read=True)
            cute.arch.sync_threads()

    return epilogue


def epilogue_args(c):
    k_major, smem = warpgroup.OperandMajorMode.K, warpgroup.OperandSource.SMEM
    op = warpgroup.MmaF16BF16Op(cute.BFloat16, cute.Float32, (64, N, 16), smem, k_major, k_major)
    mma = cute.make_tiled_mma(op, (2, 1, 1))
    atom = cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), cute.BFloat16)
    to_smem = cute.make_tiled_copy_S(atom, cute.make_tiled_copy_C_atom(atom, mma))
    layout_atom = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, cute.BFloat16)
    lay = cute.tile_to_shape(layout_atom, (M, PIECE), (0, 1))

    def tma(place, i):
        store = cpasync.CopyBulkTensorTileS2GOp()
        return cpasync.make_tiled_tma_atom(store, from_dlpack(place(c), assumed_align=16), lay, (M, PIECE))[i]

    return [lambda place: tma(place, 0), lambda place: tma(place, 1), lay, mma, to_smem]


def test_accumulators_leave_by_stmatrix_and_tma(run, aligned):
    c = aligned((100, N), fill=np.nan)
    want = np.add.outer(np.arange(100), np.arange(N)).astype(c.dtype)
    run(
        make_epilogue(True), 1, 256, epilogue_args(c), outputs=[c], check=lambda: np.testing.assert_array_equal(c, want)
    )


def test_a_tma_store_without_the_proxy_fence_is_reported(aligned):
    c = aligned((M, N), fill=np.nan)
    args = [a(lambda x: x) if isinstance(a, type(lambda: 0)) else a for a in epilogue_args(c)]
    with pytest.raises(Exception, match="fence.proxy.async|fence_proxy") as caught:
        cute.simulate(make_epilogue(False))[1, 256](*args)
    assert "sC" in str(caught.value), "the buffer is called by its name in the kernel"
