# SPDX-License-Identifier: Apache-2.0
"""Plan the products that exchange rows: what the GEMM's kernel takes of a GPU's exchange with the others."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numba_cute as cute
from numba_cute.nvgpu import cpasync

from ..attention.schedule import divisor_of
from ..gemm import plan
from ..gemm.dense import ROW, TILE_M
from ..gemm.indexed import Named, by_index
from ..gemm.operands import load_atom, operand, view
from ..gemm.output import ROWS as HEIGHT
from .bringing import USUAL, Slots
from .gather import Gather
from .ring import SLOTS as COMMON
from .scatter import Scatter

GATHER_SLOTS = COMMON
"""Slots of signals that a gathering launch uses."""


class GatherRoom(NamedTuple):
    """Memory of a GPU for others' rows. here: (GPUs, rows, K). arrived: (blocks of rows of all GPUs,) and ended: (1,),
    of int32 zeros."""

    here: Any
    arrived: Any
    ended: Any

    @staticmethod
    def make(ranks: int, rows: int, k: int, room: Callable[[Any], Any], zeros: Callable[[Any], Any]) -> GatherRoom:
        """Make one. room, zeros: make arrays of a shape, of the operands' type and of int32."""
        here = room((ranks, rows, math.ceil(k / 8) * 8))[..., :k]  # rows of multiples of 16 bytes, as TMA wants them
        return GatherRoom(here, zeros((math.ceil(rows / TILE_M) * ranks,)), zeros((1,)))


def of_ranks(peers: Any, *modes: int) -> Any:
    """View a tensor whose last mode is the GPU with that mode first, as `operand` wants a batch."""
    return cute.make_tensor(peers.iterator, cute.select(peers.layout, mode=[cute.rank(peers) - 1, *modes]))


def gather(
    dtype: Any, peers: Any, room: GatherRoom, rank: int, signals: Any, stages: int, slots: Slots = USUAL
) -> Gather:  # fmt: skip
    """Make the exchange that brings A's rows. peers: A, (rows, K, GPUs). stages: of the cut. slots: of pieces."""
    rows, k, _ = map(int, peers.shape)
    tile_k, tile = 8 * ROW // dtype.width, slots.tile(dtype)
    source, mode = operand(of_ranks(peers, 0, 1), dtype)
    target, _ = operand(room.here, dtype)
    a_layout = plan.smem_layout(dtype, mode, TILE_M, tile_k, stages)
    tma_own, own = load_atom(source, a_layout, (TILE_M, tile_k))
    piece = cute.slice_(slots.layout(dtype), (None, None, 0))
    tma_load, there = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), source, piece, tile)
    tma_store, here = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), target, piece, tile)
    down, across = (math.ceil(n / step) for n, step in zip((rows, k), tile))
    return Gather(
        dtype, slots, cute.Int32(rank), tma_own, own, tma_load, there, tma_store, here, cute.Int32(down),
        divisor_of(across), divisor_of(down * across), view(room.arrived), view(room.ended), signals,
    )  # fmt: skip


def all_gather_matmul(
    peers: Any, b: Any, c: Any, dtype: Any, rank: int, signals: Any, room: GatherRoom, most_clusters: int,
    cut: plan.Plan = plan.USUAL, epilogue: Any = None, c_dtype: Any = None, slots: Slots = USUAL,
) -> tuple[Any, tuple[Any, ...], tuple[int, int, int]]:  # fmt: skip
    """Plan C = all rows of A @ B.T: give the kernel, its arguments and its grid.

    peers: A's rows on each GPU, (rows, K, GPUs), contiguous along K. b: (N, K). c: (GPUs, rows, N). rank: this GPU's
    number. signals: with `GATHER_SLOTS` slots. The others: as of `gather`, and of `arguments` of a GEMM; the cut has no
    parts of K."""
    width = (c_dtype or plan.RESULTS[dtype]).width
    stages = plan.pieces_of(cut, width, *plan.room_of(epilogue), slots.memory).stages
    exchange = gather(dtype, peers, room, rank, signals, stages, slots)
    made, grid = plan.arguments(
        room.here, b, c, dtype, most_clusters, cut, epilogue, c_dtype=c_dtype, exchange=exchange
    )
    return plan.kernel_of(cut), made, grid


def slots_of(rows: int, n: int, tile_n: int, twice: bool = False) -> int:
    """Count the slots of signals of sums over so many rows and columns, on each GPU; rounded up, so that the kernel is
    compiled once for many extents. twice: whether sums are signalled too."""
    units = math.ceil(rows / HEIGHT) * math.ceil(n / tile_n)
    return int(max(1 << 10, 1 << (COMMON + units * (1 + twice)).bit_length()) - 1)


