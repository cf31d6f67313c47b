# SPDX-License-Identifier: Apache-2.0
"""Run a text of PTX in the simulator, one instruction after the other.

`meaning(text)` gives a function of the numbers that the text reads; each instruction in `ptx_operations`
and `ptx_memory` is a function of this library. PTX ISA, "Instruction Set".
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..dtypes import DType
from ..seam import CuteError, current
from .ptx_operations import OPERATIONS
from .ptx_registers import Registers, Step, as_type

_TOKEN = re.compile(r"\{[^{}]*\}|\[[^\[\]]*\]|[^,\s][^,]*")


class Program(NamedTuple):
    """A text taken apart. steps: its instructions. labels: the instruction that each stands before. own: the registers
    that end with the text; those that it declares outside of braces stay."""

    steps: tuple[Step, ...]
    labels: dict[str, int]
    own: frozenset[str]


_LABEL = re.compile(r"\s*([A-Za-z_$%][\w$]*)\s*:(?!:)")
_DECLARED = re.compile(r"\.reg\s+(\.v[24]\s+)?\.\w+\s+(.*)", re.S)
_PLACE = re.compile(r"\{\$([rw])(\d+)\}")


@functools.lru_cache(maxsize=256)
def program(text: str) -> Program:
    """Take a text apart."""
    plain = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S).strip()
    braces = plain.startswith("{") and plain.endswith("}")
    plain = plain[1:-1] if braces else plain
    found: list[Step] = []
    labels: dict[str, int] = {}
    own: set[str] = set()
    vectors: dict[str, str] = {}
    for statement in plain.split(";"):
        while (label := _LABEL.match(statement)) is not None:
            labels[label[1]] = len(found)
            statement = statement[label.end() :]
        statement = " ".join(statement.split())
        declared = _DECLARED.match(statement)
        if declared is not None:
            names = _names(declared[2])
            own |= names if braces else set()
            parts = "xyzw"[: int(declared[1].strip()[2:])] if declared[1] else ""
            vectors.update({n: "{" + ", ".join(f"{n}.{p}" for p in parts) + "}" for n in names if parts})
        elif statement:
            step = _step(statement)
            found.append(step._replace(operands=tuple(vectors.get(o, o) for o in step.operands)))
    return Program(tuple(found), labels, frozenset(own))


def _step(statement: str) -> Step:
    guard = None
    if statement.startswith("@"):
        guard, _, statement = statement[1:].partition(" ")
    name, _, rest = statement.partition(" ")
    return Step(tuple(name.split(".")), tuple(t.strip() for t in _TOKEN.findall(rest)), guard)


def _names(declared: str) -> set[str]:
    """Return the registers that a declaration names: `x<3>` is x0, x1 and x2."""
    found: set[str] = set()
    for name in map(str.strip, declared.split(",")):
        several = re.fullmatch(r"(.*)<(\d+)>", name)
        found |= {f"{several[1]}{i}" for i in range(int(several[2]))} if several else {name}
    return found


def numbered(text: str, writes: int) -> str:
    """Return a text with `$0`, `$1`, … for what it writes and then reads, where it has `{$w0}` and `{$r0}`."""
    return _PLACE.sub(lambda m: f"${int(m[2]) + (writes if m[1] == 'r' else 0)}", text)


def _unknown(what: str, text: str) -> CuteError:
    return CuteError(
        f"inline_asm: the simulator knows no {what!r} of {text!r}: call the function of cute.arch or cute.math that "
        "does it, or cute.arch.inline_ptx with a meaning="
    )


def meaning(text: str, writes: Sequence[DType]) -> Callable[..., Any]:
    """Return what a text does: a function of the numbers that it reads, which gives those that it writes.

    text: PTX, whose `$0`, `$1`, … are what it writes and then what it reads. writes: the types of what it writes.
    CuteError, when it is called: an instruction that is not known here.
    """

    def run(*read: Any) -> Any:
        plan = program(text)
        registers = Registers({f"${len(writes) + i}": x for i, x in enumerate(read)}, plan.own)
        at = 0
        while at < len(plan.steps):
            step = plan.steps[at]
            at += 1
            holds = step.guard is None or registers.predicate(step.guard)
            if step.words[0] != "bra":
                current().when(holds, functools.partial(_do, registers, step, text), of_python=True)  # registers
            elif holds:
                at = plan.labels[step.operands[0]]
        made = tuple(as_type(registers.held[f"${i}"], t) for i, t in enumerate(writes))
        return made[0] if len(made) == 1 else made or None

    return run


def _do(registers: Registers, step: Step, text: str) -> None:
    operation = OPERATIONS.get(step.words[0])
    if operation is None or not operation(registers, step):
        raise _unknown(".".join(step.words), text)
