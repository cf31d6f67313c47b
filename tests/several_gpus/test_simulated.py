# SPDX-License-Identifier: Apache-2.0
"""The kernels of the GPUs' tests with simulated ranks, and what is compiled of them."""

from __future__ import annotations

import re

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import arch
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_multicast, from_symmetric, make_fake_tensor
from numba_cute.seam import CuteError
from numba_cute.sim import PerRank
from numba_cute.utils.distributed import Signals, multimem_ld_reduce_4xf32
from tests.several_gpus import kernels as k


def memory(ranks):
    """As the GPUs' tests have it: the first block is 5 + 2 * rank, the third 1."""
    x = cute.sim.symmetric((k.ROWS, k.COLUMNS), np.float32, ranks)
    for r, own in enumerate(x.arrays):
        own[: k.BLOCK] = 5 + 2 * r
        own[2 * k.BLOCK : 3 * k.BLOCK] = 1
    return x, from_symmetric(x, assumed_align=128)


def block(array, which):
    return array[which * k.BLOCK : (which + 1) * k.BLOCK]


def rooms(ranks):
    return [np.zeros((k.BLOCK, k.COLUMNS), np.float32) for _ in range(ranks)]


def signals(ranks, slots=3, **options):
    peers = from_symmetric(cute.sim.symmetric((slots + 1, ranks), np.int32, ranks))
    return PerRank(*(Signals(peers, r, **options) for r in range(ranks)))


def around(ranks, step=1):
    return PerRank(*((r + step) % ranks for r in range(ranks)))


@pytest.mark.parametrize("kernel", [k.by_elements, k.by_vectors])
@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_a_peer_is_loaded_from_and_stored_to(kernel, ranks):
    (x, peers), out = memory(ranks), rooms(ranks)
    given = out if kernel is k.by_elements else [cute.runtime.from_dlpack(o) for o in out]
    cute.simulate(kernel, ranks=ranks)[1, k.THREADS](peers, PerRank(*given), PerRank(*range(ranks)), around(ranks))
    for r in range(ranks):
        assert (out[r] == 5 + 2 * ((r + 1) % ranks)).all()
        assert (block(x.arrays[r], k.STORED) == 100 + (r - 1) % ranks).all()


def test_tma_loads_stores_and_adds():
    (x, peers), out = memory(2), rooms(2)
    cute.simulate(k.by_tma, ranks=2)[1, k.THREADS](*k.tma_atoms(peers), PerRank(*out), around(2))
    for r in range(2):
        assert (out[r] == 7 - 2 * r).all()
        assert (block(x.arrays[r], k.STORED) == 6 + 2 * r).all()
        assert (block(x.arrays[r], k.ADDED) == 7 + 2 * r).all()


def test_bulk_copies():
    x, peers = memory(2)
    cute.simulate(k.in_bulk, ranks=2)[1, 32](peers, around(2))
    assert [(block(a, k.BULK) == 5 + 2 * r).all() for r, a in enumerate(x.arrays)] == [True, True]


def test_atomics_of_all_ranks_meet():
    counters = cute.sim.symmetric((4,), np.int32, 2)
    cute.simulate(k.count_up, ranks=2)[2, 32](from_symmetric(counters), 2)
    assert [a.tolist() for a in counters.arrays] == [[128, 0, 0, 0]] * 2


def test_signals_pass_a_number_to_and_fro_launch_after_launch():
    (_, peers), wrong, made = memory(2), [np.zeros(1, np.int32) for _ in range(2)], signals(2)
    for _ in range(2):
        cute.simulate(k.ping_pong, ranks=2)[1, 1](made, peers, 5, PerRank(*wrong))
    assert not any(w.any() for w in wrong)


@pytest.mark.parametrize("ranks", [2, 4])
def test_an_exchange_may_be_launched_again_and_again(ranks):
    (_, peers), made = memory(ranks), signals(ranks)
    out = [np.zeros((2, k.COLUMNS), np.float32) for _ in range(ranks)]
    for epoch in (1, 2, 3):
        cute.simulate(k.exchange, ranks=ranks)[2, 32](made, peers, PerRank(*out))
        for r in range(ranks):
            assert out[r][:, 0].tolist() == [1000.0 * ((r + 1) % ranks) + 10 * b + epoch for b in range(2)]


