# SPDX-License-Identifier: Apache-2.0
"""Ranges and marks of kernels, recorded: in the simulator, by what compiled code writes, and on a GPU."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.compiler.host import recording as host
from numba_cute.experimental import iket
from numba_cute.seam.hooks.recording import KINDS, NAMES, Event, Recorder, recorded
from numba_cute.sim.python.backend import SimBackend
from numba_cute.timelines import Timeline


@cuda.jit(device=True)
def doubled(x):
    cute.range_push("double")
    y = x * 2
    cute.range_pop()
    return y


@cuda.jit
def steps(out, n):
    i = cuda.grid(1)
    cute.range_push("all")
    for j in range(n):
        iket.range_push("step", j)
        cute.arch.sync_threads()
        out[i] = doubled(i)
        iket.mark("middle", j + 1)
        cute.arch.sync_threads()
        iket.range_pop()
    cute.range_pop()


@cuda.jit
def silent(out, n):
    i = cuda.grid(1)
    for _ in range(n):
        cute.arch.sync_threads()
        out[i] = doubled_silently(i)
        cute.arch.sync_threads()


@cuda.jit(device=True)
def doubled_silently(x):
    return x * 2


def checked(t, blocks, warps, n):
    """What `steps` tells, whoever ran it."""
    assert t.lost == 0 and len(t) == blocks * warps * (2 + n * 5)
    ranges = Counter(r.name for r in t.ranges)
    assert ranges == {"all": blocks * warps, "step": blocks * warps * n, "double": blocks * warps * n}
    for r in t.ranges:
        assert r.stop >= r.start >= 0 and r.depth == {"all": 0, "step": 1, "double": 2}[r.name]
    assert {r.payload for r in t.ranges if r.name == "step"} == set(range(n))
    assert {e.payload for e in t if e.kind == "mark"} == {j + 1 for j in range(n)}
    assert {e.block for e in t} == {(b, 0, 0) for b in range(blocks)} and {e.warp for e in t} == set(range(warps))
    assert {e.kernel for e in t} == {"steps"}
    for row in {r.row for r in t.ranges}:
        mine = [r for r in t.ranges if r.row == row]
        whole = next(r for r in mine if r.name == "all")
        starts = [r.start for r in mine if r.name == "step"]
        assert starts == sorted(starts) and all(whole.start <= r.start and r.stop <= whole.stop for r in mine)


def test_the_simulator_records_warps():
    out = np.zeros(128, np.int64)
    t = cute.timeline(cute.simulate(steps)[2, 64], out, 3)
    assert t.unit == "instructions"
    checked(t, 2, 2, 3)
    assert (out == 2 * np.arange(128)).all()
    assert "step: 12 x" in str(t) and str(t).startswith("68 events")


@pytest.mark.gpu
def test_a_gpu_records_warps():
    if not cuda.is_available():
        pytest.skip("needs a GPU")
    out = np.zeros(128, np.int64)
    steps[2, 64](out, 3)
    for launch in (steps[2, 64], cute.launch(steps, grid=2, block=64), lambda *a: steps[2, 64](*a)):
        out[:] = 0
        t = cute.timeline(launch, out, 3)
        assert t.unit == "ns"
        checked(t, 2, 2, 3)
        assert (out == 2 * np.arange(128)).all()
    steps[2, 64](out, 3)
    assert len(cute.timeline(steps[2, 64], out, 5, blocks=1)) == 2 * 27
    assert cute.timeline(steps[2, 64], out, 5, events=4).lost == 4 * 23
    ptx = next(iter(steps.overloads.values()))._codelibrary.get_asm_str()
    assert "numba_cute_timeline" not in ptx and "clock64" not in ptx, "the kernel itself tells nothing"


def test_lanes_that_part_tell_each_for_themselves():
    @cuda.jit
    def parting():
        i = cuda.threadIdx.x
        if i < 4:
            cute.range_push("few")
            cute.range_pop()
        elif i == 20:
            cute.mark("one")
        cute.range_push("all")
        cute.range_pop()

    t = cute.timeline(cute.simulate(parting)[1, 32])
    assert sorted(r.name for r in t.ranges) == ["all", "few"] and [e.name for e in t if e.kind == "mark"] == ["one"]


def test_several_launches_are_one_timeline():
    @cuda.jit
    def other():
        cute.mark("here")

    def both(out):
        cute.simulate(steps)[1, 32](out, 1)
        cute.simulate(other)[1, 32]()

    t = cute.timeline(both, np.zeros(32, np.int64))
    assert {e.kernel for e in t} == {"steps", "other"}
    assert [e.name for e in t.only(kernel="other")] == ["here"]


def test_room_and_blocks_may_be_few():
    out = np.zeros(128, np.int64)
    t = cute.timeline(cute.simulate(steps)[2, 64], out, 3, events=4, blocks=1)
    assert len(t) == 2 * 4 and t.lost == 2 * 13 and {e.block for e in t} == {(0, 0, 0)}
    assert "26 lost" in str(t) and all(r.stop >= r.start for r in t.ranges)


# ------------------------------------------------------------------ nothing when it is off


def plain(ptx, name):
    return re.sub(rf"\S*{name}\S*", "K", re.sub(r"_ZN\w+", "K", ptx))


def test_off_a_kernel_compiles_to_what_it_would_be_without():
    args = np.zeros(64, np.int64), 3
    assert plain(cute.compile(steps, args).ptx, "steps") == plain(cute.compile(silent, args).ptx, "silent")


def twin(kernel, args, arch="sm_90a"):
    with recorded(Recorder(16, 16)):
        return cute.compile(kernel, args, arch=arch)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
def test_on_a_kernel_and_its_device_functions_tell(arch):
    args = np.zeros(64, np.int64), 3
    before = plain(cute.compile(steps, args, arch=arch).ptx, "steps")
    on = twin(steps, args, arch)
    assert on.ptx.count(".b8 numba_cute_timeline[16]") == 1 and on.ptx.count("%clock64") >= 7
    assert on.resources.spill_stores == 0
    assert plain(cute.compile(steps, args, arch=arch).ptx, "steps") == before


def test_a_device_function_that_was_first_compiled_to_tell_tells_nothing_later():
    @cuda.jit(device=True)
    def inner(x):
        cute.mark("inner")
        return x

    @cuda.jit
    def kernel(out):
        out[0] = inner(out[1])

    args = (np.zeros(2, np.int64),)
    assert "clock64" in twin(kernel, args).ptx
    assert "clock64" not in cute.compile(kernel, args).ptx
    assert "clock64" in twin(kernel, args).ptx


def test_a_name_is_a_text():
    @cuda.jit
    def kernel(n):
        cute.range_push(n)

    with pytest.raises(cute.CuteError, match="must be a text"):
        cute.compile(kernel, (3,))
    with pytest.raises(cute.CuteError, match="must be a text"):
        cute.simulate(kernel)[1, 1](3)


# ------------------------------------------------------------------ what compiled code writes


def test_the_buffer_that_code_writes_reads_as_what_was_told(monkeypatch):
    """The simulator runs the code that a GPU would: each block has two warps, of which one lane tells."""
    most, warps, grid = 8, 2, (3, 2, 1)
    part = host.HEADER + host.RECORD * most
    buffer = np.zeros(5 * warps * part // 16 + 1, [("a", "u8"), ("b", "u8")]).view(np.uint64)
    about = np.array([buffer.ctypes.data, most | 5 << 32, 0], np.uint64)

    @cuda.jit
    def kernel(buffer, about, n):
        if cuda.threadIdx.x % 32 == 7:
            block = cuda.blockIdx.x + 3 * cuda.blockIdx.y
            cute.range_push("outer", 10 * block + cuda.threadIdx.x // 32)
            for i in range(n):
                cute.mark("inner", i - 1)
            cute.range_pop()

    monkeypatch.setattr(SimBackend, "told", lambda self, kind, name, payload: False)
    monkeypatch.setattr(SimBackend, "timeline", lambda self: int(about.ctypes.data))
    with recorded(Recorder(most, 5)):
        cute.simulate(kernel, checks=False)[grid, 64](buffer, about, 3)
    events, lost = host.decode(buffer.view(np.uint8)[: 5 * warps * part], grid, warps, most, "kernel")
    assert lost == 0 and len(events) == 5 * warps * 5
    by_warp = {}
    for e in events:
        by_warp.setdefault((e.block, e.warp), []).append((e.kind, e.name, e.payload))
    blocks = [(x, y, 0) for y in range(2) for x in range(3)][:5]
    assert by_warp == {
        (b, w): [("push", "outer", 10 * (b[0] + 3 * b[1]) + w), *[("mark", "inner", i - 1) for i in range(3)],
                 ("pop", "", None)]
        for b in blocks for w in range(warps)
    }  # fmt: skip
    assert all(e.clock > 0 and e.time > 0 for e in events)
    buffer[:] = 0
    with recorded(Recorder(most, 5)):
        cute.simulate(kernel, checks=False)[grid, 64](buffer, about, 9)
    events, lost = host.decode(buffer.view(np.uint8)[: 5 * warps * part], grid, warps, most, "kernel")
    assert lost == 5 * warps * 3 and len(events) == 5 * warps * most


# ------------------------------------------------------------------ times and pictures


def of_gpu(clock, time, sm, kind, name="r", warp=0):
    return Event(clock, time, sm, (0, 0, 0), warp, kind, name, None, "k")


def test_times_of_an_sm_are_its_cycles_laid_on_the_timer():
    """2 cycles a nanosecond; the timer steps by 32 ns; two SMs, whose clocks began at different times."""
    told = []
    for sm, began in ((0, 10_000), (1, 90_000)):
        for i in range(200):
            ns = 1000 + 17 * i
            told.append(of_gpu(began + 2 * ns, ns // 32 * 32, sm, "push" if i % 2 == 0 else "pop"))
    t = cute.Timeline(told, "ns")
    for r in t.ranges:
        assert abs((r.stop - r.start) - 17) < 0.5
    first = {sm: min(t.time_of(e) for e in t.only(sm=sm)) for sm in (0, 1)}
    assert abs(first[0] - first[1]) < 8


def test_ranges_that_never_end_last_and_ends_without_beginnings_are_left_out():
    told = [of_gpu(1, 1, 0, "pop"), of_gpu(2, 2, 0, "push", "a"), of_gpu(3, 3, 0, "push", "b"), of_gpu(9, 9, 0, "mark")]
    t = cute.Timeline(told, "instructions")
    assert [(r.name, r.stop - r.start) for r in t.ranges] == [("a", 7), ("b", 6)]


def test_a_timeline_is_drawn(tmp_path):
    out = np.zeros(64, np.int64)
    t = cute.timeline(cute.simulate(steps)[1, 64], out, 2)
    t.chrome(tmp_path / "t.json")
    told = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    shown = [e for e in told if e["ph"] == "X"]
    assert Counter(e["name"] for e in shown) == {"all": 2, "step": 4, "double": 4}
    assert {e["args"]["name"] for e in told if e["ph"] == "M"} == {
        "steps, SM 0", "block (0, 0, 0), warp 0", "block (0, 0, 0), warp 1",
    }  # fmt: skip
    assert sum(e["ph"] == "i" for e in told) == 4 and all(e["dur"] >= 0 for e in shown)
    picture = t.svg(tmp_path / "t.svg", width=600)
    assert (tmp_path / "t.svg").read_text() == picture
    root = ElementTree.fromstring(picture)
    space = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f"{space}rect[@fill]")) == 10 + 3 and len(root.findall(f"{space}path")) == 4
    assert cute.Timeline([], "ns").svg().startswith("<svg") and len(cute.Timeline([], "ns")) == 0


@pytest.mark.parametrize(
    "call, says",
    [(lambda: cute.timeline(3), "nothing to call"), (lambda: cute.timeline(print, events=0), "events 0 must be"),
     (lambda: cute.timeline(print, blocks=1.5), "blocks 1.5 must be")],
)  # fmt: skip
def test_what_cannot_be_recorded_is_refused(call, says):
    with pytest.raises(cute.CuteError, match=says):
        call()


def test_kinds_and_names_are_numbers_that_fit():
    assert len(KINDS) <= 7 and NAMES[""] == 0 and len(NAMES) < 1 << 28


class Placed(np.ndarray):
    """An array of the host in the place of one of a device."""

    def copy_to_host(self):
        return np.asarray(self)

    @property
    def __cuda_array_interface__(self):
        return {"data": (self.ctypes.data, False)}


def of_kernel(**held):
    return SimpleNamespace(py_func=steps.py_func, argtypes=(), **held)


def test_a_recorded_launch_has_a_buffer_of_its_own(monkeypatch):
    """With a driver that does nothing: what is set before the launch, and read and unset after it."""
    told, buffers, twin = [], [], object()
    monkeypatch.setattr(host, "_symbol", lambda kernel: 64 if kernel is twin else None)
    monkeypatch.setattr(host, "_set", lambda *words: told.append(words))
    monkeypatch.setattr(host.devices, "get_context", lambda: SimpleNamespace(synchronize=lambda: told.append("wait")))

    def to_device(array):
        buffers.append(array.view(Placed))
        return buffers[-1]

    monkeypatch.setattr(host.cuda, "to_device", to_device)

    def launch(kernel):
        assert kernel is twin
        told.append("launch")
        part = buffers[-1].view(np.ndarray)[3 * (host.HEADER + 2 * host.RECORD) :]  # block 1, warp 1
        part[:4].view(np.uint32)[0] = 3
        record = part[host.HEADER :][: host.RECORD].view(host._RECORD)
        record[0] = (11, 22, 5, 2 | host.HAS_PAYLOAD | NAMES["middle"] << 4, -7)
        part[host.HEADER + host.RECORD :][: host.RECORD].view(host._RECORD)[0] = (12, 23, 5, 1, 0)

    cute.timeline(cute.simulate(steps)[1, 32], np.zeros(32, np.int64), 1)  # which gives "middle" its number
    recorder = Recorder(2, 3)
    host.launch_recorded(of_kernel(_cute_twin=twin), (2, 2, 1), (33, 1, 1), recorder, launch)
    address = buffers[0].ctypes.data
    assert told == ["wait", (64, address, 2, 3), "launch", "wait", (64, 0, 0, 0)]
    assert buffers[0].nbytes == 3 * 2 * (host.HEADER + 2 * host.RECORD)
    assert recorder.lost == 1 and recorder.events == [
        Event(11, 22, 5, (1, 0, 0), 1, "mark", "middle", -7, "steps"),
        Event(12, 23, 5, (1, 0, 0), 1, "pop", "", None, "steps"),
    ]
    host.launch_recorded(of_kernel(_cute_twin=object()), (1, 1, 1), (32, 1, 1), recorder, told.append)
    assert len(buffers) == 1, "a kernel that tells nothing needs no buffer"


def test_what_is_no_event_of_a_timeline_is_refused():
    with pytest.raises(cute.CuteError, match="event 5 is not of this timeline: give one of its events"):
        Timeline([], "ns").time_of(5)
    with pytest.raises(cute.CuteError, match="events holds 5: give Event objects"):
        Timeline([5], "ns")
