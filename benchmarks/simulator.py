# SPDX-License-Identifier: Apache-2.0
"""How fast the simulator is: CPU seconds for a CTA's tile of a GEMM and thread-operations a second, checks off and on.

    python -m benchmarks simulator --repeat 3

The kernels are a GEMM in raw instructions (tests/sim/gemm_kernel.py) and examples/hopper_gemm.py, whose layouts are
computed as it runs: 384 threads a CTA, tiles of 128 x 256 x K, two CTAs in a cluster. An operation is an instruction or
memory access of one thread. "lane by lane" is a run without checks in which the lanes of a warp do not run together.
"""

import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]
import numba_cute as cute  # noqa: E402
from benchmarks import harness  # noqa: E402
from benchmarks.harness import Entry, Figure, Result  # noqa: E402
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


def arguments(parser):
    parser.add_argument("--repeat", type=int, default=3)


def run_all(options):
    for kernel in (raw, example):
        kernel(64, checks=False)  # imports and caches
    cases = [(raw, 512), (raw, 1024), (raw, 2048), (example, 512), (example, 1024)]
    tiles = [measure(kernel, k, options.repeat) for kernel, k in cases]
    figures = {}
    for t in tiles:
        for how in ("checks off", "checks off, lane by lane", "all checks"):
            figures[f"{t['kernel']}, K {t['k']}, {how}"] = Figure(t[how]["seconds a CTA tile"], "s")
    return Result(figures, {"tiles": tiles})


ENTRY = Entry("simulator", "CPU seconds of the simulator for a CTA's tile of a GEMM", run_all, arguments)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
