# SPDX-License-Identifier: Apache-2.0
"""The project's right kernels, with one synchronising call at a time left out or changed: the simulator must say so.

A mutant is found if one of 8 orders raises an error, a warning, or gives wrong numbers. EQUIVALENT lists the mutants
that are as right as the kernel, each with the reason; whatever else survives counts against the simulator.
`python -m tests.mutation` runs all of it and writes benchmarks/results/mutation.json.
"""

import ast
import importlib
import inspect
import json
import pkgutil

import pytest

from numba_cute import kernels

from . import layouts
from .kernels import KERNELS
from .mutants import functions_of, mutants
from .run import EQUIVALENT, found, matches, silent, wrong_mutants

QUICK = {"named barriers", "TMA store", "PipelineOrder", "multicast", "tensor memory"}


def some(names):
    return [pytest.param(k, id=k.name, marks=() if k.name in names else pytest.mark.slow) for k in KERNELS]


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_wrong_mutants_are_found(kernel):
    assert [str(m) for at, m in wrong_mutants(kernel) if not found(kernel, m, at)] == []


@pytest.mark.parametrize("kernel", some(QUICK))
def test_a_few_mutants_are_found(kernel):
    """Every fourth, so that the default run sees the suite work."""
    assert [str(m) for at, m in wrong_mutants(kernel)[::4] if not found(kernel, m, at)] == []


def test_every_equivalent_mutant_still_exists():
    texts = {k.name: [str(m) for m in mutants(k.source, set(k.functions))] for k in KERNELS}
    stale = [e for e in EQUIVALENT if not any(matches(e[1], text) for text in texts[e[0]])]
    assert not stale


UNDER_OTHER_NAMES = {"numba_cute.kernels.gemm.dense": "Hopper GEMM"}
"""Modules that are mutated within another one's source."""
WITHOUT = {
    "numba_cute.kernels.gemm.umma_scaled": "operands of 4 bits, and their factors' chunks, are made by torch alone"
}


def test_whatever_synchronises_is_mutated_and_whatever_is_named_exists():
    """A kernel that is written later, and a function that moves to another file, are missed here."""
    listed = {}
    for k in KERNELS:
        listed.setdefault(k.module.__name__, set()).update(k.functions)
        listed.setdefault(k.name, set()).update(k.functions)
    found = [importlib.import_module(m.name) for m in pkgutil.walk_packages(kernels.__path__, "numba_cute.kernels.")]
    for module in found:
        other, source = UNDER_OTHER_NAMES.get(module.__name__), inspect.getsource(module)
        there, named = (
            {name for name, _ in functions_of(ast.parse(source))},
            listed.get(other or module.__name__, set()),
        )
        assert other or named <= there, module.__name__
        of = [{m.at: str(m) for m in mutants(source, names)} for names in (there, named)]
        missed = [text for at, text in of[0].items() if at not in of[1]]
        assert bool(missed) == (module.__name__ in WITHOUT), (module.__name__, missed)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
@pytest.mark.parametrize("tens", range(10))
def test_right_kernels_are_silent_over_100_seeds(kernel, tens):
    assert "".join(silent(kernel, seed) for seed in range(10 * tens, 10 * tens + 10)) == ""


LAID_OUT = [(k, at, m) for k in layouts.KERNELS for at, m in enumerate(layouts.mutants(k))]
OF_A_RUN = {("Ampere GEMM", "a_layout in another order"), ("Ampere GEMM", "b_layout as halves"),
            ("Blackwell GEMM", "c_layout as words")}  # fmt: skip


@pytest.mark.parametrize(
    "kernel, at, mutant",
    [
        pytest.param(
            *case, id=f"{case[0].name}, {case[2]}",
            marks=() if (case[0].name, case[2].change) in OF_A_RUN else pytest.mark.slow,
        )
        for case in LAID_OUT
    ],
)  # fmt: skip
def test_memory_laid_out_otherwise_is_refused_reported_or_right(kernel, at, mutant):
    """Nobody needs to compare numbers."""
    assert not layouts.judged(kernel, mutant, at).startswith("wrong")


def test_all_that_was_judged_of_layouts_was_refused_reported_or_right():
    judged = json.loads(layouts.RESULTS.read_text())
    texts = {k.name: {str(m) for m in layouts.mutants(k)} for k in layouts.KERNELS}
    assert [name for name, of in judged.items() if of["wrong"]] == []
    assert sum(len(of["said"].keys() & texts[name]) for name, of in judged.items()) >= 100
