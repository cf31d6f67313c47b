# SPDX-License-Identifier: Apache-2.0
"""What type checkers make of a user's program: nothing of a right one, and its mistakes of a wrong one."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import numba_cute
from tests.typing import script

ROOT = Path(__file__).resolve().parents[2]
HEAD = """
import numba_cute as cute
from numba_cute import *
from numba_cute import pipeline
from tests.typing.script import Running
"""
MISTAKES = {
    'Running(0, "no", 3)': "a number is wanted for a field of type Float32",
    "cute.make_rmem_tensor((4,), 4)": "an element type is wanted",
    "pipeline.CooperativeGroup(3)": "an Agent is wanted",
    "cute.CuteErorr": "there is no such name",
    "make_layout((4, 8)).shapes": "a star import knows types too",
    "Running(0, 0.0, 3).add('x')": "a method's parameters are checked",
}


def mypy(*files: Path | str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "mypy", "--strict", *map(str, files)],
                          cwd=ROOT, capture_output=True, text=True, check=False)  # fmt: skip


def test_a_program_passes_mypy_strict_and_its_mistakes_do_not(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text(HEAD + "\n".join(MISTAKES))
    done = mypy(script.__file__, wrong)
    assert "script.py" not in done.stdout, done.stdout
    first = HEAD.count("\n") + 1
    unseen = {line for i, line in enumerate(MISTAKES, first) if f"wrong.py:{i}: error" not in done.stdout}
    assert not unseen, done.stdout


def test_a_program_passes_pyright():
    if not (pyright := shutil.which("pyright")):
        pytest.skip("pyright is not installed")
    done = subprocess.run([pyright, "--pythonpath", sys.executable, "--outputjson", script.__file__],
                          cwd=ROOT, capture_output=True, text=True, check=False)  # fmt: skip
    assert json.loads(done.stdout)["generalDiagnostics"] == []


def test_the_program_that_checkers_pass_runs_and_compiles():
    assert "mbarrier.init" in script.main()


def test_the_package_says_that_it_has_types():
    assert (Path(numba_cute.__file__).parent / "py.typed").exists()
