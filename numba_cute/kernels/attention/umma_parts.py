# SPDX-License-Identifier: Apache-2.0
"""What a warp of Blackwell's attention knows of its tiles, and two of its roles: the warp that loads, and the warp that
multiplies. `umma_rows.py` has those that have rows of the tile."""

import functools
from typing import Any, NamedTuple

from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.nvgpu import cpasync

from .schedule import draw, next_drawn
from .umma_form import ROWS, lies, multiplies
from .umma_roles import multiply
from .walk import make_blocks, make_load, make_next, sequence, shifted

WARP_ROWS = 32


class Given(NamedTuple):
    """Hold what all roles are given: the kernel's arguments that are no tensors of numbers to multiply, as the kernel
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
        """What there is to know of a tile."""
        m, head, b, part = tile_of(index, given.order, given.splits)
        first_q, rows_q = sequence(given.cu_q, None, b, given.queries)
        first_k, rows_k = sequence(given.cu_k, given.used, b, given.keys)
        begin, end = blocks_of(
            m, head, b, rows_q, rows_k, given.left, given.right, part, given.splits, given.listed
        )  # fmt: skip
        begin, end = arch.make_warp_uniform(begin), arch.make_warp_uniform(end)
        return Tile(m, head, b, part, first_q, rows_q, first_k, rows_k, begin, end)

    return start, after, tile_at


@functools.cache
def make_load_role(form):
    """The role of the warp that loads: `load_tiles`."""
    d, dv, tile_m, tile_n, pack, page, chunk = (
        form.d, form.dv, form.tile_m, form.tile_n, form.pack, form.page, form.chunk
    )  # fmt: skip
    groups, draws, listed = form.groups, form.draws, form.block is not None
    q_tile = ROWS if pack == 1 else (pack, ROWS // pack)
    heads_of_tile = 1 if pack > 1 else form.group
    block_at, bring = make_blocks(form, WARP_ROWS)[2], make_load(form)
    _, _, tile_at = make_tiles(form)

    @cuda.jit
    def whole(tma, shared, there):
        """What a copy of whole tiles reads and writes."""
        return cpasync.tma_partition(
            tma, 0, cute.make_layout(1), cute.group_modes(shared, 0, 2), cute.group_modes(there, 0, 2)
        )

    @cuda.jit
    def of_keys(tensor, tile, given, kv_head):
        """The keys of a tile, or of all pages. tensor: K."""
        if cute.const_expr(page > 0):
            return cute.local_tile(tensor[None, None, kv_head, None], (chunk, d), (None, 0, None))
        own = tensor[None, None, kv_head, 0 if given.cu_k is not None else tile.b]
        return cute.local_tile(shifted(own, given.cu_k, tile.first_k), (tile_n, d), (None, 0))

    @cuda.jit
    def of_values(tensor, tile, given, kv_head):
        """The values of a tile, or of all pages. tensor: V."""
        if cute.const_expr(page > 0):
            return cute.local_tile(tensor[None, None, kv_head, None], (dv, chunk), (0, None, None))
        own = tensor[None, None, kv_head, 0 if given.cu_k is not None else tile.b]
        return cute.local_tile(cute.domain_offset((0, tile.first_k), own), (dv, tile_n), (0, None))

    @cuda.jit
    def load_tile(loads_q, loads_k, loads_v, tma_q, mQ, tma_k, mK, tma_v, mV, sQ, sK, sV, counter, tile, given):
        """Bring a tile's queries, and its keys, each block's values after the next block's keys. Gives the number of
        the next tile, as of `draw`."""
        kv_head = tile.head // heads_of_tile
        own_q = mQ[None, None, tile.head, 0 if given.cu_q is not None else tile.b]
        to_q, from_q = whole(
            tma_q, sQ, cute.local_tile(shifted(own_q, given.cu_q, tile.first_q), (q_tile, d), (None, 0))
        )
        to_k, from_k = whole(tma_k, cute.local_tile(sK, (chunk, d), (None, 0, None)) if page else sK,
                             of_keys(mK, tile, given, kv_head))  # fmt: skip
        to_v, from_v = whole(tma_v, cute.local_tile(sV, (dv, chunk), (0, None, None)) if page else sV,
                             of_values(mV, tile, given, kv_head))  # fmt: skip
        blocks, before, drawn = cute.Int32(tile.end - tile.begin), cute.Int32(0), cute.Int32(0)
        for i in cute.range(blocks + 1, unroll=1):
            n = cute.Int32(tile.end - 1 - i)
            if i < blocks:
                n, _ = block_at(n, tile.m, tile.head, tile.b, given.listed)
                stage = loads_k.acquire_and_advance()
                bring(tma_k, from_k, to_k, stage.index, stage, given.pages, tile.b, n, tile.rows_k)
            if i == 0:
                for g in cute.range(groups, unroll=1):
                    stage = loads_q.acquire_and_advance()
                    cute.copy(
                        tma_q, from_q[None, tile.m * groups + g], to_q[None, stage.index], tma_bar_ptr=stage.barrier
                    )
            else:
                if cute.const_expr(draws):
                    if i == blocks:
                        drawn = draw(counter)
                stage = loads_v.acquire_and_advance()
                bring(tma_v, from_v, to_v, stage.index, stage, given.pages, tile.b, before if listed else n + 1,
                      tile.rows_k)  # fmt: skip
            before = n
        return drawn

    @cuda.jit
    def load_tiles(loads_q, loads_k, loads_v, tma_q, mQ, tma_k, mK, tma_v, mV, sQ, sK, sV, counter, given):
        """Bring all tiles of the CTA, draw their numbers and tell the others of them."""
        index, told = given.first, cute.Int32(0)
        while index < given.order.tiles:
            arch.sync_warp()
            tile = tile_at(index, given)
            drawn = cute.Int32(0)
            if cute.const_expr(given.cu_q is None) or tile.m * tile_m < tile.rows_q * pack:
                drawn = load_tile(
                    loads_q, loads_k, loads_v, tma_q, mQ, tma_k, mK, tma_v, mV, sQ, sK, sV, counter, tile, given
                )
            elif cute.const_expr(draws):
                drawn = draw(counter)
            if cute.const_expr(draws):
                index = next_drawn(drawn, counter, given.order.tiles, given.ctas, given.tickets, given.told, told)
                told += 1
            else:
                index += given.ctas
        loads_q.tail()
        loads_k.tail()
        loads_v.tail()

    return load_tiles


@functools.cache
def make_multiply_role(form):
    """The role of the warp that multiplies: `multiply_tiles`."""
    dtype, groups, tile_n, dv = form.dtype, form.groups, form.tile_n, form.dv
    (q_lies, k_lies, v_lies), (scores, values) = lies(form)[1], multiplies(form)
    s_layout = scores.make_fragment_C(scores.partition_shape_C((ROWS, tile_n))).layout
    p_layout = values.make_fragment_A(values.partition_shape_A((ROWS, tile_n))).layout
    o_layout = values.make_fragment_C(values.partition_shape_C((ROWS, dv))).layout
    start, after, tile_at = make_tiles(form)

    @cuda.jit
    def score(base, g, fQ, fK, at_q, at_k):
        """Issue S = Q K^T of a group."""
        multiply(scores, cute.make_tensor(base + g * tile_n, s_layout), fQ[None, None, None, at_q],
                 fK[None, None, None, at_k], False)  # fmt: skip

    @cuda.jit
    def weigh(base, g, fV, at_v, adds):
        """Issue O (+)= P V of a group, whose P lies where its S was."""
        fP = cute.make_tensor(cute.recast_ptr(base + g * tile_n, dtype=dtype), p_layout)
        tO = cute.make_tensor(base + (groups * tile_n + g * dv), o_layout)
        multiply(values, tO, fP, fV[None, None, None, at_v], adds)

    @cuda.jit
    def multiply_tiles(waits_q, leaves_q, full_k, full_v, products, results, base, sQ, sK, sV, given):
        """Issue all products of the CTA: of each block those of the groups in turns, so that one group's softmax runs
        beside the other's products. A group's S begins when its P before was multiplied, in the order of the matrix
        unit; its P V when its threads say that P is there, and O is scaled."""
        fQ = scores.make_fragment_A(cute.make_tensor(sQ.iterator, q_lies.outer))
        fK = scores.make_fragment_B(cute.make_tensor(sK.iterator, k_lies.outer))
        fV = values.make_fragment_B(cute.make_tensor(sV.iterator, v_lies.outer))
        index, seen = start(given)
        while index < given.order.tiles:
            tile = tile_at(index, given)
            blocks, at_q = cute.Int32(tile.end - tile.begin), leaves_q.state.index
            key = full_k.wait_and_advance()
            for g in cute.range_constexpr(groups):
                waits_q.wait_and_advance()
                product = products.acquire_and_advance()
                score(base, g, fQ, fK, at_q + g, key.index)
                product.commit()
            key.release()
            for i in range(1, blocks):
                key, value = full_k.wait_and_advance(), full_v.wait_and_advance()
                for g in cute.range_constexpr(groups):
                    product = products.acquire_and_advance()
                    weigh(base, g, fV, value.index, i > 1)
                    score(base, g, fQ, fK, at_q + g, key.index)
                    product.commit()
                key.release()
                value.release()
            for _ in cute.range_constexpr(groups):
                leaves_q.release()
                leaves_q.advance()
            value, last = full_v.wait_and_advance(), products.clone()
            for g in cute.range_constexpr(groups):
                last.acquire()
                last.advance()
                result = results.acquire_and_advance()
                weigh(base, g, fV, value.index, blocks > 1)
                result.commit()
            value.release()
            index, seen = after(index, seen, given)

    return multiply_tiles
