# SPDX-License-Identifier: Apache-2.0
"""Multiply one tile of C by a warpgroup, stage by stage, with wgmma: 64 rows of A by all of the tile of B."""

import numba_cute as cute
from numba_cute.nvgpu import warpgroup
from numba_cute.seam import traced

BLOCK = 128  # elements of K, and columns of B, that share a scale


@cute.jit
def plainly(consumer, tiled_mma, acc, rA, rB, k_tiles, gathered=None, done=None):
    """Set `acc` to the products of `k_tiles` stages. rA, rB: fragments, (V, M or N, K, stages). gathered, done: where A
    comes by another pipeline than B, two consumers of that: what is waited for, and what has been read."""
    adds = tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
    previous = consumer.wait()
    for k in range(k_tiles):
        stage = consumer.wait_and_advance()
        if cute.const_expr(gathered is not None):
            gathered.wait_and_advance()
        warpgroup.fence()
        first = tiled_mma.set(warpgroup.Field.ACCUMULATE, k > 0)
        cute.gemm(first, acc, rA[None, None, 0, stage.index], rB[None, None, 0, stage.index], acc)
        for kb in cute.range_constexpr(1, cute.size(rA, mode=[2])):
            cute.gemm(adds, acc, rA[None, None, kb, stage.index], rB[None, None, kb, stage.index], acc)
        warpgroup.commit_group()
        warpgroup.wait_group(1)  # the tensor cores may still read this stage, but not the one before
        if k > 0:
            previous.release()
            if cute.const_expr(done is not None):
                release(done)
        previous = stage
    warpgroup.wait_group(0)
    previous.release()
    if cute.const_expr(done is not None):
        release(done)


@cute.jit
def nothing(consumer, k_tiles, gathered=None, done=None):
    """Release `k_tiles` stages as they come. gathered, done: as of `plainly`."""
    for _ in range(k_tiles):
        consumer.wait_and_advance().release()
        if cute.const_expr(gathered is not None):
            gathered.wait_and_advance()
            release(done)


@traced
def release(done):
    """Release the stage of a consumer, and go to the next."""
    done.release()
    done.advance()


@traced
def promote(sums, acc, scale, scale_8):
    """Add the products of a block of K, scaled, to the sums. scale: of this thread's row, scale_8: of the one 8 below,
    whose products stand in every other pair."""
    for i in range(cute.size(acc)):
        sums[i] = cute.fma(acc[i], scale_8 if i // 2 % 2 else scale, sums[i])


@traced
def start(tiled_mma, acc, rA, rB, half, stage):
    """Begin to multiply a stage by 128 of B's columns."""
    warpgroup.fence()
    for kb in range(cute.size(rA, mode=[2])):
        mma = tiled_mma.set(warpgroup.Field.ACCUMULATE, kb > 0)
        products = acc[None, 0, 0]
        cute.gemm(mma, products, rA[None, 0, kb, stage], rB[None, half, kb, stage], products)
    warpgroup.commit_group()


@cute.jit
def scaled(consumer, tiled_mma, sums, rA, rB, k_tiles, scales_a, row, scales_b, group, n_block):
    """Set `sums` to the products of `k_tiles` stages, each times the scale of its block.

    A stage is a block of 128 along K, and each 128 of the tile's columns are summed by the tensor cores from zero, and
    added to the sums in float32: the other warpgroup multiplies meanwhile. The scales of the next block are on their
    way from global memory meanwhile.
    rA, rB: fragments, (V, M or N, K, stages). scales_a: (rows, blocks of K). row: this thread's, in A. scales_b:
    (groups, blocks of N, blocks of K). n_block: the tile's first.
    """
    halves = cute.size(rB, mode=[1])
    acc = tiled_mma.make_fragment_C(tiled_mma.partition_shape_C((128, BLOCK)))
    each = cute.make_tensor(sums.iterator, cute.make_layout((cute.size(acc), halves)))
    sums.fill(0.0)
    most = cute.Int32(scales_a.shape[0] - 1)
    upper, lower = cute.min(row, most), cute.min(row + 8, most)
    row_a, row_a_8 = scales_a[upper, None], scales_a[lower, None]
    a, a_8 = row_a[0], row_a_8[0]
    last = cute.Int32(scales_b.shape[1] - 1)
    row_b, row_b_right = (
        scales_b[group, cute.min(n_block, last), None],
        scales_b[group, cute.min(n_block + 1, last), None],
    )
    b, b_right = row_b[0], row_b_right[0]
    for k in range(k_tiles):
        scale, scale_8 = a * b, a_8 * b
        scale_right, scale_8_right = a * b_right, a_8 * b_right
        stage = consumer.wait_and_advance()
        start(tiled_mma, acc, rA, rB, 0, stage.index)
        following = cute.min(cute.Int32(k + 1), cute.Int32(k_tiles - 1))
        a, a_8, b, b_right = row_a[following], row_a_8[following], row_b[following], row_b_right[following]
        warpgroup.wait_group(0)
        if cute.const_expr(halves == 1):
            stage.release()
        promote(each[None, 0], acc, scale, scale_8)
        if cute.const_expr(halves == 2):
            start(tiled_mma, acc, rA, rB, 1, stage.index)
            warpgroup.wait_group(0)
            stage.release()
            promote(each[None, 1], acc, scale_right, scale_8_right)
