# SPDX-License-Identifier: Apache-2.0
"""Closures that are handed on: a closure is what `functools.partial` makes of a function that takes the closure's
variables as its first arguments.

Numba inlines those that are called by their name, and makes functions of closures over constants late. A partial holds
the values of the variables, and Python's closure the variables: where one is set again before the closure is used, the
two differ, and the closure is refused.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from ...seam import CuteError
from ..ground.errors import located
from ..ground.lifted import NotLifted, lifted_function, sets_free
from ..ground.numba_cuda import get_definition, guard, ir
from .definitions import Place, instructions, statements


def hand_on(func_ir: Any) -> bool:
    """Make partials of the closures that are left; say whether there were any."""
    found = [(place, inst) for place, inst in statements(func_ir.blocks) if _is_closure(inst)]
    changed = False
    for place, inst in reversed(found):  # what stands behind a statement is changed before it
        _refuse_setting(inst)
        changed |= _make(func_ir, place, inst, _captured(func_ir, inst))
    return changed


def _is_closure(inst: Any) -> bool:
    value = inst.value if isinstance(inst, ir.Assign) else None
    return isinstance(value, ir.Expr) and value.op == "make_function"


def _captured(func_ir: Any, inst: Any) -> list[Any]:
    """Return the variables that a closure holds."""
    return _items(func_ir, inst.value.closure)


def _items(func_ir: Any, var: Any) -> list[Any]:
    """Return the items of a tuple that a function is made with; none where there is no tuple."""
    held = guard(get_definition, func_ir, var) if isinstance(var, ir.Var) else var
    if isinstance(held, ir.Const):
        return [ir.Const(v, held.loc) for v in held.value]
    return list(held) if isinstance(held, tuple) else list(getattr(held, "items", ()))


def _refuse_setting(inst: Any) -> None:
    """Raise a CuteError, with its line, for a closure that is handed on and sets a variable of the function around it:
    what it is handed to has a copy."""
    own = sets_free(inst.value.code)
    if own is not None:
        text = f"{inst.value.code.co_name} sets {own}, which is not its own, and is handed on: let it return the value"
        raise located(CuteError(text), inst.loc)


def _make(func_ir: Any, place: Place, inst: Any, captured: list[Any]) -> bool:
    """Put a partial in a closure's place; False where Numba is to say what is wrong with it."""
    expr = inst.value
    name = expr.code.co_name
    again = _set_again(func_ir, place, inst, {v.name for v in captured})
    if again is not None:
        text = f"{name} is handed on, and {again}, which it reads, is set afterwards: pass {again} as an argument"
        raise located(CuteError(text), inst.loc)
    defaults = _items(func_ir, expr.defaults)
    known = [guard(get_definition, func_ir, v) if isinstance(v, ir.Var) else v for v in defaults]
    constants = tuple(v.value if isinstance(v, (ir.Const, ir.Global, ir.FreeVar)) else None for v in known)
    function = func_ir.func_id.func
    try:
        fn = lifted_function(expr.code, function.__globals__, function.__module__, constants or None)
    except NotLifted:
        return False
    taking = expr.code.co_varnames[: expr.code.co_argcount]
    named = zip(taking[len(taking) - len(defaults) :], defaults, known)
    keywords = tuple((n, v) for n, v, k in named if not isinstance(k, (ir.Const, ir.Global, ir.FreeVar)))
    if not captured and not keywords:
        inst.value = ir.Global(name, fn, inst.loc)
        return True
    block = func_ir.blocks[place.label]
    partial, made = (block.scope.redefine(f"$numba_cute_{n}", inst.loc) for n in ("partial", "function"))
    block.body[place.index : place.index] = [
        ir.Assign(ir.Global("partial", functools.partial, inst.loc), partial, inst.loc),
        ir.Assign(ir.Global(name, fn, inst.loc), made, inst.loc),
    ]
    inst.value = ir.Expr.call(partial, [made, *captured], keywords, inst.loc)
    return True


def _set_again(func_ir: Any, place: Place, made: Any, names: set[str]) -> Any:
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
        for inst in instructions(func_ir.blocks):
            if not _reads(inst, names):
                continue
            value = inst.value if isinstance(inst, ir.Assign) else None
            if isinstance(value, ir.Var):
                grows |= inst.target.name not in names
                names.add(inst.target.name)
            elif not isinstance(value, ir.Expr) or value.op != "call" or _is_method(func_ir, value):
                return None
            else:  # a function may give it back
                grows |= inst.target.name not in names
                names.add(inst.target.name)
    return names


def _is_method(func_ir: Any, call: Any) -> bool:
    """Say whether an attribute of an object is called, as `append` of a list, which keeps what it is given: not one of
    a module or a class."""
    made = guard(get_definition, func_ir, call.func)
    if getattr(made, "op", None) != "getattr":
        return False
    while getattr(made, "op", None) == "getattr":
        made = guard(get_definition, func_ir, made.value)
    return not (isinstance(made, (ir.Global, ir.FreeVar)) and isinstance(made.value, (ModuleType, type)))


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
