# SPDX-License-Identifier: Apache-2.0
"""NUMBA_ENABLE_CUDASIM=1: Numba's simulator stays Numba's own; this library's runs beside it, and nothing compiles."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

KERNELS = """
import sys
import numpy as np
from numba import cuda
import numba_cute as cute

@cuda.jit(device=True)
def twice(x):
    return 2 * x

@cuda.jit
def kernel(out):
    tidx, _, _ = cute.arch.thread_idx()
    shared = cuda.shared.array(64, np.int32)
    shared[63 - tidx] = twice(tidx)
    cuda.syncthreads()
    out[cuda.grid(1)] = shared[tidx] + cute.size(cute.make_layout((4, 8)))

@cuda.jit
def plain(out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = twice(i)

@cute.cluster_shape(2)
@cuda.jit
def ranks(out):
    out[cuda.blockIdx.x] = cute.arch.block_idx_in_cluster()
"""
EXPECTED = [2 * (63 - i) + 32 for i in range(3)]

SNAPSHOT = """
import sys
import numba.cuda

def shown(value):
    # the object, and what a container holds
    if type(value) is dict:
        return id(value), [(id(k), id(v)) for k, v in value.items()]
    if type(value) in (list, set, tuple):
        return id(value), list(map(id, value))
    return id(value)

def of_numba(name):
    return name.split(".")[0] in ("numba", "llvmlite")

def snapshot():
    spaces = {}
    for module in list(sys.modules.values()):
        if of_numba(getattr(module, "__name__", "")):
            spaces[module.__name__] = dict(vars(module))
            for value in vars(module).values():
                if isinstance(value, type) and of_numba(value.__module__):
                    spaces[f"{value.__module__}.{value.__qualname__}"] = dict(vars(value))
    return {f"{space}.{name}": shown(v) for space, names in spaces.items() for name, v in names.items()}, spaces

before, keep = snapshot()
import numba_cute
after, _ = snapshot()
print(len(before) > 10_000)
print(sorted(k for k in before.keys() | after.keys() if before.get(k) != after.get(k)))
"""


def python(program):
    env = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_import_changes_nothing_of_numba():
    assert python(SNAPSHOT) == ["True", "[]"]


@pytest.mark.parametrize("array", ["np.zeros(128, np.int32)", "cuda.to_device(np.zeros(128, np.int32))"])
def test_kernels_run_in_this_simulator_where_it_is_asked(array):
    program = f"{KERNELS}\nout = {array}\ncute.simulate(kernel)[2, 64](out)\nprint(out[:3].tolist())"
    assert python(program) == [str(EXPECTED)]


def test_what_numba_calls_a_device_array_is_checked_like_an_array():
    program = f"""{KERNELS}
@cuda.jit
def race(out):
    out[0] = cuda.threadIdx.x

try:
    cute.simulate(race)[1, 64](cuda.to_device(np.zeros(1, np.int32)))
except cute.sim.RaceError as e:
    print("found", "out" in str(e))
"""
    assert python(program) == ["found True"]


def test_plain_launches_run_in_numbas_simulator():
    program = f"""{KERNELS}
out = np.zeros(5, np.int32)
plain[2, 3](out)
print(type(plain).__module__, out.tolist())
try:
    kernel[2, 64](out)
except cute.CuteError as e:
    print("only inside a kernel" in str(e), "cute.simulate" in str(e))
"""
    assert python(program) == ["numba.cuda.simulator.kernel [0, 2, 4, 6, 8]", "True True"]


def test_a_kernel_has_its_cluster_shape():
    program = f"""{KERNELS}
def run(kernel):
    out = np.full(4, -1, np.int32)
    cute.simulate(kernel)[4, 1](out)
    print(out.tolist())

run(ranks)
run(cute.cluster_shape(4)(ranks))
run(ranks)
"""
    assert python(program) == ["[0, 1, 0, 1]", "[0, 1, 2, 3]", "[0, 1, 0, 1]"]


@pytest.mark.parametrize("name", ["compile", "inspect", "inspect_layouts", "inspect_ptx", "ir.from_kernel", "launch"])
def test_what_needs_the_compiler_is_refused(name):
    program = f"""{KERNELS}
try:
    cute.{name}(plain, (np.zeros(1),))
except cute.CuteError as e:
    print(e)
"""
    (line,) = python(program)
    assert line.startswith(f"cute.{name.partition('.')[0]} needs the compiler, which NUMBA_ENABLE_CUDASIM=1 turns off")
