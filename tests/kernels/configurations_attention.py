# SPDX-License-Identifier: Apache-2.0
"""Configurations of attention, and of its gradients, on Hopper, as of `configurations.py`."""

from __future__ import annotations

import itertools
from typing import Any

import numba_cute as cute
from numba_cute.kernels.attention import (
    entry as attention_entry,
    gradients as attention_gradients,
    latent_entry,
    latent_plan,
    plan as attention,
)  # fmt: skip
from numba_cute.kernels.attention.options import capped
from numba_cute.kernels.attention.values import turned_shape

from .configurations_gemm import F32, I32, empty
from .covering import Space

HEADS = {"alone": (1, 1024), "of a group": (4, 1024), "few": (1, 1), "few, of a group": (7, 1)}
"""Query heads of a group, and queries."""
BLOCKS = None, (64, 16), (64, 64), (128, 128), (256, 192)
"""Queries and keys of the blocks of which a call has lists."""
BLOCKS_OF_GRADIENTS = None, (128, 64), (128, 128), (256, 128)
LENGTHS = ("whole", "cu_seqlens", "seqused", "pages of 8", "pages of 64", "pages of 256")


def some(batch, head, query, key):
    """A mask that sees some keys."""
    return (query * 3 + key) % 4 != 0


def forward_holds(*, dtype: Any, dims: tuple[int, int], lengths: str, scaled: bool, block: Any, **_: Any) -> bool:
    if dtype.width != 8:
        return not scaled
    # as `entry.check_narrow` and `blocks.check_listed`
    return 192 not in dims and lengths in ("whole", "seqused") and (block is None or block[1] % 64 == 0)


def lists_of(block: Any, *extents: tuple[int, int]) -> tuple[Any, ...]:
    """The lists of the visited blocks, of each of some (rows, columns) of blocks."""
    return tuple(x for r, c in extents if block for x in (empty((1, 1, r), I32), empty((1, 1, r, c), I32)))


