# SPDX-License-Identifier: Apache-2.0
"""Contenders are timed fairly, on a GPU that is none."""

import json
import random

import pytest

import numba_cute as cute
from numba_cute.testing import Timing, benchmark, compare, do_bench, get_workspace_count
from numba_cute.testing.measuring import Pace
from numba_cute.testing.statistics import median_interval

from .fake import FakeGPU

QUICK = Pace(turn=0.01, least=0.1, most=2.0, within=0.005, rest=0.5)


def test_equal_contenders_are_found_equal_though_the_clock_falls():
    """One after the other, the first would be 30% faster."""
    gpu = FakeGPU(throttle=0.4)
    same = {name: gpu.launch(name, 1e-4) for name in ("a", "b", "c")}
    c = compare(same, device=gpu, pace=QUICK)
    assert c.settled and c.warmed > 0.5
    for name in same:
        assert c.speed(name)[0] == pytest.approx(1, abs=0.005)
    cold = FakeGPU(throttle=0.4)
    first, second = (cold.timed([cold.launch(n, 1e-4)], 3000) for n in "ab")
    assert second > 1.1 * first


def test_ratios_are_those_of_the_contenders():
    gpu = FakeGPU(throttle=0.2)
    c = compare({"slow": gpu.launch("slow", 2e-4), "fast": gpu.launch("fast", 1e-4)}, device=gpu, pace=QUICK)
    ratio, interval = c.speed("fast")
    assert c.fastest == "fast" and c.baseline == "slow" and ratio == pytest.approx(2, rel=0.01)
    assert interval.low <= ratio <= interval.high
    assert "fast" in c.table(work=1e9) and "of slow" in str(c) and "TFLOP/s" in c.table(work=1e9)
    json.dumps(c.as_dict())


def test_each_round_begins_with_another_contender():
    gpu = FakeGPU()
    launches = {name: gpu.launch(name, 1e-3) for name in "abc"}
    compare(launches, device=gpu, regime="burst", rounds=3, pace=Pace(burst_warm=1, burst=1, rest=0.0))
    turns = [n for i, n in enumerate(gpu.log[18:]) if i % 2]  # behind the first launches; without warm-ups
    assert "".join(turns) == "abcbcacab"


def test_a_burst_begins_at_rest_and_is_faster_than_what_is_sustained():
    gpu = FakeGPU(throttle=0.5, settle=0.02)
    launch = gpu.launch("x", 1e-4)
    burst = compare({"x": launch}, device=gpu, regime="burst", pace=QUICK)["x"]
    sustained = compare({"x": launch}, device=gpu, pace=QUICK)["x"]
    assert burst.median < 105 and sustained.median > 145


def test_each_cold_call_has_an_empty_cache():
    gpu = FakeGPU()
    compare({"x": gpu.launch("x", 1e-4)}, device=gpu, regime="cold", rounds=2, pace=Pace(cold=5))
    assert gpu.flushes == 10


def test_sets_of_buffers_are_taken_in_turn():
    gpu = FakeGPU()
    compare({"x": [gpu.launch(n, 1e-3) for n in "ab"]}, device=gpu, regime="burst", rounds=1,
            pace=Pace(burst=4, burst_warm=2))  # fmt: skip
    assert "".join(gpu.log[-4:]) == "abab"


def test_graphs_hold_many_short_calls_and_whole_rows_of_buffers():
    gpu = FakeGPU()
    made = []
    gpu.graph = lambda launches, count: made.append(count) or FakeGPU.graph(gpu, launches, count)
    c = compare({"x": [gpu.launch(n, 1e-5) for n in "abc"]}, device=gpu, graphs=True, pace=QUICK)
    assert made == [198] and c["x"].median == pytest.approx(10)


def test_a_contender_that_fails_is_an_error_or_is_left_out():
    gpu = FakeGPU()
    two = lambda fails: {"good": gpu.launch("good", 1e-4), "bad": gpu.launch("bad", 1e-4, fails=fails)}  # noqa: E731
    with pytest.raises(cute.CuteError, match="bad failed"):
        compare(two(0), device=gpu, pace=QUICK)
    for fails in (0, 3, 400):  # at once, in the warm-up, in a round
        c = compare(two(fails), device=gpu, pace=QUICK, keep_going=True, baseline="bad")
        assert c.failed == {"bad": "CuteError: bad failed"} and c.baseline == "good" and "failed:" in str(c)
    with pytest.raises(cute.CuteError, match="no contender is left"):
        compare({"bad": gpu.launch("bad", 1e-4, fails=0)}, device=gpu, keep_going=True)


