# SPDX-License-Identifier: Apache-2.0
"""The norms of rows that a thread has no registers for, some vectors at a time: forward of such as are not on chip, and
backward of those for which it has none beside the sums of dweight and dbias. Where a row is not on chip either, these
are in global memory, each element's read and written for each row by the thread that has it."""

from __future__ import annotations

from typing import Any

import numba_cute as cute
from numba_cute import arch
from numba_cute.kernels.reduce import added
from numba_cute.kernels.rows.spread import CHUNK, rows_in, total
from numba_cute.seam import traced

__all__ = [
    "BOTH_SUMS", "at_once", "backward_of_far_rows", "backward_of_long_rows", "in_parts", "loaded",
    "part_of", "raised", "rounded", "some_of", "statistics_of_far", "sum_in_memory",
]  # fmt: skip

BOTH_SUMS = 16
"""Elements of a row for which a thread has registers, and for the sums of dweight and dbias too."""


@traced
def rounded(values: Any, tensor: Any) -> Any:
    """Round Float32 to the elements of `tensor`: y is of the sum that is given back, and that the backward sees."""
    return values.to(tensor.element_type).to(cute.Float32)


@traced
def raised(weights: Any, offset: Any) -> Any:
    """Give what is multiplied with: `weights`, to which the `offset` is added if there is one."""
    return weights if offset is None else weights + offset


def some_of(team, xs, residuals, row, first, count):
    """Some of a thread's vectors of a row in memory, x and residual together."""
    values = team.read_some(xs.kept, row, 0, first, count)
    if residuals is None:
        return values
    if residuals.kept is None:
        return values
    return rounded(values + team.read_some(residuals.kept, row, 0, first, count), residuals.tensor)


def loaded(team, xs, residuals, summed, row):
    """Give what a thread has of a row, x and residual together, which goes to summed too. It is loaded a vector at a
    time: all of x, and then all of the residual, have no registers."""
    x, more = xs.place(team, row), residuals.place(team, row)
    made = team.sums()
    for v in cute.range_constexpr(team.spread.vectors):
        s = together(team, x, more, residuals, v)
        if summed is not None:
            team.put_some(team.at(cute.make_tensor(summed), row), row, s, v, 1)
        made[None, v, None].store(s)
    return made[None, None, 0].load()


@traced
def at_once(spread: Any, residual: Any, *lines: Any) -> int:
    """Count the vectors of a row in shared memory that are taken at a time, with those of a residual and of lines, of
    which each may be None."""
    wide = [t for t in lines if t is not None and spread.vector * t.element_type.bytes > 16]
    return CHUNK if spread.far or not (wide or residual is not None) else 1


def together(team, x, more, residuals, v):
    """x + residual of vector v of a row, where they lie: the last row's, where there is no such row."""
    s = team.read_some(x, None, 0, v, 1) + team.read_some(more, None, 0, v, 1)
    return rounded(s, residuals.tensor)


def sum_in_memory(team, xs, residuals, summed, row, m, squared):
    """The sum of what a thread has of a row, x and residual together, which goes to summed too, if that is not None:
    less m, if that is not None, and of its squares, if asked for. The row stays in shared memory."""
    x, more = xs.place(team, row), residuals.place(team, row)
    sum = cute.Float32(0)
    for v in cute.range_constexpr(team.spread.vectors):
        s = together(team, x, more, residuals, v)
        if summed is not None:
            team.put_some(team.at(cute.make_tensor(summed), row), row, s, v, 1)
        if m is not None:
            s = team.there_only(s - m, row, v)
        sum = sum + total(s * s if squared else s)
    return sum


def statistics_of_far(team, xs, residuals, summed, mean, row, centred):
    """The mean, which is stored, and the sum of squares, of a row that is read from global memory for each."""
    m, sum, squares = cute.Float32(0), cute.Float32(0), cute.Float32(0)
    for first in cute.range(0, team.spread.vectors, CHUNK, unroll=1):
        values = some_of(team, xs, residuals, row, first, CHUNK)
        if summed is not None:
            team.put_some(team.at(cute.make_tensor(summed), row), row, values, first, CHUNK)
        sum, squares = sum + total(values), squares + total(values * values)
    if cute.const_expr(centred):
        m, squares = team.mean(team.reduce((sum,), added)[0]), cute.Float32(0)
        if mean is not None:
            team.write_one(cute.make_tensor(mean), row, m)
        for first in cute.range(0, team.spread.vectors, CHUNK, unroll=1):
            values = team.there_only(some_of(team, xs, residuals, row, first, CHUNK) - m, row, first)
            squares += total(values * values)
    return m, team.reduce((squares,), added)[0]


@traced
def in_parts(spread: Any, dweight: Any, dbias: Any) -> bool:
    """Say whether a thread has no registers for both sums and for a row of x and dy, which it then reads twice."""
    return dweight is not None and dbias is not None and spread.vector * spread.vectors > BOTH_SUMS


