# SPDX-License-Identifier: Apache-2.0
"""Errors fit a screen: the library's frames are folded, the kernel's line has a caret and types, faults stay whole."""

from __future__ import annotations

import functools
import json
import logging
import sys
import threading
import time
import traceback

import numpy as np
import pytest
from numba import cuda
from numba.cuda.cudadrv.error import CudaSupportError
from numba.cuda.dispatcher import CUDADispatcher

import numba_cute as cute
from benchmarks import tracebacks
from numba_cute import config
from numba_cute.seam import InternalError
from numba_cute.seam.ground import bar
from numba_cute.seam.ground.folding import folded, folding

TYPOS = [name for name in tracebacks.MISTAKES if name.startswith("typo") and "launched" not in name]
ON_THE_HOST = ["layout_on_the_host", "swizzle_on_the_host"]
X = np.zeros(64, np.float32)
since_311 = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="Python 3.10 keeps the frame that raises, and knows no columns"
)


@since_311
@pytest.mark.parametrize("name", [*TYPOS, *ON_THE_HOST, "too_many_coordinates", "address_out_of_bounds"])
def test_a_mistake_prints_at_most_eight_lines(name, tmp_path):
    text = tracebacks.printed(name, tmp_path)
    assert text.count("\n") <= 8 + 4 * ("bounds" in name)  # of what runs, the kernel's frame stands there too
    assert "numba_cute/" not in text and "site-packages" not in text


def test_the_figures_are_of_these_mistakes_and_became_smaller():
    kept = json.loads(tracebacks.RESULT.read_text())
    before, now = kept["before"]["lines"], kept["now"]["lines"]
    assert set(before) == set(now) == set(tracebacks.MISTAKES) and len(now) == 20
    assert max(now[name] for name in TYPOS) <= 8
    assert all(now[name] < before[name] for name in now)


def test_tracebacks_are_whole_where_that_is_asked_for(tmp_path):
    with config.override(traceback=True):
        text = tracebacks.printed("typo_of_a_function", tmp_path)
    assert "numba_cute/compiler/" in text


@since_311
@pytest.mark.parametrize(
    "name, line, mark",
    [
        ("typo_of_a_function", "t = cute.make_tensr(a)", "make_tensr"),
        ("typo_of_a_variable", "t[0] = vlaue", "vlaue"),
        ("typo_of_an_argument", "s = cute.make_layout(4, strid=1)", "strid"),
        ("too_many_coordinates", "t[0, 0, 0] = 1", "t[0, 0, 0]"),
        ("array_in_place_of_a_tensor", "t = cute.local_tile(a, (32,), (0,))", "cute.local_tile(a, (32,), (0,))"),
    ],
)
def test_a_caret_stands_under_what_is_wrong(name, line, mark, tmp_path):
    lines = tracebacks.printed(name, tmp_path).splitlines()
    under = lines[lines.index(f"    {line}", 3) + 1]
    assert under[4:].partition("  a:")[0].partition("  t:")[0].rstrip() == " " * line.index(mark) + "^" * len(mark)


@since_311
def test_types_stand_beside_the_caret(tmp_path):
    text = tracebacks.printed("copy_of_two_sizes", tmp_path)
    assert "^  t: Tensor(ptr<Float32, generic, align 4>, (?):(1)), r: Tensor(ptr<Float32, rmem, align 16>, 8:1)" in text
    assert "^  a: array(float32, 1d, C)" in tracebacks.printed("array_in_place_of_a_tensor", tmp_path)


@since_311
def test_a_caret_counts_letters_and_not_bytes(tmp_path, monkeypatch):
    monkeypatch.setitem(
        tracebacks.MISTAKES, "letters", tracebacks.of_kernel("é = 1; t = cute.make_tensor(a); t[0, é] = 1")
    )
    lines = tracebacks.printed("letters", tmp_path).splitlines()
    at = lines.index("    é = 1; t = cute.make_tensor(a); t[0, é] = 1", 3)
    assert lines[at + 1].startswith("    " + " " * 32 + "^" * 7 + "  t: Tensor")


def _entries(e):
    return [(f.filename, f.name) for f in traceback.extract_tb(e.__traceback__)]


@since_311
def test_a_fault_keeps_all_its_frames():
    @folding
    def entry(error):
        raise error

    for error in (InternalError("a fault"), KeyError("a fault")):
        space = {"__name__": "numba_cute.somewhere", "error": error}
        exec("def fail(): raise error", space)
        with pytest.raises(type(error)) as e:
            folding(space["fail"])()
        assert [name for _, name in _entries(e.value)][-1] == "fail"
    with pytest.raises(cute.CuteError) as e:
        entry(cute.CuteError("no fault"))
    assert {file for file, _ in _entries(e.value)} == {__file__}


