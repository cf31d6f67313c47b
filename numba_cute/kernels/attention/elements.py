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


AT_ONCE = 8  # keys of a thread that a mask is asked of without a branch between them


@cuda.jit
def within(number, count):
    """Give a number of a query or key, or the last of so many if it is beyond. It is found unsigned: so the compiler
    sees that it is not negative, which indexes must ask of others."""
    return cute.Int32(min(cute.Uint32(number), cute.Uint32(max(cute.Int32(count - 1), cute.Int32(0)))))


@functools.cache
def make_elements(pack, group, tile_n, score, mask):
    """The functions of a thread's scores in a warpgroup's block: `row_of`, `change`, `leave_out`. All as of `Form`."""

    @cuda.jit
    def row_of(place, r, head):
        """The query, and the head, of a thread's row r, the one at `place`, or the eighth after; and whether it is one:
        of a group that is not a power of two some rows are nobody's."""
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
                query = within(query, queries)
                for i in cute.range_constexpr(cute.size(scores, mode=[1])):
                    key = within(n * tile_n + column + i // 2 * 8 + i % 2, keys)
                    scores[r, i] = score(scores[r, i] * scale, b, own_head, query, key, *aux)

    @cuda.jit
    def leave_out(scores, n, place, column, b, head, aux, queries, keys):
        """Leave out the scores of block n that the mask's function does not allow, which is asked as that of `change`
        is, by some keys at a time: what it loads of all would not fit in registers."""
        columns = cute.size(scores, mode=[1])
        for first in cute.range_constexpr(0, columns, AT_ONCE):
            if n * tile_n + first // 2 * 8 < keys:
                for i in cute.range_constexpr(first, min(first + AT_ONCE, columns)):
                    key = within(n * tile_n + column + i // 2 * 8 + i % 2, keys)
                    for r in cute.range_constexpr(2):  # last: what hangs on a key is then not kept
                        query, own_head, _ = row_of(place, r, head)
                        query = within(query, queries)
                        scores[r, i] = kept(mask(b, own_head, query, key, *aux), scores[r, i], -math.inf)

    return row_of, change, leave_out