def matmul_reduce_scatter(
    a: Any, b: Any, c: Any, parts: Any, dtype: Any, rank: int, signals: Any, most_clusters: int,
    cut: plan.Plan = plan.USUAL, c_dtype: Any = None,
) -> tuple[Any, tuple[Any, ...], tuple[int, int, int]]:  # fmt: skip
    """Plan this GPU's rows of the sum over all of A @ B.T: give the kernel, its arguments and its grid.

    a: (owners, rows, K of this GPU), b: (N, K of this GPU), c: (rows, N). parts: memory of all GPUs, (sources, rows, N,
    GPUs). signals: with `slots_of` slots. The others: as of `all_gather_matmul`."""
    exchange, totals = scatter(parts, c, cut, c_dtype or plan.RESULTS[dtype], rank, signals, most_clusters)
    sent = parts[rank, None, None, None]
    made, grid = plan.arguments(
        a, b, of_ranks(sent, 0, 1), dtype, most_clusters, cut, c_dtype=c_dtype, exchange=exchange, totals=totals
    )
    return plan.kernel_of(cut), made, grid


def scatter(
    parts: Any, c: Any, cut: plan.Plan, c_dtype: Any, rank: int, signals: Any, most_clusters: int,
    everywhere: bool = False, shared: Any = None,
) -> tuple[Scatter, Any]:  # fmt: skip
    """Make the exchange that adds up, and what the kernel has of the sums. All as of `matmul_reduce_scatter`, and of
    `Scatter`."""
    rows, n = map(int, parts.shape[1:3])
    columns = plan.pieces_of(cut, c_dtype.width).columns
    smem, piece = plan.smem_layout(c_dtype, 1, HEIGHT, columns), (HEIGHT, columns)
    extents = math.ceil(rows / (TILE_M * cut.sharers)) * cut.sharers * TILE_M, math.ceil(n / cut.tile_n) * cut.tile_n
    mine, c = parts[None, None, None, rank], view(c, 16)
    tma_total, total = (
        (None, None) if everywhere else plan.stores(operand(c, c_dtype)[0], c_dtype, smem, piece, extents)
    )
    tma_part, part, share = None, None, None
    if not everywhere:
        load = cpasync.CopyBulkTensorTileG2SOp()
        tma_part, part = cpasync.make_tiled_tma_atom(load, operand(mine, c_dtype)[0], smem, piece)
        part = plan.cover(part, *extents)
    if shared is not None:
        of_all = operand(of_ranks(shared[rank, None, None, None], 0, 1), c_dtype)[0]
        share = by_index(of_all, Named(None, rows, int(of_all.stride[0])), rows)
        shared = _rows_first(shared[None, None, None, rank])
        c = cute.make_tensor(c.iterator, cute.select(c.layout, mode=[1, 2, 0]))
    mine, c = _rows_first(mine), c.mark_layout_dynamic(leading_dim=1)
    behind = cute.Int32(4 * most_clusters // 3)  # a round, and some of the next: for what is on its way
    exchange = Scatter(cute.Int32(rank), mine, tma_part, part, cut.tile_n, everywhere, shared, share, signals, behind)
    return exchange, (tma_total, total, c)


def _rows_first(tensor: Any) -> Any:
    """View (GPUs, rows, N) as (rows, N, GPUs), of extents that are known at run time."""
    view = cute.make_tensor(tensor.iterator, cute.select(tensor.layout, mode=[1, 2, 0]))
    return view.mark_layout_dynamic(leading_dim=1)


def matmul_all_reduce(
    a: Any, b: Any, c: Any, parts: Any, shared: Any, dtype: Any, rank: int, signals: Any, most_clusters: int,
    cut: plan.Plan = plan.USUAL, c_dtype: Any = None,
) -> tuple[Any, tuple[Any, ...], tuple[int, int, int]]:  # fmt: skip
    """Plan the sum over all GPUs of A @ B.T on each: give the kernel, its arguments and its grid.

    In two shots, with `shared`, memory of all GPUs, (owners, rows, N, GPUs): a: (owners, rows, K of this GPU), c:
    (owners, rows, N), and `slots_of(…, twice=True)` slots of signals. In one, where it is None: a: (M, K of this GPU),
    c: (M, N), and parts (sources, M, N, GPUs). The others: as of `matmul_reduce_scatter`."""
    once = shared is None
    c_dtype = c_dtype or plan.RESULTS[dtype]
    exchange, totals = scatter(parts, c, cut, c_dtype, rank, signals, most_clusters, once, shared)
    sent = of_ranks(parts[rank, None, None, None], 0, 1)
    apart = 0 if once else None  # C has a mode of GPUs, and A has none
    made, grid = plan.arguments(
        a, b, sent, dtype, most_clusters, cut, c_dtype=c_dtype, apart=apart, exchange=exchange, totals=totals
    )
    return plan.kernel_of(cut), made, grid
