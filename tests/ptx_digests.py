# SPDX-License-Identifier: Apache-2.0
"""The PTX of kernel tests as digests: those that were recorded, and those of the tests that a session runs.

A plugin of the test suite (see conftest.py). Nothing is compiled for it: the assembler's way to run a kernel tells what
it made, and the session fails at its end if a test made another PTX than the one recorded, whatever part of the suite
it ran and in however many processes. PTX depends on what it is made with: of other versions nothing is compared. And
libNVVM 13.5 makes other PTX for sm_100 once a process has compiled with debugging: such tests have their own.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

RECORDED = Path(__file__).with_suffix(".json")
MADE_WITH = ("numba-cuda", "numba", "llvmlite", "nvidia-nvvm")
# Mangled names hold serial numbers, and Numba counts a process's shared arrays.
NAMES = re.compile(r"_Z[\w$]+|\b__local_depot\d+|\b_cudapy_[a-z]+_\d+|^//.*$", re.MULTILINE)
KEY = "ptx"


def normalised(ptx: str) -> str:
    """The PTX without what differs from run to run."""
    return NAMES.sub("", ptx)


def digest(ptx: str) -> str:
    return hashlib.sha256(normalised(ptx).encode()).hexdigest()[:16]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"


def versions() -> dict[str, str]:
    """What the PTX of this session is made with."""
    return {"python": "{}.{}".format(*sys.version_info), **{name: _version(name) for name in MADE_WITH}}


class Digests:
    """The digests of a session's passed tests, by test; each test's are joined in the order of its kernels."""

    def __init__(self, recorded: dict[str, Any], made_with: dict[str, str]) -> None:
        self.recorded: dict[str, str] = recorded["digests"]
        self.others = [f"{k} {v} (here {made_with[k]})" for k, v in recorded["with"].items() if v != made_with[k]]
        self.made_with = made_with
        self.got: dict[str, str] = {}

    @property
    def changed(self) -> list[str]:
        """The tests that made another PTX than the one recorded."""
        if self.others:
            return []
        return sorted(t for t, found in self.got.items() if self.recorded.get(t, found) != found)

    def said(self) -> list[str]:
        """What the session's end says."""
        if self.others and self.got.keys() & self.recorded.keys():
            return [f"PTX is not compared with {RECORDED.name}, which is of {', '.join(self.others)}"]
        if not self.changed:
            return []
        files = sorted({test.split("::")[0] for test in self.changed})
        since = f"$(git log -1 --format=%h -- tests/{RECORDED.name})"
        return [
            f"the PTX of {len(self.changed)} kernel tests is not as recorded in tests/{RECORDED.name}:",
            *(f"  {test}" for test in self.changed),
            f"to see how: python tests/compare_ptx.py {since} {' '.join(files)}",
            "if it is meant: python tests/compare_ptx.py --record",
        ]

    # ------------------------------------------------------------ hooks of pytest, in the process that has all reports
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        made = [value for key, value in report.user_properties if key == KEY]
        if report.when == "call" and report.passed and made:
            self.got[report.nodeid] = " ".join(map(str, made))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        to = os.environ.get("CUTE_TEST_PTX_RECORD")
        if to:
            recorded = {"with": self.made_with, "digests": dict(sorted(self.got.items()))}
            Path(to).write_text(json.dumps(recorded, indent=1) + "\n")
        elif self.changed and not session.exitstatus:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        for line in self.said():
            terminalreporter.write_line(line, red=bool(self.changed), yellow=not self.changed)


def register(config: pytest.Config) -> None:
    """Compare the PTX of this session, unless it is a worker's, whose reports another process gets."""
    if not hasattr(config, "workerinput"):
        path = Path(os.environ.get("CUTE_TEST_PTX_DIGESTS", RECORDED))
        config.pluginmanager.register(Digests(json.loads(path.read_text()), versions()))
