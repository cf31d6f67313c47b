# SPDX-License-Identifier: Apache-2.0
"""A GEMM of 16-bit activations by weights of 4 bits, as `mixed.py`, for GPUs with mma.sync: of sm_80 on, all.

The loop over K and the way out are those of `warps.py`. The weights are its operand B, and lie as `pack.py` has put
them for wgmma: its A and mma.sync's A are one fragment, whose 16 rows are two of mma.sync's B. So a thread reads 16
bytes of its warp's 512, without bank conflicts, for 16 rows and 64 of K, and widens them a block of 16 at a time while
the tensor cores multiply the last.

Few tokens have few tiles: several CTAs then have a part of K each, and the last one that is done adds up all sums,
always in the same order.
"""

from __future__ import annotations

import functools
from typing import Any

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import cpasync
from numba_cute.seam import current, frozen, traced
from numba_cute.tilelang.cpasync import cp_async_shared_global

from .dense import get_partial, is_last, put_partial
from .hook import Hook
from .pack import COLUMNS as TILE_K, ROWS
from .warps import VECTOR, add_up, in_ring, leave
from .widened import MINUS_ZERO, factor_of, two_of

ONE = 0x3F803F80  # bfloat16's, two times
VECTORS = ROWS * TILE_K // 32  # of words of ROWS by TILE_K numbers


@traced
def less(number: Any, zero: Any) -> Any:
    """Subtract two bfloat16 from two, where the differences are some too: GPUs before Hopper have no `sub` of them."""
    return arch.fma_packed_bf16x2(number, cute.Uint32(ONE), zero ^ cute.Uint32(MINUS_ZERO))


