# SPDX-License-Identifier: Apache-2.0
"""What the stopwatch asks of the driver, of one that is none: order, streams, and what its errors become."""

import gc
from types import SimpleNamespace

import pytest

import numba_cute as cute
from numba_cute.compiler.host import stopwatch
from numba_cute.compiler.host.stopwatch import Saved, Stopwatch, handle_of

REAL = stopwatch.bindings


class Driver:
    """A driver whose calls succeed. calls: they, with arguments. gives: what some give. fails: one that does not."""

    def __init__(self):
        self.calls, self.events, self.fails = [], 0, None
        self.gives = {"cuEventElapsedTime": (0.5,), "cuMemAlloc": (4096,), "cuDeviceGetAttribute": (1 << 20,),
                      "cuStreamEndCapture": ("graph",), "cuGraphGetNodes": (["node"], 1),
                      "cuGraphInstantiate": ("exec",),
                      "cuDeviceGetName": (b"a GPU\0 \1",),
                      "cuDeviceGetUuid": (SimpleNamespace(bytes=bytes(range(16))),),
                      "cuDriverGetVersion": (13000,), "cuCtxGetDevice": (0,)}  # fmt: skip

    def __getattr__(self, name):
        if not name.startswith("cu"):
            return getattr(REAL, name)
        if name.startswith("CU"):
            return getattr(REAL, name)

        def call(*args):
            self.calls.append((name, *args))
            if name == self.fails:
                return (REAL.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS, *(None for _ in self.gives.get(name, ())))
            if name == "cuEventCreate":
                self.events += 1
                return REAL.CUresult.CUDA_SUCCESS, f"event {self.events}"
            return REAL.CUresult.CUDA_SUCCESS, *self.gives.get(name, ())

        return call

    def named(self, *names):
        return [c for c in self.calls if c[0] in names]


@pytest.fixture
def driver(monkeypatch):
    made = Driver()
    monkeypatch.setattr(stopwatch, "bindings", made)
    monkeypatch.setattr(stopwatch, "_use_the_gpu", lambda what: None)
    return made


def test_calls_are_timed_between_two_events_of_their_stream(driver):
    watch, done = Stopwatch(7), []
    assert watch.timed([lambda: done.append("a"), lambda: done.append("b")], 3) == pytest.approx(5e-4)
    assert done == ["a", "b", "a"] and watch.host > 0
    assert driver.named("cuEventRecord") == [("cuEventRecord", "event 1", 7), ("cuEventRecord", "event 2", 7)]
    gc.collect()
    assert len(driver.named("cuEventDestroy")) == 2


def test_the_cache_is_emptied_before_the_event_of_each_call(driver):
    watch = Stopwatch(7)
    launch = lambda: driver.calls.append(("launch",))  # noqa: E731
    assert watch.each([launch], 2, True) == [pytest.approx(5e-4)] * 2
    order = [c[0] for c in driver.named("cuMemsetD8Async", "cuEventRecord", "launch")]
    assert order == ["cuMemsetD8Async", "cuEventRecord", "launch", "cuEventRecord"] * 2
    assert driver.named("cuMemsetD8Async")[0] == ("cuMemsetD8Async", 4096, 0, 32 << 20, 7)
    assert len(driver.named("cuMemAlloc")) == 1


def test_a_graph_is_captured_once_and_launched_on_its_stream(driver):
    watch, done = Stopwatch(7), []
    graph = watch.graph([lambda: done.append(1)], 5)
    assert len(done) == graph.count == 5
    graph()
    graph()
    assert driver.named("cuGraphLaunch") == [("cuGraphLaunch", "exec", 7)] * 2
    assert driver.named("cuGraphDestroy") == [("cuGraphDestroy", "graph")]


def test_what_no_graph_captures_is_refused(driver):
    with pytest.raises(cute.CuteError, match="stream=0 is the default stream, whose launches no graph captures"):
        Stopwatch(0).graph([print], 1)
    driver.gives["cuGraphGetNodes"] = (None, 0)
    with pytest.raises(cute.CuteError, match="nothing was launched on it"):
        Stopwatch(7).graph([lambda: None], 1)


def test_a_launch_that_fails_ends_the_capture(driver):
    def fail():
        raise ValueError("no luck")

    with pytest.raises(ValueError, match="no luck"):
        Stopwatch(7).graph([fail], 1)
    assert driver.named("cuStreamEndCapture") and not driver.named("cuGraphInstantiate")


def test_errors_of_the_driver_say_what_was_done(driver):
    driver.fails = "cuCtxSynchronize"
    with pytest.raises(cute.CuteError, match="waiting for the GPU: the GPU's driver says CUDA_ERROR_ILLEGAL_ADDRESS"):
        Stopwatch(7).synchronize()


def test_the_gpu_says_what_it_is(driver):
    facts = Stopwatch(0).facts()
    assert facts["gpu"] == "a GPU" and facts["uuid"] == "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert facts["cuda_of_driver"] == "13.0" and facts["l2_bytes"] == 1 << 20


def test_memory_is_put_back(driver):
    saved = Saved(100, 64)
    saved.restore()
    assert driver.named("cuMemcpyDtoD") == [("cuMemcpyDtoD", 4096, 100, 64), ("cuMemcpyDtoD", 100, 4096, 64)]


class Foreign:
    def __init__(self, **fields):
        self.__dict__ |= fields


@pytest.mark.parametrize(
    ("stream", "handle"),
    [(0, 0), (12, 12), (Foreign(cuda_stream=34), 34), (Foreign(ptr=56), 56), (None, 0)],
    ids=["default", "int", "torch", "cupy", "none"],
)
def test_streams_of_others_have_their_handles(stream, handle):
    assert handle_of(stream) == handle


def test_what_is_no_stream_is_refused():
    with pytest.raises(cute.CuteError, match="is not a stream"):
        handle_of("stream")
