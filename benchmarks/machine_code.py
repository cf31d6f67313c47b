# SPDX-License-Identifier: Apache-2.0
"""Machine code as nvdisasm prints it: its instructions by kind, and its loops."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, NamedTuple

KINDS = {
    "tensor": r"\w*[HIQDB]G?MMA|\w*[HQIO]MMA|UTC[HQIO]\w*MMA\w*",
    "memory": r"(?:LD|ST)(?!P)\w*|ATOM\w*|RED[GS]?|U?BLK\w+|UTMA(?!CCTL|CMDF)\w*|UTCCP|UTCST\w*|SUST|SULD|UBLKCP",
    "mathematics": r"F(?!ENCE|LO|RND)\w+|H(?:ADD|MUL|FMA|SET|SETP|MNMX|MNMX2)\w*|D(?!EPBAR)\w+|MUFU|[FI]2[FI]P?|FRND",
    "synchronisation": r"BAR|B2R|SYNCS\w*|WARPGROUP|\w*DEPBAR|MEMBAR|FENCE|ERRBAR|UCGABAR\w*|UTCBAR|UTMAC\w+|CCTL\w*"
    r"|NANOSLEEP|ACQ\w+|ELECT|UTCATOMSWS|WARPSYNC|BSSY|BSYNC|BREAK|YIELD|USETMAXREG|ACQBULK|PREEXIT|CGAERRBAR|ARRIVES",
}
"""By what an instruction is for, its names; whatever else there is is "other"."""

_NAMES = {kind: re.compile(names) for kind, names in KINDS.items()}
_LINE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:(@!?U?P[0-9T]+)\s+)?([^;]*?)\s*;", re.MULTILINE)
_WIDE = re.compile(r"\w*[HIQDB]GMMA|UTC[HIQO]\w*MMA\w*")
_LABEL = re.compile(r"^(\.\w+):", re.MULTILINE)
_ENDS = ("BRA", "EXIT", "RET", "BRX", "JMP")
_TO = re.compile(r"`?\((\.\w+)\)")


class Instruction(NamedTuple):
    """An instruction. guard: its predicate, "" if it always runs. text: what it says, with its operands."""

    guard: str
    text: str

    @property
    def name(self) -> str:
        """What it does, without its options."""
        return self.text.split(None, 1)[0].partition(".")[0]

    @property
    def kind(self) -> str:
        return next((kind for kind, names in _NAMES.items() if names.fullmatch(self.name)), "other")


class Code(NamedTuple):
    """A kernel's instructions, without what fills its end, and its loops: the places of each one's instructions."""

    instructions: list[Instruction]
    loops: list[list[int]]


def read(sass: str) -> Code:
    """Read the machine code of a kernel, with all functions that it calls."""
    found, labels, names = [], {}, []
    for line in sass.splitlines():
        label = _LABEL.match(line)
        if label:
            names.append(label[1])
        instruction = _LINE.match(line)
        if instruction:
            labels.update(dict.fromkeys(names, len(found)))
            names = []
            found.append(Instruction(instruction[2] or "", instruction[3]))
    kept = _without_fill(found)
    return Code(kept, _loops(kept, labels))


def _without_fill(found: list[Instruction]) -> list[Instruction]:
    """The code without the no-operations at its end, and the branch to itself before them."""
    end = len(found)
    while end and found[end - 1].name == "NOP":
        end -= 1
    if end and found[end - 1].name == "BRA":
        end -= 1
    return found[:end]


def _loops(code: list[Instruction], labels: dict[str, int]) -> list[list[int]]:
    """The stretches of code that a branch at their end begins again, if it is come to by their beginning alone: a wait
    that is retried elsewhere, at the end of the code, comes back too, and is no loop of what lies between."""
    to = {at: labels[found[1]] for at, x in enumerate(code) if (found := _TO.search(x.text)) and x.name == "BRA"}
    starts = sorted({0, *to.values(), *(at + 1 for at, x in enumerate(code[:-1]) if x.name in _ENDS)})
    block = {at: i for i, at in enumerate(starts)}
    last = [end - 1 for end in [*starts[1:], len(code)]]
    after: list[list[int]] = []
    for i, at in enumerate(last):
        operands = code[at].text.partition("`")[0].partition(" ")[2]  # a predicate may stand there too
        goes_on = code[at].name not in _ENDS or bool(code[at].guard) or "P" in operands
        after.append([*([block[to[at]]] if at in to else []), *([i + 1] if goes_on and i + 1 < len(starts) else [])])
    first = _dominators(after)
    return [
        list(range(to[at], at + 1))
        for i, at in enumerate(last)
        if at in to and to[at] <= at and block[to[at]] in first[i]
    ]


def _dominators(after: list[list[int]]) -> list[set[int]]:
    """Of each block, those through which all ways to it go. after: of each, those that may come next."""
    before: list[list[int]] = [[] for _ in after]
    for i, nexts in enumerate(after):
        for n in nexts:
            before[n].append(i)
    every = set(range(len(after)))
    found = [every if before[i] and i else {i} for i in every]
    changed = True
    while changed:
        changed = False
        for i in every:
            if i and before[i]:
                now = {i} | set.intersection(*(found[b] for b in before[i]))
                changed, found[i] = changed or now != found[i], now
    return found


def main_loop(code: Code) -> list[Instruction]:
    """The innermost loop with the most tensor instructions (of wgmma or tcgen05 in code that has some), or without any
    in a loop with the most mathematics; none in code that has no such loop. Of a loop of wgmma what multiplies by
    mma.sync is left out, up to the branches around it: a seldom way, on which a warp computes something again."""
    tensor = {i for i, x in enumerate(code.instructions) if x.kind == "tensor"}
    wide = {i for i in tensor if _WIDE.fullmatch(code.instructions[i].name)}
    mathematics = {i for i, x in enumerate(code.instructions) if x.kind == "mathematics"}
    for of_kind in (wide, tensor, mathematics):
        within = [loop for loop in code.loops if of_kind.intersection(loop)]
        inner = [a for a in within if not any(set(b) < set(a) for b in within)]
        if inner:
            best = max(inner, key=lambda loop: (len(of_kind.intersection(loop)), -len(loop)))
            seldom = tensor - wide if of_kind is wide else set()
            parts = _between_branches(code, best)
            return [code.instructions[i] for part in parts if not seldom.intersection(part) for i in part]
    return []


def _between_branches(code: Code, loop: list[int]) -> list[list[int]]:
    """The stretches of a loop up to each of its branches."""
    parts: list[list[int]] = [[]]
    for i in loop:
        parts[-1].append(i)
        if code.instructions[i].name in _ENDS:
            parts.append([])
    return parts


def counted(instructions: list[Instruction]) -> dict[str, int]:
    """How many there are of each kind."""
    counts = Counter(x.kind for x in instructions)
    return {kind: counts[kind] for kind in (*KINDS, "other")}


def summary(sass: str) -> dict[str, Any]:
    """What a kernel's machine code holds: instructions in all and in its main loop, in all and by kind."""
    code = read(sass)
    loop = main_loop(code)
    return {
        "all": len(code.instructions),
        "kinds": counted(code.instructions),
        "loop": len(loop),
        "loop_kinds": counted(loop),
        "names": dict(Counter(x.name for x in code.instructions).most_common()),
    }
