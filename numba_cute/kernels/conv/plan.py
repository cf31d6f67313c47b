# SPDX-License-Identifier: Apache-2.0
"""Cut a convolution's GEMM: what `gemm/plan.py` has, with what convolutions alone gain by.

There are few columns, and rows without end: up to 128 output channels are the rows of turned tiles, which have 256
pixels, and filters of few channels that fit into shared memory stay there.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from numba_cute import CuteError

from .. import entry, tuning
from ..gemm.cuts import Umma, Warps
from ..gemm.dense import TILE_M
from ..gemm.epilogue import Epilogue
from ..gemm.indexed import in_vectors
from ..gemm.launches import sms_here
from ..gemm.operands import Source
from ..gemm.plan import TILES_N, Plan, alone_of, fastest, few, first_of, k_tiles_of, kernel_extents, pieces_of, room_of
from .operands import UNIT, whole

if TYPE_CHECKING:
    from .windows import Window


def cuts(c: Any, k: int, dtype: Any, epilogue: Epilogue | None = None, c_width: int = 16) -> list[Plan]:
    """List the cuts that a convolution may have. c: the result, (pixels, channels). k, dtype, epilogue, c_width: as of
    `gemm.plan.cuts`."""
    found, k_tiles = [], k_tiles_of(k, dtype)
    turns = (False, True) if c_width == 16 and not isinstance(c, Source) and in_vectors(c, c_width) else (False,)
    for tile_n, sharers, parts, splits, turned in itertools.product(TILES_N, (1, 2), (1, 2, 4), (1, 2, 4), turns):
        cut = Plan(tile_n, sharers, parts, splits, turned)
        m, n = kernel_extents(c, turned, 1)
        if parts * splits > k_tiles or (sharers == 2 and m <= TILE_M):
            continue
        kept = [k_tiles] if n <= tile_n and (sharers, parts, splits, turned) == (1, 1, 1, False) else []
        for stay in (0, *kept):
            with contextlib.suppress(CuteError):
                pieces = pieces_of(cut._replace(kept=stay), c_width, *room_of(epilogue))
                if not stay or pieces.stages > 3:
                    found.append(cut._replace(kept=stay))
    return found


def modelled(cut: Plan, c: Any, k: int, dtype: Any, sms: int, read: int) -> float:
    """Estimate the microseconds of a cut. c, k, dtype: as for `cuts`. sms: of the device. read: bytes of images and
    filters.

    Of a GPU it knows, in microseconds: `k_tile`, what an SM takes for a K tile, by its columns and the CTAs that share
    it; `kept`, the same where filters stay; the beginning of a `launch`, the end of 256 columns (`epilogue`, of turned
    tiles `turned` times that), a sum over each further CTA of a cluster (`cluster_sum`), one by global memory
    (`split_sum`), and each of its columns (`split_column`); and the bytes a microsecond that all get of `memory`."""
    known = tuning.numbers("conv")
    m, n = kernel_extents(c, cut.turned, 1)
    tiles = math.ceil(m / (cut.sharers * TILE_M)) * cut.sharers * math.ceil(n / cut.tile_n)
    each = cut.sharers * cut.parts
    if each > sms:
        return math.inf
    room = sms // each * each if each < 4 else sms // each * each * 15 // 16  # GPCs do not divide evenly
    rounds = math.ceil(tiles * cut.parts * cut.splits / room)
    k_tiles = math.ceil(k_tiles_of(k, dtype) / (cut.parts * cut.splits))
    of_k = known.kept[cut.tile_n] if cut.kept else known.k_tile[cut.tile_n, cut.sharers]
    sums = known.cluster_sum * (cut.parts - 1) + 0.5 * (each > 2)
    sums += (known.split_sum + known.split_column * cut.tile_n / cut.parts) * (cut.splits > 1)
    end = known.epilogue * (known.turned if cut.turned else 1.0) * cut.tile_n / 256 / cut.parts + sums
    return float(known.launch + max(rounds * (k_tiles * of_k + end), (read + m * n * 2) / known.memory))


def plan(c: Any, k: int, dtype: Any, sms: int, epilogue: Epilogue | None, c_width: int, read: int) -> Plan:
    """Choose the cut that takes the least time, by the model. c, k, dtype, sms, epilogue, c_width, read: as for `cuts`
    and `modelled`."""
    found = cuts(c, k, dtype, epilogue, c_width)
    best: Plan = fastest(found, few().__contains__, lambda cut: modelled(cut, c, k, dtype, sms, read))
    return best


def chosen(
    family: str, c: Any, k: int, dtype: Any, target: Any, epilogue: Epilogue | None, c_width: int, read: int
) -> Plan | Umma | Warps:  # fmt: skip
    """Choose the cut for a family of GPUs. target: the GPU's record. The others: as of `plan`."""
    if family == entry.WARPS:
        from ..gemm import warps_plan

        return warps_plan.plan(c, k, dtype, sms_here(), target, epilogue)
    if family == entry.TENSOR_MEMORY:
        from ..gemm import umma_plan

        return umma_plan.plan(c, k, dtype, sms_here(), target, epilogue)
    return plan(c, k, dtype, sms_here(), epilogue, c_width, read)


