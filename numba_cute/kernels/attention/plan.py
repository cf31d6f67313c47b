# SPDX-License-Identifier: Apache-2.0
"""Plan a launch of the attention forward: its tiles, its arguments and its grid."""

import functools
import math
from typing import Any, NamedTuple

import numba_cute as cute
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack

from .. import tuning
from ..entry import element_type
from . import values, visits
from .form import Form, atoms, layouts
from .forward import kernel_of
from .schedule import divisor_of, order_of, section_of
from .softmax import LOG2_E
from .split import THREADS, make_join, splits_of


class Options(NamedTuple):
    """The arguments that are not tensors.

    scale: what Q K^T is multiplied with. left, right: how many keys before and after its own a query sees, None for
    all; the last query's own key is the last key. score: `score(s, batch, head, query, key, *aux)`, what becomes of a
    scaled score, or None. mask: `mask(batch, head, query, key, *aux)`, whether the query sees the key, or None. block:
    queries and keys of the blocks that lists say are visited, or None. most_queries: of the longest sequence, where
    they have their own lengths. tile: (queries, keys) of a tile. turns, draws, pack, q_stages, cluster, stages, lazy:
    as of `Form`. section: query heads that are done side by side. splits: CTAs that share a tile's keys. None for what
    is best.
    """

    scale: float
    left: int | None = None
    right: int | None = None
    score: Any = None
    most_queries: int | None = None
    tile: tuple[int, int] | None = None
    turns: bool | None = None
    draws: bool | None = None
    pack: int | None = None
    q_stages: int | None = None
    cluster: int | None = None
    section: int | None = None
    stages: int | None = None
    splits: int | None = None
    mask: Any = None
    block: tuple[int, int] | None = None
    lazy: bool | None = None


class Lengths(NamedTuple):
    """The bounds of sequences, each an array of int32 or None.

    cu_q, cu_k: the first row of each sequence in Q and O, and in K and V, and the number of all rows. used: how many
    keys each sequence has. pages: (batch, pages of a sequence), the number of each page in K and V.
    """

    cu_q: Any = None
    cu_k: Any = None
    used: Any = None
    pages: Any = None


ALL = Lengths()
NO_SCALES = None, None, None
SMEM = cute.target("sm_90a").smem_per_block - 512  # bytes that a CTA may have, less those for barriers
MOST_STAGES = {16: 8, 8: 4}  # by the bits of an element


def smem_of(form):
    """Bytes of shared memory for the tiles of a form."""
    return sum(cute.cosize(x) for x in layouts(form)) * form.dtype.width // 8


def habit_of(form):
    """Give the fastest settings that were measured for a form, by its greater head dimension and by whether it has a
    window ("ends"): `turns` where no cluster shares keys, `lazy` (whether such a form takes turns, by the CTAs of a
    cluster), `cluster` and `stages` of the form (False, not at all, 1 and 2 for what is not there), and `keys`, the
    most of a tile that is a CTA's own (176, or 128). That of 8 bits has more room, and takes turns alike."""
    widest, habits = max(form.d, form.dv), tuning.numbers("flash_attention").habits
    found = habits.get(f"{widest},ends" if form.left or form.right else widest, {})
    return {"turns": max(form.d, form.dv) <= 64} if form.narrow else found


def tile_of(form, few=False):
    """Queries and keys of a tile: as many keys as shared memory and registers have room for. form: the rest of it. few:
    whether there are so few queries that 64 will do."""
    d, dv, page = form.d, form.dv, form.page
    rows, among = form.block or (0, 0)  # which tiles divide
    plain = form.mask is None and form.block is None  # others need more registers
    most_rows = 64 if few else 192 if max(d, dv) <= 64 and plain else 128
    tile_m = next(m for m in (192, 128, 64) if rows % m == 0 and m <= most_rows)
    registers = 128 if tile_m == 192 else 208 if form.narrow else 200  # for S, and P at part of its size, and O
    registers -= 0 if plain else 16
    short = few or form.left or form.right or page or form.mask is not None
    alone = habit_of(form).get("keys", 176) if form.cluster == 1 else 176
    most = 128 if short else 192 if form.narrow else alone
    each, step = (20, 64) if form.narrow else (24, 16)
    fit = [
        n for n in range(step, most + 1, step)
        if among % n == 0 and n * each // 32 + dv // 2 <= registers
        and smem_of(form._replace(tile_m=tile_m, tile_n=n)) <= SMEM
    ]  # fmt: skip
    return tile_m, max(fit, key=lambda n: (math.gcd(page, n) if page else 0, n))


