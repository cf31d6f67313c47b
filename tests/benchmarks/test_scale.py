# SPDX-License-Identifier: Apache-2.0
"""The model of time on several GPUs: its tables are the page's, and its bytes are those that simulated kernels move."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from benchmarks import scale

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "several_gpus.md").read_text()


@pytest.mark.parametrize("table", [scale.of_a_host, scale.of_hosts])
def test_the_page_shows_the_tables(table):
    assert table() in PAGE, "run `python -m benchmarks.scale` and put its tables into docs/several_gpus.md"


def test_both_at_once_take_the_longer_and_a_piece_of_the_shorter():
    of = scale.Machine(link=1e9, signal=0.0, network=1e9, hop=0.0, flops=1e12, memory=1e12)
    work = scale.Work(flops=3e12, sent=2e9, pieces=4, read=0)
    assert work.apart(of) == 5.0 and work.together(of) == 3.5
    assert scale.Work(flops=1e9, sent=0, pieces=1, read=2e12).compute(of) == 2.0, "reading weights takes longer"


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_what_one_collective_sends_is_what_its_parts_send(ranks):
    m, n, k = 1024, 512, 256
    gather = scale.all_gather_matmul(m, n, k, ranks).sent
    assert gather == (ranks - 1) * (m // ranks) * k * 2
    assert scale.matmul_all_reduce(m, n, k, ranks).sent == 2 * scale.matmul_reduce_scatter(m, n, k, ranks).sent
    assert scale.matmul_all_reduce(m, n, k, ranks, shots=1).sent == ranks / 2 * (
        scale.matmul_all_reduce(m, n, k, ranks).sent
    )


def test_more_hosts_send_more_and_none_sends_nothing():
    sent = [scale.Step(70e9, 80, 8192, hosts).sent(scale.H200) for hosts in (1, 2, 8, 1024)]
    assert sent[0] == 0 and sent == sorted(sent) and sent[-1] < 3 * 2 * 70e9 / 8
    assert scale.Step(70e9, 80, 8192, 1).network(scale.H200) == 0


@cuda.jit
def gathered(peers, mine, rank, ranks):
    """Bring the rows of the other ranks, (rows, columns, ranks), to (rows, ranks, columns)."""
    for step in range(1, ranks):
        other = (rank + step) % ranks
        for i in range(cuda.threadIdx.x, peers.shape[0] * peers.shape[1], 32):
            row, column = i // peers.shape[1], i % peers.shape[1]
            mine[row, other, column] = peers[row, column, other]


@pytest.mark.parametrize("ranks", [2, 4])
def test_the_bytes_of_an_all_gather_are_the_simulators(ranks):
    m, k = 16, 8
    x = cute.sim.symmetric((m // ranks, k), np.float16, ranks)
    outs = [np.zeros((m // ranks, ranks, k), np.float16) for _ in range(ranks)]
    trace = cute.sim.Trace()
    cute.simulate(gathered, ranks=ranks, trace=trace)[1, 32](
        cute.runtime.from_symmetric(x), cute.sim.PerRank(*outs), cute.sim.PerRank(*range(ranks)), ranks
    )
    assert trace.bytes["global read"] == ranks * scale.all_gather_matmul(m, 32, k, ranks).sent


@cuda.jit
def sent(peers, mine, rank, ranks, whole):
    """Send to each other rank its rows of this rank's product (or the whole of it, to be added up there)."""
    rows, columns = peers.shape[0], peers.shape[2]
    for step in range(1, ranks):
        other = (rank + step) % ranks
        first = 0 if whole else other * rows
        for i in range(cuda.threadIdx.x, rows * columns, 32):
            row, column = i // columns, i % columns
            peers[row, rank, column, other] = mine[first + row, column]


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("whole", [False, True])
def test_the_bytes_of_sums_are_the_simulators(ranks, whole):
    m, n = 16, 8
    rows = m if whole else m // ranks
    x = cute.sim.symmetric((rows, ranks, n), np.float16, ranks)
    products = [np.zeros((m, n), np.float16) for _ in range(ranks)]
    trace = cute.sim.Trace()
    cute.simulate(sent, ranks=ranks, trace=trace)[1, 32](
        cute.runtime.from_symmetric(x), cute.sim.PerRank(*products), cute.sim.PerRank(*range(ranks)), ranks, whole
    )
    work = scale.matmul_all_reduce(m, n, 32, ranks, shots=1) if whole else scale.matmul_reduce_scatter(m, n, 32, ranks)
    assert trace.bytes["global written"] == ranks * work.sent