def test_times_that_do_not_settle_are_said_not_to():
    gpu = FakeGPU()
    rng = random.Random(0)

    def noisy():
        gpu.clock += rng.uniform(1e-4, 5e-4)

    c = compare({"x": noisy}, device=gpu, pace=Pace(turn=1e-3, least=0.1, most=0.2, within=1e-4))
    assert not c.settled and "not settled" in str(c)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"contenders": {}}, "contenders {} must be a dict of at least one name"),
        ({"contenders": {"x": 3}}, "contender 'x' is 3: give a function"),
        ({"regime": "warm"}, "regime 'warm' must be one of cold, burst, sustained"),
        ({"rounds": 0}, "rounds 0 must be a positive int"),
        ({"baseline": "y"}, "baseline 'y' is none of the contenders 'x'"),
    ],
    ids=["none", "no function", "regime", "rounds", "baseline"],
)
def test_what_cannot_be_compared_is_refused(given, words):
    gpu = FakeGPU()
    with pytest.raises(cute.CuteError, match=words.replace("{", r"\{")):
        compare(**{"contenders": {"x": gpu.launch("x", 1e-4)}, **given}, device=gpu)


def test_one_kernel_is_timed_in_a_line():
    gpu = FakeGPU()
    t = do_bench(gpu.launch("x", 2e-5), device=gpu)
    assert float(t) == pytest.approx(20) and str(t).startswith("20 us (20 to 20, of ") and gpu.flushes > 1000
    assert do_bench(gpu.launch("x", 2e-5), device=gpu, graphs=True).median == pytest.approx(20)
    for given, words in (
        ({"launch": 1}, "launch 1 must be a function"),
        ({"seconds": 0}, "seconds 0 must be a positive"),
    ):
        with pytest.raises(cute.CuteError, match=words):
            do_bench(**{"launch": gpu.launch("x", 1e-5), **given}, device=gpu)


def test_a_time_that_is_the_hosts_is_said_to_be():
    assert Timing("x", (5.0,), host=9.0).host_bound and "host takes 9 us" in str(Timing("x", (5.0,), host=9.0))
    assert not Timing("x", (5.0,), host=2.0).host_bound


def test_without_a_gpu_timing_is_refused():
    if cute.testing.measuring.__dict__ and _has_gpu():
        pytest.skip("there is a GPU")
    with pytest.raises(cute.CuteError, match="timing needs a GPU, and there is none here"):
        do_bench(lambda: None)


def _has_gpu():
    from numba import cuda

    return cuda.is_available()


@pytest.mark.parametrize(
    ("n", "at", "confidence"), [(5, 0, 0.9375), (6, 0, 0.96875), (9, 1, 0.9609375), (20, 5, 0.9586)]
)
def test_the_interval_of_a_median_is_that_of_order_statistics(n, at, confidence):
    """Conover, Practical Nonparametric Statistics, table A3 of the binomial distribution."""
    found = median_interval([float(i) for i in reversed(range(n))])
    assert (found.low, found.high) == (at, n - 1 - at) and found.confidence == pytest.approx(confidence, abs=1e-4)


def test_the_interval_holds_the_median_as_often_as_it_says():
    rng = random.Random(1)
    held = 0
    for _ in range(2000):
        i = median_interval([rng.expovariate(1.0) for _ in range(11)])
        held += i.low <= 0.6931 <= i.high
    assert held / 2000 == pytest.approx(i.confidence, abs=0.012)


def test_the_references_benchmark_gives_microseconds():
    gpu = FakeGPU()
    launch = gpu.launch("x", 3e-5)
    calls = []

    def call(a, b=0):
        calls.append((a, b))
        launch()

    arguments = cute.testing.JitArguments(1, b=2)
    arguments.add_to_scope([object()])
    assert benchmark(call, kernel_arguments=arguments, device=gpu, iterations=7) == pytest.approx(30)
    assert calls == [(1, 2)] * 17
    calls.clear()
    made = iter(range(10))
    benchmark(call, workspace_generator=lambda: cute.testing.JitArguments(next(made)), workspace_count=3, device=gpu,
              warmup_iterations=0, iterations=4)  # fmt: skip
    assert [a for a, _ in calls] == [0, 1, 2, 0]
    graphed = benchmark(call, kernel_arguments=arguments, device=gpu, use_cuda_graphs=True, stream=7)
    assert graphed == pytest.approx(30)


def test_the_references_benchmark_refuses_what_it_cannot_call():
    one = {"callable": lambda: None, "device": FakeGPU()}
    for given, words in (
        ({"kernel_arguments": cute.testing.JitArguments(), "workspace_generator": list}, "not both"),
        ({"workspace_generator": list}, "what it gives, \\[\\] must be JitArguments"),
        ({"kernel_arguments": (1,)}, "must be JitArguments"),
        ({"iterations": 0}, "iterations 0 must be an int from 1 to 1000000"),
        ({"workspace_count": 0}, "workspace_count 0"),
    ):
        with pytest.raises(cute.CuteError, match=words):
            benchmark(**one, **given)


def test_workspaces_overflow_the_cache_but_are_no_more_than_the_launches():
    gpu = FakeGPU(l2=1000)
    assert [get_workspace_count(b, 2, 8, device=gpu) for b in (1, 400, 1000, 1 << 20)] == [10, 9, 4, 2]
    with pytest.raises(cute.CuteError, match="one_workspace_bytes 0 must be an int from 1 on"):
        get_workspace_count(0, 1, 1, device=gpu)
