# SPDX-License-Identifier: Apache-2.0
"""Numba's disk cache: an entry of a kernel of this library is one of this version of it, and of no other kernel's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

KERNELS = """
from numba import cuda
try:
    import numba_cute as cute
except ImportError:  # the process that has none
    cute = None

@cuda.jit
def plain(out):
    out[0] = 1

@cuda.jit
def of_cute(out):
    out[0] = cute.arch.lane_idx()

@cuda.jit
def by_argument(out, layout):
    out[0] = 1

@cuda.jit(device=True)
def helper():
    return cute.arch.lane_idx()

@cuda.jit
def by_call(out):
    out[0] = helper()

@cuda.jit
def pair(out):
    out[0] = 1

if cute:
    pair = cute.cluster_shape(2)(pair)
    four = cute.cluster_shape(4)(pair)
"""

KEYS = """
import json, sys
if sys.argv[1] == "without":
    sys.modules["numba_cute"] = None
import kernels
from numba.cuda import types
from numba.cuda.dispatcher import CUDACache
from numba.cuda.typing.typeof import typeof

class Codegen:
    def magic_tuple(self):
        return "sm_90",

array = types.Array(types.int32, 1, "C")

def key(name):
    args = (array, typeof(kernels.cute.make_layout(4))) if name == "by_argument" else (array,)
    return repr(CUDACache(getattr(kernels, name).py_func)._index_key(types.void(*args), Codegen()))

print(json.dumps({name: key(name) for name in sys.argv[2:]}))
"""
OWN = ("of_cute", "by_argument", "by_call", "pair", "four")


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """The cache's keys of each kernel, found by processes of their own with a copy of this library: at first, again,
    with a file of it changed, and without it."""
    folder = tmp_path_factory.mktemp("cached")
    library = folder / "numba_cute"
    shutil.copytree(ROOT / "numba_cute", library, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "kernels.py").write_text(KERNELS)
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "NUMBA_ENABLE_CUDASIM")}
    env["NUMBA_CACHE_DIR"] = str(folder / "cache")

    def find(way, *kernels):
        command = [sys.executable, "-c", KEYS, way, *kernels]
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    found = {"first": find("with", "plain", *OWN), "again": find("with", "plain", *OWN)}
    with (library / "runtime.py").open("a") as file:
        file.write("# another version\n")
    return {**found, "changed": find("with", "plain", *OWN), "without": find("without", "plain")}


@pytest.mark.parametrize("kernel", OWN)
def test_a_kernel_of_this_library_has_another_entry_for_each_version(keys, kernel):
    assert keys["first"][kernel] == keys["again"][kernel] != keys["changed"][kernel]


def test_a_plain_kernel_has_numbas_entry_with_the_import_and_without(keys):
    assert keys["first"]["plain"] == keys["changed"]["plain"] == keys["without"]["plain"]


def test_each_cluster_shape_has_an_entry_of_its_own(keys):
    assert keys["first"]["pair"] != keys["first"]["four"]
