# SPDX-License-Identifier: Apache-2.0
"""Cut a GEMM of packed weights by warps: the tile, its warps, the stages, the parts of K; and its launches."""

from __future__ import annotations

import contextlib
import itertools
import math
from typing import Any, NamedTuple

import numba_cute as cute
from numba_cute import utils
from numba_cute.nvgpu import warp
from numba_cute.seam import CuteError

from .. import entry
from .launches import Splits
from .mixed_warps import VECTORS, Form, mixed
from .operands import check_rows, mapped, tensor_of
from .pack import COLUMNS as TILE_K, ROWS
from .plan import memory_of, smem_layout
from .warps import VECTOR
from .warps_plan import GROUP_M, copied, kernel_of, mma_op
from .widened import MASK

WHAT = "mixed_gemm"
FEWEST_STAGES, MOST_STAGES = 3, 8  # of those that are chosen


class Cut(NamedTuple):
    """A cut of a problem. tile: tokens, and rows of the weights. warps: how many share it along both. ctas: that share
    an SM. stages: of the ring; 0 for as many as there is room for. splits: CTAs that share K."""

    tile: tuple[int, int] = (128, 128)
    warps: tuple[int, int] = (1, 4)
    ctas: int = 2
    stages: int = 0
    splits: int = 1

    @property
    def threads(self) -> int:
        """Threads of a CTA."""
        return 32 * self.warps[0] * self.warps[1]


CUTS = (
    Cut((16, 128), ctas=4), Cut((32, 128), ctas=3), Cut((64, 128)), Cut((128, 128)), Cut((128, 256), (1, 8), 1)
)  # fmt: skip
MOST_SHARED = 128 * 128  # elements of a tile whose K is shared
SPLITS = (1, 2, 3, 4, 6, 8, 12, 16)
# Clocks of an SM, measured on an H200 with this code: of a tile of K of a CTA alone, and the least for one of several
# that share the SM; of the beginning and the end of tiles; of meeting those that share K. Bytes of a clock: of weights,
# for each SM, and of sums of those that share K. And by how much each further CTA on an SM slows the others, at least.
K_TILE = {
    (16, 128): (660, 370), (32, 128): (850, 600), (64, 128): (1100, 895), (128, 128): (1670, 1230),
    (128, 256): (2600, 2600),
}  # fmt: skip
START, MEET, MEMORY, SUMS, CROWD = 1500, 2500, 16, 32, 0.3
_scratch = dict[Any, tuple[Any, Any]]()  # by device and stream


# ---------------------------------------------------------------- what a kernel takes


