# SPDX-License-Identifier: Apache-2.0
"""Who owns what in tiled MMAs and in the copies that fit them, counted out from the atom alone.

Each warp holds one atom in a block of the tile, the atom layout deals blocks out, a permutation renames columns."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.dtypes import Float4E2M1FN, Float8E8M0FNU
from numba_cute.nvgpu import CopyUniversalOp, tcgen05, warp

F16, F32, E4M3, E5M2 = cute.Float16, cute.Float32, cute.Float8E4M3FN, cute.Float8E5M2
OPS = [
    warp.MmaF16BF16SparseOp(F16, F32),
    warp.MmaTF32SparseOp(),
    warp.MmaFP8SparseOp(E4M3, E5M2),
    warp.MmaI8Op(cute.Int8, cute.Uint8),
    warp.MmaF64Op((16, 8, 16)),
    warp.MmaB1Op(),
    warp.MmaF8F6F4Op(E4M3, E5M2, F32),
    warp.MmaMXF4Op(Float4E2M1FN, F32, Float8E8M0FNU),
    warp.MmaF8F6F4SparseOp(E4M3, E5M2, F32),
]
WARPS = [(1, 1, 1), (2, 2, 1), (4, 1, 1), (1, 2, 2)]
PAIRS = cute.make_layout((8, 2, 2), stride=(1, 16, 8))  # columns of N in the order in which two warps take them in turn
OPERANDS = ((0, 2), (1, 2), (0, 1))  # the modes of A, B, C among M, N, K


def _atom(op, operand):
    """(lane, value) → (row, column) in the atom, and how many rows, columns and values there are."""
    atom = cute.make_mma_atom(op)
    tv = (atom.tv_layout_A, atom.tv_layout_B, atom.tv_layout_C)[operand]
    rows = op.shape_mnk[OPERANDS[operand][0]]
    columns = cute.cosize(tv) // rows
    return lambda lane, v: divmod(tv((lane, v)), rows)[::-1], rows, columns, cute.size(tv, mode=[1])


def _owned(op, operand, warps, tile, thread, permuted=None):
    """The coordinates in a tile of `tile` blocks that a thread holds."""
    place, rows, columns, values = _atom(op, operand)
    warp_, lane = divmod(thread, 32)
    at = (warp_ % warps[0], warp_ // warps[0] % warps[1], warp_ // (warps[0] * warps[1]))
    modes = OPERANDS[operand]
    owned = []
    for i in range(at[modes[0]], tile[0], warps[modes[0]]):
        for j in range(at[modes[1]], tile[1], warps[modes[1]]):
            for v in range(values):
                r, c = place(lane, v)
                r, c = r + rows * i, c + columns * j
                if permuted and operand == 1:
                    r = permuted(r)
                if permuted and operand == 2:
                    c = permuted(c)
                owned.append((r, c))
    return sorted(owned)


def _coordinates(part):
    return sorted(tuple(int(x) for x in part[i]) for i in range(cute.size(part)))


def _partitions(thread_mma):
    return thread_mma.partition_A, thread_mma.partition_B, thread_mma.partition_C


@pytest.mark.parametrize("warps", WARPS, ids=str)
@pytest.mark.parametrize("op", OPS, ids=lambda op: type(op).__name__)
def test_a_partition_holds_the_blocks_of_its_warp(op, warps):
    mma = cute.make_tiled_mma(op, cute.make_layout(warps))
    for operand in range(3):
        _, rows, columns, _ = _atom(op, operand)
        modes = OPERANDS[operand]
        tile = (2 * warps[modes[0]], 2 * warps[modes[1]])
        identity = cute.make_identity_tensor((rows * tile[0], columns * tile[1]))
        for t in range(0, 32 * warps[0] * warps[1] * warps[2], 5):
            got = _partitions(mma.get_slice(t))[operand](identity)
            assert _coordinates(got) == _owned(op, operand, warps, tile, t), (operand, t)


@pytest.mark.parametrize("op", [op for op in OPS if op.shape_mnk[1] == 8], ids=lambda op: type(op).__name__)
def test_a_permutation_of_n_renames_columns(op):
    warps = (2, 2, 1)
    mma = cute.make_tiled_mma(
        op, cute.make_layout(warps), permutation_mnk=(2 * op.shape_mnk[0], PAIRS, op.shape_mnk[2])
    )
    for operand, tile in ((0, (4, 2)), (1, (4, 2)), (2, (2, 4))):
        _, rows, columns, _ = _atom(op, operand)
        identity = cute.make_identity_tensor((rows * tile[0], columns * tile[1]))
        for t in range(0, 128, 5):
            got = _partitions(mma.get_slice(t))[operand](identity)
            assert _coordinates(got) == _owned(op, operand, warps, tile, t, PAIRS), (operand, t)


@pytest.mark.parametrize("op", OPS, ids=lambda op: type(op).__name__)
def test_a_copy_made_for_an_operand_hands_each_thread_what_it_holds(op):
    mma = cute.make_tiled_mma(op, cute.make_layout((2, 2, 1)))
    makers = (cute.make_tiled_copy_A, cute.make_tiled_copy_B, cute.make_tiled_copy_C)
    for operand, make in enumerate(makers):
        _, rows, columns, _ = _atom(op, operand)
        modes = OPERANDS[operand]
        tile = (2 * (2, 2, 1)[modes[0]], (2, 2, 1)[modes[1]])
        copy = make(cute.make_copy_atom(CopyUniversalOp(), F32), mma)
        identity = cute.make_identity_tensor((rows * tile[0], columns * tile[1]))
        for t in range(0, 128, 7):
            mine = _partitions(mma.get_slice(t))[operand](identity)
            source, target = copy.get_slice(t).partition_S(identity), copy.retile(mine)
            assert source.shape == target.shape
            assert [source[i] for i in range(cute.size(source))] == [target[i] for i in range(cute.size(target))]
            assert _coordinates(source) == _owned(op, operand, (2, 2, 1), tile, t)


def test_a_block_of_a_pair_parts_its_own_half_of_a_tile():
    """The first of a pair may take its part of a tensor that is half a tile; the part of the second would lie beyond
    it, and so would whole tiles of a block alone."""
    K, group = tcgen05.OperandMajorMode.K, tcgen05.CtaGroup
    pair, one = (
        cute.make_tiled_mma(
            tcgen05.MmaF16BF16Op(cute.BFloat16, cute.Float32, (128, n, 16), g, tcgen05.OperandSource.SMEM, K, K)
        )
        for n, g in ((256, group.TWO), (256, group.ONE))
    )
    ptr = cute.make_ptr(cute.BFloat16, 0, cute.AddressSpace.smem, assumed_align=512)
    half = cute.make_tensor(ptr, cute.make_layout((128, 64, 5), stride=(1, 0, 128)))
    assert str(pair.get_slice(0).partition_B(half).layout) == "((128,16),1,4,5):((1,0),0,0,128)"
    for thread in (pair.get_slice(1), one.get_slice(0)):
        with pytest.raises(cute.CuteError, match="no multiple of the tile's 256"):
            thread.partition_B(half)


@pytest.mark.parametrize("threads, says", [(4, None), (5, "shared memory: thread 4")])
def test_threads_of_a_tile_that_is_larger_than_its_tensor_have_nothing(threads, says):
    """A tensor in shared memory may be smaller than the tile if each thread's part lies wholly in it or beyond it: what
    lies beyond is nobody's memory, though the next stage lies there."""
    copy = cute.make_tiled_copy_tv(
        cute.make_copy_atom(CopyUniversalOp(), F32, 128), cute.make_layout(32), cute.make_layout(4)
    )

    @cuda.jit
    def kernel(src, out, threads):
        t = cute.arch.thread_idx()[0]
        s = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout((16, 2)), 128)
        thr = copy.get_slice(t)
        here, there = thr.partition_S(src), thr.partition_D(s)
        if t < threads:
            for stage in range(2):
                cute.copy(copy, here[None, 0, stage], there[None, 0, stage])
        cute.arch.sync_warp()
        if t < 16:
            out[t] = s[t, 0] + s[t, 1]

    src, out = np.arange(256, dtype=np.float32).reshape(2, 128), np.zeros(16, np.float32)
    args = cute.runtime.from_dlpack(src.T, assumed_align=16), out, threads
    assert "st.shared.v4" in cute.compile(kernel, args).ptx
    if says is None:
        cute.simulate(kernel)[1, 32](*args)
        np.testing.assert_array_equal(out, src[0, :16] + src[1, :16])
    else:
        with pytest.raises(cute.CuteError, match=says):
            cute.simulate(kernel)[1, 32](*args)


def test_parts_that_a_tensor_cuts_are_refused():
    copy = cute.make_tiled_copy_tv(
        cute.make_copy_atom(CopyUniversalOp(), F32), cute.make_layout(32), cute.make_layout(4)
    )
    ptr = cute.make_ptr(F32, 0, cute.AddressSpace.smem, assumed_align=16)
    for extent in (18, 130):
        with pytest.raises(cute.CuteError, match="no multiple of the tile's 128"):
            copy.get_slice(0).partition_D(cute.make_tensor(ptr, cute.make_layout((extent, 2))))
