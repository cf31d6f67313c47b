# SPDX-License-Identifier: Apache-2.0
"""Products of several GPUs, in the simulator: right against float64 for 2 to 8 ranks, launch after launch, in other
orders; and what the simulator says where a wait is left out."""

import functools

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import CuteError
from numba_cute.kernels.distributed import bringing, gather, plan, ring, scatter, sums
from numba_cute.kernels.gemm.plan import Plan
from numba_cute.sim import RaceError, SimError
from tests.native import Native

from .ranks import Gathered, Reduced, Scattered, random

SLOW = pytest.mark.slow


@SLOW
@pytest.mark.parametrize(
    "ranks, rows, n, k, cut, clusters",
    [
        (2, 24, 64, 72, Plan(64, 1), 1),
        (4, 8, 72, 64, Plan(64, 1), 2),
        (8, 8, 64, 72, Plan(64, 1), 1),
        (2, 136, 72, 136, Plan(64, 2), 2),
        (3, 24, 136, 72, Plan(128, 1), 1),
    ],
    ids=str,
)
def test_rows_of_all_ranks_are_multiplied(ranks, rows, n, k, cut, clusters):
    product = Gathered(ranks, rows, n, k, cut=cut)
    for step in range(2):
        product.step(step, clusters)


@SLOW
@pytest.mark.parametrize(
    "ranks, rows, n, k, cut, clusters",
    [
        (2, 24, 72, 72, Plan(64, 1), 1),
        (4, 8, 64, 64, Plan(64, 1), 2),
        (8, 8, 64, 64, Plan(64, 1), 1),
        (2, 136, 72, 72, Plan(64, 2), 2),
        (3, 24, 200, 72, Plan(192, 1), 1),
    ],
    ids=str,
)
def test_each_rank_has_its_rows_of_the_sum(ranks, rows, n, k, cut, clusters):
    product = Scattered(ranks, rows, n, k, cut=cut)
    for step in range(2):
        product.step(step, clusters)


@SLOW
@pytest.mark.parametrize("once", [False, True], ids=["two shots", "one shot"])
@pytest.mark.parametrize(
    "ranks, m, n, k, cut", [(2, 48, 72, 72, Plan(64, 1)), (4, 32, 64, 64, Plan(64, 1)), (2, 272, 72, 72, Plan(64, 2))]
)
def test_all_ranks_have_the_sum(ranks, m, n, k, cut, once):
    product = Reduced(ranks, m, n, k, cut=cut, once=once)
    for step in range(2):
        product.step(step, 2)
    for c in product.c:
        assert (c == product.c[0]).all()  # bit by bit


@SLOW
@pytest.mark.parametrize("slots", [(4, 8, 5, 4), (4, 2, 1, 0), (16, 2, 1, 3), (8, 1, 0, 0)], ids=str)
def test_pieces_are_brought_by_any_slots(slots):
    product = Gathered(2, 72, 64, 520, slots=bringing.Slots(*slots))
    for step in range(2):
        product.step(step, 1)


@SLOW
@pytest.mark.parametrize("kind", [Gathered, Scattered], ids=lambda kind: kind.__name__)
def test_they_are_right_in_float16_and_in_any_order(kind):
    product = kind(2, 24, 64, 72, cute.Float16)
    for seed in range(2):
        product.step(seed, 2, seed=seed)


def without(monkeypatch, owner, name):
    """Leave a method out that kernels call."""
    monkeypatch.setattr(owner, name, lambda first, *args: None)


@SLOW
@pytest.mark.parametrize(
    "kind, owner, name",
    [
        (Gathered, gather.Rows, "await_rows"),
        (Scattered, scatter.Sending, "await_part"),
        (Reduced, sums, "await_sums"),
        (functools.partial(Reduced, once=True), sums, "await_parts"),
    ],
    ids=lambda x: getattr(x, "__name__", x),
)
def test_a_wait_that_is_left_out_is_a_race(monkeypatch, kind, owner, name):
    without(monkeypatch, owner, name)
    with pytest.raises(RaceError):
        kind(2, 24 if kind is Gathered or kind is Scattered else 48, 64, 72).step(0)


@SLOW
def test_a_rank_that_is_not_told_waits_and_is_named(monkeypatch):
    without(monkeypatch, scatter.Sending, "sent")
    with pytest.raises(SimError, match="rank [01]"):
        Scattered(2, 24, 64, 72).step(0)


