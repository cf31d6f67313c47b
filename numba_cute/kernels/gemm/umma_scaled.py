# SPDX-License-Identifier: Apache-2.0
"""Scale factors of the operands of a GEMM of Blackwell: 16 or 32 neighbours along K share one.

Factors lie in chunks of 512 bytes, as the hardware has them: 128 rows, 4 factors of each. A stage has those of its tile
of K, which follow each other, as TMA sees them in words of 32 bits. tcgen05.cp takes them on to tensor memory, in order
with the multiplies that use them.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba_cute as cute
from numba_cute.nvgpu import CtaGroup, cpasync, tcgen05
from numba_cute.seam import frozen, traced
from numba_cute.utils import blockscaled_layout, sm100

from .operands import view

ROWS, FACTORS, WORDS = 128, 4, 128  # of a chunk: rows, factors of each, and words of 32 bits


class Kind(NamedTuple):
    """Describe numbers with factors. element, factor: their types. vector: elements that share a factor."""

    element: Any
    factor: Any
    vector: int

    @property
    def chunks(self) -> int:
        """Chunks of factors along a tile of K, of 128 bytes of elements."""
        return 1024 // int(self.element.width) // (self.vector * FACTORS)


class Scales(NamedTuple):
    """The factors of both operands, of one kind: arrays of bytes, in chunks, those of the same rows one after another
    along K."""

    kind: Kind
    a: Any
    b: Any


# ---------------------------------------------------------------- in the kernel


@frozen
class Factors:
    """Describe the factors in shared and tensor memory. dtype: theirs. a, b: in shared memory, as tcgen05.cp takes
    them. a_held, b_held: in tensor memory. copy: from the one to the other. chunks: as of `Kind`."""

    dtype: Any
    a: Any
    b: Any
    a_held: Any
    b_held: Any
    copy: Any
    chunks: int

    @property
    def stage(self) -> int:
        """Bytes of both operands' factors in a stage."""
        return 2 * ROWS * FACTORS * self.chunks

    def allocate(self, smem: Any) -> tuple[Any, Any]:
        """Reserve shared memory for the factors of all stages."""
        return (smem.allocate_tensor(self.dtype, self.a, 1024, None, "sFA"),
                smem.allocate_tensor(self.dtype, self.b, 1024, None, "sFB"))  # fmt: skip

    def loads(self, tma: Any, shared: Any, there: Any) -> tuple[Any, Any]:
        """Give what TMA copies: in shared memory, (words, stages), and of the coordinates, (words, 1, K, rows)."""
        words = cute.recast_ptr(shared.iterator, dtype=cute.Int32)
        stage, stages = (WORDS, self.chunks, 1), cute.size(shared, mode=[3])
        tiles = cute.make_tensor(words, cute.make_layout((*stage, stages)))
        whole = cute.local_tile(there, stage, (None, None, None))
        return cpasync.tma_partition(
            tma, 0, cute.make_layout(1), cute.group_modes(tiles, 0, 3), cute.group_modes(whole, 0, 3)
        )

    def hold(self, ptr: Any, shared: Any, held: Any) -> tuple[Any, Any, Any, Any]:
        """Give the factors in tensor memory, from `ptr` on, and the copy that brings them there: the copy, what of
        shared memory, by stages, and to where. shared: of all stages. held: the layout."""
        there = cute.make_tensor(cute.recast_ptr(ptr, dtype=self.dtype), held)
        compact = cute.filter_zeros(there)
        copy = tcgen05.make_s2t_copy(self.copy, compact)
        source = copy.get_slice(0).partition_S(cute.filter_zeros(shared))
        return there, copy, tcgen05.get_s2t_smem_desc_tensor(copy, source), copy.get_slice(0).partition_D(compact)


@cute.jit
def scaled(consumer, tiled_mma, sums, rA, rB, k_tiles, of_a, of_b):
    """Set `sums` to the products of `k_tiles` stages, with their factors. rA, rB: fragments, (V, M or N, K, stages).
    of_a, of_b: what `Factors.hold` gave."""
    for k in range(k_tiles):
        cute.range_push("wait", k)
        stage = consumer.wait_and_advance()
        cute.range_pop()
        bring(of_a, stage.index)
        bring(of_b, stage.index)
        adds = tiled_mma.set(tcgen05.Field.ACCUMULATE, k > 0)
        block = (None, None, None, stage.index)
        cute.gemm(adds, sums, [rA[block], of_a[0]], [rB[block], of_b[0]], sums)
        stage.release()


@traced
def bring(of: Any, stage: Any) -> None:
    """Copy a stage's factors to tensor memory. of: what `Factors.hold` gave."""
    _, copy, source, there = of
    cute.copy(copy, source[None, None, None, None, stage], there)


# ---------------------------------------------------------------- on the host


def mma_of(kind: Kind, ctas: int, tile_n: int) -> Any:
    """Give the block-scaled tcgen05.mma."""
    k = tcgen05.OperandMajorMode.K
    return sm100.make_blockscaled_trivial_tiled_mma(
        kind.element, kind.element, k, k, kind.factor, kind.vector, CtaGroup(ctas), (128 * ctas, tile_n)
    )


def given(
    scales: Scales | None, tiled_mma: Any, ctas: int, tile_n: int, stages: int, extents: tuple[int, int, int]
) -> tuple[Any, ...]:  # fmt: skip
    """Give of the kernel's arguments those of scale factors, None each if there are none. extents: M, N and K."""
    if scales is None:
        return (None,) * 5
    m, n, k = extents
    of_a, of_b = (loads(x, scales.kind, r, k, ctas) for x, r in ((scales.a, m), (scales.b, n)))
    return factors_of(scales.kind, tiled_mma, ctas, tile_n, stages), *of_a, *of_b


def factors_of(kind: Kind, tiled_mma: Any, ctas: int, tile_n: int, stages: int) -> Factors:
    """Say how factors of a kind lie in so many stages."""
    of, vector = (tiled_mma, (128 * ctas, tile_n, 1024 // int(kind.element.width))), kind.vector
    a = blockscaled_layout.make_smem_layout_sfa(*of, vector, stages)
    b = blockscaled_layout.make_smem_layout_sfb(*of, vector, stages)
    one = (None, None, None, 0)
    return Factors(
        kind.factor, a, b, blockscaled_layout.make_tmem_layout_sfa(*of, vector, cute.slice_(a, one)),
        blockscaled_layout.make_tmem_layout_sfb(*of, vector, cute.slice_(b, one)),
        cute.make_copy_atom(tcgen05.Cp4x32x128bOp(CtaGroup(ctas)), kind.factor), kind.chunks,
    )  # fmt: skip


def loads(factors: Any, kind: Kind, rows: int, k: int, ctas: int) -> Any:
    """Give the TMA atom that loads a stage's factors, and the coordinates. factors: an array of bytes, in chunks. rows,
    k: of the matrix."""
    along, blocks = math.ceil(k / (kind.vector * FACTORS)), math.ceil(rows / ROWS)
    words = cute.recast_ptr(view(factors, 16).iterator, dtype=cute.Int32)
    shape = WORDS, cute.Int32(along), cute.Int32(blocks)
    there = cute.make_tensor(words, cute.make_layout(shape, stride=(1, WORDS, cute.Int32(WORDS * along))))
    stage = WORDS, kind.chunks, 1
    op = cpasync.CopyBulkTensorTileG2SOp(cta_group=CtaGroup(ctas))
    return cpasync.make_tiled_tma_atom(op, there, cute.make_layout(stage), stage)
