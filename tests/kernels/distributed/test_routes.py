# SPDX-License-Identifier: Apache-2.0
"""The ways of tokens to experts on several simulated GPUs, found on them; and what is refused, and said later."""

from __future__ import annotations

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import CuteError
from numba_cute.kernels.distributed import dispatch, experts, routes
from numba_cute.kernels.distributed.experts_plan import Extents

from .routed import Routed

SLOW = pytest.mark.slow


def check(it, indices):
    """Compare with what NumPy finds."""
    pairs = it.extents.pairs
    for rank, room in enumerate(it.rooms):
        rows, ends = it.wanted(indices, rank)
        assert room.ends.tolist() == ends
        assert [divmod(x, pairs) for x in room.origins[: len(rows)].tolist()] == rows
        assert not room.arrived.any() and not room.report.any()
        assert (room.chosen[: indices[rank].size] == np.maximum(indices[rank].ravel(), routes.NOWHERE)).all()


@pytest.mark.parametrize(
    "ranks, tokens, topk, experts, blocks, steps",
    [
        (2, (9, 0), 2, 4, 1, 1),
        pytest.param(2, (100, 70), 3, 6, 3, 2, marks=SLOW),
        pytest.param(4, (5, 40, 0, 33), 1, 64, 2, 2, marks=SLOW),
        pytest.param(8, (9, 8, 7, 6, 5, 4, 3, 2), 8, 8, 1, 2, marks=SLOW),
        pytest.param(3, (40, 2, 40), 2, 99, 2, 1, marks=SLOW),
    ],
)
def test_rows_find_their_ways(ranks, tokens, topk, experts, blocks, steps):
    it = Routed(Extents(ranks, max(tokens), topk=topk, hidden=64, experts=experts, capacity=ranks * max(tokens) * topk))
    for step in range(steps):
        rng = np.random.default_rng(step)
        indices = [rng.integers(-2, experts, (n, topk)).astype((np.int32, np.int64)[step]) for n in tokens]
        for room in it.rooms:
            room.arrived.fill(9)
        it.route(indices, blocks, order=step)
        check(it, indices)


@SLOW
def test_what_has_no_room_goes_nowhere_and_all_ranks_say_so():
    extents = Extents(2, 20, 64, 2, 4, 30)
    it = Routed(extents)
    many, few = ([np.full((20, 2), expert, np.int32) for expert in pair] for pair in ((3, 2), (0, -1)))
    few[0][10:] = 2
    it.route(many, 2)
    for room in it.rooms:
        assert not room.ends.any() and (room.chosen == routes.WRONG).all()
        says = experts.refused(room.report, extents)
        assert says.startswith("ExpertParallel: 80 rows came to rank 1, and there is room for 30: what that call gave")
        room.report.fill(0)
        room.arrived.fill(1)
    it.route(few)
    check(it, few)


@SLOW
def test_an_expert_that_there_is_not_is_said_and_its_token_is_known():
    extents = Extents(2, 4, 64, 2, 4, 16)
    it = Routed(extents)
    indices = [np.full((4, 2), 1, np.int64) for _ in range(2)]
    indices[1][2, 1] = 1 << 40
    indices[1][3, 0] = 4
    it.route(indices)
    assert it.rooms[1].chosen.tolist() == [1, 1, 1, 1, 1, routes.WRONG, routes.WRONG, 1]
    assert experts.refused(it.rooms[0].report, extents) == ""
    said = "indices name expert 2147483647, and there are 4: what such tokens gave is NaN"
    assert said in experts.refused(it.rooms[1].report, extents)
    assert it.rooms[0].ends.tolist() == [0, 14]


def test_rows_are_cut_into_pieces_that_are_alike():
    found = {n: dispatch.pieces_of(n) for n in (16, 144, 4096, 4112, 5760, 14336, 16 * 1021)}
    assert found == {16: 1, 144: 1, 4096: 1, 4112: 257, 5760: 2, 14336: 4, 16 * 1021: 1021}


def test_a_block_has_memory_for_its_counts():
    for count, pairs, warps in ((256, 32768, 32), (8, 16, 1), (8, 64, 2), (2048, 32768, 16), (8192, 32768, 4)):
        assert routes.warps_for(count, pairs) == warps
        assert 4 * count * (warps + 2) < cute.target("sm_90a").smem_per_block - 1024


def test_extents_that_experts_can_have():
    assert experts.check_extents(4, 8, 64, 2, 16, None) == Extents(4, 8, 64, 2, 16, 64)
    assert experts.check_extents(4, 8, 64, 2, 16, 99).capacity == 64
    assert experts.check_extents(4, 8, 64, 2, 16, 9).capacity == 9


@pytest.mark.parametrize(
    "given, said",
    [
        ((1, 8, 64, 2, 4, None), "the group has only one rank"),
        ((2, 8, 64, 2, 5, None), "experts 5 must be a multiple of the 2 ranks"),
        ((2, 8, 60, 2, 4, None), "hidden 60 must be a multiple of 8"),
        ((2, 8, 64, 2.0, 4, None), "topk 2.0 must be an int of 1 or more"),
        ((2, 0, 64, 2, 4, None), "tokens 0 must be an int of 1 or more"),
        ((2, 8, 64, 2, 4, 0), "capacity 0 must be an int of 1 or more"),
        ((8, 1 << 25, 64, 8, 8, None), "are too many"),
        ((2, 8, 64, 2, 16384, None), "8192 at most"),
    ],
)
def test_extents_that_are_refused(given, said):
    with pytest.raises(CuteError, match=f"^ExpertParallel: .*{said}"):
        experts.check_extents(*given)


def tokens(rows=8, hidden=64, topk=2, dtype=np.float16, of=np.int32):
    return np.zeros((rows, hidden), dtype), np.zeros((rows, topk), of)


@pytest.mark.parametrize(
    "given, said",
    [
        (tokens(9), "x has 9 rows, and there is memory for 8 tokens of a rank"),
        (tokens(hidden=32), r"x is .*; its shape must be \(any, 64\)"),
        (tokens(dtype=np.float32), "x is float32 .*its elements must be float16"),
        (tokens(of=np.int16), "indices is int16 .*its elements must be int32 or int64"),
        (tokens(topk=3), r"indices is .*its shape must be \(8, 2\)"),
        (
            (tokens()[0], np.zeros((8, 4), np.int32)[:, :2]),
            "indices is .*; it must be contiguous: give indices.contiguous",
        ),
    ],
)
def test_tokens_that_do_not_fit_are_refused(given, said):
    extents, like = Extents(2, 8, 64, 2, 4, 32), np.zeros((8, 64), np.float16)
    experts.check_tokens("dispatch", *tokens(), extents, like)
    experts.check_tokens("dispatch", *tokens(0), extents, like)
    with pytest.raises(CuteError, match=f"^dispatch: {said}"):
        experts.check_tokens("dispatch", *given, extents, like)


def test_matrices_are_those_of_a_ranks_experts():
    extents, like = Extents(2, 8, 64, 2, 4, 32), np.zeros((8, 64), np.float16)
    experts.check_matrices("dispatch", np.zeros((2, 24, 64), np.float16), extents, 64, None, like)
    with pytest.raises(CuteError, match=r"dispatch: w is .*; its shape must be \(2, any, 64\)"):
        experts.check_matrices("dispatch", np.zeros((4, 24, 64), np.float16), extents, 64, None, like)
