# SPDX-License-Identifier: Apache-2.0
"""Launch attention by warps: choose tiles for a GPU's shared memory, and make the arguments and the grid."""

import math
from typing import NamedTuple

import numba_cute as cute
from numba_cute.seam import CuteError

from ..entry import element_type
from . import plan, visits
from .plan import ALL
from .schedule import divisor_of, order_of, section_of
from .softmax import LOG2_E
from .split import splits_of
from .warps import make_forward
from .warps_form import Form


class Tile(NamedTuple):
    """Queries and keys of a tile, the rows of a warp, and the CTAs that share an SM."""

    queries: int
    keys: int
    rows: int
    ctas: int


TILES = {
    64: (Tile(128, 80, 32, 2),),
    128: (Tile(128, 48, 32, 2), Tile(128, 32, 32, 2)),
    192: (Tile(128, 64, 16, 1), Tile(64, 64, 16, 1)),
    256: (Tile(128, 64, 16, 1), Tile(64, 64, 16, 1)),
}
"""The tiles of many queries, by the greater head dimension: the first that fits. A warp of 32 rows reads half as much
of shared memory for its products as one of 16, and has sums of twice as many registers."""

FEW = {64: Tile(64, 64, 16, 3), 128: Tile(64, 64, 16, 2), 192: Tile(64, 64, 16, 1), 256: Tile(64, 64, 16, 1)}
"""The tiles of few queries. None of these was measured."""


KNOWN = {"scale", "left", "right", "score", "most_queries", "tile", "pack", "splits", "mask", "block"}
"""The fields of `plan.Options` that this kernel has."""


def check(options):
    """Refuse options that this kernel has not, with CuteError."""
    unknown = [name for name, x in options._asdict().items() if x is not None and name not in KNOWN]
    if unknown:
        raise CuteError(
            f"flash_attention: {', '.join(unknown)} is given, which the kernel for GPUs with mma.sync does not "
            "support yet: leave it out there"
        )


def fits(form, target):
    """Say whether so many CTAs of a form fit an SM. record: the GPU's."""
    return form.smem <= target.smem_per_sm // form.ctas - target.smem_reserved


def dividing(tile, block):
    """Give the tile with as many of its keys as divide a block's, and as its threads bring at once; None where its
    queries do not."""
    at_once = 32 * tile.queries // tile.rows // 8  # as of `warps_form.rows_copy`
    keys = [n for n in range(at_once, tile.keys + 1, at_once) if block[1] % n == 0]
    return tile._replace(keys=keys[-1]) if keys and block[0] % tile.queries == 0 else None


def choices_of(form, few, options):
    """The tiles that a form may have, the best first. few: whether there are so few queries that 64 will do."""
    if options.tile is not None:
        return (Tile(*options.tile),)
    widest = min(n for n in TILES if n >= max(form.d, form.dv))
    choices = (FEW[widest],) if few else (*TILES[widest], FEW[widest])
    if form.block is None:
        return choices
    return tuple(filter(None, (dividing(tile, form.block) for tile in choices)))


def form_of(q, k, v, queries, lengths, options, target):
    """The kernel's form for arrays, and `plan.Options`, of which `tile` may have the tile. queries: of the longest
    sequence. target: the GPU's record."""
    check(options)
    (heads, d), (kv_heads, dv) = q.shape[-2:], v.shape[-2:]
    form = Form(
        element_type(q), d, dv, heads // kv_heads, 0, 0, left=options.left is not None,
        right=options.right is not None, page=k.shape[1] if lengths.pages is not None else 0, score=options.score,
        mask=options.mask, block=options.block, bounded=plan.bounded(options, lengths),
    )  # fmt: skip
    if form.block is not None:  # each tile, and head, has a list of its own
        options = options._replace(pack=1)
    small = plan.pack_of(queries, form.group, 64) if options.pack is None else options.pack
    choices = choices_of(form, queries * small <= 64, options)
    forms = [form._replace(tile_m=t.queries, tile_n=t.keys, rows=t.rows, ctas=t.ctas) for t in choices]
    found = next((f for f in forms if fits(f, target)), None)
    if found is None:
        raise CuteError(
            f"flash_attention: {choices[0]} needs {forms[0].smem} bytes of shared memory, and {target.name} does "
            f"not have that for {choices[0].ctas} CTAs per SM: give a smaller tile"
        )
    pack = plan.pack_of(queries, form.group, found.tile_m) if options.pack is None else options.pack
    return found._replace(pack=pack)


