# SPDX-License-Identifier: Apache-2.0
"""Simulate the matrix in many orders of threads and copies, with every check on, and write down what ran.

    python -m tests.pipeline.seeds --seeds 50 --jobs 16

For each subject and number of stages, `--seeds` runs with as many seeds, shared out among the cells (producers,
consumers, clusters); each run has the rounds of `FEW`, zero among them. It writes benchmarks/results/pipelines.json.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import numba_cute as cute

from ..conftest import Places, poison
from . import cases
from .cases import Case, Cell

FEW = np.array([2, 0, 3], np.int32)
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "pipelines.json"


def fill(case: Case) -> None:
    """Poison the outputs, or set them to what they start with."""
    for out in case.outputs:
        if out.start is None:
            poison(out.array)
        else:
            out.array[...] = out.start


def show_wrong(case: Case) -> None:
    """An error that shows the elements that are not what they must be."""
    for out in case.outputs:
        done = np.broadcast_to(out.done, out.want.shape)
        np.testing.assert_allclose(out.array[done], out.want[done], rtol=0, atol=out.atol, err_msg=str(case))


def simulate(cell: Cell, seed: int) -> None:
    """One order of one cell: an error unless the numbers are right, every check is silent and all orders proved."""
    case = cell.make(np.random.default_rng(seed), FEW)
    fill(case)
    args = Places(lambda a: a).arguments(case.arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cute.simulate(case.kernel, seed=seed, arch=case.arch, prove=True)[case.grid, case.block](*args)
    show_wrong(case)


def plan(seeds: int) -> Iterator[tuple[Cell, list[int]]]:
    """Each cell with its seeds: those of one subject and number of stages get all seeds between them."""

    def key(cell: Cell) -> Any:
        return cell.subject, cell.facts.get("stages", 0)

    for _, group in itertools.groupby(sorted(cases.all_cells(), key=key), key=key):
        cells = list(group)
        for i, cell in enumerate(cells):
            yield cell, list(range(i, seeds, len(cells)))


def _cell(work: tuple[int, list[int], int]) -> tuple[str, list[int], int, list[dict[str, Any]]]:
    """(subject, stages, runs, failures) of the `work[0]`-th cell of the plan with these seeds."""
    index, seeds, of = work
    cell = next(c for i, (c, _) in enumerate(plan(of)) if i == index)
    errors = []
    for seed in seeds:
        try:
            simulate(cell, seed)
        except Exception as e:  # all of them are wanted in the table
            errors.append({"cell": str(cell), "seed": seed, "error": f"{type(e).__name__}: {e}"})
    return cell.subject, [cell.facts["stages"]] if "stages" in cell.facts else [], len(seeds), errors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--only", default="", help="the cells whose name has this in it")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    given = parser.parse_args()
    begun, rows, failed = time.perf_counter(), {}, []  # type: ignore[var-annotated]
    work = [(i, seeds) for i, (cell, seeds) in enumerate(plan(given.seeds)) if given.only in str(cell) and seeds]
    with multiprocessing.get_context("spawn").Pool(given.jobs) as pool:
        for subject, stages, runs, errors in pool.imap_unordered(_cell, [(i, s, given.seeds) for i, s in work]):
            row = rows.setdefault(subject, {"cells": 0, "runs": 0, "stages": [], "failed": 0})
            row["cells"] += 1
            row["runs"] += runs
            row["failed"] += len(errors)
            row["stages"] = sorted({*row["stages"], *stages})
            failed += errors
            for e in errors:
                print("FAILED", e, flush=True)
            write(given, rows, failed, time.perf_counter() - begun)
    raise SystemExit(bool(failed))


def write(given: Any, rows: dict[str, Any], failed: list[Any], seconds: float) -> None:
    """The table of what has run so far."""
    total = {k: sum(r[k] for r in rows.values()) for k in ("cells", "runs", "failed")}
    found = {
        "what": "simulated runs of the pipeline matrix, all checks on, each in its own order of threads and copies",
        "seeds for each subject and number of stages": given.seeds, "cells in all": len(list(plan(given.seeds))),
        "rounds of the blocks": FEW.tolist(), "seconds": round(seconds), "total": total,
        "by subject": dict(sorted(rows.items())), "failures": failed,
    }  # fmt: skip
    given.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
