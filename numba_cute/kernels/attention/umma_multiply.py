# SPDX-License-Identifier: Apache-2.0
"""The role of the warp of Blackwell's attention that multiplies."""

import functools

from numba import cuda

import numba_cute as cute

from .umma_form import lies, multiplies, sums_of
from .umma_parts import make_tiles
from .umma_roles import multiply


@functools.cache
def make_multiply_role(form):
    """The role of the warp that multiplies: `multiply_tiles`."""
    dtype, groups, tile_n, dv = form.dtype, form.groups, form.tile_n, form.dv
    (q_lies, k_lies, v_lies), (scores, values) = lies(form)[1], multiplies(form)
    s_layout, p_layout, _, o_layout = sums_of(form)
    start, after, tile_at = make_tiles(form)

    @cuda.jit
    def score(base, g, fQ, fK, at_q, at_k):
        """Issue S = Q K^T of a group."""
        multiply(scores, cute.make_tensor(base + g * tile_n, s_layout), fQ[None, None, None, at_q],
                 fK[None, None, None, at_k], False)  # fmt: skip

    @cuda.jit
    def weigh(base, g, fV, at_v, adds):
        """Issue O (+)= P V of a group, whose P lies where its S was."""
        fP = cute.make_tensor(cute.recast_ptr(base + g * tile_n, dtype=dtype), p_layout)
        tO = cute.make_tensor(base + (groups * tile_n + g * dv), o_layout)
        multiply(values, tO, fP, fV[None, None, None, at_v], adds)

    @cuda.jit
    def multiply_tiles(waits_q, leaves_q, full_k, full_v, products, results, base, sQ, sK, sV, given):
        """Issue all products of the CTA, those of the groups in turns. A group's S begins when its P before was
        multiplied, in the unit's own order; its P V when its threads say that P is there, and O is scaled."""
        fQ = scores.make_fragment_A(cute.make_tensor(sQ.iterator, q_lies.outer))
        fK = scores.make_fragment_B(cute.make_tensor(sK.iterator, k_lies.outer))
        fV = values.make_fragment_B(cute.make_tensor(sV.iterator, v_lies.outer))
        index, seen = start(given)
        while index < given.order.tiles:
            tile = tile_at(index, given)
            blocks, at_q = cute.Int32(tile.end - tile.begin), leaves_q.state.index
            key = full_k.wait_and_advance()
            for g in cute.range_constexpr(groups):
                waits_q.wait_and_advance()
                product = products.acquire_and_advance()
                score(base, g, fQ, fK, at_q + g, key.index)
                product.commit()
            key.release()
            for i in range(1, blocks):
                key, value = full_k.wait_and_advance(), full_v.wait_and_advance()
                for g in cute.range_constexpr(groups):
                    product = products.acquire_and_advance()
                    weigh(base, g, fV, value.index, i > 1)
                    score(base, g, fQ, fK, at_q + g, key.index)
                    product.commit()
                key.release()
                value.release()
            for _ in cute.range_constexpr(groups):
                leaves_q.release()
                leaves_q.advance()
            value, last = full_v.wait_and_advance(), products.clone()
            for g in cute.range_constexpr(groups):
                last.acquire_and_advance()
                result = results.acquire_and_advance()
                weigh(base, g, fV, value.index, blocks > 1)
                result.commit()
            value.release()
            index, seen = after(index, seen, given)

    return multiply_tiles