def part_of(team, x, dy, weight, row, m, r, offset, first, count):
    """h, dy, and g of some vectors of a row. x, dy: where it lies. m, r: its mean and rstd. first, count: of them."""
    h = (team.read_some(x, row, 0, first, count) - m) * r
    d = team.read_some(dy, row, 0, first, count)
    if weight is None:
        return h, d, d
    line = team.at(cute.make_tensor(weight), None)
    return h, d, d * raised(team.read_some(line, row, 0, first, count), offset)


def backward_in_parts(team, xs, dys, more, weight, dx, dw, db, row, m, r, offset):
    """Do a row of LayerNorm's backward, of which no more than some vectors are in registers at a time. dw, db:
    what `Team.sums` gave."""
    x, dy = xs.place(team, row), dys.place(team, row)
    dots, sums = cute.Float32(0), cute.Float32(0)
    for v in cute.range_constexpr(team.spread.vectors):
        h, d, g = part_of(team, x, dy, weight, row, m, r, offset, v, 1)
        dw[None, v, None].store(dw[None, v, None].load() + d * h)
        db[None, v, None].store(db[None, v, None].load() + d)
        dots, sums = dots + total(g * h), sums + total(g)
    dots, sums = team.reduce((dots, sums), added)
    dots, sums = team.mean(dots), team.mean(sums)
    others = more.tensor if more.tensor is None else more.place(team, row)
    count = min(team.spread.each, 8 // team.spread.vector)
    for first in cute.range(0, team.spread.vectors, count, unroll=1):
        h, _, g = part_of(team, x, dy, weight, row, m, r, offset, first, count)
        g = (g - h * dots - sums) * r
        if others is not None:
            g = g + team.read_some(others, row, 0, first, count)
        team.put_some(team.at(dx, row), row, g, first, count)
    team.meeting.sync()
    xs.refill(team, row)
    dys.refill(team, row)
    if others is not None:
        more.refill(team, row)


def backward_of_long_rows(team, xs, dys, more, weight, mean, rstd, dx, dweight, dbias, offset, meeting_place):
    """Do all rows of a team so. meeting_place: as of `Team.leave`."""
    dw, db = team.sums(), team.sums()
    row = team.first
    while row < team.end:
        m, r = team.read_one(cute.make_tensor(mean), row), team.read_one(cute.make_tensor(rstd), row)
        backward_in_parts(team, xs, dys, more, weight, rows_in(dx), dw, db, row, m, r, offset)
        row = team.following(row)
    team.leave(cute.make_tensor(dweight), dw[None, None, 0].load(), meeting_place)
    team.leave(cute.make_tensor(dbias), db[None, None, 0].load(), meeting_place)


@traced
def sums_of(team: Any, parts: Any) -> Any:
    """The pointer to the block's row of `parts`, dweight's or dbias' sums; None of None."""
    return None if parts is None else team.at(cute.make_tensor(parts)[arch.block_idx()[0], None], None)


def add_to(team, sums, values, first):
    """Add what a thread has of a row, from vector `first` on, to the sums, which it alone reads and writes."""
    if sums is not None:
        team.put_some(sums, None, values + team.read_some(sums, None, 0, first, CHUNK), first, CHUNK)


def cleared(team, sums):
    """Let this thread's sums be 0."""
    if sums is not None:
        for first in cute.range(0, team.spread.vectors, CHUNK, unroll=1):
            team.put_some(sums, None, cute.full((team.spread.vector, CHUNK), 0.0, cute.Float32), first, CHUNK)


def backward_of_far_rows(team, x, dy, weight, mean, rstd, dsummed, dx, dweight, dbias, offset, centred):
    """Do all rows of a team, of which a block is one: none of them is on chip, nor are the sums."""
    dw, db = sums_of(team, dweight), sums_of(team, dbias)
    cleared(team, dw)
    cleared(team, db)
    row = team.first
    while row < team.end:
        r, m = team.read_one(cute.make_tensor(rstd), row), cute.Float32(0)
        if cute.const_expr(centred):
            m = team.read_one(cute.make_tensor(mean), row)
        xs, dys = team.at(x, row), team.at(dy, row)
        dots, sums = cute.Float32(0), cute.Float32(0)
        for first in cute.range(0, team.spread.vectors, CHUNK, unroll=1):
            h, d, g = part_of(team, xs, dys, weight, row, m, r, offset, first, CHUNK)
            add_to(team, dw, d * h, first)
            add_to(team, db, d, first)
            dots, sums = dots + total(g * h), sums + total(g)
        dots, sums = team.reduce((dots, sums), added)
        dots, sums = team.mean(dots), team.mean(sums) if cute.const_expr(centred) else cute.Float32(0)
        for first in cute.range(0, team.spread.vectors, CHUNK, unroll=1):
            h, _, g = part_of(team, xs, dys, weight, row, m, r, offset, first, CHUNK)
            g = (g - h * dots - sums) * r
            if dsummed is not None:
                g = g + team.read_some(team.at(dsummed, row), row, 0, first, CHUNK)
            team.put_some(team.at(dx, row), row, g, first, CHUNK)
        row = team.following(row)