@since_311
def test_an_error_of_the_users_own_keeps_the_users_frames():
    def kernel(out):
        out[0] = {}["missing"]

    with pytest.raises(KeyError) as e:
        cute.simulate(kernel)[1, 1](X)
    assert [name for _, name in _entries(e.value)] == [
        "test_an_error_of_the_users_own_keeps_the_users_frames", "kernel",
    ]  # fmt: skip


def test_frames_stay_while_a_kernel_runs():
    class Backend:
        pass

    with cute.seam.running(Backend()):
        with pytest.raises(cute.CuteError) as e:
            cute.make_swizzle(3, -1, 3)
        folded(e.value)
    assert any("swizzle.py" in file for file, _ in _entries(e.value))


@cuda.jit
def plain(a):
    a[0] = 1


@cuda.jit
def ours(a):
    cute.make_tensor(a)[0] = 1


@since_311
@pytest.mark.parametrize(
    "launch",
    [lambda k: k[1, 32], lambda k: k.forall(3), lambda k: cute.launch(k, grid=1, block=32)],
    ids=["kernel[…]", "forall", "cute.launch"],
)
def test_without_a_gpu_a_launch_says_how_to_go_on(launch, monkeypatch):
    def no_driver(*_, **__):
        raise CudaSupportError("Error at driver init: \n\nCUDA driver library cannot be found.\n:")

    monkeypatch.setattr(CUDADispatcher, "call", no_driver)
    monkeypatch.setattr(CUDADispatcher, "specialize", no_driver)
    monkeypatch.setattr("numba_cute.compiler.host.launching.launched", no_driver)
    monkeypatch.setattr("numba_cute.compiler.host.launching.compiled", no_driver)
    with pytest.raises(CudaSupportError) as e:
        launch(ours)(X)
    assert isinstance(e.value, cute.CuteError) and "cute.simulate(ours)[grid, block]" in str(e.value)
    assert "(CUDA driver library cannot be found)" in str(e.value)
    assert {file for file, _ in _entries(e.value)} == {__file__}


@since_311
def test_a_plain_kernel_hears_numbas_own_error(monkeypatch):
    def no_driver(*_, **__):
        raise CudaSupportError("no driver")

    monkeypatch.setattr(CUDADispatcher, "call", no_driver)
    with pytest.raises(CudaSupportError) as e:
        plain[1, 32](X)
    assert type(e.value) is CudaSupportError
    assert not any("refused.py" in file for file, _ in _entries(e.value))


SLEEP = 0.02


class Wait:
    """What a kernel calls that takes a while."""

    __call__ = staticmethod(functools.partial(time.sleep, SLEEP))


wait = Wait()


def test_a_bar_comes_by_itself_where_somebody_looks(capsys, monkeypatch):
    with bar.Bar("simulating k", 4, "cluster", True) as shown:
        shown.step(2)
        shown.note = "thread by thread"
        assert str(shown) == "simulating k [##########..........] 2 of 4 clusters, 0 s (thread by thread)"
    assert capsys.readouterr().err.startswith("\rsimulating k [")
    kernel = cute.simulate(lambda: wait())[1, 1]
    kernel()
    assert capsys.readouterr().err == ""  # no terminal
    monkeypatch.setattr(bar, "is_watched", lambda: True)
    kernel()
    assert capsys.readouterr().err == ""  # it took no three seconds
    monkeypatch.setattr(bar, "AFTER", 0.005)
    written, write = threading.Event(), bar.Bar._write
    monkeypatch.setattr(bar.Bar, "_write", lambda self, line: (write(self, line), written.set()))
    monkeypatch.setattr(Wait, "__call__", staticmethod(functools.partial(written.wait, 60)))  # however busy all is
    kernel()
    said = capsys.readouterr().err
    assert "0 of 1 cluster, 0 s (thread by thread: the block has one thread)" in said and said.endswith("\r")


@cuda.jit
def prints(a):
    t = cute.make_tensor(a)
    print(t[0])


@cuda.jit
def quick(a):
    cute.make_tensor(a)[cuda.threadIdx.x] = 1


@pytest.mark.parametrize(
    "kernel, options, why",
    [
        (quick, {}, None),
        (prints, {}, "prints calls print"),
        (quick, {"seed": 8}, "seed=8 orders single threads"),
        (quick, {"trace": cute.sim.Trace()}, "a trace or a timeline counts the steps of each"),
    ],
)
def test_the_simulator_says_why_threads_run_one_by_one(kernel, options, why, caplog, capsys):
    with caplog.at_level(logging.INFO, "numba_cute.sim"):
        cute.simulate(kernel, **options)[1, 64](X)
    said = [r.getMessage() for r in caplog.records]
    if why is None:
        assert said == []
    else:
        assert len(said) == 1 and said[0].startswith("kernel ") and why in said[0]
