# SPDX-License-Identifier: Apache-2.0
"""The steps of a typed function, for the core's own checks of it (`AUDITS`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import seam
from ...seam import CuteError
from ...seam.guards import facade
from ...seam.hooks.audits import AUDITS, AUDITS_OF_KERNELS, Callee, Code, Given, Spot, Step
from ...seam.marks.plain import is_users_module
from ..bridge.object_types import BoundJitted, BoundTraced, StructRef, Value
from ..bridge.recorder import callee_of, is_followed
from ..bridge.values import StructProxy, abstract
from ..emit.tracer import Tracer
from ..ground.building import building_kernel, kernel, known_launch, lowering
from ..ground.memory import Loss, compiling, memory
from ..ground.numba_cuda import AnalysisPass, ir, register_pass, types
from .joined import joined
from .uses import read_in


@register_pass(mutates_CFG=False, analysis_only=True)
class Audit(AnalysisPass):
    _name = "numba_cute_audit"

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        lowering(state.func_id.func)
        kinds = set(state.typemap.values())
        if any(isinstance(t, Value) for t in kinds):
            code = _code(state)
            _judge(code, AUDITS)
            if any(map(is_followed, kinds)):
                function = state.cute_function
                if building_kernel() and kernel().function is function:
                    whole = joined(code)
                    _judge(whole, AUDITS_OF_KERNELS)
                    whole.found.clear()  # which leads back to it: the collector would have to find that
                elif is_users_module(function.__module__):
                    memory().bodies[function, tuple(state.args)] = code
        return False


def _judge(code: Code, audits: list[Callable[[Code], None]]) -> None:
    with seam.running(Tracer()):
        for audit in audits:
            audit(code)


def _code(state: Any) -> Code:
    func_ir, typemap = state.func_ir, state.typemap
    ends = {at: block.terminator for at, block in func_ir.blocks.items()}
    chosen = {at: end.cond.name for at, end in ends.items() if isinstance(end, ir.Branch)}
    steps, tracer = _steps(func_ir, typemap, state.calltypes), Tracer()
    over = {s.target: s.of for s in steps if s.kind == "round"}

    def note(text: str, at: Spot) -> None:
        if compiling():
            memory().losses[Loss(text, at.file, at.line, likely_wrong=True)] = None

    return Code(
        steps,
        {at: tuple(end.get_targets()) for at, end in ends.items()},
        {at: var for at, var in chosen.items() if var not in over},
        {at: over[var] for at, var in chosen.items() if var in over},
        lambda var: _value(typemap, var, tracer),
        note,
        known_launch()[1],
    )


def _value(typemap: Any, var: str, tracer: Tracer) -> Any:
    """Return the object that traced code would see in a variable, for which its method may stand, without its run-time
    values; None if it cannot."""
    of, spread, at = var.rpartition(_SPREAD)
    ty = typemap[of].types[int(at)] if spread else typemap.get(var)
    ty = ty.this if isinstance(ty, (BoundTraced, BoundJitted)) else ty
    if not isinstance(ty, (Value, StructRef)):
        return None
    try:
        return abstract(ty, None, tracer)
    except CuteError:
        return None


def _steps(func_ir: Any, typemap: Any, calltypes: Any) -> list[Step]:
    reader, steps = _Reader(typemap, calltypes), []
    for at in sorted(func_ir.blocks):
        for inst in func_ir.blocks[at].body:
            if not isinstance(inst, ir.Del):
                steps.extend(reader.spread(inst, at))
                steps.append(reader.step(inst, at))
    return steps


_SPREAD = "*"
"""Stands between a tuple that a call is given as `*args` and the number of its item, in a variable's name."""
_SAME = (bool, int)
"""Calls of these leave a number what it is."""
_ROUND = ("pair_second", "iternext", "pair_first")
"""The parts of a `for` loop's round: whether it goes on, and with what."""


