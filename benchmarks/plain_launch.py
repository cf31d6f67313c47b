# SPDX-License-Identifier: Apache-2.0
"""What launching a plain kernel costs the host, with numba_cute imported and without.

    python benchmarks/plain_launch.py

Each side runs in processes of its own, in turn; the medians of their medians are printed, in microseconds.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROUNDS, LAUNCHES, PROCESSES = 40, 500, 5


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


def main():
    sides = {"without": [], "with": []}
    for _ in range(PROCESSES):
        for side, found in sides.items():
            command = [sys.executable, __file__, side]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found.append(json.loads(done.stdout.splitlines()[-1]))
    table = {}
    for case in sides["with"][0]:
        medians = {side: statistics.median(f[case] for f in found) for side, found in sides.items()}
        table[case] = {**medians, "ratio": medians["with"] / medians["without"]}
        print(f"{case:12} without {medians['without']:6.2f} us, with {medians['with']:6.2f} us, "
              f"ratio {table[case]['ratio']:.3f}")  # fmt: skip
    if os.environ.get("OUT"):
        (Path(os.environ["OUT"]) / "plain_launch.json").write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        if sys.argv[1] == "with":
            import numba_cute  # noqa: F401
        import warnings

        warnings.simplefilter("ignore")
        print(json.dumps(measure()))
    else:
        main()
