# SPDX-License-Identifier: Apache-2.0
"""RMSNorm and LayerNorm, forward and backward, with a residual added and types converted on the way.

Forward, of each row: s = x + residual; y = (s - mean) * rstd * (offset + weight) + bias, where LayerNorm's mean is the
row's and RMSNorm's is 0, rstd = 1 / sqrt(mean((s - mean) ** 2) + eps), and offset is a number, mostly 0. All in
Float32, of one reading of x.

Backward: with h = (s - mean) * rstd and g = dy * (offset + weight), ds = (g - h * mean(g * h) - mean(g)) * rstd,
RMSNorm without the last mean; dweight = sum(dy * h) and dbias = sum(dy) over the rows. Each team keeps its sums of
these in registers over all its rows; a second kernel adds the teams'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute.kernels import entry
from numba_cute.kernels.reduce import added
from numba_cute.kernels.rows.norm_parts import (
    BOTH_SUMS,
    at_once,
    backward_of_far_rows,
    backward_of_long_rows,
    in_parts,
    loaded,
    raised,
    some_of,
    statistics_of_far,
    sum_in_memory,
)  # fmt: skip
from numba_cute.kernels.rows.plan import Habit, Spreading, matrix, rows_of, spread_rows, vector_of
from numba_cute.kernels.rows.spread import Stream, Team, optional, row_count, rows_in, total
from numba_cute.seam import CuteError

if TYPE_CHECKING:
    import torch

__all__ = ["layernorm", "rmsnorm"]


def held(team, xs, line):
    """Bring weight or bias to shared memory, where teams go through the matrix: there, for each of their rows."""
    if line is None:
        return None
    if xs.ring is None:
        return None
    return team.hold(line)


def line_of(team, place, line, row):
    """Read what a thread has of weight or bias: where `held` brought it, or from global memory."""
    if place is None:
        return team.read_line(line, row)
    return team.read(place, row, 0)


def finish(team, xs, residuals, weight, bias, w, b, offset, y, row, h, mean, rstd):
    """Store a row's results: of h, which is centred, in registers, or of the row in shared memory."""
    if xs.kept is None:
        values = h * rstd
        if weight is not None:
            values = values * raised(line_of(team, w, weight, row), offset)
        if bias is not None:
            values = values + line_of(team, b, bias, row)
        team.write(y, row, values)
    else:
        finish_in_memory(team, team.spread, xs, residuals, weight, bias, offset, y, row, mean, rstd)


def finish_in_memory(team, spread, xs, residuals, weight, bias, offset, y, row, mean, rstd):
    """The same, some vectors at a time, so that few registers hold more blocks of an SM."""
    lines = [None if line is None else cute.make_tensor(line) for line in (weight, bias)]
    each = at_once(spread, residuals.tensor, *lines)
    for first in cute.range(0, spread.vectors, each, unroll=1, unroll_full=not spread.far):
        count = each if spread.far else min(each, spread.vectors - first)
        values = (some_of(team, xs, residuals, row, first, count) - mean) * rstd
        if weight is not None:
            weights = team.read_some(team.at(cute.make_tensor(weight), None), row, 0, first, count)
            values = values * raised(weights, offset)
        if bias is not None:
            values = values + team.read_some(team.at(cute.make_tensor(bias), None), row, 0, first, count)
        team.put_some(team.at(y, row), row, values, first, count)


