# SPDX-License-Identifier: Apache-2.0
"""Counters and timelines of a run."""

import json
import re

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import dtypes, seam
from numba_cute.isa.rows import bulk, fence, mbarrier
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

    trace = traced(kernel, np.zeros(16 * 32, np.int32))
    assert list(trace.coalescing.values()) == [used]
    assert trace.bytes == {"global written": 128}


@pytest.mark.parametrize("offset", range(0, 32, 4))
def test_an_array_counts_as_one_that_begins_at_a_multiple_of_256_bytes(offset):
    def kernel(out):
        out[cuda.threadIdx.x] = 1

    memory = bytearray(128 + 64)
    start = -np.frombuffer(memory, np.uint8).ctypes.data % 32 + offset  # the place in this process is left to chance
    trace = traced(kernel, np.frombuffer(memory, np.int32, 32, start))
    assert list(trace.coalescing.values()) == [1.0]


@pytest.mark.parametrize(("first", "used"), [(0, 1.0), (1, 0.8), (7, 0.8), (8, 1.0)])
def test_a_view_keeps_its_offset_in_the_array_that_it_is_of(first, used):
    def kernel(out):
        out[cuda.threadIdx.x] = 1

    trace = traced(kernel, np.zeros(64, np.int32)[first : first + 32])
    assert list(trace.coalescing.values()) == [used]


def test_a_tensor_counts_as_its_array_does():
    def kernel(out):
        out[cuda.threadIdx.x] = 1

    array = np.zeros(64, np.int32)
    assert list(traced(kernel, cute.runtime.from_dlpack(array)).coalescing.values()) == [1.0]
    assert list(traced(kernel, cute.runtime.from_dlpack(array[1:])).coalescing.values()) == [0.8]


def test_arrays_that_lie_side_by_side_share_no_sector():
    def kernel(a, b):
        b[cuda.threadIdx.x] = a[cuda.threadIdx.x]

    memory = bytearray(32)
    a, b = np.frombuffer(memory, np.int32, 4), np.frombuffer(memory, np.int32, 4, 16)
    assert list(traced(kernel, a, b, threads=4).coalescing.values()) == [0.5]


def copy(a, out):
    t = cuda.threadIdx.x
    if t == 0:
        mbarrier.mbarrier_init(BAR, 1)
        fence.fence_mbarrier_init()
    cuda.syncthreads()
    if t == 0:
        mbarrier.mbarrier_arrive_expect_tx(BAR, 256)
        bulk.cp_async_bulk_g2s(BUF, a.ctypes.data, 256, BAR)
    mbarrier.mbarrier_wait_parity(BAR, 0)
    out[t] = seam.current().load(dtypes.Int32, "smem", BUF + 4 * (t % 64), 1, 4)[0]


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


def test_bars_of_a_row_do_not_overlap_and_lanes_that_wait_alike_are_one(tmp_path):
    part = cuda.jit(copy, device=True)

    def kernel(a, out):
        part(a, out)
        for _ in range(4):
            if cuda.threadIdx.x == 40:
                for k in range(20):
                    out[40] = k
            cuda.syncthreads()

    trace = traced(kernel, np.arange(64, dtype=np.int32), np.zeros(384, np.int32), threads=384)
    trace.perfetto(tmp_path / "run.json")
    rows = {}
    for e in json.loads((tmp_path / "run.json").read_text())["traceEvents"]:
        if e["ph"] == "X":
            rows.setdefault((e["pid"], e["tid"]), []).append((e["ts"], e["ts"] + e["dur"], e["name"]))
    for bars in rows.values():
        bars.sort()
        assert all(b[0] >= a[1] for a, b in zip(bars, bars[1:])), bars
        assert len(bars) < 10
    names = [e["args"]["name"] for e in json.loads((tmp_path / "run.json").read_text())["traceEvents"]
             if e["ph"] == "M" and e["name"] == "thread_name"]  # fmt: skip
    assert names == [*(f"warp {i}" for i in range(12)), "copies and wgmma"]


def test_timeline_as_one_page(copied, tmp_path):
    copied.html(tmp_path / "run.html")
    page = (tmp_path / "run.html").read_text()
    assert "http" not in page.replace("http://www.w3.org/2000/svg", ""), "it needs nothing else"
    assert re.search(r'<rect x="[^>]*fill="#9aa0a6"[^>]*><title>mbarrier.try_wait', page, re.DOTALL)
    assert re.search(r'<rect x="[^>]*fill="#4c8bf5"[^>]*><title>.*?cp_async_bulk_g2s', page, re.DOTALL)
