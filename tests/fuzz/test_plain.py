# SPDX-License-Identifier: Apache-2.0
"""Plain kernels are Numba's: the same PTX to the byte and the same errors, with this library imported and without."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from .mistakes import MISTAKES

ROOT = Path(__file__).resolve().parents[2]
COUNT = int(os.environ.get("CUTE_FUZZ_PLAIN", "8"))


def made(*options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.fuzz.ptx", "0", str(COUNT), *options]
    env = {**os.environ, "PYTHONHASHSEED": "0"}  # some of Numba's errors show sets
    return subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def lines(process: subprocess.Popen[str]) -> list[str]:
    out, err = process.communicate(timeout=900)
    assert process.returncode == 0, err[-2000:]
    return out.splitlines()


def test_plain_kernels_have_the_same_ptx_and_errors_with_the_import_and_without():
    both = made(), made("--import")
    without, imported = map(lines, both)
    assert len(without) == COUNT + len(MISTAKES)
    assert [(a, b) for a, b in zip(without, imported) if a != b] == []
    assert sum(": PTX" in line for line in without) >= COUNT  # the random ones all compile
    assert sum(": PTX" not in line for line in without) >= 20  # and mistakes are mistakes
