# SPDX-License-Identifier: Apache-2.0
"""Random kernels on a GPU: what it writes must be what the simulator writes, to the bit, each within a time limit.

    python -m tests.fuzz.gpu --count 20000 --jobs 16 --seconds 540
    python -m tests.fuzz.gpu --no-gpu --count 20000 --jobs 16 --seconds 540

With --no-gpu they are compiled to PTX for sm_90a, and what is compared is the same LLVM IR run on this machine's
processor. Six in eight kernels use this library, one is plain, and one is arithmetic in all types of numbers. A kernel
that does not end takes its process with it, and another goes on. Prints what differs, and leaves a summary in
$OUT/fuzz.json: how many are the same, differ, are refused (CuteError), are the library's own faults (InternalError),
raise anything else, crash and hang.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from .device import Lost, launched
from .pool import GONE, run_all, serve

TARGET = "sm_90a"


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


def on_processor(kernel: Any, threads: int, args: tuple[Any, ...], taken: Any) -> None:
    """Run a kernel on this machine's processor, and compile the same LLVM IR to PTX."""
    from numba.cuda import dispatcher

    from numba_cute.compiler.ground.target import parse_arch
    from numba_cute.compiler.host.offline import frontend
    from tests.native import Native

    given = taken(args)
    compiled = frontend(kernel, given, TARGET)
    Native.of_compiled(compiled, given).run(threads, *given)
    compiled.library._llvm_strs = None  # made before it is a kernel
    dispatcher.kernel_fixup(compiled.library.get_function(compiled.fndesc.llvm_func_name), False)
    ptx = "\n".join(compiled.library.get_asm_strs(cc=parse_arch(TARGET)))
    assert ".entry" in ptx, ptx


def compared(seed: int, run: Any = launched) -> str:
    """Return "same", or what is wrong. run: runs a kernel compiled."""
    import numba_cute as cute

    from . import numbers
    from .build import THREADS, arguments, kernel_of, with_tensor

    kernel = kernel_of(source_of(seed))
    own = arguments if not is_arithmetic(seed) else numbers.arguments
    here, there = own(), own()
    taken = tuple if is_plain(seed) or is_arithmetic(seed) else with_tensor
    cute.simulate(kernel, checks=False)[1, THREADS](*taken(here))
    run(kernel, THREADS, there, taken)
    pairs = enumerate(zip(here, there))
    wrong = [i for i, (x, y) in pairs if isinstance(x, np.ndarray) and x.tobytes() != y.tobytes()]
    return f"output {wrong[0]} differs" if wrong else "same"


def outcome(seed: int, run: Any = launched) -> dict[str, Any]:
    try:
        return {"kind": compared(seed, run)}
    except Lost as e:
        return {"kind": str(e), GONE: True}
    except Exception as e:
        return {"kind": f"{type(e).__name__}: {e}"}


def family(kind: str) -> str:
    """Return as what an outcome counts."""
    if kind in ("same", "crash", "hung"):
        return kind
    known = {"CuteError": "refused", "InternalError": "internal", "output": "differs", "does": "hung"}
    return known.get(kind.split(":")[0].split(" ")[0], "error")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worker", action="store_true", help="be one of the processes")
    parser.add_argument("--no-gpu", action="store_true", help="compile to PTX, and run on this machine's processor")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=500)
    args = parser.parse_args()
    if args.worker:
        return serve(functools.partial(outcome, run=on_processor if args.no_gpu else launched))
    began = time.time()
    seeds = ((f"seed {seed}", seed) for seed in range(args.first, args.first + args.count))
    found: dict[int, str] = {}
    command = ("tests.fuzz.gpu", "--worker", *("--no-gpu",) * args.no_gpu)
    for one in run_all(seeds, args.jobs, command, args.seconds):
        found[one["source"]] = one["kind"]
        if one["kind"] != "same":
            print(f"{one['label']}: {one['kind'][:400]}", flush=True)
    families = ("same", "differs", "refused", "internal", "error", "crash", "hung")
    counts = dict.fromkeys(families, 0) | Counter(map(family, found.values()))
    summary = {
        "ran": len(found), **counts, "asked": args.count, "first": args.first, "gpu": not args.no_gpu,
        "plain": sum(map(is_plain, found)), "arithmetic": sum(map(is_arithmetic, found)),
        "seconds": round(time.time() - began, 1),
        "not": {seed: text for seed, text in found.items() if text != "same"},
    }  # fmt: skip
    print({k: v for k, v in summary.items() if k != "not"})
    if os.environ.get("OUT"):
        (Path(os.environ["OUT"]) / "fuzz.json").write_text(json.dumps(summary, indent=1))


if __name__ == "__main__":
    main()
