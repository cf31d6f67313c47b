# SPDX-License-Identifier: Apache-2.0
"""Softmax and cross-entropy, forward and backward.

One reduction gives a row's greatest value m and the sum of exp(x - m): a thread takes both of its own elements, and
two parts of a row join as `reduce.joined` says. All in Float32, of one reading of x.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import numba_cute as cute
from numba_cute import arch
from numba_cute.kernels import entry
from numba_cute.kernels.reduce import LEAST, added, exp, greatest, joined, over_lanes
from numba_cute.kernels.rows.plan import Habit, as_rows, of_rows, separate, spread_rows
from numba_cute.kernels.rows.spread import CHUNK, Stream, Team, row_count, rows_in, total
from numba_cute.seam import CuteError, traced

if TYPE_CHECKING:
    import torch

__all__ = ["cross_entropy", "softmax"]

ABSENT = float("-inf")
NAN = float("nan")
LN_2 = 0.6931471805599453


def part_of(team, xs, row, finite):
    """A thread's part of a row: exp(x - most) of its elements, if they stay in registers, its greatest value, and the
    sum of these powers. finite: whether the greatest value is a number where elements are infinite: the sum then is
    infinite too, and NaN where one is NaN."""
    if xs.kept is None:
        values = xs.take(team, row, ABSENT)
        most = values.reduce(cute.ReductionOp.MAX, LEAST)  # a number, even where all are minus infinity
        if cute.const_expr(finite):
            most = arch.fmin(most, -LEAST)
        powers = exp(values - most)
        return powers, most, total(powers)
    return part_in_memory(team, team.spread, xs, row, finite)


def part_in_memory(team, spread, xs, row, finite):
    """The same of a row that lies in memory: some vectors at a time, so that few registers hold more blocks of
    an SM."""
    xs.wait()
    most, powers = cute.Float32(LEAST), cute.Float32(0)
    for first in cute.range(0, spread.vectors, CHUNK, unroll=1, unroll_full=not spread.far):
        values = team.read_some(xs.kept, row, ABSENT, first, spread.chunk(first))
        now = values.reduce(cute.ReductionOp.MAX, most)
        if cute.const_expr(finite):
            now = arch.fmin(now, -LEAST)
        powers = powers * exp(most - now) + total(exp(values - now))
        most = now
    return None, most, powers


def whole_of(team, most, part):
    """Join the parts of a row's threads. All threads of the team."""
    lanes = cute.const_expr(min(32, team.spread.threads))
    top = over_lanes((most,), greatest, lanes)[0]  # two rounds of shuffles: in one, each step has two exponentials
    part = over_lanes((part * exp(most - top),), added, lanes)[0]
    return team.meeting.reduce((top, part), joined, team.thread)


def finish(team, xs, y, row, powers, most, whole):
    """Store a row's results: of a thread's powers, or of the row in memory."""
    if xs.kept is None:
        team.write(y, row, powers * (exp(most - whole[0]) * arch.rcp_approx(whole[1])))
    else:
        finish_in_memory(team, team.spread, xs, y, row, whole)


def finish_in_memory(team, spread, xs, y, row, whole):
    """The same, some vectors at a time."""
    scale = arch.rcp_approx(whole[1])
    for first in cute.range(0, spread.vectors, CHUNK, unroll=1, unroll_full=not spread.far):
        count = spread.chunk(first)
        values = exp(team.read_some(xs.kept, row, ABSENT, first, count) - whole[0])
        team.put_some(team.at(y, row), row, values * scale, first, count)


def softmax_forward(x, y, spread):
    """y = softmax of each row of x (M, N)."""
    team = Team.create(spread, row_count(x), 2)
    xs, ys = Stream.create(team, rows_in(x)), rows_in(y)
    xs.open(team)
    team.begin()
    xs.start(team)
    row = team.first
    while row < team.end:
        powers, most, part = part_of(team, xs, row, False)
        whole = whole_of(team, most, part)
        xs.refill(team, row)
        finish(team, xs, ys, row, powers, most, whole)
        row = team.following(row)


def product_of(team, spread, ys, dys, row):
    """A thread's part of a row of y and of dy, if that stays in registers, and the sum of its products."""
    if ys.kept is None:
        p, g = ys.take(team, row, 0), dys.take(team, row, 0)
        return p, g, total(p * g)
    ys.wait()
    dys.wait()
    sum = cute.Float32(0)
    for first in cute.range(0, spread.vectors, CHUNK, unroll=1, unroll_full=not spread.far):
        count = spread.chunk(first)
        sum += total(team.read_some(ys.kept, row, 0, first, count) * team.read_some(dys.kept, row, 0, first, count))
    return None, None, sum


