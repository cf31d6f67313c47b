# SPDX-License-Identifier: Apache-2.0
"""Launch every Hopper kernel of the matrix many times on a GPU: no wrong number, and no hang.

    python -m tests.pipeline.stress --launches 1000

Outputs are poisoned before each launch and compared after each. A kernel that hangs is named, and ends the run.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

import numba_cute as cute

from ..conftest import Places, _torch_device
from . import cases
from .cases import Cell

COUNTS = np.array([7, 0, 1, 23, 2, 0, 40, 5] * 16, np.int32)
POISON = -(2**31)
HANGS_AFTER = 60  # seconds


def stress(cell: Cell, launches: int, rng: np.random.Generator) -> int:
    """The number of wrong launches of one kernel."""
    case = cell.make(rng, COUNTS)
    places = Places(_torch_device)
    call = cute.launch(case.kernel, grid=case.grid, block=case.block).prepare(*places.arguments(case.arguments))
    checks = []
    for out in case.outputs:
        done = np.broadcast_to(out.done, out.want.shape)
        start = POISON if out.start is None else out.start
        checks.append((places(out.array), start, *(_torch_device(np.ascontiguousarray(x)) for x in (out.want, done))))
    wrong = torch.zeros((), dtype=torch.int64, device="cuda")
    for _ in range(launches):
        for on_gpu, start, _, _ in checks:
            on_gpu.fill_(start)
        call()
        for on_gpu, _, want, done in checks:
            wrong += ((on_gpu != want) & done).any()
    torch.cuda.synchronize()
    return int(wrong)


def chosen(everything: bool) -> list[Cell]:
    """All cells that a Hopper GPU can run, or those of 1, 2, 3 and 8 stages."""
    cells = [c for c in cases.hopper_cells() if c.arch == "sm_90a"]
    return cells if everything else [c for c in cells if c.facts.get("stages", 1) in (1, 2, 3, 8)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", type=int, default=1000)
    parser.add_argument("--all", action="store_true", help="every number of stages, 1 to 8")
    parser.add_argument("--only", default="", help="the cells whose name has this in it")
    parser.add_argument("--json", type=Path, help="write the table there too")
    given = parser.parse_args()
    table: dict[str, list[float]] = defaultdict(lambda: [0, 0, 0, 0.0])
    rng = np.random.default_rng(0)
    for cell in chosen(given.all):
        if given.only not in str(cell):
            continue
        print(f"{cell} … ", end="", flush=True)
        faulthandler.dump_traceback_later(HANGS_AFTER, exit=True)
        start = time.perf_counter()
        wrong = stress(cell, given.launches, rng)
        seconds = time.perf_counter() - start
        faulthandler.cancel_dump_traceback_later()
        print(f"{wrong} wrong, {seconds:.1f} s", flush=True)
        row = table[cell.subject]
        for i, value in enumerate((1, given.launches, wrong, seconds)):
            row[i] += value
    report(table, given)


def report(table: dict[str, Any], given: Any) -> None:
    name = torch.cuda.get_device_name()
    print(f"\n{name}\n{'':40} kernels  launches  wrong  seconds")
    for subject, (kernels, launches, wrong, seconds) in sorted(table.items()):
        print(f"{subject:40} {kernels:7} {launches:9} {wrong:6} {seconds:8.1f}")
    if given.json:
        rows = {k: {"kernels": n, "launches": m, "wrong": w} for k, (n, m, w, _) in sorted(table.items())}
        given.json.write_text(json.dumps({"device": name, "launches of each": given.launches, "by": rows}, indent=1))
    wrong = sum(row[2] for row in table.values())
    raise SystemExit(f"{wrong} launches were wrong" if wrong else 0)


if __name__ == "__main__":
    main()
