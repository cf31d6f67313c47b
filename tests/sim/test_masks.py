# SPDX-License-Identifier: Apache-2.0
"""Exchanges among some lanes of a warp: exactly those that the mask names take part, wherever the others are."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.seam import CuteError
from numba_cute.sim import DeadlockError, SimError

LANES = np.arange(32)
VALUES = (LANES * 7 + 3) % 11


@cuda.jit
def exchanged(got, mask, rest):
    """The lanes of `mask` by that mask, the others by `rest`; all of them in a branch of their own."""
    i = arch.lane_idx()
    value = (i * 7 + 3) % 11
    if mask >> i & 1:
        got[0, i] = arch.shuffle_sync(value, 4, mask)
        got[1, i] = arch.vote_ballot_sync(value > 5, mask)
        got[2, i] = arch.vote_all_sync(value > 0, mask)
        got[3, i] = arch.vote_any_sync(value == 10, mask)
        got[4, i] = arch.warp_redux_sync(value, "add", mask)
        got[5, i] = arch.warp_redux_sync(value, "max", mask)
        got[6, i] = arch.match_sync(mask, value)
        got[7, i] = arch.match_sync(mask, i // 32, "all")
        got[8, i] = arch.vote_uni_sync(value > 20, mask)
        arch.sync_warp(mask)
    else:
        got[4, i] = arch.warp_redux_sync(value, "add", rest)
    arch.sync_warp()


def bits(lanes):
    return int(sum(1 << int(lane) for lane in lanes))


@pytest.mark.parametrize("mask", [0x0000FFFF, 0x55555550, 0x00000010, 0xFFFFFFFF, 0x8000F0F0], ids=hex)
def test_the_lanes_of_a_mask_exchange_among_themselves(run, mask):
    got = np.zeros((9, 32), np.int64)
    inside, other = (np.array([m >> i & 1 for i in LANES], bool) for m in (mask, ~mask))
    mine = LANES[inside]
    want = np.zeros_like(got)
    v = VALUES[inside]
    rows = [VALUES[4], bits(mine[v > 5]), (v > 0).all(), (v == 10).any(), v.sum(), v.max(), 0, mask, True]
    for at, value in enumerate(rows):
        want[at, inside] = value
    want[6, inside] = [bits(mine[v == x]) for x in v]
    want[4, other] = VALUES[other].sum()

    def check():
        np.testing.assert_array_equal(got, want)

    def filled(place):
        got[...] = 0
        return cute.runtime.from_dlpack(place(got))

    run(exchanged, 1, 32, [filled, np.uint32(mask), np.uint32(~mask & 0xFFFFFFFF)], inouts=[got], check=check)


@cuda.jit
def halves(got):
    """A static mask for half a warp while the other half already waits for all."""
    i = arch.lane_idx()
    total = 0
    if i < 16:
        total = arch.warp_redux_sync(i, "add", 0xFFFF)
        total += arch.shuffle_sync_down(total, 1, 0xFFFF) * 0
    arch.sync_warp()
    got[i] = total


def test_half_a_warp_may_be_ahead_of_the_other(run):
    got = np.zeros(32, np.int32)
    want = np.where(LANES < 16, 120, 0)
    tensor = lambda place: cute.runtime.from_dlpack(place(got))  # noqa: E731
    run(halves, 1, 32, [tensor], outputs=[got], check=lambda: np.testing.assert_array_equal(got, want))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("checks", [True, False])
def test_the_order_of_the_lanes_does_not_matter(seed, checks):
    got = np.zeros(32, np.int32)
    cute.simulate(halves, seed=seed, checks=checks)[1, 32](got)
    np.testing.assert_array_equal(got, np.where(LANES < 16, 120, 0))


def test_a_lane_must_be_in_its_own_mask():
    @cuda.jit
    def outside(got):
        got[arch.lane_idx()] = arch.vote_ballot_sync(True, 0xFFFF)

    with pytest.raises(SimError, match=r"vote_ballot: .*not in its own mask 0xffff"):
        cute.simulate(outside)[1, 32](np.zeros(32, np.int64))


def test_a_lane_that_its_mask_awaits_for_ever_is_named():
    @cuda.jit
    def missing(got):
        if arch.lane_idx() < 8:
            arch.sync_warp(0xFFFF)
        got[arch.lane_idx()] = 1

    with pytest.raises(DeadlockError, match=r"warp that the mask 0xffff names"):
        cute.simulate(missing)[1, 32](np.zeros(32, np.int64))


def test_a_mask_without_lanes_is_refused():
    @cuda.jit
    def none(got):
        arch.sync_warp(0)

    with pytest.raises(CuteError, match="sync_warp: mask 0 names no lane"):
        cute.simulate(none)[1, 32](np.zeros(32, np.int64))


@cuda.jit
def numbas(got, mask):
    """Numba's own exchanges, by the lanes of `mask` alone."""
    i = cuda.laneid
    value = (i * 7 + 3) % 11
    if mask >> i & 1:
        got[0, i] = cuda.shfl_sync(mask, value, 4)
        got[1, i] = cuda.ballot_sync(mask, value > 5)
        got[2, i] = cuda.all_sync(mask, value > 0)
        got[3, i] = cuda.any_sync(mask, value == 10)
        got[4, i] = cuda.eq_sync(mask, value > 20)
        got[5, i] = cuda.match_any_sync(mask, value)
        cuda.syncwarp(mask)
    cuda.syncwarp()


@pytest.mark.parametrize("mask", [0x0000FFFF, 0x55555550, 0x00000010, 0x7FFFFFFF], ids=hex)
def test_numbas_exchanges_take_the_lanes_of_their_mask(run, mask):
    got = np.zeros((6, 32), np.int64)
    mine = LANES[[bool(mask >> i & 1) for i in LANES]]
    v, want = VALUES[mine], np.zeros_like(got)
    for at, value in enumerate([VALUES[4], bits(mine[v > 5]), (v > 0).all(), (v == 10).any(), True]):
        want[at, mine] = value
    want[5, mine] = [bits(mine[v == x]) for x in v]

    def filled(place):
        got[...] = 0
        return place(got)

    run(numbas, 1, 32, [filled, np.int32(mask)], inouts=[got], check=lambda: np.testing.assert_array_equal(got, want))
