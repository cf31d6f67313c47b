# SPDX-License-Identifier: Apache-2.0
"""How a GEMM is cut: the tile, the cluster, the parts of K, and the kernel's arguments for it."""

import math
from typing import NamedTuple

import numba_cute as cute
from numba_cute import utils
from numba_cute.nvgpu import CopyUniversalOp, cpasync, warp, warpgroup
from numba_cute.runtime import from_dlpack

from .dense import ROW, THREADS, TILE_M, gemm
from .epilogue import hook

GROUP_M = 16
SMEM = 232448 - 1024


class Plan(NamedTuple):
    tile_n: int = 256
    sharers: int = 2  # CTAs along M that share B
    parts: int = 1
    turned: bool = False
    slots: int = 0  # 0: all
    stages: int = 0
    group_m: int = GROUP_M


USUAL = Plan()
RESULTS = {cute.BFloat16: cute.BFloat16, cute.Float16: cute.Float16, cute.TFloat32: cute.Float32}
RESULTS |= {cute.Float8E4M3FN: cute.BFloat16, cute.Float8E5M2: cute.BFloat16, cute.Int8: cute.Int32}


def mma_op(dtype, tile_n, a_major, b_major):
    """The wgmma for operands of `dtype`."""
    shape, smem = (64, tile_n, 256 // dtype.width), warpgroup.OperandSource.SMEM
    if dtype in (cute.BFloat16, cute.Float16):
        return warpgroup.MmaF16BF16Op(dtype, cute.Float32, shape, smem, a_major, b_major)
    if dtype == cute.TFloat32:
        return warpgroup.MmaTF32Op(shape, smem, a_major, b_major)
    if dtype == cute.Int8:
        return warpgroup.MmaI8Op(dtype, dtype, cute.Int32, shape, smem, a_major, b_major)
    return warpgroup.MmaF8Op(dtype, dtype, cute.Float32, shape, smem, a_major, b_major)


def smem_layout(dtype, mode, rows, columns, *stages):
    """Shared memory for tiles that are contiguous along `mode`, as wgmma and TMA take them: rows of 32 to 128 bytes."""
    kinds = warpgroup.SmemLayoutAtomKind
    run = (rows, columns)[mode] * dtype.width // 8
    width = next(w for w in (128, 64, 32, 16) if run % w == 0)
    kind = "INTER" if width == 16 else f"SW{width}"
    atom = warpgroup.make_smem_layout_atom(getattr(kinds, ("MN_" if mode == 0 else "K_") + kind), dtype)
    order = (0, 1, 2) if mode == 1 else (1, 0, 2)
    return cute.tile_to_shape(atom, (rows, columns, *stages), order[: 2 + len(stages)])


def operand(array, dtype):
    """A tensor of the array with run-time extents, and the mode along which it is contiguous."""
    t = from_dlpack(array, assumed_align=16)
    mode = cute.leading_dim(t.shape, t.stride)
    return cute.recast_tensor(t.mark_layout_dynamic(leading_dim=mode), dtype), mode  # Numba's arrays say int16


def in_halves(tensor, half):
    """B's rows in the order in which pairs lie side by side: 8 of the first half, 8 of the second, and so on."""
    k, (row, column) = tensor.shape[1], tensor.stride
    layout = cute.make_layout(((8, 2, half // 8), k), stride=((row, half * row, 8 * row), column))
    return cute.make_tensor(tensor.iterator, layout)


def cover(coordinates, *shape):
    """TMA's coordinates over whole tiles of whole clusters: it leaves out what lies beyond the array."""
    shape = tuple(n if isinstance(n, tuple) else cute.Int32(n) for n in shape)
    return cute.make_tensor(coordinates.iterator, cute.make_layout(shape, stride=coordinates.stride))


def arguments(a, b, c, dtype, most_clusters, cut=USUAL, epilogue=None):
    spread = epilogue.spread if epilogue else 1
    like = epilogue.matrix if epilogue else None
    c_dtype = RESULTS[dtype]
    tile_n, sharers, parts = cut.tile_n, cut.sharers, cut.parts
    tC, c_mode = operand(c, c_dtype)
    turned_from = c_mode
    if (c_mode == 0) != cut.turned:
        a, b, c = b, a, c.T
        like = None if like is None else like.T
        tC, c_mode = operand(c, c_dtype)
    (tA, a_mode), (tB, b_mode) = operand(a, dtype), operand(b, dtype)
    majors = [warpgroup.OperandMajorMode.K if mode == 1 else warpgroup.OperandMajorMode.MN for mode in (a_mode, b_mode)]
    tiled_mma = cute.make_tiled_mma(mma_op(dtype, tile_n, *majors), (TILE_M // 64, 1, 1))
    tile_k = 8 * ROW // dtype.width
    own = tile_n // spread // parts
    store_n = min(own, 8 * ROW // c_dtype.width)
    pieces = own // store_n
    stage_bytes, slot_bytes = (TILE_M + tile_n) * ROW, TILE_M * store_n * c_dtype.width // 8
    most = (SMEM - 3 * stage_bytes) // slot_bytes
    slots = cut.slots or next(s for s in (pieces, 4, 2, 1) if pieces % s == 0 and s <= most)
    stages = cut.stages or min(8, (SMEM - slots * slot_bytes) // stage_bytes)
    a_layout = smem_layout(dtype, a_mode, TILE_M, tile_k, stages)
    b_layout = smem_layout(dtype, b_mode, tile_n, tile_k, stages)
    c_layout = smem_layout(c_dtype, c_mode, TILE_M, store_n, slots)
    c_piece = smem_layout(c_dtype, c_mode, 64, store_n)
    if c_dtype.width == 16 and store_n % 16 == 0:
        store = cute.make_copy_atom(warp.StMatrix8x8x16bOp(c_mode == 0, 4), c_dtype)
    else:  # two neighbours along N
        store = cute.make_copy_atom(CopyUniversalOp(), c_dtype, c_dtype.width * (1 + c_mode))
    # How the sums of a piece lie over threads: as those of any wgmma of its width.
    piece_mma = cute.make_tiled_mma(mma_op(cute.BFloat16, store_n, *majors), (TILE_M // 64, 1, 1))
    load = cpasync.CopyBulkTensorTileG2SOp()
    load_b = load if sharers == 1 else cpasync.CopyBulkTensorTileG2SMulticastOp()
    cluster = cute.make_layout((1, sharers, parts, 1))  # V, M, N, K
    stage = (None, None, 0)
    tma_a, mA = cpasync.make_tiled_tma_atom(load, tA, cute.slice_(a_layout, stage), (TILE_M, tile_k))
    if spread == 2:
        tB = in_halves(tB, b.shape[0] // 2)
    tma_b, mB = cpasync.make_tiled_tma_atom(load_b, tB, cute.slice_(b_layout, stage), (tile_n, tile_k), sharers)
    tma_c, mC = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), tC, c_piece, (64, store_n))

    tma_d = mD = None
    if like is not None:
        tma_d, mD = cpasync.make_tiled_tma_atom(load, operand(like, c_dtype)[0], c_piece, (64, store_n))
    made = hook(epilogue, c.shape[0], c.shape[1], cut.turned != (turned_from == 0))

    tiles_m, tiles_n = math.ceil(a.shape[0] / TILE_M), math.ceil(b.shape[0] / tile_n)
    clusters_m = math.ceil(tiles_m / sharers)
    rows, columns = clusters_m * sharers * TILE_M, tiles_n * tile_n
    across = columns if spread == 1 else (8, 2, cute.Int32(columns // 16))
    mA, mB, mC = cover(mA, rows, a.shape[1]), cover(mB, across, a.shape[1]), cover(mC, rows, columns // spread)
    if mD is not None:
        mD = cover(mD, rows, columns // spread)
    tiles = (cute.Int32(tiles_m), cute.Int32(tiles_n), 1)
    schedule = utils.PersistentTileSchedulerParams(tiles, (sharers, 1, 1), max(1, cut.group_m // sharers), False)
    work = clusters_m * tiles_n
    clusters = work if parts > 1 else math.ceil(work / math.ceil(work / most_clusters))
    grid = (sharers, parts, clusters)
    return (
        dtype, c_dtype, tma_a, mA, tma_b, mB, tma_c, mC, tiled_mma, piece_mma, store, a_layout, b_layout, c_layout,
        cluster, schedule, made, tma_d, mD,
    ), grid  # fmt: skip


def kernel_of(cut):
    return cute.cluster_shape(cut.sharers, cut.parts)(gemm)


def simulate(a, b, c, dtype, cut=USUAL, clusters=1, epilogue=None, **options):
    args, grid = arguments(a, b, c, dtype, clusters, cut, epilogue)
    cute.simulate(kernel_of(cut), **options)[grid, THREADS](*args)


def launch_of(a, b, c, dtype, cut, pdl=True, epilogue=None):
    most = utils.HardwareInfo().get_max_active_clusters(cut.sharers * cut.parts)
    args, grid = arguments(a, b, c, dtype, most, cut, epilogue)
    return cute.launch(kernel_of(cut), grid=grid, block=THREADS, pdl=pdl).prepare(*args)
