# SPDX-License-Identifier: Apache-2.0
"""Prepared launches that are graphs: in machine code with a driver that is not there, and on a GPU."""

from __future__ import annotations

import ctypes
import gc
from types import SimpleNamespace

import numpy as np
import pytest
from numba import cuda
from numba.cuda import types

import numba_cute as cute
from numba_cute import arch
from numba_cute.compiler.host.native import graphs, plans, sites
from numba_cute.runtime import from_dlpack

from .noting import Exporter, kernel_of, launches

__all__ = ["launches"]


@cuda.jit
def increments(out, by):
    i = arch.thread_idx()[0]
    out[i] += by


class Driver:
    """The driver's functions of graphs. status: of the stream, of which it is asked. result: what a launch gives."""

    def __init__(self):
        self.launched, self.status, self.refuses, self.result = [], 0, 0, 0
        word, single = ctypes.c_void_p, ctypes.c_int
        self.kept = [ctypes.CFUNCTYPE(single, word, word)(f) for f in (self.launch, self.captures)]
        self.addresses = dict(
            zip(("cuGraphLaunch", "cuStreamIsCapturing"), (ctypes.cast(f, word).value for f in self.kept))
        )

    def launch(self, graph, stream):
        self.launched.append((graph, stream or 0))
        return self.result

    def captures(self, stream, place):
        ctypes.c_int.from_address(place).value = self.status
        return self.refuses


@pytest.fixture
def graph_driver(launches, monkeypatch):
    made = Driver()
    monkeypatch.setattr(plans, "function_address", made.addresses.get)
    monkeypatch.setattr(graphs, "graph_of", lambda *args: SimpleNamespace(handle=99))
    monkeypatch.setattr(graphs, "is_captured", lambda stream: stream == 0xC)
    launches.sizes[:] = [8]
    return made


def prepared(stream=None, now=0):
    x, refused = Exporter(0x1000, (4,), (1,)), []
    setting = plans.Setting(kernel_of((1,), [types.int64]), 1234, (1, 1, 1), (32, 1, 1), 0, stream)
    call = sites.prepared(plans.packed_for_good(setting, [7], (x,)), lambda: refused.append(1), True, now)
    return call, refused


def test_a_graph_is_launched_in_the_stream_of_the_arguments(launches, graph_driver):
    for stream, want in ((None, 0x77), (5, 5)):
        call, refused = prepared(stream)
        graph_driver.launched.clear()
        for _ in range(3):
            assert call() is None
        assert graph_driver.launched == [(99, want)] * 3 and not launches.seen and not refused


def test_the_kernel_itself_is_launched_while_the_stream_is_captured(launches, graph_driver):
    call, refused = prepared()
    for status, refuses in ((1, 0), (2, 0), (0, 900)):
        graph_driver.status, graph_driver.refuses = status, refuses
        launches.seen.clear()
        call()
        assert len(launches.seen) == 1 and not graph_driver.launched and not refused


def test_what_the_driver_refuses_of_a_graph_goes_the_slow_way(launches, graph_driver, monkeypatch):
    call, refused = prepared()
    graph_driver.result = 1
    call()
    assert refused == [1] and not launches.seen
    call, refused = prepared(now=0xC)
    call()
    assert len(launches.seen) == 1 and not refused, "none is made while the stream is captured"
    monkeypatch.setattr(graphs, "graph_of", lambda *args: None)
    call, refused = prepared()
    call()
    assert len(launches.seen) == 2 and not refused, "it makes no graph"


def test_a_graph_waits_for_what_is_before_it():
    with pytest.raises(cute.CuteError, match="graph=True with pdl=True"):
        cute.launch(increments, grid=1, block=32, graph=True, pdl=True)


@pytest.mark.gpu
def test_on_a_gpu_graphs_do_what_launches_do():
    torch = pytest.importorskip("torch")
    out = torch.zeros(32, device="cuda")
    call = cute.launch(increments, grid=1, block=32, graph=True).prepare(out, 2.0)
    plan = call.__self__[1]
    for _ in range(20):
        call()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(20):
            call()
    torch.cuda.current_stream().wait_stream(side)
    assert (out == 80).all() and plan.launched == 40 and any(isinstance(k, graphs.Graph) for k in plan.kept)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
        call()
    for _ in range(4):
        graph.replay()
    assert (out == 80 + 16).all()
    gc.collect()  # of tests before; torch's own graph keeps memory
    kept = torch.cuda.memory_allocated()
    for _ in range(50):
        cute.launch(increments, grid=1, block=32, graph=True).prepare(out, 1.0)()
    del call, plan
    gc.collect()
    after = torch.cuda.memory_allocated()  # an assert keeps the tensors that its comparison makes
    assert after == kept and (out == 96 + 50).all()


@pytest.mark.gpu
def test_on_a_gpu_graphs_have_clusters_shared_memory_and_maps():
    torch = pytest.importorskip("torch")
    from .test_casting_gpu import made
    from .test_launch import BIG, big, plain_ranks, tma_tile

    if cuda.get_current_device().compute_capability < (9, 0):
        pytest.skip("needs clusters and TMA")
    out = torch.zeros(8, device="cuda", dtype=torch.int32)
    cute.launch(plain_ranks, grid=8, block=32, cluster=4, graph=True).prepare(out)()
    assert out.tolist() == [0, 1, 2, 3] * 2
    words = torch.zeros(32, device="cuda", dtype=torch.int32)
    cute.launch(big, grid=1, block=32, graph=True).prepare(from_dlpack(words))()
    assert BIG > 48 * 1024 and words.tolist() == list(range(32))
    source = torch.from_numpy(np.arange(256 * 64, dtype=np.int32).reshape(256, 64)).cuda()
    tile = torch.zeros((32, 32), device="cuda", dtype=torch.int32)
    call = cute.launch(tma_tile, grid=1, block=32, graph=True).prepare(*made(source, False), tile)
    for _ in range(3):
        source += 1
        call()
        assert (tile == source[64:96, 32:64]).all()
