# SPDX-License-Identifier: Apache-2.0
"""Simulate the matrix in many orders of threads and copies, with every check on, prove each run, and write down what
was found.

    python -m tests.pipeline.seeds --seeds 50 --jobs 16

For each subject and number of stages, `--seeds` runs with as many seeds, shared out among the cells (producers,
consumers, clusters), of which each has one at least; each run has the rounds of `FEW`, zero among them. What has run is
in benchmarks/results/pipelines.json, or `--out`, within seconds; cells that run again have new entries, and the others
stay. `--rest` runs what is not there yet.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import numba_cute as cute
from numba_cute.sim.prove.proof import Proof

from ..conftest import Places, poison
from . import cases
from .cases import Case, Cell

FEW = np.array([2, 0, 3], np.int32)
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "pipelines.json"
_EVERY = 5
"""Seconds between two writings of the table."""


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


def simulate(cell: Cell, seed: int) -> Proof:
    """One order of one cell, and what it proves: an error unless the numbers are right and every check is silent."""
    case = cell.make(np.random.default_rng(seed), FEW)
    fill(case)
    args = Places(lambda a: a).arguments(case.arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        proof = cute.simulate(case.kernel, seed=seed, arch=case.arch).prove()[case.grid, case.block](*args)
    show_wrong(case)
    return proof


def plan(seeds: int) -> Iterator[tuple[Cell, range]]:
    """Each cell with its seeds: those of one subject and number of stages get all seeds between them."""

    def key(cell: Cell) -> Any:
        return cell.subject, cell.facts.get("stages", 0)

    for _, group in itertools.groupby(sorted(cases.all_cells(), key=key), key=key):
        cells = list(group)
        for i, cell in enumerate(cells):
            yield cell, range(i, max(seeds, i + 1), len(cells))


def _run(work: tuple[str, int]) -> tuple[str, int, dict[str, Any]]:
    """The cell's name, the seed, and what came of this run."""
    name, seed = work
    cell = next(c for c in cases.all_cells() if str(c) == name)
    start, found = time.process_time(), {}  # type: ignore[var-annotated]
    try:
        proof = simulate(cell, seed)
        found = {"assumed": proof.assumptions, "not proved": proof.conflicts}
    except Exception as e:  # all of them are wanted in the table
        found = {"failed": (f"seed {seed}: {type(e).__name__}: {e}",)}
    return name, seed, {**found, "seconds": time.process_time() - start}


class Table:
    """What has run. cells: by its name each cell's seeds, CPU seconds, assumptions, and what is not proved or wrong."""

    def __init__(self, path: Path) -> None:
        self.path, self._written = path, 0.0
        self.cells: dict[str, dict[str, Any]] = json.loads(path.read_text())["cells"] if path.exists() else {}

    def add(self, name: str, seed: int, found: dict[str, Any]) -> None:
        """Note a run, and write it down soon."""
        entry = self.cells.setdefault(name, {"seeds": [], "seconds": 0.0})
        entry["seeds"] = sorted({*entry["seeds"], seed})
        entry["seconds"] = round(entry["seconds"] + found.pop("seconds"), 2)
        for what, texts in found.items():
            if texts:
                entry[what] = sorted({*entry.get(what, ()), *texts})
        if time.monotonic() - self._written > _EVERY:
            self.write()

    def write(self) -> None:
        """Write all of it, a line for each cell, with sums over all and by subjects."""
        subjects = {str(c): c.subject for c in cases.all_cells()}
        cells = {name: self.cells[name] for name in subjects if name in self.cells}
        rows: dict[str, Counter[str]] = {}
        for name, entry in cells.items():
            rows.setdefault(subjects[name], Counter()).update(_sums(entry))
        head = {
            "what": "simulated runs of the pipeline matrix, all checks on, each in its own order of threads and "
            "copies, and each proved for all orders",
            "rounds of the blocks": FEW.tolist(), "cells in all": len(subjects),
            "total": _shown(sum(rows.values(), Counter())),
            "by subject": {subject: _shown(row) for subject, row in sorted(rows.items())},
        }  # fmt: skip
        lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in cells.items())
        text = json.dumps(head, indent=1).removesuffix("\n}") + f',\n "cells": {{\n{lines}\n }}\n}}\n'
        part = self.path.with_suffix(".part")
        part.write_text(text)
        part.replace(self.path)
        self._written = time.monotonic()


def _sums(entry: dict[str, Any]) -> dict[str, Any]:
    right = "failed" not in entry
    return {
        "cells": 1, "runs": len(entry["seeds"]), "proved": right and "not proved" not in entry,
        "proved with assumptions": right and "assumed" in entry, "failed": not right, "CPU seconds": entry["seconds"],
    }  # fmt: skip


def _shown(sums: Counter[str]) -> dict[str, int]:
    names = ("cells", "runs", "proved", "proved with assumptions", "failed", "CPU seconds")
    return {name: round(sums[name]) for name in names}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--only", default="", help="the cells whose name has this in it")
    parser.add_argument("--rest", action="store_true", help="only the runs that are not in the table")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    given = parser.parse_args()
    table = Table(given.out)
    work = [(str(cell), seed) for cell, seeds in plan(given.seeds) for seed in seeds if given.only in str(cell)]
    if given.rest:
        work = [(name, seed) for name, seed in work if seed not in table.cells.get(name, {}).get("seeds", ())]
    else:
        for name, _ in work:
            table.cells.pop(name, None)
    with multiprocessing.get_context("spawn").Pool(given.jobs) as pool:
        for name, seed, found in pool.imap_unordered(_run, work):
            for what in ("failed", "not proved"):
                for text in found.get(what, ()):
                    print(f"{name}: {what}: {text}", flush=True)
            table.add(name, seed, found)
    table.write()
    raise SystemExit(any("failed" in e or "not proved" in e for e in table.cells.values()))


if __name__ == "__main__":
    main()
