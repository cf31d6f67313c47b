# SPDX-License-Identifier: Apache-2.0
"""The statements of PTX, and the line of the user's that each is of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..seam.ground.packages import is_library_file

MBARRIER, FLAG, NAMED, BLOCK, CLUSTER = 1, 2, 3, 4, 5
OUTSIDE, MISALIGNED, OUTSIDE_SHARED, NOT_A_NUMBER, UNWRITTEN, ASSERTION = 10, 11, 12, 13, 14, 15
"""Kinds of records: waits, and what is wrong."""
WAITS = (MBARRIER, FLAG, NAMED, BLOCK, CLUSTER)


@dataclass(frozen=True)
class Site:
    """A place of a kernel's code that may write a record: `text`, the instruction, of the line `line` of `file`."""

    text: str
    file: str
    line: int


_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"((?:[^"\\]|\\.)*)"', re.MULTILINE)
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\s+\d+(.*)$")
_INLINED = re.compile(r"inlined_at\s+(\d+)\s+(\d+)\s+\d+")


class Lines:
    """Follows the `.loc` of PTX: the innermost line that is not this library's own."""

    def __init__(self, ptx: str) -> None:
        self._files = {int(n): name for n, name in _FILE.findall(ptx)}
        self.here = ("<unknown>", 0)

    def see(self, line: str) -> None:
        """Read a line of PTX."""
        found = _LOC.match(line)
        if found is None:
            return
        ways = [(found[1], found[2]), *_INLINED.findall(found[3])]
        places = [(self._files.get(int(f), "<unknown>"), int(n)) for f, n in ways if int(n)]
        users = [p for p in places if not is_library_file(p[0])]
        if users:
            self.here = users[0]


def statements(text: str) -> Iterator[str]:
    """Split PTX into its statements: braces of blocks, labels, and instructions without their semicolons."""
    part, depth = "", 0
    for c in text:
        if not part.strip() and c in "{}":
            yield c
            part = ""
        elif c == ";":
            yield part.strip()
            part = ""
        elif c == ":" and re.fullmatch(r"\s*[\w$%]+", part) and not depth:
            yield part.strip() + ":"
            part = ""
        else:
            part += c
    if part.strip():
        yield part.strip()


@dataclass(frozen=True)
class Statement:
    """An instruction, taken apart. guard: its predicate with a `!` if it is negated, "" for none. name: with its
    suffixes. operands: as they are written."""

    guard: str
    name: str
    operands: tuple[str, ...]

    @property
    def unguarded(self) -> str:
        """The guard under which it is not executed."""
        return self.guard[1:] if self.guard.startswith("!") else f"!{self.guard}"

    @property
    def suffixes(self) -> list[str]:
        """The parts of its name behind the first."""
        return self.name.split(".")[1:]


_STATEMENT = re.compile(r"^(?:@(!?[%\w$]+)\s+)?([a-z][\w:.]*)\s*(.*)$", re.DOTALL)
_OPERAND = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+")


def parsed(text: str) -> Statement | None:
    """Take an instruction apart; None if it is none."""
    found = _STATEMENT.match(text)
    return None if found is None else Statement(found[1] or "", found[2], tuple(_OPERAND.findall(found[3])))


_ADDRESS = re.compile(r"\[\s*(%?[\w$]+)\s*(?:\+\s*(-?\d+))?\s*\]$")
_BITS = re.compile(r"(?:b|u|s|f|bf)(8|16|32|64|128)(x2)?$")


@dataclass(frozen=True)
class Access:
    """An access to memory. space: "global", "shared", "local", "param", "const" or "" for a generic address. base,
    offset: the address, a register and bytes. size: bytes."""

    space: str
    base: str
    offset: int
    size: int
    width: int
    values: tuple[str, ...] = ()


def access_of(s: Statement) -> Access | None:
    """Return what an instruction of a thread accesses in memory by a register's address; None if it does not."""
    if s.name.partition(".")[0] not in ("ld", "st", "atom", "red"):
        return None
    address = next((a for a in map(_ADDRESS.match, s.operands) if a is not None), None)
    bits = next((b for b in map(_BITS.match, reversed(s.suffixes)) if b is not None), None)
    if address is None or bits is None or not address[1].startswith("%"):
        return None
    parts = [p.partition("::")[0] for p in s.suffixes]
    space = next((p for p in parts if p in ("global", "shared", "local", "param", "const")), "")
    if "shared::cluster" in s.suffixes:
        return None
    width = int(bits[1]) * (2 if bits[2] else 1) // 8
    count = next((int(p[1:]) for p in parts if p in ("v2", "v4", "v8")), 1)
    stored = s.operands[1] if s.name.startswith("st.") else ""
    values = tuple(re.findall(r"[^\s,{}]+", stored))
    return Access(space, address[1], int(address[2] or 0), width * count, width, values)