def finish_backward(team, ys, dys, dx, row, p, g, dot):
    """Store a row's gradients: of what is in registers, or of the rows in memory, some vectors at a time, by a
    loop, so that no registers hold those of several rounds."""
    if ys.kept is None:
        team.write(dx, row, p * (g - dot))
    else:
        count = team.spread.each
        for first in cute.range(0, team.spread.vectors, count, unroll=1):
            p, g = team.read_some(ys.kept, row, 0, first, count), team.read_some(dys.kept, row, 0, first, count)
            team.put_some(team.at(dx, row), row, p * (g - dot), first, count)


def softmax_backward(dy, y, dx, spread):
    """dx = y * (dy - sum(dy * y)) of each row."""
    team = Team.create(spread, row_count(y), 1)
    ys, dys = Stream.create(team, rows_in(y)), Stream.create(team, rows_in(dy))
    ys.open(team)
    dys.open(team)
    team.begin()
    ys.start(team)
    dys.start(team)
    row = team.first
    while row < team.end:
        p, g, part = product_of(team, spread, ys, dys, row)
        dot = team.reduce((part,), added)[0]
        ys.refill(team, row)
        dys.refill(team, row)
        finish_backward(team, ys, dys, rows_in(dx), row, p, g, dot)
        row = team.following(row)


@traced
def log_of(whole: Any) -> Any:
    """The logarithm of the sum of a row's exponentials, of its greatest value and the sum of what is relative to it."""
    return whole[0] + cute.math.log2(whole[1], fastmath=True) * LN_2


def mean_of(team, spread, xs, row):
    """The mean of a row's elements, of which each is divided first, so that the greatest ones have one. All threads of
    the team, before the row's place is filled again."""
    part = cute.Float32(0)
    if xs.kept is None:
        part = total(team.mean(xs.take(team, row, 0)))
    else:
        for first in cute.range(0, spread.vectors, CHUNK, unroll=1, unroll_full=not spread.far):
            count = spread.chunk(first)
            part += total(team.mean(team.read_some(xs.kept, row, 0, first, count)))
    return team.reduce((part,), added)[0]


@traced
def loss_of(log: Any, logit: Any, mean: Any, smoothing: Any, z: Any) -> Any:
    """A row's loss: of the target's logit, of all columns' mean if there is smoothing, and of the square of `log`."""
    loss = log - logit
    if smoothing is not None:
        loss = loss * (1.0 - smoothing) + (log - mean) * smoothing
    return loss if z is None else loss + log * log * z


def cross_entropy_forward(x, target, loss, lse, ignored, smoothing, z, spread):
    """loss = lse - x[target] of each row of x (M, N), and lse = log(sum(exp(x))), (M,), which may be None. Where target
    (M,) is `ignored` the loss is 0; where it is not a column, NaN. smoothing: the part of the loss that is lse -
    mean(x) instead, or None. z: of lse ** 2, which is added, or None."""
    team = Team.create(spread, row_count(x), 2)
    tx = rows_in(x)
    xs = Stream.create(team, tx)
    targets, losses = cute.make_tensor(target), cute.make_tensor(loss)
    xs.open(team)
    team.begin()
    xs.start(team)
    row = team.first
    while row < team.end:
        tells = team.thread == 0 and team.rank == 0 and row < team.rows
        at, logit, inside = cute.Int64(ignored), cute.Float32(NAN), False
        if tells:
            at = cute.Int64(targets[row])
            inside = at >= 0 and at < spread.length
            if cute.const_expr(spread.cluster > 1 or spread.stages == 0):
                if inside:
                    logit = cute.Float32(tx[row, at])  # on its way while the row is reduced
        _, most, part = part_of(team, xs, row, True)
        mean = None if smoothing is None else mean_of(team, spread, xs, row)
        whole = whole_of(team, most, part)
        if xs.buffers is not None:
            if cute.const_expr(spread.cluster == 1):
                if inside:
                    logit = xs.element(at)
        xs.refill(team, row)
        if tells:
            log = log_of(whole)
            losses[row] = cute.Float32(0) if at == ignored else loss_of(log, logit, mean, smoothing, z)
            if lse is not None:
                cute.make_tensor(lse)[row] = log
        row = team.following(row)


