# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin: what `--cute-sim-seeds` does, and that nobody who does not ask for it pays for it."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = "numba_cute_pytest"
ROOT = Path(__file__).resolve().parents[2]

LATE_SIGNAL = """
import numpy as np
import pytest
from numba import cuda
from numba_cute.sim import simulate
from numba_cute.isa import mbarrier

def late_signal(out):
    t = cuda.threadIdx.x
    if t == 0:
        mbarrier.mbarrier_init(1024, 1)
    cuda.syncthreads()
    if t == 0:
        cuda.atomic.add(out, 0, 1)
    if t == 32 and cuda.atomic.add(out, 0, 0) == 0:
        mbarrier.mbarrier_wait_parity(1024, 0)

@pytest.fixture(scope="module")
def launched():
    simulate(late_signal)[1, 64, 0, 4096](np.zeros(1, np.int32))
"""
IN_TEST = LATE_SIGNAL.replace('@pytest.fixture(scope="module")\ndef launched', "def test_it")
IN_FIXTURE = f"{LATE_SIGNAL}\ndef test_it(launched): pass"

RECORD = """
import sys

def pytest_unconfigure(config):
    assert config.pluginmanager.has_plugin("numba-cute-sim") or config.pluginmanager.has_plugin("numba_cute_pytest")
    costly = {"numba", "numba_cute", "numpy", "llvmlite", "cuda", "ml_dtypes", "greenlet"}
    print("IMPORTED", sorted({name.split(".")[0] for name in sys.modules} & costly))
"""

SIMULATED = """
import os
os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
"""


def loading():
    """The options that load the plugin where no installed package's entry point does."""
    from importlib.metadata import entry_points

    return [] if any(e.value == PLUGIN for e in entry_points(group="pytest11")) else ["-p", PLUGIN]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project of somebody else: `project(options, file=text, …)` runs pytest in it, as a process of its own."""
    for name in [n for n in os.environ if n.startswith(("PYTEST_", "NUMBA_ENABLE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])))

    def run(*options, **files):
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text)
        command = [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", *options]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)

    return run


@pytest.mark.parametrize(("seeds", "failed"), [(0, 0), (20, 1)])
@pytest.mark.parametrize("where", [pytest.param(IN_TEST, marks=pytest.mark.slow), IN_FIXTURE], ids=["test", "fixture"])
def test_the_option_runs_each_launch_in_further_orders(project, where, seeds, failed):
    done = project(*loading(), f"--cute-sim-seeds={seeds}", test_inner=where)
    assert done.returncode == failed, done.stdout
    assert ("to see this again: cute.simulate(kernel, seed=" in done.stdout) == bool(failed)


def test_a_run_without_the_option_imports_nothing_for_the_plugin(project):
    done = project(*loading(), conftest=RECORD, test_inner="def test_it(): pass")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "IMPORTED []" in done.stdout


def test_the_plugin_costs_less_than_a_tenth_of_a_second(project):
    def seconds(*options):  # of the processor: other processes do not count
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = project(*options, test_inner="def test_it(): pass")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.returncode == 0, done.stdout
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    pairs: list[tuple[float, float]] = []
    cost = 1.0
    while cost >= 0.1 and len(pairs) < 8:  # the least of some: a machine may be busy
        pairs.append((seconds(*loading()), seconds("-p", "no:numba-cute-sim")))
        with_it, without = map(min, zip(*pairs))
        cost = with_it - without
    assert cost < 0.1


def test_a_conftest_may_still_ask_for_numbas_simulator(project):
    inner = "from numba import cuda\n\ndef test_it(): assert type(cuda.jit(lambda: 0)).__name__ == 'FakeCUDAKernel'"
    done = project(*loading(), conftest=SIMULATED, test_inner=inner)
    assert done.returncode == 0, done.stdout


def test_the_package_declares_the_plugin():
    declared = (ROOT / "pyproject.toml").read_text()  # Python 3.10 has no tomllib
    assert f'[project.entry-points.pytest11]\nnumba-cute-sim = "{PLUGIN}"\n' in declared
    assert f'py-modules = ["{PLUGIN}"]' in declared
