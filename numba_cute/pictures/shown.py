# SPDX-License-Identifier: Apache-2.0
"""Make the picture that `show` gives of each kind of object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import layout
from ..atoms.copy_atom import CopyAtom, ThrCopy, TiledCopy
from ..atoms.grids import Cell, Grid, check_size, grids_of, layout_grid, tv_grid
from ..atoms.mma_atom import MmaAtom, ThrMma, TiledMma, make_tiled_mma
from ..isa.facts.banks import BANK, BANKS
from ..layout import ComposedLayout, Layout, Swizzle
from ..layout.layout import outer_of
from ..seam import CuteError
from ..seam.ground.drawing import Picture
from ..seam.ground.folding import folding
from ..seam.ground.naming import described
from ..tensor.tensor import Tensor
from ..utils.tile_scheduler import PersistentTileSchedulerParams
from .tables import Table


@folding
def show(x: Any, element_type: Any = None) -> Any:
    """Return a picture of `x`: a notebook shows it, `print` writes text, and `.svg(file)` and `.html(file)` write it.

    x: a static layout, swizzled or not: the offset at each coordinate; a swizzle: where each row's chunks go, and their
    banks; a copy or MMA atom, a TiledCopy or TiledMma, a thread's slice of one: which thread holds each element, and as
    which of its values; a tensor: its layout; a tile scheduler's parameters: the order of the tiles; a Timeline, a
    `sim.Trace`; a `Proof`: its kernel's shared memory over time; a DeadlockError: who waits for whom; any picture.
    element_type: of a layout of shared memory, to have banks in place of offsets in its colours and titles. The pages
    of `.html` have a slider: over threads, offsets, tiles, or time. Raises CuteError for what has no picture, or no one
    (a layout that is known only at run time), or too many cells.

    >>> print(cute.show(cute.make_layout((2, 4), stride=(4, 1))))
    (2,4):(4,1)
       0 1 2 3
    0  0 1 2 3
    1  4 5 6 7
    """
    if isinstance(x, Picture):
        return x
    for kind, draw in _KINDS:
        if isinstance(x, kind):
            return draw(x, element_type)
    graph = getattr(x, "graph", None)
    if isinstance(graph, Picture):  # of a DeadlockError
        return graph
    memory = getattr(type(x), "memory", None)
    if memory is not None and isinstance(x.memory, Picture):  # of a Proof
        return x.memory
    raise CuteError(f"show: x {described(x)} has no picture; see help(cute.show) for what has one")


def _of_layout(lay: Any, element_type: Any) -> Table:
    lay = _flat(lay)
    grid = _folded(layout_grid(lay, "show"))
    if element_type is None:
        return Table([grid], "until")
    nbytes = _bytes(element_type)
    cells = [[_banked(c, nbytes) for c in row] for row in grid.cells]
    return Table([Grid(f"{grid.title}, elements of {nbytes:g} bytes", cells, "bank")])


_WIDEST = 32


def _folded(grid: Grid) -> Grid:
    """A single row that is too long, in several: each begins with its first coordinate."""
    (first, *more), width = grid.cells, _WIDEST // 2
    if more or len(first) <= _WIDEST:
        return grid
    return grid._replace(cells=_rows(first, width), rows=tuple(str(at) for at in range(0, len(first), width)))


def _rows(cells: list[Cell], width: int) -> list[list[Cell]]:
    rows = [cells[at : at + width] for at in range(0, len(cells), width)]
    rows[-1] += [Cell(("",), -1)] * (width - len(rows[-1]))
    return rows


def _banked(cell: Cell, nbytes: float) -> Cell:
    bank = int(cell.number * nbytes) // BANK % BANKS
    return cell._replace(number=bank, title=f"{cell.title}, bank {bank}")


def _bytes(element_type: Any) -> float:
    width = getattr(element_type, "width", None)
    if not isinstance(width, int):
        raise CuteError(f"show: element_type {described(element_type)}: give an element type, as cute.Float16")
    return width / 8


def _flat(lay: Any) -> Any:
    """A layout with at most two modes: those behind the first are one."""
    if not isinstance(lay, (Layout, ComposedLayout)) or layout.rank(lay) <= 2:
        return lay
    return layout.group_modes(lay, 1, layout.rank(lay))


def _of_swizzle(swizzle: Swizzle, _: Any) -> Table:
    """Show the places of chunks of 2^base bytes: a row for each value of the field that changes them."""
    if swizzle.shift <= 0 or swizzle.bits == 0:
        raise CuteError(f"show: {swizzle} moves no chunk within a row: show a layout that it is composed with")
    rows, columns = 1 << swizzle.bits, 1 << swizzle.shift
    check_size("show", rows, columns)
    chunk = 1 << swizzle.base
    cells = []
    for i in range(rows):
        row = []
        for j in range(columns):
            address = swizzle((i * columns + j) * chunk)
            at, bank = address // chunk % columns, address // BANK % BANKS
            last = (address + chunk - 1) // BANK % BANKS
            title = f"row {i}, chunk {j}: at chunk {at} of its row, byte {address}, banks {bank} to {last}"
            row.append(Cell((str(at),), at, title))
        cells.append(row)
    head = f"{swizzle}: chunks of {chunk} bytes, where each lies in its row of {columns * chunk} bytes"
    return Table([Grid(head, cells, "chunk")])


def _of_tiled(x: Any, _: Any) -> Table:
    return Table(grids_of(x, "show"))


def _of_copy_atom(atom: CopyAtom, _: Any) -> Table:
    """The elements in rows of those that a thread names: a row of a matrix, where it is one."""
    pairs = (("source", atom.layout_src_tv), ("destination", atom.layout_dst_tv))
    grids = [tv_grid(name, tv, (1, layout.cosize(tv)), "show") for name, tv in pairs]
    width = layout.size(atom.layout_src_tv, (1,))
    return Table([g._replace(cells=_rows(g.cells[0], width)) for g in grids])


def _of_raster(params: PersistentTileSchedulerParams, _: Any) -> Table:
    """The order in which the clusters of tiles are done, of each batch."""
    m, n, batches = params.problem_shape_ncluster_mnl
    if not all(isinstance(e, int) for e in (m, n, batches)):
        raise CuteError("show: the scheduler's tiles are known only at run time: give ints")
    check_size("show", m * batches, n)
    grids: list[list[list[Cell]]] = [[[Cell(("",), -1)] * n for _ in range(m)] for _ in range(batches)]
    for index in range(params.num_clusters):
        i, j, batch = params.decode(index)
        grids[batch][i][j] = Cell((str(index),), index, f"cluster of tiles ({i},{j},{batch}): number {index}")
    return Table([Grid(f"{params}, batch {b}", cells, "tile") for b, cells in enumerate(grids)], "until")


_KINDS: tuple[tuple[Any, Callable[[Any, Any], Any]], ...] = (
    ((Layout, ComposedLayout), _of_layout),
    (Swizzle, _of_swizzle),
    ((TiledCopy, TiledMma), _of_tiled),
    (ThrCopy, lambda x, e: _of_tiled(x.tiled_copy, e)),
    (ThrMma, lambda x, e: _of_tiled(x.tiled_mma, e)),
    (MmaAtom, lambda x, e: _of_tiled(make_tiled_mma(x), e)),
    (CopyAtom, _of_copy_atom),
    (Tensor, lambda x, e: _of_layout(x.layout, e or (None if outer_of(x.layout) is x.layout else x.element_type))),
    (PersistentTileSchedulerParams, _of_raster),
)