def forward_launches(*, dtype: Any, dims: tuple[int, int], heads: str, left: bool, right: bool, score: str,
                     lengths: str, sink: bool, splits: int, scaled: bool, mask: bool, block: Any) -> Any:  # fmt: skip
    (d, dv), (group, queries), keys = dims, HEADS[heads], 1024
    ragged = lengths == "cu_seqlens"
    q_shape = (queries,) if ragged else (2, queries)
    k_shape = (keys,) if ragged else (2, keys)
    page = int(lengths.rpartition(" ")[2]) if "pages" in lengths else 0
    if page:
        k_shape = (2 * keys // page, page)
    cu = empty((3,), I32)
    given = attention.Lengths(
        cu if ragged else None, cu if ragged else None, empty((2,), I32) if lengths == "seqused" or page else None,
        empty((2, keys // page), I32) if page else None,
    )  # fmt: skip
    o_type = cute.BFloat16 if dtype.width == 8 else dtype
    q, k, v, o = (
        empty((*s, h, n), t)
        for s, h, n, t in (
            (q_shape, 2 * group, d, dtype), (k_shape, 2, d, dtype), (k_shape, 2, dv, dtype),
            (q_shape, 2 * group, dv, o_type),
        )
    )  # fmt: skip
    lse = empty((2 * group, queries) if ragged else (2, 2 * group, queries), F32)
    options = attention.Options(
        0.125, 100 if left else None, 0 if right else None, capped if score == "softcap" else None,
        queries if ragged else None, splits=splits, mask=some if mask else None, block=block,
    )  # fmt: skip
    listed = lists_of(block, (-(-queries // block[0]), -(-keys // block[1])) if block else (0, 0))
    work = empty((attention.room(q, v, splits),), F32) if splits > 1 else None
    turned = empty(turned_shape(v), dtype) if dtype.width == 8 else None
    scales = (empty((2, 2), F32),) * 3 if scaled else attention.NO_SCALES
    of_sink = empty((2 * group,), F32) if sink else None
    aux = (cute.Float32(2.0),) if score == "softcap" else ()
    kernel, args, *_ = attention.arguments(
        q, k, v, o, lse, empty((1,), I32), 132, options, given, of_sink, aux, work, scales, turned,
        listed=listed or None,
    )  # fmt: skip
    found = [(kernel, args)]
    if turned is not None:
        found.append(attention.turning(v, turned, given.used)[:2])
    if work is not None:
        found.append(attention.joining(q, v, o, lse, options, given, of_sink, work)[:2])
    return found


FORWARD = Space(
    {
        "dtype": [cute.BFloat16, cute.Float16, cute.Float8E4M3FN],
        "dims": list(itertools.product(attention_entry.HEAD_DIMS, repeat=2)), "heads": list(HEADS),
        "left": [False, True], "right": [False, True], "score": ["none", "softcap"], "lengths": LENGTHS,
        "sink": [False, True], "splits": [1, 3], "scaled": [False, True], "mask": [False, True],
        "block": BLOCKS,
    },
    forward_holds, forward_launches,
)  # fmt: skip


def backward_launches(*, dtype: Any, dims: tuple[int, int], left: bool, right: bool, score: str, lengths: str,
                      dlse: bool, deterministic: bool, mask: bool, block: Any) -> list[Any]:  # fmt: skip
    (d, dv), rows = dims, 256
    q, o, lse = empty((1, rows, 2, d), dtype), empty((1, rows, 2, dv), dtype), empty((1, 2, rows), F32)
    cu, used = empty((3,), I32), empty((1,), I32)
    given = {"whole": attention.ALL, "cu_seqlens": attention.Lengths(cu, cu), "seqused": attention.Lengths(used=used)}
    options = attention.Options(
        1.0, 100 if left else None, 0 if right else None, capped if score == "softcap" else None, rows,
        mask=some if mask else None, block=block,
    )  # fmt: skip
    aux = (cute.Float32(2.0),) if score == "softcap" else ()
    places = (-(-rows // block[0]), -(-rows // block[1])) if block else (0, 0)
    listed = lists_of(block, places, places[::-1])
    more = attention_gradients.More(given[lengths], rows, aux, lse if dlse else None, listed=listed)
    together = attention_gradients.alone(d, options, given[lengths], deterministic)
    rooms = attention_gradients.room(q, (2, rows) if lengths == "cu_seqlens" else None, together)
    work = [empty(s, F32 if len(s) > 1 else I32) for s in rooms]
    arrays = (q, q, o, o, o, lse, q, q, o)
    todo = attention_gradients.launches(arrays, work, sms=132, options=options, more=more)
    return [(launch.kernel, launch.args) for launch in todo]


BACKWARD = Space(
    {
        "dtype": [cute.BFloat16, cute.Float16], "dims": list(attention_gradients.DIMS), "left": [False, True],
        "right": [False, True], "score": ["none", "softcap"], "lengths": LENGTHS[:3], "dlse": [False, True],
        "deterministic": [False, True], "mask": [False, True], "block": BLOCKS_OF_GRADIENTS,
    },
    lambda **_: True, backward_launches,
)  # fmt: skip

LATENT_LENGTHS = ("whole", "seqused", "pages of 8", "pages of 16", "pages of 64")


def latent_launches(*, dtype: Any, latent: int, queries: int, heads: int, causal: bool, lengths: str,
                    splits: int) -> list[Any]:  # fmt: skip
    d, keys, page = latent + 64, 1024, int(lengths.rpartition(" ")[2]) if "pages" in lengths else 0
    q, o = (empty((2, queries, heads, n), dtype) for n in (d, latent))
    cache = empty((2 * keys // page, page, d) if page else (2, keys, d), dtype)
    used, pages = None if lengths == "whole" else empty((2,), I32), empty((2, keys // page), I32) if page else None
    work = empty((attention.room(q, o, splits),), F32) if splits > 1 else None
    options, lse = latent_plan.Options(0.1, latent, causal, splits), empty((2, heads, queries), F32)
    made = latent_plan.launches(q, cache, o, lse, empty((1,), I32), 132, options, used, pages, work)
    return [(kernel, args) for kernel, args, *_ in made]


LATENT = Space(
    {
        "dtype": [cute.BFloat16, cute.Float16], "latent": list(latent_entry.LATENT), "queries": [1, 5],
        "heads": [1, 24, 64, 128], "causal": [False, True], "lengths": LATENT_LENGTHS, "splits": [1, 3],
    },
    lambda **_: True, latent_launches,
)  # fmt: skip
