# SPDX-License-Identifier: Apache-2.0
"""What all benchmarks share: an entry and its figures, the machine, tables, files, the history, what has changed.

A benchmark is a module of this folder with an `ENTRY`; nothing else names it. Its results go to
results/<name>_<machine>.json, and a line with its figures to results/history/<name>.jsonl.
"""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
SHARED = ("__init__", "__main__", "code_kernels", "contests", "harness", "machine_code", "plots")
NOISE = 0.03  # of a figure whose spread nobody knows


@dataclass(frozen=True)
class Figure:
    """What was measured. unit: as "TFLOP/s" or "us". more_is_better: of a rate, and not of a time. interval: what holds
    it with 95% confidence. peer: whether it is another's, for comparison alone."""

    value: float
    unit: str
    more_is_better: bool = False
    interval: tuple[float, float] | None = None
    peer: bool = False


@dataclass(frozen=True)
class Result:
    """What a benchmark gives: its figures by name, and whatever else belongs in its file."""

    figures: dict[str, Figure]
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """A benchmark. name: also of its files. about: a line on it. run: gives the result, of parsed options.
    arguments: adds its options to a parser. gpu: whether it needs one; None of what uses one if it is there. anywhere:
    whether its figures are the same on every machine."""

    name: str
    about: str
    run: Callable[[argparse.Namespace], Result]
    arguments: Callable[[argparse.ArgumentParser], Any] = lambda parser: None
    gpu: bool | None = False
    anywhere: bool = False

    @property
    def on_gpu(self) -> bool:
        """Whether it measures a GPU here."""
        return has_gpu() if self.gpu is None else self.gpu


def names() -> list[str]:
    """The modules of this folder that are benchmarks."""
    found = sorted(p.stem for p in Path(__file__).parent.glob("*.py") if p.stem not in SHARED)
    return [n for n in found if re.search(r"^ENTRY = ", (Path(__file__).parent / f"{n}.py").read_text(), re.MULTILINE)]


def load(name: str) -> Entry:
    """A benchmark's entry; ImportError says what it needs and is not here."""
    for folder in (str(ROOT / "examples"), str(ROOT)):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    return importlib.import_module(f"benchmarks.{name}").ENTRY


def has_gpu() -> bool:
    from numba import cuda

    return bool(cuda.is_available())


def machine() -> dict[str, Any]:
    """What this runs on: the GPU if there is one, the processor, versions, the date, and the commit."""
    from numba_cute.compiler.host.stopwatch import Stopwatch
    from numba_cute.testing import machine

    found = machine(Stopwatch().facts() if has_gpu() else None)
    return {**found, "commit": commit()}


def commit() -> str | None:
    """The commit that is checked out, with "+" where files differ from it; None outside of a checkout."""
    git = lambda *args: subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: E731
    head = git("rev-parse", "--short", "HEAD")
    if head.returncode:
        return None
    return head.stdout.strip() + ("+" if git("status", "--porcelain", "--untracked-files=no").stdout.strip() else "")


def place(where: dict[str, Any], entry: Entry) -> str:
    """The machine in a file's name: its GPU, or of a benchmark without one its processor; "" where it is the same."""
    if entry.anywhere:
        return ""
    gpu = entry.on_gpu
    return re.sub(r"\W+", "_", (where.get("gpu") if gpu else None) or platform.machine()).strip("_").lower()


def save(entry: Entry, result: Result, where: dict[str, Any], results: Path = RESULTS) -> Path:
    """Write the result's file, and its line of the history; gives the file."""
    figures = {name: asdict(f) for name, f in result.figures.items()}
    there = place(where, entry)
    file = results / f"{entry.name}{there and '_'}{there}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    held = {"benchmark": entry.name, "machine": where, "figures": figures, **result.details}
    file.write_text(json.dumps(held, indent=1) + "\n")
    history = results / "history" / f"{entry.name}.jsonl"
    history.parent.mkdir(exist_ok=True)
    line = {"date": where["date"], "commit": where["commit"], "place": there, "figures": figures}
    with history.open("a") as out:
        out.write(json.dumps(line) + "\n")
    return file


def past(name: str, results: Path = RESULTS) -> list[dict[str, Any]]:
    """The lines of a benchmark's history, the oldest first."""
    file = results / "history" / f"{name}.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines() if line] if file.exists() else []


def last(name: str, where: str, results: Path = RESULTS) -> dict[str, Figure]:
    """The newest figures of a benchmark on such a machine; none, if there are none."""
    lines = [line for line in past(name, results) if line["place"] == where]
    return {n: Figure(**f) for n, f in lines[-1]["figures"].items()} if lines else {}


def change(now: Figure, before: Figure) -> tuple[float, bool]:
    """How much better a figure is than before (0.1 for 10%, less than 0 for worse), and whether that is more than
    noise: than both intervals together, or where none is known than NOISE."""
    ratio = now.value / before.value if before.value else 1.0
    better = ratio - 1 if now.more_is_better else (1 / ratio - 1 if ratio else 0.0)
    intervals = [f.interval for f in (now, before)]
    if None in intervals:
        return better, abs(better) > NOISE
    (low, high), (old_low, old_high) = intervals  # type: ignore[misc]
    return better, low > old_high or high < old_low


def table(figures: dict[str, Figure], before: dict[str, Figure]) -> str:
    """The figures in lines, with what they were and what that changed."""
    width = max(map(len, figures), default=0)
    lines = []
    for name, f in figures.items():
        line = f"    {name:{width}} {f.value:10.4g} {f.unit:8}"
        if f.interval:
            line += f" ({f.interval[0]:.4g} to {f.interval[1]:.4g})"
        if name in before:
            better, certain = change(f, before[name])
            said = "faster" if better > 0 else "SLOWER"
            line += f"   was {before[name].value:.4g}" + (f": {abs(better):.1%} {said}" if certain else "")
        lines.append(line)
    return "\n".join(lines)


def perform(entry: Entry, options: argparse.Namespace, results: Path = RESULTS, keep: bool = True) -> Result:
    """Run a benchmark, print its table beside the last one, and keep it."""
    where = machine()
    result = entry.run(options)
    there = place(where, entry)
    print(f"{entry.name}: {entry.about} ({there or 'any machine'}, {where['commit']})")
    print(table(result.figures, last(entry.name, there, results)))
    if keep:
        print(f"    wrote {save(entry, result, where, results)}")
    return result


def parser(entry: Entry, doc: str | None) -> argparse.ArgumentParser:
    """The command line of one benchmark."""
    made = argparse.ArgumentParser(
        prog=f"python -m benchmarks {entry.name}", description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--results", type=Path, default=RESULTS, help="the folder of results")
    made.add_argument("--no-keep", action="store_true", help="print, and write nothing")
    entry.arguments(made)
    return made


def main(entry: Entry, doc: str | None, arguments: list[str] | None = None) -> Result:
    """Run one benchmark by its own command line."""
    options = parser(entry, doc).parse_args(arguments)
    return perform(entry, options, options.results, not options.no_keep)
