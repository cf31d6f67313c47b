# SPDX-License-Identifier: Apache-2.0
"""Files that are written for the CuTe DSL run as they stand, with `import cutlass` answered by this library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).with_name("written_for_cutlass.py")


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "numba_cute", "run", *words], capture_output=True, text=True, timeout=300, check=False
    )


def test_a_file_runs_in_the_simulator_and_is_compiled_and_finds_its_arguments():
    done = run("--simulate", "--arch", "sm_90a", "--compile", str(FILE), "--n", "33")
    assert (done.returncode, done.stdout) == (0, "PASS 33\n"), done.stderr
    assert "registers, 0 bytes spilled" in done.stderr


def test_a_file_that_is_not_there_is_said():
    done = run("no_such_file.py")
    assert done.returncode == 1
    assert "run: 'no_such_file.py' is no file" in done.stderr


def test_what_a_file_raises_is_shown_as_python_shows_it(tmp_path):
    file = tmp_path / "raises.py"
    file.write_text("import cutlass.cute as cute\nassert cute.size((2, 3)) == 7\n")
    done = run("--simulate", str(file))
    assert done.returncode == 1
    assert "assert cute.size((2, 3)) == 7" in done.stderr and "AssertionError" in done.stderr


@pytest.mark.parametrize("word, said", [("--arch", "sm_91"), ("--checks", "no_such_check")])
def test_wrong_options_are_refused(word, said):
    done = run("--simulate", word, said, str(FILE))
    assert done.returncode == 1
    assert said in done.stderr
