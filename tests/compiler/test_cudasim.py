# SPDX-License-Identifier: Apache-2.0
"""NUMBA_ENABLE_CUDASIM=1: Numba's simulator stays Numba's own; this library's runs beside it, and nothing compiles."""

from __future__ import annotations

import json
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


ARRAYS = {"numpy": "np.zeros(128, np.int32)", "numba": "cuda.to_device(np.zeros(128, np.int32))"}
REFUSED = ("compile", "inspect", "inspect_layouts", "inspect_ptx", "ir.from_kernel", "launch")
PROGRAMS = {
    **{n: f"out = {a}\ncute.simulate(kernel)[2, 64](out)\nprint(out[:3].tolist())" for n, a in ARRAYS.items()},
    "race": """
@cuda.jit
def race(out):
    out[0] = cuda.threadIdx.x

try:
    cute.simulate(race)[1, 64](cuda.to_device(np.zeros(1, np.int32)))
except cute.sim.RaceError as e:
    print("found", "out" in str(e))
""",
    "plain": """
out = np.zeros(5, np.int32)
plain[2, 3](out)
print(type(plain).__module__, out.tolist())
try:
    kernel[2, 64](out)
except cute.CuteError as e:
    print("only inside a kernel" in str(e), "cute.simulate" in str(e))
""",
    "cluster": """
def run(kernel):
    out = np.full(4, -1, np.int32)
    cute.simulate(kernel)[4, 1](out)
    print(out.tolist())

run(ranks)
run(cute.cluster_shape(4)(ranks))
run(ranks)
""",
    **{name: f"""
try:
    cute.{name}(plain, (np.zeros(1),))
except cute.CuteError as e:
    print(e)
""" for name in REFUSED},
}  # fmt: skip
TOGETHER = """
import contextlib, io, json, sys

head, programs = json.load(sys.stdin)
for name, program in programs.items():
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        exec(head + program, {"__name__": "__main__"})
    programs[name] = told.getvalue().splitlines()
print(json.dumps(programs))
"""


def python(program, given=None):
    """What a program prints in Numba's simulator, given this as text."""
    env = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=120, input=given)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def printed():
    """What the programs print, each with kernels of its own, in one process: starting one takes longer than all."""
    (line,) = python(TOGETHER, json.dumps((KERNELS, PROGRAMS)))
    return json.loads(line)


def test_the_import_changes_nothing_of_numba():
    assert python(SNAPSHOT) == ["True", "[]"]


@pytest.mark.parametrize("array", ARRAYS)
def test_kernels_run_in_this_simulator_where_it_is_asked(printed, array):
    assert printed[array] == [str(EXPECTED)]


def test_what_numba_calls_a_device_array_is_checked_like_an_array(printed):
    assert printed["race"] == ["found True"]


def test_plain_launches_run_in_numbas_simulator(printed):
    assert printed["plain"] == ["numba.cuda.simulator.kernel [0, 2, 4, 6, 8]", "True True"]


def test_a_kernel_has_its_cluster_shape(printed):
    assert printed["cluster"] == ["[0, 1, 0, 1]", "[0, 1, 2, 3]", "[0, 1, 0, 1]"]


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_the_compiler_is_refused(printed, name):
    (line,) = printed[name]
    assert line.startswith(f"cute.{name.partition('.')[0]} needs the compiler, which NUMBA_ENABLE_CUDASIM=1 turns off")
