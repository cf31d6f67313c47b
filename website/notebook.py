# SPDX-License-Identifier: Apache-2.0
"""The puzzles as a notebook: `python -m website.notebook` writes examples/puzzles/puzzles.ipynb of the files there."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "puzzles"
FILE = FOLDER / "puzzles.ipynb"
BEGIN = """# Twenty puzzles

Each cell is a kernel, or a layout, with a hole: `___`. Fill it, and run the cell: it prints `right`, or says what is
wrong. No GPU is needed. A hint: `!python answers.py 7`; the answer: `!python answers.py 7 --show`."""


def cells(file: Path) -> list[dict[str, Any]]:
    """The text and the code of a puzzle."""
    code = file.read_text()
    module = ast.parse(code)
    title, _, task = (ast.get_docstring(module) or "").partition("\n")
    first = module.body[1].lineno - 1
    body = "\n".join(code.splitlines()[first:])
    return [text(f"## {title}\n{task}", file.stem), source("code", body, file.stem)]


def text(words: str, name: str) -> dict[str, Any]:
    return source("markdown", words, f"{name}_task")


def source(kind: str, words: str, name: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "id": name, "metadata": {}, "source": words.splitlines(keepends=True)}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def notebook() -> str:
    made = [text(BEGIN, "begin")]
    for file in sorted(FOLDER.glob("[0-9]*.py")):
        made += cells(file)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(notebook())
