# SPDX-License-Identifier: Apache-2.0
"""Top-k: the greatest k elements of each row with their columns, sorted, and perhaps the softmax of these alone.

What is not below a bound (bound.py), somewhat more than k elements, goes to a list in shared memory, where each counts
those before it, which is its place. Elements are compared there as 64-bit integers, value before column, which are all
distinct: NaN is the greatest, and of equal ones the first comes first. Where too many are not below the bound, because
many are equal, or lie in few groups, a search by halves, with a count of the row at each step, finds one that leaves
fewer.

The kernel is read from the end: `topk_forward`, and what it calls before it.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numba_cute as cute
from numba_cute import arch
from numba_cute.kernels import entry
from numba_cute.kernels.reduce import added, exp, over_lanes
from numba_cute.kernels.rows.bound import (
    ABSENT,
    Choice,
    above_middle,
    choice_of,
    first_bound,
    key_of,
    one_of,
    room_of,
    value_of,
)  # fmt: skip
from numba_cute.kernels.rows.plan import Habit, of_rows, spread_rows, vector_of
from numba_cute.kernels.rows.spread import CHUNK, Stream, Team, row_count, rows_in
from numba_cute.seam import CuteError, traced

if TYPE_CHECKING:
    import torch

__all__ = ["topk"]

LARGEST_K = 256
LAST_COLUMN = 0x7FFFFFFF
LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1


@traced
def whole_key(key: Any, column: Any) -> Any:
    """Join key and column: the first of equal elements is the greatest."""
    return (cute.Int64(key) << 32) | cute.Int64(LAST_COLUMN - column)


@cute.struct
class List:
    """A team's list in shared memory: `found` elements, those of the result in order, how many there are, and, where
    a team is several warps, the groups' maxima."""

    found: cute.Tensor
    ordered: cute.Tensor
    count: cute.Tensor
    maxima: Any

    @staticmethod
    @traced
    def create(team: Team, choice: Choice) -> List:
        """Allocate the lists of the block's teams. All threads."""
        s, smem = team.spread, team.smem
        groups = choice.groups(s) if s.warps > 1 and choice.group else 0

        def own(dtype: Any, size: int, name: str) -> Any:
            whole = smem.allocate_array(dtype, size * s.teams, 16, name=name)
            return cute.make_tensor(whole + team.team * size, cute.make_layout(size))

        return List(
            own(cute.Int64, choice.room, "what may be of the k"), own(cute.Int64, choice.k, "the k in order"),
            own(cute.Int32, 1, "length of the list"),
            own(cute.Float32, s.threads * groups, "maxima of groups") if groups else None,
        )  # fmt: skip


def come(team, xs, row):
    """Wait for a row: what a thread has of it, where that stays in registers."""
    if xs.kept is None:
        return xs.take(team, row, ABSENT)
    xs.wait()
    return None


def column_of(team, v):
    """The column of the first element of this thread's vector `v`."""
    s = team.spread
    return team.rank * s.part + (team.thread + v * s.threads) * s.vector


def noted(found, room, key):
    """Put an element on the list, if there is room."""
    place = arch.atomic_add(found.count.iterator, cute.Int32(1))
    if place < room:
        found.found[place] = key


@traced
def any_from(values: Any, bound: Any) -> Any:
    """Say whether any of a vector is not below `bound`: NaN is not."""
    hit = ~(values[0, 0] < bound)
    for e in range(1, cute.size(values.shape)):
        hit = hit | ~(values[e, 0] < bound)
    return hit


def list_vector(team, values, v, there, choice, found, bound):
    """Put what is not below the Float32 `bound` on the list, of this thread's vector `v`."""
    if any_from(values, bound):
        if team.thread + v * team.spread.threads < there:
            for e in cute.range_constexpr(team.spread.vector):
                if not values[e, 0] < bound:
                    noted(found, choice.room, whole_key(key_of(values[e, 0]), column_of(team, v) + e))


def list_held(team, held, row, choice, found, bound):
    """Put what is not below `bound` on the list, of a row in registers. All threads of the team."""
    there = team.there(row)
    for v in cute.range_constexpr(team.spread.vectors):
        list_vector(team, one_of(held, v), v, there, choice, found, bound)


def list_far(team, xs, row, choice, found, bound):
    """The same of a row in global memory."""
    there = team.there(row)
    for v in cute.range(0, team.spread.vectors, unroll=1):
        list_vector(team, team.read_some(xs.kept, row, ABSENT, v, 1), v, there, choice, found, bound)


