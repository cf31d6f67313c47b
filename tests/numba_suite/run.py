# SPDX-License-Identifier: Apache-2.0
"""Runs modules of a suite in processes of their own, which may hang or crash at any test."""

import contextlib
import dataclasses
import importlib.util
import json
import math
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import recorder

ROOT = Path(__file__).resolve().parents[2]
ARMS = ("without", "with")
LEFT_OUT = ("benchmarks",)  # they measure, with a plugin that few have
INI = "[pytest]\nconsider_namespace_packages = true\n"  # as numba-cuda's own: its modules lie in one
NEEDED = ("cffi", "filecheck")  # by modules of the suite, whose wheel does not ask for them
ENDED = (0, 1, 5)  # pytest's exit statuses: all passed, some failed, nothing left to run


@dataclasses.dataclass(frozen=True)
class Settings:
    """folder: where records and logs go. cudasim: whether the processes run in Numba's simulator. jobs: how many run
    at once. limit: the seconds that one test may take. deadline: when, by time.monotonic(), nothing may run any more.
    suite: the package of the tests. library: what half of the processes import before them.
    """

    folder: Path
    cudasim: bool = False
    jobs: int = 1
    limit: float = 120
    deadline: float = math.inf
    suite: str = "numba.cuda.tests"
    library: str = "numba_cute"

    def top(self):
        """The folder of the tests."""
        (top,) = importlib.util.find_spec(self.suite).submodule_search_locations
        return Path(top)

    def environment(self, arm, record):
        """What a process gets from this one, without what would change how it tests."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "NUMBA_SUITE_"))}
        env.pop("NUMBA_ENABLE_CUDASIM", None)
        if self.cudasim:
            env["NUMBA_ENABLE_CUDASIM"] = "1"
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), env.get("PYTHONPATH")]))
        env["CUDA_CACHE_DISABLE"] = "1"  # or whoever comes first compiles for both
        env[recorder.RECORD], env[recorder.IMPORT] = str(record), self.library if arm == "with" else ""
        return env

    def command(self, arm, batch):
        """pytest's, for some modules."""
        ini = self.folder / "pytest.ini"
        ini.write_text(INI)
        options = ["-q", "-c", ini, "--rootdir", self.top(), "-p", "tests.numba_suite.recorder"]
        options += ["-p", "no:cacheprovider", "--continue-on-collection-errors"]
        if arm == "without":
            options += ["-p", "no:numba-cute-sim"]
        named = [f"{self.suite}.{module}" for module in batch]
        return [sys.executable, "-m", "pytest", *map(str, options), "--pyargs", *named]


def missing():
    """What must be installed before the suite can run: without it modules would fail alike with the import and not."""
    return [name for name in NEEDED if importlib.util.find_spec(name) is None]


def modules(settings, names=(), but=()):
    """The test modules of the suite, the largest files first: of the named packages and modules ("cudapy",
    "cudapy.test_sm"; none named: all), without those in `but`."""
    top = settings.top()
    found = sorted(top.rglob("test_*.py"), key=lambda f: (-f.stat().st_size, str(f)))
    named = [".".join(f.relative_to(top).with_suffix("").parts) for f in found]

    def among(module, wanted):
        return any(f"{module}.".startswith(f"{w}.") for w in wanted)

    return [m for m in named if (not names or among(m, names)) and not among(m, (*LEFT_OUT, *but))]


def dealt(found, settings):
    """The modules in batches of about the same size, which both runs have alike: in the simulator starting processes
    costs most, and on a GPU some tests take so long that the rest must be spread around them."""
    count = min(settings.jobs * (1 if settings.cudasim else 4), len(found))
    return [sorted(found[i::count]) for i in range(count)]


def run(batches, settings, name):
    """Run each batch in both ways, by turns, so that both meet the same machine; gives the records by arm."""
    tasks = [(arm, batch, settings.folder / f"{name}-{i}-{arm}") for i, batch in enumerate(batches) for arm in ARMS]
    with ThreadPoolExecutor(settings.jobs) as pool:
        done = list(pool.map(lambda task: run_batch(*task, settings), tasks))
    records = {arm: [] for arm in ARMS}
    for (arm, *_), found in zip(tasks, done):
        records[arm] += found
    return records


def run_batch(arm, batch, stem, settings):
    """One batch in one way; gives its records. A test that takes too long, or takes the process with it, is recorded
    as such, and the tests after it run in another process."""
    record, log = stem.with_suffix(".jsonl"), stem.with_suffix(".log")
    while True:
        with log.open("a") as output:
            process = subprocess.Popen(
                settings.command(arm, batch), cwd=settings.folder, env=settings.environment(arm, record),
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            how = watch(process, record, settings)
        records = recorder.read(record)
        if how is None:
            return records
        ended = {r["test"] for r in records if "test" in r}
        running = [r["start"] for r in records if "start" in r and r["start"] not in ended]
        if not running or time.monotonic() > settings.deadline:
            last = log.read_text().splitlines()[-20:]
            return [*records, {"unfinished": batch, "how": how, "at": running, "log": last}]
        with record.open("a") as file:
            for test in running:
                file.write(json.dumps({"test": test, "outcome": how, "seconds": settings.limit, "why": how}) + "\n")


def watch(process, record, settings):
    """Wait for a process as long as its record grows; gives None if it ended by itself, or what became of it."""
    started = time.time()
    while True:
        try:
            status = process.wait(0.2)
        except subprocess.TimeoutExpired:
            last = max(started, record.stat().st_mtime if record.exists() else 0)
            if time.monotonic() > settings.deadline:
                end(process)
                return "out of time"
            if time.time() - last > settings.limit:
                end(process)
                return "hung"
        else:
            end(process)  # what its tests started
            return None if status in ENDED else f"crashed ({status})"


def end(process):
    """End a process that `run_batch` has started, and those that it has started in turn."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
