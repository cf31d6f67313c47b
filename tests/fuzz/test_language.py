# SPDX-License-Identifier: Apache-2.0
"""Programs of the kernel's language mean in both engines what they mean in Python, or are refused by both, in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from .choices import Seeded
from .language import engines, programs, shrink
from .language.writer import Writer
from .pool import run_all

SOURCES = dict(programs.every(("kernel", "branch")))
DIRECTED = [pytest.param(source, id=label) for label, source in SOURCES.items()]
QUICK = [x for x in (Path(__file__).parent / "language" / "quick.txt").read_text().splitlines() if x[0] != "#"]
"""Those that reach most of the front end, and that alone notice some fault (`python -m tests.mutation.front_end`)."""


@pytest.mark.parametrize("source", [pytest.param(SOURCES[label], id=label) for label in QUICK])
def test_a_directed_program_means_what_python_means(source):
    found = engines.run(source)
    assert found.kind in engines.GOOD, (found, source)


@pytest.mark.slow
@pytest.mark.parametrize("source", DIRECTED)
def test_each_directed_program_means_what_python_means(source):
    found = engines.run(source)
    assert found.kind in engines.GOOD, (found, source)


SEEDS = [pytest.param(seed, marks=[pytest.mark.slow] if seed >= 8 else []) for seed in range(40)]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_program_computes_nothing_else_than_python(seed):
    found = engines.run(Writer(Seeded(seed)).source())
    assert not found.kind.startswith("wrong"), (found, Writer(Seeded(seed)).source())


def test_python_as_the_reference_types_numbers_as_numba_does():
    source = programs.source(
        "", "o[tid, 0] = -cute.Uint8(n)\nw[tid, 0] = cute.Uint32(n) + a[tid]\no[tid, 1] = a[tid] // 2"
    )
    found = engines.run(source)
    assert found.kind == "same", found


@pytest.mark.slow
def test_a_program_that_does_not_end_is_told_and_takes_no_other_with_it():
    source = programs.source("", "while True:\n    pass")
    outcomes = {
        f["label"]: f["kind"]
        for f in run_all([("ends not", source), ("ends", programs.source("", "o[tid, 0] = n"))], 2)
    }
    assert outcomes == {"ends not": "hung", "ends": "same"}


def test_shorter_programs_keep_what_can_be_read():
    texts = list(shrink._shorter("def f(x):\n    if x:\n        y = 1\n    return x\n"))
    assert "def f(x):\n    y = 1\n    return x" in texts
    assert "def f(x):\n    return x" in texts
