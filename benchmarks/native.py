# SPDX-License-Identifier: Apache-2.0
"""What machine code kernels become by way of MLIR (`NUMBA_CUTE_BACKEND=mlir`), beside the usual. Needs no GPU, but
numba-cuda-mlir (the extra `mlir`).

    python -m benchmarks native
    python -m benchmarks native --kernels hopper README --no-keep
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

import numba_cute as cute
from numba_cute import config

from . import harness
from .code_kernels import OURS, figures_of
from .harness import ROOT, Entry, Figure, Result

KEPT = harness.RESULTS / "native.json"
MLIR = version("numba-cuda-mlir")  # an ImportError, where it is not installed: there is nothing to measure
SHOWN = ("registers", "spill_stores", "local", "all", "loop")
WAYS = {"usual": None, "mlir": "mlir"}


def _readme() -> Any:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "readme.py")
        file.write_text(code)
        scope: dict[str, Any] = {"__name__": "readme"}
        exec(compile(code, str(file), "exec"), scope)
        return cute.compile(scope["total"], (scope["tma"], scope["source"], scope["out"]), arch="sm_90a")


def _reduce() -> Any:
    import reduce

    args = reduce.arguments(np.zeros((64, 4096), np.float32), np.zeros(64, np.float32))[0]
    return cute.compile(reduce.root_mean_square, args, arch="sm_90a")


def _transpose() -> Any:
    import transpose

    args = transpose.arguments(*np.zeros((2, 512, 512), np.float32))[0]
    return cute.compile(transpose.transpose, args, arch="sm_90a")


KERNELS: dict[str, Callable[[], Any]] = {
    "README": _readme,
    "example reduce": _reduce,
    "example transpose": _transpose,
    **OURS,
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kernels", nargs="*", default=[""], help="parts of names; all by default")


def run(options: argparse.Namespace) -> Result:
    found: dict[str, dict[str, Any]] = {}
    for name in tqdm([n for n in KERNELS if any(part in n for part in options.kernels)], disable=None):
        found[name] = {way: _compiled(KERNELS[name], backend) for way, backend in WAYS.items()}
    print(table(found))
    before = json.loads(KEPT.read_text())["kernels"] if KEPT.exists() else {}
    every = {**before, **found}  # what was not chosen stays as it was
    figures = {
        f"{name}, {way}: {what}": Figure(held[way][what], "")
        for name, held in every.items()
        for way in WAYS
        for what in ("all", "loop")
        if what in held[way]
    }
    return Result(figures, {"numba-cuda-mlir": MLIR, "kernels": every})


def _compiled(make: Callable[[], Any], backend: str | None) -> dict[str, Any]:
    """The figures of a kernel that is compiled anew."""
    with warnings.catch_warnings(), config.override(cache=False, backend=backend):
        warnings.simplefilter("ignore")  # what costs speed shows in the figures
        try:
            made = make()
        except cute.CuteError as e:
            return {"refused": str(e)[:300]}
    held = {**figures_of(made), "local": made.resources.local}
    del held["names"]
    return held


def table(found: dict[str, dict[str, Any]]) -> str:
    """The figures in lines, the usual ones before a stroke."""
    lines = [f"{'usual / by MLIR':46}" + "".join(f"{what:>14}" for what in SHOWN)]
    for name, held in found.items():
        refused = next((h["refused"] for h in held.values() if "refused" in h), None)
        cells = [] if refused else [" / ".join(str(held[way][what] or "–") for way in WAYS) for what in SHOWN]
        lines.append(f"{name:46}" + (refused or "".join(f"{cell:>14}" for cell in cells)))
    return "\n".join(lines)


ENTRY = Entry("native", "machine code by way of MLIR, beside the usual", run, arguments, anywhere=True)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
