# SPDX-License-Identifier: Apache-2.0
"""Launches of several ranks: each GPU has its own room and grid, orders of seeds, host functions, and what they say."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.runtime import from_dlpack, from_symmetric
from numba_cute.seam import CuteError
from numba_cute.sim import DeadlockError, PerRank, RaceError, simulate, symmetric
from numba_cute.utils.distributed import Signals

from . import signals

N = 32


def exchanged(peers, sig, rank, out):
    """Each rank gives each other one some numbers, and adds up what it gets."""
    t, _, _ = arch.thread_idx()
    n, e = sig.world, sig.epoch()
    for step in range(n):
        to = (rank + step) % n
        peers[t, rank, to] = 100 * rank + t
    cuda.syncthreads()
    if t == 0:
        sig.meet(0, e)
    cuda.syncthreads()
    total = 0
    for r in range(n):
        total += peers[t, r, rank]
    out[t] = total
    cuda.syncthreads()
    if t == 0:
        sig.meet(1, e)
        sig.advance(1)


def given(ranks):
    x, outs = symmetric((N, ranks), cute.Int32, ranks), [np.zeros(N, np.int32) for _ in range(ranks)]
    return (from_symmetric(x), signals(ranks, 2), PerRank(*range(ranks)), PerRank(*outs)), outs


@pytest.mark.parametrize("seed", [None, 0, 1, 2, 3])
@pytest.mark.parametrize("ranks", [2, 4])
def test_any_order_of_ranks_gives_the_same(ranks, seed):
    args, outs = given(ranks)
    simulate(exchanged, ranks=ranks, seed=seed)[1, N](*args)
    for out in outs:
        np.testing.assert_array_equal(out, 100 * sum(range(ranks)) + ranks * np.arange(N))


def test_eight_ranks_and_lanes_together():
    args, outs = given(8)
    made = simulate(exchanged, ranks=8)
    run = made.once((1, 1, 1), (N, 1, 1), 0, made._given(args, {}), None)
    assert run.shared  # the lanes of a warp ran together
    assert all((out == 2800 + 8 * np.arange(N)).all() for out in outs)


@pytest.mark.parametrize("checks", [True, False])
def test_the_barrier_of_the_grid_is_of_one_rank(checks):
    """Rank 1 passes its own while rank 0 waits for it, before its own."""

    def kernel(sig, rank, parts, out):
        t, b = cuda.threadIdx.x, cuda.blockIdx.x
        if rank == 0 and t == 0:
            sig.wait(1, 0, 1)
        parts[b, t] = rank + b
        cuda.cg.this_grid().sync()
        out[b, t] = parts[1 - b, t]
        if rank == 1:
            cuda.syncthreads()
            if t == 0 and b == 0:
                sig.put(0, 0, 1)

    parts, outs = ([np.zeros((2, N), np.int32) for _ in range(2)] for _ in range(2))
    simulate(kernel, ranks=2, checks=checks)[2, N](signals(2), PerRank(0, 1), PerRank(*parts), PerRank(*outs))
    for r in range(2):
        np.testing.assert_array_equal(outs[r], [[r + 1] * N, [r] * N])


def test_each_gpu_has_its_own_room():
    """All blocks of both ranks wait for the other's, which must have begun: more than one GPU would hold."""

    def kernel(sig, rank):
        if cuda.threadIdx.x == 0:
            other = 1 - rank
            sig.put(other, cuda.blockIdx.x, 1)
            sig.wait(other, cuda.blockIdx.x, 1)

    simulate(kernel, ranks=2, sms=1)[4, 512](signals(2, 4), PerRank(0, 1))
    with pytest.raises(DeadlockError, match="holds more than 4 CTAs of this kernel at once") as caught:
        simulate(waiting_for_all, ranks=2, sms=1)[5, 512](signals(2, 5), PerRank(0, 1))
    assert "rank 0 waits for sig of rank 0" in str(caught.value)


def waiting_for_all(sig, rank):
    """Each block waits for the last one of the other rank."""
    if cuda.threadIdx.x == 0:
        sig.put(1 - rank, cuda.blockIdx.x, 1)
        sig.wait(1 - rank, cuda.gridDim.x - 1, 1)


