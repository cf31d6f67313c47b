# SPDX-License-Identifier: Apache-2.0
"""Numba's passes that inline closures and overloads, without the dead code elimination that follows them there.

That takes a store `t[i] = x` for dead if neither `t` nor what it knows as an alias of it is read later. It does not
know that the tensors of a kernel are views of memory that others read: `gC = cute.local_tile(…)`, `gC[i] = x` at a
kernel's end would be left out, because of a closure somewhere else in it.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from types import BuiltinFunctionType, CodeType
from typing import Any

from ... import seam
from ...seam import CuteError
from ..bridge.calls import call_jitted
from ..bridge.object_types import BoundJitted, BoundTraced, StructRef, Value
from ..bridge.struct_operators import dispatcher_of
from ..ground.errors import located
from ..ground.lifted import all_set_free
from ..ground.numba_cuda import (
    CUDADispatcher,
    InlineClosureLikes,
    InlineOverloads,
    build_definitions,
    ir,
    postproc,
    register_pass,
)
from ..ground.within import Within
from .captures import hand_on
from .comprehensions import HANDLERS
from .definitions import instructions
from .uses import read_in


def _greatest(x: Any, y: Any) -> Any:
    return max(x, y)


def _least(x: Any, y: Any) -> Any:
    return min(x, y)


_OF_BRANCHES: dict[Any, Any] = {max: _greatest, min: _least}
"""Functions that Numba has, and that tracing cannot follow."""


@seam.traced
def _reduce(function: Any, items: Any, *start: Any) -> Any:
    """Reduce a tuple, while the kernel is compiled."""
    if not isinstance(items, (tuple, list)):
        raise CuteError(f"reduce of {type(items).__name__}: kernels reduce a tuple or a list; write a loop")
    known = _OF_BRANCHES.get(function) if isinstance(function, BuiltinFunctionType) else None
    jitted = dispatcher_of(known) if known is not None else function
    if isinstance(jitted, CUDADispatcher):
        return functools.reduce(lambda x, y: call_jitted(jitted, (x, y), {}), items, *start)
    return functools.reduce(function, items, *start)


def _own_reduce(func_ir: Any) -> None:
    """Let `reduce` be a function of this library's: Numba's goes over no tuple."""
    modules: set[str] = set()
    for inst in instructions(func_ir.blocks):
        value = inst.value if isinstance(inst, ir.Assign) else None
        if isinstance(value, (ir.Global, ir.FreeVar)):
            if value.value is functools.reduce:
                value.value = _reduce
            elif value.value is functools:
                modules.add(inst.target.name)
        elif isinstance(value, ir.Expr) and value.op == "getattr" and value.attr == "reduce":
            if value.value.name in modules:
                inst.value = ir.Global("reduce", _reduce, value.loc)


def _drop_functions(func_ir: Any) -> None:
    """Remove functions that are made and not used any more (another pass would compile them), and copies of them. What
    else is dead LLVM removes."""
    while True:
        found = instructions(func_ir.blocks)
        used: set[str] = set().union(*map(read_in, found))
        dead = [inst for inst in found if _is_dead_function(inst, used)]
        if not dead:
            break
        gone = set(map(id, dead))
        for block in func_ir.blocks.values():
            block.body = [inst for inst in block.body if id(inst) not in gone]
    postproc.PostProcessor(func_ir).run()


def _drop_annotations(func_ir: Any) -> None:
    """Remove what makes the annotations of functions in a function, which nothing reads: names and their annotations,
    in turn, in a tuple, and what that was made of."""
    found = instructions(func_ir.blocks)
    uses = Counter(name for inst in found for name in read_in(inst))
    made = {inst.target.name: inst for inst in found if isinstance(inst, ir.Assign)}
    gone: set[int] = set()

    def drop(name: str) -> None:
        inst = made[name]
        gone.add(id(inst))
        for source in read_in(inst):
            uses[source] -= 1
            if not uses[source] and source.startswith("$") and source in made:
                drop(source)

    for name, inst in made.items():
        if not uses[name] and name.startswith("$") and _is_annotations(inst.value, made):
            drop(name)
    if gone:
        for block in func_ir.blocks.values():
            block.body = [inst for inst in block.body if id(inst) not in gone]
        func_ir._definitions = build_definitions(func_ir.blocks)


def _is_annotations(value: Any, made: dict[str, Any]) -> bool:
    if not isinstance(value, ir.Expr) or value.op != "build_tuple" or not value.items or len(value.items) % 2:
        return False
    names = [made.get(v.name) for v in value.items[::2]]
    return all(n is not None and isinstance(n.value, ir.Const) and type(n.value.value) is str for n in names)


def _is_dead_function(inst: Any, used: set[str]) -> bool:
    if not isinstance(inst, ir.Assign) or inst.target.name in used:
        return False
    return isinstance(inst.value, ir.Var) or isinstance(inst.value, ir.Expr) and inst.value.op == "make_function"


def _refuse_setting_outside(code: CodeType, loc: Any) -> None:
    """Refuse a function in a closure that sets what is not the closure's: inlined there, it would set a copy."""
    for inner in (c for c in code.co_consts if isinstance(c, CodeType)):
        for name in sorted(all_set_free(inner) & set(inner.co_freevars)):
            text = f"a function in {inner.co_name} sets {name}, which is not {inner.co_name}'s: let it return the value"
            raise located(CuteError(text), ir.Loc(loc.filename, inner.co_firstlineno))
        _refuse_setting_outside(inner, loc)


