# SPDX-License-Identifier: Apache-2.0
"""What must happen to a kernel's IR before typing, so that what the user wrote as constant stays constant.

* Nested constant tuples, and global ones that are never indexed at run time, become `build_tuple` of literals
  (Numba keeps literals only in flat tuples written in place).
* Arithmetic on constant ints is folded.
* `range_constexpr` loops are unrolled: each copy of the body sees a literal index.
"""

from __future__ import annotations

import itertools
import operator
from typing import Any

from numba.cuda import types
from numba.cuda.compiler import CUDACompiler
from numba.cuda.core import ir, postproc
from numba.cuda.core.compiler_machinery import FunctionPass, register_pass
from numba.cuda.core.errors import ConstantInferenceError
from numba.cuda.core.ir_utils import build_definitions, get_definition, guard
from numba.cuda.core.typed_passes import type_inference_stage
from numba.cuda.core.untyped_passes import IRProcessing

from .. import seam
from ..seam import CuteError
from . import tree, unroll
from .errors import lies_before
from .numba_types import Value

_FOLDABLE = {
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.lshift, operator.rshift,
    operator.and_, operator.or_, operator.xor, operator.pow, operator.lt, operator.le, operator.gt, operator.ge,
    operator.eq, operator.ne,
}  # fmt: skip
_UNARY = {operator.neg, operator.pos, operator.invert, operator.not_}
_CONSTANTS = (ir.Const, ir.Global, ir.FreeVar)
_FOLDED = ("binop", "unary", "getattr", "getitem", "static_getitem")


@register_pass(mutates_CFG=True, analysis_only=False)
class KeepConstants(FunctionPass):
    _name = "numba_cute_keep_constants"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        func_ir = state.func_ir
        known = Constants(func_ir, state.args)
        changed = _tuples_for_lists(func_ir)
        _constant_slices(func_ir)
        changed |= _fold_constants(func_ir, known)
        changed |= _expand_tuples(func_ir)
        if unroll.unroll_loops(func_ir, known.of, lambda var: typed_constant(state, var)):
            changed = True
            _fold_constants(func_ir, known)  # arithmetic on the indices
            _expand_tuples(func_ir)  # tuples that they index
        if changed:
            func_ir._definitions = build_definitions(func_ir.blocks)
            postproc.PostProcessor(func_ir).run()
        return changed


class NotConstant(Exception):
    """A variable has no value known before typing."""


class _Unknown:
    """A run-time part of an argument that is otherwise known."""


class Constants:
    """The Python values of variables that are constant in the source, or by the types of the function's arguments."""

    def __init__(self, func_ir: Any, args: Any) -> None:
        self.func_ir, self.args = func_ir, args

    def of(self, var: Any) -> Any:
        """The value of a variable; NotConstant if it has none."""
        node = guard(get_definition, self.func_ir, var)
        for _ in range(64):
            if not isinstance(node, ir.Var):
                break
            node = guard(get_definition, self.func_ir, node)
        if isinstance(node, _CONSTANTS):
            return node.value
        if isinstance(node, ir.Arg):
            return self._argument(node.index)
        if isinstance(node, ir.Expr):
            return self.of_expr(node)
        raise NotConstant

    def of_expr(self, node: Any) -> Any:
        """The value of an expression; NotConstant if it has none."""
        if node.op == "getattr":
            owner = self.of(node.value)
            try:
                return getattr(owner, node.attr)
            except (AttributeError, CuteError):
                raise NotConstant from None
        if node.op == "binop" and node.fn in _FOLDABLE:
            lhs, rhs = self.of(node.lhs), self.of(node.rhs)
            if all(isinstance(x, int) for x in (lhs, rhs)):
                return node.fn(lhs, rhs)
        if node.op == "unary" and node.fn in _UNARY:
            value = self.of(node.value)
            if isinstance(value, int):
                return node.fn(value)
        if node.op in ("getitem", "static_getitem"):
            index = node.index if node.op == "static_getitem" else self.of(node.index)
            owner = self.of(node.value)
            try:
                return owner[index]
            except (ArithmeticError, LookupError, TypeError, ValueError, CuteError):  # of what is partly _Unknown
                raise NotConstant from None
        if node.op == "build_tuple":
            return tuple(map(self.of, node.items))
        raise NotConstant

    def _argument(self, index: int) -> Any:
        """What a `static` argument's type says of it: its run-time parts are _Unknown."""
        ty = self.args[index] if index < len(self.args) else None
        if not isinstance(ty, Value):
            raise NotConstant
        return tree.unflatten(ty.spec, itertools.repeat(_Unknown()))


def typed_constant(state: Any, var: Any) -> Any:
    """The value of a variable whose type is a literal, as that of `cute.size(tensor)`; NotConstant otherwise.

    The whole function is typed for it, so far as it can be: only where the source alone does not tell. Where a mistake
    before it stopped typing, unroll.Refused with that.
    """
    try:
        found = type_inference_stage(
            state.typingctx, state.targetctx, state.func_ir, state.args, state.return_type, raise_errors=False
        )
    except Exception as e:  # what Numba does not hold back: a module has no such name, an index none such type
        raise unroll.Refused(CuteError(str(e))) from e
    ty = found.typemap.get(var.name)
    if isinstance(ty, types.IntegerLiteral):
        return ty.literal_value
    before = [e for e in found.typing_errors if lies_before(e, var.loc)]
    if before:  # typing came no further than this
        raise unroll.Refused(before[0])
    raise NotConstant


