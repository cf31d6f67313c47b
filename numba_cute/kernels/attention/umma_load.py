# SPDX-License-Identifier: Apache-2.0
"""The role of the warp of Blackwell's attention that loads."""

import functools

from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.nvgpu import cpasync

from .schedule import draw, next_drawn
from .umma_form import ROWS
from .umma_parts import WARP_ROWS, make_tiles
from .walk import make_blocks, make_load, shifted


@cuda.jit
def whole(tma, shared, there):
    """Give what a copy of whole tiles reads and writes."""
    return cpasync.tma_partition(
        tma, 0, cute.make_layout(1), cute.group_modes(shared, 0, 2), cute.group_modes(there, 0, 2)
    )


def make_sources(form):
    """The functions that find a tile's keys and values in global memory: `of_keys` and `of_values`."""
    d, dv, tile_n, page, chunk = form.d, form.dv, form.tile_n, form.page, form.chunk

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

    return of_keys, of_values


def make_load_tile(form):
    """The function that loads one tile: `load_tile`."""
    d, dv, pack, page, chunk, groups, draws = (
        form.d, form.dv, form.pack, form.page, form.chunk, form.groups, form.draws
    )  # fmt: skip
    listed, heads_of_tile = form.block is not None, 1 if pack > 1 else form.group
    q_tile = ROWS if pack == 1 else (pack, ROWS // pack)
    block_at, bring, (of_keys, of_values) = make_blocks(form, WARP_ROWS)[2], make_load(form), make_sources(form)

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

    return load_tile


@functools.cache
def make_load_role(form):
    """The role of the warp that loads: `load_tiles`."""
    tile_m, pack, draws, load_tile = form.tile_m, form.pack, form.draws, make_load_tile(form)
    _, _, tile_at = make_tiles(form)

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
