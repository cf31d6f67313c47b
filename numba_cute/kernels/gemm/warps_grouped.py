# SPDX-License-Identifier: Apache-2.0
"""Grouped GEMMs for GPUs whose tensor cores are a warp's: rows sorted by group, each group with a matrix of its own.

`rows_of_groups` is what `grouped.py` is on Hopper, C[r] = A[r] @ B[g].T; `over_rows_of_groups` is what
`grouped_outer.py` is, C[g] = X[rows of g].T @ Y[rows of g]. Both make a tile as `warps.py` does: of a group's rows
alone, where A and C, or X and Y, begin and end. Where that is only the device knows, so that there are CTAs for as
many tiles as any groups could have: each looks for its own, and those without one end.
"""

from __future__ import annotations

import math
from typing import Any

import numba_cute as cute
from numba_cute import arch
from numba_cute.seam import CuteError

from .. import entry
from .cuts import Warps
from .epilogue import Epilogue, hook
from .groups import GroupedTiles
from .hook import Hook
from .indexed import by_index, named_of
from .operands import check_rows, mapped, operand, swapped, tensor_of
from .warps import make_tile
from .warps_plan import FLOAT8, RATE, START, check, check_room, cuts, has_float8, kernel_of, of_tile


def rows_of_groups(
    dtype, acc_dtype, c_dtype, mA, mB, mC, mD, tiled_mma, piece_mma, ldmatrix_a, ldmatrix_b, copies_a, copies_b,
    copies_c, a_layout, b_layout, c_layout, ends, columns, epilogue, extents,
):  # fmt: skip
    index, _, _ = arch.block_idx()
    n_extent, k_extent = extents
    tiles = GroupedTiles(cute.make_tensor(ends), cute.size(a_layout, mode=[0]), columns, index, cute.Int32(0))
    if tiles.find():
        begin, end = tiles.begin, tiles.end
        rows_a, rows_c = cute.domain_offset((begin, 0), mA), cute.domain_offset((begin, 0), mC)
        make_tile(
            (tiles.m, tiles.n, tiles.group), (end - begin, n_extent, k_extent), None, dtype, acc_dtype, c_dtype, rows_a,
            mB, rows_c, mD, tiled_mma, piece_mma, ldmatrix_a, ldmatrix_b, copies_a.part(begin, end), copies_b,
            copies_c.part(begin, end), a_layout, b_layout, c_layout, epilogue.behind(begin),
        )  # fmt: skip


def over_rows_of_groups(
    dtype, acc_dtype, c_dtype, mX, mY, mC, mD, tiled_mma, piece_mma, ldmatrix_x, ldmatrix_y, copies_x, copies_y,
    copies_c, x_layout, y_layout, c_layout, ends, epilogue, extents,
):  # fmt: skip
    m, n, group = arch.block_idx()
    m_extent, n_extent = extents
    group_ends = cute.make_tensor(ends)
    begin = cute.Int32(0)
    if group > 0:
        begin = group_ends[group - 1]
    rows_x, rows_y = cute.domain_offset((0, begin), mX), cute.domain_offset((0, begin), mY)
    make_tile(
        (m, n, group), (m_extent, n_extent, cute.max(cute.Int32(0), group_ends[group] - begin)), None, dtype,
        acc_dtype, c_dtype, rows_x, rows_y, mC, mD, tiled_mma, piece_mma, ldmatrix_x, ldmatrix_y, copies_x, copies_y,
        copies_c, x_layout, y_layout, c_layout, epilogue,
    )  # fmt: skip


# ---------------------------------------------------------------- which cut, and the launches


def _target(a: Any) -> Any:
    """The record of the GPU where an array lies; of NumPy's, the first one of the family."""
    return entry.target_at(a) or cute.target(entry.WARPS)


def _cut(a: Any, tiles: Any, k: float, named: bool = False, bent: bool = False) -> Warps:
    """Choose the cut that takes the least time, by the model of `warps_plan`. tiles: how many a cut makes. k: the
    extent summed over, in elements of 16 bits. named: as of `cuts`. bent: whether there is an epilogue."""
    sms = entry.multiprocessors(a)

    def time(cut: Warps) -> float:
        return float(math.ceil(tiles(cut) / sms) * math.prod(cut.tile) * (k / 64 + START) / RATE[cut.tile])

    return min(cuts_of(_target(a), named, bent and entry.type_name(a) in FLOAT8), key=time)


def cuts_of(target: Any, named: bool, tight: bool) -> list[Warps]:
    """List the cuts that may be chosen. target, named: as of `cuts`. tight: whether there is an epilogue of float8's
    sums, which spilt registers in tiles of more than 64 rows."""
    return [cut for cut in cuts(target, named) if cut.tile[0] <= 64 or not tight]


