# SPDX-License-Identifier: Apache-2.0
"""Without numba-cuda and CUDA's packages, as on macOS, layouts and the simulator work; what compiles says why not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("cuda", "numba_cuda"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path[:] = [Missing(), *(f for f in sys.meta_path if "redirector" not in type(f).__module__.lower())]
import numpy as np
from numba import cuda
import numba_cute as cute

assert "numba_cuda" not in cuda.__file__

@cuda.jit
def double(x):
    x[cute.arch.thread_idx()[0]] *= 2

x = np.ones(32, np.float32)
cute.simulate(double)[1, 32](x)
assert (x == 2).all() and cute.size(cute.make_layout((4, 8))) == 32
try:
    cute.compile(double, (x,), arch="sm_90a")
except cute.CuteError as e:
    print(e)
"""


def test_layouts_and_the_simulator_work(tmp_path):
    file = tmp_path / "program.py"  # a file, whose source is found
    file.write_text(PROGRAM)
    done = subprocess.run([sys.executable, str(file)], env={**os.environ, "PYTHONPATH": str(ROOT)},
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "numba-cuda, which is not installed" in done.stdout and "cute.simulate" in done.stdout