def pack_of(queries, group, tile_m):
    """Return the number of heads of a group that lie side by side in a tile: all, up to a power of two, if that fills
    tiles much better, or 1."""
    pack = 1 << (group - 1).bit_length()
    if group == 1 or pack > 64:
        return 1
    alone = queries / (math.ceil(queries / tile_m) * tile_m)
    together = queries * group / (math.ceil(queries * pack / tile_m) * tile_m)
    return pack if alone < tuning.numbers("flash_attention").fill * together else 1


def stages_of(form):
    """Return the number of blocks of keys, and of values, that lie in shared memory if few queries read many, or
    elements have 8 bits: as many as fit, so that more of them are on their way."""
    most = MOST_STAGES[form.dtype.width]
    return max(n for n in range(2, most + 1) if n == 2 or smem_of(form._replace(stages=n)) <= SMEM)


@functools.lru_cache(256)
def bound(kernel, grid, block, stream, overlaps=True):
    """Bind a kernel to its grid, block and stream. overlaps: whether it may begin while the one before it ends."""
    return cute.launch(kernel, grid=grid, block=block, stream=stream, pdl=overlaps)


def view(array, align=None):
    """A tensor over an array, or like a tensor, whose extents are known at run time."""
    t = array if isinstance(array, cute.Tensor) else from_dlpack(array, assumed_align=align)
    shape, (*outer, last) = t.layout.shape, t.layout.stride
    assert last == 1 or array.shape[-1] == 1
    stride = *map(cute.Int64, outer), 1
    return cute.make_tensor(t.iterator, cute.make_layout(tuple(map(cute.Int32, shape)), stride=stride))


def rows_first(array, columns_first=False):
    """A tensor over an array (batch, rows, heads, d), or (rows, heads, d), as (rows, d, heads, batch), or (d, rows, …);
    extents are known at run time."""
    t = view(array, 16)
    shape, stride = t.layout.shape, t.layout.stride
    if len(array.shape) == 3:
        shape, stride = (1, *shape), (0, *stride)
    order = (3, 1, 2, 0) if columns_first else (1, 3, 2, 0)
    return cute.make_tensor(
        t.iterator, cute.make_layout(tuple(shape[i] for i in order), stride=tuple(stride[i] for i in order))
    )


def along_keys(turned):
    """A tensor (d, keys, heads, batch) over an array (batch, heads, d, keys)."""
    t = view(turned, 16)
    return cute.make_tensor(t.iterator, cute.select(t.layout, mode=[2, 3, 1, 0]))


def turning(v, turned, used=None):
    """The kernel that writes V of 8 bits to `turned`, of `values.turned_shape`, its arguments, grid and block. used:
    the keys of each sequence, or None for all; behind them stands 0."""
    batch, keys, heads, dv = v.shape
    args = rows_first(v), along_keys(turned), None if used is None else view(used), cute.Int32(keys)
    return values.make_turn(dv), args, (values.blocks(v), heads, batch), values.THREADS


