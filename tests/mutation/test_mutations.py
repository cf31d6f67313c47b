# SPDX-License-Identifier: Apache-2.0
"""The project's right kernels, with one synchronising call at a time left out or changed: the simulator must say so.

A mutant is found if one of 8 orders raises an error, a warning, or gives wrong numbers. EQUIVALENT lists the mutants
that are as right as the kernel, each with the reason; whatever else survives counts against the simulator.
`python -m tests.mutation` runs all of it and writes benchmarks/results/mutation.json.
"""

import json

import pytest

from . import layouts
from .kernels import KERNELS
from .mutants import mutants
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