class _StoresKept(Within):
    """Dead code elimination as one module of Numba calls it: while a pass of this library runs there (Numba compiles
    one function at a time), nothing is dead code."""

    def keeping_stores(self, dead_code_elimination: Callable[..., None]) -> Callable[..., None]:
        """Make of Numba's dead code elimination one that knows of such passes."""

        def eliminate(func_ir: Any, *args: Any, **kwargs: Any) -> None:
            if not self:
                dead_code_elimination(func_ir, *args, **kwargs)

        return eliminate


IN_CLOSURES, IN_OVERLOADS = _StoresKept(), _StoresKept()


@register_pass(mutates_CFG=True, analysis_only=False)
class InlineClosures(InlineClosureLikes):
    _name = "numba_cute_inline_closures"

    def run_pass(self, state: Any) -> bool:
        if any(isinstance(c, CodeType) for c in state.func_id.code.co_consts):
            _drop_annotations(state.func_ir)
        _own_reduce(state.func_ir)
        _refuse_setting_outside(state.func_id.code, state.func_ir.loc)
        with IN_CLOSURES, HANDLERS:
            changed = bool(super().run_pass(state))
        func_ir = state.func_ir
        _drop_functions(func_ir)  # also where none was inlined
        if hand_on(func_ir):
            func_ir._definitions = build_definitions(func_ir.blocks)
            postproc.PostProcessor(func_ir).run()
            changed = True
        return changed


_OWN = (Value, StructRef, BoundTraced, BoundJitted)


@register_pass(mutates_CFG=True, analysis_only=False)
class InlineOverloaded(InlineOverloads):
    _name = "numba_cute_inline_overloads"

    def run_pass(self, state: Any) -> bool:
        with IN_OVERLOADS:
            return bool(super().run_pass(state))

    def _do_work_expr(self, state: Any, work: Any, block: Any, at: int, expr: Any, worker: Any) -> Any:
        """Inline an expression, if it is to be. What is asked of this library's own never is, and Numba looks long."""
        of = expr.value if expr.op == "getattr" else expr.func if expr.op == "call" else None
        if of is not None and isinstance(state.typemap.get(of.name), _OWN):
            return False
        return super()._do_work_expr(state, work, block, at, expr, worker)