@frozen
class Form:
    """Describe how packed weights lie. tiles: of ROWS, in a CTA's. groups, kinds: of their factors, in a tile of K.
    middle: as of Int4Weights. shared: whether two tiles of K have the same factors."""

    tiles: int
    groups: int
    kinds: int
    middle: int
    shared: bool

    @property
    def vectors(self) -> tuple[int, int]:
        """Vectors of a CTA's tile: of words, and of factors."""
        return self.tiles * VECTORS, self.tiles * self.groups * self.kinds * (2 * ROWS // VECTOR)

    def in_ring(self, ring: Any, stages: int) -> tuple[Any, Any]:
        """Give the words and the factors of a ring that begins there: (vector, vectors, stages)."""
        found, offset = [], 0
        for dtype, count in zip((cute.Uint32, cute.Uint16), self.vectors):
            each = 8 * VECTOR // dtype.width
            layout = cute.make_layout((each, count, stages))
            found.append(cute.make_tensor(cute.recast_ptr(ring + offset, dtype=dtype), layout))
            offset += VECTOR * count * stages
        return found[0], found[1]


@traced
def copy_vector(source: Any, first: Any, left: Any, target: Any, at: Any) -> None:
    """Begin to copy a vector, or zeros where there are not so many. first: as of Packed. left: too, or None where there
    are. at: which one."""
    there, nbytes = first + at, None
    if left is not None:
        nbytes = current().select(current().compare("<", at, left), cute.Int32(VECTOR), cute.Int32(0))
        there = first + cute.min(at, left - 1)
    cp_async_shared_global(
        target[None, at], source[None, there], VECTOR, cpasync.LoadCacheMode.GLOBAL, src_size=nbytes
    )  # fmt: skip


@frozen
class Packed:
    """Packed weights of one tile of rows, as a thread copies them to the ring, and takes them out of it.

    form: a Form. thread, threads: this one, of so many. words, factors: in global memory, (vector, vectors, tiles of
    K). first, left: of both, the tile's first vector, and how many there are from there on. mask: MASK, where it is not
    known."""

    form: Any
    thread: Any
    threads: int
    words: Any
    factors: Any
    first: tuple[Any, Any]
    left: tuple[Any, Any]
    ring: tuple[Any, Any]
    mask: Any

    def load(self, tile: Any, stage: Any) -> None:
        """Begin to copy a tile of K to a stage, with zeros for rows that there are not."""
        b, places = current(), (cute.Int32(tile), cute.Int32(tile) >> int(self.form.shared))
        for i, source in enumerate((self.words, self.factors)):
            target, there, count = self.ring[i][None, None, stage], source[None, None, places[i]], self.form.vectors[i]
            for start in range(0, count, self.threads):
                at = cute.Int32(self.thread) + start
                left = None if self.form.tiles == 1 else self.left[i]  # rows are packed in such tiles
                copy = functools.partial(copy_vector, there, self.first[i], left, target, at)
                if count - start >= self.threads:
                    copy()
                else:
                    b.when(b.compare("<", at, count), copy)

    def fragments(self, ring: tuple[Any, Any], tiled_mma: Any) -> Widened:
        """Give what takes B's fragments out of the ring."""
        form, (words, factors) = self.form, ring
        stages, warps = cute.size(words, mode=[2]), tiled_mma.thr_layout_vmnk.shape[2]
        slabs = form.tiles * ROWS // (16 * warps)
        of_factors = cute.make_layout((ROWS, form.groups * form.kinds, form.tiles, stages))
        return Widened(
            form, cute.make_tensor(words.iterator, cute.make_layout((4, 32, ROWS // 16, form.tiles, stages))),
            cute.make_tensor(factors.iterator, of_factors), cute.Int32(self.thread) % 32,
            cute.Int32(tiled_mma.thr_layout_vmnk.get_flat_coord(self.thread)[2]), warps,
            tiled_mma.make_fragment_B(tiled_mma.partition_shape_B((form.tiles * ROWS, TILE_K))),
            cute.make_rmem_tensor((4, slabs), cute.Uint32), cute.make_rmem_tensor((2, 2, slabs), cute.Uint32),
            self.mask,
        )  # fmt: skip


@frozen
class Widened:
    """B's fragments of packed weights, of slabs of 16 rows, which warps have in turn.

    form: a Form. words: the ring's, (4, lanes, slabs, tiles, stages). factors: (rows, factors, tiles, stages). lane,
    warp: this thread's; a warp's among `warps` along B. numbers: the fragments, ((2, 2), 2 of a slab, blocks). narrow:
    of a stage. held: of a group the (zero point, scale), of two rows of each slab. mask: as of Packed."""

    form: Any
    words: Any
    factors: Any
    lane: Any
    warp: Any
    warps: int
    numbers: Any
    narrow: Any
    held: Any
    mask: Any

    def take(self, block: int, stage: Any) -> None:
        """Take a block's fragments out: of the first one of a stage the words of all, of the first one of a group its
        factors."""
        form, dtype, slabs = self.form, self.numbers.element_type, cute.size(self.held, mode=[2])
        subtract = less if dtype == cute.BFloat16 else arch.sub_packed_f16x2
        wide = cute.recast_tensor(self.numbers, cute.Uint32)
        for slab in range(slabs):
            place, tile = slab * self.warps % (ROWS // 16), slab * self.warps // (ROWS // 16)
            if block == 0:
                own = self.words[None, self.lane, self.warp + place, tile, stage]
                cute.autovec_copy(own, self.narrow[None, slab])
            if block * form.groups % 4 == 0:
                row = 16 * (self.warp + place) + self.lane // 4
                for half in range(2):
                    self.held[0, half, slab], self.held[1, half, slab] = factor_of(
                        self.factors[None, None, tile, None], row + 8 * half, block * form.groups // 4, stage,
                        form.middle, form.kinds,
                    )  # fmt: skip
            for pair in range(4):
                zero = self.held[0, pair % 2, slab] if form.kinds == 2 else cute.Uint32(form.middle * 0x10001)
                wide[(0, pair // 2), 2 * slab + pair % 2, block] = two_of(
                    self.narrow[block, slab], pair, (zero, self.held[1, pair % 2, slab]), dtype, self.mask, subtract
                )


@cute.jit
def add_parts(acc, partial, splits, thread):
    """Set a thread's sums to those of all CTAs that share a tile, in order. partial: as of `get_partial`."""
    acc.fill(0)
    sums = cute.make_tensor(acc.iterator, cute.make_layout(cute.size(acc)))
    for split in cute.range(splits, unroll=1):
        get_partial(sums, partial, thread, 0, split, 1)


def mixed(
    dtype, mX, words, factors, mC, tiled_mma, ldmatrix, copies_x, copies_c, x_layout, c_layout, form, order, extents,
    mask, partials, tickets,
):  # fmt: skip
    piece, _, _ = arch.block_idx()
    thread, _, _ = arch.thread_idx()
    threads, stages = cute.size(tiled_mma), cute.size(x_layout, mode=[2])
    splits, split, index = cute.Int32(1), cute.Int32(0), cute.Int32(piece)
    if cute.const_expr(partials is not None):
        splits = cute.Int32(partials.shape[3])
        index, split = cute.Int32(piece // splits), cute.Int32(piece % splits)
    m, n, batch = order.decode(index)
    smem = utils.SmemAllocator()
    of_x = cute.size_in_bytes(dtype, x_layout)
    whole = of_x + VECTOR * stages * sum(form.vectors)
    ring = smem.allocate(whole, 1024, "ring")
    sX, sW = in_ring(ring, 0, dtype, x_layout), form.in_ring(ring + of_x, stages)
    tiles_x = copies_x.tiles(thread, mX, sX, m, batch, (extents[0], extents[2]))
    first = cute.Int32(n * form.vectors[0]), cute.Int32(n * form.vectors[1])
    left = cute.size(words, mode=[1]) - first[0], cute.size(factors, mode=[1]) - first[1]
    weights = Packed(form, thread, threads, words, factors, first, left, sW, mask)
    tile_m, piece_m = cute.size(x_layout, mode=[0]), cute.size(c_layout, mode=[0])
    rows, columns = tile_m // piece_m, cute.size(c_layout, mode=[1]) // (8 * tiled_mma.thr_layout_vmnk.shape[2])
    acc = cute.make_rmem_tensor(cute.make_layout((4, rows, columns), stride=(1, 4 * columns, 4)), cute.Float32)
    acc.fill(0)
    k_tiles = cute.ceil_div(extents[2], TILE_K)
    begin, end = cute.Int32(split * k_tiles // splits), cute.Int32((split + 1) * k_tiles // splits)
    add_up(acc, tiles_x, weights, sX, sW, tiled_mma, ldmatrix, None, thread, begin, end - begin)
    finishes = True
    if cute.const_expr(partials is not None):
        flags = cute.make_tensor(cute.recast_ptr(ring + (whole - VECTOR), dtype=cute.Int32), cute.make_layout(1))
        partial = partials[None, None, None, None, index]
        put_partial(acc, partial[None, None, None, split], thread, 0)
        together = pipeline.NamedBarrier(1, threads)
        finishes = is_last(tickets.iterator + index, splits, flags, 0, thread, together)
        if finishes:
            add_parts(acc, partial, splits, thread)
    if finishes:
        held = cute.size_in_bytes(dtype, c_layout), None
        leave(acc, ring, held, mC, None, tiled_mma, copies_c, c_layout, Hook(), thread, (m, n, batch), extents)
