# SPDX-License-Identifier: Apache-2.0
"""Pictures of what is kept: GEMMs beside their peers, the roofline, and each benchmark's history. PNG and SVG."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .harness import names, past

COLOURS = {"ours": "#4c8bf5", "cublas": "#76b900", "triton": "#e8710a"}
# By what a GPU calls itself: its memory in TB/s and dense products of 16-bit floats in TFLOP/s, by NVIDIA's datasheets.
ROOFS = {"NVIDIA H200": (4.8, 989.4), "NVIDIA H100 80GB HBM3": (3.35, 989.4)}
BYTES = {"bf16": 2, "f16": 2}


def draw(results: Path) -> list[Path]:
    """Draw all that a folder of results holds; gives the files."""
    return [f for make in (peers, roofline, history) for f in make(results)]


def pyplot() -> Any:
    try:
        import matplotlib
    except ImportError as e:
        raise SystemExit("plots need matplotlib: pip install --group bench (or pip install matplotlib)") from e
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "numba-cute", "font.size": 9, "axes.spines.top": False})
    matplotlib.rcParams.update({"axes.spines.right": False, "figure.constrained_layout.use": True})
    from matplotlib import pyplot

    return pyplot


def written(figure: Any, results: Path, stem: str) -> list[Path]:
    """Write a picture, the same bytes for the same figures."""
    folder = results / "plots"
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{stem}.{kind}" for kind in ("png", "svg")]
    figure.savefig(files[0], dpi=160, metadata={"Software": None})
    figure.savefig(files[1], metadata={"Date": None})
    pyplot().close(figure)
    return files


def gemms(results: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The files of GEMMs, with what they hold."""
    for file in sorted(results.glob("*gemm*_*.json")):
        held = json.loads(file.read_text())
        if isinstance(held, dict) and held.get("results"):
            yield file, held


def size_of(r: dict[str, Any]) -> str:
    return f"{r['m']}³" if r["m"] == r["n"] == r["k"] else f"{r['m']}×{r['n']}×{r['k']}"


def peers(results: Path) -> list[Path]:
    """Bars: the rate of each contender for each problem, with the least and the greatest round."""
    files = []
    for file, held in gemms(results):
        regimes = sorted({g["regime"] for r in held["results"] for g in r["regimes"]})
        figure, axes = pyplot().subplots(
            len(regimes), 1, figsize=(max(5.0, 1.1 * len(held["results"]) + 2), 2.9 * len(regimes)), squeeze=False
        )
        for axis, regime in zip(axes[:, 0], regimes):
            bars(axis, held["results"], regime)
        machine = held["machine"]
        figure.suptitle(f"GEMM, {machine['gpu']}, driver {machine.get('driver')}, {machine['date'][:10]}")
        files += written(figure, results, file.stem)
    return files


