# SPDX-License-Identifier: Apache-2.0
"""`prove`: one run speaks for all orders of threads and copies, or says which two steps could change places."""

from unittest import mock

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.isa.rows import mbarrier
from numba_cute.sim import DeadlockError, SimError, launch as sim_launch, simulate
from numba_cute_pytest import _Proved

from .programs import judged, judged_rounds

FULL, EMPTY = 1024, 1088
SMEM = 4096


def started(full, empty):
    """Initialise the two barriers, and meet."""
    if cuda.threadIdx.x == 0:
        mbarrier.mbarrier_init(FULL, full)
        mbarrier.mbarrier_init(EMPTY, empty)
    cuda.syncthreads()


def right(out):
    """One producer and one consumer, of three rounds."""
    t = cuda.threadIdx.x
    started(1, 1)
    for i in range(3):
        if t == 0:
            mbarrier.mbarrier_wait_parity(EMPTY, (i & 1) ^ 1)
            mbarrier.mbarrier_arrive(FULL)
        if t == 32:
            mbarrier.mbarrier_wait_parity(FULL, i & 1)
            mbarrier.mbarrier_arrive(EMPTY)


def two_producers(out):
    """Nothing keeps one producer's second arrival from the other's first phase."""
    t = cuda.threadIdx.x
    started(2, 1)
    for i in range(2):
        if t == 0 or t == 64:
            mbarrier.mbarrier_arrive(FULL)
        if t == 32:
            mbarrier.mbarrier_wait_parity(FULL, i & 1)


def never_released(out):
    """The producer does not wait for the consumer, which may come two phases late."""
    t = cuda.threadIdx.x
    started(1, 1)
    for i in range(2):
        if t == 0:
            mbarrier.mbarrier_arrive(FULL)
            cuda.nanosleep(100)
        if t == 32:
            mbarrier.mbarrier_wait_parity(FULL, i & 1)


def skips_a_phase(out):
    """The consumer waits for the second phase alone: it may come so early that it sees the one before the first."""
    t = cuda.threadIdx.x
    started(1, 1)
    if t == 0:
        mbarrier.mbarrier_arrive(FULL)
        mbarrier.mbarrier_arrive(FULL)
    if t == 32:
        mbarrier.mbarrier_wait_parity(FULL, 1)


def bytes_come_late(out):
    """Another thread announces the bytes: the phase may be over before."""
    t = cuda.threadIdx.x
    started(1, 1)
    if t == 0:
        mbarrier.mbarrier_expect_tx(FULL, 16)
        mbarrier.mbarrier_complete_tx(FULL, 16)
    if t == 64:
        mbarrier.mbarrier_arrive(FULL)
    if t == 32:
        mbarrier.mbarrier_wait_parity(FULL, 0)


def one_name_for_two(out):
    """Two pairs of warps meet at one named barrier: the first of one and the second of the other may meet."""
    w = cuda.threadIdx.x // 32
    started(1, 1)
    if w == 0 or w == 1:
        cute.arch.barrier(barrier_id=1, number_of_threads=64)
        cute.arch.barrier(barrier_id=1, number_of_threads=64)
    if w == 1:
        cute.arch.barrier_arrive(barrier_id=2, number_of_threads=64)
    if w == 2:
        cute.arch.barrier(barrier_id=2, number_of_threads=64)
        cute.arch.barrier_arrive(barrier_id=2, number_of_threads=64)
    if w == 3:
        cute.arch.barrier(barrier_id=2, number_of_threads=64)


def proof_of(kernel, checks=True):
    return simulate(kernel, checks=checks).prove()[1, 128, 0, SMEM](np.zeros(4, np.int32))


def test_a_right_pipeline_is_proved_with_nothing_but_its_size_assumed():
    proof = proof_of(right)
    assert proof and proof.proved and not proof.conflicts and not proof.assumptions
    assert "proved. Every order" in str(proof) and "nothing else" in str(proof)


@pytest.mark.parametrize(
    ("kernel", "says"),
    [
        (two_producers, "both count for the barrier, and nothing orders"),
        (never_released, "nothing orders the wait before the end of the next phase"),
        (skips_a_phase, "nothing orders the wait after the end of the phase before"),
        (bytes_come_late, "nothing orders the announcement before an arrival"),
        (one_name_for_two, "the later use of the barrier after the end of the other"),
    ],
)
def test_what_another_order_may_change_is_told_by_its_two_steps(kernel, says):
    proof = proof_of(kernel, checks=False)
    assert not proof.proved
    assert says in proof.conflicts[0]
    assert proof.conflicts[0].count("test_prove.py:") >= 2, "both lines"
    with pytest.raises(SimError, match="not proved"):
        simulate(kernel, checks=False, prove=True)[1, 128, 0, SMEM](np.zeros(4, np.int32))


def test_what_warps_meet_together_is_told_though_lane_by_lane_all_ends_well():
    with pytest.raises(DeadlockError, match="2 of 2 arrivals missing"):
        simulate(two_producers, checks=False)[1, 128, 0, SMEM](np.zeros(4, np.int32))
    with mock.patch.object(sim_launch, "why_alone", lambda *_: "a test"):
        simulate(two_producers, checks=False)[1, 128, 0, SMEM](np.zeros(4, np.int32))