def _tuples_for_lists(func_ir: Any) -> bool:
    """`mode=[1]`: the CuTe DSL's idiom. A kernel has no lists of its own, so each literal one is a tuple."""
    changed = False
    for block in func_ir.blocks.values():
        for inst in block.body:
            if isinstance(inst, ir.Assign) and isinstance(inst.value, ir.Expr) and inst.value.op == "build_list":
                inst.value = ir.Expr.build_tuple(inst.value.items, inst.loc)
                changed = True
    if changed:
        func_ir._definitions = build_definitions(func_ir.blocks)
    return changed


def _constant_slices(func_ir: Any) -> None:
    """`shape[:3]`: constant slices are found now, as Numba does later, so that typing understands them for `unroll`."""
    for block in func_ir.blocks.values():
        for inst in block.body:
            expr = inst.value if isinstance(inst, ir.Assign) else None
            if not isinstance(expr, ir.Expr) or expr.op != "getitem":
                continue
            try:
                index = func_ir.infer_constant(expr.index)
            except ConstantInferenceError:
                continue
            if isinstance(index, slice):
                inst.value = ir.Expr.static_getitem(expr.value, index, expr.index, expr.loc)
                func_ir._definitions[inst.target.name] = [inst.value]


def _fold_constants(func_ir: Any, known: Constants) -> bool:
    """Replace arithmetic on constant ints, and ints read from modules and constant objects, by constants."""
    changed = False
    for block in func_ir.blocks.values():
        for inst in block.body:
            if not isinstance(inst, ir.Assign) or not isinstance(inst.value, ir.Expr):
                continue
            expr = inst.value
            if expr.op not in _FOLDED and not _is_const_expr(known, expr):
                continue
            try:
                value = known.of(expr.args[0]) if expr.op == "call" else known.of_expr(expr)
            except (NotConstant, ArithmeticError, LookupError, TypeError, ValueError):
                continue
            if type(value) in (int, bool):
                inst.value = ir.Const(value, inst.loc)
                func_ir._definitions[inst.target.name] = [inst.value]
                changed = True
    return changed


def _is_const_expr(known: Constants, expr: Any) -> bool:
    """Whether this is a call of `const_expr`."""
    if expr.op != "call" or len(expr.args) != 1:
        return False
    try:
        return bool(known.of(expr.func) is seam.const_expr)
    except NotConstant:
        return False


# ---------------------------------------------------------------- tuples


def _expand_tuples(func_ir: Any) -> bool:
    dynamic = _indexed_at_run_time(func_ir)
    changed = False
    for block in func_ir.blocks.values():
        body: list[Any] = []
        for inst in block.body:
            value = inst.value if isinstance(inst, ir.Assign) else None
            is_tuple = isinstance(value, _CONSTANTS) and isinstance(value.value, tuple) and _is_plain(value.value)
            if value is None or not is_tuple or inst.target.name in dynamic:
                body.append(inst)
                continue
            changed = True
            body.extend(_tuple_assignments(value.value, inst.target, inst.loc, block.scope))
        block.body = body
    if changed:
        func_ir._definitions = build_definitions(func_ir.blocks)
    return changed


def _is_plain(value: Any) -> bool:
    """A tuple, to any depth, of ints, None and slices: what names a shape, a coordinate, a tiler."""
    if isinstance(value, tuple):
        return not hasattr(value, "_fields") and all(map(_is_plain, value))
    return value is None or type(value) in (int, bool)


def _tuple_assignments(value: Any, target: Any, loc: Any, scope: Any) -> list[Any]:
    out, items = [], []
    for x in value:
        item = scope.redefine("$numba_cute_item", loc)
        out.extend(
            _tuple_assignments(x, item, loc, scope)
            if isinstance(x, tuple)
            else [ir.Assign(ir.Const(x, loc), item, loc)]
        )
        items.append(item)
    return [*out, ir.Assign(ir.Expr.build_tuple(items, loc), target, loc)]


def _indexed_at_run_time(func_ir: Any) -> set[str]:
    """Variables that are indexed by a variable or iterated over: ordinary Numba needs them homogeneous."""
    found, copies = set(), {}
    for block in func_ir.blocks.values():
        for inst in block.body:
            if not isinstance(inst, ir.Assign):
                continue
            value = inst.value
            if isinstance(value, ir.Var):
                copies[inst.target.name] = value.name
            elif isinstance(value, ir.Expr) and value.op in ("getitem", "getiter"):
                found.add(value.value.name)
    for name in list(found):
        while name in copies and copies[name] not in found:
            name = copies[name]
            found.add(name)
    return found


def _install() -> None:
    define = CUDACompiler.define_pipelines

    def define_pipelines(self: Any) -> Any:
        pipelines = define(self)
        for manager in pipelines:
            manager.add_pass_after(KeepConstants, IRProcessing)
            manager.finalize()
        return pipelines

    CUDACompiler.define_pipelines = define_pipelines


_install()
