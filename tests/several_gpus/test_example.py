# SPDX-License-Identifier: Apache-2.0
"""The examples of several GPUs: with simulated ranks, and started by torchrun."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("several_gpus_example", EXAMPLES / "several_gpus.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_it_adds_up(example, capsys):
    example.simulate(2, n=40)
    assert "2 simulated ranks, 2 launches: all have the sums" in capsys.readouterr().out


SMALL = {
    "several_gpus": (),
    "tensor_parallel": ("--rows", "512", "--model", "512", "--hidden", "1024", "--heads", "8", "4"),
    "expert_parallel": ("--tokens", "256", "--model", "512", "--inner", "256", "--experts", "16", "--topk", "4"),
    "fully_sharded": ("--rows", "256", "--columns", "512", "--features", "1024"),
}


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_an_example_runs_on_all_gpus(name):
    torch = pytest.importorskip("torch", reason="ranks are torch.distributed's")
    ranks = torch.cuda.device_count()
    if ranks < 2:
        pytest.skip("needs two GPUs")
    torchrun = "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"
    subprocess.run(
        [sys.executable, "-m", *torchrun, str(EXAMPLES / f"{name}.py"), *SMALL[name]], check=True, timeout=120
    )
