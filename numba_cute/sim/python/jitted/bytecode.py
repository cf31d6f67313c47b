# SPDX-License-Identifier: Apache-2.0
"""Code objects as lists of instructions that can be added to, of Python 3.10 to 3.13."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator, Sequence
from types import CodeType
from typing import Any, NamedTuple

from ....seam.ground.bytecode import caches

VERSION = sys.version_info[:2]

Position = tuple[Any, ...]
"""(line, last line, column, last column) of the source; None where it is not known. Python 3.10 knows lines alone."""


class Instruction:
    """One instruction. target: where it jumps. value: what its argument means (a constant, a name, a symbol)."""

    __slots__ = ("name", "arg", "target", "position", "value", "opcode", "offset")

    def __init__(
        self, name: str, arg: int = 0, position: Position = (None,) * 4, target: Instruction | None = None,
        value: Any = None,
    ) -> None:  # fmt: skip
        self.name, self.arg, self.position, self.target, self.value = name, arg, position, target, value
        self.opcode = dis.opmap[name]
        self.offset = -1  # in code units: where it was, and then where it is


class Handler(NamedTuple):
    """A row of the table of exceptions: what happens to those raised from `start` up to `end` (None: the end)."""

    start: Instruction
    end: Instruction | None
    target: Instruction
    depth: int
    lasti: bool


class Body(NamedTuple):
    """The instructions of a code object. Handlers stay where they are when instructions are added."""

    instructions: list[Instruction]
    handlers: list[Handler]


# ------------------------------------------------------------------ taking apart


def _lines(code: CodeType) -> dict[int, int | None]:
    return {at: line for start, end, line in code.co_lines() for at in range(start, end, 2)}


def decode(code: CodeType) -> Body:
    """The instructions of a code object."""
    lines = _lines(code) if VERSION < (3, 11) else {}
    by_offset: dict[int, Instruction] = {}
    jumps: list[tuple[Instruction, int]] = []
    instructions: list[Instruction] = []
    prefixes: list[int] = []
    for i in dis.get_instructions(code):
        if i.opname == "EXTENDED_ARG":
            prefixes.append(i.offset)
            continue
        position = (lines[i.offset], None, None, None) if VERSION < (3, 11) else tuple(i.positions)  # type: ignore
        made = Instruction(i.opname, i.arg or 0, position, None, i.argrepr if _symbolic(i.opname) else i.argval)
        made.offset = i.offset // 2
        for at in (*prefixes, i.offset):
            by_offset[at] = made
        prefixes = []
        instructions.append(made)
        if i.opcode in dis.hasjrel or i.opcode in dis.hasjabs:
            jumps.append((made, i.argval))
    for made, at in jumps:
        made.target = by_offset[at]
    return Body(instructions, list(_handlers(code, by_offset)))


def _symbolic(name: str) -> bool:
    return name in ("BINARY_OP", "COMPARE_OP")


def _handlers(code: CodeType, by_offset: dict[int, Instruction]) -> Iterator[Handler]:
    if VERSION >= (3, 11):
        for e in dis._parse_exception_table(code):  # type: ignore[attr-defined]
            end = by_offset.get(e.end)
            yield Handler(by_offset[e.start], end, by_offset[e.target], e.depth, e.lasti)


# ------------------------------------------------------------------ putting together


def encode(code: CodeType, body: Body, consts: tuple[Any, ...], more_stack: int) -> CodeType:
    """`code` with other instructions and constants, and room for so many more values on its stack."""
    instructions = body.instructions
    _lay_out(instructions)
    units = bytearray()
    for i in instructions:
        arg = i.arg
        for shift in range(8 * _extensions(arg), 0, -8):
            units += bytes((dis.EXTENDED_ARG, arg >> shift & 255))
        units += bytes((i.opcode, arg & 255))
        units += bytes(2 * caches(i.opcode))
    new: dict[str, Any] = {
        "co_code": bytes(units), "co_consts": consts, "co_stacksize": code.co_stacksize + more_stack,
    }  # fmt: skip
    if VERSION < (3, 11):
        new["co_linetable"] = _line_table(code.co_firstlineno, instructions)
    else:
        new["co_linetable"] = _locations(code.co_firstlineno, instructions)
        new["co_exceptiontable"] = b"".join(_exceptions(body, len(units) // 2))
    return code.replace(**new)


def _extensions(arg: int) -> int:
    return max(arg.bit_length() - 1, 0) // 8


def _size(i: Instruction) -> int:
    return 1 + _extensions(i.arg) + caches(i.opcode)


def _lay_out(instructions: list[Instruction]) -> None:
    """Give instructions their offsets, and jumps their arguments, which may make them longer."""
    while True:
        at = 0
        for i in instructions:
            i.offset = at
            at += _size(i)
        settled = True
        for i in instructions:
            if i.target is not None:
                arg = _distance(i)
                settled = settled and _extensions(arg) <= _extensions(i.arg)
                # an argument that has become short again stays as long as it was
                i.arg = arg
        if settled and all(a.offset + _size(a) == b.offset for a, b in zip(instructions, instructions[1:])):
            return


def _distance(i: Instruction) -> int:
    """The argument of a jump: where to, or how far from the instruction that follows."""
    assert i.target is not None
    if i.opcode in dis.hasjabs:
        return i.target.offset
    return abs(i.target.offset - (i.offset + _size(i)))


def _line_table(first: int, instructions: Sequence[Instruction]) -> bytes:
    """Python 3.10's table of lines (PEP 626)."""
    out, line = bytearray(), first
    runs: list[list[Any]] = []
    for i in instructions:
        if runs and runs[-1][0] == i.position[0]:
            runs[-1][1] += 2 * _size(i)
        else:
            runs.append([i.position[0], 2 * _size(i)])
    for at, length in runs:
        delta = -128 if at is None else at - line
        line = line if at is None else at
        while at is not None and not -127 <= delta <= 127:
            step = 127 if delta > 0 else -127
            out += bytes((0, step & 255))
            delta -= step
        while length > 254:
            out += bytes((254, delta & 255))
            delta, length = (delta if at is None else 0), length - 254
        out += bytes((length, delta & 255))
    return bytes(out)


