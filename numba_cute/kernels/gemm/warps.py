# SPDX-License-Identifier: Apache-2.0
"""A GEMM for GPUs whose tensor cores are a warp's (sm_80 on): C = f(A @ B.T), A (M, K), B (N, K), f the epilogue.

A CTA makes one tile of C. All its warps copy the tiles of K to a ring in swizzled shared memory by cp.async, several
ahead, take fragments out by ldmatrix while the tensor cores still work on those before, and multiply with mma.sync.
Copies are of 16 bytes, of which those beyond the matrix are zeros. What a thread copies of an operand is an object with
`load`, which `tiles` of the operand's copies gives (of matrices `Copies`; conv/warps.py gathers images), so that the
loop over K (`add_up`) stands once for all kernels, as does the way out (`leave`). The sums leave in pieces, the rows of
one instruction of all warps: each goes through the epilogue, is put in shared memory, where the ring was, and stored
from there in whole vectors.

`warps_plan.py` says how a problem is cut; the epilogue is the one of all GEMMs here (`epilogue.py`, `hook.py`).
"""

import functools
from typing import Any

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.nvgpu import cpasync
from numba_cute.seam import current, frozen, traced
from numba_cute.tilelang.cpasync import cp_async_shared_global

from .indexed import NONE

VECTOR = 16  # bytes that a thread copies at once