def bars(axis: Any, problems: list[dict[str, Any]], regime: str) -> None:
    labels, rates = [], defaultdict(list)
    for r in problems:
        for g in r["regimes"]:
            if g["regime"] == regime:
                labels.append(f"{r['dtype']}\n{size_of(r)}")
                for name, c in g["contenders"].items():
                    rates[name].append((len(labels) - 1, c["tflops"]))
    width = 0.8 / len(rates)
    for i, (name, rows) in enumerate(rates.items()):
        middles = [sorted(t)[len(t) // 2] for _, t in rows]
        errors = [[m - min(t) for m, (_, t) in zip(middles, rows)], [max(t) - m for m, (_, t) in zip(middles, rows)]]
        at = [x + (i - (len(rates) - 1) / 2) * width for x, _ in rows]
        axis.bar(at, middles, width, yerr=errors, label=name, color=COLOURS.get(name), error_kw={"lw": 0.8})
        for x, m in zip(at, middles):
            axis.text(x, m * 0.5, f"{m:.0f}", ha="center", va="center", rotation=90, color="white", fontsize=7)
    axis.set_xticks(range(len(labels)), labels, fontsize=7)
    axis.set_ylabel("TFLOP/s")
    axis.set_title(regime, fontsize=9)
    axis.legend(fontsize=7, ncols=len(rates), loc="upper center", bbox_to_anchor=(0.5, 1.2), frameon=False)


def roofline(results: Path) -> list[Path]:
    """The rate of each 16-bit GEMM over its operations a byte, beneath what memory and tensor cores allow."""
    by_gpu: dict[str, dict[str, list[tuple[float, float, str]]]] = defaultdict(lambda: defaultdict(list))
    for _, held in gemms(results):
        for r in held["results"]:
            if r["dtype"] not in BYTES or r.get("example", "hopper_gemm") != "hopper_gemm":
                continue
            m, n, k = r["m"], r["n"], r["k"]
            intensity = 2 * m * n * k / (BYTES[r["dtype"]] * (m * k + n * k + m * n))
            for g in (g for g in r["regimes"] if g["regime"] == "sustained"):
                for name, c in g["contenders"].items():
                    by_gpu[held["machine"]["gpu"]][name].append((intensity, c["tflops_median"], size_of(r)))
    files = []
    for gpu, contenders in by_gpu.items():
        if gpu in ROOFS:
            files += written(roof(gpu, contenders), results, f"roofline_{gpu.lower().replace(' ', '_')}")
    return files


def roof(gpu: str, contenders: dict[str, list[tuple[float, float, str]]]) -> Any:
    memory, most = ROOFS[gpu]
    figure, axis = pyplot().subplots(figsize=(6.4, 3.8))
    low, high = 20.0, 2.0 * max(i for points in contenders.values() for i, _, _ in points)
    ridge = most / memory
    axis.plot([low, ridge, high], [low * memory, most, most], color="#555", lw=1)
    axis.text(ridge * 1.1, most * 1.04, f"{most:.0f} TFLOP/s, {memory} TB/s (datasheet)", fontsize=7, color="#555")
    for name, points in contenders.items():
        axis.scatter(*zip(*[p[:2] for p in points]), s=18, label=name, color=COLOURS.get(name), zorder=3)
    labels = {what: (i, rate) for i, rate, what in contenders.get("ours", [])}
    for what, (i, rate) in labels.items():
        axis.annotate(what, (i, rate), fontsize=5.5, xytext=(3, -7), textcoords="offset points")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("operations a byte of A, B and C")
    axis.set_ylabel("TFLOP/s")
    axis.set_title(f"16-bit GEMMs on {gpu}, sustained", fontsize=9)
    axis.legend(fontsize=7, frameon=False)
    return figure


def history(results: Path) -> list[Path]:
    """The figures of each benchmark over time, by machine, each relative to its first."""
    files = []
    for name in names():
        by_place = defaultdict(list)
        for line in past(name, results):
            by_place[line["place"]].append(line)
        for where, lines in by_place.items():
            if len(lines) > 1:
                files += written(over_time(name, where, lines), results, f"history_{name}_{where}")
    return files


def over_time(name: str, where: str, lines: list[dict[str, Any]]) -> Any:
    figure, axis = pyplot().subplots(figsize=(7, 3.6))
    labels = [f"{line['date'][:10]}\n{line['commit']}" for line in lines]
    own = [n for n, f in lines[-1]["figures"].items() if not f["peer"]]
    for n in own:
        points = [(i, line["figures"][n]["value"]) for i, line in enumerate(lines) if n in line["figures"]]
        first = points[0][1] or 1.0
        axis.plot([i for i, _ in points], [v / first for _, v in points], marker="o", ms=3, lw=1, label=n)
    axis.set_xticks(range(len(labels)), labels, fontsize=6)
    axis.set_ylabel("of the first")
    axis.set_title(f"{name} on {where}", fontsize=9)
    axis.legend(fontsize=5.5, ncols=2, frameon=False)
    return figure
