# SPDX-License-Identifier: Apache-2.0
"""Note for the simulator what the front end converts, and where (`typed.meetings`)."""

from __future__ import annotations

import dis
import functools
import re
from collections.abc import Iterable, Iterator
from types import CodeType
from typing import Any

from ...typed.meetings import NOWHERE, WHOLE, Call, Kind, Meeting, Site, Static, Version, Way, differs, outline
from ..bridge.kinds import given_as, held_by, kind_of_type, note_version
from ..ground.lifted import written
from ..ground.memory import memory
from ..ground.numba_cuda import AnalysisPass, ir, register_pass, types
from ..ground.places import Place
from .constants import Whole, WholeOfTypes


@register_pass(mutates_CFG=False, analysis_only=True)
class NoteMeetings(AnalysisPass):
    _name = "numba_cute_note_meetings"

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        code = written(state.func_id.code)
        note_version(code, _Reader(state, code).version())
        return False


class _Reader:
    """Reads one function as Numba typed it, before its phis become copies. code: as the user wrote it."""

    def __init__(self, state: Any, code: CodeType) -> None:
        self._state, self._code, self._types, self._calls = state, code, state.typemap, state.calltypes
        blocks = state.func_ir.blocks.values()
        self._made = {s.target.name: s for block in blocks for s in block.body if isinstance(s, ir.Assign)}
        phis = [s.value for s in self._made.values() if isinstance(s.value, ir.Expr) and s.value.op == "phi"]
        given = [s.value for s in self._made.values() if isinstance(s.value, ir.Var) and _returns(s.loc)]
        self._handed_on = {
            v.name for v in (*given, *(v for p in phis for v in p.incoming_values)) if isinstance(v, ir.Var)
        }
        self._found: set[tuple[CodeType, Meeting]] = set()
        self._kinds: dict[int, Kind] = {}  # by the number of a type that the variables have
        self._tops: dict[int, dict[int, int]] = {}

    def version(self) -> Version:
        """Return what the function was made of, with each that was inlined in it."""
        for block in self._state.func_ir.blocks.values():
            for inst in block.body:
                if isinstance(inst, ir.Assign):
                    self._assign(inst, block)
        meetings: dict[CodeType, set[Meeting]] = {}
        matter: dict[tuple[Any, ...], list[Meeting]] = {
            (code, m.at, m.variable, m.after): [] for code, m in self._found if differs(m.came, m.to)
        }
        for code, m in self._found:
            noted = matter.get((code, m.at, m.variable, m.after))
            if noted is not None:
                noted.append(m)
        for (code, *_), noted in matter.items():
            told = meetings.setdefault(code, set())
            told.update(m._replace(came=outline(m.came)) for m in noted if not _is_passed(m, noted))
            told.update(self._untouched(code, noted))
        lifted = self._state.func_id.code.co_argcount - self._code.co_argcount
        given = tuple(map(given_as, self._state.args))[lifted:]
        names = tuple(map(str, self._state.args))[lifted:]
        found = frozenset((code, frozenset(found)) for code, found in meetings.items())
        held = tuple(map(held_by, self._state.args))[lifted:]
        return Version(given, found, frozenset(self._called()), names, held)

    def _untouched(self, code: CodeType, noted: list[Meeting]) -> Iterator[Meeting]:
        """Yield, of a place that converts, what says that other copies of its code convert nothing there: they have one
        way to it, or none, where these have several."""
        ways, first = {m.way for m in noted}, noted[0]
        around = _loops(code, first.way)
        if ways == {Way()} or first.at == NOWHERE:
            return
        copies = [way for way in self._ways.get(code, ()) if _loops(code, way) == around]
        head = next((loop for loop in around if loop[1] == _without_prefix(code, first.at)), None)
        if head is not None:  # before its first round
            copies += [Way(w.sites, frozenset(r for r in w.rounds if r[0] != head) | {(head, -1)}) for w in copies]
        for way in set(copies) - ways:
            yield first._replace(way=way, came=None, to=None)

    @functools.cached_property
    def _ways(self) -> dict[CodeType, set[Way]]:
        """The copies that there are of each function's code."""
        blocks = self._state.func_ir.blocks.values()
        places = {id(s.loc): s.loc for block in blocks for s in block.body if _offset(s.loc) != NOWHERE}
        found: dict[CodeType, set[Way]] = {}
        for place in places.values():
            found.setdefault(place.code, set()).add(place.way)
        return found

    def _called(self) -> Iterator[Call]:
        """Yield the calls, with what is known of their arguments, where that may choose among a function's versions."""
        if all(len(versions) == 1 for versions in memory().meetings.values()):
            return
        for expr, sig in self._calls.items():
            if isinstance(expr, ir.Expr) and expr.op == "call" and sig is not None and _offset(expr.loc) != NOWHERE:
                yield Call(expr.loc.site, tuple(map(given_as, sig.args)), tuple(map(str, sig.args)))

    def _is_own(self, loc: Any) -> bool:
        """Say whether a statement is the function's, not of one that was inlined in it."""
        return _offset(loc) == NOWHERE or loc.code is self._code

    def _kind(self, var: Any) -> Kind:
        ty = self._types[var.name]
        if id(ty) not in self._kinds:
            self._kinds[id(ty)] = kind_of_type(ty)
        return self._kinds[id(ty)]

    def _assign(self, inst: Any, block: Any) -> None:
        to, value = self._kind(inst.target), inst.value
        if isinstance(value, Whole):
            known = WHOLE if isinstance(value, WholeOfTypes) else Static(value.value)
            self._note(inst.loc, None, True, to, known)
            return
        op = value.op if isinstance(value, ir.Expr) else None
        alike = op == "phi" or (isinstance(value, ir.Var) and not differs(self._kind(value), to))
        if to is None or (alike and (self._lies_below(inst, block) or _renames(inst))):
            return
        if op == "phi":
            self._phi(inst, block, to)
        elif op == "cast" and self._is_own(inst.loc):  # what the function returns
            self._meet(inst.loc, None, [value.value], kind_of_type(self._state.return_type))
        elif isinstance(value, ir.Var):
            if self._is_own(inst.loc) or not _returns(inst.loc) or inst.target.name not in self._handed_on:
                behind = _stack_place(inst.target.name) is not None and not _jumps(inst.loc)
                self._note(inst.loc, None, behind, self._kind(value), to)
        elif op is not None and op != "cast":
            given = self._types[value.value.name].first_type if op == "pair_first" else self._given(value)
            if given is not None:
                self._note(inst.loc, None, True, kind_of_type(given), to)

    def _lies_below(self, inst: Any, block: Any) -> bool:
        """Say whether a statement is of a value on the stack on which others of its block lie: it is converted where it
        lay on top."""
        place = _stack_place(inst.target.name)
        if place is None:
            return False
        return self._top(block)[place[0]] > place[1]

    def _top(self, block: Any) -> dict[int, int]:
        """Return which value of those that a block puts on the stack lies on top, by the block for which it does."""
        found = self._tops.get(id(block))
        if found is None:
            places = (_stack_place(s.target.name) for s in block.body if isinstance(s, ir.Assign))
            found = self._tops[id(block)] = {}
            for at, height in (place for place in places if place is not None):
                found[at] = max(found.get(at, 0), height)
        return found

    def _is_unset(self, var: Any) -> bool:
        return isinstance(self._types[var.name], types.UndefVar)

    def _given(self, expr: Any) -> Any:
        """Return the type in which an expression is computed; None where it is the variable's."""
        return getattr(self._calls.get(expr), "return_type", None)

    def _phi(self, inst: Any, block: Any, to: Kind) -> None:
        values = [v for v in inst.value.incoming_values if isinstance(v, ir.Var) and not self._is_unset(v)]
        whole = len(values) == len(inst.value.incoming_values)
        name = _written_name(inst.target.name)
        variable = None if name.startswith("$") else name
        begins, to = self._beginning(block, inst.target, to)
        returns = [getattr(self._made.get(v.name), "loc", None) for v in values]
        if begins is not None and (variable is not None or (whole and name.startswith("$phi"))):
            self._meet(begins, variable, values, to)
        elif whole and all(map(_returns, returns)):  # of a function that was inlined
            for v, place in zip(values, returns):
                self._meet(place, None, [v], to)
        else:
            self._meet(None, name, values, to)

    def _beginning(self, block: Any, var: Any, to: Kind) -> tuple[Any, Kind]:
        """Return where in the code a block begins (None: nowhere), and what a variable is converted to there. One that
        Numba put before a loop's head, for those of its ways that lead back, begins at the head."""
        empty = all(isinstance(getattr(s, "value", None), ir.Expr) and s.value.op == "phi" for s in block.body[:-1])
        if empty and isinstance(block.terminator, ir.Jump):
            head = self._state.func_ir.blocks[block.terminator.target]
            if _offset(block.loc) in (NOWHERE, _offset(head.loc)):
                block = head
                for s in block.body[:-1]:
                    phi = isinstance(s, ir.Assign) and isinstance(s.value, ir.Expr) and s.value.op == "phi"
                    if phi and any(v.name == var.name for v in s.value.incoming_values if isinstance(v, ir.Var)):
                        to = self._kind(s.target)
        return (block.loc if _offset(block.loc) != NOWHERE else None), to

    def _meet(self, loc: Any, variable: str | None, values: Iterable[Any], to: Kind) -> None:
        for v in values:
            self._note(loc, variable, False, self._kind(v), to)

    def _note(self, loc: Any, variable: str | None, after: bool, came: Kind, to: Kind) -> None:
        placed = _offset(loc) != NOWHERE
        code, way = (loc.code, loc.way) if placed else (self._code, Way())
        self._found.add((code, Meeting(way, _offset(loc), variable, after, came, to)))