def test_a_deadlock_draws_who_waits_for_whom():
    def kernel(sig, rank):
        if cuda.threadIdx.x == 0:
            if rank < 3:
                sig.wait((rank + 1) % 3, 0, 1)
            else:
                sig.wait(0, 0, 1)

    with pytest.raises(
        DeadlockError, match="cycle: rank 0 waits for rank 1 waits for rank 2 waits for rank 0"
    ) as caught:
        simulate(kernel, ranks=4)[1, N](signals(4), PerRank(*range(4)))
    graph = caught.value.graph
    assert [w.who for w in graph.waiters] == [f"thread 0 (warp 0) of rank {r}" for r in range(4)]
    assert graph.cycle == (0, 1, 2) and [a.wants for a in graph.awaited] == [(1,), (2,), (0,), (0,)]
    assert "rank 1 has not set it" in str(graph) and "<svg" in graph.svg()


def test_who_set_a_flag_before_is_who_does_not_now():
    def kernel(flags, rank):
        if cuda.threadIdx.x == 0:
            mine = flags[None, 2].iterator
            if rank == 1:
                arch.store(mine, 1, sem="release", scope="sys")
            elif rank == 2:
                while arch.load(mine, cute.Int32, sem="acquire", scope="sys") < 2:
                    pass

    with pytest.raises(
        DeadlockError, match="rank 2 waits for flags of rank 2 .* that rank 1 has not set: rank 1 has ended"
    ):
        simulate(kernel, ranks=4)[1, N](from_symmetric(symmetric(1, cute.Int32, 4)), PerRank(*range(4)))


def test_outputs_are_of_each_rank():
    def kernel(out, rank):
        if rank == 0 or cuda.threadIdx.x < 30:
            out[cuda.threadIdx.x] = 1

    with pytest.raises(CuteError, match="output out of kernel kernel of rank 1: 2 of 32 elements"):
        simulate(kernel, ranks=2, outputs="out")[1, N](PerRank(np.zeros(N), np.zeros(N)), PerRank(0, 1))


def test_tensors_of_other_types_on_each_rank():
    """As where the tokens of ranks differ: static shapes differ, and so do types."""

    @cuda.jit
    def kernel(x, out):
        t = cuda.threadIdx.x
        if t == 0:
            out[0] = cute.size(x)

    outs = [np.zeros(1, np.int32) for _ in range(2)]
    simulate(kernel, ranks=2)[1, N](PerRank(*(from_dlpack(np.zeros(n, np.float32)) for n in (5, 7))), PerRank(*outs))
    assert [int(o[0]) for o in outs] == [5, 7]


# host functions


@cute.kernel
def filled(peers: cute.Tensor, rank: cute.Int32):
    t = cuda.threadIdx.x
    peers[t, rank] = rank + t


@cute.kernel
def doubled(mine: cute.Tensor):
    t = cuda.threadIdx.x
    mine[t] = 2 * mine[t]


@cute.jit
def host(peers, mine, rank, launches):
    filled(peers, rank).launch(grid=(1, 1, 1), block=(N, 1, 1))
    for _ in range(launches):
        doubled(mine).launch(grid=(1, 1, 1), block=(N, 1, 1))
    return rank


def test_a_host_function_runs_on_each_rank():
    x = symmetric(N, cute.Int32, 4)
    given = from_symmetric(x), PerRank(*map(from_dlpack, x.arrays)), PerRank(*range(4))
    assert simulate(host, ranks=4)(*given, 1) == [0, 1, 2, 3]
    for r in range(4):
        np.testing.assert_array_equal(x.arrays[r], 2 * (r + np.arange(N)))
    with pytest.raises(CuteError, match="rank 0 launches doubled.* but the host function of rank 2 has ended"):
        simulate(host, ranks=4)(*given, PerRank(1, 1, 0, 1))


