# SPDX-License-Identifier: Apache-2.0
"""GroupNorm, forward and backward: the channels of each group, and all their places, are normalised together.

Forward: a group of an image is a row, which is read once: y = (x - mean) * rstd * weight + bias, whose weight and bias
are those of the element's channel, the same for all elements of a vector. A group longer than a cluster holds is read
twice: rows are channels, or parts of them, whose means and squares are joined before another kernel computes y.

Backward: with h = (x - mean) * rstd and g = dy * weight, dx = (g - h * mean(g * h) - mean(g)) * rstd. Rows are channels
here: one kernel sums dy * h and dy over each, of which a few numbers are made, those of a group and dweight and dbias;
another computes dx of them. Both read x and dy. All in Float32. Images whose channels lie innermost are
permuted before, and their results after it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import numba_cute as cute
from numba_cute.kernels import entry
from numba_cute.kernels.moves.permute import permute
from numba_cute.kernels.reduce import added
from numba_cute.kernels.rows.norm_parts import part_of, statistics_of_far
from numba_cute.kernels.rows.plan import MOST_THREADS, Habit, blocks_at, spread_rows
from numba_cute.kernels.rows.spread import CHUNK, Stream, Team, row_count, rows_in, total
from numba_cute.seam import CuteError, frozen, traced

if TYPE_CHECKING:
    import torch

__all__ = ["groupnorm"]


@frozen
class Grouping:
    """Hold what is static of a call: channels of an image and of a group, the places of a channel, and into how many
    rows these are cut where rows are channels."""

    channels: int
    each: int
    places: int
    parts: int = 1

    @property
    def length(self) -> int:
        """The elements of such a row."""
        return self.places // self.parts


@traced
def of_channels(team: Team, line: Any, row: Any, grouping: Grouping) -> Any:
    """Load of `line` (C,) the number of each of this thread's elements of a group's row, whose channel it is: that of
    its vector's first element."""
    s = team.spread
    regs = cute.make_rmem_tensor((s.vector, s.vectors), cute.Float32)
    numbers, first = cute.make_tensor(line), team.real(row) % (grouping.channels // grouping.each) * grouping.each
    for v in range(s.vectors):
        element = team.rank * s.part + (v * s.threads + team.thread) * s.vector
        channel = cute.min(cute.Int32(element // grouping.places), grouping.each - 1)
        regs[None, v].fill(cute.Float32(numbers[first + channel]))
    return regs.load()


def centred(team, xs, row):
    """Take a row, and give its mean, its elements less that, None of one that is far, and the sum of their squares. All
    threads of the team."""
    if cute.const_expr(team.spread.far):
        m, squares = statistics_of_far(team, xs, None, None, None, row, True)
        return m, None, squares
    values = xs.take(team, row, 0)
    m = team.mean(team.reduce((total(values),), added)[0])
    values = team.there_only(values - m, row, 0)
    squares = team.reduce((total(values * values),), added)[0]
    return m, values, squares


def groupnorm_forward(x, weight, bias, y, mean, rstd, eps, grouping, spread):
    """Normalise the rows of x (images * groups, elements); mean and rstd, one for each row, are for the backward. All
    but x, y and eps may be None."""
    assert not spread.stages  # a row goes from memory to registers, as `FORWARD` and `BACKWARD` say
    team = Team.create(spread, row_count(x), 1)
    xs = Stream.create(team, rows_in(x))
    xs.open(team)
    team.begin()
    xs.start(team)
    row = team.first
    while row < team.end:
        m, values, squares = centred(team, xs, row)
        r = cute.math.rsqrt(team.mean(squares) + eps, fastmath=True)
        if mean is not None:
            team.write_one(cute.make_tensor(mean), row, m)
            team.write_one(cute.make_tensor(rstd), row, r)
        values = values * r
        if weight is not None:
            values = values * of_channels(team, weight, row, grouping)
        if bias is not None:
            values = values + of_channels(team, bias, row, grouping)
        team.write(rows_in(y), row, values)
        row = team.following(row)


@traced
def of_group(team: Team, vector: Any, row: Any, grouping: Grouping) -> Any:
    """Load the number of the group in which a channel's row is."""
    return cute.Float32(cute.make_tensor(vector)[team.real(row) // (grouping.each * grouping.parts)])


@traced
def of_channel(team: Team, line: Any, row: Any, grouping: Grouping) -> Any:
    """Load of `line` (C,) the number of the channel in which a row is."""
    return cute.Float32(cute.make_tensor(line)[team.real(row) // grouping.parts % grouping.channels])


def row_statistics(x, means, squares, spread):
    """Write the mean of each row of x, and the sum of its elements' squared distances from that."""
    assert not spread.stages  # a row goes from memory to registers, as `FORWARD` and `BACKWARD` say
    team = Team.create(spread, row_count(x), 1)
    xs = Stream.create(team, rows_in(x))
    xs.open(team)
    team.begin()
    xs.start(team)
    row = team.first
    while row < team.end:
        m, _, squared = centred(team, xs, row)
        team.write_one(cute.make_tensor(means), row, m)
        team.write_one(cute.make_tensor(squares), row, squared)
        row = team.following(row)


def applied(team, values, m, r, weight, bias, row, grouping):
    """Normalise this thread's elements of a row, or some."""
    values = (values - m) * r
    if weight is not None:
        values = values * of_channel(team, weight, row, grouping)
    if bias is not None:
        values = values + of_channel(team, bias, row, grouping)
    return values


def groupnorm_apply(x, weight, bias, mean, rstd, y, grouping, spread):
    """y = (x - mean) * rstd * weight + bias of each row (images * channels * parts, length); weight and bias may be
    None."""
    assert not spread.stages  # a row goes from memory to registers, as `FORWARD` and `BACKWARD` say
    team = Team.create(spread, row_count(x), 1)
    xs = Stream.create(team, rows_in(x))
    xs.open(team)
    team.begin()
    xs.start(team)
    row = team.first
    while row < team.end:
        m, r = of_group(team, mean, row, grouping), of_group(team, rstd, row, grouping)
        if cute.const_expr(spread.far):
            for first in cute.range(0, spread.vectors, CHUNK, unroll=1):
                values = team.read_some(xs.kept, row, 0, first, CHUNK)
                values = applied(team, values, m, r, weight, bias, row, grouping)
                team.put_some(team.at(rows_in(y), row), row, values, first, CHUNK)
        else:
            values = xs.take(team, row, 0)
            team.write(rows_in(y), row, applied(team, values, m, r, weight, bias, row, grouping))
        row = team.following(row)


def sums_of(team, xs, dys, row, m, r):
    """This thread's part of the sums of dy * h and of dy over a row."""
    if cute.const_expr(team.spread.far):
        products, sums = cute.Float32(0), cute.Float32(0)
        for first in cute.range(0, team.spread.vectors, CHUNK, unroll=1):
            h, g, _ = part_of(team, xs.kept, dys.kept, None, row, m, r, None, first, CHUNK)
            products, sums = products + total(g * h), sums + total(g)
        return products, sums
    h, g = (xs.take(team, row, 0) - m) * r, dys.take(team, row, 0)
    return total(team.there_only(g * h, row, 0)), total(g)


def channel_sums(x, dy, mean, rstd, products, sums, grouping, spread):
    """Sum dy * h to products and dy to sums, of each row of x and dy (images * channels * parts, length)."""
    assert not spread.stages
    team = Team.create(spread, row_count(x), 2)
    xs, dys = Stream.create(team, rows_in(x)), Stream.create(team, rows_in(dy))
    xs.open(team)
    dys.open(team)
    team.begin()
    xs.start(team)
    dys.start(team)
    row = team.first
    while row < team.end:
        m, r = of_group(team, mean, row, grouping), of_group(team, rstd, row, grouping)
        both = team.reduce(sums_of(team, xs, dys, row, m, r), added)
        team.write_one(cute.make_tensor(products), row, both[0])
        team.write_one(cute.make_tensor(sums), row, both[1])
        row = team.following(row)


@traced
def gradient_of(h: Any, g: Any, w: Any, means: Any, r: Any) -> Any:
    """dx of h and dy. w: the channel's weight, or None. means: the group's, of g * h and g."""
    return ((g if w is None else g * w) - h * means[0] - means[1]) * r


def groupnorm_backward(x, dy, weight, mean, rstd, products, sums, dx, grouping, spread):
    """dx = (dy * weight - h * products - sums) * rstd of each row (images * channels * parts, length); products and
    sums are the group's means of g * h and g."""
    team = Team.create(spread, row_count(x), 1)
    xs, dys = Stream.create(team, rows_in(x)), Stream.create(team, rows_in(dy))
    xs.open(team)
    dys.open(team)
    team.begin()
    xs.start(team)
    dys.start(team)
    row = team.first
    while row < team.end:
        m, r = of_group(team, mean, row, grouping), of_group(team, rstd, row, grouping)
        of_groups = of_group(team, products, row, grouping), of_group(team, sums, row, grouping)
        w = None if weight is None else of_channel(team, weight, row, grouping)
        if cute.const_expr(spread.far):
            for first in cute.range(0, spread.vectors, CHUNK, unroll=1):
                h, g, _ = part_of(team, xs.kept, dys.kept, None, row, m, r, None, first, CHUNK)
                values = gradient_of(h, g, w, of_groups, r)
                team.put_some(team.at(rows_in(dx), row), row, values, first, CHUNK)
        else:
            h, g = (xs.take(team, row, 0) - m) * r, dys.take(team, row, 0)
            team.write(rows_in(dx), row, gradient_of(h, g, w, of_groups, r))
        row = team.following(row)


# How they are launched, for arrays of torch's or NumPy's.

FORWARD = Habit(elements=32)
BACKWARD = Habit(elements=32)
BLOCK = MOST_THREADS * 32
"""Elements of a row that a block holds."""


def forward_work(x: Any, y: Any, eps: float, grouping: Grouping) -> entry.Work:
    """Give the work of `groupnorm_forward` of rows x and y."""
    chosen = spread_rows("groupnorm", [x], [y], habit=FORWARD, unit=grouping.places)
    return chosen.work(groupnorm_forward, (np.float32(eps), grouping, chosen.spread))


def split_works(x: Any, y: Any, grouping: Grouping) -> tuple[entry.Work, entry.Work]:
    """Give the works of `row_statistics` and `groupnorm_apply` of rows x and y, parts of channels."""
    reading, writing = (spread_rows("groupnorm", [x], others, habit=FORWARD) for others in ([], [y]))
    return (
        reading.work(row_statistics, (reading.spread,)), writing.work(groupnorm_apply, (grouping, writing.spread))
    )  # fmt: skip


def backward_works(x: Any, dy: Any, dx: Any, grouping: Grouping) -> tuple[entry.Work, entry.Work]:
    """Give the works of `channel_sums` and `groupnorm_backward` of rows x, dy and dx."""
    chosen = spread_rows("groupnorm", [x, dy], [dx], habit=BACKWARD)
    return tuple(chosen.work(f, (grouping, chosen.spread)) for f in (channel_sums, groupnorm_backward))  # type: ignore[return-value]


# The entry.


def _grouping(x: Any, groups: int, most: int = 0) -> Grouping:
    """The grouping of a call. most: elements of a row that is a channel, or a part of one."""
    places = math.prod(x.shape[2:])
    return Grouping(x.shape[1], x.shape[1] // groups, places, _parts(places, most) if most else 1)


def _parts(places: int, most: int) -> int:
    """Choose into how many rows of at most `most` elements the places of a channel are cut, all of one length: as few
    as may be, of a multiple of 8 elements if they can be; one, which is far, where places have no such divisor."""
    least = -(-places // most)
    found = [k for k in range(least, min(places, 64 * least) + 1) if places % k == 0]
    return next((k for k in found if places // k % 8 == 0), (found or [1])[0])


def _forward_plan(x: Any, weight: Any, bias: Any, y: Any, mean: Any, rstd: Any, groups: int, eps: float,
                  saved: bool) -> Any:  # fmt: skip
    if math.prod(x.shape[1:]) // groups > blocks_at(x) * BLOCK:
        return _split_plan(x, y, groups, eps, saved)

    def given(x: Any, weight: Any, bias: Any, y: Any, mean: Any, rstd: Any) -> Any:
        shape = x.shape[0] * groups, _grouping(x, groups).each * _grouping(x, groups).places
        kept = (mean.view(-1), rstd.view(-1)) if saved else (None, None)
        return x.reshape(shape), weight, bias, _dense(y).view(shape), *kept

    seen = given(x, weight, bias, y, mean, rstd)
    launch = forward_work(seen[0], seen[3], eps, _grouping(x, groups)).launcher()
    return lambda *tensors: launch(*given(*tensors))


def _split_plan(x: Any, y: Any, groups: int, eps: float, saved: bool) -> Any:
    torch, grouping = entry.pytorch(), _grouping(x, groups, BLOCK)
    rows = x.shape[0] * grouping.channels * grouping.parts, grouping.length
    reading, writing = (w.launcher() for w in split_works(x.reshape(rows), _dense(y).view(rows), grouping))

    def run(x: Any, weight: Any, bias: Any, y: Any, mean: Any, rstd: Any) -> None:
        xs, shape = x.reshape(rows), (x.shape[0], groups, grouping.each * grouping.parts)
        means, squares = torch.empty((2, *shape), dtype=torch.float32, device=x.device)
        reading(xs, means.view(-1), squares.view(-1))
        variances = squares.mean(-1) / grouping.length + means.var(-1, unbiased=False)
        both = means.mean(-1), torch.rsqrt(variances + eps)
        writing(xs, weight, bias, *(t.view(-1) for t in both), y.view(rows))
        if saved:
            for kept, made in zip((mean, rstd), both):
                kept.copy_(made)

    return run


def _dense(y: Any) -> Any:
    """Give what is written to; CuteError if it is not dense."""
    if not y.is_contiguous():
        raise CuteError(f"groupnorm: out is {entry.described(y)}; it must be dense: give one that is, or leave it out")
    return y


def _results(
    x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, groups: int, eps: float, saved: bool
) -> Any:
    """Check the arguments, and make y, mean and rstd; these have no elements where there is no gradient."""
    what = "groupnorm"
    entry.check(what, "x", x, dtypes=entry.FLOATS, least_rank=2)
    if groups < 1 or x.shape[1] % groups:
        raise CuteError(
            f"{what}: groups {groups} must divide the channels of x, {entry.described(x)}: {x.shape[1]} of them"
        )
    if 0 in x.shape[1:]:
        raise CuteError(f"{what}: the groups of x, {entry.described(x)}, have no elements: give some")
    for name, line in (("weight", weight), ("bias", bias)):
        entry.check(what, name, line, dtypes=entry.FLOATS, shape=x.shape[1:2], like=x, optional=True)
    shape, float32 = (x.shape[0] if saved else 0, groups), entry.pytorch().float32
    return x.new_empty(x.shape), x.new_empty(shape, dtype=float32), x.new_empty(shape, dtype=float32)


def _backward_plan(dy: Any, x: Any, weight: Any, mean: Any, rstd: Any, dx: Any, dweight: Any, dbias: Any, groups: int,
                   weighted: bool, biased: bool) -> Any:  # fmt: skip
    torch, grouping = entry.pytorch(), _grouping(x, groups, blocks_at(x) * BLOCK)
    channels = x.shape[0] * grouping.channels * grouping.parts, grouping.length
    adding, finishing = backward_works(x.reshape(channels), dy.reshape(channels), dx.view(channels), grouping)
    add, finish = adding.launcher(), finishing.launcher()

    def run(dy: Any, x: Any, weight: Any, mean: Any, rstd: Any, dx: Any, dweight: Any, dbias: Any) -> None:
        images, elements = x.shape[0], grouping.each * grouping.places
        found = torch.empty((2, images, grouping.channels, grouping.parts), dtype=torch.float32, device=x.device)
        mean, rstd, xs, dys = mean.view(-1), rstd.view(-1), x.reshape(channels), dy.reshape(channels)
        add(xs, dys, mean, rstd, *(t.view(-1) for t in found))
        products, sums = found.sum(-1) if grouping.parts > 1 else found[..., 0]
        weighed = [t if weight is None else t * weight for t in (products, sums)]
        means = [t.view(images * groups, grouping.each).sum(-1) / elements for t in weighed]
        finish(xs, dys, weight, mean, rstd, *means, dx.view(channels))
        if weighted:
            dweight.copy_(products.sum(0))
        if biased:
            dbias.copy_(sums.sum(0))

    return run


def _backward_results(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor | None, mean: torch.Tensor, rstd: torch.Tensor, groups: int,
    weighted: bool, biased: bool,
) -> Any:  # fmt: skip
    """Make dx, and dweight and dbias in Float32, which are rounded later."""
    float32 = entry.pytorch().float32
    lines = (x.new_empty(x.shape[1:2] if asked else (0,), dtype=float32) for asked in (weighted, biased))
    return x.new_empty(x.shape), *lines


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    x, weight, bias, ctx.groups, _, _ = inputs
    ctx.types = tuple(None if t is None else t.dtype for t in (weight, bias))
    ctx.save_for_backward(x, weight, *output[1:])
    ctx.mark_non_differentiable(*output[1:])


def _gradients(ctx: Any, dy: Any, *_: Any) -> Any:
    asked = tuple(kind is not None and need for kind, need in zip(ctx.types, ctx.needs_input_grad[1:3]))
    dx, *lines = BACKWARD_ENTRY(dy.contiguous(), *ctx.saved_tensors, ctx.groups, *asked)
    given = (t.to(kind) if need else None for t, kind, need in zip(lines, ctx.types, asked))
    return dx, *given, None, None, None


BACKWARD_ENTRY = entry.Operator("numba_cute::groupnorm_backward", _backward_plan, _backward_results, count=3)
FORWARD_ENTRY = entry.Operator(
    "numba_cute::groupnorm", _forward_plan, _results, count=3, backward=_gradients, setup_context=_keep
)


def groupnorm(x: Any, groups: int, weight: Any = None, bias: Any = None, *, eps: float = 1e-5, out: Any = None) -> Any:
    """Normalise each of `groups` groups of an image's channels: (x - mean) / sqrt(variance + eps) * weight + bias, in
    Float32.

    x: (images, C, …), a tensor of torch's on the GPU, of bfloat16, float16 or float32, its last mode contiguous (other
    orders of the others are copied), or of torch.channels_last, as the result is then: on the way there and back a
    kernel permutes both. groups: how many, which divides C. weight, bias: (C,), of any of these types, or None. eps:
    added to the variance. out: where to write the result, of its order, where no gradient is asked for; it may be x.
    CuteError says which argument is not so. With gradients, and under torch.compile.

    >>> import torch
    >>> x = torch.arange(32.0).reshape(1, 4, 8)
    >>> with cute.simulation():
    ...     y = cute.kernels.groupnorm(x, 2)
    >>> torch.allclose(y, torch.nn.functional.group_norm(x, 2), atol=1e-5)
    True
    """
    if isinstance(groups, bool) or not isinstance(groups, int):
        raise CuteError(f"groupnorm: groups {groups!r} must be an int")
    if _channels_last(x):
        return _of_channels_last(x, groups, weight, bias, eps, out)
    torch = entry.pytorch()
    saved = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (x, weight, bias))
    return FORWARD_ENTRY(x, weight, bias, groups, float(eps), saved, into=None if out is None else (out, None, None))[0]


def _channels_last(x: Any) -> bool:
    """Say whether an image's channels lie innermost, and nothing between them."""
    return getattr(x, "ndim", 0) > 2 and not x.is_contiguous() and bool(x.movedim(1, -1).is_contiguous())


def _of_channels_last(x: Any, groups: Any, weight: Any, bias: Any, eps: float, out: Any) -> Any:
    """Normalise images whose channels lie innermost, and give such."""
    modes = range(x.ndim)
    if out is not None:
        entry.check("groupnorm", "out", out, dtypes=(entry.type_name(x),), shape=tuple(x.shape), last=False, like=x)
        if not _channels_last(out):
            raise CuteError(f"groupnorm: out is {entry.described(out)}; x is of torch.channels_last, as it must be")
    made = groupnorm(permute(x, tuple(modes)), groups, weight, bias, eps=eps)
    there = None if out is None else out.movedim(1, -1)
    y = permute(made, (0, *modes[2:], 1), out=there).movedim(-1, 1)
    return y if out is None else out
