# SPDX-License-Identifier: Apache-2.0
"""Pictures of layouts: TikZ documents that LaTeX compiles as they are."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from .. import layout
from ..atoms.grids import Cell, Grid, grids_of, tv_grid
from ..layout import Layout
from ..seam import CuteError, Int

__all__ = ["PALETTES", "print_latex", "print_latex_tv"]

PALETTES: dict[str, tuple[str, ...]] = {
    "gray": ("FFFFFF", "E4E4E4", "C9C9C9", "AFAFAF", "969696", "F2F2F2", "D6D6D6", "BCBCBC"),
    "pastel": ("AFAFFF", "AFFFAF", "FFFFAF", "FFAFAF", "D2D2FF", "D2FFD2", "FFFFD2", "FFD2D2"),
    "bright": ("8DD3C7", "FFFFB3", "BEBADA", "FB8072", "80B1D3", "FDB462", "B3DE69", "FCCDE5"),
}
"""Fills of cells by name, as hexadecimal RGB; index i of a layout, or thread i, takes the colour i modulo their
number."""


def print_latex(x: Int, *, color: str | Sequence[str] = "gray", file: TextIO | None = None) -> None:
    """Print a LaTeX document that draws `x`.

    x: a static layout of rank 1 or 2, drawn with the offset of each coordinate; a TiledCopy, with the thread and value
    that reads and writes each element of its tile; or a TiledMma, with the same of A, B and C. color: a name of
    `PALETTES`, or hexadecimal RGB colours. file: a text file, by default standard output.

        cute.utils.print_latex(cute.make_layout((8, 8), stride=(1, 8)))   # > layout.tex

    >>> import io
    >>> text = io.StringIO()
    >>> utils.print_latex(cute.make_layout((2, 2), stride=(1, 2)), file=text)
    >>> "(2,2):(1,2)" in text.getvalue()
    True
    """
    palette = _palette(color)
    _print(grids_of(x, "print_latex"), palette, file)


def print_latex_tv(
    layout_tv: Layout, tile_mn: Any, *, color: str | Sequence[str] = "pastel", file: TextIO | None = None
) -> None:
    """Print a LaTeX document that draws a tile with the thread that holds each element, and as which of its values.

    layout_tv: a static layout from (thread, value) to elements of the tile, counted column-major. tile_mn: the tile's
    shape (M, N). color, file: as for `print_latex`; the colour is the thread's.

    >>> import io
    >>> text = io.StringIO()
    >>> utils.print_latex_tv(cute.make_layout(((2, 2), 2), stride=((1, 4), 2)), (2, 4), file=text)
    >>> "tikzpicture" in text.getvalue()
    True
    """
    tile = tile_mn.shape if isinstance(tile_mn, Layout) else tile_mn
    shape = tuple(layout.product_each(layout.wrap(tile)))
    _print([tv_grid("", layout_tv, shape, "print_latex_tv")], _palette(color), file)


def _palette(color: Any) -> tuple[str, ...]:
    if isinstance(color, str):
        if color not in PALETTES:
            raise CuteError(f"color {color!r} is not a palette; there are {', '.join(PALETTES)}")
        return PALETTES[color]
    colors = tuple(color)
    if not colors or any(len(c) != 6 or set(c.upper()) - set("0123456789ABCDEF") for c in colors):
        raise CuteError(f"color {color!r}: give a name of PALETTES, or colours such as 'AFAFFF'")
    return tuple(c.upper() for c in colors)


def _print(grids: list[Grid], palette: tuple[str, ...], file: TextIO | None) -> None:
    out = sys.stdout if file is None else file
    for line in _document(grids, palette):
        print(line, file=out)


def _document(grids: list[Grid], palette: tuple[str, ...]) -> Iterable[str]:
    yield from ("\\documentclass[multi=tikzpicture]{standalone}", "\\usepackage{tikz}")
    for i, rgb in enumerate(palette):
        yield f"\\definecolor{{cell{i}}}{{HTML}}{{{rgb}}}"
    yield "\\begin{document}"
    for grid in grids:
        yield from _picture(grid.title, grid.cells, len(palette))
    yield "\\end{document}"


def _picture(title: str, cells: list[list[Cell]], colors: int) -> Iterable[str]:
    rows, columns = len(cells), len(cells[0])
    yield f"% {title}"
    yield "\\begin{tikzpicture}[x={(0cm,-1cm)},y={(1cm,0cm)},every node/.style={minimum size=1cm,outer sep=0pt}]"
    for i, row in enumerate(cells):
        for j, (text, which, _) in enumerate(row):
            fill = "white" if which < 0 else f"cell{which % colors}"
            lines = " \\\\ ".join(text)
            yield f"\\node[fill={fill},align=center,font=\\tiny] at ({i},{j}) {{{lines}}};"
    yield f"\\draw[thick,shift={{(-0.5,-0.5)}}] (0,0) grid ({rows},{columns});"
    for i in range(rows):
        yield f"\\node at ({i},-1) {{\\texttt{{{i}}}}};"
    for j in range(columns):
        yield f"\\node at (-1,{j}) {{\\texttt{{{j}}}}};"
    yield "\\end{tikzpicture}"
