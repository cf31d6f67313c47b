# SPDX-License-Identifier: Apache-2.0
"""Plan the products that exchange rows: what the GEMM's kernel takes of a GPU's exchange with the others."""

from __future__ import annotations

import math
from typing import Any

import numba_cute as cute
from numba_cute import CuteError
from numba_cute.nvgpu import cpasync

from ..gemm import plan
from ..gemm.dense import TILE_M
from ..gemm.operands import contiguous, load_atom, operand, view
from .gather import BLOCK, BYTES, ROWS, SLOTS, Gather
from .scatter import Scatter


def of_ranks(peers: Any) -> Any:
    """View a tensor of two modes with one more of GPUs, which comes last, as `operand` wants a batch: first."""
    return cute.make_tensor(peers.iterator, cute.select(peers.layout, mode=[2, 0, 1]))


def counted(rows: int) -> int:
    """Count the blocks of rows for which pieces are counted."""
    return math.ceil(rows / TILE_M)


def gather(
    dtype: Any, peers: Any, here: Any, rank: int, arrived: Any, ended: Any, signals: Any, stages: int
) -> Gather:
    """Make the exchange that brings A's rows. peers: A, (rows, K, GPUs). here: room for it on this GPU, (GPUs, rows,
    K). arrived, ended: as of `Gather`, of zeros. stages: of the cut."""
    rows, k, _ = map(int, peers.shape)
    tile_k, columns = 8 * plan.ROW // dtype.width, 8 * BYTES // dtype.width
    source, mode = operand(of_ranks(peers), dtype)
    target, _ = operand(here, dtype)
    a_layout = plan.smem_layout(dtype, mode, TILE_M, tile_k, stages)
    tma_own, own = load_atom(source, a_layout, (TILE_M, tile_k))
    layout = cute.make_layout((ROWS, columns, SLOTS), stride=(columns, 1, ROWS * columns))
    piece, tile = cute.slice_(layout, (None, None, 0)), (ROWS, columns)
    tma_load, there = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), source, piece, tile)
    tma_store, here = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), target, piece, tile)
    return Gather(
        dtype, layout, cute.Int32(rank), tma_own, own, tma_load, there, tma_store, here,
        cute.Int32(math.ceil(rows / ROWS)), cute.Int32(math.ceil(k / columns)),
        view(arrived).mark_layout_dynamic(), view(ended), signals,
    )  # fmt: skip


def scatter(parts: Any, sums: Any, tile_n: int, rank: int, signals: Any) -> Scatter:
    """Make the exchange that adds up. parts: (rows, N, GPUs), of this GPU. sums: (rows, N)."""
    parts, sums = (view(t, 16).mark_layout_dynamic(leading_dim=1) for t in (parts, sums))
    return Scatter(cute.Int32(rank), parts, sums, tile_n, False, None, None, signals)
