# SPDX-License-Identifier: Apache-2.0
"""Whether numba-cuda's own tests give the same with `import numba_cute` as without, test by test, in the same time.

    python -m tests.numba_suite --cudasim                 in Numba's simulator: anywhere
    python -m tests.numba_suite --gpu -j 16               on a GPU
    python -m tests.numba_suite nocuda                    one package of the suite, on the machine as it is

Tests that differ run again, by modules, up to --retries times: some are unsteady by themselves. Exits with 1 if a test
differs, a process could not be finished, or the tests take more than --ratio times as long with the import (which is
judged where they take 30 s or more without it). Writes numba_suite.json, and each process's record and log, to $OUT
if that is set.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .compare import compare, summary
from .run import ARMS, Settings, missing, modules

LONG_ENOUGH = 30  # seconds, for a ratio to mean something


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="packages (cudapy, …) and modules (cudapy.test_sm); default: all")
    parser.add_argument("--but", nargs="*", default=[], help="packages and modules to leave out")
    parser.add_argument("--cudasim", action="store_true", help="with NUMBA_ENABLE_CUDASIM=1")
    parser.add_argument("--gpu", action="store_true", help="refuse to run where Numba finds no GPU: it would skip most")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    parser.add_argument("--limit", type=float, default=120, help="seconds that one test may take")
    parser.add_argument("--budget", type=float, default=math.inf, help="seconds that all may take together")
    parser.add_argument("--retries", type=int, default=5, help="how often a test that differs runs again")
    parser.add_argument("--ratio", type=float, default=1.1, help="the most that the import may cost; 0: do not judge")
    return parser.parse_args()


def has_gpu():
    code = "import sys; from numba import cuda; sys.exit(not cuda.is_available())"
    return subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def report(found):
    """Print what `summary` gave, the differences last but one, the totals last."""
    for package, arms in found["packages"].items():
        counts = (f"{arm} " + ", ".join(f"{n} {o}" for o, n in sorted(arms[arm].items())) for arm in ARMS)
        print(f"{package}: {'; '.join(counts)}")
    for kind in ("unsteady", "different"):
        for entry in found[kind]:
            print(f"{kind}: {entry['test']}: without {entry['without']}, with {entry['with']}")
            if kind == "different":
                print("    " + entry["why"].replace("\n", "\n    "))
    for entry in found["unfinished"]:
        print(f"unfinished: {entry}")
    seconds = found["seconds"]
    print(f"{found['tests']} tests, {len(found['different'])} different, {len(found['unsteady'])} unsteady; "
          f"{seconds['without']} s without, {seconds['with']} s with: {found['ratio']}")  # fmt: skip


def main():
    args = arguments()
    if missing():
        print(f"numba_suite: numba-cuda's tests import what is not here: pip install {' '.join(missing())}")
        return 2
    if args.gpu and not has_gpu():
        print("numba_suite --gpu: Numba finds no GPU here, and would skip nearly every test")
        return 2
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        out = Path(os.environ.get("OUT", temporary))
        folder = out / "numba_suite"
        folder.mkdir(parents=True)
        settings = Settings(folder, args.cudasim, args.jobs, args.limit, start + args.budget)
        outcomes = compare(modules(settings, args.names, args.but), settings, args.retries)
        found = {**summary(outcomes), "wall_seconds": round(time.monotonic() - start, 1)}
        (out / "numba_suite.json").write_text(json.dumps(found, indent=1) + "\n")
    report(found)
    slow = args.ratio and found["seconds"]["without"] >= LONG_ENOUGH and found["ratio"] > args.ratio
    return int(bool(found["different"] or found["unfinished"] or slow))


if __name__ == "__main__":
    sys.exit(main())
