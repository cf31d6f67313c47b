# SPDX-License-Identifier: Apache-2.0
"""A first call of an entry, where an earlier process has compiled its kernels: it compiles nothing, and loads nothing
that takes longer than it does. On a GPU that is none, in two processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from numba_cute import kernels

pytest.importorskip("torch")

from .first_calls import CALLS, WITHOUT  # noqa: E402  (it needs torch)

ROOT = Path(__file__).resolve().parents[2]
SLOW = ("sympy", "torch._dynamo", "torch._inductor", "torch.fx.experimental.symbolic_shapes", "triton")
"""Modules that take a second to load, and are nothing to a launch."""


def calls(folder: Path, seed: int, names: tuple[str, ...]) -> dict[str, dict]:
    """What a process of its own tells of first calls, by name."""
    environment = {
        **os.environ,
        "NUMBA_CUTE_CACHE": "1",
        "NUMBA_CUTE_CACHE_DIR": str(folder),
        "CUDA_VISIBLE_DEVICES": "",
    }
    environment |= {"PYTHONHASHSEED": str(seed), "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    command = [sys.executable, "-W", "ignore", "-m", "tests.kernels.first_calls", *names]
    done = subprocess.run(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return {told["name"]: told for told in map(json.loads, done.stdout.splitlines())}


def test_each_entry_is_called():
    named = {name.partition(",")[0] for name in CALLS}
    assert named | WITHOUT == set(kernels.__all__) and not named & WITHOUT


@pytest.mark.slow
def test_a_second_process_compiles_nothing(tmp_path):
    """Whatever it called, and compiled, before; and hashes are others."""
    first, second = calls(tmp_path, 1, ()), calls(tmp_path, 2, ())
    assert first.keys() == second.keys() == CALLS.keys()
    assert sum(told["compiled"] > 0 for told in first.values()) > len(CALLS) // 2
    assert [name for name, told in second.items() if told["compiled"]] == []
    assert {m for told in second.values() for m in told["loaded"]}.isdisjoint(SLOW)
    third = calls(tmp_path, 3, tuple(CALLS)[::-1])
    assert [name for name, told in third.items() if told["compiled"]] == []
