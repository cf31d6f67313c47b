# SPDX-License-Identifier: Apache-2.0
"""docs/cli.md: its file saxpy.py, and its commands with what they print. `python -m tests.cli.page` writes it anew."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path

from numba_cute.__main__ import main

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
PROGRAM = "$ python -m numba_cute "
_BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
_FILE = re.compile(r"```python\n# saxpy\.py\n(.*?)```", re.DOTALL)
_CHANGING = (
    (r"\d+\.\d s\)", "… s)"), (r"\d+ lines of PTX, [\d,]+ bytes", "… lines of PTX, … bytes"),
    (r"numba_cute \d+\.\d+\.\d+", "numba_cute …"), (r" +\n", "\n"),
)  # fmt: skip
"""What differs between machines, versions and runs."""


def commands() -> list[tuple[str, str]]:
    """The page's commands, each with what it prints there."""
    found = []
    for block in _BLOCK.findall(PAGE.read_text()):
        for part in block.split(PROGRAM)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output.rstrip("\n")))
    return found


def write_file(folder: Path) -> None:
    """Write the page's saxpy.py."""
    (folder / "saxpy.py").write_text(_FILE.search(PAGE.read_text())[1])


def printed(command: str, folder: Path) -> str:
    """Run a command in a folder, and return what it prints, without what changes."""
    out, here = io.StringIO(), os.getcwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), contextlib.suppress(SystemExit):
            main(shlex.split(command))
    finally:
        os.chdir(here)
    text = out.getvalue().replace(f"{folder}/", "")
    for pattern, masked in _CHANGING:
        text = re.sub(pattern, masked, text)
    return text.rstrip("\n")


def compared(text: str) -> list[str]:
    """What of an output is the same with every toolkit: all but instructions, and how many registers they take."""
    lines = re.sub(r"(registers +)\d+|\d+( instructions)|(\.\.\. )\d+", r"\1…\2\3", text).splitlines()
    return [line for line in lines if not line.startswith("            | ")]


def record() -> None:
    """Write what the commands print now."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        write_file(folder)

        def block(found: re.Match[str]) -> str:
            parts = [p.partition("\n")[0] for p in found[1].split(PROGRAM)[1:]]
            told = [f"{PROGRAM}{c}\n{_anyones(printed(c, folder))}\n" for c in parts]
            return "```console\n" + "\n".join(told) + "```"

        PAGE.write_text(_BLOCK.sub(block, PAGE.read_text()))


def _anyones(text: str) -> str:
    """An output without the paths of who records it."""
    return text.replace(sys.prefix, "/home/you/venv").replace(str(Path.home()), "/home/you")


if __name__ == "__main__":
    os.environ["COLUMNS"] = "110"
    sys.exit(record())
