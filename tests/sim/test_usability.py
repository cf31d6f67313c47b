# SPDX-License-Identifier: Apache-2.0
"""What a user tries first: printing, a debugger, line tracing, wrong arguments, and orders on the same memory."""

import contextlib
import io
import pdb
import sys
import trace as line_trace

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.sim import Trace, simulate
from numba_cute.sim.launch import FURTHER_SEEDS


@cuda.jit
def ones(a):
    a[cuda.grid(1)] = 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"checks": 3}, "checks 3 is neither True, False nor some of"),
        ({"checks": ("races", 5)}, r"checks \[5\] are none of"),
        ({"async_mode": "late"}, "async_mode 'late' is none of 'lazy', 'eager', 'random'"),
        ({"seed": 1.5}, "seed 1.5 is not an int"),
        ({"seed": True}, "seed True is not an int"),
        ({"arch": 90}, "arch 90: not a known target; .* did you mean 'sm_90a'"),
        ({"arch": "sm90"}, "arch 'sm90': not a known target"),
        ({"cluster": "two"}, "cluster 'two' must be one to three positive integers"),
        ({"cluster": 1.5}, "cluster 1.5 must be one to three positive integers"),
        ({"cluster": 32}, "32 CTAs exceed the 16 of sm_90a"),
        ({"trace": True}, "trace True is no cute.sim.Trace"),
    ],
    ids=str,
)
def test_wrong_options_are_named(options, words):
    with pytest.raises(cute.CuteError, match=words):
        simulate(ones, **options)


@pytest.mark.parametrize(
    ("config", "args", "words"),
    [
        ((1, 2000), 1, "2000, 1, 1"),
        ((1, (1, 1, 128)), 1, "sm_90a takes at most"),
        (((1, 70000), 32), 1, "sm_90a takes at most"),
        ((1.5, 32), 1, "grid 1.5 must be one to three positive integers"),
        (("a", 32), 1, "grid 'a' must be one to three positive integers"),
        ((1, 32, 0, -4), 1, "smem -4"),
        ((1, 32, 0, 300_000), 1, "300000 bytes dynamic and 0 static exceed the 232448"),
        ((1, 32), 0, r"ones\(a\) takes 1 arguments, but the launch gives 0"),
        ((1, 32), 2, r"ones\(a\) takes 1 arguments, but the launch gives 2"),
    ],
    ids=str,
)
def test_wrong_launches_are_named(config, args, words):
    with pytest.raises(cute.CuteError, match=words):
        simulate(ones)[config](*(np.zeros(32) for _ in range(args)))


def test_integers_of_numpy_are_integers():
    out = np.zeros(64)
    simulate(ones, seed=np.int64(3))[np.int32(2), np.int64(32)](out)
    assert out.all()


@pytest.mark.parametrize("bad", [{"most": "all"}, {"deviations": -1}], ids=str)
def test_an_exploration_of_no_number_of_orders(bad):
    with pytest.raises(cute.CuteError, match=f"explore: {next(iter(bad))}"):
        simulate(ones).explore(**bad)


@pytest.mark.parametrize("checks", [True, False])
def test_prints_come_in_the_order_of_threads(capsys, checks):
    @cuda.jit
    def kernel(a):
        t = cute.arch.thread_idx()[0]
        if t % 32 == 3:
            print("thread", t, "has", a[t])
        cute.printf("%d.", t)

    simulate(kernel, checks=checks)[1, 64](np.arange(64))
    text = capsys.readouterr().out
    assert [line for line in text.replace(".", "\n").splitlines() if line.startswith("thread")] == [
        "thread 3 has 3", "thread 35 has 35",
    ]  # fmt: skip
    assert [int(x) for x in text.replace("\n", "").replace("thread 3 has 3", "").replace("thread 35 has 35", "")
            .split(".")[:-1]] == list(range(64))  # fmt: skip