def _checked(what: str, cut: Any) -> Warps:
    if not isinstance(cut, Warps):
        raise CuteError(
            f"{what}: cut is {entry.described(cut)}, and this GPU's tensor cores are a warp's: give a Warps"
        )
    check(cut)
    return cut


def plan(
    a: Any, b: Any, ends: Any, c: Any, cut: Any = None, epilogue: Any = None, rows: tuple[Any, Any] = (None, None)
) -> Any:  # fmt: skip
    """Plan the launch of a grouped product. a, b, ends, c: as `grouped_gemm` takes them. cut: a Warps, or None for the
    one that is thought best. epilogue, rows: as of `grouped.plan`."""
    what, k, (groups, n, _) = "grouped_gemm", a.shape[1], b.shape
    indices = [r for r in rows if r is not None]
    count = indices[0].shape[0] if indices else a.shape[0]
    check_kind(what, a)
    check_rows(what, "cp.async", a=a, b=b, out=c)
    along = lambda cut: math.ceil(n / cut.tile[1])  # noqa: E731
    tiles = lambda cut: (count / cut.tile[0] + min(groups, count) / 2) * along(cut)  # noqa: E731
    cut = _checked(
        what, cut or _cut(a, tiles, k * entry.element_type(a).width / 16, bool(indices), epilogue is not None)
    )
    columns, target = along(cut), _target(a)
    most = (count // cut.tile[0] + min(groups, count)) * columns
    given = epilogue.tensors if epilogue else []
    form, read, named = epilogue and epilogue.form, len(given), (rows[0] is not None, rows[1] is not None)

    def arguments(a: Any, b: Any, ends: Any, c: Any, *others: Any) -> Any:
        dtype, c_dtype = entry.element_type(a), entry.element_type(c)
        own = Epilogue.of(form, others[:read]) if form else None
        a, c, of_a, of_c, _ = named_of(a, c, named, others[read:])
        tA, tC, spread = tensor_of(a, 1), tensor_of(c, 1), own.spread if own else 1
        by_a, by_c = (None if r is None else by_index(t, r, count) for t, r in ((tA, of_a), (tC, of_c)))
        parts = of_tile(
            cut, target, dtype, c_dtype, (tA, 1), operand(b, dtype), (tC, 1), spread=spread, named=(by_a, by_c)
        )
        made = hook(own, count, n // spread, False, 8 if spread == 2 else None, groups)
        check_room(cut, target, made, parts[-1], cut.tile[1] // spread, c_dtype)
        return *parts, ends, cute.Int32(columns), made, (cute.Int32(n), cute.Int32(k))

    return _mapped(rows_of_groups, cut, (most, 1, 1), (a, b, ends, c, *given, *indices), arguments)


def plan_outer(x: Any, y: Any, ends: Any, c: Any, cut: Any = None) -> Any:
    """Plan the launch of a product over the rows of groups. x: (rows, M). y: (rows, N). ends: (groups,). c: (groups, M,
    N). cut: as of `plan`."""
    what, (groups, m, n) = "grouped_gemm", c.shape
    check_rows(what, "cp.async", a=x, gradient=y, result=c)
    count = lambda cut: (math.ceil(m / cut.tile[0]), math.ceil(n / cut.tile[1]), groups)  # noqa: E731
    cut = _checked(what, cut or _cut(x, lambda cut: math.prod(count(cut)), x.shape[0] / groups))
    target = _target(x)

    def arguments(x: Any, y: Any, ends: Any, c: Any) -> Any:
        dtype = entry.element_type(x)
        tX, tY = (swapped(tensor_of(t, 1)) for t in (x, y))
        parts = of_tile(cut, target, dtype, dtype, (tX, 0), (tY, 0), operand(c, dtype))
        return *parts, ends, Hook(), (cute.Int32(m), cute.Int32(n))

    return _mapped(over_rows_of_groups, cut, count(cut), (x, y, ends, c), arguments)


def _mapped(kernel: Any, cut: Warps, grid: tuple[int, ...], tensors: Any, arguments: Any) -> Any:
    return mapped(kernel_of(cut, kernel), grid, None, tensors, arguments, block=cut.threads, pdl=False)


def check_kind(what: str, a: Any) -> None:
    """Refuse elements that mma.sync does not multiply on this GPU."""
    target = entry.target_at(a)
    if entry.type_name(a) in FLOAT8 and not has_float8(target):
        raise CuteError(
            f"{what}: a is {entry.described(a)}; on {target.name} mma.sync multiplies bfloat16 and float16, and float8 "
            "on sm_89, sm_120 and sm_121: convert it, or leave out a cut that is a Warps"
        )
