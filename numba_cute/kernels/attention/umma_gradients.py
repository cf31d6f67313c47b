# SPDX-License-Identifier: Apache-2.0
"""Launch attention's backward pass on Blackwell: make its form, arguments and grid."""

import math

import numba_cute as cute
from numba_cute.nvgpu import cpasync

from ..entry import element_type
from . import backward_parts, visits
from .backward_arrays import flat, ragged, strides
from .backward_tiles import rows_of
from .plan import bounded, view
from .schedule import order_of
from .softmax import LOG2_E
from .umma_backward import make_kernel
from .umma_backward_plan import TILE, Form, check, sums_layout
from .umma_backward_roles import THREADS

L2_BYTES = 60 << 20  # of Q, dO and the sums of dQ that a section of heads may take


def room(heads, d, sequences):
    """Give the shapes of the Float32 arrays that a pass works in, as of `gradients.room`. sequences: how many, and the
    queries of the longest."""
    batch, queries = sequences
    tiles = math.ceil(queries / TILE)
    return [(batch, heads, tiles * TILE), (batch, heads, tiles * TILE), (batch, heads, tiles, TILE * d)]


def launches(arrays, work, sizes, options, lengths, aux, mask_aux, listed):
    """The launches that follow what comes before (`backward_parts`): of each the kernel, its grid, block and arguments.

    arrays: q, k, v, do, dq, dk and dv, each (batch, rows, heads, d), of sequences that lie one after the other with a
    batch of one. work: arrays of the shapes that `room` gives. sizes: the batch, and the queries and keys of the
    longest sequence. listed: as of `gradients.More`.
    """
    q, k, v, do, dq, dk, dv = arrays
    (batch, queries, keys), heads, kv_heads, d = sizes, q.shape[2], k.shape[2], q.shape[-1]
    check(options, (d, v.shape[-1]), False)
    dtype, group = element_type(q), heads // kv_heads
    block = options.block
    assert block is None or (block[0] % TILE, block[1] % TILE) == (0, 0), block  # else refused (blocks.py)
    beyond = block is not None and block[0] > TILE  # the last block may have a tile that there is not
    form = Form(
        dtype, d, options.left is not None, options.right is not None, options.score, options.mask, block,
        beyond or bounded(options, lengths),
    )  # fmt: skip
    load, tile = cpasync.CopyBulkTensorTileG2SOp(), rows_of(dtype, TILE, d)
    maps = [x for t in (q, k, v, do) for x in cpasync.make_tiled_tma_atom(load, ragged(t, TILE), tile, (TILE, d))]
    logs, dots, sums = map(flat, work)
    cu_q, cu_k, used, _ = (None if x is None else view(x) for x in lengths)
    key_tiles, query_tiles, scale = math.ceil(keys / TILE), math.ceil(queries / TILE), cute.Float32(options.scale)
    section = L2_BYTES // max(1, queries * d * group * 8) if form.left or form.right else 1
    behind, before = min(options.left or 0, keys), min(options.right or 0, queries)
    args = (
        *maps, view(dk, 16), strides(dk), view(dv, 16), strides(dv), logs, dots, sums, cu_q, cu_k, used,
        tuple(aux), tuple(mask_aux), visits.of(*listed[2:]) if listed else (),
        *map(cute.Int32, (queries, keys, group)),
        order_of(key_tiles, kv_heads, batch, section), *map(cute.Int32, (behind, before)), scale,
        cute.Float32(LOG2_E * (1.0 if form.score is not None else options.scale)),
    )  # fmt: skip
    after = backward_parts.make_after(dtype, d, TILE, sums_layout(d))
    return [
        (make_kernel(form), key_tiles * kv_heads * batch, THREADS, args),
        (after, (query_tiles, heads, batch), backward_parts.THREADS,
         (sums, view(dq, 16), cute.Int32(queries), strides(dq), scale, cu_q)),
    ]  # fmt: skip