def gradient_of(team, logits, at, first, log, smoothing, z, cap):
    """The derivatives of a row's loss by this thread's vectors from `first` on; of capped ones by what they were."""
    powers = exp(logits - log)
    if smoothing is None:
        made = team.less(powers, 1, at, first)
    else:
        bent = powers * (1.0 + 2.0 * z * log) - smoothing * (1.0 / team.spread.length)
        made = team.less(bent, 1.0 - smoothing, at, first)
    if cap is None:
        return made
    part = logits * (1.0 / cap)
    return made * (1.0 - part * part)


def finish_some(team, xs, dx, row, at, first, count, log, scale, smoothing, z, cap):
    """Store a row's gradients by `count` vectors of this thread's from `first` on, of a row in memory."""
    values = team.read_some(xs.kept, row, ABSENT, first, count)
    team.put_some(
        team.at(dx, row), row, gradient_of(team, values, at, first, log, smoothing, z, cap) * scale, first, count
    )


def finish_losses(team, spread, xs, dx, row, at, log, scale, smoothing, z, cap):
    """Store a row's gradients: of the row when it comes to registers, or in memory, some vectors at a time: with
    smoothing or z in a loop, since there are no registers for all that ptxas would bring at once."""
    if xs.kept is None:
        values = xs.take(team, row, ABSENT)
        team.meeting.sync()
        xs.refill(team, row)
        team.write(dx, row, gradient_of(team, values, at, 0, log, smoothing, z, cap) * scale)
    elif smoothing is None or spread.far:
        xs.wait()
        for first in cute.range(0, spread.vectors, CHUNK, unroll=1, unroll_full=not spread.far):
            finish_some(team, xs, dx, row, at, first, spread.chunk(first), log, scale, smoothing, z, cap)
    else:
        xs.wait()
        rest = spread.vectors % CHUNK
        for first in cute.range(0, spread.vectors - rest, CHUNK, unroll=1):
            finish_some(team, xs, dx, row, at, first, CHUNK, log, scale, smoothing, z, cap)
        if rest > 0:
            finish_some(team, xs, dx, row, at, spread.vectors - rest, rest, log, scale, smoothing, z, cap)


def cross_entropy_backward(x, target, lse, dloss, dx, ignored, smoothing, z, cap, spread):
    """dx = (exp(x - lse) - [column == target]) * dloss of each row; 0 where target is `ignored`, NaN where it is no
    column. dx may be x. smoothing, z: as of `cross_entropy_forward`, both numbers or None. cap: None, or of logits
    cap * tanh(y / cap) the number, by whose y the derivatives are."""
    team = Team.create(spread, row_count(x), 1)
    xs = Stream.create(team, rows_in(x))
    targets = cute.make_tensor(target)
    xs.open(team)
    team.begin()
    xs.start(team)
    row = team.first
    while row < team.end:
        target_of_row, log = cute.Int64(targets[team.real(row)]), team.read_one(cute.make_tensor(lse), row)
        scale = team.read_one(cute.make_tensor(dloss), row)
        if target_of_row == ignored:
            scale = cute.Float32(0)
        elif target_of_row < 0 or target_of_row >= spread.length:
            scale = cute.Float32(NAN)  # as the loss is
        at = cute.Int32(target_of_row)
        finish_losses(team, spread, xs, rows_in(dx), row, at, log, scale, smoothing, z, cap)
        row = team.following(row)


# How they are launched, for arrays of torch's or NumPy's. Matrices are (M, N); lse may be None.

FORWARD = Habit("softmax", again=True)
BACKWARD = Habit(elements=32, again=True)
LOGITS = Habit(again=True)
LOSSES = Habit("cross_entropy", again=True)


def softmax_work(x: Any, y: Any) -> entry.Work:
    """Give the work of `softmax`, whose arguments these are."""
    chosen = spread_rows("softmax", [x], [y], habit=FORWARD)
    return chosen.work(softmax_forward, (chosen.spread,))


def softmax_backward_work(dy: Any, y: Any, dx: Any) -> entry.Work:
    """Give the work of `softmax_backward`, whose arguments these are."""
    chosen = spread_rows("softmax backward", [y, dy], [dx], habit=BACKWARD)
    return chosen.work(softmax_backward, (chosen.spread,))


def cross_entropy_work(
    x: Any, target: Any, loss: Any, lse: Any, ignored: int, smoothing: float = 0.0, z: float = 0.0, over: bool = False
) -> entry.Work:  # fmt: skip
    """Give the work of `cross_entropy_forward`, whose arguments these are; what is 0 is not there."""
    chosen = spread_rows("cross_entropy", [x], [], habit=LOSSES)
    numbers = (np.float32(smoothing) if smoothing else None, np.float32(z) if smoothing or z else None)
    return chosen.work(cross_entropy_forward, (np.int64(ignored), *numbers, chosen.spread))


