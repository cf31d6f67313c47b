# SPDX-License-Identifier: Apache-2.0
"""Experts on several GPUs, in the simulator: right against float64 for 2 to 8 ranks, whatever tokens choose, launch
after launch; and what the simulator says where a wait or a signal is left out."""

from __future__ import annotations

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import arch
from numba_cute.kernels.distributed import combine, dispatch, experts_plan
from numba_cute.kernels.gemm import grouped
from numba_cute.kernels.gemm.epilogue import swiglu
from numba_cute.sim import RaceError, SimError
from numba_cute.utils.distributed import Signals

from .routed import NARROW, Experts, Extents

SLOW = pytest.mark.slow
WIDE, SHARED = grouped.Cut(256, (1, 1), True), grouped.Cut(256, (2, 1))


def choices(seed, counts, topk, experts):
    """Experts of so many tokens of each rank, some of which are none."""
    rng = np.random.default_rng(seed)
    return [rng.integers(-1, experts, (n, topk)).astype(np.int32) for n in counts]


@SLOW
def test_rows_travel_without_a_product():
    it = Experts(Extents(2, 4, 16, 2, 4, 16), 8)
    for step in range(2):
        indices = choices(step, (4, 3 * step), 2, 4)
        it.bring(indices, step)
        it.combine(indices, step, multiply=False)


@SLOW
@pytest.mark.parametrize(
    "ranks, tokens, hidden, topk, experts, n, cut, clusters",
    [
        (2, (20, 9), 64, 2, 4, 24, NARROW, 1),
        (2, (40, 0), 72, 2, 2, 24, NARROW, 2),
        (2, (20, 50), 72, 3, 4, 136, WIDE, 1),
        (2, (90, 70), 64, 2, 2, 72, SHARED, 1),
        (4, (4, 3, 0, 5), 64, 8, 8, 24, NARROW, 1),
        (8, (2, 1, 0, 1, 1, 1, 1, 1), 64, 2, 8, 24, NARROW, 1),
    ],
    ids=str,
)
def test_rows_are_multiplied_where_they_come_and_added_up_where_they_are_from(
    ranks, tokens, hidden, topk, experts, n, cut, clusters
):
    it = Experts(Extents(ranks, max(tokens), hidden, topk, experts, ranks * max(tokens) * topk), n, cut=cut)
    for step in range(2 if ranks == 2 and cut == NARROW else 1):
        indices = choices(step, tokens[::-1] if step else tokens, topk, experts)
        it.dispatch(indices, step, clusters)
        it.combine(indices, step, clusters)


def in_slabs(tokens=(2, 2), topk=2, steps=1):
    """Rows of two tiles' columns go back, a slab each. Only the first two ranks' experts are chosen."""
    ranks = len(tokens)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experts_plan, "SLAB", 128)
        it = Experts(Extents(ranks, max(tokens), 136, topk, ranks, ranks * max(tokens) * topk), 24)
        for step in range(steps):
            indices = choices(step, tokens, topk, 2)
            it.find(indices, step)
            it.combine(indices, step, 1 + step)


@SLOW
@pytest.mark.parametrize(
    "tokens, topk, steps", [((5, 2), 2, 2), ((2, 0, 0, 1), 9, 1), ((1, 0, 0, 0, 0, 0, 0, 1), 2, 1)], ids=str
)
def test_a_slab_is_added_up_while_the_next_one_is_made(tokens, topk, steps):
    in_slabs(tokens, topk, steps)


@SLOW
@pytest.mark.parametrize("expert", [3, 0, -1])
def test_all_tokens_may_choose_one_expert_or_none(expert):
    it = Experts(Extents(2, 40, 64, 2, 4, 160), 24)
    indices = [np.full((40, 2), expert, np.int64) for _ in range(2)]
    it.dispatch(indices)
    for got in it.combine(indices):
        assert expert >= 0 or not got.any()


@SLOW
def test_they_are_right_in_float16_and_in_any_order():
    it, indices = Experts(Extents(2, 5, 64, 2, 4, 20), 24, cute.Float16), choices(0, (5, 4), 2, 4)
    found = []
    for seed in range(2):
        it.dispatch(indices, 0, 2, order=seed)
        found.append(it.combine(indices, 0, 2, order=seed))
    for one, other in zip(*found):
        assert (one == other).all()  # bit by bit