def test_launches_of_two_kernels_are_refused():
    @cute.jit
    def other(peers, mine, rank):
        if rank == 0:
            filled(peers, rank).launch(grid=(1, 1, 1), block=(N, 1, 1))
        else:
            doubled(mine).launch(grid=(1, 1, 1), block=(N, 1, 1))

    x = symmetric(N, cute.Int32, 2)
    with pytest.raises(CuteError, match=r"rank 0 launches filled\[.*, and rank 1 doubled\["):
        simulate(other, ranks=2)(from_symmetric(x), PerRank(*map(from_dlpack, x.arrays)), PerRank(0, 1))


def test_a_proof_of_ranks_is_refused():
    x = symmetric(N, cute.Int32, 2)
    for launch in (simulate(filled, ranks=2, prove=True)[1, N], simulate(filled, ranks=2).prove()[1, N]):
        with pytest.raises(CuteError, match="a proof speaks of the clusters of one GPU"):
            launch(from_symmetric(x), PerRank(0, 1))


def test_a_race_is_told_once_more_in_the_order_of_its_seed():
    def kernel(peers, rank):
        peers[cuda.threadIdx.x, 0] = rank

    with pytest.raises(RaceError, match="of rank [01], block .*(?s:.*)cute.simulate\\(kernel, seed=3\\)"):
        simulate(kernel, ranks=2, seed=3)[1, N](from_symmetric(symmetric(N, cute.Int32, 2)), PerRank(0, 1))


def overtaken(signed):
    """Rank 1 reads what rank 0 writes, if it comes second: by a flag, or by luck."""

    def kernel(peers, sig, rank, out):
        if cuda.threadIdx.x == 0:
            if rank == 0:
                peers[0, 1] = 7
                sig.put(1, 0, 1)
            else:
                if cute.const_expr(signed):
                    sig.wait(0, 0, 1)
                out[0] = arch.load(peers[None, 1].iterator, cute.Int32, sem="relaxed", scope="sys")

    return kernel


def test_orders_of_ranks_are_explored():
    def given():
        outs = np.zeros(1, np.int32), np.zeros(1, np.int32)
        return from_symmetric(symmetric(1, cute.Int32, 2)), signals(2), PerRank(0, 1), PerRank(*outs)

    done = simulate(overtaken(True), ranks=2).explore(most=20)[1, N](*given())
    assert done > 3 and not done.all and "what ranks do to each other" in str(done)
    with pytest.raises(RaceError, match="peers of rank 1"):
        simulate(overtaken(False), ranks=2).explore(most=20)[1, N](*given())


# one launch after another


def told(by):
    """Each rank writes to the next one's memory in a launch, which the next reads in its second launch. by: the second
    of the two says so "there", or waits for what the first has put "here"; or nothing tells."""

    def first(peers, sig, rank, out):
        t, to = cuda.threadIdx.x, (rank + 1) % 4
        peers[t, to] = rank + t
        cuda.syncthreads()
        if t == 0 and cute.const_expr(by is not None):
            sig.put(to, 0, 1)
        if t == 0 and cute.const_expr(by == "there"):
            sig.wait((rank + 3) % 4, 0, 1)

    def second(peers, sig, rank, out):
        t = cuda.threadIdx.x
        if t == 0 and cute.const_expr(by == "here"):
            sig.wait((rank + 3) % 4, 0, 1)
        cuda.syncthreads()
        out[t] = peers[t, rank]

    return first, second


@pytest.mark.parametrize("by", ["there", "here"])
def test_a_rank_learns_what_another_did_in_an_earlier_launch(by):
    first, second = told(by)
    outs = [np.zeros(N, np.int32) for _ in range(4)]
    args = from_symmetric(symmetric(N, cute.Int32, 4)), signals(4), PerRank(*range(4)), PerRank(*outs)
    with simulate.sequence():
        simulate(first, ranks=4)[1, N](*args)
        simulate(second, ranks=4)[1, N](*args)
    for r in range(4):
        np.testing.assert_array_equal(outs[r], (r - 1) % 4 + np.arange(N))


