# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest: each kernel that a test simulates is simulated by way of the IR, kernel → module → text → module
→ kernel, and the test judges what comes out. It keeps which operations were executed so, by passed tests, and those of
kernels that a test makes of modules itself.

    python -m pytest -p tests.ir.by_way_of_ir -m "not slow and not gpu" -k "not assembler" tests/pipeline

prints how many there were; with $CUTE_IR_EXECUTED they are written there, as {operation: test}. A kernel is left as it
is that is not lifted or not made again (tests of errors have such), and one that was lifted thrice. With
$CUTE_IR_WANTED, a file of names, only kernels are lifted that mention one of them; with $CUTE_IR_ASSEMBLE=1 each one
is assembled besides; with $CUTE_IR_PASSES, as "lower-to-nvgpu", these passes run over each module.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections import Counter
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

import numba_cute as cute
from numba_cute import ir
from numba_cute.ir import kernels, passes
from numba_cute.ir.from_kernels.module import from_kernel
from numba_cute.ir.library import operations
from numba_cute.sim import launch

MOST = 3
PASSES = [name for name in os.environ.get("CUTE_IR_PASSES", "").split(",") if name]
TO_KERNEL = kernels.to_kernel
EXECUTED, WANTED = os.environ.get("CUTE_IR_EXECUTED"), os.environ.get("CUTE_IR_WANTED")


def mentioned(function: Any, seen: set[CodeType]) -> set[str]:
    """The names that a kernel and the device functions that it calls mention."""
    function = getattr(function, "py_func", function)
    code = getattr(function, "__code__", None)
    if code is None or code in seen:
        return set()
    seen.add(code)
    found = _names(code)
    cells = [c.cell_contents for c in function.__closure__ or () if c != _EMPTY]
    for called in (*(function.__globals__.get(n) for n in found), *cells):
        if hasattr(called, "py_func"):
            found |= mentioned(called, seen)
    return found


def _names(code: CodeType) -> set[str]:
    inner = (c for c in code.co_consts if isinstance(c, CodeType))
    return {*code.co_names, *code.co_freevars}.union(*map(_names, inner))


_EMPTY = type(lambda: None)  # nothing is equal to it that a cell holds


def operations_of(module: ir.Module) -> set[str]:
    """The names of the API's operations that a module has."""
    return {op.name for op in module.calls() if isinstance(op, operations.ApiOp)}


class ByWayOfIr:
    """What is told to pytest. executed: the test that executed each operation first."""

    def __init__(self, wanted: set[str] | None) -> None:
        self.wanted = wanted
        self.executed: dict[str, str] = {}
        self.assembled: set[str] = set()
        self._held: set[str] = set()
        self._times: Counter[CodeType] = Counter()
        self._now: set[str] = set()
        self._made: dict[CodeType, set[str]] = {}  # by the code of kernels that tests make of modules
        self._launch, self._within = launch.Simulated._launch, False
        launch.Simulated._launch = self._simulated()  # type: ignore[method-assign]
        kernels.to_kernel = ir.to_kernel = self.to_kernel  # type: ignore[assignment]

    def to_kernel(self, module: ir.Module, name: str | None = None) -> Any:
        """Make a kernel as tests do, and note what it is made of."""
        kernel = TO_KERNEL(module, name)
        self._made[launch.python_function(kernel).__code__] = operations_of(module)
        return kernel

    def _simulated(self) -> Any:
        usual, own = self._launch, self

        def simulate(simulated: Any, grid: Any, block: Any, smem: int, *args: Any, **named: Any) -> None:
            there = own._made.get(launch.python_function(simulated.kernel).__code__)
            made = None if own._within or there is not None else own._lifted(simulated, args, named)
            if there:
                given = launch.static_arguments(simulated.kernel, args, named)
                own._assemble(simulated.kernel, tuple(given), simulated.arch, there)
            if made is None:
                usual(simulated, grid, block, smem, *args, **named)
                own._now |= there or set()
                return None
            kernel, found = made
            own._within = True
            try:
                again = dataclasses.replace(simulated, kernel=launch.function_of(kernel))
                usual(again, grid, block, smem, *args, **named)
                own._now |= found
            finally:
                own._within = False
            return None

        return simulate

    def _lifted(self, simulated: Any, args: Any, named: Any) -> tuple[Any, set[str]] | None:
        """The kernel by way of the IR, and the operations of its module."""
        function = launch.python_function(simulated.kernel)
        if self.wanted is not None and not self.wanted & mentioned(function, set()):
            return None
        if self._times[function.__code__] >= MOST:
            return None
        self._times[function.__code__] += 1
        try:
            given = launch.static_arguments(simulated.kernel, args, named)
            lifted = from_kernel(simulated.kernel, tuple(given), simulated.arch)
            module = ir.parse(str(lifted), names=lifted.names)
            if PASSES:
                module = passes.run(module, PASSES)
            kernel = TO_KERNEL(module)
            found = operations_of(module)
        except Exception:  # what the test is about
            return None
        self._assemble(kernel, tuple(given), simulated.arch, found)
        return kernel, found

    def _assemble(self, kernel: Any, given: tuple[Any, ...], arch: str, found: set[str]) -> None:
        """Assemble a kernel of the IR, if that is wanted, and note what it is made of."""
        if os.environ.get("CUTE_IR_ASSEMBLE") and not found <= self.assembled | self._held:
            with contextlib.suppress(Exception):  # what a test has for the simulator alone
                cute.compile(kernel, given, arch=arch)
                self._held |= found

    def pytest_runtest_setup(self) -> None:
        self._now, self._held = set(), set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.assembled |= self._held
            for name in sorted(self._now - set(self.executed)):
                self.executed[name] = report.nodeid
                if self.wanted is not None:
                    self.wanted.discard(name.rpartition(".")[2])

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.write_line(f"{len(self.executed)} operations of the IR were executed")

    def pytest_sessionfinish(self) -> None:
        launch.Simulated._launch = self._launch  # type: ignore[method-assign]
        if EXECUTED:
            said = {"executed": self.executed, "assembled": sorted(self.assembled)}
            Path(EXECUTED).write_text(json.dumps(said, indent=1))


def pytest_configure(config: pytest.Config) -> None:
    wanted = {n.rpartition(".")[2] for n in Path(WANTED).read_text().split()} if WANTED else None
    config.pluginmanager.register(ByWayOfIr(wanted))
