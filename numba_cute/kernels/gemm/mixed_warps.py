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
LOADS = 64  # sums of others that a thread loads at once
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


@frozen
class Vector:
    """A vector of a tile of K that a thread copies. there: in global memory, (vector, tiles of K). target: in the ring,
    (vector, stages). nbytes: how many there are, or None for all. some: whether this thread has it, or None."""

    there: Any
    target: Any
    nbytes: Any
    some: Any

    def load(self, tile: Any, stage: Any) -> None:
        """Begin to copy it, or zeros. tile: of K."""

        def copy() -> None:
            cp_async_shared_global(
                self.target[None, stage], self.there[None, tile], VECTOR, cpasync.LoadCacheMode.GLOBAL,
                src_size=self.nbytes,
            )  # fmt: skip

        if self.some is None:
            copy()
        else:
            current().when(self.some, copy)


@traced
def vectors_of_thread(source: Any, ring: Any, n: Any, thread: Any, threads: int, whole: bool) -> tuple[Vector, ...]:
    """List a thread's vectors of the `n`-th tile of rows. source: all, (vector, vectors, tiles of K). ring: the tile's,
    (vector, vectors, stages). threads: among how many. whole: whether no tile has fewer rows than others."""
    b, found, count = current(), [], cute.size(ring, mode=[1])
    first, last = cute.Int32(n * count), cute.size(source, mode=[1]) - 1
    for start in range(0, count, threads):
        at, nbytes = cute.Int32(thread) + start, None
        if not whole:
            nbytes = b.select(b.compare("<=", first + at, last), cute.Int32(VECTOR), cute.Int32(0))
        there = first + at if whole else cute.min(first + at, last)
        some = None if count - start >= threads else b.compare("<", at, count)
        own = at if some is None else cute.min(at, count - 1)
        there = there if some is None else cute.min(there, last)
        found.append(Vector(source[None, there, None], ring[None, own, None], nbytes, some))
    return tuple(found)


@frozen
class Packed:
    """Packed weights of one tile of rows, as a thread copies them to the ring, and takes them out of it.

    form: a Form. thread: this one. words, factors: its vectors. mask: MASK, where it is not known."""

    form: Any
    thread: Any
    words: tuple[Any, ...]
    factors: tuple[Any, ...]
    mask: Any

    def load(self, tile: Any, stage: Any) -> None:
        """Begin to copy a tile of K to a stage, with zeros for rows that there are not."""
        for vector in self.words:
            vector.load(cute.Int32(tile), stage)
        for vector in self.factors:
            vector.load(cute.Int32(tile) >> int(self.form.shared), stage)

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
    sums, at_once = cute.make_tensor(acc.iterator, cute.make_layout(cute.size(acc))), max(1, LOADS // cute.size(acc))
    for turn in cute.range(splits // at_once, unroll=1):
        get_partial(sums, partial, thread, 0, turn * at_once, at_once)
    if cute.const_expr(at_once > 1):
        for split in cute.range(splits // at_once * at_once, splits, unroll=1):
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
    of_ring = of_x + VECTOR * stages * sum(form.vectors)
    ring = smem.allocate(of_ring, 1024, "ring")
    sX, sW = in_ring(ring, 0, dtype, x_layout), form.in_ring(ring + of_x, stages)
    tiles_x = copies_x.tiles(thread, mX, sX, m, batch, (extents[0], extents[2]))
    whole = form.tiles == 1  # rows are packed in such tiles
    of_words = vectors_of_thread(words, sW[0], n, thread, threads, whole)
    weights = Packed(form, thread, of_words, vectors_of_thread(factors, sW[1], n, thread, threads, whole), mask)
    tile_m, piece_m = cute.size(x_layout, mode=[0]), cute.size(c_layout, mode=[0])
    rows, columns = tile_m // piece_m, cute.size(c_layout, mode=[1]) // (8 * tiled_mma.thr_layout_vmnk.shape[2])
    acc = cute.make_rmem_tensor(cute.make_layout((4, rows, columns), stride=(1, 4 * columns, 4)), cute.Float32)
    acc.fill(0)
    k_tiles = cute.ceil_div(extents[2], TILE_K)
    begin, end = cute.Int32(split * k_tiles // splits), cute.Int32((split + 1) * k_tiles // splits)
    add_up(acc, tiles_x, weights, sX, sW, tiled_mma, ldmatrix, None, thread, begin, end - begin)
    finishes = True
    if cute.const_expr(partials is not None):
        flags = cute.make_tensor(cute.recast_ptr(ring + (of_ring - VECTOR), dtype=cute.Int32), cute.make_layout(1))
        partial = partials[None, None, None, None, index]
        put_partial(acc, partial[None, None, None, split], thread, 0)
        together = pipeline.NamedBarrier(1, threads)
        finishes = is_last(tickets.iterator + index, splits, flags, 0, thread, together)
        if finishes:
            add_parts(acc, partial, splits, thread)
    if finishes:
        held = cute.size_in_bytes(dtype, c_layout), None
        leave(acc, ring, held, mC, None, tiled_mma, copies_c, c_layout, Hook(), thread, (m, n, batch), extents)
