# SPDX-License-Identifier: Apache-2.0
"""Numba's own simulator switch runs kernels in ours, with no compiler and no CUDA libraries."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import numpy as np
from numba import cuda
import numba_cute as cute

@cuda.jit(device=True)
def twice(x):
    return 2 * x

@cuda.jit(launch_bounds=(64, 1))
def kernel(out):
    tidx, _, _ = cute.arch.thread_idx()
    shared = cuda.shared.array(64, np.int32)
    shared[63 - tidx] = twice(tidx)
    cuda.syncthreads()
    out[cuda.grid(1)] = shared[tidx] + cute.size(cute.make_layout((4, 8)))

out = cuda.to_device(np.zeros(128, np.int32))
kernel[2, 64](out)
print(out.copy_to_host()[:3].tolist())
try:
    cute.compile(kernel, (np.zeros(1),))
except cute.CuteError as e:
    print("refused:", e)
"""


def test_kernels_run_in_this_simulator():
    env = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == str([2 * (63 - i) + 32 for i in range(3)])
    assert second.startswith("refused: cute.compile needs the compiler")
