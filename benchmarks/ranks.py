# SPDX-License-Identifier: Apache-2.0
"""Start a process for each GPU, as torchrun does, under a time limit: for benchmarks, and the tests of several GPUs."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Ended:
    """What the ranks did. said: what each printed, standard error too. codes: their exit codes. in_time: whether all
    ended by themselves; where not, they were killed."""

    said: list[str]
    codes: list[int]
    in_time: bool

    @property
    def text(self) -> str:
        """What all of them printed."""
        return "\n".join(f"rank {r} (exit code {c}):\n{s}" for r, (s, c) in enumerate(zip(self.said, self.codes)))


def start(module: str, arguments: list[str], ranks: int, timeout: float, show: bool = False) -> Ended:
    """Run a module's `__main__` as so many ranks of this host, each with a GPU of its own. timeout: seconds, of all.
    show: print what they say as they say it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = {"WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    said: list[list[str]] = [[] for _ in range(ranks)]
    running, readers = [], []
    for r in range(ranks):
        environment = {k: str(v) for k, v in {**os.environ, **place, "RANK": r, "LOCAL_RANK": r}.items()}
        one = subprocess.Popen(
            [sys.executable, "-u", "-m", module, *arguments], cwd=ROOT, env=environment, text=True, errors="replace",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        readers.append(threading.Thread(target=_read, args=(one.stdout, said[r], r if show else None), daemon=True))
        readers[-1].start()
        running.append(one)
    in_time = _ended(running, time.monotonic() + timeout)
    for one in running:
        one.kill()
        one.wait()
    for reader in readers:
        reader.join(5)
    return Ended(["".join(lines) for lines in said], [one.returncode for one in running], in_time)


def _ended(running: list[subprocess.Popen[str]], end: float) -> bool:
    """Wait until all have ended; False if they do not by `end`, or soon after one failed: it is waited for in vain."""
    failed = False
    while any(one.poll() is None for one in running):
        if not failed and any(one.poll() for one in running):
            failed, end = True, min(end, time.monotonic() + _GRACE)
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


_GRACE = 10.0
"""Seconds that the others have once a rank has failed."""


def _read(stream: Any, lines: list[str], shown: int | None) -> None:
    """Keep what a rank prints. shown: its number, if it is printed too."""
    with stream:
        for line in stream:
            lines.append(line)
            if shown is not None:
                print(f"[{shown}] {line}", end="", flush=True)
