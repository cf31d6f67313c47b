# SPDX-License-Identifier: Apache-2.0
"""`if` statements after which lanes that run together go on together, whichever of them took it.

The lanes for which it holds go into it while the others wait (`Convoy.enter`), and behind it all go on. That is right
where what it does is known to the lanes by memory and registers alone: it sets no variable that is read behind it, and
leaves by its end. What changes a Python object that all lanes see (an element of a list, an attribute) has the lanes
part there, and so has what waits."""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterator
from typing import Any

import numpy as np

from ....seam.ground.backend import current_or
from ..arithmetic.lanes import Lanes
from .bytecode import VERSION, Instruction

_UNFIT = ("RETURN_", "RAISE_", "RERAISE", "YIELD_", "SEND", "STORE_DEREF", "STORE_GLOBAL", "STORE_NAME", "DELETE_",
          "SETUP_", "PUSH_EXC_INFO", "BEFORE_WITH", "LOAD_FAST_AND_CLEAR", "IMPORT_")  # fmt: skip
"""Instructions that do more than some lanes may do alone, or that are not seen through."""

_OPEN: dict[int, list[tuple[If, Any, Any]]] = {}
"""By a frame's id: the `if`s in which lanes of it are alone, with their convoy and mask."""


class If:
    """An `if` of some code. holds: what its condition is where the lanes go into it."""

    __slots__ = ("holds",)

    def __init__(self, holds: bool) -> None:
        self.holds = holds

    def enter(self, condition: Any) -> Any:
        """Return the value that decides the branch: if its lanes differ, the code is run for those that go into it."""
        if type(condition) is not Lanes:
            return condition
        f = condition.convoy
        holds = (
            condition.array(np.bool_) if condition.dtype is not None else np.array([bool(x) for x in condition.values])
        )
        mask = f.enter((holds == self.holds).tolist())
        if f.masks and f.masks[-1] is mask:
            _OPEN.setdefault(id(sys._getframe(1)), []).append((self, f, mask))
        return (mask is not None) is self.holds

    def leave(self, _: None) -> None:
        """Have the code run for all lanes again, if some of them went into it alone."""
        if not _OPEN:
            return
        frame = id(sys._getframe(1))
        masks = _OPEN.get(frame)
        if masks and masks[-1][0] is self:
            (f, mask) = masks.pop()[1:]
            if not masks:
                del _OPEN[frame]
            f.leave(mask)


def forget() -> None:
    """Forget the `if`s of a launch that has ended, if by an error."""
    _OPEN.clear()


def attribute_changes(_: Any) -> None:
    """Have the lanes part that are alone in an `if` and are about to change an object that all have."""
    changes = getattr(current_or(None), "changes", None)
    if changes is not None:
        changes()


def item_changes(container: Any) -> None:
    """The same where an element is set: those of arrays and tensors are memory's, or registers'."""
    if isinstance(container, (list, dict)):
        attribute_changes(container)


class _Flow:
    """The flow of some code: where instructions go on, and which variables they read and set."""

    def __init__(self, instructions: list[Instruction]) -> None:
        self.code = instructions
        self.at = {id(i): n for n, i in enumerate(instructions)}
        self.sources: dict[int, list[int]] = {}
        for n, i in enumerate(instructions):
            if i.target is not None:
                self.sources.setdefault(self.at[id(i.target)], []).append(n)

    def targets(self, n: int) -> Iterator[int]:
        i = self.code[n]
        if i.target is not None:
            yield self.at[id(i.target)]
        if not (i.name.startswith(("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_ABSOLUTE", "RETURN_", "RAISE_", "RERAISE"))):
            yield n + 1

    def read(self, variable: int, start: int) -> bool:
        """Tell whether a variable may be read from an instruction on before it is set."""
        seen, left = {start}, [start]
        while left:
            n = left.pop()
            if n >= len(self.code):
                continue
            used = next((reads for v, reads in _uses(self.code[n]) if v == variable), None)
            if used:
                return True
            if used is None:
                left += [t for t in self.targets(n) if t not in seen]
                seen.update(self.targets(n))
        return False

    def fits(self, test: int, end: int, kept: Container[int]) -> bool:
        """Tell whether the instructions between a test and where it jumps are such an `if`. kept: those, by id, that
        set a variable in their place."""
        inside = range(test + 1, end)
        for n in inside:
            i = self.code[n]
            if i.name.startswith(_UNFIT) or id(i) in kept:
                return False
            if i.target is not None and not test < self.at[id(i.target)] <= end:
                return False
            if not all(source in inside for source in self.sources.get(n, ())):
                return False
        if self.code[test + 1].name == "POP_TOP":  # a value that `and` and `or` give
            return False
        sets = {v for n in inside for v, reads in _uses(self.code[n]) if not reads}
        return not any(self.read(v, end) for v in sets)


