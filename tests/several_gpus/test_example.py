# SPDX-License-Identifier: Apache-2.0
"""examples/several_gpus.py, with simulated ranks."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

FILE = Path(__file__).resolve().parents[2] / "examples" / "several_gpus.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("several_gpus_example", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_it_adds_up(example, capsys):
    example.simulate(2, n=40)
    assert "2 simulated ranks, 2 launches: all have the sums" in capsys.readouterr().out
