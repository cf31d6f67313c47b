# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin for the processes that `run` starts: it makes the import in question, and writes down each test.

It imports nothing of this library by itself: half of the processes must not have it.
"""

import importlib
import json
import os
import sys
import time
from pathlib import Path

import pytest

RECORD, IMPORT = "NUMBA_SUITE_RECORD", "NUMBA_SUITE_IMPORT"
"""Environment variables: the file to write to, a JSON object a line; the module to import first, if any."""


def read(path):
    """The records of a file; a last one that was cut off is left out."""
    records = []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return records


@pytest.fixture(scope="class")
def initialize_from_pytest_config(request):
    """What numba-cuda's test classes ask of a conftest that its wheels leave out."""
    request.cls._dump_failed_filechecks = False


def pytest_configure(config):
    if RECORD in os.environ:
        config.pluginmanager.register(Recorder(Path(os.environ[RECORD]), os.environ.get(IMPORT)))


class Recorder:
    """Writes what happens as it happens, so that a process that must be killed loses nothing."""

    def __init__(self, path, module):
        # what an earlier process of the same batch began is not begun again
        self.begun = {record["start"] for record in read(path) if "start" in record}
        self.reports = {}
        self.file = path.open("a", buffering=1)
        start = time.perf_counter()
        if module:
            importlib.import_module(module)
        self.write(imported=module, seconds=time.perf_counter() - start)

    def write(self, **record):
        self.file.write(json.dumps(record) + "\n")

    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if item.nodeid not in self.begun]

    def pytest_collectreport(self, report):
        if report.outcome != "passed":
            self.write(test=report.nodeid, outcome=f"{report.outcome} at collection", seconds=0, why=_why(report))

    def pytest_runtest_logstart(self, nodeid):
        self.reports[nodeid] = []
        self.write(start=nodeid)

    def pytest_runtest_logreport(self, report):
        self.reports[report.nodeid].append(report)

    def pytest_runtest_logfinish(self, nodeid):
        reports = self.reports.pop(nodeid)
        seconds = sum(r.duration for r in reports if not _of_subtest(r))
        why = next(filter(None, map(_why, reports)), "")
        self.write(test=nodeid, outcome=outcome(reports), seconds=seconds, why=why)

    def pytest_sessionfinish(self):
        self.write(loaded=sorted(name for name in sys.modules if "." not in name))


def _of_subtest(report):
    return getattr(report, "context", None) is not None


def _why(report):
    return str(report.longrepr)[-2000:] if report.outcome == "failed" else ""


def outcome(reports):
    """One word for a test's set-up, call and tear-down, and how many of its subtests failed."""
    parts = [r for r in reports if _of_subtest(r)]
    whole = [_outcome(r) for r in reports if not _of_subtest(r)]
    worst = next((o for o in ("failed", "xpassed", "xfailed", "skipped") if o in whole), "passed")
    bad = sum(r.outcome == "failed" for r in parts)
    return f"failed, {bad} of {len(parts)} subtests" if bad else worst


def _outcome(report):
    if hasattr(report, "wasxfail"):
        return {"skipped": "xfailed", "passed": "xpassed"}.get(report.outcome, report.outcome)
    return report.outcome
