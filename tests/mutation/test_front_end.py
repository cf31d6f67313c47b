# SPDX-License-Identifier: Apache-2.0
"""Faults are put into the functions of the front end, and are noticed (`python -m tests.mutation.front_end`)."""

import json
import math
import subprocess
import sys

import pytest

from ..fuzz.language import programs
from . import front_end
from .faults import chosen, faults

LOOP = "o[tid, 0] = 0\nfor i in cute.range_constexpr(4):\n    o[tid, 0] += i * n\n"
OBJECT = "x = SimpleNamespace(k=n)\nif isinstance(x, SimpleNamespace):\n    o[tid, 0] = x.k\n"

KNOWN = [
    ("numba_cute/compiler/bridge/classes.py",
     "_isinstance: returns None for return bool(others) and issubclass(class_of(x), others)", OBJECT, "wrong"),
    ("numba_cute/compiler/passes/unroll.py", "_renamed: returns None for return new", LOOP, "heard"),
    ("numba_cute/compiler/bridge/objects.py", None, OBJECT, "survives"),
]  # fmt: skip


def verdict(path, change, body):
    """Judge one fault by one program, in a process of its own; change: None is no fault."""
    front_end.warm()

    def judged(fault):
        if change:
            front_end.put(fault)
        return front_end.judge(["it"], {"it": "same"}, {"it": programs.source("", body)})

    fault = next(f for f in faults(front_end.ROOT, path) if change is None or str(f).endswith(f"py: {change}"))
    ((_, found),) = front_end.each([fault], judged, 1, 60, math.inf)
    return found["verdict"]


@pytest.fixture(scope="module")
def verdicts():
    """Those of KNOWN, in a process that has run nothing else."""
    code = f"import json; from {__name__} import KNOWN, verdict; print(json.dumps([verdict(*k[:3]) for k in KNOWN]))"
    done = subprocess.run([sys.executable, "-c", code], cwd=front_end.ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("nth", range(len(KNOWN)), ids=["a number", "an error", "no fault"])
def test_a_fault_is_judged_by_what_comes_of_a_program(verdicts, nth):
    assert verdicts[nth] == KNOWN[nth][3]


def test_the_same_faults_are_chosen_each_time_and_are_python():
    path = "numba_cute/typed/rotation.py"
    every, again = (faults(front_end.ROOT, path) for _ in range(2))
    assert chosen(every, 20) == chosen(again, 20)
    assert len({str(f) for f in every}) == len(every)
    original = (front_end.ROOT / path).read_text()
    for fault in chosen(every, 6):
        compile(fault.tree(front_end.ROOT), path, "exec")
    assert (front_end.ROOT / path).read_text() == original


def test_the_files_that_faults_are_judged_by_exist():
    assert [test for test in front_end.TESTS if not (front_end.ROOT / test).is_file()] == []
