# SPDX-License-Identifier: Apache-2.0
"""What the cases of all runs together came to: benchmarks/results/entries.json, which the harness alone writes.

It adds up: by entry the cases, how many were right, refused, or a fault; the words of refusals, their numbers left out;
the faults, of which each names the commit that it was found in; and how often each option was drawn.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from ..pool import ROOT

RESULT = ROOT / "benchmarks" / "results" / "entries.json"
VALUES, OTHERS = 16, "others"
"""Values of an option that are counted apart, and the name of all further ones."""


def commit() -> str:
    """Name the commit of the tree, with a "+" where the library differs from it."""
    said = [subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.strip() for words in (
        ("rev-parse", "--short=12", "HEAD"), ("status", "--porcelain", "--", "numba_cute", "tests/fuzz"))]  # fmt: skip
    return said[0] + "+" * bool(said[1])


def words_of(why: str) -> str:
    """Give a refusal's words, numbers left out, so that those of one rule are one."""
    said = re.sub(r"^CuteError: ", "", why.split("\n")[0])
    said = re.sub(r"\([-\d., ]*\)", "(…)", said)
    return re.sub(r"-?\b\d+\b(?!-bit)", "N", said)


def empty() -> dict[str, Any]:
    return {"all": {}, "entries": {}, "refusals": {}, "faults": [], "drawn": {}, "runs": []}


def add(totals: dict[str, Any], found: dict[str, Any], at: str) -> None:
    """Count one case. found: as the worker gave it. at: the commit."""
    name, kind = found["label"].split()[0], found["kind"]
    for counts in (totals["all"], totals["entries"].setdefault(name, {})):
        for what in ("ran", kind):
            counts[what] = counts.get(what, 0) + 1
    if kind == "refused":
        said = totals["refusals"].setdefault(name, {})
        said[words_of(found["why"])] = said.get(words_of(found["why"]), 0) + 1
    elif kind != "right":
        why = str(found.get("why") or found.get("where"))[-400:]
        totals["faults"].append({"case": found["label"], "commit": at, "kind": kind, "why": why})
    for option, value in found.get("drawn", []):
        values = totals["drawn"].setdefault(name, {}).setdefault(option, {})
        value = value if value in values or len(values) < VALUES else OTHERS
        values[value] = values.get(value, 0) + 1


def write(totals: dict[str, Any], path: Path = RESULT) -> None:
    path.write_text(json.dumps(totals, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def read(path: Path = RESULT) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.exists() else empty()
