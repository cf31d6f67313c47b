# SPDX-License-Identifier: Apache-2.0
"""Cut a GEMM of Blackwell: choose the tile, the pair of CTAs and the cluster, and make the kernel's arguments."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

from numba import cuda

import numba_cute as cute
from numba_cute import CuteError, utils
from numba_cute.nvgpu import CopyUniversalOp, CtaGroup, cpasync, tcgen05, warp
from numba_cute.utils import sm100

from . import umma_scaled
from .cuts import Umma
from .epilogue import Epilogue, hook
from .operands import Source, operand, some_clusters, swapped, view
from .plan import (
    RESULTS,
    TAIL_SPLITS,
    alone_of,
    check_named,
    check_parts,
    cover,
    fastest,
    in_halves,
    is_turned,
    k_tiles_of,
    kernel_extents,
    loads,
    memory_of,
    room_of,
    run_of,
    smem_layout,
    stores,
    sums_of,
)
from .shares import Shares
from .umma import multiply
from .umma_parts import ROW, THREADS, TILE_M, Matrices
from .umma_rows import Chosen
from .umma_scaled import Scales

SMEM = cute.target("sm_100a").smem_per_block - 2048  # bytes for stages, slots and vectors; barriers have the rest
FEWEST_STAGES, MOST_STAGES = 3, 8
GROUP_M = 16  # tiles along M that are done side by side, so that they share B in L2


CUTS = (Umma(), Umma(256, 1), Umma(128, 2), Umma(128, 1), Umma(64, 1))
SPLITS = (1, 2, 4, 8)
USUAL = (Umma(), Umma(splits=2, tail=True), Umma(128, 2), Umma(64, 1), Umma(64, 1, splits=4))
WORSE = 1.1
"""Cuts that are preferred, so that few kernels are compiled for many extents, and up to how many times the least time
they may take: the model knows no GPU."""


def check(cut: Umma, dtype: Any, target: Any) -> None:
    """Refuse what is not the kernel's, with CuteError. cut, dtype, target: as of `arguments`."""
    if dtype == cute.Int8 and target.name.rstrip("af") != "sm_100":
        raise CuteError(f"gemm: tcgen05 multiplies int8 on sm_100a alone, not on {target.name}: convert it to float8")
    m, n = cut.shape
    if cut.tile_n not in (64, 128, 256) or cut.ctas not in (1, 2) or min(m, n) < 1 or m % cut.ctas or m * n > 8:
        raise CuteError(
            f"gemm: {cut}: tile_n is 64, 128 or 256, 1 or 2 CTAs multiply together, and a cluster has up to 8, whole "
            f"pairs along M: give Umma(), or one of {CUTS[1:]}"
        )


def check_alone(what: str, cut: Umma, dtype: Any) -> None:
    """Refuse what a kernel has not whose clusters are the CTAs that multiply together. what: the entry. cut, dtype: as
    of `check`."""
    check(cut, dtype, cute.target("sm_100a"))
    if cut.shape != (cut.ctas, 1) or cut.splits != 1 or cut.tail:
        raise CuteError(
            f"{what}: {cut}: a cluster is the CTAs that multiply together here, and K is whole: leave cluster and "
            "splits out"
        )


class Pieces(NamedTuple):
    """Describe the pieces in which a tile of C leaves. columns: of a piece, whose rows are 128. slots, stages: in
    shared memory."""

    columns: int
    slots: int
    stages: int


