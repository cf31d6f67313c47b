# SPDX-License-Identifier: Apache-2.0
"""Pictures of tables of cells: layouts, tiled copies and MMAs, swizzles, the order of tiles."""

from __future__ import annotations

from collections.abc import Sequence

from ..atoms.grids import Cell, Grid
from ..seam.ground.drawing import COLOURS, LINE, SIZE, Drawing, Picture, Steps, wide

EVER = 1e18
"""As a step: to the end."""


class Table(Picture):
    """One table of cells or several. grids: these. follows: what a page's slider goes through: "each" number alone, or
    all "until" a number."""

    def __init__(self, grids: Sequence[Grid], follows: str = "each") -> None:
        self.grids, self.follows = tuple(grids), follows
        last = max((c.number for g in grids for row in g.cells for c in row), default=0)
        self.slides = Steps(self.grids[0].numbers, last)

    def __str__(self) -> str:
        """Write the tables: one line of text a row, with the coordinates beside it."""
        return "\n\n".join(map(_text, self.grids))

    def drawn(self) -> Drawing:
        """Draw the tables, one under the other."""
        d, y = Drawing(), 4.0
        for grid in self.grids:
            y = self._draw(d, grid, y) + LINE
        return d

    def _draw(self, d: Drawing, grid: Grid, y: float) -> float:
        rows, lines = grid.cells, max(len(c.lines) for row in grid.cells for c in row)
        width = max(26.0, max(wide(t) for row in rows for c in row for t in c.lines) + 8)
        beside = grid.rows or tuple(map(str, range(len(rows))))
        height, left = lines * (SIZE + 2) + 8.0, 10 + max(map(wide, beside)) + 8
        d.text(10, y + SIZE, grid.title, "strong")
        y += 2 * LINE
        for j in range(len(rows[0])):
            d.text(left + j * width + (width - wide(str(j))) / 2, y - 4, str(j), "faint")
        for i, row in enumerate(rows):
            top = y + i * height
            d.text(10, top + (height + SIZE) / 2 - 2, beside[i], "faint")
            for j, cell in enumerate(row):
                x = left + j * width
                self._cell(d, cell, x, top, width, height)
        return y + len(rows) * height

    def _cell(self, d: Drawing, cell: Cell, x: float, y: float, width: float, height: float) -> None:
        to = EVER if self.follows == "until" else cell.number + 1
        colour = "" if cell.number < 0 else COLOURS[cell.number % len(COLOURS)]
        opacity = 0.25 + 0.3 * (cell.number // len(COLOURS) % 2) if colour else 1.0
        d.box(x, y, width - 1, height - 1, colour, cell.title, opacity=opacity, steps=(cell.number, to))
        for at, text in enumerate(cell.lines):
            d.text(x + (width - 1 - wide(text)) / 2, y + (at + 1) * (SIZE + 2), text)


def _text(grid: Grid) -> str:
    rows = [[" ".join(c.lines).strip() or "." for c in row] for row in grid.cells]
    head = [str(j) for j in range(len(rows[0]))]
    width = max(len(t) for row in [head, *rows] for t in row)
    beside = grid.rows or tuple(map(str, range(len(rows))))
    margin = max(map(len, beside))
    lines = [grid.title, " " * margin + "  " + " ".join(t.rjust(width) for t in head)]
    lines += [f"{name:>{margin}}  " + " ".join(t.rjust(width) for t in row) for name, row in zip(beside, rows)]
    return "\n".join(lines)
