# SPDX-License-Identifier: Apache-2.0
"""Where in a function's bytecode a statement of Numba's IR comes from."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from types import CodeType
from typing import Any

from numba.cuda.core import bytecode, ir

from ...typed.meetings import NOWHERE
from .lifted import written
from .memory import compiling, memory


class Place(ir.Loc):
    """A line of the source, and the instruction. code: which holds it. offset: in it. sites: the offsets of the calls
    by which the code was inlined, outermost first. copies: the indices of the unrolled loops around, likewise."""

    code: CodeType
    offset: int = NOWHERE
    sites: tuple[int, ...] = ()
    copies: tuple[Any, ...] = ()


def _placed(loc: Any, code: CodeType, offset: int) -> Place:
    """Return a line's place at an instruction that Numba has at `offset`: it puts one before the function's own."""
    made = Place(loc.filename, loc.line, loc.col, loc.maybe_decorator)
    made.code, made.offset = written(code), max(offset - bytecode._FIXED_OFFSET, 0)
    return made


def placing_statements(each: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
    """Make of the method by which Numba goes over a function's instructions one that tells statements where they are,
    while a kernel is compiled."""

    def placed(self: Any) -> Iterator[Any]:
        for found in each(self):
            if compiling():
                self.loc = _placed(self.loc, self.func_id.code, found[0].offset)
            yield found

    return placed


def placing_blocks(start: Callable[[Any, int], None]) -> Callable[[Any, int], None]:
    """Make of the method by which Numba begins a block one that tells it where it is, while a kernel is compiled."""

    def placed(self: Any, offset: int) -> None:
        if compiling():
            self.loc = _placed(self.loc, self.func_id.code, offset)
        start(self, offset)

    return placed


def place_copy(blocks: Iterable[Any], index: Any) -> None:
    """Tell the statements of a copy of a loop's body which one it is."""
    made: dict[int, Place] = {}
    for part in (x for block in blocks for x in (block, *block.body)):
        if isinstance(part.loc, Place):
            place = made.get(id(part.loc))
            if place is None:
                place = made[id(part.loc)] = copy.copy(part.loc)
                place.copies = (*place.copies, index)
            part.loc = place


def placing_inlined(inline: Callable[..., Any]) -> Callable[..., Any]:
    """Make of the function by which Numba inlines a call one that tells the statements where the call was. The rest of
    the block around, which becomes a block, begins nowhere."""

    def placed(func_ir: Any, space: Any, block: Any, at: int, *args: Any, **named: Any) -> Any:
        call, before = block.body[at].loc, set(func_ir.blocks)
        made = inline(func_ir, space, block, at, *args, **named)
        if isinstance(call, Place):
            places = {id(x.loc): x.loc for b in made[0].values() for x in (b, *b.body) if isinstance(x.loc, Place)}
            for place in places.values():
                place.sites = (call.offset, *place.sites)
            memory().inlined.update((new.name, name) for name, new in made[1].items())
            for label in func_ir.blocks.keys() - before - made[0].keys():
                func_ir.blocks[label].loc = ir.Loc(call.filename, call.line)
        return made

    return placed
