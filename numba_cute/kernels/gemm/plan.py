# SPDX-License-Identifier: Apache-2.0
"""Cut GEMMs: the tile, the cluster, the parts of K; the kernel's arguments for that, and its launch."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numba_cute as cute
from numba_cute import CuteError
from numba_cute.nvgpu import CopyUniversalOp, cpasync, warp, warpgroup

from .. import tuning
from .dense import ROW, TILE_M, gemm
from .epilogue import Epilogue, hook
from .exchange import ALONE
from .indexed import Named, by_index, in_vectors
from .operands import Source, contiguous, load_atom, operand, swapped, view
from .shares import Shares

SMEM = cute.target("sm_90a").smem_per_block - 2048  # bytes for stages and slots: barriers and vectors have the rest
VECTORS, VECTOR = 1536, 2 * 64 * 4  # bytes of the rest for vectors that an epilogue reads, and of one for each slot
TILES_N = (256, 192, 128, 64)
TAIL_SPLITS = (2, 4)
FEWEST_STAGES, MOST_STAGES = 3, 8


class Plan(NamedTuple):
    """A cut of a problem.

    tile_n: columns of a tile, whose rows are 128. sharers: CTAs along M that share a tile of B by multicast. parts:
    CTAs of a cluster that share K, and add their sums by each other's shared memory. splits: such clusters that share
    K further, and add their sums by global memory. turned: C's columns are the kernel's rows (of few rows, more of a
    tile is of use). stages, slots: tiles of operands, and pieces of C, in shared memory; 0 for as many as there is room
    for. tail: the tiles of the last round alone are split, of which there are fewer than fit at once. kept: how many K
    tiles B has, of which all stay in shared memory, or 0; for one tile of columns.
    """

    tile_n: int = 256
    sharers: int = 2
    parts: int = 1
    splits: int = 1
    turned: bool = False
    stages: int = 0
    slots: int = 0
    tail: bool = False
    kept: int = 0


USUAL = Plan()
# What C is made of where nothing else is asked for: the sums are in Float32, or in Int32.
RESULTS = {cute.BFloat16: cute.BFloat16, cute.Float16: cute.Float16, cute.TFloat32: cute.Float32}
RESULTS |= {cute.Float8E4M3FN: cute.BFloat16, cute.Float8E5M2: cute.BFloat16, cute.Int8: cute.Int32}


# ---------------------------------------------------------------- what the kernel takes


def mma_op(dtype: Any, tile_n: int, a_major: Any, b_major: Any) -> Any:
    """Give the wgmma for operands of `dtype`. tile_n: its columns. a_major, b_major: where they are contiguous."""
    shape, smem = (64, tile_n, 256 // dtype.width), warpgroup.OperandSource.SMEM
    if dtype in (cute.BFloat16, cute.Float16):
        return warpgroup.MmaF16BF16Op(dtype, cute.Float32, shape, smem, a_major, b_major)
    if dtype == cute.TFloat32:
        return warpgroup.MmaTF32Op(shape, smem, a_major, b_major)
    if dtype == cute.Int8:
        return warpgroup.MmaI8Op(dtype, dtype, cute.Int32, shape, smem, a_major, b_major)
    return warpgroup.MmaF8Op(dtype, dtype, cute.Float32, shape, smem, a_major, b_major)


def smem_layout(dtype: Any, mode: int, rows: int, columns: int, *stages: int, run: int | None = None) -> Any:
    """Give shared memory's layout for tiles that are contiguous along `mode`, as wgmma and TMA take them: in runs of 16
    to 128 bytes. rows, columns: of a tile. stages: how many, if it is of several. run: rows that are contiguous, by
    default all."""
    size = (run or rows, columns)[mode] * dtype.width // 8
    width = next(w for w in (128, 64, 32, 16) if size % w == 0)
    kind = ("MN" if mode == 0 else "K") + ("_INTER" if width == 16 else f"_SW{width}")
    atom = warpgroup.make_smem_layout_atom(getattr(warpgroup.SmemLayoutAtomKind, kind), dtype)
    order = (0, 1, 2) if mode == 1 else (1, 0, 2)
    return cute.tile_to_shape(atom, (rows, columns, *stages), order[: 2 + len(stages)])


def in_halves(tensor: Any, half: int, run: int) -> Any:
    """Put B's rows in the order in which pairs lie side by side: `run` of the first half, as many of the second, and so
    on. half: rows of one, a multiple of `run`."""
    rest, (row, *others) = tensor.shape[1:], tensor.stride
    layout = cute.make_layout(((run, 2, half // run), *rest), stride=((row, half * row, run * row), *others))
    return cute.make_tensor(tensor.iterator, layout)


def run_of(mode: int, half: int, columns: int, share: int) -> int:
    """Count the rows of a half of B that lie together in shared memory: 8 where B is contiguous along K; else as many
    as TMA can bring side by side. mode: along which B is contiguous. half: rows of one. columns: of a piece of C.
    share: columns of C that one CTA loads B for. CuteError where halves do not begin at multiples of 16 bytes."""
    if mode == 0 and half % 8:
        raise CuteError(
            f"gemm: b is contiguous along its columns, of which pairs are made, and their halves are {half}: these "
            "must be multiples of 8 there: give b.mT.contiguous().mT"
        )
    return 8 if mode == 1 else math.gcd(64, half, columns, share)


def cover(coordinates: Any, *shape: Any) -> Any:
    """Give TMA's coordinates over whole tiles of whole clusters: it leaves out what lies beyond the array."""
    extents = tuple(n if isinstance(n, tuple) else cute.Int32(n) for n in shape)
    rest = tuple(coordinates.shape[len(shape) :])
    return cute.make_tensor(coordinates.iterator, cute.make_layout((*extents, *rest), stride=coordinates.stride))


