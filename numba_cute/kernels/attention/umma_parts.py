# SPDX-License-Identifier: Apache-2.0
"""The arguments of all roles of Blackwell's attention, and how each role finds its tiles."""

import functools
from typing import Any, NamedTuple

from numba import cuda

import numba_cute as cute
from numba_cute import arch

from .walk import make_blocks, make_next, sequence

WARP_ROWS = 32
FACTOR, LOG = 0, 1  # of a row's slot: what its O is to be multiplied with, and in the end the log of its sum


class Given(NamedTuple):
    """Hold what all roles are given: the kernel's arguments that are not tensors of numbers to multiply, as the kernel
    has them, the tickets, the CTA's first tile, and how many CTAs there are."""

    cu_q: Any
    cu_k: Any
    used: Any
    pages: Any
    sink: Any
    splits: Any
    listed: Any
    queries: Any
    keys: Any
    order: Any
    left: Any
    right: Any
    scale: Any
    scale_log2: Any
    tickets: Any
    told: Any
    first: Any
    ctas: Any


class Tile(NamedTuple):
    """Hold what there is to know of a tile. m, head, b: its place. part: which of its keys' parts. first_q, rows_q,
    first_k, rows_k: of its sequence. begin, end: the blocks of keys that it sees, or their places."""

    m: Any
    head: Any
    b: Any
    part: Any
    first_q: Any
    rows_q: Any
    first_k: Any
    rows_k: Any
    begin: Any
    end: Any


@functools.cache
def make_tiles(form):
    """The functions by which a role finds its tiles: `start`, `after` and `tile_at`."""
    tile_of, blocks_of, *_ = make_blocks(form, WARP_ROWS)
    following, seek = make_next(form, tile_of)

    @cuda.jit
    def sought(index, seen, given):
        """From tile `index` on the first that has queries, and how many numbers were heard."""
        return seek(
            index, seen, given.tickets, given.told, given.cu_q, given.queries, given.splits, given.order, given.ctas
        )

    @cuda.jit
    def start(given):
        """The CTA's first tile that has queries, and how many numbers were heard."""
        return sought(given.first, cute.Int32(0), given)

    @cuda.jit
    def after(index, seen, given):
        """The next one."""
        index, seen = following(index, seen, given.tickets, given.told, given.ctas)
        return sought(index, seen, given)

    @cuda.jit
    def tile_at(index, given):
        """Describe a tile."""
        m, head, b, part = tile_of(index, given.order, given.splits)
        first_q, rows_q = sequence(given.cu_q, None, b, given.queries)
        first_k, rows_k = sequence(given.cu_k, given.used, b, given.keys)
        begin, end = blocks_of(
            m, head, b, rows_q, rows_k, given.left, given.right, part, given.splits, given.listed
        )  # fmt: skip
        begin, end = arch.make_warp_uniform(begin), arch.make_warp_uniform(end)
        return Tile(m, head, b, part, first_q, rows_q, first_k, rows_k, begin, end)

    return start, after, tile_at
