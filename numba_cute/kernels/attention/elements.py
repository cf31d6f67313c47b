# SPDX-License-Identifier: Apache-2.0
"""Apply the caller's functions to single scores: one gives another number, one says which scores are left out."""

import functools
import math

from numba import cuda

import numba_cute as cute
from numba_cute.seam import CuteError, current, traced


@traced
def truth(allowed):
    """Give what a mask's function gave, a boolean; CuteError for anything else."""
    found = current().type_of(allowed)
    if found.kind != "bool":
        raise CuteError(
            f"flash_attention: the function of the mask gives {found}; it must give whether the query sees the key, a "
            "boolean: compare, as in x != 0"
        )
    return allowed


@traced
def kept(allowed, x, other):
    """Give `x` of a score that the mask's function allows, and else `other`, a number. allowed: what it gave."""
    return cute.where(truth(allowed), x, cute.Float32(other))


@traced
def unless(allowed):
    """Give 1 of a score that the mask's function does not allow, and else 0. allowed: what it gave."""
    return cute.where(truth(allowed), cute.Uint32(0), cute.Uint32(1))


@functools.cache
def make_elements(pack, group, tile_n, score, mask, reads=False):
    """The functions of a thread's scores in a warpgroup's block: `row_of`, `change`, `leave_out`. All as of `Form`."""
    step = math.gcd(tile_n // 4, 8)  # columns of which a mask that reads is asked at once
    by_bits = reads and tile_n <= 128  # a bit of each column

    @cuda.jit
    def row_of(place, r, head):
        """The query, and the head, of a thread's row r, the one at `place`, or the eighth after; and whether it is one:
        of a group that is no power of two some rows are nobody's."""
        at = cute.Int32(place + 8 * r)
        if cute.const_expr(pack == 1):
            return at, head, True
        within = cute.Int32(at % pack)
        return cute.Int32(at // pack), cute.Int32(head * group + min(within, cute.Int32(group - 1))), within < group

    @cuda.jit
    def change(scores, n, place, column, b, head, aux, scale, queries, keys):
        """Scale the scores of block n, and change them as the caller's function says, which is asked of no query and no
        key beyond the last: what it reads of its own has none there."""
        if keys > 0:
            for r in cute.range_constexpr(2):
                query, own_head, _ = row_of(place, r, head)
                query = min(query, queries - 1)
                for i in cute.range_constexpr(cute.size(scores, mode=[1])):
                    key = min(n * tile_n + column + i // 2 * 8 + i % 2, keys - 1)
                    scores[r, i] = score(scores[r, i] * scale, b, own_head, query, key, *aux)

    @cuda.jit
    def leave_out_by_bits(scores, n, place, column, b, head, aux, queries, keys):
        """Do it for a mask that reads, in a loop that stays one: asked for all at once, it would spill registers."""
        hidden = cute.make_rmem_tensor(2, cute.Uint32)
        hidden.fill(0)
        for first in cute.range(0, tile_n // 4, step, unroll=1):
            for j in cute.range_constexpr(step):
                key = cute.Int32(min(n * tile_n + column + first * 4 + j // 2 * 8 + j % 2, keys - 1))
                for r in cute.range_constexpr(2):
                    at, own_head, _ = row_of(place, r, head)
                    query = cute.Int32(min(at, queries - 1))
                    hidden[r] |= unless(mask(b, own_head, query, key, *aux)) << cute.Uint32(first + j)
        for r in cute.range_constexpr(2):
            for i in cute.range_constexpr(tile_n // 4):
                if hidden[r] & (1 << i) != 0:
                    scores[r, i] = -math.inf

    @cuda.jit
    def leave_out(scores, n, place, column, b, head, aux, queries, keys):
        """Leave out the scores of block n that the mask's function does not allow, which is asked as that of `change`
        is."""
        if cute.const_expr(by_bits):
            if keys > 0:
                leave_out_by_bits(scores, n, place, column, b, head, aux, queries, keys)
        elif keys > 0:
            for i in cute.range_constexpr(cute.size(scores, mode=[1])):  # first: what hangs on a key is then not kept
                key = cute.Int32(min(n * tile_n + column + i // 2 * 8 + i % 2, keys - 1))
                for r in cute.range_constexpr(2):
                    query, own_head, _ = row_of(place, r, head)
                    query = cute.Int32(min(query, queries - 1))
                    scores[r, i] = kept(mask(b, own_head, query, key, *aux), scores[r, i], -math.inf)

    return row_of, change, leave_out
