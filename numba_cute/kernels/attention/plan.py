# SPDX-License-Identifier: Apache-2.0
"""How the attention forward is launched: its tiles, its arguments and its grid."""

import math
from typing import Any, NamedTuple

import numba_cute as cute
from numba_cute.nvgpu import cpasync, warpgroup
from numba_cute.runtime import from_dlpack

from ..entry import element_type
from . import softmax
from .forward import Form, kernel_of, layouts
from .schedule import section_of


class Options(NamedTuple):
    """What is not a tensor.

    scale: what Q K^T is multiplied with. left, right: how many keys before and after its own a query sees, None for
    all; the last query's own key is the last key. score: `score(s, batch, head, query, key, *aux)`, what becomes of a
    scaled score, or None. most_queries: of the longest sequence, where they have their own lengths. tile: (queries,
    keys) of a tile. turns, draws, pack, q_stages, cluster, stages: as of `Form`. section: query heads that are done
    side by side. None for what is best.
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


class Lengths(NamedTuple):
    """Where sequences begin and end, each an array of int32 or None.

    cu_q, cu_k: the first row of each sequence in Q and O, and in K and V, and the number of all rows. used: how many
    keys each sequence has. pages: (batch, pages of a sequence), the number of each page in K and V.
    """

    cu_q: Any = None
    cu_k: Any = None
    used: Any = None
    pages: Any = None


ALL = Lengths()
SMEM = (227 << 10) - 512  # bytes that a CTA may have, less those for barriers


def smem_of(form):
    """Bytes of shared memory for the tiles of a form."""
    return sum(cute.cosize(x) for x in layouts(form)[:3]) * form.dtype.width // 8


def tile_of(form):
    """Queries and keys of a tile: as many keys as shared memory and registers have room for. form: the rest of it."""
    d, dv, page = form.d, form.dv, form.page
    tile_m = 192 if max(d, dv) <= 64 else 128
    registers = 200 if tile_m == 128 else 128  # for S, and P at half its size, and O
    most = 128 if form.left or form.right or page else 176
    fit = [
        n for n in range(16, most + 1, 16)
        if 3 * n // 4 + dv // 2 <= registers and smem_of(form._replace(tile_m=tile_m, tile_n=n)) <= SMEM
    ]  # fmt: skip
    return tile_m, max(fit, key=lambda n: (math.gcd(page, n) if page else 0, n))


def pack_of(queries, group, tile_m):
    """How many heads of a group lie side by side in a tile: all, if that fills tiles much better, or 1."""
    if group == 1 or 64 % group:
        return 1
    alone = queries / (math.ceil(queries / tile_m) * tile_m)
    together = queries * group / (math.ceil(queries * group / tile_m) * tile_m)
    return group if alone < 0.9 * together else 1


def view(array, align=None):
    """A tensor over an array, whose extents are known at run time. One of torch's is not kept alive by it."""
    if hasattr(array, "data_ptr"):
        ptr = cute.make_ptr(element_type(array), array.data_ptr(), cute.AddressSpace.gmem, assumed_align=align)
        shape, stride = array.shape, array.stride()
    else:
        t = from_dlpack(array, assumed_align=align)
        ptr, shape, stride = t.iterator, t.layout.shape, t.layout.stride
    *outer, last = stride
    assert last == 1 or array.shape[-1] == 1
    return cute.make_tensor(ptr, cute.make_layout(tuple(map(cute.Int32, shape)), stride=(*map(cute.Int64, outer), 1)))


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


