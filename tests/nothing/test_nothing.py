# SPDX-License-Identifier: Apache-2.0
"""Every public name of `numba_cute.experimental` and `numba_cute.tilelang` has a test that fails if it does nothing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .targets import public, targets

ROOT = Path(__file__).resolve().parents[2]
RECORDED = json.loads(Path(__file__).with_name("tests.json").read_text())
S0 = json.loads((ROOT / "tests" / "compatibility" / "seeds.json").read_text())["S0 cute.experimental"]["names"]


def test_every_name_has_its_test():
    """`python -m tests.nothing --record` finds one for a new name, or says that there is none."""
    assert list(RECORDED) == list(targets())
    listed = {name.partition(".")[2] for name, _, _ in public() if name.startswith("experimental.")}
    assert set(S0) <= listed
    judged = {name.split(".")[1] for name in RECORDED if name.startswith("experimental.")}
    assert set(S0) <= judged
    for test in RECORDED.values():
        file, _, function = test.partition("::")
        assert re.search(rf"^def {function.partition('[')[0]}\(", (ROOT / file).read_text(), re.MULTILINE), test


@pytest.mark.slow
def test_it_fails_when_the_name_does_nothing():
    command = [sys.executable, "-m", "tests.nothing"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3000)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