def form_of(cut: Cut, groups: int, kinds: int, middle: int = 0) -> Form:
    """Say how a cut's weights lie. groups, kinds: of factors, for 128 of K. middle: as of Int4Weights."""
    return Form(cut.tile[1] // ROWS, max(groups // 2, 1), kinds, middle, groups == 1)


def fitted(cut: Cut, form: Form, k: int, target: Any) -> Cut:
    """Give a cut with its stages. form: of its weights. target: the GPU's record. CuteError where the kernel does not
    take it."""
    (tile_m, tile_n), (warps_m, warps_n) = cut.tile, cut.warps
    whole = min(cut.tile) > 0 and tile_m % (16 * warps_m) == tile_n % ROWS == 0 and warps_n in (1, 2, 4, 8)
    k_tiles = -(-k // TILE_K)
    rules = {
        "a warp has a multiple of 16 tokens, 1, 2, 4 or 8 warps share the rows, which are a multiple of 128": whole,
        "its threads are 32 to 256, and copy the same part of 8 vectors of each token": cut.threads <= 256
        and 8 * tile_m % cut.threads == 0,
        "1 CTA or more shares an SM": cut.ctas >= 1,
        f"K has {k_tiles} tiles of {TILE_K}, one for each split or more": 1 <= cut.splits <= k_tiles,
    }
    broken = next((rule for rule, holds in rules.items() if not holds), None)
    if broken is not None:
        raise CuteError(f"{WHAT}: {cut}: {broken}")
    stage = tile_m * TILE_K * 2 + VECTOR * sum(form.vectors)
    room = (int(target.smem_per_sm) // cut.ctas - int(target.smem_reserved)) // stage
    stages = cut.stages or min(MOST_STAGES, room)
    pieces = 2 * 16 * warps_m * tile_n * slots_of(cut)
    if not max(2, -(-pieces // stage)) <= stages <= room:
        raise CuteError(
            f"{WHAT}: {cut}: {stages} stages of {stage} bytes; {cut.ctas} CTAs of {target.name} have room for {room}, "
            f"and there must be 2 or more, and {pieces} bytes, for C: give another tile, or another number of stages"
        )
    return cut._replace(stages=stages)


def slots_of(cut: Cut) -> int:
    """Count the pieces of C that there is room for in shared memory: the rows of one instruction of all warps each."""
    return min(2, cut.tile[0] // (16 * cut.warps[0]))


def tiles_of(cut: Cut, m: int, n: int) -> tuple[int, int]:
    """Count the tiles along M and N."""
    return math.ceil(m / cut.tile[0]), math.ceil(n / cut.tile[1])


def scratch_of(cut: Cut, m: int, n: int) -> tuple[int, int]:
    """Count the numbers of 32 bits, and the counters, by which splits add their sums."""
    tiles = math.prod(tiles_of(cut, m, n))
    return tiles * cut.splits * math.prod(cut.tile), tiles


def arguments_of(cut: Cut, middle: int, x: Any, words: Any, factors: Any, c: Any, *scratch: Any) -> Any:
    """Give the kernel's arguments. cut: a whole Cut. scratch: for splits, two arrays as large as `scratch_of` says, the
    second of zeros. The others: as of `mixed.plan`."""
    (m, k), n, dtype = map(int, x.shape), int(c.shape[1]), entry.element_type(x)
    row_tiles, k_tiles, _ = map(int, words.shape)
    (tile_m, tile_n), (warps_m, warps_n) = cut.tile, cut.warps
    form = form_of(cut, int(factors.shape[2]), int(factors.shape[3]), middle)
    op = mma_op(dtype)
    columns = cute.make_layout((8, warps_n, 2), stride=(1, 16, 8))  # a warp has slabs of 16 rows, as they are packed
    tiled_mma = cute.make_tiled_mma(op, (warps_m, warps_n, 1), (16 * warps_m, columns, 16))
    load = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), dtype)
    c_tile = 16 * warps_m, tile_n
    tX, copies_x = copied(tensor_of(x, 1), 1, dtype, (tile_m, TILE_K), cut.threads)
    tC, copies_c = copied(tensor_of(c, 1), 1, dtype, c_tile, cut.threads)
    x_layout = smem_layout(dtype, 1, tile_m, TILE_K, cut.stages)
    c_layout = smem_layout(dtype, 1, *c_tile, slots_of(cut))
    tiles = tiles_of(cut, m, n)
    counts = cute.Int32(tiles[0]), cute.Int32(tiles[1]), 1
    order = utils.PersistentTileSchedulerParams(counts, (1, 1, 1), GROUP_M, False)
    extents, partials, tickets = tuple(map(cute.Int32, (m, n, k))), None, None
    if cut.splits > 1:
        fours = math.prod(cut.tile) // (4 * cut.threads)
        partials, tickets = memory_of(scratch, math.prod(tiles), cut.threads, fours, cute.Int32(cut.splits), dtype)
    return (
        dtype, tX, vectors_of(words, cute.Uint32, row_tiles, VECTORS, k_tiles),
        vectors_of(factors, cute.Uint16, row_tiles, form.vectors[1] // form.tiles, k_tiles // (1 + form.shared)), tC,
        tiled_mma, load, copies_x, copies_c, x_layout, c_layout, form, order, extents, cute.Uint32(MASK), partials,
        tickets,
    )  # fmt: skip


def vectors_of(array: Any, dtype: Any, row_tiles: int, count: int, k_tiles: int) -> Any:
    """See an array of (tiles of rows, tiles of K, `count` vectors) as (vector, vectors of all rows, tiles of K)."""
    each = 8 * VECTOR // dtype.width
    step = cute.Int64(each * count * k_tiles)
    layout = cute.make_layout(
        (each, (count, cute.Int32(row_tiles)), cute.Int32(k_tiles)), stride=(1, (each, step), each * count)
    )
    return cute.make_tensor(tensor_of(array, len(array.shape) - 1, dtype).iterator, layout)


# ---------------------------------------------------------------- which cut


def modelled(cut: Cut, m: int, n: int, k: int, sms: int) -> float:
    """Estimate the clocks of a cut. k: K. sms: of the GPU."""
    tiles, (alone, together) = math.prod(tiles_of(cut, m, n)), K_TILE[cut.tile]
    k_tiles = math.ceil(k / TILE_K)
    each, of_sm = math.ceil(k_tiles / cut.splits), math.ceil(tiles * cut.splits / sms)
    rounds = math.ceil(of_sm / cut.ctas)
    slower = 1 + CROWD * (of_sm / rounds - 1)
    multiply = max(of_sm * each * together, rounds * each * alone * slower, n * k / (2 * MEMORY * sms))
    sums = MEET + of_sm * 8 * math.prod(cut.tile) / SUMS
    return multiply + rounds * START + sums * (cut.splits > 1)


def cut_of(m: int, n: int, k: int, kinds: tuple[int, int], sms: int, target: Any) -> Cut:
    """Choose the cut that takes the least time, by the model, of those that fit. kinds: the groups and kinds of
    factors, as of `form_of`. target: the GPU's record."""
    found = []
    for cut, splits in itertools.product(CUTS, SPLITS):
        if splits > 1 and math.prod(cut.tile) > MOST_SHARED:
            continue
        with contextlib.suppress(CuteError):
            fit = fitted(cut._replace(splits=splits), form_of(cut, *kinds), k, target)
            found += [fit] * (fit.stages >= FEWEST_STAGES)
    return min(found, key=lambda cut: modelled(cut, m, n, k, sms))


def plan(x: Any, words: Any, factors: Any, c: Any, middle: int, n: int, cut: Cut | None = None) -> Any:
    """Plan the launch, as of `mixed.plan`. cut: a Cut, or None for the one that is thought best."""
    check_rows(WHAT, "cp.async", x=x, out=c)
    if not isinstance(cut, (Cut, type(None))):
        raise CuteError(
            f"{WHAT}: cut is {entry.described(cut)}, and this GPU's tensor cores are used as a warp's: give a Cut of "
            "mixed_warps_plan"
        )
    target = entry.target_at(x) or cute.target(entry.WARPS)
    (m, k), kinds = x.shape, (factors.shape[2], factors.shape[3])
    cut = cut or cut_of(m, n, k, kinds, entry.multiprocessors(x), target)
    cut = fitted(cut, form_of(cut, *kinds), k, target)
    counts = scratch_of(cut, m, n)
    splits = Splits(counts if cut.splits > 1 else None, _scratch)

    def arguments(*tensors: Any) -> Any:
        return arguments_of(cut, middle, *tensors)

    return mapped(
        kernel_of(cut, mixed), (counts[1] * cut.splits, 1, 1), None, (x, words, factors, c), arguments,
        beside=lambda *tensors: splits(tensors[-1]), block=cut.threads, pdl=False,
    )  # fmt: skip