def loads(
    t: Any, dtype: Any, layout: Any, tile: tuple[int, int], ctas: int, extents: tuple[Any, ...], together: int = 1
) -> Any:
    """Give the TMA atom that loads tiles of an operand, and its coordinates. t, dtype: of `operand`. layout: of shared
    memory's stages. tile: its extents. ctas: that share it. extents: of the coordinates, over whole clusters. together:
    as of `load_op`."""
    if isinstance(t, Source):
        return t.loads(dtype, cute.slice_(layout, (None, None, 0)), tile, ctas, extents[0], together)
    atom, coordinates = load_atom(t, layout, tile, ctas, together)
    return atom, cover(coordinates, *extents)


def stores(t: Any, dtype: Any, smem: Any, piece: tuple[int, int], extents: tuple[int, int]) -> Any:
    """Give the TMA atom that stores pieces of C, and its coordinates. t, dtype: C's, of `operand`. smem: of a piece in
    shared memory. piece, extents: as of `loads`."""
    if isinstance(t, Source):
        return t.stores(dtype, smem, piece, extents)
    atom, coordinates = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), t, smem, piece)
    return atom, cover(coordinates, *extents)


class Pieces(NamedTuple):
    """The pieces of a tile of C. columns: of a piece, whose rows are 64. number: of those that each warpgroup
    makes. slots, stages: in shared memory."""

    columns: int
    number: int
    slots: int
    stages: int


