# SPDX-License-Identifier: Apache-2.0
"""Statements `x.set(…)`: they set the variable `x` (see `seam.after_set`)."""

from __future__ import annotations

from typing import Any

from ... import seam
from ..ground.numba_cuda import FunctionPass, build_definitions, ir, postproc, register_pass
from .definitions import instructions
from .uses import read_in


@register_pass(mutates_CFG=False, analysis_only=False)
class Settings(FunctionPass):
    _name = "numba_cute_settings"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        func_ir = state.func_ir
        made = {i.target.name: i.value for i in instructions(func_ir.blocks) if isinstance(i, ir.Assign)}
        sets = [(b, i) for b in func_ir.blocks.values() for i in b.body if _method(i, made) is not None]
        if not sets:
            return False
        read = set().union(*map(read_in, instructions(func_ir.blocks)))
        changed = False
        for block, inst in sets:
            name = _behind(_method(inst, made).value.name, made)
            if not name.startswith("$") and inst.target.name not in read:
                _set(block, inst, block.scope.get_exact(name))
                changed = True
        if changed:
            func_ir._definitions = build_definitions(func_ir.blocks)
            postproc.PostProcessor(func_ir).run()
        return changed


def _method(inst: Any, made: dict[str, Any]) -> Any:
    """Return the expression `x.set` of a statement that calls it; None of any other statement."""
    call = inst.value if isinstance(inst, ir.Assign) else None
    if not isinstance(call, ir.Expr) or call.op != "call":
        return None
    method = made.get(_behind(call.func.name, made))
    return method if isinstance(method, ir.Expr) and method.op == "getattr" and method.attr == "set" else None


def _behind(name: str, made: dict[str, Any]) -> str:
    """Return the variable of which a temporary one is a copy."""
    while name.startswith("$") and isinstance(made.get(name), ir.Var):
        name = made[name].name
    return name


def _set(block: Any, call: Any, variable: Any) -> None:
    """Set a variable after a call of its method `set`."""
    function = block.scope.redefine("$numba_cute_after_set", call.loc)
    known = ir.Global("after_set", seam.after_set, call.loc)
    after = ir.Expr.call(function, [variable, call.target], (), call.loc)
    at = block.body.index(call) + 1
    block.body[at:at] = [ir.Assign(known, function, call.loc), ir.Assign(after, variable, call.loc)]