def list_kept(team, xs, row, choice, found, bound):
    """The same of a row in shared memory: few threads have such elements, and these few, so they look for them."""
    s, there = team.spread, team.there(row)
    vectors = cute.Int32(0)
    for v in cute.range_constexpr(s.vectors):
        if any_from(team.read_some(xs.kept, row, ABSENT, v, 1), bound):
            if team.thread + v * s.threads < there:
                vectors = cute.Int32(vectors | (1 << v))
    while vectors != 0:
        which = arch.bfind(vectors)
        vectors = cute.Int32(vectors ^ (1 << which))
        values, elements = team.read_some(xs.kept, row, ABSENT, which, 1), cute.Int32(0)
        for e in cute.range_constexpr(s.vector):
            if not values[e, 0] < bound:
                elements = cute.Int32(elements | (1 << e))
        while elements != 0:
            last = arch.bfind(elements)
            elements = cute.Int32(elements ^ (1 << last))
            own = (team.thread + which * s.threads) * s.vector + last
            noted(found, choice.room, whole_key(key_of(xs.element(own)), team.rank * s.part + own))


def count_of(team, values, v, there, choice, found, bound, lists):
    """Count those of vector `v` whose joined key is not below `bound`; put them on the list too, if `lists`."""
    mine = cute.Int32(0)
    if team.thread + v * team.spread.threads < there:
        for e in cute.range_constexpr(team.spread.vector):
            key = whole_key(key_of(values[e, 0]), column_of(team, v) + e)
            if key >= bound:
                mine += 1
                if lists:
                    noted(found, choice.room, key)
    return mine


def counted(team, xs, held, row, choice, found, bound, lists):
    """Count those of the row. All threads of the team."""
    mine, there = cute.Int32(0), team.there(row)
    if xs.kept is None:
        for v in cute.range_constexpr(team.spread.vectors):
            mine += count_of(team, one_of(held, v), v, there, choice, found, bound, lists)
    else:
        for v in range(team.spread.vectors):
            values = team.read_some(xs.kept, row, ABSENT, v, 1)
            mine += count_of(team, values, v, there, choice, found, bound, lists)
    return cute.Int32(team.reduce((cute.Float32(mine),), added)[0])


def length_of(team, found):
    """Tell how long the lists of the team and its peers are. All threads of the team."""
    team.meeting.sync()
    count = cute.Int32(found.count[0])
    if cute.const_expr(team.spread.cluster > 1):
        once = cute.Float32(0)
        if team.thread < 32:
            once = cute.Float32(count)
        count = cute.Int32(team.meeting.reduce((once,), added, team.thread)[0])
    return count


def anyone(team, condition):
    """Say whether a condition holds for any team in the warp."""
    if cute.const_expr(team.spread.threads < 32):
        return arch.vote_any_sync(condition)
    return condition


def clear(team, found, room):
    """Empty the list. All threads of the team, between two meetings."""
    for i in range(team.thread, room, team.spread.threads):
        found.found[i] = cute.Int64(LOWEST)
    if team.thread == 0:
        found.count[0] = cute.Int32(0)


def listed(team, xs, held, row, choice, found):
    """Put the k greatest of a row on the list, and at most as many more as there is room for; gives how many. All
    threads of the team."""
    clear(team, found, choice.room)
    bound = first_bound(team, xs, held, row, choice, found)
    team.meeting.sync()
    if xs.kept is None:
        list_held(team, held, row, choice, found, bound)
    elif cute.const_expr(team.spread.far):
        list_far(team, xs, row, choice, found, bound)
    else:
        list_kept(team, xs, row, choice, found, bound)
    count = length_of(team, found)
    if cute.const_expr(team.spread.length > choice.room):
        if anyone(team, count > choice.room):
            low, high = whole_key(key_of(bound), LAST_COLUMN), cute.Int64(HIGHEST)
            while anyone(team, count > choice.room):
                middle = above_middle(low, high)
                now = counted(team, xs, held, row, choice, found, middle, False)
                if count > choice.room:
                    if now >= choice.k:
                        low, count = middle, now
                    else:
                        high = middle - 1
            team.meeting.sync()
            clear(team, found, choice.room)
            team.meeting.sync()
            count = counted(team, xs, held, row, choice, found, low, True)
            team.meeting.sync()
    return count


