# SPDX-License-Identifier: Apache-2.0
"""What a warpgroup multiplies for one tile of C, stage by stage, with wgmma: 64 rows of A by all of the tile of B."""

from typing import Any

import numba_cute as cute
from numba_cute import pipeline
from numba_cute.nvgpu import warpgroup
from numba_cute.seam import current, traced

BLOCK = 128  # elements of K, and columns of B, that share a scale


@cute.jit
def plainly(consumer, tiled_mma, acc, rA, rB, k_tiles):
    """Set `acc` to the products of `k_tiles` stages. rA, rB: fragments, (V, M or N, K, stages)."""
    previous = consumer.wait()
    for k in range(k_tiles):
        stage = consumer.wait_and_advance()
        warpgroup.fence()
        first = tiled_mma.set(warpgroup.Field.ACCUMULATE, k > 0)
        cute.gemm(first, acc, rA[None, None, 0, stage.index], rB[None, None, 0, stage.index], acc)
        for kb in cute.range_constexpr(1, cute.size(rA, mode=[2])):
            cute.gemm(tiled_mma, acc, rA[None, None, kb, stage.index], rB[None, None, kb, stage.index], acc)
        warpgroup.commit_group()
        warpgroup.wait_group(1)  # the tensor cores may still read this stage, but not the one before
        if k > 0:
            previous.release()
        previous = stage
    warpgroup.wait_group(0)
    previous.release()


@cute.jit
def nothing(consumer, k_tiles, turns, batches):
    """Release `k_tiles` stages as they come. turns: None, or of both warpgroups, of which `scaled` takes as many as
    `batches` for each stage: they are passed on."""
    for _ in range(k_tiles):
        stage = consumer.wait_and_advance()
        if cute.const_expr(turns is not None):
            for _ in cute.range_constexpr(batches):
                turns.take()
                turns.give()
        stage.release()


@cute.struct
class Turns:
    """Whose turn it is to multiply, of two warpgroups: else the tensor cores would share out their time, and both would
    wait for their products, and then add, together. Make one with `create`."""

    own: Any
    others: Any
    group: Any

    @staticmethod
    @traced
    def create(barrier, group):
        """Begin with the first warpgroup's turn. barrier: the first of two named barriers. group: which this one is."""
        turns = Turns(
            pipeline.NamedBarrier(barrier + group, 2 * 128), pipeline.NamedBarrier(barrier + 1 - group, 2 * 128), group
        )
        current().when(current().compare("==", group, 1), turns.give)
        return turns

    @traced
    def take(self):
        """Wait for this warpgroup's turn."""
        self.own.arrive_and_wait()

    @traced
    def give(self):
        """Let the other warpgroup have its turn."""
        self.others.arrive()

    @traced
    def tail(self):
        """Take the turn that nobody will use. Each warpgroup, at the end."""
        current().when(current().compare("==", self.group, 0), self.take)


@traced
def turns_of(scales: Any, barrier: int, group: Any) -> Any:
    """Give the turns of a multiply with scales, as `Turns.create` makes them; None, where there are none."""
    return None if scales is None else Turns.create(barrier, group)


@traced
def promote(sums, acc, scale, scale_8):
    """Add the products of a block of K, scaled, to the sums. scale: of this thread's row, scale_8: of the one 8 below,
    whose products stand in every other pair."""
    for i in range(cute.size(acc)):
        sums[i] = cute.fma(acc[i], scale_8 if i // 2 % 2 else scale, sums[i])


@traced
def multiply(tiled_mma, acc, rA, rB, half, stage, turns):
    """Multiply a stage by 128 of B's columns, when it is this warpgroup's turn: the other's begins before the last of
    these instructions ends."""
    turns.take()
    warpgroup.fence()
    blocks = cute.size(rA, mode=[2])
    for kb in range(blocks):
        mma = tiled_mma.set(warpgroup.Field.ACCUMULATE, kb > 0)
        products = acc[None, 0, 0]
        cute.gemm(mma, products, rA[None, 0, kb, stage], rB[None, half, kb, stage], products)
        if kb >= blocks - 2:
            warpgroup.commit_group()
    warpgroup.wait_group(1)
    turns.give()


@cute.jit
def scaled(consumer, tiled_mma, sums, rA, rB, k_tiles, scales_a, row, scales_b, group, n_block, turns):
    """Set `sums` to the products of `k_tiles` stages, each times the scale of its block.

    A stage is a block of 128 along K, and each 128 of the tile's columns are summed by the tensor cores from zero, and
    added to the sums in float32: the other warpgroup multiplies meanwhile, for they take turns. The scales of the next
    block are on their way from global memory meanwhile.
    rA, rB: fragments, (V, M or N, K, stages). scales_a: (rows, blocks of K). row: this thread's, in A. scales_b:
    (groups, blocks of N, blocks of K). n_block: the tile's first. turns: of both warpgroups.
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
        following = cute.min(cute.Int32(k + 1), cute.Int32(k_tiles - 1))
        a, a_8, b, b_right = row_a[following], row_a_8[following], row_b[following], row_b_right[following]
        multiply(tiled_mma, acc, rA, rB, 0, stage.index, turns)
        warpgroup.wait_group(0)
        if cute.const_expr(halves == 1):
            stage.release()
        promote(each[None, 0], acc, scale, scale_8)
        if cute.const_expr(halves == 2):
            multiply(tiled_mma, acc, rA, rB, 1, stage.index, turns)
            warpgroup.wait_group(0)
            stage.release()
            promote(each[None, 1], acc, scale_right, scale_8_right)
