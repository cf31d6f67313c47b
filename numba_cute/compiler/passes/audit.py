# SPDX-License-Identifier: Apache-2.0
"""The steps of a typed function, for the core's own checks of it (`AUDITS`)."""

from __future__ import annotations

from typing import Any

from numba.cuda import types
from numba.cuda.core import ir
from numba.cuda.core.compiler_machinery import AnalysisPass, register_pass

from ... import seam
from ...seam import CuteError
from ...seam.ground.places import at_line
from ...seam.guards import facade
from ...seam.hooks.audits import AUDITS, Code, Step
from ..bridge.object_types import BoundTraced, StructRef, Value
from ..bridge.values import StructProxy, abstract
from ..emit.tracer import Tracer
from ..ground.building import building_kernel, kernel, known_launch, lowering
from ..ground.memory import Loss, compiling, memory


@register_pass(mutates_CFG=False, analysis_only=True)
class Audit(AnalysisPass):
    _name = "numba_cute_audit"

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        lowering(state.func_id.func)
        if any(isinstance(t, Value) for t in state.typemap.values()):
            try:
                code = _code(state)
                with seam.running(Tracer()):
                    for audit in AUDITS:
                        audit(code)
            except CuteError as e:
                line = getattr(e, "line", None)
                raise e if line is None else at_line(e, state.func_ir.loc.filename, line) from None
        return False


def _code(state: Any) -> Code:
    func_ir, typemap, file = state.func_ir, state.typemap, state.func_ir.loc.filename
    ends = {at: block.terminator for at, block in func_ir.blocks.items()}
    chosen = {at: end.cond.name for at, end in ends.items() if isinstance(end, ir.Branch)}
    steps = _steps(func_ir, typemap, state.calltypes)
    over = {s.target: s.of for s in steps if s.kind == "round"}
    is_kernel = building_kernel() and kernel().function is getattr(state, "cute_function", None)

    def note(text: str, line: int) -> None:
        if compiling():
            memory().losses[Loss(text, file, line, likely_wrong=True)] = None

    return Code(
        steps,
        {at: tuple(end.get_targets()) for at, end in ends.items()},
        {at: var for at, var in chosen.items() if var not in over},
        {at: over[var] for at, var in chosen.items() if var in over},
        lambda var: _value(typemap, var),
        note,
        known_launch()[1],
        is_kernel,
        (state.func_id.func, tuple(state.args)),
    )


def _value(typemap: Any, var: str) -> Any:
    """Return the object that traced code would see in a variable, without its run-time values; None if it cannot."""
    ty = typemap.get(var)
    if not isinstance(ty, (Value, StructRef)):
        return None
    try:
        return abstract(ty, None, Tracer())
    except CuteError:
        return None


def _steps(func_ir: Any, typemap: Any, calltypes: Any) -> list[Step]:
    bound = {
        inst.target.name: inst.value.value.name
        for block in func_ir.blocks.values()
        for inst in block.find_insts(ir.Assign)
        if isinstance(inst.value, ir.Expr) and inst.value.op == "getattr"
        if isinstance(typemap.get(inst.target.name), BoundTraced)
    }
    reader, regions, steps = _Reader(typemap, calltypes, bound), _regions(func_ir), []
    for at in sorted(func_ir.blocks):
        for inst in func_ir.blocks[at].body:
            if not (isinstance(inst, ir.Assign) and inst.target.name in bound) and not isinstance(inst, ir.Del):
                steps.append(reader.step(inst, at, regions[at]))
    return steps


_SAME = (bool, int)
"""Calls of these leave a number what it is."""
_ROUND = ("pair_second", "iternext", "pair_first")
"""Of a `for` loop: whether it goes on, and with what."""


