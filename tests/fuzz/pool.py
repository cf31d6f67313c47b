# SPDX-License-Identifier: Apache-2.0
"""Programs in processes of their own: one that hangs or dies takes no other with it."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LIMIT, WALL = 20.0, 600.0
"""Seconds of a processor that a program may take, far over what any needs, and seconds altogether."""
MANY = 400
"""Programs after which a process is replaced: what it compiled is never given back."""
LATEST = 20.0
"""Seconds that programs still have when the time for all is over."""
_PATH = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
GONE = "gone"
"""Key of an outcome whose process ends with it."""
LANGUAGE = ("tests.fuzz.language.worker",)


class Worker:
    """A process that runs programs, one at a time. command: its module and that one's arguments."""

    def __init__(self, command: tuple[str, ...] = LANGUAGE) -> None:
        self._command = command
        self._trace = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            [sys.executable, "-m", *command], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._trace,
            env={**os.environ, "PYTHONPATH": _PATH, "PYTHONHASHSEED": "0", "NUMBA_CUTE_CACHE": "0"},
        )  # fmt: skip
        self.label, self.source, self.began, self.done = "", "", 0.0, 0
        self._buffer = b""

    def give(self, label: str, source: str) -> None:
        self.label, self.source, self.began, self._used = label, source, time.monotonic(), self._seconds()
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps(source).encode() + b"\n")
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
        found = json.loads(line)
        self.done = MANY if found.pop(GONE, False) else self.done + 1
        return {"label": self.label, "source": self.source, **found}

    def late(self) -> dict[str, Any] | None:
        """Return the outcome of a program that does not end."""
        used, waited = self._seconds() - self._used, time.monotonic() - self.began
        return self._lost("hung") if used > LIMIT or waited > WALL else None

    def renewed(self) -> Worker:
        """Return a worker for the next program: itself, while it is good for one."""
        if self.done < MANY:
            return self
        self.close()
        return Worker(self._command)

    def _seconds(self) -> float:
        """Return the seconds that the process has had a processor for."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _lost(self, kind: str) -> dict[str, Any]:
        self._trace.truncate(0)
        self._process.send_signal(signal.SIGUSR1)  # it writes where it is
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        self._kill()
        self._trace.seek(0)
        where = self._trace.read().decode(errors="replace")[:4000]
        self.close()
        self.done = MANY
        found = {
            "label": self.label,
            "kind": kind,
            "source": self.source,
            "python": "",
            "simulator": "",
            "compiled": "",
        }
        return found | {"where": where}

    def close(self) -> None:
        self._kill()
        for file in (self._process.stdin, self._process.stdout, self._trace):
            with contextlib.suppress(BrokenPipeError):  # of what it did not read
                file.close()

    def _kill(self) -> None:
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # the GPU's driver holds it until that lets go
            self._process.wait(5.0)


def run_all(
    programs: Iterable[tuple[str, str]], jobs: int = 2, command: tuple[str, ...] = LANGUAGE, seconds: float = 1e9
) -> Iterator[dict[str, Any]]:
    """Yield what came of each (label, source), in the order in which they end; of those begun within some seconds."""
    left = iter(programs)
    idle: list[Worker] = [Worker(command) for _ in range(jobs)]
    busy: list[Worker] = []
    end = time.monotonic() + seconds
    try:
        while True:
            while idle and time.monotonic() < end and (program := next(left, None)) is not None:
                worker = idle.pop().renewed()
                worker.give(*program)
                busy.append(worker)
            if not busy or time.monotonic() > end + LATEST:
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


def serve(outcome: Callable[[Any], dict[str, Any]]) -> None:
    """Be a worker: read programs from stdin, and write what `outcome` says of each, until there are none, or one says
    that this process is gone."""
    warnings.simplefilter("ignore")
    faulthandler.register(signal.SIGUSR1)
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what programs print is not a result
    for line in sys.stdin:
        found = outcome(json.loads(line))
        out.write(json.dumps(found) + "\n")
        out.flush()
        if found.get(GONE):
            os._exit(1)  # at once: a context with a kernel that hangs is not to be waited for