def _uses(i: Instruction) -> list[tuple[int, bool]]:
    """The variables that an instruction reads (True) and sets (False), in this order."""
    name = i.name
    if "_FAST" not in name:
        return []
    if name.startswith(("LOAD_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST", "STORE_FAST_LOAD_FAST")):
        kinds = name.split("_FAST")
        return [(i.arg >> 4, "LOAD" in kinds[0]), (i.arg & 15, "LOAD" in kinds[1])]
    return [(i.arg, name.startswith("LOAD"))]


def with_masks(
    instructions: list[Instruction], kept: Container[int], none: int,
    called: Callable[[Any, Instruction], list[Instruction]],
) -> list[tuple[Instruction, list[Instruction]]]:  # fmt: skip
    """The instructions, each with what is to be done before it: calls where such `if`s begin and end, and where objects
    change. kept: see `_Flow.fits`. none: the number of the constant None. called: gives the call of a function, in an
    instruction's place, on what lies on top of the stack."""
    flow = _Flow(instructions)
    before: dict[int, list[Instruction]] = {}
    for test, i in enumerate(instructions):
        if i.name.startswith("POP_JUMP_") and "_IF_" in i.name and "NONE" not in i.name and i.target is not None:
            end = flow.at[id(i.target)]
            if end > test + 1 and flow.fits(test, end, kept):
                begins = test - 1 if test and instructions[test - 1].name == "TO_BOOL" else test
                if begins and instructions[begins - 1].name in ("COPY", "DUP_TOP"):
                    continue
                site = If("IF_FALSE" in i.name)
                made = called(site.enter, i)
                if begins == test and VERSION >= (3, 13):
                    made.append(_placed("TO_BOOL", 0, i))
                before.setdefault(begins, []).extend(made)
                behind = instructions[end]
                leaves = [
                    _placed("LOAD_CONST", none, behind), *called(site.leave, behind), _placed("POP_TOP", 0, behind),
                ]  # fmt: skip
                before[end] = leaves + before.get(end, [])  # the last that began ends first
    return [(i, [*before.get(n, ()), *_about_to_change(i, called)]) for n, i in enumerate(instructions)]


def _about_to_change(i: Instruction, called: Callable[[Any, Instruction], list[Instruction]]) -> list[Instruction]:
    """A call before an instruction that changes an object."""
    if i.name not in ("STORE_ATTR", "STORE_SUBSCR"):
        return []
    below = i.name == "STORE_SUBSCR"  # the object lies below the index
    tell = item_changes if below else attribute_changes
    if VERSION < (3, 11):
        copies = [("DUP_TOP_TWO", 0), ("POP_TOP", 0)] if below else [("DUP_TOP", 0)]
    else:
        copies = [("COPY", 2 if below else 1)]
    return [*(_placed(*c, i) for c in copies), *called(tell, i), _placed("POP_TOP", 0, i)]


def _placed(name: str, arg: int, i: Instruction) -> Instruction:
    """An instruction where another stands in the source."""
    made = Instruction(name, arg, i.position)
    made.offset = i.offset
    return made