def best_splits(q, k, v, options, lengths, sms, target):
    """Choose how many CTAs share a tile's keys, as `plan.best_splits` does."""
    batch, queries, keys = plan.sizes(q, k, options, lengths)
    form = form_of(q, k, v, queries, lengths, options, target)
    tiles = math.ceil(queries * form.pack / form.tile_m) * plan.heads_of(q, form) * batch
    if form.tile_m > 64 and 2 * tiles > sms:
        return 1
    if options.left is not None and options.right is not None:
        keys = min(keys, options.left + options.right + queries)
    ragged = lengths.used is not None or lengths.cu_k is not None or options.block is not None
    return splits_of(tiles, math.ceil(keys / form.tile_n), sms * form.ctas, ragged)


def arguments(q, k, v, o, lse, options, target, lengths=ALL, sink=None, aux=(), work=None, mask_aux=(), listed=None):
    """The kernel, its arguments, grid and block, for arrays of the host (to simulate or compile) or of the device.
    target: the GPU's record. The others: as of `plan.arguments`."""
    cu_q, cu_k, used, pages = lengths
    batch, queries, keys = plan.sizes(q, k, options, lengths)
    form = form_of(q, k, v, queries, lengths, options, target)
    heads, splits = plan.heads_of(q, form), options.splits or 1
    tiles = math.ceil(queries * form.pack / form.tile_m) * splits
    share = form.group if form.pack == 1 else 1  # query heads of the same keys
    section = heads if splits > 1 else section_of(keys, form.d + form.dv, 2, share)
    out = plan.parts_of(work, q, v, splits) if splits > 1 else (plan.rows_first(o), plan.logs(lse))
    more = [None if x is None else plan.view(x) for x in (cu_q, cu_k, used, pages, sink if splits == 1 else None)]
    left, right = min(options.left or 0, keys), min(options.right or 0, queries)  # more changes nothing, nor fits Int32
    args = (
        *map(plan.rows_first, (q, k, v)), *out, *more, tuple(aux), tuple(mask_aux),
        () if listed is None else visits.of(*listed), divisor_of(splits) if splits > 1 else None,
        *map(cute.Int32, (queries, keys)),
        order_of(tiles, heads, batch, section), *map(cute.Int32, (left, right)), cute.Float32(options.scale),
        cute.Float32(LOG2_E * (1.0 if form.score is not None else options.scale)),
    )  # fmt: skip
    return make_forward(form), args, tiles * heads * batch, form.threads


@cute.runtime.remembered
def launches(q, k, v, o, lse, cu_q, cu_k, used, pages, sink, work, counts, lists, target, options, own, *aux):
    """The launches of a call: of each the kernel, its arguments, grid and block. target: the GPU's name. counts, lists:
    as of `visits.of`, or None. aux: what the functions of the scores, its `own` first, and of the mask take; numbers
    are pairs of their type and value. All others as of `arguments`."""
    lengths = plan.Lengths(cu_q, cu_k, used, pages)
    numbers = tuple(x[0](x[1]) if type(x) is tuple else x for x in aux)
    made = arguments(
        q, k, v, o, lse, options, cute.target(target), lengths, sink, numbers[:own], work, numbers[own:],
        None if counts is None else (counts, lists),
    )  # fmt: skip
    after = () if work is None else (plan.joining(q, v, o, lse, options, lengths, sink, work, False),)
    return made, *after
