# SPDX-License-Identifier: Apache-2.0
"""Entries of several GPUs, on one that is pretended: a call of a kind that is known plans nothing, and what does not
fit is refused in words."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_calls_launch_once_and_plan_nothing_and_what_does_not_fit_is_refused():
    command = [sys.executable, "-W", "ignore", "-m", "tests.kernels.distributed.entries"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, timeout=500)
    found = json.loads(done.stdout.splitlines()[-1])
    launched = {"experts": 30, "experts without a product": 30}
    assert found["planned"], found
    for name, counts in found["planned"].items():
        assert counts == [0, launched.get(name, 10)], found["planned"]
    assert found["planned after forget"] > 0 and not found["held after forget"]
    assert found["shapes"] == {
        "experts": [50, 256], "experts without a product": [50, 256],
        "ring": [2, 128, 4, 64], "ring, causal": [2, 4, 128], "ring, zigzag": [2, 128, 4, 64],
        "gather": [512, 384], "gather, pairs": [512, 192], "gather, a matrix": [512, 384],
        "gather to float32": [512, 384], "scatter": [128, 384], "one shot": [256, 384], "two shots": [256, 384],
    }  # fmt: skip
    assert found["zigzag"] == [[[2, 3, 4, 5], [10, 11, 12, 13]]] * 2
    assert found["zigzag, rows"] == [4, 5, 6, 7, 8, 9, 10, 11], "of the second of two ranks"
    for rule, said in found["refused"].items():
        assert re.search(rule, said), (rule, said)