def _varint(x: int) -> bytes:
    out = bytearray()
    while x >= 64:
        out.append(0x40 | x & 63)
        x >>= 6
    out.append(x)
    return bytes(out)


def _signed(x: int) -> bytes:
    return _varint(-x << 1 | 1 if x < 0 else x << 1)


def _locations(first: int, instructions: Sequence[Instruction]) -> bytes:
    """The table of places in the source (Objects/locations.md of CPython)."""
    out, before = bytearray(), first
    for i in instructions:
        line, last, column, last_column = i.position
        left = _size(i)
        while left:
            units = min(left, 8)
            left -= units
            if line is None:
                out.append(0x80 | 15 << 3 | units - 1)
                continue
            whole = None not in (last, column, last_column)
            out.append(0x80 | (14 if whole else 13) << 3 | units - 1)
            out += _signed(line - before)
            before = line
            if whole:
                out += _varint(last - line) + _varint(column + 1) + _varint(last_column + 1)
    return bytes(out)


def _exceptions(body: Body, end: int) -> Iterator[bytes]:
    """The table of exceptions (Objects/exception_handling_notes.txt of CPython)."""
    for h in body.handlers:
        stop = end if h.end is None else h.end.offset
        numbers = (h.start.offset, stop - h.start.offset, h.target.offset, h.depth << 1 | h.lasti)
        for nth, x in enumerate(numbers):
            chunks = [x & 63]
            while x > 63:
                x >>= 6
                chunks.append(x & 63 | 64)
            chunks[-1] |= 128 * (nth == 0)
            yield bytes(reversed(chunks))