def pieces_of(cut: Plan, width: int, spread: int = 1, vectors: int = 0, beside: int = 0) -> Pieces:
    """Give the pieces of a cut. width: bits of an element of C. spread: columns of sums for one of C. vectors: that the
    epilogue reads. beside: bytes of shared memory that are used otherwise. CuteError where C cannot be cut so, or
    shared memory does not hold it."""
    if cut.tail and cut.parts > 1:
        raise CuteError(
            f"gemm: {cut}: CTAs that share K have one tile alone, and a tail is behind others: leave it out"
        )
    own = cut.tile_n // spread // cut.parts
    columns = next((n for n in (64, 32, 16, 8) if n * width <= 8 * ROW and own and own % n == 0), 0)
    if not columns:
        raise CuteError(
            f"gemm: {cut}: of {cut.tile_n} columns a CTA has {own}, and must have a multiple of 8: give a "
            "wider tile_n, or fewer parts"
        )
    count = own // columns
    stage, slot = (TILE_M + cut.tile_n * (not cut.kept)) * ROW, TILE_M * columns * width // 8
    memory = SMEM - cut.kept * cut.tile_n * ROW - beside

    def taken(slots: int) -> int:
        return slots * slot + max(0, slots * vectors * VECTOR - VECTORS)

    fit = (s for s in (count, 4, 2, 1) if count % s == 0 and taken(s) <= memory - FEWEST_STAGES * stage)
    slots = cut.slots or next(fit, 1)
    stages = cut.stages or min(MOST_STAGES, (memory - taken(slots)) // stage)
    stages -= stages == cut.kept  # the kernel knows by that
    if count % slots or taken(slots) + stages * stage > memory or stages < (FEWEST_STAGES if cut.parts > 1 else 2):
        raise CuteError(
            f"gemm: {cut}: {stages} stages of {stage} bytes and {slots} slots of {slot} do not fit: give fewer, or "
            "0 for as many as there is room for"
        )
    return Pieces(columns, count, slots, stages)


def room_of(epilogue: Epilogue | None, named: bool = False) -> tuple[int, int]:
    """Give what `pieces_of` asks of an epilogue: the columns of sums for one of C, and the vectors that it reads; where
    A's rows are named one more, in whose room their barriers lie."""
    spread, vectors = (epilogue.spread, epilogue.vectors) if epilogue else (1, 0)
    return spread, vectors + named


def arguments(
    a: Any, b: Any, c: Any, dtype: Any, most_clusters: int, cut: Plan = USUAL, epilogue: Epilogue | None = None,
    scratch: Any = None, c_dtype: Any = None, rows_a: Any = None, rows_c: Any = None, apart: int | None = None,
    exchange: Any = ALONE, totals: Any = None,
) -> tuple[tuple[Any, ...], tuple[int, int, int]]:  # fmt: skip
    """Give the kernel's arguments and grid for arrays of the host (to simulate or compile) or of the device.

    a: (M, K), b: (N, K), c: (M, N), each contiguous along either mode (along K, where dtype has not 16 bits) by
    multiples of 16 bytes; each may have a batch before these modes. dtype: the operands' type. most_clusters: that fit
    on the device at once; the grid is the fewest that need no more rounds than so many would: idle SMs leave power to
    the others. cut: a Plan. epilogue: what becomes of the sums. scratch: for splits, two arrays as large as
    `scratch_of` says, the second of zeros. c_dtype: C's type, by default that of RESULTS. rows_a, rows_c: a Named each,
    where an index says which row of A a row of the product is made of, and to which of C it goes: then `a` and `c` have
    the product's rows, and where they lie is where those of the Named begin. C's rows may be no multiples of 16 bytes.
    apart: c is (splits, M, N), and the splits' sums are not added up; of `tail`, whole tiles are in the first matrix.
    0: they have equal parts of K. Else each tile's first has a cluster of its own, and more of K: what takes as long as
    so many of the others, of which as many more clusters as that takes have `apart` each; they are added up where c is
    (M, N).
    exchange: with other GPUs, an `Exchange`. totals: where one that `sends` puts what it adds up.
    """
    c_dtype, like = c_dtype or RESULTS[dtype], epilogue.matrix if epilogue else None
    a, b, c, like = (None if x is None else view(x, 16) for x in (a, b, c, like))
    spread = epilogue.spread if epilogue else 1
    turned = is_turned(c, cut.turned, spread)
    if turned:  # the same, seen from the other side
        a, b, c, like = b, a, swapped(c), None if like is None else swapped(like)
    tC, c_mode = operand(c, c_dtype)
    (tA, a_mode), (tB, b_mode) = operand(a, dtype), operand(b, dtype)
    by_threads = exchange.sends or rows_c is not None or not in_vectors(c, c_dtype.width)
    check_named(cut, (turned, a_mode, c_mode), rows_a, rows_c, by_threads)
    majors = [warpgroup.OperandMajorMode.K if mode == 1 else warpgroup.OperandMajorMode.MN for mode in (a_mode, b_mode)]
    tile_n, sharers, parts, splits = cut.tile_n, cut.sharers, cut.parts, cut.splits
    tiled_mma = cute.make_tiled_mma(mma_op(dtype, tile_n, *majors), (TILE_M // 64, 1, 1))
    tile_k = 8 * ROW // dtype.width
    pieces = pieces_of(cut, c_dtype.width, *room_of(epilogue, bool(rows_a)), exchange.memory)
    run = run_of(b_mode, b.shape[-2] // 2, pieces.columns, tile_n // (2 * sharers)) if spread == 2 else None
    a_layout = smem_layout(dtype, a_mode, TILE_M, tile_k, pieces.stages)
    b_layout = smem_layout(dtype, b_mode, tile_n, tile_k, cut.kept or pieces.stages, run=run)
    c_layout = smem_layout(c_dtype, c_mode, TILE_M, pieces.columns, pieces.slots)
    c_piece, piece = smem_layout(c_dtype, c_mode, 64, pieces.columns), (64, pieces.columns)
    # How the sums of a piece lie over threads: as those of any wgmma of its width.
    piece_mma = cute.make_tiled_mma(mma_op(cute.BFloat16, pieces.columns, *majors), (TILE_M // 64, 1, 1))

    (m, k), n, batches = a.shape[-2:], b.shape[-2], c.shape[0] if len(c.shape) == 3 and apart is None else 1
    check_parts(cut, parts * splits, k, dtype)
    clusters_m, tiles_n = math.ceil(m / (TILE_M * sharers)), math.ceil(n / tile_n)
    rows, columns = clusters_m * sharers * TILE_M, tiles_n * tile_n
    if cut.kept and (cut.kept != k_tiles_of(k, dtype) or (tiles_n, batches, sharers, parts * splits) != (1, 1, 1, 1)):
        raise CuteError(
            f"gemm: {cut}: B stays of one tile of columns, alone, with all of {k_tiles_of(k, dtype)} K tiles: "
            "leave kept out"
        )
    across = columns if run is None else (run, 2, cute.Int32(columns // (2 * run)))
    tB = tB if run is None else in_halves(tB, b.shape[-2] // 2, run)
    tma_a, mA = (
        loads(tA, dtype, a_layout, (TILE_M, tile_k), 1, (rows, k))
        if rows_a is None
        else (by_index(tA, rows_a, m), None)
    )
    tma_b, mB = loads(tB, dtype, b_layout, (tile_n, tile_k), sharers, (across, k))
    tma_c, mC = (
        stores(tC, c_dtype, c_piece, piece, (rows, columns // spread)) if not by_threads
        else (by_index(tC, rows_c or Named(None, int(m), int(tC.stride[0])), m), None)
    )  # fmt: skip
    load = cpasync.CopyBulkTensorTileG2SOp()
    tma_d, mD = (
        (None, None) if like is None else cpasync.make_tiled_tma_atom(load, operand(like, c_dtype)[0], c_piece, piece)
    )
    mD = None if like is None else cover(mD, rows, columns // spread)
    tiles = (cute.Int32(math.ceil(m / TILE_M)), cute.Int32(tiles_n), 1 if batches == 1 else cute.Int32(batches))
    group_m = tuning.numbers("matmul").group_m
    order, work = (tiles, (sharers, 1, 1), group_m // sharers, False), clusters_m * tiles_n * batches
    alone, partials, tickets = alone_of(work, most_clusters, cut), None, None
    if splits == 1:
        schedule = exchange.schedule(*order)
        clusters = work if parts > 1 else math.ceil(work / math.ceil(work / most_clusters))
    elif apart:
        first, joined = cute.Int32(first_of(splits - 1, apart, k_tiles_of(k, dtype))), len(c.shape) == 2
        schedule = Shares(*order, cute.Int32(0), splits if joined else cute.Int32(splits), not joined, first)
        clusters = work + math.ceil(work * (splits - 1) / apart)
        if joined:
            partials, tickets = memory_of(scratch, work * sharers, 256, tile_n // 8, splits, dtype)
    elif apart == 0:
        schedule = Shares(*order, cute.Int32(alone), cute.Int32(splits), True)
        pieces_of_work = alone + (work - alone) * splits
        clusters = math.ceil(pieces_of_work / math.ceil(pieces_of_work / most_clusters))
    else:
        schedule = Shares(*order, cute.Int32(alone) if cut.tail else 0, splits)
        clusters = min(most_clusters, alone + (work - alone) * splits) if cut.tail else work * splits
        shared = (work - alone) * sharers * parts
        partials, tickets = memory_of(scratch, shared, 256, tile_n // parts // 8, splits, dtype)
    made = hook(epilogue, int(c.shape[-2]), int(c.shape[-1]), turned, run, int(batches))
    atom = store_atom(c_dtype, c_mode, pieces.columns)
    layouts = (a_layout, b_layout, c_layout, cute.make_layout((1, sharers, parts, 1)))  # the last: V, M, N, K
    return (
        dtype, c_dtype, tma_a, mA, tma_b, mB, tma_c, mC, tiled_mma, piece_mma, atom, *layouts,
        schedule, made, tma_d, mD, partials, tickets, exchange, totals,
    ), (sharers, parts, clusters)  # fmt: skip


def check_named(
    cut: Any, lies: tuple[bool, int, int], rows_a: Any, rows_c: Any, by_threads: bool = False
) -> None:  # fmt: skip
    """Refuse rows that an index names, or that threads write, and that are none of the kernel's or not contiguous. cut:
    for the message. lies: whether the kernel's rows are C's columns, and along which A and C are contiguous. rows_a,
    rows_c: as of `arguments`. by_threads: whether threads write C's."""
    turned, a_mode, c_mode = lies
    if ((by_threads or rows_c) and c_mode == 0) or (turned and (rows_a or rows_c)) or (rows_a and a_mode == 0):
        raise CuteError(
            f"gemm: {cut}: rows that an index names, and those of C that are not multiples of 16 bytes, are contiguous "
            "and stay the kernel's rows: leave turned out"
        )


def store_atom(dtype: Any, mode: int, columns: int) -> Any:
    """Give the copy of sums from registers to shared memory that is contiguous along `mode`. dtype: C's elements.
    columns: of a piece."""
    if dtype.width == 16:
        return cute.make_copy_atom(warp.StMatrix8x8x16bOp(mode == 0, min(4, columns // 4)), dtype)
    return cute.make_copy_atom(CopyUniversalOp(), dtype, dtype.width * (1 + mode))  # two neighbours along N


def clusters_of(c: Any, cut: Plan, spread: int = 1) -> int:
    """Count the tiles of clusters. c: as for `cuts`. cut: a Plan. spread: columns of sums for one of C."""
    m, n = kernel_extents(c, cut.turned, spread)
    batches = c.shape[0] if len(c.shape) == 3 else 1
    return math.ceil(m / (TILE_M * cut.sharers)) * math.ceil(n / cut.tile_n) * int(batches)


def check_parts(cut: Any, count: int, k: int, dtype: Any) -> None:
    """Refuse to cut K into more parts than it has tiles: some would have nothing to wait for. cut: for the message.
    count: parts. k, dtype: as for `cuts`."""
    tiles = k_tiles_of(k, dtype)
    if count > max(1, tiles):
        raise CuteError(
            f"gemm: {cut}: K of {k} {dtype} has {tiles} tiles of {ROW} bytes, and is cut into {count}: give fewer "
            "splits, or parts"
        )


def alone_of(work: int, most_clusters: int, cut: Any) -> int:
    """Count the tiles of clusters that are not shared: of `work`, those of whole rounds, or none. cut: with `tail`."""
    return work // most_clusters * most_clusters if cut.tail else 0


EPILOGUE = 4
"""K tiles that take as long as the end of a tile of 192 columns, about (H200)."""


def first_of(others: int, each: int, k_tiles: int) -> int:
    """Count the K tiles of a tile's first share, as many as take as long as `each` of its `others`, with their ends."""
    return min(k_tiles - others, math.ceil((each * k_tiles + others * (each - 1) * EPILOGUE) / (each + others)))


def scratch_of(c: Any, cut: Plan, most_clusters: int, epilogue: Epilogue | None = None) -> tuple[int, int]:
    """Count the numbers of 32 bits, and the counters, by which splits add their sums. c: as for `cuts`. cut: a Plan.
    most_clusters: as for `arguments`. epilogue: what becomes of the sums."""
    work = clusters_of(c, cut, epilogue.spread if epilogue else 1)
    shared = (work - alone_of(work, most_clusters, cut)) * cut.sharers
    return max(1, shared * cut.splits * TILE_M * cut.tile_n), max(1, shared * cut.parts)


def memory_of(scratch: Any, shared: int, threads: int, fours: int, splits: Any, dtype: Any) -> tuple[Any, Any]:
    """Give the memory by which splits add their sums, four times `fours` of each thread, and a counter for each of
    `shared` tiles."""
    sums, counts = scratch
    words = cute.recast_ptr(view(sums, 16).iterator, dtype=sums_of(dtype))
    partials = cute.make_tensor(words, cute.make_layout((4, threads, fours, splits, cute.Int32(shared))))
    return partials, cute.make_tensor(view(counts).iterator, cute.make_layout(cute.Int32(shared)))


def sums_of(dtype: Any) -> Any:
    """Give the type in which the tensor cores sum products of `dtype`."""
    return cute.Int32 if dtype.is_integer else cute.Float32


def kernel_of(cut: Plan) -> Any:
    """Give the kernel with the cluster of a cut: one for all cuts with that cluster, so that nothing is compiled
    twice."""
    return _clustered(cut.sharers, cut.parts)


@functools.cache
def _clustered(sharers: int, parts: int) -> Any:
    return cute.cluster_shape(sharers, parts)(gemm)


# ---------------------------------------------------------------- which cut


def is_turned(c: Any, turned: bool, spread: int) -> bool:
    """Say whether the kernel's rows are C's columns: where these are contiguous, or, if `turned`, are not. spread: as
    of `Epilogue`; pairs of columns stay columns."""
    return spread == 1 and (contiguous(c) == 0) != turned


def kernel_extents(c: Any, turned: bool, spread: int) -> tuple[int, int]:
    """Give the kernel's M and N: C's extents, in the order that `is_turned` says, of the same parameters; where columns
    are made of pairs, N of these."""
    m, n = map(int, c.shape[-2:])
    return (n, m) if is_turned(c, turned, spread) else (m, n * spread)


def k_tiles_of(k: int, dtype: Any) -> int:
    """Count the K tiles. k: the extent. dtype: the operands' type."""
    return math.ceil(k * int(dtype.width) / (8 * ROW))


def cuts(
    c: Any, k: int, dtype: Any, epilogue: Epilogue | None = None, c_width: int = 16, named: bool = False
) -> list[Plan]:
    """List the cuts that a problem may have. c: of the result's shape and order. k: the extent summed over. dtype: the
    operands' type. epilogue: what becomes of the sums. c_width: bits of C's elements. named: whether an index names
    rows."""
    spread, found = epilogue.spread if epilogue else 1, []
    turns = (False, True) if spread == 1 and c_width == 16 and not named and in_vectors(c, c_width) else (False,)
    ways = itertools.product(TILES_N, (2, 1), (1, 2), (1, 2, 4, 7, 8), turns, (False, True))
    for tile_n, sharers, parts, splits, turned, tail in ways:
        cut = Plan(tile_n, sharers, parts, splits, turned, tail=tail)
        if tail and (parts > 1 or splits not in TAIL_SPLITS):
            continue
        m, n = kernel_extents(c, turned, spread)
        if parts * splits > k_tiles_of(k, dtype) or (sharers == 2 and m <= TILE_M):
            continue
        if turned and n > 256:  # gains nothing
            continue
        with contextlib.suppress(CuteError):
            pieces_of(cut, c_width, *room_of(epilogue, named))
            found.append(cut)
    return found


def modelled(cut: Plan, c: Any, k: int, dtype: Any, sms: int, spread: int = 1, known: Any = None) -> float:
    """Estimate the microseconds of a cut. c, k, dtype: as for `cuts`. sms: of the device. spread: columns of sums for
    one of C. known: what it knows of a GPU, by default of this one.

    That is, in microseconds and bytes each: `k_tile`, what an SM takes for a K tile, by its columns; what all
    get of L2 (`l2`) and of `memory`; a `launch`; the end of a tile (`epilogue`), of a sum over a cluster
    (`cluster_sum`), and of one by global memory (`split_sum`), and of each of its columns (`split_column`)."""
    known = known or tuning.numbers("matmul")
    m, n = kernel_extents(c, cut.turned, spread)
    batches = c.shape[0] if len(c.shape) == 3 else 1
    each, k_tiles = cut.sharers * cut.parts, k_tiles_of(k, dtype)
    if each > sms:
        return math.inf
    room = sms // each * each if each < 4 else sms // each * each * 15 // 16  # GPCs do not divide evenly
    tiles = clusters_of(c, cut, spread) * cut.sharers
    alone = alone_of(tiles, room, cut)
    ctas = (tiles - alone) * cut.parts * cut.splits  # of the rounds that share K
    if cut.tail and not (alone > 0 and 0 < ctas <= room):
        return math.inf
    before, rounds = alone // room, math.ceil(ctas / room)
    busy = math.ceil((alone + ctas) / (before + rounds))
    tile_bytes = (TILE_M + cut.tile_n / cut.sharers) * ROW
    each_k_tile = max(known.k_tile[cut.tile_n], busy * tile_bytes / known.l2)
    once = (m * k + n * k) * dtype.width / 8 * batches / known.memory
    multiply = (before * k_tiles + rounds * math.ceil(k_tiles / (cut.parts * cut.splits))) * each_k_tile
    sums = known.cluster_sum * (cut.parts > 1) + 0.5 * (each > 2)
    sums += (known.split_sum + known.split_column * cut.tile_n / cut.parts) * (cut.splits > 1)
    return float(known.launch + max(multiply, once) + (before + rounds) * known.epilogue + rounds * sums)


def plan(
    c: Any, k: int, dtype: Any, sms: int, epilogue: Epilogue | None = None, c_width: int = 16,
    parts: int | None = None, named: bool = False,
) -> Plan:  # fmt: skip
    """Choose the cut that takes the least time on so many SMs: what was measured of this shape, or one near it, or by
    the model.

    c, k, dtype, epilogue, c_width, named: as for `cuts`. sms: of the device. parts: into how many K is split, if given.
    CuteError where K has not so many tiles."""
    c = view(c)
    spread, found = epilogue.spread if epilogue else 1, cuts(c, k, dtype, epilogue, c_width, named)
    row = None if parts is not None else tuning.row_of("matmul", *shape_of(c, k, dtype, spread, c_width))
    if row is not None and Plan(*row["cut"]) in found:
        return Plan(*row["cut"])
    if parts is not None:
        found = [cut for cut in found if cut.parts * cut.splits == parts and not cut.tail]
        if not found:
            raise CuteError(
                f"gemm: parts {parts}: K of {k} {dtype} has {k_tiles_of(k, dtype)} tiles; give 1, 2, 4, 8 or 16"
            )
    best: Plan = fastest(found, few().__contains__, lambda cut: modelled(cut, c, k, dtype, sms, spread))
    return best


def shape_of(c: Any, k: int, dtype: Any, spread: int, c_width: int) -> tuple[str, tuple[int, ...]]:
    """Give the kind of operands, and the extents (batches, M, N, K), by which a table has rows. All as of `plan`."""
    *batches, m, n = map(int, c.shape)
    return f"{dtype}, {c_width}, {spread}", (math.prod(batches), m, n, k)


def few() -> list[Plan]:
    """List cuts that are preferred, so that few kernels are compiled for many extents."""
    return [Plan(*cut) for cut in tuning.numbers("matmul").few]


def fastest(
    found: list[Any], usual: Callable[[Any], bool], time: Callable[[Any], float], worse: float | None = None
) -> Any:
    """Give the cut of which a model says the least time, or one of the `usual` ones that takes little more: `worse`
    times that at most, by default what is known of the GPU, for the model is no more exact."""
    best = min(found, key=time)
    least = min(filter(usual, found), key=time, default=best)
    return least if time(least) <= (worse or tuning.numbers("matmul").worse) * time(best) else best
