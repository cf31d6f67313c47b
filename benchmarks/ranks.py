# SPDX-License-Identifier: Apache-2.0
"""Start a process for each GPU, as torchrun does, under a time limit: for benchmarks, and the tests of several GPUs."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

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


def start(module: str, arguments: list[str], ranks: int, timeout: float) -> Ended:
    """Run a module's `__main__` as so many ranks of this host, each with a GPU of its own. timeout: seconds, of all."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = {"WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    end = time.monotonic() + timeout
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / str(r) for r in range(ranks)]
        running = []
        for r, file in enumerate(files):
            environment = {k: str(v) for k, v in {**os.environ, **place, "RANK": r, "LOCAL_RANK": r}.items()}
            with file.open("w") as out:  # a file: a pipe that nobody reads in time would stop a rank
                running.append(
                    subprocess.Popen(
                        [sys.executable, "-m", module, *arguments], cwd=ROOT, env=environment, stdout=out,
                        stderr=subprocess.STDOUT,
                    )
                )  # fmt: skip
        in_time = True
        try:
            for one in running:
                one.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            in_time = False
        finally:
            for one in running:
                one.kill()
                one.wait()
        said = [file.read_text(errors="replace") for file in files]
    return Ended(said, [one.returncode for one in running], in_time)
