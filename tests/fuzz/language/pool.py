# SPDX-License-Identifier: Apache-2.0
"""Programs in processes of their own: one that hangs or dies takes no other with it."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
LIMIT = 20.0
"""Seconds that a program may take, far over what any needs."""
MANY = 400
"""Programs after which a process is replaced: what it compiled is never given back."""


class Worker:
    """A process that runs programs, one at a time."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.fuzz.language.worker"]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"},
        )  # fmt: skip
        self.label, self.source, self.began, self.done = "", "", 0.0, 0
        self._buffer = b""

    def give(self, label: str, source: str) -> None:
        self.label, self.source, self.began = label, source, time.monotonic()
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps([label, source]).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # told by `result`

    def fileno(self) -> int:
        assert self._process.stdout
        return self._process.stdout.fileno()

    def result(self) -> dict[str, Any] | None:
        """Return what came of the program, if it is there; call when there is something to read."""
        data = os.read(self.fileno(), 1 << 20)
        if not data:
            return self._lost("crash")
        self._buffer += data
        if not self._buffer.endswith(b"\n"):
            return None
        line, self._buffer = self._buffer, b""
        self.done += 1
        return dict(json.loads(line))

    def late(self) -> dict[str, Any] | None:
        """Return the outcome of a program that does not end."""
        limit = LIMIT + (20 if not self.done else 0)  # the first one waits for the imports
        return self._lost("hung") if time.monotonic() - self.began > limit else None

    def _lost(self, kind: str) -> dict[str, Any]:
        self.close()
        self.done = MANY
        return {"label": self.label, "kind": kind, "source": self.source, "python": "", "simulator": "", "compiled": ""}

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def run_all(programs: Iterable[tuple[str, str]], jobs: int = 2) -> Iterator[dict[str, Any]]:
    """Yield what came of each (label, source), in the order in which they end."""
    left = iter(programs)
    idle: list[Worker] = [Worker() for _ in range(jobs)]
    busy: list[Worker] = []
    try:
        while True:
            while idle and (program := next(left, None)) is not None:
                worker = idle.pop()
                if worker.done >= MANY:
                    worker.close()
                    worker = Worker()
                worker.give(*program)
                busy.append(worker)
            if not busy:
                return
            ready = select.select(busy, [], [], 0.5)[0]
            for worker in list(busy):
                found = worker.result() if worker in ready else worker.late()
                if found is not None:
                    busy.remove(worker)
                    idle.append(worker)
                    yield found
    finally:
        for worker in idle + busy:
            worker.close()


def fails(kinds: frozenset[str]) -> Callable[[str], bool]:
    """Return a test whether a source's outcome is one of these, for shrinking."""
    return lambda source: next(iter(run_all([("", source)], 1)))["kind"] in kinds
