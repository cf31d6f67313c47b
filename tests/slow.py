# SPDX-License-Identifier: Apache-2.0
"""Run the tests that the default suite leaves out, a file at a time, and keep when each file last passed.

make slow                               all, those first that passed longest ago
python -m tests.slow --minutes 60       begins no file after an hour
python -m tests.slow --shard 3/8        a part, about an eighth of the time
python -m tests.slow tests/atoms        these
python -m tests.slow --list             the record, and run nothing
python -m tests.slow --join A B         add other machines' records

The record is benchmarks/results/slow.json: for each file its slow tests, the seconds they took, the day and commit of
the last run that passed, and of one that failed since.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "benchmarks" / "results" / "slow.json"
UNKNOWN = 60.0  # seconds that a file is thought to take which never ran
Record = dict[str, dict[str, Any]]


def pytest(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-m", "slow", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def counted(where: list[str]) -> dict[str, int]:
    """Count the slow tests of each file that has some."""
    count: dict[str, int] = {}
    for line in pytest("--collect-only", *where).stdout.splitlines():
        file, found, _ = line.partition("::")
        if found:
            count[file] = count.get(file, 0) + 1
    return count


def shard_of(files: list[str], record: Record, part: int, parts: int) -> list[str]:
    """Give a part of the files: each, the longest first, goes where the least time is."""
    seconds = {file: record.get(file, {}).get("seconds", UNKNOWN) for file in files}
    bins: list[list[str]] = [[] for _ in range(parts)]
    for file in sorted(files, key=lambda f: (-seconds[f], f)):
        min(bins, key=lambda b: sum(seconds[f] for f in b)).append(file)
    return bins[part - 1]


def oldest_first(files: list[str], record: Record) -> list[str]:
    """Sort files: those that never passed, then by the day they last did."""
    return sorted(files, key=lambda f: (record.get(f, {}).get("passed", {}).get("date", ""), f))


def ran(file: str, jobs: int) -> tuple[bool, float, str]:
    """Run a file's slow tests; gives whether they passed, the seconds, and what failed."""
    began = time.monotonic()
    done = pytest("-n", str(jobs), "--dist", "loadscope", file)
    failed = re.findall(r"^(?:FAILED|ERROR) (.*)", done.stdout, re.MULTILINE)
    said = "\n".join(failed) or done.stdout[-2000:] + done.stderr[-2000:]
    return done.returncode == 0, time.monotonic() - began, said


def now() -> dict[str, str]:
    git = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return {"date": datetime.now(timezone.utc).strftime("%Y-%m-%d"), "commit": git.stdout.strip()}


def noted(record: Record, file: str, tests: int, passed: bool, seconds: float) -> None:
    """Put a run into the record; what passed last stays when a later run fails."""
    kept = record.setdefault(file, {})
    kept.update(tests=tests, seconds=round(seconds, 1))
    if passed:
        kept["passed"] = now()
        kept.pop("failed", None)
    else:
        kept["failed"] = now()


def latest(run: dict[str, Any]) -> str:
    """The day of the last run of a file, passed or failed."""
    return max(run.get(kind, {}).get("date", "") for kind in ("passed", "failed"))


def joined(record: Record, other: Record) -> None:
    """Add another machine's record: of each file the later run."""
    for file, run in other.items():
        if file not in record or latest(run) >= latest(record[file]):
            record[file] = run


def listed(record: Record) -> str:
    lines = []
    for file in oldest_first(list(record), record):
        run = record[file]
        passed = run.get("passed")
        told = f"passed {passed['date']} at {passed['commit']}" if passed else "never passed"
        told += f", FAILED {run['failed']['date']} at {run['failed']['commit']}" if "failed" in run else ""
        lines.append(f"{file:52} {run['tests']:5} tests {run['seconds']:7.0f} s  {told}")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("where", nargs="*", help="files or folders of tests")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--shard", default="1/1", help="which part of how many: 3/8")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--join", nargs="+", type=Path, default=[])
    options = parser.parse_args(arguments)
    record: Record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    for other in options.join:
        joined(record, json.loads(other.read_text()))
    if options.join:
        RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
    if options.list or options.join:
        print(listed(record))
        return 0
    end, failures = time.monotonic() + 60 * options.minutes, 0
    count, (part, parts) = counted(options.where), map(int, options.shard.split("/"))
    for file in oldest_first(shard_of(sorted(count), record, part, parts), record):
        if time.monotonic() > end:
            break
        passed, seconds, said = ran(file, options.jobs)
        noted(record, file, count[file], passed, seconds)
        RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
        failures += not passed
        print(f"{file}: {'passed' if passed else 'FAILED'}, {seconds:.0f} s", "" if passed else "\n" + said, flush=True)
    return failures


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
