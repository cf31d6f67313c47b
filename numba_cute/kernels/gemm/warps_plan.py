# SPDX-License-Identifier: Apache-2.0
"""Cut GEMMs by warps: the tile, its warps, the stages; the kernel's arguments for that."""

from __future__ import annotations

import contextlib
import functools
import math
from typing import Any

from numba import cuda

import numba_cute as cute
from numba_cute import CuteError, utils
from numba_cute.isa.form.targets import supports
from numba_cute.nvgpu import cpasync, warp

from .. import entry
from .cuts import OF_WARPS, Warps
from .epilogue import Epilogue, hook
from .indexed import by_index
from .operands import Source, operand, swapped, view
from .plan import RESULTS, is_turned, kernel_extents, smem_layout, sums_of
from .warps import VECTOR, Copies, multiply

OPERANDS = OF_WARPS
FLOAT8 = ("float8_e4m3fn", "float8_e5m2")  # what mma.sync multiplies on sm_89, sm_120 and sm_121


FEWEST_STAGES, MOST_STAGES = 3, 6  # of those that are chosen
CUTS = (
    Warps(), Warps((128, 128), (2, 2), ctas=2), Warps((64, 128), (2, 2), ctas=2), Warps((64, 64), (2, 2), 128, ctas=2),
)  # fmt: skip
# Rows of 128 bytes spill in the widest tile, of TF32 with an epilogue and of both operands turned.
# What an SM of any of these GPUs reaches of its tensor cores' rate, by a tile's extents: wide warps read less of shared
# memory for as many products. From that traffic alone, and not measured.
GROUP_M = 16  # tiles along M that are done side by side, so that they share B in L2
RATE = {(128, 256): 1.0, (128, 128): 0.95, (64, 128): 0.8, (64, 64): 0.6}
START = 4  # what the beginning and the end of a tile take, in stages of 128 bytes of K


def mma_op(dtype: Any) -> Any:
    """Give the mma.sync for operands of `dtype`."""
    if dtype in (cute.BFloat16, cute.Float16):
        return warp.MmaF16BF16Op(dtype, cute.Float32, (16, 8, 16))
    if dtype == cute.TFloat32:
        return warp.MmaTF32Op((16, 8, 8))
    if dtype == cute.Int8:
        return warp.MmaI8Op(dtype, dtype, (16, 8, 32))
    if dtype in (cute.Float8E4M3FN, cute.Float8E5M2):
        return warp.MmaFP8Op(dtype, cute.Float32, (16, 8, 32))
    raise CuteError(f"gemm: {dtype} is not multiplied by warps here: convert it to bfloat16, float16 or int8")


def has_float8(target: Any) -> bool:
    """Say whether a GPU's tensor cores are a warp's for float8 too: Hopper's and Blackwell's mma.sync converts it to
    float16. target: its record; None of arrays that lie on none."""
    return target is None or (entry.family_of(target) == entry.WARPS and supports(target.name, "sm_89"))