def packed(tensor, pack, heads):
    """(rows, d, heads, batch) as ((pack, rows), d, heads / pack, batch)."""
    (rows, d, _, batch), (row, one, head, step) = tensor.layout.shape, tensor.layout.stride
    lay = cute.make_layout(
        ((pack, rows), d, cute.Int32(heads // pack), batch), stride=((head, row), one, head * pack, step)
    )
    return cute.make_tensor(tensor.iterator, lay)


def arguments(q, k, v, o, lse, counter, sms, options, lengths=ALL, sink=None, aux=()):
    """The kernel, its arguments, grid and block, for arrays of the host (to simulate or compile) or of the device.

    q, o: (batch, queries, heads, d), k, v: (batch, keys, KV heads, d), lse: (batch, heads, queries). With lengths.cu_q
    q and o are (rows, heads, d), lse (heads, rows); with cu_k k and v are (rows, KV heads, d); with pages they are
    (pages, keys of a page, KV heads, d). counter: an int32 that is 0 before and after a launch. sms: CTAs at most.
    sink: a float32 for each head, or None.
    """
    (heads, d), (kv_heads, dv) = q.shape[-2:], v.shape[-2:]
    cu_q, cu_k, used, pages = lengths
    batch = q.shape[0] if cu_q is None else cu_q.shape[0] - 1
    queries = q.shape[1] if cu_q is None else options.most_queries
    keys = pages.shape[1] * k.shape[1] if pages is not None else k.shape[0] if cu_k is not None else k.shape[1]
    dtype, group = element_type(q), heads // kv_heads
    form = Form(
        dtype, d, dv, group, 0, 0, options.left is not None, options.right is not None,
        turns=max(d, dv) <= 128 if options.turns is None else options.turns,
        draws=(options.cluster or 1) == 1 if options.draws is None else options.draws,
        page=k.shape[1] if pages is not None else 0, score=options.score,
    )  # fmt: skip
    tile_m, tile_n = options.tile or tile_of(form)
    pack = pack_of(queries, group, tile_m) if options.pack is None else options.pack
    form = form._replace(tile_m=tile_m, tile_n=tile_n, pack=pack, stages=options.stages or 2)
    fits = smem_of(form._replace(q_stages=2)) <= SMEM
    form = form._replace(q_stages=(2 if fits else 1) if options.q_stages is None else options.q_stages)
    form = form._replace(cluster=options.cluster or 1)
    q_layout, k_layout, v_layout, _ = layouts(form)
    load, put = cpasync.CopyBulkTensorTileG2SOp(), cpasync.CopyBulkTensorTileS2GOp()
    load_kv = load if form.cluster == 1 else cpasync.CopyBulkTensorTileG2SMulticastOp()
    mQ, mK, mV, mO = rows_first(q), rows_first(k), rows_first(v, columns_first=True), rows_first(o)
    q_rows, o_rows, plain_o = tile_m, 64, mO if cu_q is not None else None
    if pack > 1:
        mQ, mO = packed(mQ, pack, heads), packed(mO, pack, heads)
        q_rows, o_rows = (pack, tile_m // pack), (pack, 64 // pack)
    kind = warpgroup.SmemLayoutAtomKind
    rows, columns = (warpgroup.make_smem_layout_atom(at, dtype) for at in (kind.K_SW128, kind.MN_SW128))
    piece = cute.tile_to_shape(rows, (64, 64), (0, 1))
    k_piece, v_piece = cute.slice_(k_layout, (None, None, 0)), cute.slice_(v_layout, (None, None, 0))
    if form.page:
        k_piece = cute.tile_to_shape(rows, (form.chunk, d), (0, 1))
        v_piece = cute.tile_to_shape(columns, (dv, form.chunk), (1, 0))
    tq = cpasync.make_tiled_tma_atom(load, mQ, cute.slice_(q_layout, (None, None, 0)), (q_rows, d))
    tk = cpasync.make_tiled_tma_atom(load_kv, mK, k_piece, (form.chunk, d), form.cluster)
    tv = cpasync.make_tiled_tma_atom(load_kv, mV, v_piece, (dv, form.chunk), form.cluster)
    to = cpasync.make_tiled_tma_atom(put, mO, piece, (o_rows, 64))
    mL = view(lse)
    shape, stride = mL.layout.shape, mL.layout.stride
    if len(shape) == 2:
        shape, stride = (1, *shape), (0, *stride)
    mL = cute.make_tensor(mL.iterator, cute.make_layout(shape[::-1], stride=stride[::-1]))
    tile_heads = heads // pack
    tiles = math.ceil(queries * pack / (form.cluster * tile_m)) * form.cluster * tile_heads * batch
    scale = options.scale
    scale_log2 = softmax.LOG2_E * (1.0 if options.score is not None else scale)
    section = options.section or section_of(keys, d + dv, dtype.width // 8, heads // kv_heads if pack == 1 else 1)
    whole = [cute.Int32(x or 0) for x in (queries, keys, tile_heads, batch, section, options.left, options.right)]
    more = [None if x is None else view(x) for x in (cu_q, cu_k, used, pages, sink)]
    args = (
        *tq, *tk, *tv, *to, mL, view(counter), plain_o, *more, tuple(aux), *whole,
        cute.Float32(scale), cute.Float32(scale_log2),
    )  # fmt: skip
    return kernel_of(form), args, min(tiles, sms // form.cluster * form.cluster), form.threads