# ---------------------------------------------------------------- of filters' gradients


class Groups(NamedTuple):
    """A cut of the gradient of filters: a Plan, which says the parts of the pixels too (`splits`), or an Umma; how
    many parts these are, whose sums are added; the channels, of which each tap has whole multiples; and of which
    lengths the parts are, as of a Plan's `arguments` (`apart`)."""

    cut: Plan | Umma
    number: int
    inner: int
    apart: int = 0


def fits(tile: int, extents: tuple[int, ...]) -> bool:
    """Say whether a tile of so many units divides a mode of several. extents: of these, the first one innermost."""
    for n in extents:
        if tile <= n:
            return n % tile == 0
        if tile % n:
            return False
        tile //= n
    return tile == 1


def chosen_parts(family: str, x: Any, outs: int, walk: Any, pixels: int) -> Groups | Window:
    """Choose how the gradient of filters is cut, for a family of GPUs whose TMA loads the im2col matrix. x: the images.
    outs, walk: of the filters. pixels: of the output."""
    from .windows import pitch_of, places_of

    found = groups(family, outs, x.shape[1], walk.taps[::-1], pixels, UNIT, sms_here())
    extents = tuple(x.shape[2:])
    pitch = pitch_of(walk, extents) if family == entry.WARPGROUPS else None
    if pitch is None or walk.taps[-1] == 1 or not isinstance(found.cut, Plan):
        return found
    count = places_of(walk, x.shape[0], extents, pitch)
    cut, time = _of_windows(tuning.here(), walk.taps, outs, x.shape[1], count, walk.dilation[-1], sms_here())
    columns = whole(x.shape[1], found.inner) * math.prod(walk.taps)
    others = _of_warpgroups(found.cut, outs, columns, pixels, sms_here(), x.shape[1], found.apart)
    return cut if time < others else found


