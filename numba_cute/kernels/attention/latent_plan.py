# SPDX-License-Identifier: Apache-2.0
"""Launch attention over a latent cache: choose its tiles, and make its arguments and grid."""

import math
from typing import NamedTuple

import numba_cute as cute
from numba_cute.nvgpu import cpasync

from ..entry import element_type
from .latent import KEYS, ROWS, THREADS, Form, kernel_of, layouts, rows_of
from .plan import ALL, joining, logs, parts_of, rows_first, view
from .schedule import divisor_of, order_of
from .softmax import LOG2_E
from .split import splits_of

HEADS = 64  # that lie side by side in a tile, at most


class Options(NamedTuple):
    """Hold the options. scale: what Q K^T is multiplied with. latent: columns of a value. causal: whether a query
    sees no key after its own; the last query's own key is the last key. splits: CTAs that share a tile's keys. cluster,
    draws: as of `latent.Form`; None for what is best."""

    scale: float
    latent: int
    causal: bool = False
    splits: int = 1
    cluster: int | None = None
    draws: bool | None = None


def pack_of(heads):
    """Count the heads of a query that lie side by side in a tile: all, up to a power of two, or 64."""
    return min(HEADS, 1 << (heads - 1).bit_length())


def tiles_of(q):
    """Count the tiles of a sequence's rows."""
    _, queries, heads, _ = q.shape
    pack = pack_of(heads)
    return math.ceil(queries / (ROWS // pack)) * math.ceil(heads / pack)


def cluster_of(q):
    """Count the CTAs that share keys: two, where tiles are even."""
    return 2 if tiles_of(q) % 2 == 0 else 1


def form_of(q, cache, pages, options):
    """The kernel's form for arrays, and `Options`."""
    heads, d = q.shape[-2:]
    pack, cluster = pack_of(heads), cluster_of(q) if options.cluster is None else options.cluster
    return Form(
        element_type(q), options.latent, d - options.latent, pack, math.ceil(heads / pack), options.causal,
        cache.shape[1] if pages is not None else 0, cluster, cluster == 1 if options.draws is None else options.draws,
    )  # fmt: skip


def keys_of(cache, pages):
    """The keys of the longest sequence that there may be."""
    return cache.shape[1] * (1 if pages is None else pages.shape[1])


def best_splits(q, cache, used, pages, sms):
    """Choose how many CTAs share a tile's keys, without reading lengths."""
    blocks = math.ceil(keys_of(cache, pages) / KEYS)
    return splits_of(tiles_of(q) * q.shape[0], blocks, sms, used is not None, "latent_attention")


def copies(form, q, cache):
    """The TMA atoms of Q, of half a row of the cache, and of its last columns, each with the tensor of its
    coordinates."""
    load = cpasync.CopyBulkTensorTileG2SOp()
    load_keys = load if form.cluster == 1 else cpasync.CopyBulkTensorTileG2SMulticastOp()
    t = view(q, 16)
    (batch, queries, heads, d), (step, row, head, one) = t.layout.shape, t.layout.stride
    mQ = cute.make_tensor(t.iterator, cute.make_layout(((heads, queries), d, batch), stride=((head, row), one, step)))
    keys = view(cache, 16)
    mK = cute.make_tensor(keys.iterator, cute.select(keys.layout, mode=[1, 2, 0]))
    pieces = [(form.chunk, width) for width in (form.half, form.rope)]
    return (
        *cpasync.make_tiled_tma_atom(load, mQ, layouts(form)[0], ((form.pack, form.queries), form.latent + form.rope)),
        *(
            x for piece in pieces
            for x in cpasync.make_tiled_tma_atom(load_keys, mK, rows_of(form.dtype, *piece), piece, form.cluster)
        ),
    )  # fmt: skip


def arguments(q, cache, o, lse, counter, sms, options, used=None, pages=None, work=None):
    """The kernel, its arguments, grid and block, for arrays of the host (to simulate or compile) or of the device.

    q, o: (batch, queries, heads, columns). cache: (batch, keys, columns), or with pages (pages, keys of a page,
    columns). lse: (batch, heads, queries). counter: an int32 that is 0 before and after a launch. sms: CTAs at most.
    used: the keys of each sequence, int32. pages: (batch, pages of a sequence), the number of each page, int32. work:
    where options.splits are several, the Float32 that `plan.room` counts, into which the kernel writes parts of o and
    lse; what `plan.joining` gives is launched after it, and joins them.
    """
    batch, queries, heads, _ = q.shape
    form, splits = form_of(q, cache, pages, options), options.splits
    tiles = math.ceil(tiles_of(q) / form.cluster)
    to_rows, to_logs = parts_of(work, q, o, splits) if splits > 1 else (rows_first(o), logs(lse))
    lengths = [None if x is None else view(x) for x in (used, pages)]
    args = (
        *copies(form, q, cache), to_rows, to_logs, view(counter), *lengths,
        divisor_of(splits) if splits > 1 else None, *map(cute.Int32, (queries, keys_of(cache, pages), heads)),
        divisor_of(tiles), order_of(tiles * splits, 1, batch, 1), cute.Float32(options.scale * LOG2_E),
    )  # fmt: skip
    every = tiles * splits * batch
    return kernel_of(form), args, min(every, max(sms // form.cluster, 1)) * form.cluster, THREADS


def launches(q, cache, o, lse, counter, sms, options, used=None, pages=None, work=None):
    """The launches of a call: of each the kernel, its arguments, grid and block. All as of `arguments`."""
    made = arguments(q, cache, o, lse, counter, sms, options, used, pages, work)
    return (made,) if work is None else (made, joining(q, o, o, lse, options, ALL, None, work))
