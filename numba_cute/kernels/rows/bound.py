# SPDX-License-Identifier: Apache-2.0
"""A number that at least k elements of a row are not below, and few others, without sorting: where top-k begins.

A row is divided into groups, four times k or more. The k-th greatest of the groups' maxima is no more than the k-th
greatest element, and little less: some 1.15 k elements are not below it. It is searched for by halves among the maxima,
which are keys: integers that are ordered as the numbers, NaN above all.
"""

from __future__ import annotations

from typing import Any

import numba_cute as cute
from numba_cute import arch
from numba_cute.kernels.rows.spread import Spread
from numba_cute.seam import frozen, traced

__all__ = ["ABSENT", "Choice", "above_middle", "choice_of", "first_bound", "key_of", "one_of", "room_of", "value_of"]

ABSENT, MOST = float("-inf"), float("inf")
NAN_KEY = 0x7FFFFFFF
GROUPS = 4
"""Groups of a row for each of the k, at least."""


@frozen
class Choice:
    """The search for the chosen: all static.

    k: how many. room: elements of the list, more than are expected. group: elements of a group, of one thread, a power
    of two; 0 where the whole row goes to the list. each: how many maxima of a block's part of the row must not be below
    its bound.
    """

    k: int
    room: int
    group: int
    each: int

    def groups(self, spread: Spread) -> int:
        """Count a thread's groups."""
        return -(-spread.vectors * spread.vector // self.group)


def choice_of(k: int, spread: Spread) -> Choice:
    """Choose, for `k` of each row that is spread so."""
    room = room_of(k)
    each = -(-k // spread.cluster)
    held = spread.threads * spread.vectors * spread.vector  # elements of a block's part
    group = 1
    while 2 * group * GROUPS * each <= held and group < spread.vectors * spread.vector:
        group *= 2
    if spread.far:
        group = max(group, spread.vector)  # whole vectors, of which such a row has many
    if spread.warps > 1 and not spread.again:  # no more maxima than a warp has registers for, beside a row
        while group * -(-GROUPS * each // spread.threads) < spread.vectors * spread.vector:
            group *= 2
    elif group == 1 and spread.length <= room:
        group = 0
    return Choice(k, room, group, each)


def room_of(k: int) -> int:
    """Count the elements of the list for `k` of a row."""
    return max(64, 1 << (2 * k - 1).bit_length())


@traced
def least(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """Take the less of each two numbers."""
    return tuple(arch.fmin(x, y) for x, y in zip(a, b))


@traced
def keys_of(values: Any) -> Any:
    """Make Int32 of a vector of Float32, which are ordered as these are, NaN above all; -0 is 0."""
    bits = (values + 0.0).bitcast(cute.Int32)
    return cute.where(values != values, NAN_KEY, bits ^ ((bits >> 31) & 0x7FFFFFFF))


@traced
def key_of(value: Any) -> Any:
    """Make such a key of one Float32."""
    return keys_of(cute.full((1,), value, cute.Float32))[0]


@traced
def value_of(key: Any) -> Any:
    """Give the Float32 of a key."""
    keys = cute.full((1,), key, cute.Int32)
    return (keys ^ ((keys >> 31) & 0x7FFFFFFF)).bitcast(cute.Float32)[0]


def above_middle(low, high):
    """The mean of two integers, rounded up, which does not overflow."""
    return (low | high) - ((low ^ high) >> 1)


@traced
def one_of(held: Any, v: int) -> Any:
    """Vector `v` of those that are held."""
    return held[None, v].reshape((held.shape[0], 1))


def vector_of(team, xs, held, row, v):
    """Vector `v` of what a thread has of a row: of `held`, or from shared memory."""
    if xs.kept is None:
        return one_of(held, v)
    return team.read_some(xs.kept, row, ABSENT, v, 1)


def maxima_of(team, xs, held, row, choice):
    """The greatest of each of this thread's groups."""
    best = cute.make_rmem_tensor((choice.groups(team.spread),), cute.Float32)
    best.fill(ABSENT)
    if cute.const_expr(team.spread.far):
        each = choice.group // team.spread.vector
        for g in cute.range_constexpr(choice.groups(team.spread)):
            most = cute.Float32(ABSENT)
            for v in cute.range(g * each, min((g + 1) * each, team.spread.vectors), unroll=1):
                values = team.read_some(xs.kept, row, ABSENT, v, 1)
                most = values.reduce(cute.ReductionOp.MAX, most)
            best[g] = most
        return best.load()
    for v in cute.range_constexpr(team.spread.vectors):
        raise_to(best, vector_of(team, xs, held, row, v), v, choice.group)
    return best.load()


@traced
def raise_to(best: Any, values: Any, v: int, group: int) -> None:
    """Take vector `v` into the maxima of its groups."""
    length = cute.size(values.shape)
    for e in range(length):
        g = (v * length + e) // group
        best[g] = arch.fmax(best[g], values[e, 0])


@traced
def ballots(keys: Any, bound: Any, lanes: Any) -> Any:
    """Count the keys of the lanes in the mask `lanes` that are not below `bound`."""
    counts = [arch.popc(arch.vote_ballot_sync(keys[i] >= bound) & lanes) for i in range(cute.size(keys.shape))]
    return sum(counts[1:], counts[0])


def bound_of(best, each, threads):
    """A number that `each` of the maxima `best` of so many neighbouring lanes are not below, and few others. All 32
    lanes of the warp."""
    keys = keys_of(best)
    low, high = extremes(keys, threads)
    lanes = lanes_of(threads)
    while arch.vote_any_sync(low < high):
        middle = cute.Int32(above_middle(low, high))
        count = ballots(keys, middle, lanes)
        if count >= each:
            low = middle
            if count <= each + each // 8:
                high = low
        else:
            high = cute.max(low, cute.Int32(middle - 1))
    return value_of(low)


@traced
def extremes(keys: Any, threads: int) -> Any:
    """The least and the greatest key of so many neighbouring lanes."""
    low = high = keys[0]
    for i in range(1, cute.size(keys.shape)):
        low, high = cute.min(low, keys[i]), cute.max(high, keys[i])
    offset = threads // 2
    while offset:
        low = cute.min(low, arch.shuffle_sync_bfly(low, offset))
        high = cute.max(high, arch.shuffle_sync_bfly(high, offset))
        offset //= 2
    return low, high


@traced
def lanes_of(threads: int) -> Any:
    """The mask of this lane's neighbours, of whom so many are a team."""
    if threads >= 32:
        return cute.Uint32(0xFFFFFFFF)
    return cute.Uint32((1 << threads) - 1) << cute.Uint32(arch.lane_idx() // threads * threads)


def first_bound(team, xs, held, row, choice, found):
    """A number that at least k elements of the row are not below, and few others. All threads of the team."""
    s = team.spread
    bound = cute.Float32(ABSENT)
    if cute.const_expr(choice.group > 0):
        best = maxima_of(team, xs, held, row, choice)
        if found.maxima is None:
            bound = bound_of(best, choice.each, s.threads)
        else:
            groups = choice.groups(s)
            for i in cute.range_constexpr(groups):
                found.maxima[i * s.threads + team.thread] = best[i]
            team.meeting.sync()
            bound = cute.Float32(MOST)
            if team.thread < 32:
                bound = bound_of(taken(found.maxima, team.thread, groups * s.warps), choice.each, 32)
        bound = team.meeting.reduce((bound,), least, team.thread)[0]  # of the blocks' the least
    return bound


@traced
def taken(maxima: Any, lane: Any, count: int) -> Any:
    """A lane's part of what all threads have left."""
    regs = cute.make_rmem_tensor((count,), cute.Float32)
    for i in range(count):
        regs[i] = maxima[32 * i + lane]
    return regs.load()
