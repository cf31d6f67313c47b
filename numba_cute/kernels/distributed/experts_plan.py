# SPDX-License-Identifier: Apache-2.0
"""Plan the three kernels of experts that lie on several GPUs: find where rows go; bring them and multiply; multiply
and send them back."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numba_cute as cute

from ..gemm.dense import TILE_M
from ..gemm.operands import view
from . import routes

ROUTERS = 32
"""Blocks that find where rows go, at most: they wait for each other, and must all run."""


class Extents(NamedTuple):
    """What rooms are made for. world: GPUs. tokens: of each, at most. hidden: of a row. topk: experts of a token.
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
    (1,), and counters (2,): of int32 zeros. report: `routes.WORDS` words that the host sees."""

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
            zeros((extents.experts // extents.world,)), zeros((math.ceil(extents.capacity / TILE_M),)), zeros((1,)),
            zeros((2,)), report,
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
