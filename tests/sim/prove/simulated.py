# SPDX-License-Identifier: Apache-2.0
"""Random programs as kernels of the simulator: `explore` must find each that hangs, or arrives too often, in an order:
`python -m tests.sim.prove.simulated [FIRST LAST]`."""

import random
import sys

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute.isa.rows import bulk, mbarrier
from numba_cute.sim import SimError, simulate

from .programs import (
    ANNOUNCE,
    ARRIVE,
    COMMIT,
    COPY,
    DRAW,
    EXPECT,
    LOOK,
    SYNC,
    WAIT,
    Bad,
    differs,
    one_run,
    pipelined,
    scattered,
)

BARS, DATA, SMEM, BYTES = 1024, 2048, 4096, 16


def kernel_of(program):
    """A kernel whose warps do what the program's threads do."""

    def kernel(source, counters):
        t, lane = cuda.threadIdx.x // 32, cuda.threadIdx.x % 32
        if cuda.threadIdx.x == 0:
            for b, expected in enumerate(program.counts):
                mbarrier.mbarrier_init(BARS + 8 * b, expected)
        cuda.syncthreads()
        for n, op in enumerate(program.threads[t]):
            if op.kind == SYNC:
                cute.arch.barrier(barrier_id=1 + op.bar, number_of_threads=32 * op.count)
            elif lane == 0:
                step(op, BARS + 8 * op.bar, DATA + 256 * t + BYTES * n, source, counters)

    return kernel


def step(op, bar, to, source, counters):
    """One step of a thread."""
    if op.kind == ARRIVE:
        mbarrier.mbarrier_arrive(bar)
    elif op.kind == EXPECT:
        mbarrier.mbarrier_arrive_expect_tx(bar, BYTES)
    elif op.kind == ANNOUNCE:
        mbarrier.mbarrier_expect_tx(bar, BYTES)
    elif op.kind == COPY:
        bulk.cp_async_bulk_g2s(to, source.iterator.toint(), BYTES, bar)
    elif op.kind == WAIT:
        mbarrier.mbarrier_wait_parity(bar, op.parity)
    elif op.kind in (DRAW, LOOK):
        cuda.atomic.add(counters, op.bar, op.kind == DRAW)
    else:
        raise NotImplementedError(op.kind)


def judged(seeds):
    """How many programs are right by both searches, wrong by both, missed by `explore`, refused by it alone (bytes that
    the simulator finds wrongly announced), and not searched whole; and the seeds of those missed."""
    counts, missed = dict.fromkeys(("right", "wrong", "missed", "refused", "too large"), 0), []
    for seed in seeds:
        rng = random.Random(seed)
        program = (pipelined if seed % 2 else scattered)(rng)
        try:
            one_run(program, rng)
        except Bad:
            continue
        if any(op.kind == COMMIT for ops in program.threads for op in ops):
            continue
        want = differs(program, {})
        try:
            args = cute.runtime.from_dlpack(np.zeros(64, np.uint8)), np.zeros(2, np.int32)
            kernel = simulate(kernel_of(program), checks=False)
            found = kernel.explore(most=100)[1, 32 * len(program.threads), 0, SMEM](*args)
            got, whole = "", found.all
        except SimError as e:
            got, whole = str(e), True
        kind = (("right", "refused"), ("missed", "wrong"))[bool(want)][bool(got)] if whole else "too large"
        counts[kind] += 1
        if kind == "missed":
            missed.append((seed, want))
    return counts, missed


if __name__ == "__main__":
    first, last = map(int, sys.argv[1:3]) if len(sys.argv) > 2 else (0, 300)
    counts, missed = judged(range(first, last))
    print(counts, *missed[:20], sep="\n")
