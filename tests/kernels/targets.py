# SPDX-License-Identifier: Apache-2.0
"""Compile a call of each entry of `numba_cute.kernels` for GPUs of all families, and tabulate what the assembler says.

    python -m tests.kernels.targets [--jobs N] [NAME…]     needs torch, and no GPU

Writes benchmarks/results/targets.json, and the table of docs/kernels_made.md that is made of it: of each call and
target the kernel with most registers. Names of calls: those of first_calls.py; others keep what is recorded.
"""

from __future__ import annotations

import argparse
import json
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "benchmarks" / "results" / "targets.json"
PAGE = ROOT / "docs" / "kernels_made.md"
BEGIN, END = "<!-- targets -->\n", "<!-- end of targets -->\n"
TARGETS = ("sm_80", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a")
AT_ODDS = {"blockscaled_gemm": ("sm_100a", "sm_103a")}
"""Calls of other arguments on some targets: Blackwell's scales are of other blocks."""


def compiled(name: str, target: str) -> list[dict[str, Any]] | str:
    """What a call's kernels are on a target, or why it is refused."""
    from numba_cute import CuteError, kernels

    from .first_calls import CALLS, microscaled

    call = microscaled if target in AT_ODDS.get(name, ()) else CALLS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            made = kernels.warmup(call, arch=target)
        except CuteError as e:
            return str(e).splitlines()[0]
    found = []
    for warm in made:
        r = warm.compiled.resources
        found.append(
            {"kernel": warm.kernel, "registers": max((r.registers, *r.group_registers)),
             "spilled": r.spill_stores + r.spill_loads, "shared": r.shared + r.dynamic_shared}
        )  # fmt: skip
    return found


def cell(found: list[dict[str, Any]] | str) -> str:
    """A cell of the table."""
    if isinstance(found, str):
        return "refused"
    if not found:
        return "no kernel"
    most = max(found, key=lambda k: k["registers"])
    spilled = sum(k["spilled"] for k in found)
    shared = max(k["shared"] for k in found) / 1024
    return f"{most['registers']}, {shared:.0f} KiB" + (f", **{spilled} B spilled**" if spilled else "")


def table(record: dict[str, dict[str, Any]]) -> str:
    """The table as docs/kernels_made.md has it."""
    lines = ["| call | " + " | ".join(TARGETS) + " |", "| --- |" + " --- |" * len(TARGETS)]
    lines += [f"| {name} | " + " | ".join(cell(of[t]) for t in TARGETS) + " |" for name, of in record.items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    from .first_calls import CALLS

    record = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    asked = [(n, t) for n in CALLS for t in TARGETS if not given.names or n in given.names]
    with ProcessPoolExecutor(given.jobs) as pool:
        for (name, target), found in zip(asked, pool.map(compiled, *zip(*asked))):
            record.setdefault(name, {})[target] = found
            print(f"{name} {target}: {cell(found)}", flush=True)
    record = {n: record[n] for n in CALLS if n in record}
    RESULT.write_text(json.dumps(record, indent=1) + "\n")
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(before + BEGIN + table(record) + END + after)


if __name__ == "__main__":
    main()
