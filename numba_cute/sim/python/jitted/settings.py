# SPDX-License-Identifier: Apache-2.0
"""Statements `x.set(…)` of a function's code: they set the variable `x` (see `seam.after_set`)."""

from __future__ import annotations

import dis
import functools
from types import CodeType

from .bytecode import Instruction, decode

_ENDS = ("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_ABSOLUTE", "JUMP_BACKWARD",
         "JUMP_BACKWARD_NO_INTERRUPT")  # fmt: skip


@functools.lru_cache(maxsize=4096)
def settings(code: CodeType) -> dict[int, str]:
    """Return the variables that such statements set, by the numbers of the instructions that drop what the calls
    give."""
    if "set" not in code.co_names:
        return {}
    instructions = decode(code).instructions
    heights = _heights(instructions)
    found = {}
    for at, (x, asked) in enumerate(zip(instructions, instructions[1:])):
        if x.name.startswith("LOAD_FAST") and asked.name in ("LOAD_METHOD", "LOAD_ATTR") and asked.value == "set":
            name = x.value[-1] if isinstance(x.value, tuple) else x.value
            given = heights[id(asked)]  # with what the call gives in the place of x
            first = at + 2 + (heights[id(instructions[at + 2])] == given)  # which puts the first argument on it
            last = next((n for n in range(first, len(instructions)) if heights.get(id(instructions[n])) == given), 0)
            if instructions[last].name == "POP_TOP":
                found[last] = name
    return found


def _heights(instructions: list[Instruction]) -> dict[int, int]:
    """Return how many values lie on the stack before each instruction, by its id; none where only exceptions lead."""
    found: dict[int, int] = {}
    number = {id(i): at for at, i in enumerate(instructions)}
    todo = [(0, 0)]
    while todo:
        at, height = todo.pop()
        while at < len(instructions) and id(instructions[at]) not in found:
            i = instructions[at]
            found[id(i)] = height
            arg = i.arg if i.opcode >= dis.HAVE_ARGUMENT else None
            if i.target is not None:
                todo.append((number[id(i.target)], height + dis.stack_effect(i.opcode, arg, jump=True)))
            if i.name in _ENDS:
                break
            height += dis.stack_effect(i.opcode, arg, jump=False)
            at += 1
    return found
