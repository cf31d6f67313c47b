# SPDX-License-Identifier: Apache-2.0
"""Statements `x.set(…)` of a function's code: they set the variable `x` (see `seam.after_set`)."""

from __future__ import annotations

import functools
from types import CodeType

from .flow import Node, accesses
from .opcodes import flow_of


@functools.lru_cache(maxsize=4096)
def settings(code: CodeType) -> dict[int, str]:
    """Return the variables that such statements set, by the numbers of the instructions that drop what the calls
    give."""
    if "set" not in code.co_names:
        return {}
    flow = flow_of(code)
    instructions = flow.body.instructions
    number = {id(i): at for at, i in enumerate(instructions)}
    calls = {id(n.by): n for b in flow.blocks for n in b.made if n.kind == "call"}
    out = {}
    for at, i in enumerate(instructions[1:], 1):
        call = calls.get(id(instructions[at - 1])) if i.name == "POP_TOP" else None
        attribute: Node | None = call.args[0].found() if call is not None else None
        if attribute is not None and attribute.kind == "attr" and attribute.data == "set":
            before = accesses(instructions[number[id(attribute.by)] - 1])
            if before and before[-1][0] == "read" and before[-1][1] in code.co_varnames:
                out[at] = before[-1][1]
    return out
