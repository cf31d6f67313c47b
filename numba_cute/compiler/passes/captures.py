# SPDX-License-Identifier: Apache-2.0
"""Closures over run-time values that are handed on: a closure is what `functools.partial` makes of a function that takes
the closure's variables as its first arguments.

Numba makes functions only of closures over constants, and inlines those that are called by their name. A partial holds
the values of the variables, and Python's closure the variables: where one is set again before the closure is used, the
two differ, and the closure is refused.
"""

from __future__ import annotations

import functools
from types import FunctionType
from typing import Any

from numba.cuda.core import ir
from numba.cuda.core.ir_utils import get_definition, guard

from ...seam import CuteError
from ..ground.errors import located
from .definitions import Place, statements
from .lifted import NotLifted, lifted, sets_free


def hand_on(func_ir: Any) -> bool:
    """Make partials of the closures over run-time values that are left; say whether there were any."""
    found = [(place, inst) for place, inst in statements(func_ir.blocks) if _is_closure(inst)]
    changed = False
    for place, inst in reversed(found):  # what stands behind a statement is changed before it
        captured = _captured(func_ir, inst)
        if captured and not all(_is_constant(func_ir, v) for v in captured):
            changed |= _make(func_ir, place, inst, captured)
    return changed


def _is_closure(inst: Any) -> bool:
    value = inst.value if isinstance(inst, ir.Assign) else None
    return isinstance(value, ir.Expr) and value.op == "make_function" and bool(value.code.co_freevars)


def _captured(func_ir: Any, inst: Any) -> list[Any]:
    """Return the variables that a closure holds."""
    held = guard(get_definition, func_ir, inst.value.closure)
    return list(held) if isinstance(held, tuple) else list(getattr(held, "items", ()))


def _is_constant(func_ir: Any, var: Any) -> bool:
    return isinstance(guard(get_definition, func_ir, var), (ir.Const, ir.Global, ir.FreeVar))


def _make(func_ir: Any, place: Place, inst: Any, captured: list[Any]) -> bool:
    """Put a partial in a closure's place; False where Numba is to say what is wrong with it."""
    expr = inst.value
    name = expr.code.co_name
    again = sets_free(expr.code) or _set_again(func_ir, place, inst, {v.name for v in captured})
    if again is not None:
        text = f"{name} is handed on, and {again}, which it reads, is set afterwards: pass {again} as an argument"
        raise located(CuteError(text), inst.loc)
    defaults = guard(get_definition, func_ir, expr.defaults) if expr.defaults is not None else ()
    items = getattr(defaults, "items", defaults)
    given = [guard(get_definition, func_ir, v) if isinstance(v, ir.Var) else v for v in items or ()]
    try:
        code = lifted(expr.code)
    except NotLifted:
        return False
    if not all(isinstance(d, ir.Const) for d in given):
        return False
    space = func_ir.func_id.func.__globals__
    fn = FunctionType(code, space, name, tuple(d.value for d in given) or None)
    fn.__module__ = func_ir.func_id.func.__module__
    block = func_ir.blocks[place.label]
    partial, function = (block.scope.redefine(f"$numba_cute_{n}", inst.loc) for n in ("partial", "function"))
    block.body[place.index : place.index] = [
        ir.Assign(ir.Global("partial", functools.partial, inst.loc), partial, inst.loc),
        ir.Assign(ir.Global(name, fn, inst.loc), function, inst.loc),
    ]
    inst.value = ir.Expr.call(partial, [function, *captured], (), inst.loc)
    return True


def _set_again(func_ir: Any, place: Place, made: Any, names: set[str]) -> str | None:
    """Return a variable of a closure that is set after it was made and before it is used; None if there is none. A
    closure that more than a name holds is used anywhere."""
    aliases = _aliases(func_ir, made.target.name)
    set_at = [(at, s.target.name) for at, s in _after(func_ir, place, None) if _sets(s, names)]
    for at, name in set_at:
        if aliases is None:
            return name
        if any(_reads(s, aliases) for _, s in _after(func_ir, at, made)):
            return name
    return None


def _sets(inst: Any, names: set[str]) -> bool:
    return isinstance(inst, ir.Assign) and inst.target.name in names


def _reads(inst: Any, names: set[str]) -> bool:
    if isinstance(inst, ir.Del):
        return False
    if isinstance(inst, ir.Assign):
        value = inst.value
        read = [value] if isinstance(value, ir.Var) else value.list_vars() if isinstance(value, ir.Expr) else ()
    else:
        read = inst.list_vars()
    return any(v.name in names for v in read)


def _aliases(func_ir: Any, name: str) -> set[str] | None:
    """Return the names that hold a closure, which is passed to functions and copied; None if anything else is done with
    it."""
    names, grows = {name}, True
    while grows:
        grows = False
        for _, inst in statements(func_ir.blocks):
            if not _reads(inst, names):
                continue
            value = inst.value if isinstance(inst, ir.Assign) else None
            if isinstance(value, ir.Var):
                grows |= inst.target.name not in names
                names.add(inst.target.name)
            elif not (isinstance(value, ir.Expr) and value.op == "call"):
                return None
    return names


def _after(func_ir: Any, place: Place, until: Any) -> list[tuple[Place, Any]]:
    """Return the statements that may run after one at a place, on ways that do not come by the statement `until`."""
    found: list[tuple[Place, Any]] = []
    todo, seen = [(place.label, place.index + 1)], set()
    while todo:
        label, first = todo.pop()
        body = func_ir.blocks[label].body
        for index in range(first, len(body)):
            if until is not None and body[index] is until:
                break
            found.append((Place(label, index), body[index]))
        else:
            for to in body[-1].get_targets() if body else ():
                if to not in seen:
                    seen.add(to)
                    todo.append((to, 0))
    return found