def travels(multiply=False):
    it, indices = Experts(Extents(2, 6, 16, 2, 4, 24), 8), choices(1, (6, 6), 2, 4)
    (it.dispatch if multiply else it.bring)(indices)
    it.combine(indices, multiply=multiply)


@SLOW
@pytest.mark.parametrize(
    "owner, name", [(dispatch.Arriving, "await_tile"), (combine.Returning, "await_all")], ids=lambda x: str(x)
)
def test_a_wait_that_is_left_out_is_a_race(monkeypatch, owner, name):
    monkeypatch.setattr(owner, name, lambda self, *args: None)
    with pytest.raises(RaceError):
        travels(name == "await_tile")


@SLOW
def test_a_slab_that_is_added_up_before_it_is_sent_is_a_race(monkeypatch):
    sent_before = combine.Returning.sent_before
    monkeypatch.setattr(combine.Returning, "sent_before", lambda self, slab: sent_before(self, min(slab + 1, 2)))
    with pytest.raises(RaceError):
        in_slabs()


@SLOW
def test_a_rank_that_is_not_told_waits_and_is_named(monkeypatch):
    monkeypatch.setattr(combine.Returning, "sent", lambda self, *args: None)
    with pytest.raises(SimError, match="rank [01]"):
        travels()


@SLOW
def test_a_signal_that_other_gpus_do_not_see_is_found(monkeypatch):
    def put(self, peer, slot, value):
        arch.store(self._flag(slot, self.rank, peer, "put"), value, sem="release", scope="gpu")

    monkeypatch.setattr(Signals, "put", put)
    with pytest.raises(SimError, match="scope"):
        travels()


def in_a_row(*steps):
    """Rows travel to and fro, and again, as one stream of each rank runs it."""
    it = Experts(Extents(2, 2, 16, 1, 2, 4), 8)
    indices = [np.full((2, 1), other, np.int32) for other in (1, 0)]
    with cute.simulate.sequence():
        for step in steps:
            it.bring(indices)
            for seed in range(step):
                it.combine(indices, seed, multiply=False)


@SLOW
def test_no_launch_writes_what_the_one_before_may_still_read(monkeypatch):
    in_a_row(1, 2)
    monkeypatch.setattr(combine.Returning, "await_room", lambda self: None)
    with pytest.raises(RaceError, match="rank"):
        in_a_row(2)


@SLOW
@pytest.mark.parametrize("cut", [NARROW, WIDE, SHARED], ids=str)
def test_all_is_held_in_registers(cut):
    it = Experts(Extents(2, 512, 2048, 8, 8, 2048), 512, cut=cut)
    room, signals, one = it.rooms[0], it.signals[0], lambda ctas: 1
    weights, out = np.zeros((512, 8), np.float32), np.zeros((512, 2048), it.dtype.numpy)
    for epilogue in (None, swiglu()):
        h = np.zeros((2048, 512 if epilogue is None else 256), it.dtype.numpy)
        kernel, given, *_ = experts_plan.dispatch_matmul(
            it.tokens, it.first[0], h, it.extents, room, 0, signals, one, cut, epilogue
        )
        _compiles(kernel, given)
    kernel, given, *_ = experts_plan.matmul_combine(
        it.h[0], it.second[0], weights, out, it.back, it.extents, room, 0, signals, one, cut
    )
    _compiles(kernel, given)


@SLOW
def test_kernels_without_a_product_are_held_in_registers():
    it = Experts(Extents(2, 512, 1024, 8, 8, 2048), 512)
    indices, weights = np.zeros((512, 8), np.int32), np.zeros((512, 8), np.float32)
    out, of = np.zeros((512, 1024), it.dtype.numpy), (it.extents, it.rooms[0], 0, it.signals[0], 1)
    for kernel, given, *_ in (
        experts_plan.route(indices, it.peers, *of),
        experts_plan.dispatch(it.tokens, *of),
        experts_plan.combine(it.rooms[0].here, weights, out, it.back, *of),
    ):
        _compiles(kernel, given)


def _compiles(kernel, given):
    made = cute.compile(kernel, given, arch="sm_90a")
    assert made.resources.spill_stores == made.resources.local == 0 and not made.notes
