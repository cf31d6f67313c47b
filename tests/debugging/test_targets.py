# SPDX-License-Identifier: Apache-2.0
"""Debugged twins assemble for every target, and what is refused is refused in words."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import CuteError, arch
from numba_cute.compiler.host import ptxas
from numba_cute.compiler.host.debugged import twin_ptx
from numba_cute.debugging import DifferenceError
from numba_cute.debugging.instrument import CHECKS, instrument
from numba_cute.debugging.pieces import RANGES, TABLE

from .cases import CASES
from .others import ARGUMENTS, everything


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a", "sm_120a"])
def test_a_kernel_with_all_that_is_watched_assembles(target):
    ptx = twin_ptx(everything, ARGUMENTS, target)
    made = instrument(ptx)
    cubin, _ = ptxas.assemble(made.ptx, target)
    assert cubin and made.gates and TABLE in made.ptx and RANGES in made.ptx
    lines = {s.line for s in made.sites if s.file.endswith("others.py")}
    first = everything.py_func.__code__.co_firstlineno
    assert {first + i for i in (4, 5, 6, 8, 9, 10, 11)} <= lines  # loads, barriers, the assertion, stores
    assert instrument(ptx, ()).ptx.count("globaltimer") == 0


@pytest.mark.parametrize("check", CHECKS)
def test_each_check_alone_assembles(check):
    made = instrument(twin_ptx(everything, ARGUMENTS, "sm_90a"), (check,)).ptx
    cubin, _ = ptxas.assemble(made, "sm_90a")
    assert cubin
    assert ("$Lcute_look" in made) is (check in ("bounds", "numbers"))  # an argument is looked up


def test_a_kernel_itself_has_nothing_of_its_twin():
    before = cute.compile(everything, ARGUMENTS, arch="sm_90a").ptx
    twin_ptx(everything, ARGUMENTS, "sm_90a")
    everything.recompile()
    after = cute.compile(everything, ARGUMENTS, arch="sm_90a").ptx
    assert "numba_cute.assert" not in before and before.count("\n") == after.count("\n")
    assert TABLE not in after and "numba_cute.assert" not in after


@pytest.mark.parametrize(
    "given, words",
    [
        ({"timeout": 0}, "timeout 0: give seconds"),
        ({"most": "long"}, "most 'long': give seconds"),
        ({"checks": "race"}, "checks 'race': there are waits, bounds"),
    ],
)
def test_what_is_refused_is_refused_in_words(given, words):
    with pytest.raises(CuteError, match="debug: " + words):
        cute.debug(everything, **given)
    with pytest.raises(CuteError, match="give grid, block"):
        cute.debug(everything)[1]
    with pytest.raises(CuteError, match="launch configuration"):
        cute.debug(everything)(1)
    with pytest.raises(CuteError, match="compare: rtol"):
        cute.compare(everything, rtol=-1)


def test_compare_names_the_first_element_and_the_line_of_its_store(monkeypatch):
    @cuda.jit
    def kernel(x, factor):
        i = cuda.threadIdx.x + 0 * arch.lane_idx()
        x[i] = i * factor

    comparison = cute.compare(kernel, rtol=0.01)

    class OnGpu:  # stands for `cute.debug`
        def __getitem__(self, configuration):
            return self.launch

        def launch(self, x, factor):
            x[:] = np.arange(64) * factor
            x[5] += 1

    comparison._debugged = OnGpu()
    x = np.zeros(64, np.float32)
    with pytest.raises(DifferenceError) as caught:
        comparison[1, 64](x, 2.0)
    line = kernel.py_func.__code__.co_firstlineno + 3
    for words in ("x[5] is 10.0 in the simulator and 11.0 on the GPU", "1 of 64", f"test_targets.py:{line} (kernel"):
        assert words in str(caught.value)
    OnGpu.launch = lambda self, x, factor: x.__setitem__(slice(None), np.arange(64) * factor * 1.001)
    comparison[1, 64](x, 2.0)


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.skipif(not cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("broken", [True, False], ids=["broken", "right"])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_cases_on_a_gpu(case, broken):
    from .__main__ import run

    said, ok = run(case.name, broken)
    assert ok, said
