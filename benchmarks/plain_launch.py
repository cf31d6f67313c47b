# SPDX-License-Identifier: Apache-2.0
"""What launching a plain kernel costs the host, with numba_cute imported and without.

    python -m benchmarks plain_launch

Each side runs in processes of its own, in turn; the medians of their medians are printed, in microseconds.
"""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks import harness  # noqa: E402
from benchmarks.harness import Entry, Figure, Result  # noqa: E402

ROUNDS, LAUNCHES = 40, 200


def measure():
    """The median time of a launch, over rounds, for kernels of no array, one and four."""
    import numpy as np
    from numba import cuda

    @cuda.jit
    def none(n):
        pass

    @cuda.jit
    def one(a):
        pass

    @cuda.jit
    def four(a, b, c, d, n):
        pass

    array = cuda.to_device(np.zeros(64, np.float32))
    cases = {
        "a number": (none[1, 32], (3,)),
        "one array": (one[1, 32], (array,)),
        "four arrays": (four[1, 32], (array,) * 4 + (3,)),
    }
    out = {}
    for name, (launch, args) in cases.items():
        times = []
        for _ in range(ROUNDS):
            cuda.synchronize()
            began = time.perf_counter()
            for _ in range(LAUNCHES):
                launch(*args)
            times.append((time.perf_counter() - began) / LAUNCHES * 1e6)
        out[name] = statistics.median(times)
    return out


def arguments(parser):
    parser.add_argument("--processes", type=int, default=8, help="of each side")


def run(options):
    """The host's time of a launch for each kind of argument, on both sides, in processes taken in turn."""
    sides = {"without": [], "with": []}
    for turn in range(options.processes):
        for side in sorted(sides, reverse=turn % 2 == 1):
            found = sides[side]
            command = [sys.executable, __file__, side]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found.append(json.loads(done.stdout.splitlines()[-1]))
    figures = {}
    for case in sides["with"][0]:
        for side, found in sides.items():
            times = [f[case] for f in found]
            figures[f"{case}, {side} numba_cute"] = Figure(
                statistics.median(times), "us", interval=(min(times), max(times)), peer=side == "without"
            )
    return Result(figures, {"rounds": ROUNDS, "launches": LAUNCHES, "processes": options.processes})


ENTRY = Entry(
    "plain_launch", "the host's time of a plain kernel's launch, with the import and without", run, arguments, gpu=True
)

if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] in ("with", "without"):
        if sys.argv[1] == "with":
            import numba_cute  # noqa: F401
        import warnings

        warnings.simplefilter("ignore")
        print(json.dumps(measure()))
    else:
        harness.main(ENTRY, __doc__)