@pytest.mark.parametrize("checks", [True, False])
def test_a_debugger_stops_inside_a_kernel(monkeypatch, checks):
    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x
        x = a[t] * 2
        if t == 1:
            breakpoint()
        cuda.syncthreads()
        out[t] = x + a[31 - t]

    said = io.StringIO()
    session = pdb.Pdb(stdin=io.StringIO("p t, float(x)\nn\nn\np float(out[0])\nc\n"), stdout=said)
    session.use_rawinput = False
    monkeypatch.setattr(sys, "breakpointhook", lambda: session.set_trace(sys._getframe(1)))
    tracer = sys.gettrace()
    out = np.zeros(32, np.float32)
    try:
        simulate(kernel, checks=checks)[1, 32](np.arange(32, dtype=np.float32), out)
    finally:
        sys.settrace(tracer)
    assert "(Int32(1), Float64(2.0))" in said.getvalue() and "out[t] = x + a[31 - t]" in said.getvalue()
    assert (out == np.arange(32) + 31).all()


def test_lines_of_kernels_are_traced():
    def kernel(a):
        if cuda.threadIdx.x > 100:
            a[0] = 2
        a[cuda.threadIdx.x] = 1

    counts = line_trace.Trace(count=1, trace=0)
    counts.runfunc(lambda: simulate(kernel)[1, 32](np.zeros(32)))
    first = kernel.__code__.co_firstlineno
    found = {line - first: n for (file, line), n in counts.results().counts.items() if file == __file__}
    assert (found[1], found.get(2), found[3]) == (32, None, 32)


def test_further_seeds_begin_with_the_same_memory_and_leave_what_the_first_run_left():
    @cuda.jit
    def kernel(array, tensor):
        t = cuda.threadIdx.x
        if array[t] != 0 or tensor[t] != 0:
            raise ValueError("not the memory that the launch began with")
        array[t] = tensor[t] = t + 1

    a, b = np.zeros(32), np.zeros(32)
    token = FURTHER_SEEDS.set((0, 1, 2))
    try:
        simulate(kernel)[1, 32](a, cute.runtime.from_dlpack(b))
    finally:
        FURTHER_SEEDS.reset(token)
    assert (a == np.arange(32) + 1).all() and (b == a).all()


def test_an_exploration_leaves_the_memory_as_it_was():
    @cuda.jit
    def kernel(tensor, array):
        cuda.atomic.add(array, 0, 1)
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            if tensor[0] != 5:
                raise ValueError("not the memory that the launch began with")
            tensor[0] = 6

    b = np.full(1, 5)
    assert simulate(kernel).explore(most=10)[1, 96](cute.runtime.from_dlpack(b), np.zeros(1)) > 1
    assert b[0] == 5


@pytest.mark.parametrize(("smem", "warns"), [(0, False), (1000, True), (2048, False)])
def test_too_little_shared_memory_is_more_with_a_warning(smem, warns):
    def kernel(a):
        rows = cute.utils.SmemAllocator()
        rows.allocate(1024)
        last = rows.allocate_tensor(cute.Float32, cute.make_layout(256), 16)
        last[255] = 7
        a[0] = last[255]

    a = np.zeros(1, np.float32)
    said = "smem=1000: the kernel's allocations take 2048 bytes of dynamic shared memory"
    with pytest.warns(cute.LaunchWarning, match=said) if warns else contextlib.nullcontext():
        simulate(kernel)[1, 1, 0, smem](a)
    assert a[0] == 7


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions have no notes")
def test_any_error_in_an_order_says_how_to_see_it_again():
    def kernel(a):
        if cuda.atomic.add(a, 0, 1) == 3 and cuda.threadIdx.x != 3:
            raise ValueError("another came fourth")

    for seed in range(20):
        try:
            simulate(kernel, seed=seed)[1, 64](np.zeros(1, np.int32))
        except ValueError as e:
            assert any(f"cute.simulate(kernel, seed={seed}" in note for note in e.__notes__)
            return
    pytest.fail("no order put another thread fourth")


def test_a_timeline_of_nothing_is_still_a_page(tmp_path):
    trace = Trace()
    simulate(ones, trace=trace)[1, 32](np.zeros(32))
    trace.html(tmp_path / "run.html")
    trace.perfetto(tmp_path / "run.json")
    text = (tmp_path / "run.html").read_text()
    assert "<svg" in text and "http" not in text.replace("http://www.w3.org/2000/svg", "")
