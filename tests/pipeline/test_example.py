# SPDX-License-Identifier: Apache-2.0
"""The example of warp specialisation runs, and its timeline shows warps that overlap."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import numba_cute as cute

PATH = Path(__file__).resolve().parents[2] / "examples" / "warp_specialization.py"


def load():
    spec = importlib.util.spec_from_file_location("warp_specialization", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_example_prints_a_timeline_of_each_lesson():
    done = subprocess.run([sys.executable, str(PATH)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(": right") == 3
    rows = {line.split("|")[0].strip(): line.split("|")[1] for line in done.stdout.splitlines() if "|" in line}
    assert set(rows) == {"copies", "warp 0", "warp 1", "warp 2"}
    assert "=" in rows["copies"] and all({".", "#"} <= set(rows[f"warp {i}"]) for i in range(3))


@pytest.mark.parametrize("lesson", range(3))
def test_a_lesson_compiles_without_local_memory(lesson):
    _, kernel, _, arguments, out, _ = list(load().lessons(np.asarray))[lesson]
    assert cute.compile(kernel, (*arguments, out), notes="error").resources.local == 0
