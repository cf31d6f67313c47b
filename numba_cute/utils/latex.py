# SPDX-License-Identifier: Apache-2.0
"""Pictures of layouts: TikZ documents that LaTeX compiles as they are."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from .. import layout
from ..atoms.copy_atom import TiledCopy
from ..atoms.mma_atom import TiledMma
from ..layout import ComposedLayout, Layout
from ..layout.basis import is_basis
from ..seam import CuteError, Int

__all__ = ["PALETTES", "print_latex", "print_latex_tv"]

PALETTES: dict[str, tuple[str, ...]] = {
    "gray": ("FFFFFF", "E4E4E4", "C9C9C9", "AFAFAF", "969696", "F2F2F2", "D6D6D6", "BCBCBC"),
    "pastel": ("AFAFFF", "AFFFAF", "FFFFAF", "FFAFAF", "D2D2FF", "D2FFD2", "FFFFD2", "FFD2D2"),
    "bright": ("8DD3C7", "FFFFB3", "BEBADA", "FB8072", "80B1D3", "FDB462", "B3DE69", "FCCDE5"),
}
"""Fills of cells by name, as hexadecimal RGB; index i of a layout, or thread i, takes the colour i modulo their
number."""

MOST_CELLS = 16384
"""More than this LaTeX cannot draw in a reasonable time."""

_Cell = tuple[tuple[str, ...], int]  # the lines of text, and which colour


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
    if isinstance(x, TiledCopy):
        tile = tuple(layout.size(t) for t in x.tiler_mn)
        grids = [_tv_grid("source", x.layout_src_tv_tiled, tile), _tv_grid("destination", x.layout_dst_tv_tiled, tile)]
    elif isinstance(x, TiledMma):
        m, n, k = (x.get_tile_size(i) for i in range(3))
        grids = [_tv_grid("A", x.tv_layout_A_tiled, (m, k)), _tv_grid("B", x.tv_layout_B_tiled, (n, k)),
                 _tv_grid("C", x.tv_layout_C_tiled, (m, n))]  # fmt: skip
    else:
        grids = [_layout_grid(x)]
    _print(grids, palette, file)


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
    _print([_tv_grid("", layout_tv, tuple(layout.product_each(layout.wrap(tile))))], _palette(color), file)


def _palette(color: Any) -> tuple[str, ...]:
    if isinstance(color, str):
        if color not in PALETTES:
            raise CuteError(f"color {color!r} is not a palette; there are {', '.join(PALETTES)}")
        return PALETTES[color]
    colors = tuple(color)
    if not colors or any(len(c) != 6 or set(c.upper()) - set("0123456789ABCDEF") for c in colors):
        raise CuteError(f"color {color!r}: give a name of PALETTES, or colours such as 'AFAFFF'")
    return tuple(c.upper() for c in colors)


def _check(what: str, lay: Any) -> None:
    if not isinstance(lay, (Layout, ComposedLayout)):
        raise CuteError(f"{what}: {lay!r} is not a layout")
    if not layout.is_static(lay):
        raise CuteError(f"{what}: {lay} is not static: there is no one picture of it")


def _layout_grid(lay: Any) -> tuple[str, list[list[_Cell]]]:
    _check("print_latex", lay)
    rank = layout.rank(lay)
    if rank > 2:
        raise CuteError(f"print_latex: {lay} has {rank} modes; group them into 1 or 2 (group_modes)")
    rows = layout.size(lay, (0,)) if rank == 2 else 1
    columns = layout.size(lay) // rows
    _limit("print_latex", rows, columns)
    values = [[lay((i, j)) if rank == 2 else lay(j) for j in range(columns)] for i in range(rows)]
    at: list[list[_Cell]] = [
        [((str(v),), v if isinstance(v, int) else i + j * rows) for j, v in enumerate(row)]
        for i, row in enumerate(values)
    ]
    return str(lay), at


def _limit(what: str, rows: int, columns: int) -> None:
    if rows * columns > MOST_CELLS:
        raise CuteError(f"{what}: {rows} by {columns} cells are too many to draw; the most are {MOST_CELLS}")


def _tv_grid(title: str, tv: Any, tile: tuple[int, ...]) -> tuple[str, list[list[_Cell]]]:
    _check("print_latex_tv", tv)
    if layout.rank(tv) != 2 or isinstance(tv, Layout) and is_basis(tv.stride):
        raise CuteError(f"print_latex_tv: layout_tv {tv} must map 2 modes, thread and value, to indices of elements")
    rows, columns = tile[0], layout.product(tile[1:]) if len(tile) > 1 else 1
    _limit("print_latex_tv", rows, columns)
    _limit("print_latex_tv", layout.size(tv, (0,)), layout.size(tv, (1,)))
    holders: dict[int, list[tuple[int, int]]] = {}
    for t in range(layout.size(tv, (0,))):
        for v in range(layout.size(tv, (1,))):
            holders.setdefault(tv((t, v)), []).append((t, v))
    outside = max(holders)
    if outside >= rows * columns:
        raise CuteError(f"print_latex_tv: layout_tv {tv} reaches element {outside}, outside the tile {tile}")
    cells = [[_holder(holders.get(i + j * rows, [])) for j in range(columns)] for i in range(rows)]
    return (f"{title}: {tv}" if title else str(tv)), cells


def _holder(who: list[tuple[int, int]]) -> _Cell:
    """Who holds an element: nobody, one thread, or several (first to last)."""
    if not who:
        return ("",), -1
    threads, values = sorted({t for t, _ in who}), sorted({v for _, v in who})
    return (_span("T", threads), _span("V", values)), threads[0]


def _span(letter: str, numbers: list[int]) -> str:
    return f"{letter}{numbers[0]}" if len(numbers) == 1 else f"{letter}{numbers[0]}..{numbers[-1]}"


def _print(grids: list[tuple[str, list[list[_Cell]]]], palette: tuple[str, ...], file: TextIO | None) -> None:
    out = sys.stdout if file is None else file
    for line in _document(grids, palette):
        print(line, file=out)


def _document(grids: list[tuple[str, list[list[_Cell]]]], palette: tuple[str, ...]) -> Iterable[str]:
    yield from ("\\documentclass[multi=tikzpicture]{standalone}", "\\usepackage{tikz}")
    for i, rgb in enumerate(palette):
        yield f"\\definecolor{{cell{i}}}{{HTML}}{{{rgb}}}"
    yield "\\begin{document}"
    for title, cells in grids:
        yield from _picture(title, cells, len(palette))
    yield "\\end{document}"


def _picture(title: str, cells: list[list[_Cell]], colors: int) -> Iterable[str]:
    rows, columns = len(cells), len(cells[0])
    yield f"% {title}"
    yield "\\begin{tikzpicture}[x={(0cm,-1cm)},y={(1cm,0cm)},every node/.style={minimum size=1cm,outer sep=0pt}]"
    for i, row in enumerate(cells):
        for j, (text, which) in enumerate(row):
            fill = "white" if which < 0 else f"cell{which % colors}"
            lines = " \\\\ ".join(text)
            yield f"\\node[fill={fill},align=center,font=\\tiny] at ({i},{j}) {{{lines}}};"
    yield f"\\draw[thick,shift={{(-0.5,-0.5)}}] (0,0) grid ({rows},{columns});"
    for i in range(rows):
        yield f"\\node at ({i},-1) {{\\texttt{{{i}}}}};"
    for j in range(columns):
        yield f"\\node at (-1,{j}) {{\\texttt{{{j}}}}};"
    yield "\\end{tikzpicture}"
