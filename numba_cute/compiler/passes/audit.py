# SPDX-License-Identifier: Apache-2.0
"""The steps of a typed function, for the core's own checks of it (`AUDITS`)."""

from __future__ import annotations

from typing import Any

from numba.cuda.core import ir
from numba.cuda.core.compiler_machinery import AnalysisPass, register_pass

from ... import seam
from ...seam import CuteError
from ...seam.ground.places import at_line
from ...seam.guards import facade
from ...seam.hooks.audits import AUDITS, Step
from ..bridge.object_types import BoundTraced, StructRef, Value
from ..bridge.values import StructProxy, abstract
from ..emit.tracer import Tracer
from ..ground.building import lowering


@register_pass(mutates_CFG=False, analysis_only=True)
class Audit(AnalysisPass):
    _name = "numba_cute_audit"

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        lowering(state.func_id.func)
        if any(isinstance(t, Value) for t in state.typemap.values()):
            try:
                made = _steps(state.func_ir, state.typemap)
                with seam.running(Tracer()):
                    for audit in AUDITS:
                        audit(made, lambda var: _value(state.typemap, var))
            except CuteError as e:
                line = getattr(e, "line", None)
                raise e if line is None else at_line(e, state.func_ir.loc.filename, line) from None
        return False


def _value(typemap: Any, var: str) -> Any:
    """Return the object that traced code would see in a variable, without its run-time values; None if it cannot."""
    ty = typemap.get(var)
    if not isinstance(ty, (Value, StructRef)):
        return None
    try:
        return abstract(ty, None, Tracer())
    except CuteError:
        return None


def _steps(func_ir: Any, typemap: Any) -> list[Step]:
    bound = {
        inst.target.name: inst.value.value.name
        for block in func_ir.blocks.values()
        for inst in block.find_insts(ir.Assign)
        if isinstance(inst.value, ir.Expr) and inst.value.op == "getattr"
        if isinstance(typemap.get(inst.target.name), BoundTraced)
    }
    regions = _regions(func_ir)
    steps = []
    for at in sorted(func_ir.blocks):
        for inst in func_ir.blocks[at].body:
            if not (isinstance(inst, ir.Assign) and inst.target.name in bound) and not isinstance(inst, ir.Del):
                steps.append(_step(inst, typemap, bound, regions[at]))
    return steps


def _step(inst: Any, typemap: Any, bound: dict[str, str], region: int) -> Step:
    uses = {v.name for v in inst.list_vars()}
    uses |= {bound[v] for v in uses if v in bound}
    line, target = inst.loc.line, ""
    if isinstance(inst, ir.Assign):
        target, value = inst.target.name, inst.value
        uses.discard(target)
        if isinstance(value, ir.Var):
            return Step("alias", target, value.name, None, (), {}, uses, region, line)
        if isinstance(value, ir.Expr) and value.op == "getattr":
            return Step("get", target, value.value.name, value.attr, (), {}, uses, region, line)
        if isinstance(value, ir.Expr) and value.op == "call":
            func, args = value.func.name, tuple(v.name for v in value.args)
            named = {k: v.name for k, v in value.kws}
            if func in bound:
                return Step("call", target, bound[func], typemap[func].attr, args, named, uses, region, line)
            called = _value(typemap, func)
            if callable(called) and not isinstance(called, StructProxy):
                called = facade.plain(called)
                return Step("call", target, None, called, args, named, uses, region, line)
    return Step("other", target, None, None, (), {}, uses, region, line)


def _regions(func_ir: Any) -> dict[int, int]:
    """Find for each block the first of those that always run one after the other with it."""
    into: dict[int, list[int]] = {}
    out = {at: list(block.terminator.get_targets()) for at, block in func_ir.blocks.items()}
    for at, targets in out.items():
        for t in targets:
            into.setdefault(t, []).append(at)
    first = {}
    for at in sorted(func_ir.blocks):
        seen, b = {at}, at
        while len(into.get(b, ())) == 1 and len(out[into[b][0]]) == 1 and into[b][0] not in seen:
            b = into[b][0]
            seen.add(b)
        first[at] = b
    return first