def pieces_of(
    cut: Umma, width: int, spread: int = 1, vectors: int = 0, chunks: int = 0, whole: bool = False
) -> Pieces:  # fmt: skip
    """Give the pieces of a cut. width, spread, vectors: as of `plan.pieces_of`. chunks: of scale factors, of each
    operand in a stage. whole: whether the vectors of a whole tile lie there, and not those of the slots. CuteError
    where shared memory does not hold them."""
    own = cut.tile_n // spread
    columns = min(own, 8 * ROW // width)
    if spread == 2 and cut.splits > 1:  # of wider ones the sums of both halves, and those that are added, spilt
        columns //= 2
    stage, count = cut.stage + 2 * 512 * chunks, own // columns
    read = 4 * TILE_M * vectors
    slot, memory = TILE_M * columns * width // 8 + read * (not whole), SMEM - read * count * whole
    slots = cut.slots or (1 if count % 2 or 2 * slot > memory - FEWEST_STAGES * cut.stage else 2)
    stages = cut.stages or min(MOST_STAGES, (memory - slots * slot) // stage)
    if count % slots or slots * slot + stages * stage > memory or stages < 2:
        raise CuteError(
            f"gemm: {cut}: {stages} stages of {stage} bytes and {slots} slots of {slot} do not fit: give fewer, or "
            "0 for as many as there is room for"
        )
    return Pieces(columns, slots, stages)


def matrices(
    dtype: Any, mode: int, tile: tuple[int, int], stages: int, tiled_mma: Any, of: str, run: int | None
) -> Any:
    """Say how an operand lies in shared memory. mode: along which it is contiguous. tile: of a CTA. of: "A" or "B".
    run: as of `smem_layout`."""
    width = (tile[1] if mode else run or tile[0]) * dtype.width // 8
    swizzle = f"SW{min(width & -width, 128)}".replace("SW16", "INTER")
    kind = tcgen05.SmemLayoutAtomKind[f"{'K' if mode else 'MN'}_{swizzle}"]
    shape = getattr(tiled_mma, f"partition_shape_{of}")((tile[0] * cute.size(tiled_mma.thr_id), tile[1]))
    order = (0, 1, 2) if mode else (1, 0, 2)
    atom = tcgen05.make_smem_layout_atom(kind, dtype)
    tiles = cute.tile_to_shape(atom, (*tile, stages), order)
    return Matrices(tiles, tcgen05.tile_to_mma_shape(atom, (*shape, stages), order))


def mma_of(dtype: Any, cut: Umma, a_mode: int, b_mode: int) -> Any:
    """Give the tcgen05.mma of a cut for operands of `dtype`. a_mode, b_mode: along which they are contiguous."""
    a, b = (tcgen05.OperandMajorMode.K if mode == 1 else tcgen05.OperandMajorMode.MN for mode in (a_mode, b_mode))
    extents = TILE_M * cut.ctas, cut.tile_n
    return sm100.make_trivial_tiled_mma(dtype, dtype, a, b, sums_of(dtype), CtaGroup(cut.ctas), extents)


def piece_mma(columns: int) -> Any:
    """Say how a piece's values lie over threads: as mma.sync would leave them, of whose warps each has 32 rows, 16 at
    a time. columns: of the piece."""
    op = warp.MmaF16BF16Op(cute.BFloat16, cute.Float32, (16, 8, 16))
    return cute.make_tiled_mma(op, (4, 1, 1), (cute.make_layout((16, 4, 2), stride=(1, 32, 16)), columns, 16))


def arguments(
    a: Any, b: Any, c: Any, dtype: Any, target: Any, cut: Umma, epilogue: Epilogue | None = None, c_dtype: Any = None,
    clusters: int | None = None, scales: Scales | None = None, scratch: Any = None, rows_a: Any = None,
    rows_c: Any = None,
) -> tuple[tuple[Any, ...], Any]:  # fmt: skip
    """Give the kernel's arguments and grid for arrays of the host (to simulate or compile) or of the device.

    a, b, c, dtype, epilogue, c_dtype, rows_a, rows_c: as of `plan.arguments`; named rows are multiples of 16 bytes.
    target: the GPU's record. cut: an Umma. clusters: that run at once; by default those that fit on the current device.
    scales: the operands' scale factors, if they have any; what is narrower than a byte lies in bytes. scratch: for
    splits, two arrays as large as `scratch_of` says, the second of zeros.
    """
    check(cut, dtype, target)
    c_dtype, like = c_dtype or RESULTS[dtype], epilogue.matrix if epilogue else None
    a, b, c, like = (None if x is None else view(x, 16) for x in (a, b, c, like))
    spread = epilogue.spread if epilogue else 1
    turned = is_turned(c, False, spread)
    if turned:  # the same, seen from the other side
        a, b, c, like = b, a, swapped(c), None if like is None else swapped(like)
    (tA, a_mode), (tB, b_mode), (tC, c_mode) = operand(a, dtype), operand(b, dtype), operand(c, c_dtype)
    check_named(cut, (turned, a_mode, c_mode), rows_a, rows_c)
    tA, tC = (x if r is None else Chosen(x, r, a.shape[-2]) for x, r in ((tA, rows_a), (tC, rows_c)))
    tile_n, tile_k, ctas, (cluster_m, cluster_n) = cut.tile_n, 8 * ROW // dtype.width, cut.ctas, cut.shape
    sharers_a, sharers_b = cluster_n, cluster_m // ctas
    tiled_mma = umma_scaled.mma_of(scales.kind, ctas, tile_n) if scales else mma_of(dtype, cut, a_mode, b_mode)
    pieces = pieces_of(cut, c_dtype.width, *room_of(epilogue), scales.kind.chunks if scales else 0)
    half = b.shape[-2] // 2
    run = run_of(b_mode, half, pieces.columns, tile_n // (2 * ctas * sharers_b)) if spread == 2 else None
    a_matrices = matrices(dtype, a_mode, (TILE_M, tile_k), pieces.stages, tiled_mma, "A", None)
    b_matrices = matrices(dtype, b_mode, (tile_n // ctas, tile_k), pieces.stages, tiled_mma, "B", run)
    piece = (TILE_M, pieces.columns)
    c_layout = smem_layout(c_dtype, c_mode, *piece, pieces.slots)
    c_piece = smem_layout(c_dtype, c_mode, *piece)
    load = cute.make_copy_atom(tcgen05.Ld16x256bOp(tcgen05.Repetition(pieces.columns * spread // 8)), sums_of(dtype))

    k = a.shape[-1] if isinstance(a, Source) else a.shape[-1] * a.element_type.width // dtype.width
    m, n, batches = a.shape[-2], b.shape[-2], int(c.shape[0]) if len(c.shape) == 3 else 1
    tiles_m, tiles_n = math.ceil(m / TILE_M), math.ceil(n / tile_n)
    whole_m, whole_n = (math.ceil(t / c) * c for t, c in ((tiles_m, cluster_m), (tiles_n, cluster_n)))
    extent_m, extent_n = whole_m * TILE_M, whole_n * tile_n
    across = extent_n if run is None else (run, 2, cute.Int32(extent_n // (2 * run)))
    tB = tB if run is None else in_halves(tB, half, run)
    tma_a, mA = loads(tA, dtype, a_matrices.tiles, (TILE_M, tile_k), sharers_a, (extent_m, k), ctas)
    tma_b, mB = loads(tB, dtype, b_matrices.tiles, (tile_n // ctas, tile_k), sharers_b, (across, k), ctas)
    tma_c, mC = stores(tC, c_dtype, c_piece, piece, (extent_m, extent_n // spread))
    tma_d, mD = loads_of_pieces(like, c_dtype, c_piece, piece, (extent_m, extent_n // spread))
    cluster = cute.tiled_divide(cute.make_layout((cluster_m, cluster_n, 1)), (tiled_mma.thr_id.shape,))
    of_scales = umma_scaled.given(scales, tiled_mma, ctas, tile_n, pieces.stages, (m, n, k))
    made = hook(epilogue, int(c.shape[-2]), int(c.shape[-1]), turned, run, batches)
    check_parts(cut, cut.splits, k, dtype)
    schedule, shared, grid = order_of(cut, (tiles_m, tiles_n, batches), clusters)
    of_splits = (None, None)
    if cut.splits > 1:
        of_splits = memory_of(scratch, shared, 128, tile_n // 4, cut.splits, dtype)
    return (
        dtype, sums_of(dtype), c_dtype, tma_a, mA, tma_b, mB, tma_c, mC, tiled_mma, piece_mma(pieces.columns), load,
        store_atom(c_dtype, c_mode, pieces.columns), a_matrices, b_matrices, c_layout, cluster, schedule, made,
        tma_d, mD, *of_scales, *of_splits,
    ), grid  # fmt: skip


def order_of(cut: Umma, tiles: tuple[int, int, int], most: int | None) -> tuple[Any, int, tuple[int, int, int]]:
    """Give the schedule of so many tiles along M and N, and batches, how many CTAs' tiles are shared, and the grid.
    most: clusters that run at once, as of `arguments`."""
    (m, n, batches), (cluster_m, cluster_n) = tiles, cut.shape
    work = math.ceil(m / cluster_m) * math.ceil(n / cluster_n) * batches
    extents = cute.Int32(m), cute.Int32(n), 1 if batches == 1 else cute.Int32(batches)
    order = extents, (cluster_m, cluster_n, 1), max(1, GROUP_M // cluster_m), False
    most = most or clusters_here(cut)
    if cut.splits > 1:
        alone = alone_of(work, most, cut)
        pieces = alone + (work - alone) * cut.splits
        grid = cluster_m, cluster_n, min(most, pieces) if cut.tail else pieces
        return Shares(*order, cute.Int32(alone), cut.splits), (work - alone) * cluster_m * cluster_n, grid
    clusters = math.ceil(work / math.ceil(work / most))
    return utils.PersistentTileSchedulerParams(*order), 0, (cluster_m, cluster_n, clusters)


def clusters_of(c: Any, cut: Umma, spread: int) -> int:
    """Count the tiles of clusters. c: the result, as of `arguments`. spread: columns of sums for one of C."""
    (m, n), (cluster_m, cluster_n) = kernel_extents(c, False, spread), cut.shape
    batches = int(c.shape[0]) if len(c.shape) == 3 else 1
    return math.ceil(m / (TILE_M * cluster_m)) * math.ceil(n / (cut.tile_n * cluster_n)) * batches


def scratch_of(c: Any, cut: Umma, most: int, epilogue: Epilogue | None = None) -> tuple[int, int]:
    """Count the numbers of 32 bits, and the counters, by which splits add their sums. c, epilogue: as of `arguments`.
    most: clusters that run at once."""
    work = clusters_of(c, cut, epilogue.spread if epilogue else 1)
    tiles = (work - alone_of(work, most, cut)) * math.prod(cut.shape)
    return max(1, tiles * cut.splits * TILE_M * cut.tile_n), max(1, tiles)


def clusters_here(cut: Umma) -> int:
    """Count the clusters of a cut that fit on the current device."""
    ctas = math.prod(cut.shape)
    return int(some_clusters(f"gemm: {cut}", utils.HardwareInfo().get_max_active_clusters(ctas), ctas))


def loads_of_pieces(like: Any, dtype: Any, smem: Any, piece: Any, extents: tuple[int, int]) -> tuple[Any, Any]:
    """Give the TMA atom that loads pieces of a matrix like C, and its coordinates; nothing, if there is none. dtype,
    smem, piece, extents: as of `plan.stores`."""
    if like is None:
        return None, None
    t = operand(like, dtype)[0]
    atom, coordinates = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), t, smem, piece)
    return atom, cover(coordinates, *extents)


def store_atom(dtype: Any, mode: int, columns: int) -> Any:
    """Give the copy of a piece from registers to shared memory. dtype, mode, columns: as of `plan.store_atom`."""
    if dtype.width == 16:
        return cute.make_copy_atom(warp.StMatrix8x8x16bOp(mode == 0, min(4, columns // 4)), dtype)
    return cute.make_copy_atom(CopyUniversalOp(), dtype, dtype.width * (1 + mode))


def kernel_of(cut: Umma) -> Any:
    """Give the kernel with the cluster of a cut."""
    return _clustered(*cut.shape)


@functools.cache
def _clustered(m: int, n: int) -> Any:
    return cute.cluster_shape(m, n)(cuda.jit(launch_bounds=(THREADS, 1))(multiply))


# ---------------------------------------------------------------- which cut

# What an SM does in a clock, of data sheets, and not measured: tensor cores multiply 128 bytes of K by 128 rows and
# half a column; shared memory gives 128 bytes, L2 64. An epilogue of 128 rows takes a few clocks for each column.
CLOCKS_OF_COLUMN, SMEM_BYTES, L2_BYTES, EPILOGUE, START = 2, 128, 64, 12, 1500
MEMORY_BYTES = 29  # that each SM gets of memory in a clock, if all read
SPLIT = 1500  # until the last of those that share K knows it


def cuts(k: int, dtype: Any) -> list[Umma]:
    """List the cuts that a problem may have. k: the extent summed over. dtype: the operands' type."""
    ways = [(n, False) for n in SPLITS] + [(n, True) for n in TAIL_SPLITS]
    k_tiles = max(1, k_tiles_of(k, dtype))
    return [cut._replace(splits=n, tail=tail) for cut in CUTS for n, tail in ways if n <= k_tiles]


def modelled(cut: Umma, c: Any, k: int, dtype: Any, sms: int, spread: int = 1) -> float:
    """Estimate the clocks of a cut. c, k, dtype, sms, spread: as of `plan.modelled`."""
    batches = int(c.shape[0]) if len(c.shape) == 3 else 1
    return clocks(cut, batches, *kernel_extents(c, False, spread), k_tiles_of(k, dtype), sms)


def clocks(cut: Umma, batches: int, m: int, n: int, k_tiles: int, sms: int) -> float:
    """Estimate the clocks of a cut, of the kernel's extents."""
    cluster_m, cluster_n = cut.shape
    work = math.ceil(m / (TILE_M * cluster_m)) * math.ceil(n / (cut.tile_n * cluster_n)) * batches
    room = sms // (cluster_m * cluster_n)
    if not room:
        return math.inf
    alone = alone_of(work, room, cut)
    pieces = (work - alone) * cut.splits
    if cut.tail and not (alone and 0 < pieces <= room):
        return math.inf
    rounds = math.ceil(pieces / room)
    loaded = TILE_M * ROW / cluster_n + cut.tile_n * ROW / cluster_m
    k_tile = max(CLOCKS_OF_COLUMN * cut.tile_n, cut.stage / SMEM_BYTES, loaded / L2_BYTES)
    epilogue = EPILOGUE * cut.tile_n
    sums = (SPLIT + (1 + cut.splits) * TILE_M * cut.tile_n * 4 / L2_BYTES) * (cut.splits > 1)
    whole = alone // room * max(k_tiles * k_tile, epilogue)
    return START + whole + rounds * (max(math.ceil(k_tiles / cut.splits) * k_tile, epilogue) + sums) + epilogue


def plan(c: Any, k: int, dtype: Any, sms: int, target: Any, epilogue: Epilogue | None = None) -> Umma:
    """Choose the cut that takes the least time on so many SMs, by the model. c, k, dtype, sms, epilogue: as of
    `plan.plan`. target: the GPU's record."""
    spread = epilogue.spread if epilogue else 1
    found: Umma = fastest(
        cuts(k, dtype), USUAL.__contains__, lambda cut: modelled(cut, c, k, dtype, sms, spread), WORSE
    )  # fmt: skip
    return found
