# SPDX-License-Identifier: Apache-2.0
"""The online softmax of attention: rows of scores as a warpgroup's wgmma leaves them, in registers.

A thread holds two rows of a tile's 64 (its own and the eighth after), four lanes have a row together. Logarithms are to
base 2 throughout, so that an exponential is one multiply-add and one `ex2`.
"""

import math

from numba import cuda

import numba_cute as cute
from numba_cute import arch

ROWS = 2  # of a thread, in a warpgroup's accumulator
GROWN = 8.0  # maxima are raised, and results scaled, when one has grown by this power of 2: P stays below 2^8
BELOW, MOST = -40.0, 2.0**24
"""A row's greatest exponential is 2^BELOW when its maximum is found, where that is not always, and a thread's of a
block may add up to MOST before the scores are computed again. So logarithms may grow by 58 unseen. BFloat16 and Float32
hold what is so small and so great, times values from 2^-80 to 2^90; Float16 does not."""
LN_2, LOG2_E = math.log(2), math.log2(math.e)
LOWEST = -3.4e38
"""The maximum of a row that has no score yet, a logarithm: finite, about the least that a Float32 holds, so that a row
all of whose scores are -inf needs no care."""


@cuda.jit
def rows_of(acc):
    """View a wgmma accumulator as (row, column) of this thread: ROWS rows, of every eight columns two."""
    return cute.make_tensor(acc.iterator, cute.make_layout((2, (2, cute.size(acc) // 4)), stride=(2, (1, 4))))


@cuda.jit
def over_quad(x, op):
    """Reduce over the four lanes that have a row together: `op` of two values."""
    x = op(x, arch.shuffle_sync_bfly(x, 2))
    return op(x, arch.shuffle_sync_bfly(x, 1))


@cuda.jit
def add(a, b):
    return a + b


@cuda.jit
def raise_maxima(scores, highest, total, factor, scale_log2, grown):
    """Raise `highest` to the greatest of these scores where one has grown by more than `grown`, and scale `total` to
    it. Gives whether that was so of any row of the warp: then earlier results are to be multiplied with `factor`.

    scores: (ROWS, columns). highest, total: of each row, what its exponentials are scaled to, a logarithm, at first
    `LOWEST`, and their sum over this thread's columns. scale_log2: what makes a score a logarithm. grown: a logarithm.
    A whole warp.
    """
    top, higher = cute.make_rmem_tensor(ROWS, cute.Float32), cute.make_rmem_tensor(ROWS, cute.Float32)
    for r in cute.range_constexpr(ROWS):
        top[r] = over_quad(scores[r, None].load().reduce(cute.ReductionOp.MAX, -math.inf), cute.max)
        higher[r] = top[r] * scale_log2 - highest[r]
    moved = arch.vote_any_sync(cute.max(higher[0], higher[1]) > grown)
    if moved:
        for r in cute.range_constexpr(ROWS):
            factor[r] = cute.math.exp2(cute.min(-higher[r], cute.Float32(0)), fastmath=True)
            total[r] *= factor[r]
            highest[r] = cute.max(highest[r], top[r] * scale_log2)
    return moved


@cuda.jit
def exponentials(scores, highest, total, scale_log2, offset):
    """Replace scores by exp2(scale_log2 * score - highest of the row + offset), and add them to `total`. As
    `raise_maxima`."""
    for r in cute.range_constexpr(ROWS):
        p = cute.math.exp2(scores[r, None].load() * scale_log2 - (highest[r] - offset), fastmath=True)
        scores[r, None].store(p)
        total[r] = p.reduce(cute.ReductionOp.ADD, total[r])


@cuda.jit
def exponentials_below(scores, highest, total, scale_log2, offset, most):
    """Replace scores by exponentials, as `exponentials` does, and add them to `total` unless their sum is more than
    `most` in a row of this warp. Gives whether it is: then the scores are needed again. A whole warp."""
    sums = cute.make_rmem_tensor(ROWS, cute.Float32)
    sums.fill(0)
    exponentials(scores, highest, sums, scale_log2, offset)
    beyond = arch.vote_any_sync(cute.max(sums[0], sums[1]) > most)
    if not beyond:
        for r in cute.range_constexpr(ROWS):
            total[r] += sums[r]
    return beyond


@cuda.jit
def scale_rows(acc, factor):
    """Multiply each row of an accumulator by its factor."""
    rows = rows_of(acc)
    for r in cute.range_constexpr(ROWS):
        rows[r, None].store(rows[r, None].load() * factor[r])


@cuda.jit
def finish(highest, total, factor, lse, sinks, offset):
    """Give, of each row, what its results are to be multiplied with in `factor` (0 if it saw no key), and its
    log-sum-exp, to base e, in `lse` (-inf then). sinks: of each row the score, to base e and scaled, of a key that has
    no value; or None. offset: as of `exponentials`."""
    for r in cute.range_constexpr(ROWS):
        top, whole, shrunk = highest[r], over_quad(total[r], add), cute.Float32(1)
        if cute.const_expr(sinks is not None):
            sink = sinks[r] * cute.Float32(LOG2_E)
            top = max(top, sink)
            shrunk = cute.math.exp2(highest[r] - top, fastmath=True)
            whole = whole * shrunk + cute.math.exp2(sink - top + offset, fastmath=True)
        none = whole == 0
        factor[r] = cute.where(none, cute.Float32(0), shrunk * arch.rcp_approx(whole))
        lse[r] = cute.where(
            none,
            cute.Float32(-math.inf),
            (top + cute.math.log2(whole, fastmath=True) - offset) * cute.Float32(LN_2),
        )
