# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.mutation [--seeds N] [--jobs N] [kernel ...]`: judge all mutants, run the right kernels in N orders
(100), and write benchmarks/results/mutation.json; kernels that are named replace their own entries in it."""

import argparse
import json
import multiprocessing
import time
from pathlib import Path

from .kernels import KERNELS
from .run import judge, silent

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "mutation.json"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("kernels", nargs="*", help="names; all by default")
    args = parser.parse_args()
    with multiprocessing.get_context("spawn").Pool(args.jobs) as pool:
        for kernel in KERNELS:
            if not args.kernels or kernel.name in args.kernels:
                write(kernel, args.seeds, pool)


def write(kernel, seeds, pool):
    """Judge one kernel and put its entry into the results."""
    start = time.time()
    quiet = sum(pool.imap_unordered(silent, [(kernel.name, seed) for seed in range(seeds)]))
    result = {"silent_seeds": quiet, **judge(kernel, pool.imap), "seconds": round(time.time() - start, 1)}
    print(f"{kernel.name}: silent over {quiet} seeds; {result['found']} of {result['wrong']} wrong mutants "
          f"found; survivors {result['survivors']}", flush=True)  # fmt: skip
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    known[kernel.name] = result
    RESULTS.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
