# SPDX-License-Identifier: Apache-2.0
"""Comprehensions as Python 3.12 and later compile them: in the function's own code, with a handler of exceptions that
gives the comprehension's variable back what it was outside.

Numba knows such a handler by the one entry of the table of exceptions that spans the comprehension. Where the table has
several, as of `[f(x) for x in xs if x is not None]`, it takes the comprehension for a `try`, which makes of its loop
what cannot be unrolled. A function of this library catches nothing (`seam.language` refuses `try`), so that all of its
handlers are such.

The variable has a name of its own here, as in a function of its own: Numba would take two comprehensions that call
theirs the same for one variable, of one type.
"""

from __future__ import annotations

import dis
from collections.abc import Callable
from types import CodeType
from typing import Any

from ..ground.numba_cuda import ByteCodeInst
from ..ground.within import Within

_STORES = ("STORE_FAST", "STORE_FAST_STORE_FAST", "STORE_FAST_LOAD_FAST")
_MADE = ("BUILD_LIST", "BUILD_MAP", "BUILD_SET")


class _Handlers(Within):
    """While the code that Numba reads (it compiles one function at a time) is of this library, and catches nothing."""

    def leaving_out(self, removed: Callable[[Any, Any], list[Any]]) -> Callable[[Any, Any], list[Any]]:
        """Make of the method by which Numba leaves out the handlers that it knows one that leaves out all of them."""

        def remove(code: Any, entries: Any) -> list[Any]:
            if not self:
                return removed(code, entries)
            _iterate_once(code)
            return []

        return remove


HANDLERS = _Handlers()


def _iterate_once(code: Any) -> None:
    """Drop the second GET_ITER that Python 3.13.1 and later have before a comprehension's loop, as Numba does."""
    at = code.ordered_offsets
    for window in zip(at, at[1:], at[2:], at[3:]):
        made, swap, again, loop = (code.table[offset] for offset in window)
        if made.opname in _MADE and (swap.opname, again.opname, loop.opname) == ("SWAP", "GET_ITER", "FOR_ITER"):
            code.table[again.offset] = ByteCodeInst(again.offset, dis.opmap["NOP"], None, again.next)


class OwnVariables:
    """The variables of the comprehensions in a function's code, by the instructions of `insts`, which Numba reads."""

    def __init__(self, insts: list[Any], code: CodeType) -> None:
        self._names: tuple[str, ...] = code.co_varnames
        self._named: dict[int, dict[int, str]] = {}
        self._restored: dict[int, list[str]] = {}
        self.set_aside: set[int] = set()
        """The offsets of the instructions that set a variable aside which has another name in the comprehension."""
        if "LOAD_FAST_AND_CLEAR" not in dis.opmap:
            return
        begins: dict[int, int] = {}  # by handler: where the comprehension that it is of begins
        ends: dict[int, int] = {}
        entries = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
        handlers = {entry.target for entry in entries}
        for entry in (e for e in entries if e.start not in handlers):  # an inner one's handler is an outer one's to end
            begins[entry.target] = min(begins.get(entry.target, entry.start), entry.start)
            ends[entry.target] = max(ends.get(entry.target, 0), entry.end)
        put_before = insts[1].offset  # Numba puts an instruction before the first
        at = [inst.offset - put_before for inst in insts]
        for target in sorted(begins, key=begins.__getitem__):  # inner ones come after those around them
            if begins[target] in at and ends[target] in at:
                self._enter(insts, at.index(begins[target]), at.index(ends[target]))

    def _enter(self, insts: list[Any], first: int, after: int) -> None:
        """Name the variables that are set aside right before the instructions from `first` to `after`."""
        for inst in reversed(insts[:first]):
            if inst.opname not in ("LOAD_FAST_AND_CLEAR", "SWAP", "GET_ITER"):
                return
            if inst.opname != "LOAD_FAST_AND_CLEAR" or inst.arg >= len(self._names):
                continue
            restoring = next((i for i in insts[after:] if inst.arg in _stored(i)), None)
            if restoring is None:
                return
            self.set_aside.add(inst.offset)
            for inner in insts[first:after]:
                self._named.setdefault(inner.offset, {})[inst.arg] = f"{self._names[inst.arg]}.of{inst.offset}"
            outside = self._named.get(inst.offset, {}).get(inst.arg, self._names[inst.arg])
            self._restored.setdefault(restoring.offset, []).append(outside)

    def names_at(self, offset: int) -> Any:
        """Return the names of a function's variables, by their numbers, as the instruction at an offset means them."""
        named = self._named.get(offset)
        return [named.get(n, name) for n, name in enumerate(self._names)] if named else self._names

    def restored_at(self, offset: int) -> list[str]:
        """Return the variables that the instruction at an offset gives back what they were: they are so still."""
        return list(self._restored.get(offset, ()))


def _stored(inst: Any) -> tuple[int, ...]:
    """Return the numbers of the variables that an instruction sets."""
    if inst.opname not in _STORES:
        return ()
    both = (inst.arg >> 4, inst.arg & 15)
    return {"STORE_FAST": (inst.arg,), "STORE_FAST_STORE_FAST": both, "STORE_FAST_LOAD_FAST": both[:1]}[inst.opname]
