# SPDX-License-Identifier: Apache-2.0
"""Makes docs/tested_versions.md of what runs recorded: `python -m tests.newest.page` writes it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from numba_cute.compiler.ground.versions import NUMBA_CUDA

from ..installs.__main__ import RESULTS as INSTALLS, dependencies
from ..installs.build import ROOT
from ..pythons.__main__ import RESULTS as PYTHONS
from .__main__ import RECORD, TOLD

PAGE = ROOT / "docs" / "tested_versions.md"
WATCHED = TOLD[1:]
BEGIN = f"""# Tested versions
Made by `python -m tests.newest.page` of the records in benchmarks/results.

**What is promised** stands in pyproject.toml:
{{bounds}}.
At import this package compares the code of numba-cuda that it leans on with {" and ".join(NUMBA_CUDA.tried)}, and
refuses another (`CuteError`). An environment that imports it has a numba-cuda that it was written for.

**If it is refused:** `pip install numba-cuda=={NUMBA_CUDA.tried[-1]}`. Where that is installed, something has
changed it; the error says what.
"""
NEWEST = """
## The newest releases
Each week the newest release of each package is tried by itself beside what is promised, then all of them together
(`python -m tests.newest`: the import, the names that are taken of them, code that is replaced, typing, lowering,
launches up to the driver, the bridge to numba-cuda-mlir). A failure opens an issue.
"""
INSTALLED = """
## Fresh installs
The wheel in an environment of its own, where the README's kernel is simulated and, but for `none` and `bare`,
assembled (`python -m tests.installs`). `oldest` has each dependency at the oldest version that it allows, `none` no
extra, `bare` nothing of CUDA, as on macOS.
"""
SUITES = """
## The whole suite
Of each Python, on the day and at the commit that the record names (`python -m tests.pythons`).
"""


def row(cells: Iterable[Any]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    head = [*head]
    return "\n".join([row(head), row("---" for _ in head), *map(row, rows)]) + "\n"


def _newest(record: dict[str, Any]) -> Iterator[list[Any]]:
    for what, made in record.items():
        held = made.get("versions", {})
        result = made["result"] if made["result"] != "failed" else f"failed: {made['step']}"
        yield [what, made["python"], *(held.get(name, "") for name in WATCHED), result, made["date"], made["commit"]]


def _installed(record: dict[str, Any]) -> Iterator[list[Any]]:
    names = ("numba", "numba-cuda", "cuda-core", "numpy", "llvmlite", "cuda-toolkit")
    for environment, made in sorted(record.items(), key=lambda item: [*map(int, re.findall(r"\d+", item[0])[:2])]):
        held = made.get("versions", {})
        yield [environment, *(held.get(name) or "" for name in names), made["result"]]


def _suites(record: dict[str, Any]) -> Iterator[list[Any]]:
    for wanted, made in sorted(record.items(), key=lambda item: [*map(int, item[0].split("."))]):
        told = made.get("then", "")
        again = made.get("again", {})
        if again:
            told += f"; at {again['commit']} {again['what']}: {again['passed']} passed, {again['failed']} failed"
        yield [wanted, made["date"], made["commit"], made["passed"], made["failed"], made["skipped"], told]


def page() -> str:
    """Give the text of the page."""
    newest, installs, suites = (json.loads(f.read_text()) for f in (RECORD, INSTALLS, PYTHONS))
    bounds = ", ".join(f"`{line.partition(';')[0]}`" for line in dependencies())
    parts = [
        BEGIN.replace("{bounds}", bounds),
        NEWEST, table(["tried", "Python", *WATCHED, "", "day", "commit"], _newest(newest)),
        INSTALLED,
        table(["Python, kind", "numba", "numba-cuda", "cuda-core", "numpy", "llvmlite", "cuda-toolkit", ""],
              _installed(installs)),
        SUITES, table(["Python", "day", "commit", "passed", "failed", "skipped", ""], _suites(suites)),
    ]  # fmt: skip
    return "\n".join(part.strip("\n") + "\n" for part in parts)


if __name__ == "__main__":
    PAGE.write_text(page())