class _Reader:
    """Reads the statements of a function as steps. A method of an object stands for the object. typemap, calltypes: the
    types of the function, and of its calls."""

    def __init__(self, typemap: Any, calltypes: Any) -> None:
        self._typemap, self._calltypes = typemap, calltypes
        self._known: dict[str, Any] = {}  # of variables that hold a value of the source
        self._spots: dict[int, Spot] = {}  # by line: a function is of one file
        self._tracer = Tracer()

    def spread(self, inst: Any, block: int) -> list[Step]:
        """Return the steps that take the items of what a call is given as `*args`."""
        value = inst.value if isinstance(inst, ir.Assign) else None
        if not isinstance(value, ir.Expr) or value.op != "call" or value.vararg is None:
            return []
        of, at = value.vararg.name, self._at(inst.loc)
        return [Step("item", x, of, i, (), {}, {of}, at, block) for i, x in enumerate(self._spread(value))]

    def _spread(self, call: Any) -> list[str]:
        ty = None if call.vararg is None else self._typemap.get(call.vararg.name)
        items = ty.types if isinstance(ty, types.BaseTuple) else ()
        return [f"{call.vararg.name}{_SPREAD}{i}" for i in range(len(items))]

    def step(self, inst: Any, block: int) -> Step:
        uses = read_in(inst)
        at = self._at(inst.loc)
        if isinstance(inst, ir.SetAttr):
            return Step("set", "", inst.target.name, inst.attr, (inst.value.name,), {}, uses, at, block)
        if isinstance(inst, ir.Return):
            return Step("return", "", inst.value.name, None, (), {}, uses, at, block)
        if not isinstance(inst, ir.Assign):
            return Step("other", "", None, None, (), {}, uses, at, block)
        target = inst.target.name
        uses.discard(target)
        kind, of, name, args, named = self._read(target, inst.value)
        calls = self._callee(inst.value) if kind in ("call", "other") else None
        return Step(kind, target, of, name, args, named, uses, at, block, calls)

    def _at(self, loc: Any) -> Spot:
        if loc.line not in self._spots:
            self._spots[loc.line] = Spot(loc.filename, loc.line)
        return self._spots[loc.line]

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
            return "argument", value.index, value.name, (), {}
        if not isinstance(value, ir.Expr):
            return "other", None, None, (), {}
        if value.op == "getattr" and isinstance(self._typemap.get(target), (BoundTraced, BoundJitted)):
            return "alias", value.value.name, None, (), {}
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
        func, args = value.func.name, (*(v.name for v in value.args), *self._spread(value))
        named = {k: v.name for k, v in value.kws}
        if isinstance(self._typemap.get(func), (BoundTraced, BoundJitted)):
            return "call", func, self._typemap[func].attr, args, named
        known = self._known.get(func)
        if len(args) == 1 and any(known is same for same in _SAME):
            return "alias", args[0], None, (), {}
        if known is range:
            return "call", None, range, args, named
        called = _value(self._typemap, func, self._tracer)
        if callable(called) and not isinstance(called, StructProxy):
            return "call", None, facade.plain(called), args, named
        return "other", None, None, args, named

    def _callee(self, call: Any) -> Callee | None:
        """Return what function of the user's a statement calls; None if it calls none, or nobody knows which."""
        if not isinstance(call, ir.Expr) or call.op != "call":
            return None
        func, sig = self._typemap[call.func.name], self._calltypes[call]
        types_ = (*(() if sig.recvr is None else (sig.recvr,)), *sig.args)
        if isinstance(func, (types.Dispatcher, BoundJitted)):
            key: Any = func.dispatcher.py_func, types_
        elif isinstance(func, (BoundTraced, Value)):
            key = (*(func.typing_key if isinstance(func, BoundTraced) else (Value, func.key)), types_)
        else:
            return None
        args = [*(v.name for v in call.args), *self._spread(call)]
        return callee_of(key, lambda: _passed(call, args, sig))


def _passed(call: Any, args: list[str], sig: Any) -> list[Given] | None:
    """Return the variable that a call gives to each parameter, first to a method's own; None if that is not known."""
    own: list[Given] = [] if sig.recvr is None else [call.func.name]
    if sig.pysig is None:
        return None if call.kws else [*own, *args]
    try:
        bound = sig.pysig.bind(*args, **{k: v.name for k, v in call.kws}).arguments
    except TypeError:
        return None
    return [*own, *(bound.get(name) for name in sig.pysig.parameters)]
