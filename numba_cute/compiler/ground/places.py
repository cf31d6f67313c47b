# SPDX-License-Identifier: Apache-2.0
"""Find the place in a function's bytecode that a statement of Numba's IR comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import CodeType
from typing import Any

from ...typed.meetings import NOWHERE, Site, Way
from .lifted import written
from .memory import compiling, memory
from .numba_cuda import bytecode, ir


class Place(ir.Loc):
    """A line of the source, and the instruction. code: which holds it. offset: in it. way: which copy of the code it
    is in."""

    code: CodeType
    offset: int = NOWHERE
    way: Way = Way()

    @property
    def site(self) -> Site:
        return self.code, self.offset


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


def place_copy(blocks: Iterable[Any], head: Any, nth: int) -> None:
    """Tell the statements of a copy of a loop's body which one it is. head: where a round of the loop begins."""
    made: dict[int, Place] = {}
    if not isinstance(head, Place):
        return
    ways: dict[int, Way] = {}
    for part in (x for block in blocks for x in (block, *block.body)):
        loc = part.loc
        if type(loc) is Place:
            place = made.get(id(loc))
            if place is None:
                place = made[id(loc)] = object.__new__(Place)  # in a tenth of the time of `copy.copy`
                place.__dict__.update(loc.__dict__)
                way = ways.get(id(loc.way))
                if way is None:
                    way = ways[id(loc.way)] = Way(loc.way.sites, loc.way.rounds | {(head.site, nth)})
                place.way = way
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
                sites = (*call.way.sites, call.site, *place.way.sites)
                place.way = Way(sites, call.way.rounds | place.way.rounds)
            memory().inlined.update((new.name, name) for name, new in made[1].items())
            for label in func_ir.blocks.keys() - before - made[0].keys():
                func_ir.blocks[label].loc = ir.Loc(call.filename, call.line)
        return made

    return placed
