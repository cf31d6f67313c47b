# SPDX-License-Identifier: Apache-2.0
"""Tutorials: a page's Python blocks are its script, and what they print stands below them.

    python -m website.tutorials [NAME…]      writes examples/tutorials/NAME.py, and into docs/tutorials/NAME.md what
                                             that prints

A block that begins ```python is part of the script, and the ```text block below it, if any, is what it printed. One
that begins ```py quotes a file, which its first line names; tests/site checks that the file has these lines.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path
from types import CodeType

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "tutorials"
SCRIPTS = ROOT / "examples" / "tutorials"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
QUOTE = re.compile(r"^```py\n# (\S+)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
NAMES = sorted(p.stem for p in PAGES.glob("[0-9]*.md"))


def page(name: str) -> str:
    return (PAGES / f"{name}.md").read_text()


def blocks(text: str) -> list[tuple[str, str]]:
    """(code, what it prints) of each block."""
    return [(m[1], m[2] or "") for m in BLOCK.finditer(text)]


def script(text: str) -> str:
    """The script of a page's text; its first paragraph is the docstring."""
    title = text.partition("\n")[0].lstrip("# ")
    name = re.sub(r"^\d+\. ", "", title)
    head = f'# SPDX-License-Identifier: Apache-2.0\n"""{name}: the script of docs/tutorials."""\n\n'
    return head + "\n\n".join(code.rstrip("\n") + "\n" for code, _ in blocks(text))


def pieces(text: str, file: Path) -> list[CodeType]:
    """The script's statements, compiled by block, with the places that they have in the file."""
    statements = ast.parse(file.read_text()).body[1:]
    out = []
    for code, _ in blocks(text):
        count = len(ast.parse(code).body)
        part, statements = statements[:count], statements[count:]
        out.append(compile(ast.Module(part, []), str(file), "exec"))
    return out


def printed(text: str, file: Path) -> list[str]:
    """What each block prints when the script runs."""
    scope = {"__name__": f"tutorial_{file.stem}", "__file__": str(file)}
    out = []
    for code in pieces(text, file):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(code, scope)
        out.append("".join(line.rstrip() + "\n" for line in said.getvalue().splitlines()))
    return out


def with_outputs(text: str, outputs: list[str]) -> str:
    """The page with these outputs below its blocks."""
    waiting = iter(outputs)

    def block(match: re.Match[str]) -> str:
        said = next(waiting)
        return f"```python\n{match[1]}```\n" + (f"\n```text\n{said}```\n" if said else "")

    return BLOCK.sub(block, text)


def not_in_their_file(text: str) -> list[str]:
    """Lines that a page quotes of a file that has them not, one behind the other; `...` leaves some out."""
    missing = []
    for name, quoted in QUOTE.findall(text):
        waiting = iter([line.strip() for line in (ROOT / name).read_text().splitlines()])
        for line in filter(None, (line.strip() for line in quoted.splitlines())):
            if line != "..." and not any(line == found for found in waiting):
                missing.append(f"{name}: {line}")
                break
    return missing


def write(name: str) -> None:
    text, file = page(name), SCRIPTS / f"{name}.py"
    file.write_text(script(text))
    for command in (["check", "-q", "--fix", "--select", "I"], ["format", "-q"]):
        subprocess.run([Path(sys.executable).with_name("ruff"), *command, file], check=True)
    (PAGES / f"{name}.md").write_text(with_outputs(text, printed(text, file)))


if __name__ == "__main__":
    for given in sys.argv[1:] or NAMES:
        write(given)
        print(given, flush=True)
