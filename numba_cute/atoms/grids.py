# SPDX-License-Identifier: Apache-2.0
"""Layouts, tiled copies and MMAs as tables of cells: what all pictures of them are drawn from."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import layout
from ..layout import ComposedLayout, Layout
from ..layout.basis import is_basis
from ..seam import CuteError
from .copy_atom import TiledCopy
from .mma_atom import TiledMma

MOST_CELLS = 16384
"""More than this nobody looks at, and LaTeX cannot draw in a reasonable time."""


class Cell(NamedTuple):
    """A cell. lines: its text. number: what it is coloured by, -1 of an empty one: a layout's value, or the first
    thread that holds the element. title: all that is known of it."""

    lines: tuple[str, ...]
    number: int
    title: str = ""


class Grid(NamedTuple):
    """A table. title: what it is of. cells: by row and column. numbers: what their numbers count ("offset",
    "thread"). rows: what is written beside each row, where that is not its number."""

    title: str
    cells: list[list[Cell]]
    numbers: str = "offset"
    rows: tuple[str, ...] = ()


def grids_of(x: Any, what: str) -> list[Grid]:
    """Return the tables of a static layout of rank 1 or 2, of a TiledCopy (source and destination), or of a TiledMma
    (A, B and C). what: who asks, in the CuteError for anything else."""
    if isinstance(x, TiledCopy):
        tile = tuple(layout.size(t) for t in x.tiler_mn)
        return [
            tv_grid("source", x.layout_src_tv_tiled, tile, what),
            tv_grid("destination", x.layout_dst_tv_tiled, tile, what),
        ]
    if isinstance(x, TiledMma):
        m, n, k = (x.get_tile_size(i) for i in range(3))
        return [
            tv_grid("A", x.tv_layout_A_tiled, (m, k), what), tv_grid("B", x.tv_layout_B_tiled, (n, k), what),
            tv_grid("C", x.tv_layout_C_tiled, (m, n), what),
        ]  # fmt: skip
    return [layout_grid(x, what)]


def check_layout(what: str, lay: Any) -> None:
    """Refuse what is not a static layout."""
    if not isinstance(lay, (Layout, ComposedLayout)):
        raise CuteError(f"{what}: {lay!r} is not a layout")
    if not layout.is_static(lay):
        raise CuteError(f"{what}: {lay} is not static, so it cannot be drawn")


def layout_grid(lay: Any, what: str) -> Grid:
    """Return a layout's offset at each of its coordinates."""
    check_layout(what, lay)
    rank = layout.rank(lay)
    if rank > 2:
        raise CuteError(f"{what}: {lay} has {rank} modes; group them into 1 or 2 (group_modes)")
    rows = layout.size(lay, (0,)) if rank == 2 else 1
    columns = layout.size(lay) // rows
    check_size(what, rows, columns)
    values = [[lay((i, j)) if rank == 2 else lay(j) for j in range(columns)] for i in range(rows)]
    cells = [
        [
            Cell((str(v),), v if isinstance(v, int) else i + j * rows, f"({i},{j}): {v}" if rank == 2 else f"{j}: {v}")
            for j, v in enumerate(row)
        ]
        for i, row in enumerate(values)
    ]
    return Grid(str(lay), cells)


def check_size(what: str, rows: int, columns: int) -> None:
    """Refuse a table that is too large."""
    if rows * columns > MOST_CELLS:
        raise CuteError(f"{what}: {rows} by {columns} cells are too many to draw; the most are {MOST_CELLS}")


def tv_grid(title: str, tv: Any, tile: tuple[int, ...], what: str) -> Grid:
    """Return a tile with the thread that holds each element, and as which of its values."""
    check_layout(what, tv)
    if layout.rank(tv) != 2 or isinstance(tv, Layout) and is_basis(tv.stride):
        raise CuteError(f"{what}: layout_tv {tv} must map 2 modes, thread and value, to indices of elements")
    rows, columns = tile[0], layout.product(tile[1:]) if len(tile) > 1 else 1
    check_size(what, rows, columns)
    threads, values = layout.size(tv, (0,)), layout.size(tv, (1,))
    shared = isinstance(tv, Layout) and not any(
        tv((t, 0)) for t in range(threads)
    )  # what lies in shared memory every thread names
    check_size(what, 1 if shared else threads, values)
    holders: dict[int, list[tuple[int, int]]] = {}
    for v in range(values):
        for t in sorted({0, threads - 1}) if shared else range(threads):
            holders.setdefault(tv((t, v)), []).append((t, v))
    outside = max(holders)
    if outside >= rows * columns:
        raise CuteError(f"{what}: layout_tv {tv} reaches element {outside}, outside the tile {tile}")
    cells = [[_holder(holders.get(i + j * rows, []), i, j) for j in range(columns)] for i in range(rows)]
    return Grid(f"{title}: {tv}" if title else str(tv), cells, "thread")


def _holder(who: list[tuple[int, int]], i: int, j: int) -> Cell:
    """Make the cell of an element with its holders: nobody, one thread, or several (first to last)."""
    if not who:
        return Cell(("",), -1, f"({i},{j}): nobody")
    threads, values = sorted({t for t, _ in who}), sorted({v for _, v in who})
    lines = _span("T", threads), _span("V", values)
    return Cell(lines, threads[0], f"({i},{j}): {' '.join(lines)}")


def _span(letter: str, numbers: list[int]) -> str:
    return f"{letter}{numbers[0]}" if len(numbers) == 1 else f"{letter}{numbers[0]}..{numbers[-1]}"