def test_nothing_orders_the_launches_of_two_ranks():
    first, second = told(None)
    outs = [np.zeros(N, np.int32) for _ in range(4)]
    args = from_symmetric(symmetric(N, cute.Int32, 4)), signals(4), PerRank(*range(4)), PerRank(*outs)
    words = "race between launches: global memory peers of rank 0 .* is read by .* in kernel second"
    with simulate.sequence():
        simulate(first, ranks=4)[1, N](*args)
        with pytest.raises(RaceError, match=words) as caught:
            simulate(second, ranks=4)[1, N](*args)
    assert "nothing tells rank 0 what rank 3 has done" in str(caught.value)
    simulate(second, ranks=4)[1, N](*args)  # by itself: between two simulations the host has waited for all


def test_a_buffer_is_filled_again_in_a_later_launch_before_its_rank_has_read_it():
    """The reader's launch may still run when the writer's second one begins."""

    def kernel(peers, sig, rank, out):
        t, to, e = cuda.threadIdx.x, (rank + 1) % 4, sig.epoch()
        peers[t, to] = rank + t
        cuda.syncthreads()
        if t == 0:
            sig.put(to, 0, e)
            sig.wait((rank + 3) % 4, 0, e)
        cuda.syncthreads()
        out[t] = peers[t, rank]
        cuda.syncthreads()
        if t == 0:
            sig.advance(1)

    outs = [np.zeros(N, np.int32) for _ in range(4)]
    args = from_symmetric(symmetric(N, cute.Int32, 4)), signals(4), PerRank(*range(4)), PerRank(*outs)
    with simulate.sequence(), pytest.raises(RaceError, match="is written by .*(?s:.*)which reads it at"):
        simulate(kernel, ranks=4)[1, N](*args)
        simulate(kernel, ranks=4)[1, N](*args)
    args, outs = given(4)
    with simulate.sequence():  # which meets at its end
        for _ in range(3):
            simulate(exchanged, ranks=4)[1, N](*args)


@pytest.mark.parametrize("apart", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_blocks_that_are_forgotten_still_race_with_those_of_other_ranks(apart):
    """Of lanes together those that have ended are forgotten; the last block of the other rank comes much later."""

    def kernel(peers, sig, rank):
        t, b = arch.thread_idx()[0], arch.block_idx()[0]
        peers[t, b, 1 - rank] = rank
        if b == 0 if cute.const_expr(apart) else (b == 39 and rank == 1):
            peers[t, 40 + rank, 0] = rank
        if b == 0 and rank == 0 and not cute.const_expr(apart):
            peers[t, 41, 0] = 7

    x = symmetric((512, 42), cute.Int32, 2)
    launch = simulate(kernel, ranks=2)[40, 512]
    args = from_symmetric(x), signals(2), PerRank(0, 1)
    if apart:
        launch(*args)
        assert (x.arrays[0][:, :40] == 1).all() and (x.arrays[1][:, :40] == 0).all()
    else:
        with pytest.raises(RaceError, match="peers of rank 0 .* of rank 1, block .*(?s:.*)of rank 0, block .0, 0, 0."):
            launch(*args)


def test_a_flag_that_holds_an_earlier_launchs_epoch_tells_nothing():
    """And one that is set back to zero, by the host or by the kernel, tells what is told after."""

    def kernel(peers, flags, rank, out, resets):
        t, to = cuda.threadIdx.x, 1 - rank
        sig = Signals(flags, rank)
        if t == 0 and resets:
            flags[0, to, rank] = 0
            sig.put(to, 1, 1)
            sig.wait(to, 1, 1)
        cuda.syncthreads()
        peers[t, to] = rank + t
        cuda.syncthreads()
        if t == 0:
            sig.put(to, 0, 1)
            sig.wait(to, 0, 1)
        cuda.syncthreads()
        out[t] = peers[t, rank]

    flags, outs = symmetric((3, 2), cute.Int32, 2), [np.zeros(N, np.int32) for _ in range(2)]
    args = from_symmetric(symmetric(N, cute.Int32, 2)), from_symmetric(flags), PerRank(0, 1), PerRank(*outs)
    launch = simulate(kernel, ranks=2)[1, N]
    launch(*args, False)
    with pytest.raises(RaceError, match="nothing orders rank"):
        launch(*args, False)
    flags.peers[...] = 0
    launch(*args, False)
    flags.peers[1] = 0
    launch(*args, True)
