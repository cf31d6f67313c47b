# SPDX-License-Identifier: Apache-2.0
"""How fast the simulator is: CPU seconds for a CTA's tile of a GEMM and thread-operations a second, checks off and on.

    python -m benchmarks simulator --repeat 3

The kernels are a GEMM in raw instructions (tests/sim/gemm_kernel.py) and examples/hopper_gemm.py, whose layouts are
computed as it runs: 384 threads a CTA, tiles of 128 x 256 x K, two CTAs in a cluster. An operation is an instruction or
memory access of one thread. "lane by lane" is a run without checks in which the lanes of a warp do not run together.

With all checks, the kernels of simulator_cases.py are timed, and with `--against TREE` in other checkouts, in turns.
Two are run lane by lane too, as the engine of 2026-11-22 ran all: one of them it cannot run.
"""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]
import numba_cute as cute  # noqa: E402
from benchmarks import harness, simulator_cases  # noqa: E402
from benchmarks.harness import Entry, Figure, Result  # noqa: E402
from benchmarks.simulator_cases import ALONE, CASES  # noqa: E402
from numba_cute.sim import Trace, launch  # noqa: E402
from tests.sim.gemm_kernel import run  # noqa: E402

import gemm_host  # noqa: E402
import hopper_gemm  # noqa: E402

CTAS = 2


def raw(k, **options):
    run(256, 256, k, np.random.default_rng(0), **options)


def example(k, **options):
    a, b, c = gemm_host.problem(256, 256, k, cute.BFloat16)
    args, grid = hopper_gemm.arguments(a, b, c, cute.BFloat16, most_clusters=1)[:2]
    cute.simulate(hopper_gemm.gemm, **options)[grid, hopper_gemm.THREADS](*args)


@contextmanager
def lane_by_lane():
    may_share, launch.may_share = launch.may_share, lambda *_: False
    try:
        yield
    finally:
        launch.may_share = may_share


def seconds(kernel, k, repeat, **options):
    """CPU seconds of the fastest of `repeat` runs."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        kernel(k, **options)
        times.append(time.process_time() - start)
    return min(times)


def measure(kernel, k, repeat):
    trace = Trace()
    kernel(k, checks=False, trace=trace)
    out = {"kernel": kernel.__name__, "k": k, "operations": trace.now}

    def note(name, s):
        out[name] = {"seconds a CTA tile": round(s / CTAS, 3), "operations a second": round(trace.now / s)}

    note("checks off", seconds(kernel, k, repeat, checks=False))
    with lane_by_lane():
        note("checks off, lane by lane", seconds(kernel, k, 1, checks=False))
    note("all checks", seconds(kernel, k, 1, checks=True))
    return out


def in_turns(trees, repeat, limit):
    """Each case with all checks in each tree, one after the other: the least CPU seconds, and the MiB by which the
    process grew; or why there is none. A run of more than `limit` seconds is ended."""
    found = {name: {} for name in CASES}
    for name in CASES:
        for _ in range(repeat):
            for label, tree in trees.items():
                best = found[name].get(label, {})
                if "lacks" not in best:
                    ran = in_tree(tree, name, limit)
                    found[name][label] = min(best, ran, key=lambda r: r.get("seconds", 0)) if best else ran
    for name in ALONE:
        found[name]["lane by lane"] = in_tree(ROOT, name, limit, "alone")
    return found


def in_tree(tree, name, limit, *how):
    """One case, by a process of its own that imports what lies in `tree`."""
    command = [sys.executable, str(Path(simulator_cases.__file__)), str(tree), name, *how]
    path = os.pathsep.join(filter(None, (str(tree), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path}
    try:
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=limit)
        return json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"lacks": f"not done after {limit} s"}
    except (IndexError, ValueError):
        return {"lacks": (done.stderr.strip().splitlines() or ["the process ended"])[-1]}


def arguments(parser):
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--against", nargs="*", default=[], metavar="TREE", help="checkouts to time in turns with this")
    parser.add_argument("--limit", type=int, default=600, help="seconds of one run of those, at most")
    parser.add_argument("--only-checked", action="store_true", help="leave out the tiles with checks off")


def run_all(options):
    trees = {"this": ROOT} | {Path(t).name: Path(t).resolve() for t in options.against}
    checked = in_turns(trees, options.repeat, options.limit)
    figures = {
        f"{name}, all checks": Figure(r["this"]["seconds"], "s")
        for name, r in checked.items()
        if "seconds" in r["this"]
    }
    details = {"all checks": checked}
    if options.only_checked:
        return Result(figures, details)
    for kernel in (raw, example):
        kernel(64, checks=False)  # imports and caches
    cases = [(raw, 512), (raw, 1024), (raw, 2048), (example, 512), (example, 1024)]
    tiles = [measure(kernel, k, options.repeat) for kernel, k in cases]
    for t in tiles:
        for how in ("checks off", "checks off, lane by lane", "all checks"):
            figures[f"{t['kernel']}, K {t['k']}, {how}"] = Figure(t[how]["seconds a CTA tile"], "s")
    return Result(figures, {"tiles": tiles, **details})


ENTRY = Entry("simulator", "CPU seconds of the simulator for a CTA's tile of a GEMM", run_all, arguments)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
