# SPDX-License-Identifier: Apache-2.0
"""What the first call of each entry of numba_cute.kernels takes of the processor, where an earlier process has compiled
its kernels: milliseconds, each in a process of its own (tests/kernels/first_calls.py says what counts). Needs torch.

    python -m benchmarks first_calls
    python -m benchmarks first_calls --rounds 5 --calls matmul "conv2d, backward"

Without a GPU launches go to one that is pretended, up to the driver. With --folder kernels are kept there, and not
compiled again by the next run.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import harness
from benchmarks.harness import Entry, Figure, Result
from tests.kernels.first_calls import CALLS

ROOT = Path(__file__).resolve().parents[1]


def called(folder: Path, *names: str) -> list[dict[str, Any]]:
    """Call entries in a new process whose kernels and bytecode lie in a folder."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"NUMBA_CUTE_CACHE": "1", "NUMBA_CUTE_CACHE_DIR": str(folder / "kernels")}
    environment |= {
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
    }
    command = [sys.executable, "-W", "ignore", "-m", "tests.kernels.first_calls", *names]
    done = subprocess.run(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def measured(folder: Path, name: str, rounds: int) -> dict[str, Any]:
    """Call an entry in some processes. milliseconds: the least of each part, and the median."""
    runs = [called(folder, name)[0] for _ in range(rounds)]
    assert not any(run["compiled"] or run["typed"] for run in runs), f"{name} compiles again"
    parts = list(zip(*(run["milliseconds"] for run in runs)))
    least, median = ([round(f(part), 1) for part in parts] for f in (min, statistics.median))
    return {**runs[0], "milliseconds": least, "median": median, "rounds": rounds}


def run(options: argparse.Namespace) -> Result:
    names = options.calls or list(CALLS)
    with tempfile.TemporaryDirectory() as spare:
        folder = options.folder or Path(spare)
        called(folder, *names)  # which compiles
        found = {name: measured(folder, name, options.rounds) for name in names}
    figures = {}
    for name, of in found.items():
        for part, milliseconds in zip(("", " (its gradients)"), of["milliseconds"]):
            figures[name.partition(",")[0] + part if part else name] = Figure(milliseconds, "ms")
    return Result(figures, {"calls": found, "load": round(os.getloadavg()[0], 1)})


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--calls", nargs="*", choices=list(CALLS), metavar="CALL", help="by default all")
    parser.add_argument("--rounds", type=int, default=3, help="processes for each call")
    parser.add_argument("--folder", type=Path, help="where kernels are kept")


ENTRY = Entry("first_calls", "first calls whose kernels are on disk, of the processor", run, arguments, gpu=None)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
