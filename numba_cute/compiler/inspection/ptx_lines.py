# SPDX-License-Identifier: Apache-2.0
"""PTX instructions and the source they come from, by the `.loc` directives of a kernel compiled with line info."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...seam.ground.records import dataclass

_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:.*inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?")
_FILE = re.compile(r'\.file\s+(\d+)\s+"([^"]*)"')

Place = tuple[int, int, int]  # file, line, column


@dataclass(frozen=True)
class Placed:
    """One instruction, and the file, line and column of the statement of the kernel itself that it comes from (file ""
    and line 0 if the compiler names none)."""

    text: str
    file: str
    line: int
    column: int


def placed_instructions(ptx: str, kernel: str) -> list[Placed]:
    """Return the instructions of the entry `kernel`, in order."""
    files = {int(n): name for n, name in _FILE.findall(ptx)}
    within: dict[Place, Place] = {}
    at: Place = (0, 0, 0)
    out: list[Placed] = []
    for line in _body(ptx, kernel):
        loc = _LOC.match(line)
        if loc:
            at = _place(loc.group(1, 2, 3))
            if loc[4]:
                within[at] = _place(loc.group(4, 5, 6))
            continue
        file, row, column = _outermost(at, within)
        out.extend(Placed(text, files.get(file, ""), row, column) for text in _instructions(line))
    return out


def _place(found: tuple[str, ...]) -> Place:
    return int(found[0]), int(found[1]), int(found[2])


def _outermost(at: Place, within: dict[Place, Place]) -> Place:
    """Return the statement into which a place was inlined, however deep."""
    seen = set()
    while at in within and at not in seen:
        seen.add(at)
        at = within[at]
    return at


def _body(ptx: str, kernel: str) -> Iterator[str]:
    """Return the lines between the braces of an entry, stripped; instructions that span several lines are joined."""
    head = re.search(rf"\.entry\s+{re.escape(kernel)}\s*\(", ptx)
    if head is None:
        return
    start = ptx.index("\n{", head.end()) + 2
    held = ""
    for raw in ptx[start : ptx.index("\n}", start)].splitlines():
        line = raw.split("//", 1)[0].strip()
        if not line or line in ("{", "}", "},") or (line.endswith(":") and not held):
            continue
        if line.startswith((".loc", ".file")):
            yield line
            continue
        held = f"{held} {line}".strip()
        if held.endswith((";", "}")):
            yield held
            held = ""


def _instructions(line: str) -> Iterator[str]:
    """Return the instructions of one line: without directives, and without the braces round inline assembly."""
    text = re.sub(r"\s+", " ", line)
    if text.startswith("{ ") and text.endswith("}"):
        text = text[1:-1].strip()
    for part in re.findall(r"(?:\{[^}]*\}|[^;{])+;", text):
        part = part.strip()
        if not part.startswith("."):
            yield part[:-1].rstrip()
