# SPDX-License-Identifier: Apache-2.0
"""Random kernels on a GPU: what it writes must be what the simulator writes, to the bit, each within a time limit.

    python -m tests.fuzz.gpu --count 20000 --jobs 16 --seconds 540

Six in eight kernels use this library, one is plain, and one is arithmetic in all types of numbers. A kernel that does
not end takes its process with it, and another goes on. Prints what differs, and leaves a summary in $OUT/fuzz.json.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

LIMIT = 10.0
"""Seconds that a kernel may run, far over what any needs."""


def is_plain(seed: int) -> bool:
    return seed % 8 == 7


def is_arithmetic(seed: int) -> bool:
    return seed % 8 == 6


def source_of(seed: int) -> str:
    from .choices import Seeded
    from .cutes import CuteWriter
    from .numbers import NumberWriter
    from .plain import Writer

    writer = Writer if is_plain(seed) else NumberWriter if is_arithmetic(seed) else CuteWriter
    return writer(Seeded(seed)).source()


def outcome(seed: int) -> str:
    """ "same", or what is wrong."""
    from numba import cuda

    import numba_cute as cute

    from . import numbers
    from .build import THREADS, arguments, kernel_of, with_tensor

    kernel = kernel_of(source_of(seed))
    host = numbers.arguments() if is_arithmetic(seed) else arguments()
    there: tuple[Any, ...] = tuple(cuda.to_device(x) if isinstance(x, np.ndarray) else x for x in host)
    arrays, here = there[: numbers.OUTPUTS if is_arithmetic(seed) else 2], host
    if not is_plain(seed) and not is_arithmetic(seed):
        here, there = with_tensor(here), with_tensor(there)
    cute.simulate(kernel, checks=False)[1, THREADS](*here)
    done = cuda.event()
    kernel[1, THREADS](*there)
    done.record()
    end = time.monotonic() + LIMIT
    while not done.query():
        if time.monotonic() > end:
            return "does not end"
        time.sleep(0.0001)
    wrong = [i for i, a in enumerate(arrays) if host[i].tobytes() != a.copy_to_host().tobytes()]
    return f"output {wrong[0]} differs" if wrong else "same"


def work(seeds: list[int], at: Any, results: Any, deadline: float) -> None:
    """Run seeds from position `at` on, until the time is over or a kernel hangs."""
    import warnings

    warnings.simplefilter("ignore")
    while at.value < len(seeds) and time.time() < deadline:
        seed = seeds[at.value]
        at.value += 1
        try:
            found = outcome(seed)
        except Exception as e:
            found = f"{type(e).__name__}: {e}"
        results.put((seed, found))
        if found == "does not end":
            results.close()
            results.join_thread()
            os._exit(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=500)
    args = parser.parse_args()
    began, deadline = time.time(), time.time() + args.seconds
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    lots = [list(range(args.first + j, args.first + args.count, args.jobs)) for j in range(args.jobs)]
    at = [context.Value("i", 0) for _ in lots]
    processes = [_start(context, work, lot, a, results, deadline) for lot, a in zip(lots, at)]
    found: dict[int, str] = {}
    while any(p.is_alive() for p in processes) or not results.empty():
        while not results.empty():
            seed, text = results.get()
            found[seed] = text
            if text != "same":
                print(f"seed {seed}: {text[:400]}", flush=True)
        for j, process in enumerate(processes):
            if not process.is_alive() and at[j].value < len(lots[j]) and time.time() < deadline - 5:
                if at[j].value and lots[j][at[j].value - 1] not in found and results.empty():
                    found[lots[j][at[j].value - 1]] = "its process died"
                processes[j] = _start(context, work, lots[j], at[j], results, deadline)
        time.sleep(0.05)
    counts = Counter("same" if text == "same" else "not" for text in found.values())
    summary = {
        "ran": len(found), "same": counts["same"], "asked": args.count, "first": args.first,
        "plain": sum(map(is_plain, found)), "arithmetic": sum(map(is_arithmetic, found)),
        "seconds": round(time.time() - began, 1),
        "not": {seed: text for seed, text in found.items() if text != "same"},
    }  # fmt: skip
    print({k: v for k, v in summary.items() if k != "not"})
    if os.environ.get("OUT"):
        (Path(os.environ["OUT"]) / "fuzz.json").write_text(json.dumps(summary, indent=1))


def _start(context: Any, target: Any, *args: Any) -> Any:
    process = context.Process(target=target, args=args)
    process.start()
    return process


if __name__ == "__main__":
    main()
