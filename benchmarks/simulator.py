# SPDX-License-Identifier: Apache-2.0
"""How fast the simulator is: seconds for a CTA's tile of a GEMM and thread-operations a second, checks off and on.

    python benchmarks/simulator.py [--repeat 3]

The kernel is tests/sim/gemm_kernel.py in raw instructions: 384 threads a CTA, tiles of 128 x 256 x K, two CTAs in a
cluster. An operation is an instruction or memory access of one thread.
"""

import argparse
import json
import platform
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from numba_cute.sim import Trace  # noqa: E402
from tests.sim.gemm_kernel import run  # noqa: E402

CTAS = 2


def seconds(k, repeat, **options):
    """CPU seconds of the fastest of `repeat` runs."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        run(256, 256, k, np.random.default_rng(0), **options)
        times.append(time.process_time() - start)
    return min(times)


def measure(k, repeat):
    trace = Trace()
    run(256, 256, k, np.random.default_rng(0), checks=False, trace=trace)
    out = {"k": k, "operations": trace.now}
    for name, checks in (("checks off", False), ("all checks", True)):
        s = seconds(k, repeat, checks=checks)
        out[name] = {"seconds a CTA tile": round(s / CTAS, 3), "operations a second": round(trace.now / s)}
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    seconds(64, 1)  # imports and caches
    results = [measure(k, args.repeat) for k in (512, 1024, 2048)]
    print(json.dumps({"python": platform.python_version(), "machine": platform.machine(), "tiles": results}, indent=1))


if __name__ == "__main__":
    main()