def stages_of(cut: Warps, target: Any) -> int:
    """Count the stages of a cut. target: the GPU's record. CuteError, if its shared memory has not room for two, or for
    those that are asked for, of so many CTAs."""
    most = (int(target.smem_per_sm) // cut.ctas - int(target.smem_reserved)) // cut.stage
    stages = cut.stages or min(MOST_STAGES, most)
    if not 2 <= stages <= most:
        raise CuteError(
            f"gemm: {cut}: {max(2, stages)} stages of {cut.stage} bytes do not fit in {target.name}'s shared memory "
            f"for {cut.ctas} CTAs: give fewer of them, or a smaller tile"
        )
    return stages


def check(cut: Warps) -> None:
    """Refuse a cut that is none of the kernel's, with CuteError."""
    whole = all(t % (16 * w * (1 + along)) == 0 for along, (t, w) in enumerate(zip(cut.tile, cut.warps)))
    if not whole or min(*cut.tile, *cut.warps) < 1 or cut.row not in (64, 128) or cut.threads not in (32, 64, 128, 256):
        raise CuteError(
            f"gemm: {cut}: a warp has a multiple of 16 rows and 32 columns of the tile, 1, 2, 4 or 8 warps share it, "
            f"and a row has 64 or 128 bytes: give Warps(), or one of {CUTS[1:]}"
        )


def copies(dtype: Any, mode: int, tile: tuple[int, int], threads: int, whole: bool, rows: Any = None) -> Copies:
    """Say how so many threads copy tiles that are contiguous along `mode`. whole, rows: as of `Copies`."""
    step = 8 * VECTOR // dtype.width
    along = math.gcd(tile[mode] // step, threads)
    shape = (along, threads // along) if mode == 0 else (threads // along, along)
    strides = (1, along) if mode == 0 else (along, 1)
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(cpasync.LoadCacheMode.GLOBAL), dtype, 8 * VECTOR)
    values = cute.make_layout((step, 1) if mode == 0 else (1, step))
    tiled = cute.make_tiled_copy_tv(atom, cute.make_layout(shape, stride=strides), values)
    return Copies(tiled, tile, mode, int(dtype.width), whole, rows)


def copied(t: Any, mode: int, dtype: Any, tile: tuple[int, int], threads: int, rows: Any = None) -> tuple[Any, Any]:
    """Give a matrix as the kernel takes it, and how so many threads copy its tiles. t, mode: of `operand`. dtype: of
    its elements. rows: as of `Copies`."""
    if isinstance(t, Source):
        return t.copied(dtype, tile, threads)  # type: ignore[no-any-return]
    return t, copies(dtype, mode, tile, threads, int(t.shape[mode]) * int(dtype.width) % (8 * VECTOR) == 0, rows)


def arguments(
    a: Any, b: Any, c: Any, dtype: Any, target: Any, cut: Warps, epilogue: Epilogue | None = None, c_dtype: Any = None,
    rows_a: Any = None, rows_c: Any = None, share: int | None = None,
) -> tuple[tuple[Any, ...], int]:  # fmt: skip
    """Give the kernel's arguments and grid for arrays of the host (to simulate or compile) or of the device.

    a, b, c, dtype, epilogue, c_dtype, rows_a, rows_c: as of `plan.arguments`. target: the GPU's record. cut: a Warps.
    share: None, or how many tiles of K each matrix of C's batch is the product of, one after the other; A and B have no
    batch then.
    """
    check(cut)
    c_dtype, like = c_dtype or RESULTS[dtype], epilogue.matrix if epilogue else None
    a, b, c, like = (None if x is None else view(x, VECTOR) for x in (a, b, c, like))
    spread = epilogue.spread if epilogue else 1
    turned = is_turned(c, False, spread)
    if turned:  # the same, seen from the other side
        a, b, c, like = b, a, swapped(c), None if like is None else swapped(like)
    (tA, a_mode), (tB, b_mode), (tC, c_mode) = operand(a, dtype), operand(b, dtype), operand(c, c_dtype)
    tD = None if like is None else operand(like, c_dtype)[0]
    (m, k), n, batches = map(int, a.shape[-2:]), int(b.shape[-2]), int(c.shape[0]) if len(c.shape) == 3 else 1
    of_a, of_c = (None if r is None else by_index(t, r, m) for t, r in ((tA, rows_a), (tC, rows_c)))
    parts = of_tile(cut, target, dtype, c_dtype, (tA, a_mode), (tB, b_mode), (tC, c_mode), tD, spread, (of_a, of_c))
    (tile_m, tile_n), c_layout = cut.tile, parts[-1]
    tiles = math.ceil(m / tile_m), math.ceil(n / tile_n), batches
    counts = cute.Int32(tiles[0]), cute.Int32(tiles[1]), 1 if batches == 1 else cute.Int32(batches)
    order = utils.PersistentTileSchedulerParams(counts, (1, 1, 1), GROUP_M, False)
    made = hook(epilogue, int(c.shape[-2]), int(c.shape[-1]), turned, 8 if spread == 2 else None, batches)
    check_room(cut, target, made, c_layout, tile_n // spread, c_dtype)
    extents: tuple[Any, ...] = cute.Int32(m), cute.Int32(n), cute.Int32(k)
    if n != int(c.shape[-1]) * spread:  # B's halves have room behind them
        extents = (*extents, cute.Int32(int(c.shape[-1])))
    return (*parts, order, made, extents, None if share is None else cute.Int32(share)), math.prod(tiles)


def check_room(cut: Warps, target: Any, made: Any, c_layout: Any, columns: int, c_dtype: Any) -> None:
    """Refuse an epilogue for which the ring has no room. made: its Hook. c_layout, c_dtype: of C's pieces. columns: of
    a tile of C."""
    held = cute.size_in_bytes(c_dtype, c_layout)
    held += cute.size_in_bytes(cute.Float32, made.layout(cut.tile[0], columns, 1))
    ring = stages_of(cut, target) * cut.stage
    if held > ring:
        raise CuteError(
            f"gemm: {cut}: the epilogue takes {held} bytes of shared memory, and there are {ring}: give more stages, "
            "or an epilogue of fewer vectors"
        )


def of_tile(
    cut: Warps, target: Any, dtype: Any, c_dtype: Any, a: Any, b: Any, c: Any, like: Any = None, spread: int = 1,
    named: tuple[Any, Any] = (None, None),
) -> tuple[Any, ...]:  # fmt: skip
    """Give a kernel's arguments from the element types to C's layout: how it makes a tile.

    cut, target, dtype, c_dtype: as of `arguments`. a, b, c: the operands and the result as the kernel sees them, each
    with its contiguous mode. like: the matrix like C, or None. spread: columns of sums for one of C. named: a Rows of A
    and of C, where an index names their rows."""
    (tA, a_mode), (tB, b_mode), (tC, c_mode) = a, b, c
    op, (tile_m, tile_n), (warps_m, warps_n) = mma_op(dtype), cut.tile, cut.warps
    tile_k, stages, c_tile = 8 * cut.row // dtype.width, stages_of(cut, target), (16 * warps_m, tile_n // spread)
    # A warp has 16 columns side by side: what one ldmatrix takes of B, and, of pairs, both of 8 columns.
    columns = cute.make_layout((8, warps_n, 2), stride=(1, 16, 8))
    tiled_mma = cute.make_tiled_mma(op, (warps_m, warps_n, 1), (16 * warps_m, columns, op.shape_mnk[2]))
    of_piece = columns if spread == 1 else 8 * warps_n
    piece_mma = cute.make_tiled_mma(op, (warps_m, warps_n, 1), (16 * warps_m, of_piece, op.shape_mnk[2]))
    loads = [cute.make_copy_atom(warp.LdMatrix8x8x16bOp(mode == 0, 4), dtype) for mode in (a_mode, b_mode)]
    a_layout = smem_layout(dtype, a_mode, tile_m, tile_k, stages)
    b_layout = smem_layout(dtype, b_mode, tile_n, tile_k, stages)
    c_layout = smem_layout(c_dtype, c_mode, *c_tile, min(2, tile_m // c_tile[0]))
    tA, copies_a = copied(tA, a_mode, dtype, (tile_m, tile_k), cut.threads, named[0])
    tB, copies_b = copied(tB, b_mode, dtype, (tile_n, tile_k), cut.threads)
    tC, copies_c = copied(tC, c_mode, c_dtype, c_tile, cut.threads, named[1])
    return (
        dtype, sums_of(dtype), c_dtype, tA, tB, tC, like, tiled_mma, piece_mma, *loads, copies_a, copies_b, copies_c,
        a_layout, b_layout, c_layout,
    )  # fmt: skip


def kernel_of(cut: Any, function: Any = multiply) -> Any:
    """Give a kernel with the registers that a cut leaves a thread: one for all cuts with as many. function: the
    kernel's, by default that of the GEMM."""
    return _bounded(function, cut.threads, cut.ctas)


@functools.cache
def _bounded(function: Any, threads: int, ctas: int) -> Any:
    return cuda.jit(launch_bounds=(threads, ctas))(function)


# ---------------------------------------------------------------- which cut


def modelled(cut: Warps, c: Any, k: int, dtype: Any, sms: int, spread: int = 1) -> float:
    """Estimate the time of a cut, in no unit. c, k, dtype, sms, spread: as of `plan.modelled`."""
    m, n = kernel_extents(c, False, spread)
    batches = int(c.shape[0]) if len(c.shape) == 3 else 1
    tiles = math.ceil(m / cut.tile[0]) * math.ceil(n / cut.tile[1]) * batches
    stages = math.ceil(k * int(dtype.width) / (8 * 128)) + START
    return math.ceil(tiles / sms) * math.prod(cut.tile) * stages / RATE[cut.tile]


def cuts(target: Any, named: bool = False) -> list[Warps]:
    """List the cuts that may be chosen for a GPU. target: its record. named: whether an index names rows, for whose
    numbers a tile of 128 by 128 has no registers left."""
    found = []
    for cut in CUTS if not named else [cut for cut in CUTS if cut.tile != (128, 128)]:
        with contextlib.suppress(CuteError):
            found += [cut] * (stages_of(cut, target) >= FEWEST_STAGES)
    return found


def plan(
    c: Any, k: int, dtype: Any, sms: int, target: Any, epilogue: Epilogue | None = None, named: bool = False
) -> Warps:
    """Choose the cut that takes the least time on so many SMs, by the model, of those that fit. c, k, dtype, sms,
    epilogue, named: as of `plan.plan`. target: the GPU's record."""
    spread = epilogue.spread if epilogue else 1
    return min(cuts(target, named), key=lambda cut: modelled(cut, c, k, dtype, sms, spread))