def packed(tensor, group):
    """(rows, d, heads, batch) as ((group, rows), d, heads / group, batch)."""
    (rows, d, heads, batch), (row, one, head, step) = tensor.layout.shape, tensor.layout.stride
    lay = cute.make_layout(
        ((cute.Int32(group), rows), d, heads // group, batch), stride=((head, row), one, head * group, step)
    )
    return cute.make_tensor(tensor.iterator, lay)


def bounded(options, lengths):
    """Say whether lists of blocks may name some that do not exist, or that no window sees."""
    ends = options.left is not None or options.right is not None or any(x is not None for x in lengths)
    return options.block is not None and ends


def form_of(q, k, v, queries, lengths, options):
    """The kernel's form for arrays, and `Options`. queries: of the longest sequence."""
    (heads, d), (kv_heads, dv) = q.shape[-2:], v.shape[-2:]
    form = Form(
        element_type(q), d, dv, heads // kv_heads, 0, 0, options.left is not None, options.right is not None,
        page=k.shape[1] if lengths.pages is not None else 0, score=options.score, mask=options.mask,
        block=options.block, bounded=bounded(options, lengths),
    )  # fmt: skip
    if form.block is not None:  # each tile, and head, has a list of its own
        options = options._replace(pack=1, cluster=1)
    habit = habit_of(form)
    form = form._replace(stages=options.stages or habit.get("stages", 2))
    small = pack_of(queries, form.group, 64) if options.pack is None else options.pack
    few = queries * small <= 64 if options.tile is None else options.tile[0] == 64
    form = form._replace(q_stages=2 if few else 1)
    tile_m = (options.tile or tile_of(form, few))[0]
    pack = pack_of(queries, form.group, tile_m) if options.pack is None else options.pack
    alike = all(x is None for x in lengths) and not form.left and not form.right
    share = alike and not few and (options.splits or 1) == 1 and math.ceil(queries * pack / tile_m) % 2 == 0
    cluster = (habit.get("cluster", 1) if share else 1) if options.cluster is None else options.cluster
    form = form._replace(cluster=cluster, pack=pack)
    tile_m, tile_n = options.tile or tile_of(form, few)
    plain = form.dtype is cute.BFloat16 and form.score is None and form.mask is None and form.block is None
    turns_if_lazy = habit.get("lazy", {})
    lazy = plain and (bool(turns_if_lazy) and not few if options.lazy is None else options.lazy)
    turns = turns_if_lazy.get(cluster, False) if lazy else cluster == 1 and habit.get("turns", False)
    turns = turns if options.turns is None else options.turns
    draws = cluster == 1 if options.draws is None else options.draws
    form = form._replace(tile_m=tile_m, tile_n=tile_n)
    fits = smem_of(form._replace(q_stages=2)) <= SMEM
    q_stages = (2 if fits else 1) if options.q_stages is None else options.q_stages
    form = form._replace(turns=turns and tile_m > 64, draws=draws, q_stages=q_stages, lazy=lazy)
    deep = (few or form.narrow) and options.stages is None
    return form._replace(stages=stages_of(form)) if deep else form


def copies(form, lies, atoms, q, k, v, turned):
    """The TMA atoms of Q, K and V, each with the tensor of its coordinates. lies: how they lie in shared memory, stage
    by stage; a stage of Q has `form.q_rows`. atoms: what K and V are made up of there. turned: V of 8 bits, else
    None."""
    q_layout, k_layout, v_layout = lies
    load = cpasync.CopyBulkTensorTileG2SOp()
    load_kv = load if form.cluster == 1 else cpasync.CopyBulkTensorTileG2SMulticastOp()
    mQ, mK, mV = rows_first(q), rows_first(k), along_keys(turned) if form.narrow else rows_first(v, columns_first=True)
    q_rows: Any = form.q_rows
    if form.pack > 1:
        mQ, q_rows = packed(mQ, form.group), (form.pack, form.q_rows // form.pack)
    rows, columns = atoms
    k_piece, v_piece = cute.slice_(k_layout, (None, None, 0)), cute.slice_(v_layout, (None, None, 0))
    if form.page:
        k_piece = cute.tile_to_shape(rows, (form.chunk, form.d), (0, 1))
        v_piece = cute.tile_to_shape(columns, (form.dv, form.chunk), (1, 0))
    return (
        *cpasync.make_tiled_tma_atom(load, mQ, cute.slice_(q_layout, (None, None, 0)), (q_rows, form.d)),
        *cpasync.make_tiled_tma_atom(load_kv, mK, k_piece, (form.chunk, form.d), form.cluster),
        *cpasync.make_tiled_tma_atom(load_kv, mV, v_piece, (form.dv, form.chunk), form.cluster),
    )


def logs(lse):
    """A tensor (queries, heads, batch) over (batch, heads, queries), or (heads, rows)."""
    t = view(lse)
    shape, stride = t.layout.shape, t.layout.stride
    if len(shape) == 2:
        shape, stride = (1, *shape), (0, *stride)
    return cute.make_tensor(t.iterator, cute.make_layout(shape[::-1], stride=stride[::-1]))


def sizes(q, k, options, lengths):
    """The batch, and the queries and keys of the longest sequence."""
    cu_q, cu_k, _, pages = lengths
    batch = q.shape[0] if cu_q is None else cu_q.shape[0] - 1
    queries = q.shape[1] if cu_q is None else min(options.most_queries, q.shape[0])
    keys = pages.shape[1] * k.shape[1] if pages is not None else k.shape[0] if cu_k is not None else k.shape[1]
    return batch, queries, keys


def heads_of(q, form):
    """Return the number of heads of tiles: query heads, or, if they lie side by side, groups of them."""
    return q.shape[-2] // (form.group if form.pack > 1 else 1)


def best_splits(q, k, v, options, lengths, sms):
    """Return the number of CTAs that share a tile's keys, by what is known without reading lengths: 1 if there are
    tiles enough for `sms` SMs, or if they are large and enough for more than half of them."""
    _, queries, _ = sizes(q, k, options, lengths)
    form = form_of(q, k, v, queries, lengths, options._replace(cluster=1))
    return splits_for(form, q, k, options, lengths, sms)


def splits_for(form, q, k, options, lengths, sms):
    """Return the number of CTAs that share a tile's keys, as `best_splits` does, for a kernel of this form."""
    batch, queries, keys = sizes(q, k, options, lengths)
    tiles = math.ceil(queries * form.pack / form.tile_m) * heads_of(q, form) * batch
    if form.tile_m > 64 and 2 * tiles > sms:
        return 1
    if options.left is not None and options.right is not None:
        keys = min(keys, options.left + options.right + queries)
    ragged = lengths.used is not None or lengths.cu_k is not None or options.block is not None
    return splits_of(tiles, math.ceil(keys / form.tile_n), sms, ragged)


def room(q, v, splits):
    """Return the number of Float32 that the parts of O, and the logs of their sums, take."""
    return math.prod(q.shape[:-1]) * (v.shape[-1] + 1) * splits


def parts_of(work, q, v, splits):
    """The tensors (queries, dv, heads, (batch, splits)) of the parts of O, and (queries, heads, (batch, splits)) of the
    logs of their sums. work: an array of as many Float32 as `room` says."""
    *outer, queries, heads = (1, *q.shape[:-1])[-3:]
    batch, dv, rows = math.prod(outer), v.shape[-1], math.prod(q.shape[:-1])
    at = view(work, 16).iterator

    def tensor(at, extents, strides, width):
        shape = *map(cute.Int32, extents), (cute.Int32(batch), cute.Int32(splits))
        stride = *map(cute.Int64, strides), (cute.Int64(queries * heads * width), cute.Int64(rows * width))
        return cute.make_tensor(at, cute.make_layout(shape, stride=stride))

    sums = tensor(at, (queries, dv, heads), (heads * dv, 1, dv), dv)
    return sums, tensor(at + rows * dv * splits, (queries, heads), (heads, 1), 1)


def arguments(
    q, k, v, o, lse, counter, sms, options, lengths=ALL, sink=None, aux=(), work=None, scales=NO_SCALES, turned=None,
    mask_aux=(), listed=None,
):  # fmt: skip
    """The kernel, its arguments, grid and block, for arrays of the host (to simulate or compile) or of the device.

    q, o: (batch, queries, heads, d), k, v: (batch, keys, KV heads, d), lse: (batch, heads, queries). With lengths.cu_q
    q and o are (rows, heads, d), lse (heads, rows); with cu_k k and v are (rows, KV heads, d); with pages they are
    (pages, keys of a page, KV heads, d). counter: an int32 that is 0 before and after a launch. sms: CTAs at most.
    sink: a float32 for each head, or None. work: where options.splits are several, the Float32 that `room` counts, into
    which the kernel writes parts of o and lse; what `joining` gives is launched after it, and joins them. scales: what
    q, k and v are multiplied with, each float32 (batch, KV heads), or None. turned: v of 8 bits, as the kernel that
    `turning` gives writes it. aux, mask_aux: what the functions of options take beside. listed: where options have
    blocks the arrays of int32 of `visits.Visits`, each with 1 where all batches, or heads, have the same.
    """
    form = form_of(q, k, v, sizes(q, k, options, lengths)[1], lengths, options)
    of_smem = copies(form, layouts(form), atoms(form), q, k, v, turned)
    return launch_of(
        kernel_of(form), form, of_smem, q, k, v, o, lse, counter, sms, options, lengths, sink, aux, work, scales,
        mask_aux, listed,
    )  # fmt: skip


def launch_of(
    kernel, form, of_smem, q, k, v, o, lse, counter, sms, options, lengths, sink, aux, work, scales, mask_aux, listed
):  # fmt: skip
    """The kernel of a form, its arguments, grid and block. of_smem: as of `copies`. All others as of `arguments`."""
    cu_q, cu_k, used, pages = lengths
    batch, queries, keys = sizes(q, k, options, lengths)
    heads, splits = heads_of(q, form), options.splits or 1
    of_tiles = form.cluster * form.tile_m
    blocks = math.ceil(queries * form.pack / of_tiles) * splits  # those of a cluster count once
    share = form.group if form.pack == 1 else 1  # query heads of the same keys
    several = section_of(keys, form.d + form.dv, form.dtype.width // 8, share)
    section = options.section or (heads if splits > 1 else several if form.cluster == 1 else share)
    to_rows, to_logs = parts_of(work, q, v, splits) if splits > 1 else (rows_first(o), logs(lse))
    more = [None if x is None else view(x) for x in (cu_q, cu_k, used, pages, sink if splits == 1 else None)]
    by = [None if x is None else view(x) for x in scales]
    left, right = min(options.left or 0, keys), min(options.right or 0, queries)  # more changes nothing, nor fits Int32
    numbers = *map(cute.Int32, (queries, keys)), order_of(blocks, heads, batch, section)
    args = (
        *of_smem, to_rows, to_logs, view(counter), *more, tuple(aux),
        divisor_of(splits) if splits > 1 else None, *by, tuple(mask_aux),
        listed_as(listed), *numbers, *map(cute.Int32, (left, right)),
        cute.Float32(options.scale), cute.Float32(LOG2_E * (1.0 if form.score is not None else options.scale)),
    )  # fmt: skip
    return kernel, args, min(blocks * heads * batch, max(sms // form.cluster, 1)) * form.cluster, form.threads


def listed_as(listed):
    """Give the lists of visited blocks as the kernel takes them. listed: arrays of `visits.Visits`, another walk, which
    is taken as it is, or None."""
    if listed is None:
        return ()
    return visits.of(*listed) if isinstance(listed, (tuple, list)) else listed


def joining(q, v, o, lse, options, lengths, sink, work, overlaps=True):
    """The kernel that joins the parts of o and lse, its arguments, grid and block. overlaps: whether it begins while
    the one before it ends (sm_90 on). All others as of `arguments`."""
    batch, heads = 1 if lengths.cu_q is None else lengths.cu_q.shape[0] - 1, q.shape[-2]
    more = [None if x is None else view(x) for x in (sink, lengths.cu_q)]
    numbers = heads, q.shape[-3], batch, options.splits
    args = *parts_of(work, q, v, options.splits), rows_first(o), logs(lse), *more, *map(cute.Int32, numbers)
    return make_join(element_type(o), v.shape[-1], overlaps), args, math.prod(q.shape[:-1]), THREADS
