# SPDX-License-Identifier: Apache-2.0
"""Mistakes that users make: the simulator and the compiler say the same of each, with the user's line."""

import collections

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute

from . import (  # noqa: F401
    barriers,
    copies,
    language,
    launches,
    layouts,
    matrix,
    numbers,
    shared,
    static,
    tensors,
    tma,
)
from .form import MISTAKES, Mistake, agree, mistake


@pytest.mark.parametrize("m", [pytest.param(m, id=m.name) for m in MISTAKES])
def test_both_engines_say_the_same_of_the_users_line(m: Mistake):
    """And what the compiler refuses the simulator refuses in its words, before it runs."""
    simulated, compiled = m.simulated(), m.compiled()
    if m.only != "simulator" or not (compiled is None or m.other):  # of the launch, and of the whole PTX
        assert str(m.judged()) == str(compiled)
    file, line, source = m.line()
    alone = {"simulator": simulated, "compiler": compiled}.get(m.only, compiled)
    assert isinstance(alone, cute.CuteError), f"{m.name}: {alone!r}"
    assert m.says in str(alone)
    assert f"{file}:{line}\n    {source}" in str(alone) or _report(alone, file, line, source)
    if not m.only:
        if simulated is None or not agree(str(simulated), str(compiled)):
            simulated = m.judged()
        assert isinstance(simulated, cute.CuteError), f"{m.name}: {simulated!r}"
        assert agree(str(simulated), str(compiled)), f"{simulated}\n---\n{compiled}"
        return
    other = simulated if m.only == "compiler" else compiled
    assert other is None if not m.other else m.other in str(other)


def _report(e: Exception, file: str, line: int, source: str) -> bool:
    """Whether one of the simulator's reports names the line, from the working directory if it lies there."""
    short = file.rpartition("tests/")[2]
    return isinstance(e, cute.sim.SimError) and f"{short}:{line} (" in str(e) and f"`{source}" in str(e)


def test_the_table_is_large_and_the_engines_agree_on_most_of_it():
    assert len(MISTAKES) >= 170
    assert len({m.name for m in MISTAKES}) == len(MISTAKES)
    alone = [m for m in MISTAKES if m.only]
    known = [m for m in alone if m.only == "compiler" or m.other]  # what is known before a run, and one says alone
    assert [m.name for m in alone if not m.reason] == []
    assert [m.name for m in MISTAKES if not m.says] == []
    assert len(known) <= 0.05 * len(MISTAKES), sorted(m.name for m in known)
    assert len(alone) <= 0.12 * len(MISTAKES), collections.Counter(m.only for m in alone)


def test_texts_that_differ_do_not_agree():
    assert agree("shape=(4,3): no", "shape=(4,?): no") and agree("a 8 b", "a ?{div=4} b") and agree("1.5!", "?float64!")
    assert not agree("shape=(4,3): no", "shape=(5,?): no")
    assert not agree("shape=(4,?): no", "shape=(4,3): no")
    assert not agree("a, b: no", "?: no")


def test_the_simulator_compiles_besides_where_it_is_asked_to():
    x = np.zeros(4, np.float32)
    cute.simulate(right)[1, 1](x, 1)
    with pytest.raises(cute.CuteError) as compiled:
        cute.compile(unified_of_ours, (x, 1))
    cute.simulate(unified_of_ours.py_func)[1, 1](x, 1)
    for options in ({}, {"compile": True}, {"compile": "sm_100a"}):
        with pytest.raises(cute.CuteError) as simulated:
            cute.simulate(unified_of_ours, **options)[1, 1](x, 1)
        assert str(simulated.value) == str(compiled.value)
    with pytest.raises(cute.CuteError):
        cute.simulate(unified_of_ours, compile=True).explore()[1, 1](x, 1)
    x[:] = 0
    cute.simulate(right, compile=True)[1, 1](x, 1)
    assert x[0] == 4


@cuda.jit
def right(x, n):
    x[0] = cute.size(cute.make_layout(4))


@cuda.jit
def unified_of_ours(x, n):
    y = cute.size(cute.make_layout(4))
    if n > 3:
        y = (1, 2)
    x[0] = y


@pytest.mark.parametrize("compile", [1, "hopper", None])
def test_what_is_no_target_to_compile_for_is_refused(compile):
    with pytest.raises(cute.CuteError, match=r"compile 1|compile None|not a known target"):
        cute.simulate(right, compile=compile)


@cute.jit
def host(x):
    unified_kernel(x, 1).launch(grid=1, block=1)


@cute.kernel
def unified_kernel(x, n):
    y = cute.size(cute.make_layout(4))
    if n > 3:
        y = (1, 2)
    x[0] = y


def test_what_a_host_function_launches_is_compiled_too():
    x = np.zeros(4, np.float32)
    for options in ({}, {"compile": True}):
        with pytest.raises(cute.CuteError, match="one type"):
            cute.simulate(host, **options)(x)


def test_of_another_target_the_compiler_says_what_it_lacks():
    m = next(m for m in MISTAKES if m.kernel.__name__ == "wgmma_on_ampere")
    x = np.zeros(64, np.float32)
    cute.simulate(cuda.jit(m.kernel))[1, 128](x)
    with pytest.raises(cute.CuteError, match="needs sm_90a, and the target is sm_80"):
        cute.simulate(cuda.jit(m.kernel), compile="sm_80")[1, 128](x)


def test_the_table_takes_no_two_lines():
    @mistake("")
    def two(x):
        x[0] = 1  # wrong
        x[1] = 2  # wrong

    made = MISTAKES.pop()
    with pytest.raises(ValueError, match="unpack"):
        made.line()