def test_a_ring_begins_with_any_gpu():
    order = ring.Ring((2, 1, 3), (1, 1, 1), start=2)
    seen = np.zeros((6, 3), np.int32)

    def kernel(seen):
        for i in range(6):
            seen[i, 0], seen[i, 1], seen[i, 2] = order.decode(i)

    cute.simulate(kernel)[1, 1](seen)
    assert seen.tolist() == [[0, 0, 2], [1, 0, 2], [0, 0, 0], [1, 0, 0], [0, 0, 1], [1, 0, 1]]


@pytest.mark.parametrize("world, m, n, behind", [(2, 1, 1, 0), (2, 3, 2, 3), (3, 5, 4, 7), (8, 5, 4, 3), (4, 2, 2, 9)])
def test_parts_come_before_the_tiles_that_they_are_added_to(world, m, n, behind):
    places, seen = [], np.zeros((world * m * n, 3), np.int32)

    def kernel(seen, order):
        i = cuda.threadIdx.x
        seen[i, 0], seen[i, 1], seen[i, 2] = order.decode(i)

    for rank in range(world):
        tiles = cute.Int32(m), cute.Int32(n), cute.Int32(world)
        order = ring.Turns(tiles, (1, 1, 1), 1, True, cute.Int32(rank), cute.Int32(behind))
        cute.simulate(kernel)[1, len(seen)](seen, order)
        native = np.zeros_like(seen)
        Native(kernel, (native, order)).run(len(seen), native, order)
        assert (native == seen).all()
        places.append({tuple(place): i for i, place in enumerate(seen.tolist())})
        assert sorted(places[-1]) == [(x, y, owner) for x in range(m) for y in range(n) for owner in range(world)]
    for rank, own in enumerate(places):
        others = [other for other in range(world) if other != rank]
        assert all(places[other][x, y, rank] < own[x, y, rank] for other in others for x in range(m) for y in range(n))


def test_signals_have_slots_for_all_units_in_steps_that_few_extents_share():
    assert plan.slots_of(64, 256, 256) == plan.slots_of(4096, 2048, 256) == 1023
    for rows, n, twice in ((4096, 8192, False), (4096, 8192, True), (65, 1032, False)):
        units = -(-rows // 64) * -(-n // 128)
        assert plan.slots_of(rows, n, 128, twice) >= ring.SLOTS + units * (1 + twice)


def test_a_cut_has_room_for_what_is_brought():
    from numba_cute.kernels.distributed.checks import cut_of

    c = np.empty((2, 2048, 8192), np.float16)
    for beside in (bringing.USUAL.memory, 0):
        cut = cut_of("product", c, 8192, cute.Float16, 132, None, 16, beside, None)
        assert (cut.parts, cut.splits, cut.turned) == (1, 1, False)
    for wrong in (Plan(64, 1, 2), Plan(64, 1, splits=2), Plan(64, 1, turned=True), 3):
        with pytest.raises(CuteError, match=r"product: cut is .*; give a Plan"):
            cut_of("product", c, 8192, cute.Float16, 132, None, 16, 0, wrong)
    with pytest.raises(CuteError, match="shared memory has no room"):
        cut_of("product", c, 8192, cute.Float16, 132, None, 16, bringing.USUAL.memory, Plan(256, 2, stages=3, slots=4)
               ._replace(stages=4))  # fmt: skip


def launches(kind, cut, ranks=2):
    """The kernel and its arguments on the first rank."""
    if kind == "gather":
        p = Gathered(ranks, 512, 512, 512, cut=cut)
        return plan.all_gather_matmul(p.peers, p.b[0], p.c[0], p.dtype, 0, p.signals[0], p.rooms[0], 66, cut)
    once = kind == "one shot"
    m = 512 * ranks
    p = (
        Scattered(ranks, 512, 512, 512, cut=cut)
        if kind == "scatter"
        else Reduced(ranks, m, 512, 512, cut=cut, once=once)
    )
    a, b = random((m, 512) if once else (ranks, 512, 512), p.dtype), random((512, 512), p.dtype)
    if kind == "scatter":
        return plan.matmul_reduce_scatter(a, b, p.c[0], p.peers, p.dtype, 0, p.signals[0], 66, cut)
    return plan.matmul_all_reduce(a, b, p.c[0], *p.memory, p.dtype, 0, p.signals[0], 66, cut)


@SLOW
@pytest.mark.parametrize("tile_n, ranks", [(256, 2), (192, 2), (128, 2), (64, 2), (256, 4), (128, 8)])
@pytest.mark.parametrize("kind", ["gather", "scatter", "two shots", "one shot"])
def test_they_compile_without_a_spill(kind, tile_n, ranks):
    kernel, arguments, _ = launches(kind, Plan(tile_n, 2), ranks)
    made = cute.compile(kernel, arguments, arch="sm_90a")
    assert made.resources.spill_stores == 0 and not made.notes