def statistics(team, xs, residuals, summed, mean, row, centred):
    """The mean of a row, 0 if it is not centred, which is stored, the sum of its squares, and what a thread has of it
    less the mean; None of a row that it reads once more. x + residual goes to summed."""
    m = cute.Float32(0)
    if cute.const_expr(team.spread.far):
        m, squares = statistics_of_far(team, xs, residuals, summed, mean, row, centred)
        return m, squares, None
    if cute.const_expr(residuals.kept is not None):
        squares = sum_in_memory(team, xs, residuals, summed, row, None, not centred)
        squares = team.reduce((squares,), added)[0]
        if cute.const_expr(centred):
            m = team.mean(squares)
            squares = sum_in_memory(team, xs, residuals, None, row, m, True)
            squares = team.reduce((squares,), added)[0]
            if mean is not None:
                team.write_one(cute.make_tensor(mean), row, m)
        return m, squares, None
    s = xs.take(team, row, 0) if residuals.tensor is None else loaded(team, xs, residuals, summed, row)
    if cute.const_expr(centred):
        m = team.mean(team.reduce((total(s),), added)[0])
        s = team.there_only((s if xs.kept is None else team.read(xs.kept, row, 0)) - m, row, 0)
        if mean is not None:
            team.write_one(cute.make_tensor(mean), row, m)
    return m, team.reduce((total(s * s),), added)[0], s


def forward(x, residual, weight, bias, y, summed, mean, rstd, eps, offset, centred, spread):
    """Normalise the rows of x (M, N), or of x + residual, which goes to summed; mean and rstd (M,) are for the
    backward. All but x, y and eps may be None."""
    team = Team.create(spread, row_count(x), 1)
    xs, residuals = Stream.create(team, rows_in(x)), Stream.create(team, optional(residual))
    xs.open(team)
    residuals.open(team)
    team.begin()
    xs.start(team)
    residuals.start(team)
    w, b = held(team, xs, weight), held(team, xs, bias)
    row = team.first
    while row < team.end:
        m, squares, s = statistics(team, xs, residuals, summed, mean, row, centred)
        xs.refill(team, row)
        residuals.refill(team, row)
        r = cute.math.rsqrt(team.mean(squares) + eps, fastmath=True)
        if rstd is not None:
            team.write_one(cute.make_tensor(rstd), row, r)
        finish(team, xs, residuals, weight, bias, w, b, offset, rows_in(y), row, s, m, r)
        row = team.following(row)


def backward(dy, x, weight, mean, rstd, dsummed, dx, dweight, dbias, offset, centred, spread):
    """From dy (M, N), and x as it was normalised, to dx (to which dsummed is added), and to each block's part of
    dweight and dbias (blocks, N) in Float32. All of weight, mean, dsummed, dweight, dbias and offset may be None."""
    team = Team.create(spread, row_count(x), 2)
    xs, dys = Stream.create(team, rows_in(x)), Stream.create(team, rows_in(dy))
    more = Stream.create(team, optional(dsummed))
    adds = cute.const_expr(spread.teams > 1 and (dweight is not None or dbias is not None))
    meeting_place = team.shared_row() if adds else None
    xs.open(team)
    dys.open(team)
    more.open(team)
    team.begin()
    xs.start(team)
    dys.start(team)
    more.start(team)
    if cute.const_expr(spread.far):
        given = rows_in(x), rows_in(dy), weight, mean, rstd, more.tensor, rows_in(dx)
        backward_of_far_rows(team, *given, dweight, dbias, offset, centred)
        return
    if cute.const_expr(in_parts(team.spread, dweight, dbias)):
        backward_of_long_rows(team, xs, dys, more, weight, mean, rstd, dx, dweight, dbias, offset, meeting_place)
        return
    dw, db = team.zeros(), team.zeros()
    row = team.first
    while row < team.end:
        r = team.read_one(cute.make_tensor(rstd), row)
        h = xs.take(team, row, 0) * r
        if cute.const_expr(centred):
            h = h - team.read_one(cute.make_tensor(mean), row) * r
        g = dys.take(team, row, 0)
        if dweight is not None:
            dw = dw + g * h
        if dbias is not None:
            db = db + g
        if weight is not None:
            g = g * raised(team.read_line(weight, row), offset)
        sums = (total(g * h), total(g)) if cute.const_expr(centred) else (total(g * h),)
        sums = team.reduce(sums, added)
        xs.refill(team, row)
        dys.refill(team, row)
        g = g - h * team.mean(sums[0])
        if cute.const_expr(centred):
            g = g - team.mean(sums[1])
        g = g * r
        if dsummed is not None:
            g = g + more.take(team, row, 0)
            team.meeting.sync()
            more.refill(team, row)
        team.write(rows_in(dx), row, g)
        row = team.following(row)
    if dweight is not None:
        team.leave(cute.make_tensor(dweight), dw, meeting_place)
    if dbias is not None:
        team.leave(cute.make_tensor(dbias), db, meeting_place)