def cross_entropy_backward_work(
    x: Any, target: Any, lse: Any, dloss: Any, dx: Any, ignored: int, smoothing: float = 0.0, z: float = 0.0,
    cap: float = 0.0,
) -> entry.Work:  # fmt: skip
    """Give the work of `cross_entropy_backward`, whose arguments these are; where both smoothing and z are 0, neither
    is there, and no cap that is."""
    chosen = spread_rows("cross_entropy backward", [x], [dx], habit=LOGITS)
    numbers = (np.float32(smoothing), np.float32(z)) if smoothing or z else (None, None)
    capped = np.float32(cap) if cap else None
    return chosen.work(cross_entropy_backward, (np.int64(ignored), *numbers, capped, chosen.spread))


# The entries.


def _like(x: torch.Tensor) -> Any:
    entry.check("softmax", "x", x, dtypes=entry.FLOATS, least_rank=1)
    return x.new_empty(x.shape)


def _softmax_gradients(ctx: Any, dy: Any) -> Any:
    (y,) = ctx.saved_tensors
    return SOFTMAX_BACKWARD(dy.contiguous(), y)


def _keep_result(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(output)


def _like_both(dy: torch.Tensor, y: torch.Tensor) -> Any:
    return y.new_empty(y.shape)


def _losses(x: torch.Tensor, target: torch.Tensor, ignored: int, smoothing: float, z: float, over: bool) -> Any:
    entry.check("cross_entropy", "x", x, dtypes=entry.FLOATS, least_rank=1)
    entry.check("cross_entropy", "target", target, dtypes=("int64", "int32"), shape=x.shape[:-1], last=False, like=x)
    float32 = entry.pytorch().float32
    return x.new_empty(x.shape[:-1], dtype=float32), x.new_empty(x.shape[:-1], dtype=float32)


def _keep_logits(ctx: Any, inputs: Any, output: Any) -> None:
    x, target, *ctx.options, ctx.over = inputs
    ctx.save_for_backward(x, target, output[1])
    ctx.mark_non_differentiable(output[1])


def _cross_entropy_gradients(ctx: Any, dloss: Any, _: Any) -> Any:
    x, target, lse = ctx.saved_tensors
    given = x, target, lse, dloss.float().contiguous(), *ctx.options
    return _written_over(x, given) if ctx.over else CROSS_ENTROPY_BACKWARD(*given), *(None,) * 5


def _written_over(x: Any, given: Any) -> Any:
    """Write the gradient over the logits `x`. Their version counts up, so that autograd refuses whoever kept them for a
    gradient of his own and comes later, this operator too."""
    torch = entry.pytorch()
    if torch.is_grad_enabled():
        raise CuteError(
            "cross_entropy: inplace_backward=True, and derivatives of the gradient are asked for (create_graph=True), "
            "which has taken the place of the logits: leave inplace_backward out"
        )
    CROSS_ENTROPY_BACKWARD.planned((*given[:4], x), given[4:])
    torch.autograd.graph.increment_version(x)
    return x.detach()


def _check_over(x: Any) -> None:
    """Refuse logits over which a gradient cannot be written."""
    torch, why = entry.pytorch(), ""
    if torch.compiler.is_compiling():
        raise CuteError(
            "cross_entropy: inplace_backward=True under torch.compile, which places gradients: leave it out"
        )
    if not isinstance(x, torch.Tensor) or not (x.requires_grad and torch.is_grad_enabled()):
        return
    if (x if x._base is None else x._base).is_leaf:
        why = "the memory of a leaf, whose values would be lost: give what an operator has made of it"
    elif not separate(x):
        why = "of which elements share memory: give x.contiguous()"
    elif as_rows(x.detach()) is None:
        why = "whose rows do not lie as those of a matrix: give x.contiguous()"
    if why:
        raise CuteError(f"cross_entropy: inplace_backward=True, and x is {entry.described(x)}, {why}, or leave it out")


def _logits(
    x: torch.Tensor, target: torch.Tensor, lse: torch.Tensor, dloss: torch.Tensor, ignored: int, smoothing: float,
    z: float,
) -> Any:  # fmt: skip
    return x.new_empty(x.shape)


SOFTMAX_BACKWARD = entry.Operator(
    "numba_cute::softmax_backward", of_rows("softmax backward", softmax_backward_work, (True, True, True)), _like_both
)  # fmt: skip
SOFTMAX = entry.Operator(
    "numba_cute::softmax", of_rows("softmax", softmax_work, (True, True)), _like, backward=_softmax_gradients,
    setup_context=_keep_result,
)  # fmt: skip
CROSS_ENTROPY_BACKWARD = entry.Operator(
    "numba_cute::cross_entropy_backward",
    of_rows("cross_entropy backward", cross_entropy_backward_work, (True, False, False, False, True)), _logits,
)  # fmt: skip
CROSS_ENTROPY = entry.Operator(
    "numba_cute::cross_entropy", of_rows("cross_entropy", cross_entropy_work, (True, False, False, False), 2), _losses,
    count=2, backward=_cross_entropy_gradients, setup_context=_keep_logits,
)  # fmt: skip


def softmax(x: Any, *, out: Any = None) -> Any:
    """Compute the softmax of the last mode of `x`, in Float32.

    x: a tensor of torch's on the GPU, of bfloat16, float16 or float32, its last mode contiguous. out: where to write
    the result, where no gradient is asked for; it may be x. CuteError says which argument is not so. With gradients,
    and under torch.compile.

    >>> import torch
    >>> x = torch.tensor([[0.0, 1.0, 2.0, 3.0]])
    >>> with cute.simulation():
    ...     y = cute.kernels.softmax(x)
    >>> torch.allclose(y, x.softmax(-1))
    True
    """
    return SOFTMAX(x, into=None if out is None else (out,))


def cross_entropy(
    x: Any, target: Any, *, ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0,
    z_loss: float = 0.0, inplace_backward: bool = False,
) -> Any:  # fmt: skip
    """Compute the cross-entropy of logits and target columns: logsumexp(x) - x[target] of each row, in Float32.

    x: logits (…, N), a tensor of torch's on the GPU, of bfloat16, float16 or float32, the last mode contiguous. target:
    columns (…), int64 or int32. ignore_index: a target whose row has no loss. reduction: "none" gives each row's
    loss, "sum" their sum, "mean" its quotient by the rows that are not ignored. A target that is not a column gives
    NaN. label_smoothing: from 0 to 1, the part of the loss that all columns share alike: logsumexp(x) - mean(x) in
    place of logsumexp(x) - x[target]. z_loss: what logsumexp(x) ** 2 is multiplied with, which is added to a row's
    loss. inplace_backward: whether the gradient is written over x, which is lost when backward() has come there.
    CuteError says which argument is not so. With gradients, and under torch.compile.

    >>> import torch
    >>> x, target = torch.eye(4), torch.arange(4)
    >>> with cute.simulation():
    ...     loss = cute.kernels.cross_entropy(x, target)
    >>> torch.allclose(loss, torch.nn.functional.cross_entropy(x, target))
    True
    """
    ignored, smoothing, z = checked_options("cross_entropy", ignore_index, reduction, label_smoothing, z_loss)
    if inplace_backward:
        _check_over(x)
    loss = CROSS_ENTROPY(x, target, ignored, smoothing, z, bool(inplace_backward))[0]
    return loss if reduction == "none" else reduced(loss.sum(), target, ignored, reduction)


def checked_options(what: str, ignored: Any, reduction: Any, smoothing: Any, z: Any) -> tuple[int, float, float]:
    """Check what all cross-entropies take beside tensors, and give the numbers. what: the entry."""
    if reduction not in ("none", "sum", "mean"):
        raise CuteError(f'{what}: reduction {reduction!r} must be "none", "sum" or "mean"')
    for name, x, most, rule in (
        ("label_smoothing", smoothing, 1.0, "from 0 to 1"), ("z_loss", z, 3e38, "that is not negative"),
    ):  # fmt: skip
        if isinstance(x, bool) or not isinstance(x, (int, float)) or not 0 <= x <= most:
            raise CuteError(f"{what}: {name} {x!r} must be a number of Python's {rule}")
    if isinstance(ignored, bool) or not isinstance(ignored, (int, np.integer)):
        raise CuteError(f"{what}: ignore_index {ignored!r} must be an int")
    return int(ignored), float(smoothing), float(z)


def reduced(sum: Any, target: Any, ignored: int, reduction: str) -> Any:
    """Give the `sum` of the rows' losses, or their mean over those that are not `ignored`."""
    return sum if reduction == "sum" else sum / (target != ignored).sum()
