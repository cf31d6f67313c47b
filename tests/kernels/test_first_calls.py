# SPDX-License-Identifier: Apache-2.0
"""A first call of an entry, where an earlier process has compiled its kernels: it compiles nothing, infers no
types, and loads nothing that it does not need. Counted, and not timed; on a GPU that is none."""

from __future__ import annotations

import ast
import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from numba_cute import kernels
from numba_cute.isa.form.targets import answering_for
from numba_cute.kernels.conv import forward, gradients, transposed
from numba_cute.kernels.gemm import entry, launches
from numba_cute.seam.marks.launches import launching

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


OTHERS = (
    "umma",
    "warps",
    "tuned",
    "gradients",
    "backward",
    "outer",
    "picked",
    "microscaled",
    "transposed",
    "derivative",
    "windows",
)
"""In names of modules: those of GPUs that are not here, of gradients that nobody asked for, and of options."""
MOST_MODULES = 77
"""Of this package, that all entries load together."""


@functools.cache
def imports_of(module: str) -> set[str]:
    """The modules of this package that a module imports when it is loaded, and not when a function of it is called."""
    file = ROOT / Path(*module.split("."))
    file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
    package, found = module if file.stem == "__init__" else module.rpartition(".")[0], {module}
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            whole = ".".join(package.split(".")[: len(package.split(".")) + 1 - node.level]) if node.level else ""
            whole = ".".join(filter(None, (whole, node.module)))
            names = [f"{whole}.{n.name}" for n in node.names]
            found |= {m for m in (whole, *names) if m.startswith("numba_cute.") and is_module(m)}
    return found


def is_module(name: str) -> bool:
    place = ROOT / Path(*name.split("."))
    return place.is_dir() or place.with_suffix(".py").exists()


def test_looking_entries_up_loads_what_a_call_needs_alone():
    """And nothing that measures or simulates."""
    of = {n: m for n, m in kernels._FOUND_IN.items() if n not in ("attention_backward", "chunked_scales")}
    todo, loaded = {f"numba_cute.kernels.{m}" for m in of.values()}, set()
    while todo:
        module = todo.pop()
        loaded.add(module)
        todo |= {m for m in imports_of(module) if m.startswith("numba_cute.kernels")} - loaded
    others = {m for module in loaded for m in imports_of(module)} - loaded
    assert 40 < len(loaded) <= MOST_MODULES
    assert [m for m in loaded if any(part in m.rpartition(".")[2] for part in OTHERS)] == []
    assert [m for m in others if m.startswith(("numba_cute.testing", "numba_cute.sim", "numba_cute.ir"))] == []


def test_each_entry_is_called():
    named = {name.partition(",")[0] for name in CALLS}
    assert named | WITHOUT == set(kernels.__all__) and not named & WITHOUT


@pytest.mark.parametrize("name", ["matmul", "conv2d", "conv_transpose2d", "conv2d, backward"])
def test_what_a_first_call_launches_was_packed_when_it_was_planned(name, monkeypatch):
    """Its result, and memory for sums, are those that were planned with: else arguments are made twice."""
    packed, launched = [], []
    arguments = launches.arguments
    monkeypatch.setattr(launches, "arguments", lambda *given: packed.append(1) or arguments(*given))
    for known in (entry._known, forward._known, transposed._known, transposed._gradients, gradients._known):
        known.clear()
    with answering_for("sm_90a", 132), launching(lambda kernel, *_: launched.append(kernel.py_func.__name__)):
        CALLS[name]()
    assert len(packed) == launched.count("gemm") > 0


@pytest.mark.slow
def test_a_second_process_compiles_nothing(tmp_path):
    """Whatever it called, and compiled, before; and hashes are others."""
    first, second = calls(tmp_path, 1, ()), calls(tmp_path, 2, ())
    assert first.keys() == second.keys() == CALLS.keys()
    assert sum(told["compiled"] > 0 for told in first.values()) > len(CALLS) // 2
    assert [name for name, told in second.items() if told["compiled"] or told["typed"]] == []
    assert all(told["digested"] == told["chosen"] for told in second.values())  # of a kernel once
    assert {m for told in second.values() for m in told["loaded"]}.isdisjoint(SLOW)
    third = calls(tmp_path, 3, tuple(CALLS)[::-1])
    assert [name for name, told in third.items() if told["compiled"]] == []
