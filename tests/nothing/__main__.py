# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.nothing [name ...]`: of each public name of the rooms (or those given), show that its test, as
tests/nothing/tests.json has it, fails when the name does nothing. `--record` looks for such tests among all.

The tests are collected once, with the library as it is; each name is judged in a fork of that process.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from .targets import file_of, targets

RECORDED = Path(__file__).with_name("tests.json")
FILES = {
    "core": ["experimental/test_pipelines", "experimental/test_names", "experimental/test_tma"],
    "epilogue": ["experimental/test_math"],
    "iket": ["core/test_timeline"],
    "kernels": ["experimental/test_names", "experimental/test_tma", "compiler/test_kernels"],
    "math": ["experimental/test_math"],
    "memory": ["experimental/test_memory", "experimental/test_math"],
    "pipelines": ["experimental/test_pipelines", "experimental/test_names", "experimental/test_tma",
                  "experimental/test_math"],
    "tensor_memory": ["experimental/test_math"],
    "tensors": ["experimental/test_arrays", "experimental/test_memory", "experimental/test_tma"],
    "tma": ["experimental/test_tma", "experimental/test_math"],
    "cpasync": ["atoms/test_tilelang", "atoms/test_tilelang_mainloop"],
}  # fmt: skip
"""By a room's file: where its names are tested."""
LONGEST = 60
"""Seconds that a test may take; what waits longer, for what never comes, has failed."""


class Judge:
    """Runs, in place of a session's tests, those of each name while the name does nothing."""

    def __init__(self, names: list[str], known: dict[str, str], record: bool) -> None:
        self.names, self.known, self.record = names, known, record
        self.found: dict[str, str] = {}
        self._failed = ""

    def pytest_runtestloop(self, session: Any) -> bool:
        if session.testsfailed:
            raise session.Failed("what is to be judged cannot be collected")
        empty = targets()
        for name in self.names:
            known = self.known.get(name)
            if self.record:
                files = [f"tests/{file}.py" for file in FILES[file_of(name)]]
                order = {file: at for at, file in enumerate(files)}
                items = [i for i in session.items if i.nodeid.partition("::")[0] in order]
                items.sort(key=lambda i: (i.nodeid != known, order[i.nodeid.partition("::")[0]]))
            else:
                items = [i for i in session.items if i.nodeid == known]
            self.found[name] = self._apart(empty[name], items)
            sys.__stderr__.write(f"{name}: {self.found[name] or 'NO TEST FAILS'}\n")
            if self.record:
                RECORDED.write_text(json.dumps(self.known | self.found, indent=1) + "\n")
        return True

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self._failed = report.nodeid

    def _apart(self, empty: Any, items: list[Any]) -> str:
        """Judge in a process of its own; gives the first test that fails, or the one that does not end."""
        ours, theirs = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                empty()
                for item in items:
                    signal.alarm(LONGEST)
                    os.write(theirs, f"{item.nodeid}\n".encode())
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
                    if self._failed:
                        os._exit(1)
            finally:
                os._exit(0)
        os.close(theirs)
        with os.fdopen(ours) as tried:
            last = tried.read().splitlines()[-1:]
        _, status = os.waitpid(child, 0)
        return last[0] if status and last else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    known = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    judge = Judge(args.names or list(targets()), known, args.record)
    needed = sorted({f"tests/{f}.py" for name in judge.names for f in FILES[file_of(name)]})
    files = [f for f in needed if Path(f).exists()]
    pytest.main(["-q", "-n", "0", "-m", "not gpu", "-p", "no:cacheprovider", *files], plugins=[judge])
    surviving = [name for name in judge.names if not judge.found.get(name)]
    if args.record:
        known |= judge.found
        RECORDED.write_text(json.dumps({n: known[n] for n in targets() if known.get(n)}, indent=1) + "\n")
    print(f"{len(surviving)} of {len(judge.names)} survive: {', '.join(surviving)}")
    return bool(surviving)


if __name__ == "__main__":
    sys.exit(main())
