# SPDX-License-Identifier: Apache-2.0
"""Measure this GPU, and write the table by which the plans of numba_cute.kernels choose (kernels/tuned/).

For products of several shapes the cuts that the model finds best are timed; the numbers of the model are then fitted to
all these times, and the best cuts are the table's rows. Thresholds of rows, permutes, rotary and attention are chosen
among some (tune_choices.py). The other numbers are taken from the nearest table, which the new one names.

python -m benchmarks tune                           a new table, in numba_cute/kernels/tuned/
python -m benchmarks tune --sizes 512x4096x4096     of these shapes
python -m benchmarks tune --no-choices              leave thresholds as they are in the nearest table
python -m benchmarks tune --rows                    keep the best cut of each shape in the table too
"""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from numba_cute.kernels import tuning
from numba_cute.kernels.gemm import Plan, plan as gemm_plan, tuned as of_gemm
from numba_cute.kernels.gemm.operands import Source

from . import harness, tune_choices
from .harness import Entry, Figure, Result

SIZES = (
    (16, 4096, 4096), (64, 4096, 4096), (128, 8192, 8192), (256, 512, 16384), (512, 4096, 4096), (1024, 1024, 1024),
    (2048, 2048, 2048), (3072, 3072, 3072), (4096, 4096, 4096), (8192, 1024, 8192), (8192, 8192, 512),
)  # fmt: skip
FITTED = ("k_tile", "l2", "memory", "launch", "epilogue", "cluster_sum", "split_sum", "split_column")
STEPS = (1.3, 1.1, 1.03, 1.01)


class Sample(NamedTuple):
    """A measurement. extents: M, N and K. cut: how they were cut. microseconds: that it took."""

    extents: tuple[int, int, int]
    cut: Plan
    microseconds: float


def fitted(numbers: Any, samples: Sequence[Sample], predict: Callable[[Any, Sample], float]) -> Any:
    """Fit a model's numbers to measurements: each is multiplied or divided by smaller and smaller steps as long as that
    makes the times that are predicted better, by their ratios to what was measured. What no sample depends on stays.

    numbers: to begin with. predict: `predict(numbers, sample)`, the model's microseconds."""

    def error(candidate: Any) -> float:
        return sum(math.log(predict(candidate, s) / s.microseconds) ** 2 for s in samples)

    best, least = numbers, error(numbers)
    for step in STEPS:
        better = True
        while better:
            better = False
            for place in places(best):
                for factor in (step, 1 / step):
                    candidate = scaled(best, place, factor)
                    found = error(candidate)
                    if found < least * (1 - 1e-6):
                        best, least, better = candidate, found, True
    return best


def places(numbers: Any) -> Iterable[tuple[str, Any]]:
    """Yield the name of each number that is fitted, and of one of several, its key."""
    for name in FITTED:
        value = getattr(numbers, name)
        yield from ((name, key) for key in value) if isinstance(value, dict) else [(name, None)]


def scaled(numbers: Any, place: tuple[str, Any], factor: float) -> Any:
    """Give the numbers with one of them multiplied."""
    name, key = place
    value = getattr(numbers, name)
    value = value * factor if key is None else {**value, key: value[key] * factor}
    return SimpleNamespace(**{**vars(numbers), name: value})


def samples_of(extents: tuple[int, int, int], found: Any) -> list[Sample]:
    """Give the measurements of a search. found: what `tuned.tune` gives."""
    cuts = {c: Plan(**dict(_read(part) for part in c.split(", "))) for c in found.record["measured"]}
    return [Sample(extents, cuts[c], t["median_us"]) for c, t in found.record["measured"].items()]


def _read(text: str) -> tuple[str, Any]:
    """A field of a cut, of its text."""
    name, _, value = text.partition("=")
    return name, {"True": True, "False": False}.get(value) if value in ("True", "False") else int(value)


class Shape(Source):
    """What of C a plan reads: its extents, and that rows are contiguous."""

    mode = 1

    def __init__(self, m: int, n: int) -> None:
        self.shape = (m, n)