@functools.lru_cache(maxsize=1024)
def _of_windows(
    gpu: Any, taps: tuple[int, ...], outs: int, channels: int, places: int, dilation: int, sms: int
) -> tuple[Window, float]:
    """The fastest cut into windows, and its microseconds, by a model that knows what a stage of three taps of a row
    takes, by the rows of a CTA, and the CTAs of an SM (`window`)."""
    from .windows import Window, stages_of

    known, (*outer, last), best = tuning.numbers("conv"), taps, (math.inf, Window(1, 1, 1))
    lines, depths = math.prod(outer), math.ceil(places / UNIT)
    for rows, along in itertools.product(range(1, min(3, lines) + 1), range(1, min(3, last) + 1)):
        tiles = math.ceil(lines / rows) * math.ceil(last / along) * math.ceil(outs / UNIT) * math.ceil(channels / UNIT)
        if stages_of(Window(rows, along, 1), dilation) < 3:
            continue
        for parts in {max(1, min(depths, sms * n // tiles)) for n in (1, 2, 3, 4)}:
            together = 2 if rows == 1 and tiles * parts > sms else 1  # CTAs of an SM
            rounds = math.ceil(tiles * parts / (sms * together))
            stage = known.window[rows, together] * (1 + along) / 4
            time = rounds * (math.ceil(depths / parts) * stage + known.epilogue)
            time += _added(parts * whole(outs, UNIT) * whole(channels, UNIT) * math.prod(taps))
            best = min(best, (time + known.launch, Window(rows, along, parts)))
    return best[1], best[0]


def groups(family: str, outs: int, channels: int, taps: tuple[int, ...], pixels: int, unit: int, sms: int) -> Groups:
    """Choose the groups that take the least time. family: of GPUs, whose TMA loads the im2col matrix. outs, channels:
    of the filters. taps: along W first. pixels: of the output. unit: channels that are loaded together. sms: of the
    device."""
    return _groups(tuning.here(), family, outs, channels, taps, pixels, unit, sms)


@functools.lru_cache(maxsize=1024)
def _groups(
    gpu: Any, family: str, outs: int, channels: int, taps: tuple[int, ...], pixels: int, unit: int, sms: int
) -> Groups:  # fmt: skip
    of_warpgroups = family == entry.WARPGROUPS
    if of_warpgroups:
        cuts: Any = WARPGROUPS_CUTS
    else:
        from ..gemm import umma_plan

        cuts = umma_plan.CUTS
    usual = Groups(Plan(unit, 1) if of_warpgroups else Umma(unit, 1), 1, unit)
    best: tuple[float, int, Groups] = math.inf, 0, usual
    for cut in cuts:
        filled = whole(channels, cut.tile_n if channels > cut.tile_n else unit)
        for inner in dict.fromkeys((filled, unit if channels % unit == 0 else filled)):
            rest = whole(channels, inner) // inner
            if not fits(cut.tile_n // unit, (inner // unit, *taps, rest)):
                continue
            columns = inner * math.prod(taps) * rest
            found: Any = (_parts_of if of_warpgroups else _groups_of)(cut, outs, columns, pixels, sms, channels)
            made = ((time, columns, Groups(one, number, inner, *apart)) for time, one, number, *apart in found)
            best = min(best, *made, key=lambda x: x[:2])
    return best[2]


def _parts_of(
    cut: Any, outs: int, columns: int, pixels: int, sms: int, channels: int
) -> Iterator[tuple[float, Plan, int, int]]:
    """Yield the microseconds of a cut in each number of parts, which have any numbers of pixels, and their lengths."""
    for one, apart in () if cut.tail else _helped(cut, outs, columns, pixels, sms):
        yield _of_warpgroups(one, outs, columns, pixels, sms, channels, apart), one, one.splits, apart
    for count in range(1, min(math.ceil(pixels / UNIT), 2 * sms) + 1):
        one = cut._replace(splits=count)
        if not cut.tail or (count > 1 and edge_of(one, outs, columns, sms)):
            yield _of_warpgroups(one, outs, columns, pixels, sms, channels), one, count, 0
        else:
            yield math.inf, one, count, 0


def _helped(cut: Plan, outs: int, columns: int, pixels: int, sms: int) -> Iterator[tuple[Plan, int]]:
    """Yield the cuts whose tiles, fewer than fit at once, have clusters of their own, with those that fit beside these
    for the rest of their K, and how many parts each of these has. There is memory for more stages: what loads them is
    slow where all SMs are busy."""
    work, room = math.ceil(outs / (TILE_M * cut.sharers)) * (columns // cut.tile_n), sms // cut.sharers
    for others in (1, 2, 3) if work < room else ():
        helped = math.ceil(work * others / (room - work))
        if helped > 1 and others + helped < math.ceil(pixels / UNIT):
            yield cut._replace(splits=1 + others, slots=2), helped


def _groups_of(cut: Any, outs: int, columns: int, pixels: int, sms: int, _: int) -> Iterator[tuple[float, Umma, int]]:
    """Yield the clocks of a cut in each number of groups, all of as many pixels."""
    for count in range(1, min(pixels, 2 * sms) + 1):
        if pixels % count == 0:
            yield _of_tensor_memory(cut, outs, columns, pixels, count, sms), cut, count


WIDE = 256
WARPGROUPS_CUTS = [Plan(*of) for of in itertools.product((256, 192, 128, 64), (1, 2))]
WARPGROUPS_CUTS += [Plan(tile_n, 1, tail=True) for tile_n in (256, 192, 128)]


def edge_of(cut: Plan, outs: int, columns: int, clusters: int) -> int:
    """Count the columns of a gradient of filters whose tiles are not shared: those of whole rounds, if the others' are
    whole columns of tiles; 0 if all are shared. clusters: that fit on the device."""
    down, across = math.ceil(outs / TILE_M), columns // cut.tile_n
    alone = alone_of(down * across, clusters, cut)
    return alone // down * cut.tile_n if alone % down == 0 and down <= tuning.numbers("matmul").group_m else 0


def _of_warpgroups(
    cut: Plan, outs: int, columns: int, pixels: int, sms: int, channels: int, apart: int = 0
) -> float:  # fmt: skip
    """The microseconds of a gradient of filters, by wgmma. columns: of all taps, of so many `channels`. apart: as of
    Groups.

    Of a GPU it knows what an SM takes for a K tile, as of `modelled`, where both operands are contiguous along M and N
    (`outer`), and the least, by its columns, where pixels have more than WIDE channels (`wide`); and how many times as
    long it takes where others help (`helped`)."""
    known, (tile_n, sharers, _, count, *_) = tuning.numbers("conv"), cut
    if sharers > min(sms, math.ceil(outs / TILE_M)):
        return math.inf
    tiles, k_tiles = math.ceil(outs / (sharers * TILE_M)) * sharers * (columns // tile_n), math.ceil(pixels / UNIT)
    room, end = sms // sharers * sharers, 2 * known.epilogue * tile_n / 256
    alone = alone_of(tiles, room, cut)
    each = max(known.outer[tile_n, sharers], known.wide[tile_n] if max(outs, channels) > WIDE else 0)
    if apart:
        first, each = first_of(count - 1, apart, k_tiles), known.helped * each
        multiply = max(first * each, apart * (math.ceil((k_tiles - first) / (count - 1)) * each + end) - end) + end
        return float(multiply + known.launch + _added(count * outs * columns) / 2)  # in the kernel
    multiply = alone // room * (k_tiles * each + end)
    multiply += math.ceil((tiles - alone) * count / room) * (math.ceil(k_tiles / count) * each + end)
    added = _added(outs * columns * (count - (count - 1) * alone / tiles)) if count > 1 else 0.0  # or written at once
    return float(multiply + known.launch + added)


def _added(sums: float) -> float:
    """The microseconds in which so many sums are written and added up."""
    known = tuning.numbers("conv")
    return float(4 * sums / known.memory + known.launch / 2)


def _of_tensor_memory(cut: Umma, outs: int, columns: int, pixels: int, count: int, sms: int) -> float:
    """The clocks of a gradient of filters in so many groups, by tcgen05. columns: of all taps."""
    from ..gemm import umma_plan

    multiply = umma_plan.clocks(cut, count, outs, columns, math.ceil(pixels / count / 64), sms)
    added = count * outs * columns * 8 / (umma_plan.MEMORY_BYTES * sms) + umma_plan.START
    return multiply + added * (count > 1)
