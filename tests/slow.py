# SPDX-License-Identifier: Apache-2.0
"""Run the tests that the default suite leaves out, and keep when each file last passed.

make slow                               all, those files first that passed longest ago
python -m tests.slow --minutes 60       stops after an hour; what it had begun is not lost
python -m tests.slow --shard 3/8        a part, about an eighth of the time
python -m tests.slow tests/atoms        these
python -m tests.slow --list             print the record, and run nothing
python -m tests.slow --out FILE         also write a line for each test, and pass over those that passed in FILE
python -m tests.slow --join FILE...     add such files, of other machines, to the record

The record is benchmarks/results/slow.json: for each file its slow tests, the seconds they took on one core, the day and
commit of the last run that passed, and of one that failed since. A file's tests may be spread over several runs: it
passed when each of them has. Tests that need a GPU are left out: `pytest -m gpu` on a GPU runs them all.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from . import slow_lines

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "benchmarks" / "results" / "slow.json"
UNKNOWN = 2.0  # seconds that a test is thought to take which never ran
PIECE = 60.0  # seconds of tests, about, that one process runs
Record = dict[str, dict[str, Any]]
Ids = dict[str, list[str]]


def pytest(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "-q", "-m", "slow and not gpu", "-p", "no:cacheprovider", *arguments]


def found(where: list[str]) -> Ids:
    """List the slow tests of each file that has some."""
    command = pytest("--collect-only", "--continue-on-collection-errors", *where)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 5):  # 5: none
        print(*(line for line in done.stdout.splitlines() if line.startswith("ERROR")), done.stderr, sep="\n")
    ids: Ids = {}
    for line in done.stdout.splitlines():
        file, test, _ = line.partition("::")
        if test:
            ids.setdefault(file, []).append(line)
    return ids


def each_of(file: str, record: Record) -> float:
    """Give the seconds that a test of a file takes."""
    run = record.get(file)
    return run["seconds"] / run["tests"] if run and run["tests"] else UNKNOWN


@dataclass
class Piece:
    """Some tests of one file, that one process runs."""

    file: str
    ids: list[str]
    seconds: float


def pieces(ids: Ids, record: Record) -> list[Piece]:
    """Cut files into pieces: those first that never passed or passed longest ago, of these the longest first."""
    cut = []
    for file, tests in ids.items():
        each = each_of(file, record)
        count = max(1, int(PIECE / max(each, 0.05)))
        parts = [tests[i : i + count] for i in range(0, len(tests), count)]
        cut += [Piece(file, part, each * len(part)) for part in parts]
    return sorted(cut, key=lambda p: (record.get(p.file, {}).get("passed", {}).get("date", ""), -p.seconds, p.file))


def shard_of(cut: list[Piece], part: int, parts: int) -> list[Piece]:
    """Give a part of the pieces, in their order: the longest first, each goes where the least time is."""
    bins: list[list[Piece]] = [[] for _ in range(parts)]
    for piece in sorted(cut, key=lambda p: (-p.seconds, p.file, p.ids[0])):
        min(bins, key=lambda b: sum(p.seconds for p in b)).append(piece)
    return [piece for piece in cut if piece in bins[part - 1]]


@dataclass
class Run:
    """What processes share that run pieces. out: the file of lines. end: when all stop."""

    out: Path
    end: float
    running: set[subprocess.Popen[str]] = field(default_factory=set)

    def __call__(self, piece: Piece) -> None:
        """Run a piece. A process that dies has failed the test that it was in."""
        left = self.end - time.monotonic()
        if left <= 0:
            return
        with tempfile.TemporaryDirectory() as folder:
            (listed := Path(folder) / "ids").write_text("\n".join(piece.ids))
            environment = os.environ | {slow_lines.IDS: str(listed), slow_lines.OUT: str(self.out)}
            command = pytest("-n", "0", "-p", "tests.slow_lines", piece.file)
            process = subprocess.Popen(
                command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                start_new_session=os.name == "posix",
            )  # fmt: skip
            self.running.add(process)
            try:
                said, _ = process.communicate(timeout=None if left == float("inf") else left)
            except subprocess.TimeoutExpired:
                self.kill(process)
                process.communicate()
                return
            finally:
                self.running.discard(process)
        if not self.end:
            return
        if process.returncode not in (0, 1):
            ran = {line["test"] for line in slow_lines.read(self.out) if "test" in line}
            lost = next((test for test in piece.ids if test not in ran), piece.ids[-1])
            slow_lines.write(self.out, {"test": lost, "outcome": "failed", "seconds": 0.0, "said": said[-2000:]})
        print(f"{piece.file}: {len(piece.ids)} tests {said.strip().rpartition(chr(10))[2]}", flush=True)

    def stop(self) -> None:
        """End what runs, and begin nothing more."""
        self.end = 0.0
        for process in list(self.running):
            self.kill(process)

    def kill(self, process: subprocess.Popen[str]) -> None:
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()


def commit() -> str:
    try:
        command = ["git", "rev-parse", "--short=8", "HEAD"]
        git = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "unknown"
    return git.stdout.strip() or "unknown"


def joined(record: Record, lines: Iterable[dict[str, Any]]) -> dict[str, int]:
    """Add runs to the record; gives how many tests are missing of files that did not run whole.

    lines: of one or several files. One that begins a run has the tests that there were, the day and the commit; the
    last one of a test counts. A test that is gone since is passed over.
    """
    begun: dict[str, Any] = {"tests": {}}
    last: dict[str, dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {}
    count: dict[str, int] = {}
    for line in lines:
        if "test" in line:
            last.setdefault(line["test"].partition("::")[0], {})[line["test"]] = (line, begun)
        else:
            begun = line
            count.update(line["tests"])
    missing = {}
    for file, tests in last.items():
        outcomes = {line["outcome"] for line, _ in tests.values()}
        when = max(
            ({"date": run["date"], "commit": run["commit"]} for _, run in tests.values()), key=lambda r: r["date"]
        )
        kept = record.get(file, {})
        if "failed" not in outcomes and len(tests) < count.get(file, 0):
            missing[file] = count[file] - len(tests)
        elif when["date"] >= latest(kept):
            seconds = round(sum(line["seconds"] for line, _ in tests.values()), 1)
            passed = {"passed": when} if "failed" not in outcomes else {"failed": when}
            kept = {"passed": kept["passed"]} if "passed" in kept and "failed" in outcomes else {}
            record[file] = {"tests": len(tests), "seconds": seconds, **kept, **passed}
    return missing


def latest(run: dict[str, Any]) -> str:
    """Give the day of the last run of a file, passed or failed."""
    return max(str(run.get(kind, {}).get("date", "")) for kind in ("passed", "failed"))


def listed(record: Record) -> str:
    lines = []
    for file in sorted(record, key=lambda f: (record[f].get("passed", {}).get("date", ""), f)):
        run = record[file]
        passed = run.get("passed")
        told = f"passed {passed['date']} at {passed['commit']}" if passed else "never passed"
        told += f", FAILED {run['failed']['date']} at {run['failed']['commit']}" if "failed" in run else ""
        lines.append(f"{file:52} {run['tests']:5} tests {run['seconds']:7.0f} s  {told}")
    return "\n".join(lines)


def run(options: argparse.Namespace, record: Record, out: Path) -> list[dict[str, Any]]:
    """Run what is asked for, and give the lines of it."""
    out.parent.mkdir(parents=True, exist_ok=True)
    ids = found(options.where)
    before = {line["test"]: line["outcome"] for line in slow_lines.read(out) if "test" in line}
    left = {file: [t for t in tests if before.get(t, "failed") == "failed"] for file, tests in ids.items()}
    part, parts = map(int, options.shard.split("/"))
    mine = shard_of(pieces({file: tests for file, tests in left.items() if tests}, record), part, parts)
    day = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    slow_lines.write(out, {"date": day, "commit": options.commit, "tests": {file: len(t) for file, t in ids.items()}})
    print(f"{sum(len(p.ids) for p in mine)} tests, about {sum(p.seconds for p in mine):.0f} s of one core", flush=True)
    runner = Run(out, time.monotonic() + 60 * options.minutes)
    with ThreadPoolExecutor(options.jobs) as pool:
        try:
            for done in [pool.submit(runner, piece) for piece in mine]:
                done.result()
        except BaseException:  # Ctrl-C too
            runner.stop()
            raise
    return list(slow_lines.read(out))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("where", nargs="*", help="files or folders of tests")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--shard", default="1/1", help="which part of how many: 3/8")
    parser.add_argument("--commit", default=commit(), help="of a copy without git")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--join", nargs="+", type=Path, default=[])
    options = parser.parse_args(arguments)
    record: Record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    if options.list:
        print(listed(record))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        out = options.out or Path(folder) / "lines"
        lines = [line for f in options.join for line in slow_lines.read(f)] or run(options, record, out)
    missing = joined(record, lines)
    RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
    print(*(f"{file}: {count} tests have not run" for file, count in missing.items()), sep="\n")
    last = {line["test"]: line for line in lines if "test" in line}
    failed = [line for line in last.values() if line["outcome"] == "failed"]
    print(*(f"FAILED {line['test']}\n{line.get('said', '')}" for line in failed), sep="\n")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
