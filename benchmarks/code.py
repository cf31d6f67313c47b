# SPDX-License-Identifier: Apache-2.0
"""What machine code kernels become: registers, spills, instructions by kind, in the main loop and in all. Needs no GPU.

Kernels of ours, and with `--checkout` files of NVIDIA/cutlass as they are, are compiled, assembled and disassembled;
figures of NVIDIA's own compiler for the same source stand beside, where they are known. What is kept is compared in
tests (`grown`), so that a change which makes a loop longer is seen.

    python -m benchmarks code
    python -m benchmarks code --kernels "hopper" "attention forward" --no-keep
    python -m benchmarks code --checkout ~/cutlass/examples/python/CuTeDSL
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

from tqdm import tqdm

import numba_cute as cute
from numba_cute import config

from . import harness
from .code_kernels import BLOCKS, FILES, MARK, OURS, THEIRS, File, figures_of
from .harness import ROOT, Entry, Figure, Result

KEPT = harness.RESULTS / "code.json"
SHOWN = ("registers", "spill_stores", "spill_loads", "all", "loop")
MADE_WITH = ("numba", "numba-cuda", "nvidia-nvvm", "nvidia-cuda-nvcc")
WIDTHS = 12, 14, 14, 12, 14, 14
LOOP_SLACK, ALL_SLACK = 9, 0.03
"""How many more instructions the main loop may have than is kept, and of all instructions which part more."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kernels", nargs="*", default=[""], help="parts of names; all by default")
    parser.add_argument("--checkout", type=Path, help="examples/python/CuTeDSL of a checkout of NVIDIA/cutlass")
    parser.add_argument("--names", action="store_true", help="print how many instructions there are of each name")


def run(options: argparse.Namespace) -> Result:
    chosen = lambda names: [n for n in names if any(part in n for part in options.kernels)]  # noqa: E731
    files = chosen(FILES) if options.checkout else []
    found: dict[str, dict[str, Any]] = {}
    for name in tqdm([*chosen(OURS), *files], disable=None):
        found[name] = _of_ours(name) if name in OURS else _of_file(options.checkout.resolve(), FILES[name])
    print(table(found))
    if options.names:
        for name, held in found.items():
            print(f"{name}: {held['names']}")
    for held in found.values():
        del held["names"]
    every = {**kept(), **found}  # what was not chosen stays as it was
    figures = {
        f"{name}: {what}": Figure(held[what], "")
        for name, held in every.items()
        for what in ("all", "loop")
        if what in held
    }
    return Result(figures, {"kernels": every})


def _of_ours(name: str) -> dict[str, Any]:
    with warnings.catch_warnings(), config.override(cache=False):
        warnings.simplefilter("ignore")  # what costs speed shows in the figures
        try:
            return figures_of(OURS[name]())
        except cute.CuteError as e:
            return {"refused": str(e)[:300], "names": {}}


def _of_file(root: Path, file: File) -> dict[str, Any]:
    """The figures of a file, of a process of its own: the hook that answers its imports stays."""
    given = [str(root), str(root / "cute" / file.path), file.target, *file.arguments.split()]
    command = [sys.executable, "-m", "benchmarks.code_kernels", *given]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    line = next((ln for ln in done.stdout.splitlines() if ln.startswith(MARK)), None)
    if line is None:
        return {"refused": done.stderr.strip()[-300:], "names": {}}
    found: dict[str, Any] = json.loads(line.removeprefix(MARK))
    return found


def kept() -> dict[str, dict[str, Any]]:
    """The figures by kernel that are kept in the file of results."""
    found: dict[str, dict[str, Any]] = json.loads(KEPT.read_text())["kernels"] if KEPT.exists() else {}
    return found


def comparable() -> bool:
    """Whether what is kept was made with the compiler and the assembler that are here."""
    there, here = json.loads(KEPT.read_text())["machine"]["versions"], harness.machine()["versions"]
    return all(there[name] == here[name] for name in MADE_WITH)


def table(found: dict[str, dict[str, Any]]) -> str:
    """The figures in lines, NVIDIA's before a stroke where they are known, and then the `ratios`."""
    heads = zip(("registers", "spills", "all", "loop", "other in it", "ratios"), WIDTHS)
    lines = [f"{'NVIDIA / ours':46}" + "".join(f"{head:>{width}}" for head, width in heads)]
    for name, ours in found.items():
        if "refused" in ours:
            lines.append(f"{name:46}{ours['refused']}")
            continue
        theirs = THEIRS.get(name)
        both = lambda mine, other: f"{'' if other is None else f'{other} / '}{mine}"  # noqa: E731
        spills = f"{ours['spill_stores']}/{ours['spill_loads']}"
        cells = [
            both(ours["registers"], theirs and theirs.registers),
            both(spills, theirs and f"{theirs.spill_stores}/{theirs.spill_loads}"),
            both(ours["all"], theirs and theirs.all),
            both(ours["loop"] or "–", theirs and (theirs.loop or "–")),
            both(ours["loop_kinds"]["other"] if ours["loop"] else "–", theirs and (theirs.loop_other or "–")),
            ratios(name, ours),
        ]
        lines.append((f"{name:46}" + "".join(f"{cell:>{w}}" for cell, w in zip(cells, WIDTHS))).rstrip())
    return "\n".join(lines)


def ratios(name: str, ours: dict[str, Any]) -> str:
    """How many times as many instructions as theirs a kernel has, in all and in the loop, as `table` says it: with a
    loop for as many keys, or queries, of a block as theirs (`BLOCKS`)."""
    theirs = THEIRS.get(name)
    if theirs is None:
        return ""
    block, own_block = BLOCKS.get(name, (1, 1))
    loop = ours["loop"] * block / own_block
    every = (ours["all"] - ours["loop"] + loop) / theirs.all
    return f"{every:.2f}, {loop / theirs.loop:.2f}" if theirs.loop else f"{every:.2f}"


def grown(name: str, made: Any) -> list[str]:
    """Compare a compiled kernel with what is kept of it; gives what has grown, in words: registers, spills, the main
    loop by ten instructions or more, all of it by 3%. With another compiler or assembler nothing is compared."""
    if not comparable():
        return []
    before, now = kept()[name], figures_of(made)
    most = {
        **{what: before[what] for what in SHOWN[:3]},
        "all": int(before["all"] * (1 + ALL_SLACK)),
        "loop": before["loop"] + LOOP_SLACK,
    }
    again = f'if it is meant: python -m benchmarks code --kernels "{name}"'
    return [f"{name}: {what} {now[what]}, was {before[what]}; {again}" for what in SHOWN if now[what] > most[what]]


ENTRY = Entry("code", "machine code: registers, spills, instructions", run, arguments, anywhere=True)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