def table(
    gpu: tuning.Gpu, search: Callable[[tuple[int, int, int]], Any], sizes: Sequence[tuple[int, int, int]],
    dtype: Any, date: str, rows: bool = False, choose: Callable[[tuning.Table], tuning.Table] | None = None,
) -> tuple[tuning.Table, list[Sample]]:  # fmt: skip
    """Measure, and give a GPU's table, and the measurements.

    search: gives of M, N and K what `tuned.tune` gives. dtype: of the operands. date: of today. rows: whether the best
    cuts are the table's rows. choose: gives a table with thresholds that were measured, or None. Numbers of what is not
    measured are those of the nearest table."""
    before, samples, best = tuning.near(gpu, tuning.tables()), [], []
    for extents in sizes:
        found = search(extents)
        samples += samples_of(extents, found)
        c, k = row_major(extents), extents[2]
        kind, of_row = gemm_plan.shape_of(c, k, dtype, 1, gemm_plan.RESULTS[dtype].width)
        best.append({"kind": kind, "extents": list(of_row), "cut": list(Plan(**found.best))})

    def predict(numbers: Any, s: Sample) -> float:
        return gemm_plan.modelled(s.cut, row_major(s.extents), s.extents[2], dtype, gpu.sms, known=numbers)

    numbers = {**before.numbers, "matmul": fitted(before.numbers["matmul"], samples, predict)}
    measured = "matmul"
    if choose is not None:
        numbers = choose(before._replace(numbers=numbers)).numbers
        measured += ", thresholds of " + ", ".join(dict.fromkeys(c.entry for c in tune_choices.CHOICES))
    by = f"python -m benchmarks tune ({measured}); the rest is of {before.gpu.name}, {before.date}: {before.by}"
    return tuning.Table(gpu, date, by, numbers, {"matmul": best if rows else []}), samples


def row_major(extents: tuple[int, int, int]) -> Any:
    """What a plan reads of C."""
    return Shape(*extents[:2])


def size(text: str) -> tuple[int, int, int]:
    parts = tuple(int(x) for x in text.split("x"))
    if len(parts) != 3:
        raise argparse.ArgumentTypeError(f"{text}: MxNxK")
    return parts


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sizes", type=size, nargs="+", default=SIZES, help="MxNxK")
    parser.add_argument("--keep", type=int, default=16, help="how many cuts that the model finds good are measured")
    parser.add_argument("--rows", action="store_true", help="keep the best cut of each shape in the table too")
    parser.add_argument("--no-choices", action="store_true", help="leave thresholds as they are in the nearest table")
    parser.add_argument("--folder", type=Path, default=tuning.FOLDER, help="where the table is written")


def run(options: argparse.Namespace) -> Result:
    import torch

    import numba_cute as cute
    from numba_cute.testing import Autotuned

    torch.cuda.init()
    tuned = Autotuned(of_gemm.tuned.function, dataclasses.replace(of_gemm.tuned.options, keep=options.keep))

    def search(extents: tuple[int, int, int]) -> Any:
        m, n, k = extents
        a, b = (torch.randn(s, device="cuda").to(torch.bfloat16) for s in ((m, k), (n, k)))
        found = tuned.tune(a, b, torch.empty(m, n, device="cuda", dtype=torch.bfloat16), cute.BFloat16, again=True)
        print(found)
        return found

    def choose(known: tuning.Table) -> tuning.Table:
        return tune_choices.chosen(known, tune_choices.cases_here(), tune_choices.seconds)

    made, samples = table(
        tuning.here(), search, options.sizes, cute.BFloat16, harness.machine()["date"][:10], options.rows,
        None if options.no_choices else choose,
    )  # fmt: skip
    file = tuning.file_of(made.gpu, options.folder)
    if not options.no_keep:
        file.write_text(tuning.written(made))
        print(f"wrote {file}")
    return Result(figures_of(samples), {"samples": [[*s.extents, list(s.cut), s.microseconds] for s in samples]})


def figures_of(samples: Sequence[Sample]) -> dict[str, Figure]:
    """The least time of each shape."""
    found: dict[str, Figure] = {}
    for s in sorted(samples, key=lambda s: -s.microseconds):
        found["bf16 " + " x ".join(map(str, s.extents))] = Figure(s.microseconds, "us")
    return found


ENTRY = Entry("tune", "this GPU's table of tuning, by which plans choose", run, arguments, gpu=True)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
