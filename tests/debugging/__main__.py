# SPDX-License-Identifier: Apache-2.0
"""Run the cases of `cute.debug` on a GPU, each in a process of its own: `python -m tests.debugging [PART OF A NAME]`.

With `--gemm` it measures how much slower the Hopper GEMM is that is debugged."""

import subprocess
import sys
import time

from .cases import CASES
from .others import OTHERS

SECONDS = 120


def one(name, broken):
    """Run one case, and say how it ended: the last line is OK or FAILED."""
    import numba_cute as cute

    if name in OTHERS:
        return OTHERS[name]()
    case = next(c for c in CASES if c.name == name)
    a, out = case.arguments()
    debugged = cute.debug(case.make(broken), timeout=1.0, most=20, cluster=case.cluster, **case.options)
    try:
        debugged[case.blocks, case.threads](a, out)
    except Exception as e:
        print(type(e).__name__, e)
        right = broken and isinstance(e, case.error)
        missing = [w for w in case.words if not any(x in str(e) for x in w.split("|"))]
        if missing:
            print("without the words:", missing)
        if right and not missing:
            return alive(a, out)
        return False
    print("no report; out begins", out[:4])
    return not broken and (out[:32] != 0).sum() >= 31


def alive(a, out):
    """Say whether the context can be used after a report."""
    import numpy as np
    from numba import cuda

    try:
        held = cuda.to_device(np.arange(8))
        return bool((held.copy_to_host() == np.arange(8)).all())
    except Exception as e:
        print("the context is lost:", type(e).__name__, e)
        return False


def run(name, broken):
    """Run a case in a process of its own: what it said, and whether it ended as it should."""
    command = [sys.executable, "-m", "tests.debugging", "--one", name, str(int(broken))]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired as e:
        return f"{(e.stdout or b'').decode()[-1000:]} (no end in {SECONDS} s)", False
    return done.stdout + done.stderr[-1500:], done.returncode == 0


def all_of(part):
    """Run all cases whose name has a part, and sum up."""
    failed, began = [], time.time()
    runs = [(c.name, broken) for c in CASES for broken in (True, False)] + [(name, True) for name in OTHERS]
    runs = [(name, broken) for name, broken in runs if part in name]
    for name, broken in runs:
        start = time.time()
        said, ok = run(name, broken)
        kind = "broken" if broken else "right"
        print(f"{'ok    ' if ok else 'FAILED'} {kind:6} {name} ({time.time() - start:.1f} s)", flush=True)
        if not ok:
            failed.append((name, kind))
        if not ok or broken:
            print("    " + "\n    ".join(said.strip().splitlines()[-14:]), flush=True)
    print(f"{len(runs) - len(failed)} of {len(runs)} as they should be, {time.time() - began:.0f} s; failed: {failed}")
    return not failed


def gemm(size=8192):
    """Measure the Hopper GEMM, plain and debugged."""
    import sys as system

    system.path.insert(0, "examples")
    from . import gemm as measured

    measured.measure(size)


if __name__ == "__main__":
    given = sys.argv[1:]
    if given[:1] == ["--one"]:
        import os

        right = one(given[1], given[2] == "1")
        sys.stdout.flush()
        os._exit(0 if right else 1)  # a kernel that goes on would hold up the end of the process
    if given[:1] == ["--gemm"]:
        gemm(*map(int, given[1:]))
        sys.exit(0)
    sys.exit(0 if all_of(" ".join(given)) else 1)
