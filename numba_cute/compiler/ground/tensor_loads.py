# SPDX-License-Identifier: Apache-2.0
"""`tcgen05.wait::ld` where PTX uses what a `tcgen05.ld` loads and waits for nothing.

The PTX ISA leaves the registers of a load undefined until the wait. The CuTe DSL's kernels may leave it out, and an
optimiser may move a use ahead of it: so each way from a load to a use of its registers is followed through the PTX, and
where one has no wait, one is put in: before the use, or, where that is in another block of instructions, at the end of
the load's. All lanes that loaded come there together, as `.sync.aligned` asks."""

from __future__ import annotations

import re
from dataclasses import field

from ...seam.ground.records import dataclass

_LOAD, _WAIT = "tcgen05.ld.", "tcgen05.wait::ld"
_REGISTER = re.compile(r"%[a-z]+\d+\b")
_LABEL = re.compile(r"^(\$\w+):")
_BRANCH = re.compile(r"^(@!?%p\d+\s+)?bra(\.uni)?\s+(\$\w+);")
_ENDS = re.compile(r"^(ret|exit|trap|brx\.idx)\b")
_COPY = re.compile(r"^mov\.[bufs]\d+\s+(%[a-z]+\d+),\s*(%[a-z]+\d+);$")
INSERTED = f"\t{_WAIT}.sync.aligned;"


@dataclass
class _Block:
    """Instructions that run one after the other. lines: (line, its text). to: the labels, or numbers, of the blocks
    that may follow. at_start: registers that are still being loaded where it begins, and the block of each load."""

    lines: list[tuple[int, str]] = field(default_factory=list)
    to: list[str | int] = field(default_factory=list)
    at_start: dict[str, set[int]] = field(default_factory=dict)


def with_waits(ptx: str) -> str:
    """Return PTX in which no register is used before its load from tensor memory is waited for."""
    if _LOAD not in ptx:
        return ptx
    lines = ptx.split("\n")
    begins = [i for i, line in enumerate(lines) if line.startswith("{")]
    put: set[int] = set()
    for begin in begins:
        end = next(i for i in range(begin, len(lines)) if lines[i].startswith("}"))
        if any(_LOAD in line for line in lines[begin:end]):
            put |= _places(lines, begin + 1, end)
    made: list[str] = []
    for i, text in enumerate(lines):
        made += [INSERTED] * (i in put) + [text] + [INSERTED] * (~i in put)
    return "\n".join(made)


def _places(lines: list[str], begin: int, end: int) -> set[int]:
    """The lines of a function ahead of which a wait must stand; of those behind which it must, the complement (~)."""
    blocks, labels = _blocks(lines, begin, end)
    put: set[int] = set()
    while True:
        _spread(blocks, labels, put)
        for number, block in enumerate(blocks):
            found = _first_use(block, number, put)
            if found is not None:
                line, loads = found
                put |= {line} if loads == {number} else {_end_of(blocks[n]) for n in loads}
                break
        else:
            return put


def _blocks(lines: list[str], begin: int, end: int) -> tuple[list[_Block], dict[str, int]]:
    blocks, labels = [_Block()], {}
    for i in range(begin, end):
        text = lines[i].split("//", 1)[0].strip()
        label = _LABEL.match(text)
        if label:
            blocks[-1].to.append(len(blocks))
            labels[label[1]] = len(blocks)
            blocks.append(_Block())
        if label or not text or text.startswith((".", "{ //")):
            continue
        blocks[-1].lines.append((i, text))
        branch, ends = _BRANCH.match(text), _ENDS.match(text)
        if branch or ends:
            if branch:
                blocks[-1].to.append(branch[3])
            if (branch and branch[1]) or (ends and ends[1] == "brx.idx"):
                blocks[-1].to.append(len(blocks))
            blocks.append(_Block())
    for block in blocks:  # a jump by a table may go anywhere
        if block.lines and block.lines[-1][1].startswith("brx"):
            block.to += labels.values()
    return blocks, labels


def _spread(blocks: list[_Block], labels: dict[str, int], put: set[int]) -> None:
    """Find what is being loaded where each block begins."""
    for block in blocks:
        block.at_start = {}
    left = list(range(len(blocks)))
    while left:
        number = left.pop()
        after = dict(blocks[number].at_start)
        for line, text in blocks[number].lines:
            _step(after, line, text, number, put)
        for to in blocks[number].to:
            at = labels[to] if isinstance(to, str) else to
            if at >= len(blocks):
                continue
            there, grown = blocks[at].at_start, False
            for register, loads in after.items():
                known = there.setdefault(register, set())
                grown |= not loads <= known
                known |= loads
            if grown:
                left.append(at)


def _step(pending: dict[str, set[int]], line: int, text: str, block: int, put: set[int]) -> set[int]:
    """Follow one instruction: change what is being loaded, and return the loads whose registers it uses."""
    if not pending and _LOAD not in text:
        return set()
    if line in put or _WAIT in text:
        pending.clear()
    copy = _COPY.match(text)
    used: set[int] = set()
    if copy:
        loads = pending.get(copy[2])
        pending.pop(copy[1], None)
        if loads:
            pending[copy[1]] = set(loads)
    else:
        loaded = _loaded(text) if _LOAD in text else ()
        read = text[text.index("[", text.index(_LOAD)) :] if loaded else text
        used = {n for r in _REGISTER.findall(read) if r in pending for n in pending[r]}
        pending.update((register, {block}) for register in loaded)
    if ~line in put:
        pending.clear()
    return used


def _loaded(text: str) -> tuple[str, ...]:
    """The registers that a load writes: all ahead of its address."""
    return tuple(_REGISTER.findall(text[text.index(_LOAD) : text.index("[", text.index(_LOAD))]))


def _first_use(block: _Block, number: int, put: set[int]) -> tuple[int, set[int]] | None:
    """The line of a block that first uses what is being loaded, and the blocks of these loads."""
    pending = {r: set(loads) for r, loads in block.at_start.items()}
    for line, text in block.lines:
        used = _step(pending, line, text, number, put)
        if used:
            return line, used
    return None


def _end_of(block: _Block) -> int:
    """Return the line of a wait at the end of a block: ahead of its branch, or behind its last line."""
    line, text = block.lines[-1]
    return line if _BRANCH.match(text) or _ENDS.match(text) else ~line