@cuda.jit
def columns(parts, out):
    """Add up the rows of parts (P, N) into out (N,): each warp takes 32 columns and every eighth row."""
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    lane, warp = tidx % 32, tidx // 32
    sums = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout((32, 8)), 16)
    column = bidx * 32 + lane
    mine = cute.Float32(0)
    if column < parts.shape[1]:
        for row in range(warp, parts.shape[0], 8):
            mine += parts[row, column]
    sums[lane, warp] = mine
    cute.arch.sync_threads()
    if warp == 0 and column < parts.shape[1]:
        cute.make_tensor(out)[column] = sums[lane, None].load().reduce(cute.ReductionOp.ADD, 0.0)


# How they are launched, for arrays of torch's or NumPy's. Matrices are (M, N); what is absent is None.

FORWARD = Habit(again=True, hold=True)
BACKWARD = Habit(elements=32, whole=True)
FULL_BACKWARD = Habit(elements=BOTH_SUMS, whole=True)
FULL_MOST = 128 * 1024
"""Elements of rows that are spread so: a cluster does not hold longer ones."""
RAGGED = 24
"""Elements of a row for which a thread has registers, each in one of its own, where it has to ask which are there."""


def number(offset: float) -> Any:
    """Give an offset as a kernel's argument: None, if it is 0."""
    return np.float32(offset) if offset else None


def forward_work(
    x: Any, residual: Any, weight: Any, bias: Any, y: Any, summed: Any, mean: Any, rstd: Any, eps: float,
    centred: bool, offset: float = 0.0,
) -> entry.Work:  # fmt: skip
    """Give the work of `forward`, whose arguments these are."""
    chosen = spread_rows("norm", [x, residual], [weight, bias, y, summed], habit=FORWARD)
    return chosen.work(forward, (np.float32(eps), number(offset), cute.Constexpr(centred), chosen.spread))