class _Reader:
    """Reads the statements of a function as steps. typemap, calltypes: its types, and those of its calls. bound: the
    object of each variable that holds a traced method."""

    def __init__(self, typemap: Any, calltypes: Any, bound: dict[str, str]) -> None:
        self._typemap, self._calltypes, self._bound = typemap, calltypes, bound
        self._known: dict[str, Any] = {}  # of variables that hold a value of the source

    def step(self, inst: Any, block: int, region: int) -> Step:
        uses = {v.name for v in inst.list_vars()}
        uses |= {self._bound[v] for v in uses if v in self._bound}
        if not isinstance(inst, ir.Assign):
            return Step("other", "", None, None, (), {}, uses, region, inst.loc.line, block)
        target = inst.target.name
        uses.discard(target)
        kind, of, name, args, named = self._read(target, inst.value)
        calls = self._device_function(inst.value) if kind == "other" else None
        return Step(kind, target, of, name, args, named, uses, region, inst.loc.line, block, calls)

    def _read(self, target: str, value: Any) -> tuple[str, Any, Any, tuple[str, ...], dict[str, str]]:
        """Return kind, of, name, args and named of an assignment."""
        if isinstance(value, ir.Expr) and value.op == "call":
            return self._call(value)
        literal = self._typemap.get(target)
        if isinstance(literal, types.Literal):
            return "known", None, literal.literal_value, (), {}
        if isinstance(value, (ir.Const, ir.Global, ir.FreeVar)):
            self._known[target] = value.value
            return "known", None, value.value, (), {}
        if isinstance(value, ir.Var):
            return "alias", value.name, None, (), {}
        if isinstance(value, ir.Arg):
            return "argument", None, value.name, (), {}
        if not isinstance(value, ir.Expr):
            return "other", None, None, (), {}
        if value.op == "getattr":
            return "get", value.value.name, value.attr, (), {}
        if value.op in ("cast", "getiter", "exhaust_iter"):
            return "alias", value.value.name, None, (), {}
        if value.op in _ROUND:
            return "round", value.value.name, None, (), {}
        if value.op in ("static_getitem", "getitem", "typed_getitem"):
            return "item", value.value.name, getattr(value, "index", None), (), {}
        return self._computed(value)

    def _computed(self, value: Any) -> tuple[str, Any, Any, tuple[str, ...], dict[str, str]]:
        if value.op in ("binop", "inplace_binop"):
            fn = value.fn if value.op == "binop" else value.immutable_fn
            return "operator", None, fn, (value.lhs.name, value.rhs.name), {}
        if value.op == "unary":
            return "operator", None, value.fn, (value.value.name,), {}
        if value.op in ("phi", "build_tuple"):
            parts = value.incoming_values if value.op == "phi" else value.items
            if all(isinstance(v, ir.Var) for v in parts):
                return "phi" if value.op == "phi" else "tuple", None, None, tuple(v.name for v in parts), {}
        return "other", None, None, (), {}

    def _call(self, value: Any) -> tuple[str, Any, Any, tuple[str, ...], dict[str, str]]:
        func, args = value.func.name, tuple(v.name for v in value.args)
        named = {k: v.name for k, v in value.kws}
        if func in self._bound:
            return "call", self._bound[func], self._typemap[func].attr, args, named
        known = self._known.get(func)
        if len(args) == 1 and any(known is same for same in _SAME):
            return "alias", args[0], None, (), {}
        if known is range:
            return "call", None, range, args, named
        called = _value(self._typemap, func)
        if callable(called) and not isinstance(called, StructProxy):
            return "call", None, facade.plain(called), args, named
        return "other", None, None, args, named

    def _device_function(self, value: Any) -> Any:
        """Return the device function that a statement calls, and the types of its arguments; None if it calls none."""
        if not isinstance(value, ir.Expr) or value.op != "call" or value.vararg is not None:
            return None
        called = self._typemap[value.func.name]
        if not isinstance(called, types.Dispatcher):
            return None
        return called.dispatcher.py_func, tuple(self._calltypes[value].args)


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