def _is_passed(meeting: Meeting, noted: list[Meeting]) -> bool:
    """Say whether an object that keeps its type is given on at its instruction to what converts it."""
    if outline(meeting.came) is not None or differs(meeting.came, meeting.to):
        return False
    return any(m.way == meeting.way and differs(m.came, m.to) for m in noted)


def _renames(inst: Any) -> bool:
    """Say whether a statement gives a variable another number alone: it stands where its name is read, not set."""
    name = _written_name(inst.target.name)
    return isinstance(inst.value, ir.Var) and not name.startswith("$") and _written_name(inst.value.name) == name


def _written_name(name: str) -> str:
    """Return what the source calls a variable: Numba numbers them, and renames those of functions that it inlines."""
    base, inlined = name.split(".")[0], memory().inlined
    while base in inlined:
        base = inlined[base].split(".")[0]
    return base


def _stack_place(name: str) -> tuple[int, int] | None:
    """Return the block for which Numba put a value on the stack, and which it is there, from below; None of others."""
    found = re.match(r"\$phi(\d+)\.(\d+)", name)
    return None if found is None else (int(found[1]), int(found[2]))


def _jumps(loc: Any) -> bool:
    if _offset(loc) == NOWHERE:
        return False
    return loc.code.co_code[_without_prefix(loc.code, loc.offset)] in (*dis.hasjrel, *dis.hasjabs)


def _without_prefix(code: CodeType, offset: int) -> int:
    """Return where the instruction itself is that begins at an offset."""
    while code.co_code[offset] == dis.EXTENDED_ARG:
        offset += 2
    return offset


def _loops(code: CodeType, way: Way) -> frozenset[Site]:
    """Return the unrolled loops of a function's code that are around a copy of a part of it."""
    return frozenset(loop for loop, _ in way.rounds if loop[0] is code)


def _offset(loc: Any) -> int:
    return loc.offset if isinstance(loc, Place) else NOWHERE


def _returns(loc: Any) -> bool:
    return _offset(loc) != NOWHERE and dis.opname[loc.code.co_code[loc.offset]] in ("RETURN_VALUE", "RETURN_CONST")