def backward_works(
    dy: Any, x: Any, weight: Any, dsummed: Any, dx: Any, centred: bool, offset: float = 0.0
) -> tuple[entry.Work, int, entry.Work]:  # fmt: skip
    """Give the work of `backward` of such arrays, how many rows its dweight and dbias have, and the work of `columns`,
    which adds them up."""
    arrays = [a for a in (dy, x, dsummed, weight, dx) if a is not None]
    wide = any(a.itemsize > 2 for a in arrays) or vector_of(x.shape[-1], arrays) < 8
    full = centred or dsummed is not None and wide  # of numbers that a thread keeps, each in a register
    fewer = x.shape[-1] <= FULL_MOST

    def spread(habit: Habit) -> Spreading:
        return spread_rows("norm backward", [x, dy, dsummed], [weight, dx], habit=habit)

    chosen = spread(FULL_BACKWARD if full and fewer else BACKWARD)
    if wide and fewer and not chosen.spread.whole and chosen.spread.held > RAGGED:
        other = spread(FULL_BACKWARD)
        chosen = chosen if other.spread.far else other
    work = chosen.work(backward, (number(offset), cute.Constexpr(centred), chosen.spread))
    return work, chosen.groups, entry.Work(columns, -(-x.shape[-1] // 32), 256)


# The entries.


def _forward_plan(x: Any, residual: Any, weight: Any, bias: Any, y: Any, summed: Any, mean: Any, rstd: Any,
                  eps: float, offset: float, centred: bool, saved: bool, dtype: Any) -> Any:  # fmt: skip
    what = "layernorm" if centred else "rmsnorm"

    def given(
        x: Any, residual: Any, weight: Any, bias: Any, y: Any, summed: Any, mean: Any, rstd: Any
    ) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any]:  # fmt: skip
        summed = None if residual is None else matrix(summed)
        kept = (mean.view(-1) if saved and centred else None, rstd.view(-1) if saved else None)
        return rows_of(x), rows_of(residual), weight, bias, matrix(y, what), summed, *kept

    launch = forward_work(*given(x, residual, weight, bias, y, summed, mean, rstd), eps, centred, offset).launcher()
    return lambda *tensors: launch(*given(*tensors))


def _forward_results(
    x: torch.Tensor, residual: torch.Tensor | None, weight: torch.Tensor | None, bias: torch.Tensor | None,
    eps: float, offset: float, centred: bool, saved: bool, dtype: torch.dtype | None,
) -> Any:  # fmt: skip
    """Check the arguments, and make y, summed, mean and rstd; what is not asked for has no elements."""
    what = "layernorm" if centred else "rmsnorm"
    entry.check(what, "x", x, dtypes=entry.FLOATS, least_rank=1)
    if not x.shape[-1]:
        raise CuteError(f"{what}: the rows of x, {entry.described(x)}, have no elements: give some")
    entry.check(what, "residual", residual, dtypes=entry.FLOATS, shape=x.shape, like=x, optional=True)
    for name, line in (("weight", weight), ("bias", bias)):
        entry.check(what, name, line, dtypes=entry.FLOATS, shape=x.shape[-1:], like=x, optional=True)
    if offset and weight is None:
        raise CuteError(f"{what}: offset {offset:g} is added to weight, which is None: give one, or leave offset out")
    rows = x.shape[:-1] if saved else (0,)
    float32 = entry.pytorch().float32
    return (
        x.new_empty(x.shape, dtype=dtype or x.dtype),
        x.new_empty((0,)) if residual is None else x.new_empty(x.shape, dtype=residual.dtype),
        x.new_empty(rows if centred else (0,), dtype=float32), x.new_empty(rows, dtype=float32),
    )  # fmt: skip


def _backward_plan(dy: Any, x: Any, weight: Any, mean: Any, rstd: Any, dsummed: Any, dx: Any, dweight: Any, dbias: Any,
                   offset: float, centred: bool, weighted: bool, biased: bool) -> Any:  # fmt: skip
    given = rows_of(dy), rows_of(x), weight, rows_of(dsummed), matrix(dx)
    work, groups, adding = backward_works(*given, centred, offset)
    launch, add, length = work.launcher(), adding.launcher(), x.shape[-1]
    torch = entry.pytorch()

    def run(
        dy: Any, x: Any, weight: Any, mean: Any, rstd: Any, dsummed: Any, dx: Any, dweight: Any, dbias: Any
    ) -> None:
        dw = torch.empty((groups, length), dtype=torch.float32, device=x.device) if weighted else None
        db = torch.empty((groups, length), dtype=torch.float32, device=x.device) if biased else None
        launch(rows_of(dy), rows_of(x), weight, mean.view(-1) if centred else None, rstd.view(-1), rows_of(dsummed),
               matrix(dx), dw, db)  # fmt: skip
        if weighted:
            add(dw, dweight)
        if biased:
            add(db, dbias)

    return run


def _backward_results(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor | None, mean: torch.Tensor, rstd: torch.Tensor,
    dsummed: torch.Tensor | None, offset: float, centred: bool, weighted: bool, biased: bool,
) -> Any:  # fmt: skip
    """Make dx, dweight, and dbias, whose type may be another one than dweight's: it is rounded to that later."""
    line = x.shape[-1:]
    return (
        x.new_empty(x.shape),
        x.new_empty(line if weighted else (0,), dtype=x.dtype if weight is None else weight.dtype),
        x.new_empty(line if biased else (0,), dtype=entry.pytorch().float32),
    )


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
    x, residual, weight, bias, _, ctx.offset, ctx.centred, _, _ = inputs
    _, summed, mean, rstd = output
    ctx.types = x.dtype, None if residual is None else residual.dtype, None if bias is None else bias.dtype
    ctx.save_for_backward(x if residual is None else summed, weight, mean, rstd)
    ctx.set_materialize_grads(False)


def _gradients(ctx: Any, dy: Any, dsummed: Any, dmean: Any, drstd: Any) -> Any:
    s, weight, mean, rstd = ctx.saved_tensors
    kind, residual_kind, bias_kind = ctx.types
    if residual_kind is None:  # then there was no sum: what is said of its gradient has no elements
        dsummed = None
    needs = ctx.needs_input_grad
    if dy is None:
        dx, dweight, dbias = dsummed, None, None
    else:
        weighted, biased = weight is not None and needs[2], bias_kind is not None and needs[3]
        dsummed = None if dsummed is None else dsummed.contiguous()
        dx, dweight, dbias = BACKWARD_ENTRY(
            dy.contiguous(), s, weight, mean, rstd, dsummed, ctx.offset, ctx.centred, weighted, biased
        )
        dweight, dbias = dweight if weighted else None, dbias.to(bias_kind) if biased else None
    if dx is None:
        return (None,) * 9
    return dx.to(kind), None if residual_kind is None else dx.to(residual_kind), dweight, dbias, *(None,) * 5


FORWARD_ENTRY = entry.Operator(
    "numba_cute::norm", _forward_plan, _forward_results, count=4, backward=_gradients, setup_context=_keep
)
BACKWARD_ENTRY = entry.Operator("numba_cute::norm_backward", _backward_plan, _backward_results, count=3)


def _normalised(
    x: Any, weight: Any, bias: Any, residual: Any, eps: float, offset: float, centred: bool, dtype: Any, out: Any
) -> Any:
    saved = any(t is not None and t.requires_grad for t in (x, residual, weight, bias))
    into = None if out is None else (out, None, None, None)
    made = FORWARD_ENTRY(x, residual, weight, bias, float(eps), float(offset), centred, saved, dtype, into=into)
    return made[0] if residual is None else made[:2]


def rmsnorm(
    x: Any, weight: Any = None, *, residual: Any = None, eps: float = 1e-6, offset: float = 0.0, dtype: Any = None,
    out: Any = None,
) -> Any:  # fmt: skip
    """Normalise the last mode of `x` by its root mean square: x / sqrt(mean(x ** 2) + eps) * (offset + weight), in
    Float32.

    x: a tensor of torch's on the GPU, of bfloat16, float16 or float32, its last mode contiguous; heads of packed q, k
    and v, (…, tokens, heads, N) of any strides, are read where they lie. weight: (N,), of any of these types, or None.
    residual: a tensor like x, of any of these types, which is added first; the result is then (y, x + residual), the
    sum of the residual's type. offset: a number that is added to weight, as 1.0 where a model keeps weights around 0.
    dtype: the result's, torch's; x's by default. out: where to write it, where no gradient is asked for; it may be x.
    CuteError says which argument is not so. With gradients, and under torch.compile.

    >>> import torch
    >>> x = torch.arange(8.0).reshape(2, 4)
    >>> with cute.simulation():
    ...     y, total = cute.kernels.rmsnorm(x, residual=torch.ones(2, 4))
    >>> torch.equal(total, x + 1), torch.allclose(y, total / (total**2).mean(-1, keepdim=True).sqrt())
    (True, True)
    """
    return _normalised(x, weight, None, residual, eps, offset, False, dtype, out)


def layernorm(
    x: Any, weight: Any = None, bias: Any = None, *, residual: Any = None, eps: float = 1e-5, offset: float = 0.0,
    dtype: Any = None, out: Any = None,
) -> Any:  # fmt: skip
    """Normalise the last mode of `x`: (x - mean) / sqrt(variance + eps) * (offset + weight) + bias, in Float32.

    bias: (N,) as weight, or None. x, weight, residual, offset, dtype, out, and what it gives: as of `rmsnorm`; eps:
    added to the variance.

    >>> import torch
    >>> x = torch.arange(8.0).reshape(2, 4)
    >>> with cute.simulation():
    ...     y = cute.kernels.layernorm(x)
    >>> torch.allclose(y, torch.nn.functional.layer_norm(x, (4,)), atol=1e-5)
    True
    """
    return _normalised(x, weight, bias, residual, eps, offset, True, dtype, out)
