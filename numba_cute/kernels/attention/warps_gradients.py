# SPDX-License-Identifier: Apache-2.0
"""Launch attention's backward pass by warps: choose tiles for a GPU's shared memory, and make arguments and grids."""

import math

import numba_cute as cute
from numba_cute.seam import CuteError

from ..entry import element_type
from . import plan, visits
from .schedule import order_of, section_of
from .softmax import LOG2_E
from .warps_backward import STAGES, make_keys, make_queries
from .warps_form import Form
from .warps_plan import check

TILE = 64  # rows that a CTA keeps
PASSING = {64: (32,), 128: (32, 16), 192: (16,), 256: (16,)}
"""Rows of the blocks that pass by, by the greater head dimension: the first that fits. Beyond 128, 32
rows would spill: of 192 on sm_120, of 256 with a mask."""


def smem_of(form):
    """Bytes of shared memory for the tiles of either kernel."""
    return 2 * (form.d + form.dv) * (form.tile_m + STAGES * form.tile_n)


def form_of(q, k, v, options, lengths, target, tile=None):
    """The form of both kernels, for arrays of four modes. lengths: `plan.Lengths`. target: the GPU's record. tile: rows
    that a CTA keeps, and that pass by; None for what fits."""
    check(options)
    d, dv = q.shape[-1], v.shape[-1]
    form = Form(
        element_type(q), d, dv, q.shape[2] // k.shape[2], TILE, 0, left=options.left is not None,
        right=options.right is not None, score=options.score, mask=options.mask, block=options.block,
        bounded=plan.bounded(options, lengths),
    )  # fmt: skip
    widest = min(n for n in PASSING if n >= max(d, dv))
    forms = [form._replace(tile_n=n) for n in PASSING[widest]]
    if tile is not None:
        forms = [form._replace(tile_m=tile[0], tile_n=tile[1])]
    for ctas in (2, 1):
        for found in forms:
            if smem_of(found) <= target.smem_per_sm // ctas - target.smem_reserved:
                return found._replace(ctas=ctas if widest <= 128 else 1)
    raise CuteError(
        f"attention_backward: {target.name} does not have enough shared memory for head dimensions of {d} and {dv}"
    )


def launches(arrays, work, sizes, options, lengths, aux, mask_aux, listed, target, tile=None):
    """The launches that follow what comes before (`backward_parts`): of each the kernel, its grid, block and arguments.

    arrays: q, k, v, do, dq, dk and dv, each (batch, rows, heads, d), of sequences that lie one after the other with a
    batch of one. work: the logs, and rowsum(dO * O), as `gradients.room` has them. sizes: the batch, and the queries
    and keys of the longest sequence. listed: as of `gradients.More`. target, tile: as of `form_of`.
    """
    q, k, v, do, dq, dk, dv = arrays
    batch, queries, keys = sizes
    form = form_of(q, k, v, options, lengths, target, tile)
    heads, kv_heads = q.shape[2], k.shape[2]
    cu_q, cu_k, used, _ = (None if x is None else plan.view(x) for x in lengths)
    left, right = min(options.left or 0, keys), min(options.right or 0, queries)
    blocks = {"q": math.ceil(queries / form.tile_m), "k": math.ceil(keys / form.tile_m)}
    width = form.d + form.dv

    def rest(order, listed):
        return (
            *map(plan.logs, work), cu_q, cu_k, used, tuple(aux), tuple(mask_aux), visits.of(*listed) if listed else (),
            *map(cute.Int32, (queries, keys)), order, *map(cute.Int32, (left, right)), cute.Float32(options.scale),
            cute.Float32(LOG2_E * (1.0 if form.score is not None else options.scale)),
        )  # fmt: skip

    given, made = [*map(plan.rows_first, (q, k, v, do))], []
    of_keys = order_of(blocks["k"], kv_heads, batch, section_of(queries, width * form.group, 2, 1))
    to = *map(plan.rows_first, (dk, dv)), *rest(of_keys, listed[2:])
    for which in ("kv",) if width <= 320 else ("k", "v"):  # more sums than registers
        kernel = make_keys(form, which)
        made.append((kernel, blocks["k"] * kv_heads * batch, form.threads, (*given, *to)))
    of_queries = order_of(blocks["q"], heads, batch, section_of(keys, width, 2, form.group))
    args = *given, plan.rows_first(dq), *rest(of_queries, listed[:2])
    made.append((make_queries(form), blocks["q"] * heads * batch, form.threads, args))
    return made
