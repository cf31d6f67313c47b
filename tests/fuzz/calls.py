# SPDX-License-Identifier: Apache-2.0
"""Calls of everything public with arguments of every kind, on the host and in simulated kernels:
`python -m tests.fuzz.calls --calls 300000 --seed 0 --jobs 2`.

A call may end in its result, in a CuteError, or in Python's own TypeError or AttributeError for what is not there: a
parameter, an operator, an attribute. Any other exception, five seconds (of a warp 20), a crash, or a write to memory
by a call that failed or to a read-only array is wrong, and so is an InternalError ("internal"): no argument is said to
be wrong.
`--show NUMBER` makes one call again.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATIENCE = 60.0
"""Seconds in which a process must come to its next call; it stops by itself after fewer of CPU time."""


@dataclass
class Job:
    """A process, and the calls that it makes."""

    seed: int
    first: int
    last: int
    out: Path
    process: Any = None
    at: int = -1
    since: float = 0.0

    def start(self) -> None:
        """Begin, or go on after a call that ended the process."""
        self.out.with_name(self.out.name + ".beat").write_bytes(struct.pack("q", self.first))
        command = [sys.executable, "-m", "tests.fuzz.calls_worker", *map(str, (self.seed, self.first, self.last))]
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen([*command, str(self.out)], stdout=quiet, stderr=quiet, stdin=quiet)
        self.at, self.since = self.first, time.monotonic()

    def beat(self) -> int:
        """The call that is being made."""
        return int(struct.unpack("q", self.out.with_name(self.out.name + ".beat").read_bytes())[0])

    def ended(self) -> bool:
        """Look at it once: whether all its calls are made. What ends or hangs is noted, and gone on after."""
        code, at = self.process.poll(), self.beat()
        if at != self.at:
            self.at, self.since = at, time.monotonic()
        if code is None and time.monotonic() - self.since < PATIENCE:
            return False
        if code is None:
            self.process.kill()
            self.process.wait()
        if at >= self.last:
            return True
        trace = self.out.with_name(self.out.name + ".crash").read_text(errors="replace")
        kind = "hang" if code is None else "crash"
        said = f"the process ended with {code}\n{trace[:2000]}" if kind == "crash" else f"no answer in {PATIENCE} s"
        found = {"kind": kind, "place": "?", "error": kind, "said": said, "call": f"number {at}", "number": str(at)}
        with self.out.open("a", encoding="utf-8") as f:
            f.write(json.dumps(found) + "\n")
        self.first = at + 1
        self.start()
        return False


def calls(seed: int, count: int, jobs: int = 1, first: int = 0) -> list[dict[str, str]]:
    """Make so many calls and give what ended wrongly."""
    with tempfile.TemporaryDirectory() as folder:
        share = -(-count // jobs)
        ends = [(first + i * share, min(first + (i + 1) * share, first + count)) for i in range(jobs)]
        running = [Job(seed, a, b, Path(folder, f"{i}")) for i, (a, b) in enumerate(ends)]
        for job in running:
            job.start()
        waiting = list(running)
        while waiting:
            time.sleep(0.05)
            waiting = [job for job in waiting if not job.ended()]
        lines = [line for job in running if job.out.exists() for line in job.out.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def summary(found: list[dict[str, str]], most: int) -> str:
    """The places where calls end wrongly, those of most calls first, each with two of the calls."""
    groups: dict[tuple[str, str, str], list[dict[str, str]]] = collections.defaultdict(list)
    for f in found:
        groups[f["kind"], f["place"], f["error"]].append(f)
    lines = []
    for (kind, place, error), group in sorted(groups.items(), key=lambda item: -len(item[1]))[:most]:
        lines.append(f"{len(group):6} {kind} {error} at {place}: {group[0]['said']}")
        lines += [f"         {f['number']}: {f['call'][:200]}" for f in group[:2]]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--most", type=int, default=60, help="places to print")
    parser.add_argument("--show", type=int, help="make this call again, here, and show how it ends")
    given = parser.parse_args()
    if given.show is not None:
        from .calls_worker import Worker

        call, wrong = Worker(given.seed).run(given.show)
        print(call.written, wrong, sep="\n")
        return 0
    found = calls(given.seed, given.calls, given.jobs, given.first)
    print(summary(found, given.most))
    places = len({(f["place"], f["error"]) for f in found})
    kinds = dict.fromkeys(("internal", "error", "hang", "crash"), 0) | collections.Counter(f["kind"] for f in found)
    print(f"seed {given.seed}: {len(found)} of {given.calls} calls end wrongly, at {places} places: {kinds}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
