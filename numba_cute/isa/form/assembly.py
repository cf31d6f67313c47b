# SPDX-License-Identifier: Apache-2.0
"""The text of an instruction as LLVM inline assembly.

In a row's text `$name` is an operand, `$name[0]` one of a vector's, `{name}` a static parameter, and `<name: …>` is
there if the operand `name` is given, or the static parameter `name` is true; `<name: …|…>` has what is there if not.
Such parts may hold others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ...seam.ground.records import dataclass
from .kinds import Operand, pred

_NAME = re.compile(r"\$([a-z_]\w*)(?:\[(\d+)\])?")
_STATIC = re.compile(r"\{([a-z_]\w*)\}")
_CONDITION = re.compile(r"<([a-z_]\w*):")
_PART = re.compile(_CONDITION.pattern + r"([^<>|]*)(?:\|([^<>]*))?>")  # that holds no other


@dataclass(frozen=True)
class Assembly:
    """One case: the text with `$0`-style slots, the constraints, and in slot order the outputs and inputs as (operand,
    index within it)."""

    text: str
    constraints: str
    outputs: tuple[tuple[Operand, int], ...]
    inputs: tuple[tuple[Operand, int], ...]


def operands_in(text: str) -> set[str]:
    """The operands that a row's text names, optional parts included."""
    return {name for name, _ in _NAME.findall(text)}


def statics_in(text: str) -> set[str]:
    """The static parameters whose values a row's text has."""
    return set(_STATIC.findall(text))


def conditions_in(text: str) -> set[str]:
    """The operands and static parameters that parts of a row's text depend on."""
    return set(_CONDITION.findall(text))


def assemble(text: str, operands: Sequence[Operand], case: dict[str, Any]) -> Assembly:
    """The inline assembly of a row's text with these operands. Outputs come first, then the inputs tied to them, then
    the others."""
    outs = [(o, i) for o in operands if o.writes for i in range(o.size(case))]
    tied = [(o, i) for o, i in outs if o.reads]
    ins = [(o, i) for o in operands if not o.writes for i in range(o.size(case))]
    first = {o.name: at for at, (o, i) in reversed(list(enumerate(outs))) if i == 0}
    base = len(outs) + len(tied)
    first.update({o.name: base + at for at, (o, i) in enumerate(ins) if i == 0})
    by_name = {o.name: o for o in operands}

    def part(match: re.Match[str]) -> str:
        there = match[1] in by_name or bool(case.get(match[1]))
        return match[2] if there else match[3] or ""

    def slot(match: re.Match[str]) -> str:
        o = by_name[match[1]]
        if o.kind is pred:
            return f"p_{o.name}"
        if o.count is None:
            return f"${first[o.name]}"
        if match[2]:
            return f"${first[o.name] + int(match[2])}"
        return "{" + ", ".join(f"${first[o.name] + i}" for i in range(o.size(case))) + "}"

    parts = 1
    while parts:  # from the inside out
        text, parts = _PART.subn(part, text)
    text = _STATIC.sub(lambda m: str(case[m[1]]) if m[1] in case else m[0], text)
    text = _with_predicates(_NAME.sub(slot, text), operands, first)
    constraints = ["=" + o.kind.constraint for o, _ in outs]
    constraints += [str(outs.index(t)) for t in tied] + [o.kind.constraint for o, _ in ins]
    return Assembly(text, ",".join(constraints), tuple(outs), tuple(tied + ins))


def _with_predicates(text: str, operands: Sequence[Operand], first: dict[str, int]) -> str:
    """Predicates are tested into registers before the instruction, and set from registers after it."""
    preds = [o for o in operands if o.kind is pred]
    if not preds:
        return text
    before = "".join(
        f".reg .pred p_{o.name}; " + (f"setp.ne.b32 p_{o.name}, ${first[o.name]}, 0; " if o.reads else "")
        for o in preds
    )
    after = "".join(f" selp.b32 ${first[o.name]}, 1, 0, p_{o.name};" for o in preds if o.writes)
    return "{ " + before + text + after + " }"
