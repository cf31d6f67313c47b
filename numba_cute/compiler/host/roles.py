# SPDX-License-Identifier: Apache-2.0
"""Find the registers that each warpgroup of a kernel asks for (setmaxnreg), by following its PTX: at a branch whose
condition depends on the thread's index and constants alone, a warpgroup goes one way."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import field
from functools import partial
from typing import Any

from ...isa.form.limits import check_direction, check_registers, check_setmaxnreg, launched_registers, threads_of
from ...isa.form.targets import Target
from ...seam.ground.records import dataclass

_LANES = 128
_SETMAXNREG = re.compile(r"setmaxnreg\.(inc|dec)\.sync\.aligned\.u32 (\d+)$")
_STATEMENT = re.compile(r"(?:@(!?)(%\w+)\s+)?([\w.:]+)\s*(.*)", re.DOTALL)
_LABEL = re.compile(r"\s*([\w$]+):(?!:)")
_LEAVING = ("@", "bra", "ret", "exit", "trap")
_DEEP = 60
"""Operations that a condition may be computed by; of more it is not known."""

Values = tuple[int, ...]
"""The bits of a register in each thread of a warpgroup, as a number from 0 on."""
Counts = frozenset[int | None]
"""The registers of each thread that a warpgroup may have at a place; None: those of the launch."""


def check_roles(ptx: str, target: Target, bounds: Any) -> None:
    """Raise a CuteError if the warpgroups of a kernel ask for registers that its block can never have, or raise theirs
    by what lowers them. bounds: the kernel's `launch_bounds`, whose threads are taken for the block's."""
    threads = threads_of(bounds)
    if threads is None:
        return
    for count in re.findall(r"setmaxnreg\.inc\.sync\.aligned\.u32 (\d+)", ptx):
        check_setmaxnreg(target, int(count), threads, bounds)
    body = _read(ptx)
    if body is None or threads % _LANES:
        return
    begins = launched_registers(target, threads, bounds)
    asked: list[int] = []
    for group in range(threads // _LANES):
        ends = _Warpgroup(body, group, threads).ends(begins)
        if not ends:
            return
        asked.append(min(begins if count is None else count for count in ends))
    check_registers(target, asked, threads, bounds)


# ---------------------------------------------------------------- reading


@dataclass
class _Body:
    """A kernel's statements. labels: which statement follows each. sets: the one that alone sets a register; None of a
    register that several set, or one that is not understood."""

    statements: list[str] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    sets: dict[str, str | None] = field(default_factory=dict)


def _read(ptx: str) -> _Body | None:
    """Read a kernel; None if warpgroups cannot be followed through it: it calls what asks for registers, or jumps by a
    table."""
    entries = list(re.finditer(r"\.entry\s[^{]*", ptx))
    if len(entries) != 1:
        return None
    text = re.sub(r"//[^\n]*|^\s*\.loc\b[^\n]*", "", ptx[entries[0].end() :], flags=re.MULTILINE)
    body = _Body()
    end = 0
    for at, statement in _split(text):
        end = at
        while (label := _LABEL.match(statement)) is not None:
            body.labels[label[1]] = len(body.statements)
            statement = statement[label.end() :]
        statement = statement.strip()
        if statement:
            body.statements.append(statement)
    outside = ptx[: entries[0].start()] + text[end:]
    blocks = [s for s in body.statements if s.startswith("{")]
    if "setmaxnreg" in outside or any("setmaxnreg" in b for b in blocks) or "brx.idx" in text:
        return None
    for statement in body.statements:
        for register, by in _sets(statement):
            body.sets[register] = None if register in body.sets else by
    return body


def _split(text: str) -> Iterator[tuple[int, str]]:
    """Yield the statements of a body in braces, with where each ends; a block within it is one statement."""
    start, depth, inner = text.index("{") + 1, 0, False
    for found in re.compile("[{};]").finditer(text, start):
        c, at = found[0], found.start()
        if c == "{":
            inner = inner or not _LABEL.sub("", text[start:at]).strip()
            depth += 1
        elif c == "}" and depth == 0:
            yield at, text[start:at]
            return
        elif c == "}":
            depth -= 1
        if depth == 0 and (c == ";" or (c == "}" and inner)):
            yield at, text[start : at + (c == "}")]
            start, inner = at + 1, False


def _sets(statement: str) -> Iterator[tuple[str, str | None]]:
    """Yield the registers that a statement may set, with what sets each."""
    if statement.startswith("{"):
        for part in re.split(r"[;{}]", statement):
            yield from ((register, None) for register in _targets(part.strip()))
        return
    for register in _targets(statement):
        yield register, None if statement.startswith("@") else statement


def _targets(statement: str) -> list[str]:
    found = _STATEMENT.match(statement)
    if found is None or statement.startswith("."):
        return []
    first = re.match(r"\{[^}]*\}|\([^)]*\)|[^,]*", found[4])
    return re.findall(r"%\w+", first[0] if first is not None else "")


# ---------------------------------------------------------------- one warpgroup


class _Warpgroup:
    """Follows one warpgroup. group: its number. threads: of the block, which is taken for one of x alone: roles that
    are chosen by the linear index are the same in a block of any shape."""

    def __init__(self, body: _Body, group: int, threads: int) -> None:
        self._body = body
        first = group * _LANES
        self._special: dict[str, Values] = {
            "%tid.x": tuple(range(first, first + _LANES)),
            "%laneid": tuple(i % 32 for i in range(_LANES)),
            "%ntid.x": (threads,) * _LANES,
            **dict.fromkeys(("%tid.y", "%tid.z"), (0,) * _LANES),
            **dict.fromkeys(("%ntid.y", "%ntid.z"), (1,) * _LANES),
        }
        self._known: dict[str, Values | None] = {}

    def ends(self, begins: int) -> set[int | None]:
        """Return the registers of each thread that the warpgroup may have at its end. begins: those of the launch."""
        before: dict[int, Counts] = {0: frozenset([None])}
        ends: set[int | None] = set()
        left = [0]
        while left:
            at = left.pop()
            counts = before[at]
            if at >= len(self._body.statements):
                ends |= counts
                continue
            statement = self._body.statements[at]
            asks = _SETMAXNREG.search(statement) if "setmaxnreg" in statement else None
            if asks is not None:
                if len(counts) == 1 and not statement.startswith("@"):
                    check_direction(begins, next(iter(counts)), int(asks[2]), grows=asks[1] == "inc")
                asked = frozenset([int(asks[2])])
                counts = counts | asked if statement.startswith("@") else asked
            for after in self._following(at, statement):
                if after is None:
                    ends |= counts
                elif after not in before or not counts <= before[after]:
                    before[after] = before.get(after, frozenset()) | counts
                    left.append(after)
        return ends

    def _following(self, at: int, statement: str) -> list[int | None]:
        """Return where the warpgroup may go after a statement; None is its end, and after a trap there is nothing."""
        if not statement.startswith(_LEAVING):  # most of them
            return [at + 1]
        found = _STATEMENT.match(statement)
        name, operands = ("", "") if found is None else (found[3].split(".")[0], found[4])
        if name not in ("bra", "ret", "exit", "trap"):
            return [at + 1]
        there: list[int | None] = {"trap": []}.get(name, [None])
        if name == "bra":
            there = [self._body.labels[operands.strip()]]
        if found is None or found[2] is None:
            return there
        condition = self._value(found[2])
        if condition is None:
            return [*there, at + 1]
        taken = {bool(x) != (found[1] == "!") for x in condition}
        return [*(there if True in taken else []), *([at + 1] if False in taken else [])]

    def _value(self, operand: str, depth: int = 0) -> Values | None:
        """Return what an operand is in each thread; None if that is not known."""
        operand = operand.strip()
        if operand in self._special:
            return self._special[operand]
        if re.fullmatch(r"-?\d+|0x[0-9A-Fa-f]+", operand):
            return (int(operand, 0),) * _LANES
        if operand not in self._known:
            by = self._body.sets.get(operand)
            self._known[operand] = None  # of what is computed from itself
            self._known[operand] = None if by is None or depth > _DEEP else self._computed(by, depth + 1)
        return self._known[operand]

    def _computed(self, statement: str, depth: int) -> Values | None:
        found = _STATEMENT.match(statement)
        if found is None:
            return None
        name, *parts = found[3].split(".")
        _, *operands = found[4].split(",")
        compute = _operation(name, parts)
        if compute is None:
            return None
        values = [self._value(x, depth) for x in operands]
        if any(v is None for v in values):
            return None
        if name == "shfl":
            return _shuffled(*values[:3])  # type: ignore[arg-type]
        known: dict[tuple[int, ...], int] = {}  # most of a warpgroup's lanes have the same operands
        return tuple(
            [known[lanes] if lanes in known else known.setdefault(lanes, compute(*lanes)) for lanes in zip(*values)]
        )


def _shuffled(values: Values, lanes: Values, clamp: Values) -> Values | None:
    """Give what shfl.sync.idx gives for warps that are whole."""
    if set(clamp) != {31}:
        return None
    return tuple(values[i // 32 * 32 + lanes[i] % 32] for i in range(_LANES))


# ---------------------------------------------------------------- operations

_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge,
}  # fmt: skip
_BINARY: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "and": operator.and_, "or": operator.or_, "xor": operator.xor,
    "min": min, "max": max,
    "div": lambda a, b: 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "rem": lambda a, b: 0 if b == 0 else abs(a) % abs(b) * (-1 if a < 0 else 1),
}  # fmt: skip


def _operation(name: str, parts: list[str]) -> Callable[..., int] | None:
    """Return what an instruction on integers and predicates computes for a thread; None if it is not known here."""
    ty = parts[-1] if parts else ""
    if ty == "pred":
        known: dict[str, Callable[..., int]] = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}
        return {**known, "not": lambda a: 1 - a, "mov": lambda a: a}.get(name)
    if name == "shfl":
        return operator.pos if parts[:2] == ["sync", "idx"] else None
    if re.fullmatch(r"[bus](16|32|64)", ty) is None:
        return None
    of, bits = partial(_signed, ty=ty), int(ty[1:])
    whole = (1 << bits) - 1
    if name == "cvt" and len(parts) == 2 and re.fullmatch(r"[us](8|16|32|64)", parts[0]):
        to = (1 << int(parts[0][1:])) - 1
        return lambda a: of(a) & to
    if name in _BINARY and len(parts) == 1:
        return lambda a, b: _BINARY[name](of(a), of(b)) & whole
    if name == "setp" and len(parts) == 2 and parts[0] in _COMPARED:
        return lambda a, b: int(_COMPARED[parts[0]](of(a), of(b)))
    usual: dict[str, Callable[..., int]] = {
        "mov": lambda a: a & whole, "neg": lambda a: -a & whole, "not": lambda a: ~a & whole,
        "selp": lambda a, b, p: (a if p else b) & whole, "shl": lambda a, b: a << min(b, 64) & whole,
        "shr": lambda a, b: of(a) >> min(b, 64) & whole,
    }  # fmt: skip
    if parts[0] == "lo":
        usual = {"mul": lambda a, b: a * b & whole, "mad": lambda a, b, c: a * b + c & whole}
    if parts[0] == "wide":
        usual = {"mul": lambda a, b: of(a) * of(b) & ((1 << 64) - 1)}
    if name == "bfe" and ty[0] == "u":
        return lambda a, start, count: (a & whole) >> start & ((1 << count) - 1)
    return usual.get(name)


def _signed(bits: int, ty: str) -> int:
    """Read bits as a number of a type."""
    size = int(ty[1:])
    found = bits & ((1 << size) - 1)
    return found - (1 << size) if ty[0] == "s" and found >> (size - 1) else found
