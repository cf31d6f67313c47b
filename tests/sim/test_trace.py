# SPDX-License-Identifier: Apache-2.0
"""Counters and timelines of a run."""

import json
import re

import numpy as np
import pytest
from numba import cuda

from numba_cute import dtypes, seam
from numba_cute.isa import fence, mbarrier, tma
from numba_cute.sim import Trace, simulate

BAR, BUF = 1024, 2048


def traced(kernel, *args, threads=32):
    trace = Trace()
    simulate(kernel, trace=trace)[1, threads, 0, 65536](*args)
    return trace


@pytest.mark.parametrize(("stride", "conflicts"), [(1, 0), (2, 1), (3, 0), (32, 31), (33, 0)], ids=lambda x: str(x))
def test_bank_conflicts_of_a_stride_in_words(stride, conflicts):
    def kernel():
        seam.current().store(dtypes.Int32, "smem", BUF + 4 * stride * cuda.threadIdx.x, (1,), 4)

    assert sum(traced(kernel).bank_conflicts.values()) == conflicts


@pytest.mark.parametrize(("stride", "used"), [(1, 1.0), (2, 0.5), (8, 0.125), (16, 0.125)])
def test_coalescing_of_a_stride_in_words(stride, used):
    def kernel(out):
        out[stride * cuda.threadIdx.x] = 1

    raw = np.zeros(16 * 32 + 8, np.int32)
    start = -raw.ctypes.data % 32 // 4
    trace = traced(kernel, raw[start : start + 16 * 32])
    assert list(trace.coalescing.values()) == [used]
    assert trace.bytes == {"global written": 128}


def copy(a, out):
    t = cuda.threadIdx.x
    if t == 0:
        mbarrier.mbarrier_init(BAR, 1)
        fence.fence_mbarrier_init()
    cuda.syncthreads()
    if t == 0:
        mbarrier.mbarrier_arrive_expect_tx(BAR, 256)
        tma.cp_async_bulk_g2s(BUF, a.ctypes.data, 256, BAR)
    mbarrier.mbarrier_wait_parity(BAR, 0)
    out[t] = seam.current().load(dtypes.Int32, "smem", BUF + 4 * t, 1, 4)[0]


@pytest.fixture(scope="module")
def copied():
    return traced(copy, np.arange(64, dtype=np.int32), np.zeros(64, np.int32), threads=64)


def test_instructions_and_bytes_are_counted(copied):
    assert copied.instructions["cp_async_bulk_g2s"] == 1
    assert copied.instructions["mbarrier_wait_parity"] == 64
    assert copied.bytes["shared written asynchronously"] == 256
    assert copied.bytes["shared read"] == copied.bytes["global written"] == 256
    assert "1 cp_async_bulk_g2s" in str(copied)


def test_timeline_for_perfetto(copied, tmp_path):
    copied.perfetto(tmp_path / "run.json")
    events = json.loads((tmp_path / "run.json").read_text())["traceEvents"]
    names = {e["args"]["name"] for e in events if e["ph"] == "M"}
    assert {"block (0, 0, 0)", "warp 0", "warp 1", "copies and wgmma"} <= names
    waits = [e for e in events if e["ph"] == "X"]
    assert any(e["name"] == "mbarrier.try_wait" and e["dur"] > 0 for e in waits)
    assert any("cp_async_bulk_g2s issued by thread 0" in e["name"] for e in waits)


def test_timeline_as_one_page(copied, tmp_path):
    copied.html(tmp_path / "run.html")
    page = (tmp_path / "run.html").read_text()
    assert "http" not in page.replace("http://www.w3.org/2000/svg", ""), "it needs nothing else"
    assert re.search(r'<rect class="wait".*?<title>mbarrier.try_wait', page, re.DOTALL)
    assert re.search(r'<rect class="copy".*?cp_async_bulk_g2s', page, re.DOTALL)