@pytest.mark.parametrize("ranks", [2, 8])
def test_all_ranks_meet(ranks):
    made, place = signals(ranks), cute.sim.symmetric((ranks,), np.int32, ranks)
    seen = [np.zeros(ranks, np.int32) for _ in range(ranks)]

    def kernel(signals, peers, seen, ranks):
        rank = signals.rank
        for r in range(ranks):
            peers[rank, r] = 10 + rank
        signals.meet(0, signals.epoch())
        for r in range(ranks):
            seen[r] = peers[r, rank]
        signals.meet(1, signals.epoch())
        signals.advance(1)

    for _ in range(2):
        cute.simulate(kernel, ranks=ranks)[1, 1](made, from_symmetric(place), PerRank(*seen), ranks)
    assert [s.tolist() for s in seen] == [[10 + r for r in range(ranks)]] * ranks


def test_without_the_second_meeting_a_rank_may_be_overtaken():
    """What the second one is for: a rank that is still reading would find what comes next."""
    made, place = signals(2), cute.sim.symmetric((2,), np.int32, 2)

    def kernel(signals, peers, turns):
        rank = signals.rank
        for turn in range(1, turns + 1):
            peers[rank, 1 - rank] = turn
            signals.put(1 - rank, 0, turn)
            signals.wait(1 - rank, 0, turn)
            if peers[1 - rank, rank] < 0:
                peers[0, rank] = 0

    with pytest.raises(CuteError, match="(?s)race: .*rank"):
        cute.simulate(kernel, ranks=2)[1, 1](made, from_symmetric(place), 2)


def test_a_rank_that_does_not_come_is_named():
    with pytest.raises(CuteError, match="(?s)rank 1.*waits_for|waits_for.*rank 1"):
        cute.simulate(k.waits_for, ranks=2)[1, 1](signals(2), 1)


@pytest.mark.parametrize(
    "shape, dtype, says",
    [
        ((4,), np.int32, r"flags of shape"),
        ((4, 2), np.int32, r"flags of shape \(4, 2\) must be of static shape \(slots \+ 1, ranks, ranks\)"),
        ((4, 2, 3), np.int32, "flags of shape"),
        ((1, 2, 2), np.int32, "flags of shape"),
        ((4, 2, 2), np.float32, "must be a tensor of Int32 or Uint32"),
    ],
)
def test_flags_of_another_form_are_refused(shape, dtype, says):
    with pytest.raises(CuteError, match=says):
        Signals(cute.runtime.from_dlpack(np.zeros(shape, dtype)), 0)


@pytest.mark.parametrize(
    "given, says",
    [
        ({"rank": "a"}, "rank 'a' must be an integer$"),
        ({"rank": 0, "limit": 2.5}, "limit 2.5 must be an integer of nanoseconds"),
        ({"rank": 0, "report": 7}, "report 7 must be what Signals.create makes"),
    ],
)
def test_other_arguments_are_refused(given, says):
    with pytest.raises(CuteError, match=says):
        Signals(cute.runtime.from_dlpack(np.zeros((3, 2, 2), np.int32)), **given)


def test_ranks_and_slots_that_there_are_not():
    made = Signals(cute.runtime.from_dlpack(np.zeros((3, 2, 2), np.int32)), 0)
    assert (made.world, made.slots) == (2, 2)
    for call, says in (
        (lambda s: s.put(2, 0, 1), r"Signals.put: peer 2 is not in \[0, 2\)"),
        (lambda s: s.wait(1, 2, 1), r"Signals.wait: slot 2 is not in \[0, 2\)"),
        (lambda s: s.add(1, -1), r"Signals.add: slot -1 is not in \[0, 2\)"),
    ):
        with pytest.raises(CuteError, match=says):
            cute.simulate(call)[1, 1](made)
    with pytest.raises(CuteError, match="rank 2 is not one of 2"):
        Signals(made.flags, 2)