def gather(team, found):
    """Bring the lists of a cluster's blocks to the first's. All threads of the cluster."""
    s = team.spread
    arch.cluster_arrive()
    arch.cluster_wait()
    if team.rank == 0:
        begin = cute.Int32(found.count[0])
        for peer in range(1, s.cluster):
            count = cute.Int32(arch.load(arch.map_dsmem_ptr(found.count.iterator, peer), cute.Int32, ss="cluster"))
            theirs = arch.map_dsmem_ptr(found.found.iterator, peer)
            for i in range(team.thread, count, s.threads):
                found.found[begin + i] = arch.load(theirs + i, cute.Int64, ss="cluster")
            begin += count
    arch.cluster_arrive()
    arch.cluster_wait()


@traced
def before(keys: Any, mine: Any) -> Any:
    """Count those of the next eight keys that are greater: beyond the list's end are the least there are."""
    places = cute.Int32(0)
    for key in [key for i in range(0, 8, 2) for key in (keys + i).load_vector(2)]:
        places = places + cute.where(key > mine, cute.Int32(1), cute.Int32(0))
    return places


def order(team, choice, found, count):
    """Put the k greatest of the list in order: each has as many before it as are greater. All threads of the team."""
    for i in range(team.thread, count, team.spread.threads):
        mine, place = cute.Int64(found.found[i]), cute.Int32(0)
        for j in cute.range(0, count, 8, unroll=1):  # more at once have no registers
            place += before(found.found.iterator + j, mine)
        if place < choice.k:
            found.ordered[place] = mine
    team.meeting.sync()


def put(team, choice, found, row, values, indices, softmax):
    """Store a row's results. The team's first threads, of one warp."""
    lanes = cute.const_expr(min(32, team.spread.threads))
    scale, most, k = cute.Float32(1), cute.Float32(0), cute.Int32(0)
    if row < team.rows:
        k = cute.Int32(choice.k)
    if cute.const_expr(softmax):
        sum = cute.Float32(0)
        if k > 0:
            most = value_of(cute.Int32(found.ordered[0] >> 32))
        for i in range(team.thread, k, lanes):
            sum += exp(value_of(cute.Int32(found.ordered[i] >> 32)) - most)
        scale = arch.rcp_approx(over_lanes((sum,), added, lanes)[0])
    for i in range(team.thread, k, lanes):
        mine = cute.Int64(found.ordered[i])
        value = value_of(cute.Int32(mine >> 32))
        if cute.const_expr(softmax):
            value = exp(value - most) * scale
        values[row, i] = value
        indices[row, i] = LAST_COLUMN - (mine & LAST_COLUMN)


def topk_forward(x, values, indices, softmax, choice, spread):
    """values, indices (M, k): the greatest k of each row of x (M, N), or their softmax, and their columns."""
    team = Team.create(spread, row_count(x), 1)
    xs, found = Stream.create(team, rows_in(x)), List.create(team, choice)
    xs.open(team)
    team.begin()
    xs.start(team)
    row = team.first
    while row < team.end:
        held = come(team, xs, row)
        count = listed(team, xs, held, row, choice, found)
        if cute.const_expr(spread.cluster > 1):
            gather(team, found)
        if team.rank == 0:
            order(team, choice, found, count)
            if team.thread < 32:
                put(team, choice, found, row, rows_in(values), rows_in(indices), softmax)
        xs.refill(team, row)
        row = team.following(row)


def write_zeros(team, dxs, row):
    """Let what a thread has of a row be 0."""
    if cute.const_expr(team.spread.far):
        for first in cute.range(0, team.spread.vectors, CHUNK, unroll=1):
            zeros = cute.full((team.spread.vector, CHUNK), 0.0, cute.Float32)
            team.put_some(team.at(dxs, row), row, zeros, first, CHUNK)
    else:
        team.write(dxs, row, team.zeros())


def topk_backward(dvalues, values, indices, dx, softmax, k, spread):
    """dx (M, N): dvalues at the columns of indices, all (M, k), and else 0; with softmax, of whose values they are."""
    team = Team.create(spread, dx.shape[0], 1)
    team.begin()
    dvs, vs, at, dxs = [rows_in(t) for t in (dvalues, values, indices, dx)]
    row = team.first
    while row < team.end:
        real = team.real(row)
        dot = cute.Float32(0)
        if cute.const_expr(softmax):
            for i in range(k):
                dot += cute.Float32(dvs[real, i]) * cute.Float32(vs[real, i])
        write_zeros(team, dxs, row)
        team.meeting.sync()
        for i in range(team.thread, k, spread.threads):
            column = cute.Int32(at[real, i])
            if row < team.rows:
                if cute.const_expr(spread.cluster == 1) or column // spread.part == team.rank:
                    gradient = cute.Float32(dvs[real, i])
                    if cute.const_expr(softmax):
                        gradient = cute.Float32(vs[real, i]) * (gradient - dot)
                    dxs[row, column] = gradient
        row = team.following(row)