@frozen
class Copies:
    """A thread's copies of a tile, in vectors. copy: the tiled copy. tile: its extents. mode: along which a vector
    lies, 0 or 1. width: bits of an element. whole: whether no edge of the matrix lies inside of a vector. rows: where
    an index says which rows of the matrix these are, a Rows; else None."""

    copy: Any
    tile: tuple[int, int]
    mode: int
    width: int
    whole: bool
    rows: Any = None

    def part(self, begin: Any, end: Any) -> "Copies":
        """Give what is copied of the product's rows from `begin` up to `end`, which are counted from 0."""
        if self.rows is None:
            return self
        return Copies(self.copy, self.tile, self.mode, self.width, self.whole, self.rows.part(begin, end))

    def numbers(self, thread: Any, first: Any) -> Any:
        """Read the number of the row of each of this thread's vectors, where an index says it. first: the tile's first
        row in the product."""
        if self.rows is None:
            return None
        row, places = self.places(thread)[0][0], self.places(0)
        made = cute.make_rmem_tensor(cute.size(places), cute.Int32)
        for i in range(cute.size(places)):
            made[i] = self.rows.number(cute.Int32(first) + row + int(places[i][0]))
        return made

    def of_row(self, number: Any, thread: Any, i: int, left: Any) -> Any:
        """Give this thread's vector `i` of a row of a number. left: as of `counts`."""
        column = self.places(thread)[0][1] + int(self.places(0)[i][1])
        first = cute.Int32(self.rows.matrix.shape[1]) - left[1]
        return self.rows.at(cute.max(number, cute.Int32(0)), first + column, 0, 8 * VECTOR // self.width)

    def tiles(self, thread: Any, matrix: Any, shared: Any, place: Any, batch: Any, extents: tuple[Any, Any]) -> Any:
        """Give the tiles of an operand, of a `place` along its first mode, as this thread copies them. matrix: the
        operand, or a batch of such. shared: the ring's stages. extents: of a matrix."""
        there, stages = self.of_thread(thread, tiles_of(matrix, self.tile, place, None, batch), shared)
        numbers = self.numbers(thread, place * self.tile[0])
        return Tiles(self, thread, there, stages, (extents[0] - place * self.tile[0], extents[1]), numbers)

    def of_thread(self, thread: Any, there: Any, shared: Any) -> tuple[Any, Any]:
        """Give this thread's parts of a tensor in global memory, and of one in shared memory."""
        own = self.copy.get_slice(thread)
        return own.partition_S(there), own.partition_D(shared)

    def places(self, thread: Any) -> Any:
        """Give the coordinates of this thread's vectors in a tile, a tensor of one mode."""
        own = self.copy.get_slice(thread).partition_S(cute.make_identity_tensor(self.tile))[(0, None), None, None]
        return cute.group_modes(own, 0, cute.rank(own))

    def counts(self, left: Any, thread: Any) -> list[Any]:
        """Count the elements of each of this thread's vectors that are the matrix's own: from 0 to all. left: how much
        of the matrix there is from the tile's beginning on, along either mode."""
        row, column = self.places(thread)[0]
        beyond, step, b = (left[0] - row, left[1] - column), 8 * VECTOR // self.width, current()
        first, out = self.places(0), []
        for i in range(cute.size(first)):
            within = [b.compare(">", beyond[mode], int(first[i][mode])) for mode in range(2)]
            most: Any = cute.Int32(step)
            if not self.whole:
                most = cute.min(cute.Int32(beyond[self.mode] - int(first[i][self.mode])), most)
            out.append(b.select(within[0] & within[1], most, cute.Int32(0)))
        return out

    def load(self, thread: Any, there: Any, shared: Any, left: Any, numbers: Any = None) -> None:
        """Begin to copy this thread's vectors to shared memory, with zeros beyond the edges. there, shared: its parts,
        ((vector, 1), rows, columns). left: as of `counts`. numbers: of its rows, as `numbers` gives them; of those that
        the matrix has not NaN is written."""
        source, target = cute.group_modes(there, 1, cute.rank(there)), cute.group_modes(shared, 1, cute.rank(shared))
        for i, count in enumerate(self.counts(left, thread)):
            nbytes = count * (self.width // 8)
            if numbers is not None:
                load_row(numbers[i], self.of_row(numbers[i], thread, i, left), target[None, i], nbytes)
                continue
            cp_async_shared_global(
                target[None, i], source[None, i], VECTOR, cpasync.LoadCacheMode.GLOBAL, src_size=nbytes
            )  # fmt: skip

    def leave(self, thread: Any, shared: Any, matrix: Any, place: Any, left: tuple[Any, Any]) -> None:
        """Copy this thread's vectors of a piece from shared memory, without what lies beyond the edges, and rows that
        the result has not. matrix: the result, or a batch of such. place: the piece's, (m, n, batch). left: as of
        `counts`."""
        there, own = self.of_thread(thread, tiles_of(matrix, self.tile, *place), shared)
        numbers = self.numbers(thread, place[0] * self.tile[0])
        source, target = cute.group_modes(own, 1, cute.rank(own)), cute.group_modes(there, 1, cute.rank(there))
        b, step = current(), 8 * VECTOR // self.width
        for i, count in enumerate(self.counts(left, thread)):
            value, place = source[None, i], target[None, i]
            if numbers is not None:
                place = self.of_row(numbers[i], thread, i, left)
                count = b.select(b.compare(">=", numbers[i], 0), count, cute.Int32(0))

            def put(j: Any, value: Any = value, place: Any = place) -> None:
                place[j] = value[j]

            b.when(b.compare("==", count, step), functools.partial(store_vector, value, place.iterator))
            if not self.whole:
                b.loop(0, b.select(b.compare("<", count, step), count, cute.Int32(0)), put)


@traced
def load_row(number: Any, source: Any, target: Any, nbytes: Any) -> None:
    """Begin to copy a vector of a row of a number, or write NaN for one of none."""
    b = current()

    def copy() -> None:
        cp_async_shared_global(target, source, VECTOR, cpasync.LoadCacheMode.GLOBAL, src_size=nbytes)

    def spoil() -> None:
        poison = cute.make_rmem_tensor(target.shape, target.element_type)
        cute.recast_tensor(cute.make_tensor(poison.iterator, cute.make_layout(cute.size(poison))), cute.Int32).fill(-1)
        cute.autovec_copy(poison, target)

    b.when(b.compare("!=", number, NONE), copy)
    b.when(b.compare("==", number, NONE), spoil)


@traced
def store_vector(value: Any, there: Any) -> None:
    """Store a vector of shared memory. there: a pointer, at a multiple of its bytes."""
    at = cute.make_ptr(value.element_type, there.toint(), cute.AddressSpace.gmem, VECTOR)
    cute.autovec_copy(value, cute.make_tensor(at, cute.make_layout(8 * VECTOR // value.element_type.width)))


@frozen
class Tiles:
    """The tiles of an operand along K, of one place along the other mode, as a thread copies them to the ring.

    copies: of the operand. thread: this one. there, shared: its parts, ((vector, 1), rows, columns, tiles or stages).
    left: how much of the matrix there is from the first tile's beginning on, along either mode. numbers: as of
    `Copies.load`."""

    copies: Any
    thread: Any
    there: Any
    shared: Any
    left: tuple[Any, Any]
    numbers: Any = None

    def load(self, tile: Any, stage: Any) -> None:
        """Begin to copy a tile to a stage."""
        there, shared = self.there[None, None, None, tile], self.shared[None, None, None, stage]
        left = self.left[0], self.left[1] - tile * self.copies.tile[1]
        self.copies.load(self.thread, there, shared, left, self.numbers)


@traced
def tiles_of(tensor: Any, tile: Any, m: Any, n: Any, batch: Any) -> Any:
    """Give a tile of a matrix, or of one of a batch. m, n: which; None for all along that mode."""
    return cute.local_tile(tensor, tile, (m, n, batch)[: cute.rank(tensor)])


@traced
def in_halves(tensor: Any) -> Any:
    """Put B's rows in the order in which pairs lie side by side: 8 of the first half, 8 of the second, and so on."""
    (n, *rest), (step, *others) = tensor.shape, tensor.stride
    half = cute.Int32(n) // 2
    layout = cute.make_layout(((8, 2, half // 8), *rest), stride=((step, step * half, step * 8), *others))
    return cute.make_tensor(tensor.iterator, layout)


@traced
def in_ring(ring: Any, offset: int, dtype: Any, layout: Any) -> Any:
    """Make a tensor of a swizzled layout of the shared memory `offset` bytes into the ring."""
    return cute.make_tensor(cute.recast_ptr(ring + offset, layout.inner, dtype=dtype), layout.outer)


@traced
def rounded(fragment: Any) -> None:
    """Round the Float32 numbers of a fragment to TF32: the tensor cores would cut their last digits off."""
    numbers = cute.recast_tensor(fragment, cute.Float32)
    for i in range(cute.size(numbers)):
        numbers[i] = arch.cvt_f32_tf32(numbers[i])


@traced
def put(made: Any, shared: Any, c_dtype: Any) -> None:
    """Write this thread's values of a piece to shared memory. made: a vector. shared: its part, ((2, 2), blocks)."""
    blocks = cute.size(shared) // 4
    held = cute.make_rmem_tensor((2, 2, blocks), c_dtype)
    cute.make_tensor(held.iterator, cute.make_layout(made.shape)).store(made.to(c_dtype))
    for block in range(blocks):
        for row in range(2):
            cute.autovec_copy(held[None, row, block], shared[(None, row), block])


@frozen
class Fragments:
    """B's fragments of a stage, as a thread takes them out of the ring by ldmatrix, a block of K at a time. load: the
    tiled copy. shared, target: what it copies from and to. numbers: the fragments, ((2, 2), columns, blocks)."""

    load: Any
    shared: Any
    target: Any
    numbers: Any

    def take(self, block: Any, stage: Any) -> None:
        """Take a block's fragments out."""
        cute.copy(self.load, self.shared[None, None, block, stage], self.target[None, None, block])


@traced
def fragments_of(operand: Any, sB: Any, tiled_mma: Any, ldmatrix: Any, thread: Any) -> Any:  # noqa: N803
    """Give what takes B's fragments out: of an operand that has `fragments` of its own, these."""
    if hasattr(operand, "fragments"):
        return operand.fragments(sB, tiled_mma)
    numbers = tiled_mma.make_fragment_B(tiled_mma.get_slice(thread).partition_B(sB[None, None, 0]))
    load = cute.make_tiled_copy_B(ldmatrix, tiled_mma)
    own = load.get_slice(thread)
    return Fragments(load, own.partition_S(sB), own.retile(numbers), numbers)


@cute.jit
def add_up(acc, of_a, of_b, sA, sB, tiled_mma, ldmatrix_a, ldmatrix_b, thread, first, k_tiles):
    """Add the products of `k_tiles` tiles of K, from the `first` on, to a thread's sums. of_a, of_b: what it copies to
    the ring. sA, sB: the ring's stages of either operand. ldmatrix_a, ldmatrix_b: how fragments are taken out."""
    stages, k_blocks = cute.size(sA, mode=[2]), cute.size(sA, mode=[1]) // tiled_mma.shape_mnk[2]
    tCrA = tiled_mma.make_fragment_A(tiled_mma.get_slice(thread).partition_A(sA[None, None, 0]))
    load_a = cute.make_tiled_copy_A(ldmatrix_a, tiled_mma)
    thread_a = load_a.get_slice(thread)
    tLsA, tLrA = thread_a.partition_S(sA), thread_a.retile(tCrA)
    b = fragments_of(of_b, sB, tiled_mma, ldmatrix_b, thread)

    # All stages but one are on their way before the loop begins
    for s in cute.range_constexpr(stages - 1):
        if s < k_tiles:
            tile = cute.Int32(first + s)
            of_a.load(tile, s)
            of_b.load(tile, s)
        arch.cp_async_commit_group()
    arch.cp_async_wait_group(stages - 2)
    arch.sync_threads()
    cute.copy(load_a, tLsA[None, None, 0, 0], tLrA[None, None, 0])
    b.take(0, 0)

    read, write = cute.Int32(0), cute.Int32(stages - 1)
    for k in range(k_tiles):
        for kb in cute.range_constexpr(k_blocks):
            if kb == k_blocks - 1:  # the next tile must be there, and all threads be done with the one before
                arch.cp_async_wait_group(stages - 2)
                arch.sync_threads()
                read = cute.Int32(0 if read == stages - 1 else read + 1)
            after = (kb + 1) % k_blocks
            if kb < k_blocks - 1 or k + 1 < k_tiles:
                cute.copy(load_a, tLsA[None, None, after, read], tLrA[None, None, after])
                b.take(after, read)
            if kb == 0:  # the stage that was read before this one takes the tile stages - 1 ahead
                ahead = cute.Int32(k + stages - 1)
                if ahead < k_tiles:
                    tile = cute.Int32(first + ahead)
                    of_a.load(tile, write)
                    of_b.load(tile, write)
                arch.cp_async_commit_group()
                write = cute.Int32(0 if write == stages - 1 else write + 1)
            if cute.const_expr(sA.element_type == cute.TFloat32):
                rounded(tCrA[None, None, kb])
                rounded(b.numbers[None, None, kb])
            cute.gemm(tiled_mma, acc, tCrA[None, None, kb], b.numbers[None, None, kb], acc)


@cute.jit
def leave(acc, ring, held, mC, mD, piece_mma, copies_c, c_layout, epilogue, thread, place, extents):
    """Store a thread's sums, piece by piece: through the epilogue, to shared memory, where the ring was, and to C.

    acc: (4, rows, columns) of the pieces. held: where the epilogue's vectors lie in the ring, and their layout, or
    None. mD: the matrix like C, or None. place: the tile's, (m, n, batch). extents: of C."""
    m, n, batch = place
    offset, vectors_layout = held
    rows, columns, threads = cute.size(acc, mode=[1]), cute.size(acc, mode=[2]), cute.size(piece_mma)
    piece_m, c_tile_n, slots = (cute.size(c_layout, mode=[i]) for i in range(3))
    tile_m = rows * piece_m
    # The ring is free: before the last block of K all threads met, and had taken their last fragments; all tiles that
    # were copied have been waited for.
    sC = in_ring(ring, 0, mC.element_type, c_layout)
    vectors = None
    first_row, first_column = m * tile_m, n * c_tile_n
    of_tile = piece_mma.get_slice(thread).partition_C(cute.make_identity_tensor((tile_m, c_tile_n)))
    tCsC = piece_mma.get_slice(thread).partition_C(sC)
    rows_c, columns_c = extents[0] - first_row, extents[1] - first_column
    if cute.const_expr(vectors_layout is not None):
        vectors = cute.make_tensor(cute.recast_ptr(ring + offset, dtype=cute.Float32), vectors_layout)
        place = epilogue.place_in(first_row, first_column, batch, of_tile[None, 0, None], (tile_m, c_tile_n))
        epilogue.fetch(place, vectors, 0, thread, threads)
        if cute.const_expr(mD is None):
            arch.sync_threads()
    if cute.const_expr(mD is not None):
        gD = tiles_of(mD, (piece_m, c_tile_n), m * rows, n, batch)
        tDgD, tDsD = copies_c.of_thread(thread, gD, sC)
        copies_c.load(thread, tDgD, tDsD[None, None, None, 0], (rows_c, columns_c))
        arch.cp_async_commit_group()
    for i in cute.range_constexpr(rows):
        matrix = None
        if cute.const_expr(mD is not None):
            arch.cp_async_wait_group(0)
            arch.sync_threads()  # all threads' part of the matrix is there, and the slot of the piece before is free
            matrix = tCsC[None, 0, None, i % slots]
            if cute.const_expr(i + 1 < rows):
                gD = tiles_of(mD, (piece_m, c_tile_n), m * rows + i + 1, n, batch)
                tDgD, tDsD = copies_c.of_thread(thread, gD, sC)
                left = (rows_c - (i + 1) * piece_m, columns_c)
                copies_c.load(thread, tDgD, tDsD[None, None, None, (i + 1) % slots], left)
                arch.cp_async_commit_group()
        place = epilogue.place_in(first_row, first_column, batch, of_tile[None, i, None], (tile_m, c_tile_n))
        sums = cute.make_tensor(acc.iterator + 4 * columns * i, cute.make_layout(4 * columns))
        put(epilogue.apply(sums, place, vectors, matrix, 0), tCsC[None, 0, None, i % slots], mC.element_type)
        arch.sync_threads()
        left = (rows_c - i * piece_m, columns_c)
        copies_c.leave(thread, sC[None, None, i % slots], mC, (m * rows + i, n, batch), left)


@traced
def part_of(k_tiles: Any, share: Any, batch: Any) -> tuple[Any, Any]:
    """Give the first tile of K and their number: of all, or of the `batch`-th part of `share` tiles. Of no K there is
    one tile, of zeros."""
    if share is None:
        return 0, cute.max(k_tiles, cute.Int32(1))
    first = batch * share
    return first, cute.min(share, k_tiles - first)


@cute.jit
def make_tile(
    place, extents, share, dtype, acc_dtype, c_dtype, mA, mB, mC, mD, tiled_mma, piece_mma, ldmatrix_a, ldmatrix_b,
    copies_a, copies_b, copies_c, a_layout, b_layout, c_layout, epilogue,
):  # fmt: skip
    """Make a tile of C. place: its (m, n, batch). extents: M, N and K, and of C the columns where these are not all
    that N makes. share: None, or the tiles of K of each batch of C, of which A and B have none. The others: as of the
    kernel."""
    m, n, batch = place
    m_extent, n_extent, k_extent = extents[0], extents[1], extents[2]
    columns_c = n_extent // epilogue.spread if cute.const_expr(len(extents) == 3) else extents[3]
    thread, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    of_a, of_c = cute.size_in_bytes(dtype, a_layout), cute.size_in_bytes(c_dtype, c_layout)
    ring = smem.allocate(cute.size_in_bytes(dtype, b_layout) + of_a, 1024, "ring")
    sA, sB = in_ring(ring, 0, dtype, a_layout), in_ring(ring, of_a, dtype, b_layout)
    tile_m, tile_k = cute.size(a_layout, mode=[0]), cute.size(a_layout, mode=[1])
    tiles_a = copies_a.tiles(thread, mA, sA, m, batch, (m_extent, k_extent))
    rows_b = in_halves(mB) if cute.const_expr(epilogue.spread == 2) else mB
    tiles_b = copies_b.tiles(thread, rows_b, sB, n, batch, (n_extent, k_extent))
    piece_m, c_tile_n, _ = (cute.size(c_layout, mode=[i]) for i in range(3))
    rows, columns = tile_m // piece_m, cute.size(b_layout, mode=[0]) // (8 * tiled_mma.thr_layout_vmnk.shape[2])
    acc = cute.make_rmem_tensor(cute.make_layout((4, rows, columns), stride=(1, 4 * columns, 4)), acc_dtype)
    acc.fill(0)
    first, k_tiles = part_of(cute.ceil_div(k_extent, tile_k), share, batch)
    add_up(acc, tiles_a, tiles_b, sA, sB, tiled_mma, ldmatrix_a, ldmatrix_b, thread, first, k_tiles)
    held = of_c, epilogue.layout(tile_m, c_tile_n, 1)
    leave(acc, ring, held, mC, mD, piece_mma, copies_c, c_layout, epilogue, thread, place, (m_extent, columns_c))


def multiply(
    dtype, acc_dtype, c_dtype, mA, mB, mC, mD, tiled_mma, piece_mma, ldmatrix_a, ldmatrix_b, copies_a, copies_b,
    copies_c, a_layout, b_layout, c_layout, order, epilogue, extents, share,
):  # fmt: skip
    index, _, _ = arch.block_idx()
    make_tile(
        order.decode(index), extents, share, dtype, acc_dtype, c_dtype, mA, mB, mC, mD, tiled_mma, piece_mma,
        ldmatrix_a, ldmatrix_b, copies_a, copies_b, copies_c, a_layout, b_layout, c_layout, epilogue,
    )  # fmt: skip
