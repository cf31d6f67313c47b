# SPDX-License-Identifier: Apache-2.0
"""Traces and timelines of several ranks have tracks of each."""

import json

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute.sim import PerRank, Trace, simulate

from . import signals


def kernel(sig, rank, x):
    t = cuda.threadIdx.x
    cute.range_push("work")
    if t == 0 and cuda.blockIdx.x == 0:
        if rank == 1:
            sig.put(0, 0, 1)
        else:
            sig.wait(1, 0, 1)
    cuda.syncthreads()
    x[cuda.blockIdx.x, t] = rank
    cute.range_pop()


def launched(**options):
    xs = [np.zeros((2, 64), np.int32) for _ in range(2)]
    simulate(kernel, ranks=2, **options)[2, 64](signals(2), PerRank(0, 1), PerRank(*xs))


def test_a_trace_has_tracks_of_each_rank(tmp_path):
    trace = Trace()
    launched(trace=trace)
    trace.perfetto(tmp_path / "run.json")
    events = json.loads((tmp_path / "run.json").read_text())["traceEvents"]
    names = {e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert {"rank 0 block (0, 0, 0)", "rank 1 block (0, 0, 0)"} <= names
    assert "rank 0 (0, 0, 0) warp 1" in trace.html()
    by = {s.by for s in trace.spans if s.of == "rank 0 " and s.row == "warp 1"}
    assert "thread 0 (warp 0) of rank 0" in by


def test_a_timeline_tells_ranks_apart():
    timeline = cute.timeline(launched)
    assert {e.kernel for e in timeline.events} == {"kernel of rank 0", "kernel of rank 1"}
    assert len(timeline.ranges) == 2 * 2 * 2  # ranks, blocks, warps