# How they are launched, for arrays of torch's or NumPy's. Matrices are (M, N) and (M, k).

BACKWARD = Habit()
NARROW = 16
"""Elements of a row of narrow accesses for which a thread has registers."""


def topk_work(x: Any, values: Any, indices: Any, k: int, softmax: bool) -> entry.Work:
    """Give the work of `topk_forward`, whose arguments these are."""
    narrow = vector_of(x.shape[-1], [x]) * x.itemsize < 16
    chosen = spread_rows("topk", [x], [], habit=forward_habit(k, narrow))
    return chosen.work(topk_forward, (cute.Constexpr(softmax), choice_of(k, chosen.spread), chosen.spread))


@functools.cache
def forward_habit(k: int, narrow: bool) -> Habit:
    """Say how the kernel takes rows for so many of each. narrow: whether accesses are, so that rows stay in registers:
    of many elements, each asked for whether it is there and on the list, a thread has none left."""
    far = 2 if k <= LARGEST_K // 2 else 1
    return Habit("topk", NARROW if narrow else 64, again=True, beside=(room_of(k) + 3 * k) * 8, far=far)


def topk_backward_work(
    dvalues: Any, values: Any, indices: Any, dx: Any, length: int, softmax: bool
) -> entry.Work:  # fmt: skip
    """Give the work of `topk_backward`, whose arguments these are."""
    chosen = spread_rows("topk backward", [dx], [], habit=BACKWARD)
    return chosen.work(topk_backward, (cute.Constexpr(softmax), cute.Constexpr(values.shape[1]), chosen.spread))


# The entries.


def _results(x: torch.Tensor, k: int, softmax: bool) -> Any:
    entry.check("topk", "x", x, dtypes=entry.FLOATS, least_rank=1)
    if not 0 < k <= min(x.shape[-1], LARGEST_K):
        raise CuteError(
            f"topk: k is {k}, and x is {entry.described(x)}: it must be from 1 to {min(x.shape[-1], LARGEST_K)}, which "
            f"is {'the length of a row' if x.shape[-1] <= LARGEST_K else 'the most that this kernel sorts'}"
        )
    shape = (*x.shape[:-1], k)
    return x.new_empty(shape), x.new_empty(shape, dtype=entry.pytorch().int64)


def _backward_result(
    dvalues: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, length: int, softmax: bool
) -> Any:  # fmt: skip
    return values.new_empty((*values.shape[:-1], length))


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    x, _, ctx.softmax = inputs
    ctx.length = x.shape[-1]
    ctx.save_for_backward(*output)
    ctx.mark_non_differentiable(output[1])


def _gradients(ctx: Any, dvalues: Any, _: Any) -> Any:
    return BACKWARD_ENTRY(dvalues.contiguous(), *ctx.saved_tensors, ctx.length, ctx.softmax), None, None


FORWARD_ENTRY = entry.Operator(
    "numba_cute::topk", of_rows("topk", topk_work, (True,) * 3, 2), _results, count=2, backward=_gradients,
    setup_context=_keep,
)  # fmt: skip
BACKWARD_ENTRY = entry.Operator(
    "numba_cute::topk_backward", of_rows("topk backward", topk_backward_work, (True,) * 4), _backward_result
)  # fmt: skip


def topk(x: Any, k: int, *, softmax: bool = False, out: Any = None) -> Any:
    """Find the greatest `k` elements of each row of the last mode of `x`: (values, indices), the greatest first.

    x: a tensor of torch's on the GPU, of bfloat16, float16 or float32, its last mode contiguous. k: up to 256, and to
    the length of a row. NaN is greater than all numbers; of equal elements the first comes first. softmax: give the
    softmax of the chosen, in Float32 before it is rounded to x's type, instead of their values. out: (values,
    indices) to write to, where no gradient is asked for; indices are int64. CuteError says which argument is not so.
    With gradients for x, and under torch.compile.

    >>> import torch
    >>> x = torch.tensor([[3.0, 9.0, 1.0, 7.0]])
    >>> with cute.simulation():
    ...     values, columns = cute.kernels.topk(x, 2)
    >>> values, columns
    (tensor([[9., 7.]]), tensor([[1, 3]]))
    """
    return FORWARD_ENTRY(x, int(k), bool(softmax), into=out)