def test_an_order_that_hangs_is_refused_though_the_usual_one_ends():
    simulate(never_released, checks=False)[1, 128, 0, SMEM](np.zeros(4, np.int32))
    with pytest.raises(DeadlockError):
        for seed in range(40):
            simulate(skips_a_phase, checks=False, seed=seed)[1, 128, 0, SMEM](np.zeros(4, np.int32))
            simulate(two_producers, checks=False, seed=seed)[1, 128, 0, SMEM](np.zeros(4, np.int32))
            simulate(never_released, checks=False, seed=seed)[1, 128, 0, SMEM](np.zeros(4, np.int32))


def draws(out):
    if cuda.threadIdx.x % 32 == 0:
        out[cuda.atomic.add(out, 3, 1) % 3] = 1


def reads_a_clock(out):
    out[0] = cute.arch.clock() & 0


def asks_who_is_active(out):
    out[0] = cuda.activemask() & 0


@pytest.mark.parametrize(
    ("kernel", "assumes"),
    [
        (draws, "the values that atomics give"),
        (reads_a_clock, "clocks"),
        (asks_who_is_active, "which lanes are active together"),
    ],
)
def test_what_a_run_decides_is_listed_with_its_line(kernel, assumes):
    proof = proof_of(kernel, checks=False)
    assert proof.proved
    assert any(a.startswith(f"{assumes}, at ") and "test_prove.py:" in a for a in proof.assumptions)
    assert any("data race: the check `races` was off" in a for a in proof.assumptions)


def test_an_answer_that_may_be_no_is_no_so_that_the_wait_is_seen():
    """The pipelines' idiom: a try whose answer only spares the wait."""

    def kernel(out):
        t = cuda.threadIdx.x
        started(1, 1)
        if t == 0:
            mbarrier.mbarrier_arrive(FULL)
        cuda.syncthreads()
        if t == 32:
            if not mbarrier.mbarrier_try_wait_parity(FULL, 0):
                mbarrier.mbarrier_wait_parity(FULL, 0)

    assert not proof_of(kernel).assumptions

    def decides(out):
        t = cuda.threadIdx.x
        started(1, 1)
        if t == 0:
            mbarrier.mbarrier_arrive(FULL)
        if t == 32 and mbarrier.mbarrier_try_wait_parity(FULL, 0):
            out[0] = 1

    assert any("try_wait decides only" in a for a in proof_of(decides).assumptions)


def test_each_launch_of_a_host_function_is_proved():
    @cute.kernel
    def kernel(out: cute.Tensor):
        out[cuda.threadIdx.x] = 1

    @cute.jit
    def host(out: cute.Tensor):
        kernel(out).launch(grid=1, block=4)
        kernel(out).launch(grid=1, block=4)

    proofs = simulate(host).prove()(np.zeros(4, np.int32))
    assert [p.proved for p in proofs] == [True, True]


def test_the_plugins_option_proves_each_launch_of_a_test():
    launch = simulate(never_released, checks=False)[1, 128, 0, SMEM]
    around_a_test = _Proved().pytest_runtest_protocol()
    next(around_a_test)
    with pytest.raises(SimError, match="not proved"):
        launch(np.zeros(4, np.int32))
    assert next(around_a_test, None) is None
    launch(np.zeros(4, np.int32))


def test_prove_takes_true_or_false():
    with pytest.raises(cute.CuteError, match="prove 1: give True or False"):
        simulate(right, prove=1)


def test_no_random_program_is_proved_that_some_order_breaks():
    counts, wrong = judged(range(800))
    assert not wrong
    assert counts["proved"] > 150 and counts["refused"] > 50
    assert counts["refused needlessly"] <= 0.05 * counts["proved"]


@pytest.mark.slow
def test_no_random_program_of_30_000_is_proved_that_some_order_breaks():
    counts, wrong = judged(range(90_000))
    assert not wrong and sum(counts.values()) > 30_000
    assert counts["refused needlessly"] <= 0.05 * counts["proved"]


def test_rounds_that_are_found_may_be_done_more_often_and_less():
    """By a search of all orders of loops with a round less, one more and two more."""
    counts, wrong = judged_rounds(range(12))
    assert not wrong
    assert counts["found"] >= 3 and counts["right"] >= 9
    assert counts["refused needlessly"] == 0


@pytest.mark.slow
def test_rounds_of_1_000_loops_may_be_done_more_often_and_less():
    counts, wrong = judged_rounds(range(1_000))
    assert not wrong and counts["found"] > 200
    assert counts["refused needlessly"] <= 0.05 * counts["proved"]


def test_a_proof_says_which_lines_may_be_repeated():
    def kernel(rounds):
        t = cuda.threadIdx.x
        started(1, 1)
        for i in range(rounds):
            if t == 0:
                mbarrier.mbarrier_wait_parity(EMPTY, (i & 1) ^ 1)
                mbarrier.mbarrier_arrive(FULL)
            if t == 32:
                mbarrier.mbarrier_wait_parity(FULL, i & 1)
                mbarrier.mbarrier_arrive(EMPTY)

    def proof(n, **options):
        return simulate(kernel).prove(**options)[1, 64, 0, SMEM](n)

    found = proof(10, rounds=True)
    assert len(found.rounds) == 4 and all("test_prove.py:" in line for line in found.rounds)
    assert "nor does one of the first cluster with fewer or more rounds of the steps at" in str(found)
    assert proof(2, rounds=True).rounds == proof(10).rounds == ()
    with pytest.raises(cute.CuteError, match="rounds 3: give True or False"):
        simulate(kernel).prove(rounds=3)
