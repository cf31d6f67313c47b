# SPDX-License-Identifier: Apache-2.0
"""Plan the three kernels of experts that lie on several GPUs: find where rows go; bring them and multiply; multiply
and send them back."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numba_cute as cute

from ..gemm import grouped
from ..gemm.dense import TILE_M
from ..gemm.operands import view
from . import routes
from .combine import Combine, Returned, send_back
from .dispatch import Dispatch, bring, parts_of, pieces_of
from .routes import SLABS, WARP
from .sums import THREADS

ROUTERS, BRINGERS, SENDERS = 32, 4, 2
"""Blocks that find where rows go, at most: they wait for each other, and must all run. And those of a multiprocessor
that bring rows without a product, and that send them, which wait for each other too."""
SLAB = 1024
"""The columns of the first slab are a multiple of it, whatever the tiles are: all GPUs have the same slabs."""


class Extents(NamedTuple):
    """The extents of a `Room`. world: GPUs. tokens: of each, at most. hidden: of a row. topk: experts of a token.
    experts: of all GPUs. capacity: rows that may come to a GPU."""

    world: int
    tokens: int
    hidden: int
    topk: int
    experts: int
    capacity: int

    @property
    def pairs(self) -> int:
        """The pairs of a GPU, at most."""
        return self.tokens * self.topk

    @property
    def sorted(self) -> int:
        """Words that a GPU gives the others to read."""
        return self.experts + 1 + self.pairs


class Room(NamedTuple):
    """Memory of a GPU. here: rows that came, (capacity, hidden). chosen, origins, ends, arrived: as of `Routes`; ended:
    (SLABS,), and counters (2,): of int32 zeros. report: `routes.WORDS` words that the host sees."""

    here: Any
    chosen: Any
    origins: Any
    ends: Any
    arrived: Any
    ended: Any
    counters: Any
    report: Any

    @staticmethod
    def make(extents: Extents, room: Callable[[Any], Any], zeros: Callable[[Any], Any], report: Any) -> Room:
        """Make one. room, zeros: make arrays of a shape, of the rows' type and of int32."""
        return Room(
            room((extents.capacity, extents.hidden)), zeros((extents.pairs,)), zeros((extents.capacity,)),
            zeros((extents.experts // extents.world,)), zeros((math.ceil(extents.capacity / TILE_M),)),
            zeros((SLABS,)), zeros((2,)), report,
        )  # fmt: skip


def route(
    indices: Any, sorted: Any, extents: Extents, room: Room, rank: int, signals: Any, sms: int
) -> tuple[Any, tuple[Any, ...], tuple[int, int, int], int]:
    """Plan the kernel that finds where rows go: give it, its arguments, its grid and its block.

    indices: (tokens, topk), contiguous. sorted: of all GPUs, (`extents.sorted`, GPUs). signals: with `routes.SLOTS`
    slots. sms: multiprocessors of a GPU."""
    flat = view(indices)
    flat = cute.make_tensor(flat.iterator, cute.make_layout(cute.Int32(cute.size(flat))))
    given = routes.Routes(
        cute.Int32(rank), extents.experts, extents.pairs, sorted, view(room.chosen), view(room.origins),
        view(room.ends), view(room.arrived), view(room.report), signals,
    )  # fmt: skip
    warps = routes.warps_for(extents.experts, extents.pairs)
    count = cute.Int32(math.prod(indices.shape))
    return routes.route, (flat, count, given, warps), (min(ROUTERS, sms), 1, 1), warps * routes.WARP


def dispatch_matmul(
    tokens: Any, b: Any, c: Any, extents: Extents, room: Room, rank: int, signals: Any, most: Callable[[int], int],
    cut: grouped.Cut, epilogue: Any = None,
) -> tuple[Any, tuple[Any, ...], tuple[int, int, int], int]:  # fmt: skip
    """Plan C = the rows that come @ B of their expert: give the kernel, its arguments, its grid and its cluster.

    tokens: of all GPUs, (tokens, hidden, GPUs). b: (experts of this GPU, N, hidden). c: (capacity, N after the
    epilogue). most: gives how many clusters of so many CTAs run at once. cut: of `cut_of`."""
    kinds = tokens.element_type, tokens.element_type
    exchange = _dispatch(tokens, extents, room, rank, signals)
    return _grouped(cut, most, kinds, room.here, b, room, c, epilogue, None, 0, exchange)


def _dispatch(tokens: Any, extents: Extents, room: Room, rank: int, signals: Any) -> Dispatch:
    dtype, row = tokens.element_type, extents.hidden * tokens.element_type.width // 8
    return Dispatch(
        dtype, parts_of(row), cute.Int32(rank), tokens, view(room.here, 16), extents.pairs, extents.topk,
        pieces_of(row), view(room.origins), view(room.ends), view(room.arrived),
        view(room.ended), signals,
    )  # fmt: skip


def matmul_combine(
    a: Any, b: Any, weights: Any, out: Any, parts: Any, extents: Extents, room: Room, rank: int, signals: Any,
    most: Callable[[int], int], cut: grouped.Cut,
) -> tuple[Any, tuple[Any, ...], tuple[int, int, int], int]:  # fmt: skip
    """Plan the sums of weights times a token's rows of A @ B: give the kernel, its arguments, its grid and its cluster.

    a: (capacity, K). b: (experts of this GPU, N, K). weights: (tokens, topk). out: (tokens, N). parts: of all GPUs,
    (pairs, N, GPUs). The others: as of `dispatch_matmul`."""
    kinds = parts.element_type, parts.element_type
    exchange, back, totals = _combine(weights, out, parts, extents, room, rank, signals, wide_of(extents.hidden))
    return _grouped(cut, most, kinds, a, b, room, a, None, back, 1, exchange, totals)


def wide_of(hidden: int) -> int:
    """Choose the columns of the first slab: four sevenths of all. Two warps add it up while the second slab is
    multiplied; with more columns they would end after it. Each slab reads A once more."""
    return SLAB * max(math.ceil(hidden / (SLAB * SLABS)), 4 * hidden // (7 * SLAB))


def _combine(
    weights: Any, out: Any, parts: Any, extents: Extents, room: Room, rank: int, signals: Any, wide: int
) -> tuple[Combine, Returned, tuple[Any, Any]]:
    """Make the exchange, where rows go, and the tensors of the sums and of the weights. wide: columns of a slab."""
    exchange = Combine(cute.Int32(rank), parts, extents.topk, view(room.chosen), view(room.ended), signals, wide)
    return exchange, Returned(parts, view(room.origins)), (_rows(out, 16), _rows(weights))


def _rows(array: Any, align: int | None = None) -> Any:
    """Make a tensor of rows, of which there may be one or none, with extents that are known at run time."""
    t = view(array, align)
    (rows, columns), step = t.shape, t.stride[0]
    layout = cute.make_layout((rows, columns), stride=(step if rows > 1 else columns, 1))
    return cute.make_tensor(t.iterator, layout).mark_layout_dynamic(leading_dim=1)


def dispatch(
    tokens: Any, extents: Extents, room: Room, rank: int, signals: Any, sms: int
) -> tuple[Any, tuple[Any, ...], tuple[int, int, int], int]:
    """Plan what brings the rows that come to `room.here`: give the kernel, its arguments, its grid and its block. All
    as of `dispatch_matmul`; sms: multiprocessors of a GPU."""
    return bring, (_dispatch(tokens, extents, room, rank, signals),), (BRINGERS * sms, 1, 1), WARP


def combine(
    rows: Any, weights: Any, out: Any, parts: Any, extents: Extents, room: Room, rank: int, signals: Any, sms: int
) -> tuple[Any, tuple[Any, ...], tuple[int, int, int], int]:
    """Plan the sums of weights times a token's rows, of (capacity, N): give the kernel, its arguments, its grid and its
    block. sms: multiprocessors of a GPU. The others: as of `matmul_combine`."""
    exchange, back, totals = _combine(weights, out, parts, extents, room, rank, signals, int(parts.shape[1]))
    return send_back, (exchange, back, _rows(rows, 16), view(room.ends), totals), (SENDERS * sms, 1, 1), THREADS


def cut_of(extents: Extents, n: int, most: Callable[[int], int]) -> grouped.Cut:
    """Choose the cut for N columns, and as many rows as come if all GPUs have all tokens, spread alike."""
    found: grouped.Cut = grouped.cut_of(min(extents.capacity, extents.pairs), extents.experts // extents.world, n, most)
    return found


def _grouped(
    cut: grouped.Cut, most: Callable[[int], int], kinds: Any, a: Any, b: Any, room: Room, c: Any, epilogue: Any,
    rows: Any, which: int, exchange: Any, totals: Any = None,
) -> tuple[Any, tuple[Any, ...], tuple[int, int, int], int]:  # fmt: skip
    """Plan a grouped product. which: of the counters."""
    tile_n, (across_m, across_n), draws = cut
    ctas = across_m * across_n
    columns = math.ceil(b.shape[1] / (tile_n * across_n))
    counter = room.counters[which : which + 1] if draws else None
    made = grouped.arguments_of(
        cut, columns, kinds, a, b, room.ends, c, (), epilogue, (None, rows), counter, exchange, totals
    )
    return grouped.grouped, made, (most(ctas) * ctas, 1, 1), ctas
