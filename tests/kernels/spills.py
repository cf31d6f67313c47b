# SPDX-License-Identifier: Apache-2.0
"""Compile every configuration that a covering set of the plans' has, and tell of registers that are spilled.

python -m tests.kernels.spills                          all spaces, in as many processes as there are cores
python -m tests.kernels.spills matmul "norm backward"   some of them
python -m tests.kernels.spills --minutes 9              stops after so long; the next call goes on
python -m tests.kernels.spills --failing                those again that failed last, whatever changed since
python -m tests.kernels.spills --count                  how many configurations, and how many are compiled

Each configuration is a line of the record (out/spills.jsonl) as soon as it is done. A line counts as long as the
library and the lists of configurations are as they were: what has one is not compiled again. What fails is printed at
once, and all that fails once more at the end; the exit status says whether something does.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import multiprocessing
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from .configurations import SPACES, Machine, faults
from .covering import Space, covering

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "out" / "spills.jsonl"


class Job(NamedTuple):
    """A configuration. space: its name. choice: the value of each axis."""

    space: str
    choice: dict[str, Any]

    @property
    def name(self) -> str:
        """The configuration in words, by which the record knows it."""
        return f"{self.space}: " + ", ".join(f"{name}={told(value)}" for name, value in self.choice.items())


def told(value: Any) -> str:
    """A value of an axis, the same in every process."""
    return value.__name__ if callable(value) and hasattr(value, "__name__") else str(value)


def sources() -> str:
    """A digest of all that decides what is compiled."""
    files = [*(ROOT / "numba_cute").rglob("*.py"), *(ROOT / "numba_cute").rglob("*.json"),
             *Path(__file__).parent.glob("configurations*.py"), Path(__file__).with_name("covering.py")]  # fmt: skip
    found = hashlib.sha256()
    for file in sorted(files):
        found.update(str(file.relative_to(ROOT)).encode() + file.read_bytes())
    return found.hexdigest()[:16]


@functools.cache
def jobs_of(space: str, strength: int = 2) -> tuple[Job, ...]:
    """The configurations of a space in which any so many choices meet."""
    made: Space = SPACES[space]()
    return tuple(Job(space, choice) for choice in covering(made, strength))


@functools.cache
def machine() -> Machine:
    """That of this process."""
    return Machine()


def done(job: Job) -> list[str]:
    """What is wrong with the kernels of a configuration."""
    try:
        launches = SPACES[job.space]().launches(**job.choice)
        return faults(machine(), launches, job.choice.get("target"))
    except Exception as e:
        return [f"{type(e).__name__}: {e}"[:500]]


JOBS: list[Job] = []
"""What there is to do: processes are forked when it is known, and told places in it."""


def _nth(index: int) -> tuple[int, list[str]]:
    return index, done(JOBS[index])


def lines(record: Path) -> list[dict[str, Any]]:
    """What a record holds; of a line that was cut off nothing."""
    found = []
    for line in record.read_text().splitlines() if record.exists() else ():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found


def all_done(todo: Sequence[Job], processes: int, minutes: float) -> Iterator[tuple[Job, list[str]]]:
    """Yield configurations, with what is wrong, as they are done: in one process here, in several by others. Stops
    after so many minutes."""
    until = monotonic() + 60 * minutes
    if processes == 1:
        for job in todo:
            if monotonic() > until:
                return
            yield job, done(job)
        return
    JOBS[:] = todo
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("fork"))
    waiting = [pool.submit(_nth, i) for i in range(len(todo))]
    try:
        for future in as_completed(waiting, max(0.0, until - monotonic())):
            index, wrong = future.result()
            yield todo[index], wrong
    except TimeoutError:
        return
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():  # what is not done yet is not waited for
            process.terminate()


def checked(
    names: Sequence[str], processes: int = 1, minutes: float = 1e6, record: Path = RECORD, strength: int = 2,
    failing: bool = False,
) -> tuple[dict[str, list[str]], int]:  # fmt: skip
    """Compile what the record does not have, and give what is wrong, by configuration, of all that was compiled, and
    how many are left. names: of spaces. failing: compile what failed last instead."""
    now = sources()
    before = lines(record)
    last = {line["name"]: line["wrong"] for line in before}
    known = {line["name"]: line["wrong"] for line in before if line["sources"] == now}
    every = [job for name in names for job in jobs_of(name, strength)]
    todo = [j for j in every if (bool(last.get(j.name)) if failing else j.name not in known)]
    print(f"{len(every)} configurations, {len(todo)} to compile", flush=True)
    record.parent.mkdir(parents=True, exist_ok=True)
    with record.open("a") as file:
        for count, (job, wrong) in enumerate(all_done(todo, processes, minutes), 1):
            known[job.name] = wrong
            file.write(json.dumps({"sources": now, "name": job.name, "wrong": wrong}) + "\n")
            file.flush()
            for one in wrong:
                print(f"{job.name}: {one}", flush=True)
            if count % 100 == 0:
                print(f"{count} of {len(todo)}", flush=True)
    wanted = todo if failing else every
    found = {j.name: known[j.name] for j in wanted if known.get(j.name)}
    return found, sum(j.name not in known for j in wanted)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=[], help="of spaces: " + ", ".join(SPACES))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--minutes", type=float, default=1e6, help="after which no more is begun")
    parser.add_argument("--record", type=Path, default=RECORD)
    parser.add_argument("--strength", type=int, default=2, help="how many choices meet")
    parser.add_argument("--failing", action="store_true", help="compile those that failed last")
    parser.add_argument("--count", action="store_true", help="compile nothing, and tell how many there are")
    options = parser.parse_args(argv)
    unknown = set(options.names) - set(SPACES)
    if unknown:
        parser.error(f"no such space: {', '.join(sorted(unknown))}")
    names = options.names or list(SPACES)
    if options.count:
        for name in names:
            print(f"{name:28}{len(SPACES[name]().places()):9}{len(jobs_of(name, options.strength)):6}", flush=True)
        return 0
    found, left = checked(names, options.jobs, options.minutes, options.record, options.strength, options.failing)
    print(f"{len(found)} fail, {left} are left to compile" + (": call again" if left else ""))
    for name, wrong in found.items():
        for one in wrong:
            print(f"FAILS {name}: {one}")
    return int(bool(found or left))


if __name__ == "__main__":
    sys.exit(main())
