# SPDX-License-Identifier: Apache-2.0
"""Times, tuning and conversion on a real GPU."""

import os

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import config
from numba_cute.runtime import from_dlpack
from numba_cute.testing import (
    JitArguments,
    Monitor,
    assert_,
    benchmark,
    compare,
    convert,
    do_bench,
    get_workspace_count,
)
from numba_cute.testing.measuring import Pace

pytestmark = pytest.mark.gpu
SHARED = "PYTEST_XDIST_WORKER" in os.environ
"""Whether other tests use the GPU meanwhile."""
N = 1 << 24
QUICK = Pace(turn=0.02, least=0.1, most=0.5, rest=0.02)


@cuda.jit
def copying(src, dst):
    for i in range(cuda.grid(1), src.shape[0], cuda.gridsize(1)):
        dst[i] = src[i]


@cuda.jit
def waiting(out, cycles):
    start = cute.arch.clock64()
    while cute.arch.clock64() - start < cycles:
        pass
    out[0] = 1


@pytest.fixture
def arrays():
    return cuda.device_array(N, np.float32), cuda.device_array(N, np.float32)


def copy(arrays, stream=0, blocks=1024):
    return cute.launch(copying, grid=blocks, block=256, stream=stream).prepare(*(from_dlpack(a) for a in arrays))


def test_the_rate_of_a_copy_is_one_that_a_gpu_has(arrays):
    t = do_bench(copy(arrays))
    assert 0.1 < 8 * N / t.median * 1e-6 < 20  # TB/s
    low, high = t.interval.low, t.interval.high
    assert low <= t.median <= high < 1.2 * low


def test_graphs_and_events_agree_on_long_kernels(arrays):
    stream = cuda.stream()
    launch = copy(arrays, stream)
    plain = compare({"copy": launch}, stream=stream, pace=QUICK)["copy"].median
    graphed = compare({"copy": launch}, stream=stream, graphs=True, pace=QUICK)["copy"].median
    assert graphed == pytest.approx(plain, rel=0.5 if SHARED else 0.1)


@pytest.mark.skipif(SHARED, reason="times are those of the GPU alone")
def test_graphs_leave_the_hosts_time_out(arrays):
    stream, small = cuda.stream(), [a[:1024] for a in arrays]
    launch = copy(small, stream, 4)
    slow = lambda: [launch(), sum(range(3000))]  # noqa: E731
    t = compare({"x": slow}, stream=stream, pace=QUICK)["x"]
    assert t.host_bound and t.host > 20
    assert compare({"x": slow}, stream=stream, graphs=True, pace=QUICK)["x"].median < 10


def test_the_default_stream_cannot_be_captured(arrays):
    with pytest.raises(cute.CuteError, match="is the default stream, whose launches no graph captures"):
        do_bench(copy(arrays), graphs=True)
    with pytest.raises(cute.CuteError, match="nothing was launched on it"):
        do_bench(lambda: None, graphs=True, stream=cuda.stream())


@pytest.mark.parametrize("regime", ["cold", "burst", "sustained"])
def test_contenders_that_are_the_same_are_as_fast(arrays, regime):
    launch = copy(arrays)
    c = compare({"a": launch, "b": launch}, regime=regime, pace=QUICK)
    assert c.speed("b")[0] == pytest.approx(1, abs=0.4 if SHARED else 0.05)
    assert c.machine["gpu"] and c.machine["multiprocessors"] > 1 and c.machine["uuid"].startswith("GPU-")


def test_the_clock_and_the_power_are_known_while_it_works(arrays):
    facts = compare({"a": copy(arrays)}, pace=QUICK).machine
    launch, watch = copy(arrays), cute.testing.measuring.Stopwatch()
    with Monitor(facts["uuid"]) as monitor:
        start = watch.now()
        while watch.now() - start < 0.6:
            watch.timed([launch], 50)
        seen = monitor.between(start, watch.now())
    if monitor.source is None:
        pytest.skip("neither NVML nor nvidia-smi is here")
    assert seen["sm_mhz"] > 100 and seen["watts"] > 10 and 10 < seen["celsius"] < 110


def test_the_references_benchmark_with_workspaces(arrays):
    count = get_workspace_count(8 << 20, 5, 20)
    assert 1 <= count <= 25

    def workspace():
        made = [cuda.device_array(1 << 20, np.float32) for _ in range(2)]
        given = JitArguments(*map(from_dlpack, made))
        given.add_to_scope(made)
        return given

    stream = cuda.stream()
    launch = cute.launch(copying, grid=256, block=256, stream=stream)
    given = {"workspace_generator": workspace, "workspace_count": count, "stream": stream, "iterations": 20}
    times = [benchmark(launch, **given, use_cuda_graphs=g) for g in (False, True)]
    assert all(1 < t < 1000 for t in times) and times[1] <= 1.1 * times[0]


@cute.autotune({"blocks": [1, 1024]}, pace=QUICK, progress=False)
def tuned_copy(src, dst, blocks=1):
    copying[blocks, 256](from_dlpack(src), from_dlpack(dst))


@cute.autotune({"cycles": [1000, 5_000_000]}, restore="out", isolate=60.0, workers=2, pace=QUICK, progress=False)
def isolated_wait(out, cycles=0):
    waiting[1, 1](from_dlpack(out), cycles)


def test_tuning_finds_the_grid_that_fills_the_gpu(arrays, tmp_path):
    with config.override(tuned=str(tmp_path)):
        found = tuned_copy.tune(*arrays)
        assert found.best == {"blocks": 1024} and found.slower({"blocks": 1}) > 3
        cold = cute.autotune({"blocks": [1, 1024]}, regime="cold", progress=False)(tuned_copy.function)
        assert cold.tune(*arrays).best == {"blocks": 1024}
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.slow
def test_tuning_in_processes_of_their_own(tmp_path):
    out = cuda.to_device(np.full(1, 7, np.int32))
    with config.override(tuned=str(tmp_path)):
        assert isolated_wait.tune(out).best == {"cycles": 1000}
    assert out.copy_to_host()[0] == 7


def test_restored_arguments_are_as_before():
    x = cuda.to_device(np.arange(5, dtype=np.float32))

    @cute.autotune({"blocks": [1, 2]}, restore="dst", pace=QUICK, progress=False, store=False)
    def fill(src, dst, blocks=1):
        copying[blocks, 32](from_dlpack(src), from_dlpack(dst))

    fill.tune(cuda.to_device(np.zeros(5, np.float32)), x)
    assert (x.copy_to_host() == np.arange(5)).all()


def test_tensors_are_converted():
    a = np.random.default_rng(0).standard_normal((37, 50)).astype(np.float32)
    src, dst = cuda.to_device(a), cuda.to_device(np.zeros((50, 37), np.uint8).T)
    tensor = cute.recast_tensor(from_dlpack(dst), cute.Float8E4M3FN)
    convert(from_dlpack(src), tensor)
    assert (dst.copy_to_host().view(ml_dtypes.float8_e4m3fn) == a.astype(ml_dtypes.float8_e4m3fn)).all()


@cuda.jit
def asserting(x):
    assert_(x[0] > 0, "x must be positive")


def test_a_true_assertion_is_silent():
    asserting[1, 32](cuda.to_device(np.ones(1, np.float32)))
    cuda.synchronize()
