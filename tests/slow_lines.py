# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest for tests/slow.py: keep the tests that a file names, and write a line for each that is done."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

IDS, OUT = "CUTE_SLOW_IDS", "CUTE_SLOW_OUT"
"""Variables of the environment: the file with the tests to keep, one a line; the file to write to."""


def write(out: Path, line: dict[str, Any]) -> None:
    """Add a line to a file that other processes add to as well."""
    with open(out, "ab", buffering=0) as file:
        file.write(json.dumps(line).encode() + b"\n")


def read(out: Path) -> Iterator[dict[str, Any]]:
    """Give the lines of a file, but for one that a killed process left unfinished."""
    for line in out.read_text().splitlines() if out.exists() else []:
        if line.endswith("}"):
            yield json.loads(line)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if IDS in os.environ:
        kept = set(Path(os.environ[IDS]).read_text().splitlines())
        items[:] = [item for item in items if item.nodeid in kept]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    done = _running.setdefault(report.nodeid, {"test": report.nodeid, "outcome": "passed", "seconds": 0.0})
    done["seconds"] = round(done["seconds"] + report.duration, 3)
    if report.failed:
        done.update(outcome="failed", said=report.longreprtext[-2000:])
    elif report.skipped and not hasattr(report, "wasxfail") and done["outcome"] == "passed":
        done["outcome"] = "skipped"
    if report.when == "teardown" and OUT in os.environ:
        write(Path(os.environ[OUT]), _running.pop(report.nodeid))


_running: dict[str, dict[str, Any]] = {}
