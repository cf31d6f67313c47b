# SPDX-License-Identifier: Apache-2.0
"""Arguments that a function gives back as it got them: `state, n = step(state, n)`. What the caller gets is its own
object, as in Python. Numba would return a copy of a struct, and where the two meet, neither could be in registers."""

from __future__ import annotations

import functools
import inspect
from types import FunctionType
from typing import Any

from numba.cuda.compiler import run_frontend
from numba.cuda.core import ir

from ..ground.refusals import NUMBAS
from .constants import Constants, NotConstant
from .definitions import Definitions, Place, statements


def keep_arguments(func_ir: Any, known: Constants) -> bool:
    """Take for what calls give back of their arguments these themselves; say whether there is one."""
    changed = False
    for label, block in func_ir.blocks.items():
        tuples: dict[str, list[Any]] = {}
        for at, inst in enumerate(block.body):
            if not isinstance(inst, ir.Assign):
                continue
            value = inst.value
            tuples.pop(inst.target.name, None)
            if isinstance(value, ir.Expr) and value.op == "call":
                tuples |= {inst.target.name: g} if (g := _given_back(value, Place(label, at), known, ())) else {}
            elif isinstance(value, ir.Expr) and value.op == "exhaust_iter" and value.value.name in tuples:
                tuples[inst.target.name] = tuples[value.value.name]
            elif isinstance(value, ir.Expr) and value.op == "static_getitem" and value.value.name in tuples:
                items = tuples[value.value.name]
                if type(value.index) is int and -len(items) <= value.index < len(items) and items[value.index]:
                    inst.value, changed = items[value.index], True
            for held in tuples.values():  # a variable that gets another value is no longer what was given
                held[:] = [None if v is not None and v.name == inst.target.name else v for v in held]
    return changed


def _given_back(call: Any, place: Place, known: Any, busy: tuple[Any, ...]) -> list[Any] | None:
    """Return the arguments (variables) that a call gives back as the items of a tuple, None for another item; None if
    it gives no tuple, or no argument."""
    try:
        callee = known.of(call.func, place)
    except NotConstant:
        return None
    bound = callee.args if isinstance(callee, functools.partial) else ()
    callee = callee.func if isinstance(callee, functools.partial) else callee
    fn = getattr(callee, "py_func", None)
    if not isinstance(fn, FunctionType) or fn in busy or call.vararg is not None:
        return None
    try:
        values = inspect.signature(fn).bind(*bound, *call.args, **dict(call.kws)).arguments
        pattern = _pattern(fn, bound, (*busy, fn))
    except (TypeError, ValueError, NotImplementedError, *NUMBAS):  # Numba says what is wrong
        return None
    names = list(inspect.signature(fn).parameters)
    given = [values.get(names[i]) if i is not None else None for i in pattern or ()]
    given = [v if isinstance(v, ir.Var) else None for v in given]
    return given if any(given) else None


def _pattern(fn: Any, bound: tuple[Any, ...], busy: tuple[Any, ...]) -> list[int | None] | None:
    """Return which parameters a function gives back as the items of the tuple that it returns, wherever it returns."""
    blocks = run_frontend(fn).blocks
    definitions, known = Definitions(blocks), _Bound(blocks, bound)
    found: list[int | None] | None = None
    for place, inst in statements(blocks):
        if isinstance(inst, ir.Return):
            made = _source(inst.value, place, definitions)
            if not isinstance(made[0], ir.Expr) or made[0].op != "build_tuple":
                return None
            items = [_parameter(v, made[1], definitions, known, busy, set()) for v in made[0].items]
            one = [next(iter(s)) if len(s) == 1 else None for s in items]
            if found is not None and len(found) != len(one):
                return None
            found = one if found is None else [a if a == b else None for a, b in zip(found, one)]
    return found


class _Bound(Constants):
    """Constants of a function whose first parameters are objects that are known."""

    def __init__(self, blocks: Any, bound: tuple[Any, ...]) -> None:
        super().__init__(blocks, ())
        self._bound = bound

    def _argument(self, index: int) -> Any:
        if index >= len(self._bound):
            raise NotConstant
        return self._bound[index]


def _source(var: Any, place: Place, definitions: Definitions) -> tuple[Any, Place]:
    """Return the right-hand side that a variable comes from, through copies, and its place."""
    node: Any = var
    while True:
        if isinstance(node, ir.Expr) and node.op == "cast":
            node = node.value
        if not isinstance(node, ir.Var):
            return node, place
        places = definitions.reaching(node.name, place)
        if len(places) != 1:
            return node, place
        (place,) = places
        node = definitions.at(place).value


def _parameter(
    var: Any, use: Place, definitions: Definitions, known: Constants, busy: tuple[Any, ...], seen: set[Place]
) -> set[int | None]:
    """Return the parameters that a variable may be, None among them if it may be anything else."""
    found: set[int | None] = set()
    for place in definitions.reaching(var.name, use):
        if place in seen:
            continue
        seen.add(place)
        node = definitions.at(place).value
        if isinstance(node, ir.Arg):
            found.add(node.index)
            continue
        if isinstance(node, ir.Expr) and node.op == "static_getitem" and type(node.index) is int:
            node = _item(node, place, definitions, known, busy)
        elif isinstance(node, ir.Expr) and node.op == "cast":
            node = node.value
        found |= _parameter(node, place, definitions, known, busy, seen) if isinstance(node, ir.Var) else {None}
    return found


def _item(node: Any, place: Place, definitions: Definitions, known: Constants, busy: tuple[Any, ...]) -> Any:
    """Return the variable that an item of a call's result is, if the call gives back its argument; else None."""
    made, at = _source(node.value, place, definitions)
    if isinstance(made, ir.Expr) and made.op == "exhaust_iter":
        made, at = _source(made.value, at, definitions)
    if not isinstance(made, ir.Expr) or made.op != "call":
        return None
    given = _given_back(made, at, known, busy)
    return given[node.index] if given is not None and -len(given) <= node.index < len(given) else None