def test_what_a_wait_and_a_put_are_compiled_to():
    flags = make_fake_tensor(cute.Int32, (4, 2, 2), (2, 1, 1 << 19))
    report = make_fake_tensor(cute.Uint32, (4,), (1,))
    made = Signals(flags, cute.Int32(0), cute.Int64(10), report)
    peers = make_fake_tensor(cute.Float32, (k.ROWS, k.COLUMNS, 2), (k.COLUMNS, 1, 1 << 19))
    wrong = make_fake_tensor(cute.Int32, (1,), (1,))
    ptx = cute.compile(k.ping_pong, made, peers, 5, wrong, arch="sm_90a").ptx
    assert len(re.findall(r"st\.release\.sys\.global\.b32", ptx)) == 2
    assert len(re.findall(r"ld\.acquire\.sys\.global\.b32", ptx)) == 4, "two waits, each with a first look"
    assert "st.relaxed.sys.global.v4.b32" in ptx and "%globaltimer" in ptx and "trap;" in ptx


def test_multimem_reaches_all_ranks_and_nothing_else_a_multicast_tensor():
    x = cute.sim.symmetric((32, 4), np.float32, 2)
    outs = [np.zeros((32, 4), np.float32) for _ in range(2)]
    for r, own in enumerate(x.arrays):
        own[:] = np.arange(128).reshape(32, 4) + 1000 * r
    everywhere = from_multicast(x, assumed_align=16)

    def kernel(everywhere, out):
        row = cute.arch.thread_idx()[0]
        words = multimem_ld_reduce_4xf32(cute.domain_offset((row, 0), everywhere).iterator)
        for i in range(4):
            out[row, i] = words[i]

    cute.simulate(kernel, ranks=2)[1, 32](everywhere, PerRank(*outs))
    for out in outs:
        np.testing.assert_array_equal(out, 2 * np.arange(128).reshape(32, 4) + 1000)


ONE = cute.make_layout(4)
OTHERWISE = {
    "load": lambda t, x: x.fill(t[0]),
    "store": lambda t, x: t.fill(1.0),
    "vector copy": lambda t, x: cute.autovec_copy(t, x),
    "vector load": lambda t, x: x.store(t.load()),
    "atomic": lambda t, x: arch.atomic_add(t.iterator, 1.0),
    "red": lambda t, x: arch.red(t.iterator, 1.0, "add", cute.Float32),
    "ordered load": lambda t, x: arch.load(t.iterator, cute.Float32, sem="acquire", scope="sys"),
    "bulk copy": lambda t, x: cute.copy(
        cute.make_copy_atom(cpasync.CopyBulkS2GOp(), cute.Float32, num_bits_per_copy=128),
        cute.make_tensor(arch.alloc_smem(cute.Float32, 4, alignment=16), ONE), t,
    ),
    "part": lambda t, x: x.fill(cute.local_tile(t, (2,), (1,))[0]),
    "recast": lambda t, x: x.fill(cute.recast_tensor(t, cute.Int32)[0]),
}  # fmt: skip


@pytest.mark.parametrize("how", OTHERWISE)
def test_a_multicast_tensor_is_not_accessed_otherwise(how):
    made = from_multicast(cute.sim.symmetric((4,), np.float32, 2), assumed_align=16)
    access = OTHERWISE[how]

    def kernel(t):
        x = cute.make_rmem_tensor(4, cute.Float32)
        access(t, x)

    with pytest.raises(CuteError, match="multicast> stands for the memory of all ranks.*runtime.from_symmetric"):
        cute.compile(kernel, made, arch="sm_90a")


def test_no_tma_atom_is_made_of_a_multicast_tensor():
    made = from_multicast(cute.sim.symmetric((8, 4), np.float32, 2), assumed_align=16)
    with pytest.raises(CuteError, match="stands for the memory of all ranks"):
        cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileG2SOp(), made, cute.make_layout((8, 4), stride=(4, 1)), (8, 4)
        )
