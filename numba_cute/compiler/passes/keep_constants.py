# SPDX-License-Identifier: Apache-2.0
"""Change a kernel's IR before typing so that what the user wrote as constant stays constant.

* Lists become tuples; constant tuples, nested and global ones too, become `build_tuple` of literals (Numba keeps
  literals only in flat tuples written in place).
* Arithmetic on constant ints is folded, where every path to it agrees.
* `print` and f-strings of the CuTe DSL's kernels are of what is known now (see `prints`).
* Branches on constants are taken: what the other way holds is gone.
* `range_constexpr` loops, and those over tuples, are unrolled: each copy of the body sees a literal index, or its item.
"""

from __future__ import annotations

import enum
from typing import Any

from numba.cuda.core import ir, postproc
from numba.cuda.core.compiler_machinery import FunctionPass, register_pass
from numba.cuda.core.errors import ConstantInferenceError
from numba.cuda.core.ir_utils import build_definitions

from . import branches, prints, ranges, sequences, tables, unroll
from .constants import Constants, NotConstant
from .definitions import Place, statements
from .fields import keep_varying
from .members import keep_members
from .once import take_once
from .returned import keep_arguments
from .typed_constants import TypedConstants

_FOLDED = frozenset(("binop", "inplace_binop", "unary", "getattr", "getitem", "static_getitem", "call"))


@register_pass(mutates_CFG=True, analysis_only=False)
class KeepConstants(FunctionPass):
    _name = "numba_cute_keep_constants"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        func_ir = state.func_ir
        changed = prints.print_compiling(func_ir)
        changed |= ranges.plain_ranges(func_ir, state.args)
        changed |= sequences.tuples_for_lists(func_ir)
        changed |= _constant_slices(func_ir)
        changed |= _settle(func_ir, state.args)
        changed |= keep_members(func_ir, state.args)
        changed |= keep_varying(func_ir, Constants(func_ir.blocks, state.args))
        changed |= keep_arguments(func_ir, Constants(func_ir.blocks, state.args))
        while _take_static_branches(state) or _unroll_one(state):
            changed = True
            sequences.tuples_for_lists(func_ir)
            _settle(func_ir, state.args)  # arithmetic on the indices, tuples that they index, branches on them
            keep_members(func_ir, state.args)
        if changed:
            unroll.tidy(func_ir)
            func_ir._definitions = build_definitions(func_ir.blocks)
            postproc.PostProcessor(func_ir).run()
        return changed


def _settle(func_ir: Any, args: Any) -> bool:
    """Fold constants and leave out what is not reached because of them, until nothing changes."""
    changed = _fold(func_ir, args)
    changed |= tables.look_up(func_ir, Constants(func_ir.blocks, args))
    while branches.prune_known(func_ir, Constants(func_ir.blocks, args)):
        changed = True
        _fold(func_ir, args)  # of a variable that is set on one way alone
    return changed


def _take_static_branches(state: Any) -> bool:
    """Leave out what is not reached because of conditions that only types tell."""
    known = Constants(state.func_ir.blocks, state.args)
    return branches.prune_typed(state.func_ir, known, TypedConstants(state), unroll.pending(state.func_ir, known))


def _unroll_one(state: Any) -> bool:
    """Unroll the outermost `range_constexpr` loop or loop over a tuple, so that an inner bound may be an outer index's
    copy; False if there is none."""
    func_ir = state.func_ir
    known, typed = Constants(func_ir.blocks, state.args), TypedConstants(state)
    loops = sequences.Sequences(func_ir, known, typed)
    for label in sorted(func_ir.blocks):
        for at, inst in enumerate(func_ir.blocks[label].body):
            expr, place = inst.value if isinstance(inst, ir.Assign) else None, Place(label, at)
            if not isinstance(expr, ir.Expr):
                continue
            if expr.op == "call" and unroll.is_range(expr, place, known):
                items = [ir.Const(i, expr.loc) for i in unroll.indices(expr, place, known, typed)]
                unroll.unroll(func_ir, label, at, items)
                return True
            if expr.op == "getiter" and (take_once(func_ir, place, known) or loops.unroll_at(place)):
                return True
    return False


def _constant_slices(func_ir: Any) -> bool:
    """Find constant slices, as in `shape[:3]`, now, as Numba does later: typing is to understand them for `unroll`."""
    changed = False
    for _, inst in statements(func_ir.blocks):
        expr = inst.value if isinstance(inst, ir.Assign) else None
        if not isinstance(expr, ir.Expr) or expr.op != "getitem":
            continue
        try:
            index = func_ir.infer_constant(expr.index)  # of a variable with one assignment alone
        except ConstantInferenceError:
            continue
        if isinstance(index, slice):
            inst.value = ir.Expr.static_getitem(expr.value, index, expr.index, expr.loc)
            changed = True
    return changed


def _fold(func_ir: Any, args: Any) -> bool:
    """Replace arithmetic on constant ints, and ints read from modules and constant objects, by constants; constant
    tuples by those of literals."""
    known, changed = Constants(func_ir.blocks, args), False
    for place, inst in statements(func_ir.blocks):
        if not isinstance(inst, ir.Assign):
            continue
        known.learn(place)
        expr = inst.value
        if not isinstance(expr, ir.Expr) or expr.op not in _FOLDED:
            continue
        try:
            value = known.of_expr(expr, place)
        except NotConstant:
            continue
        if type(value) in (int, bool):
            inst.value = ir.Const(value, inst.loc)
            changed = True
    return _expand_tuples(func_ir) or changed


# ---------------------------------------------------------------- tuples


def _expand_tuples(func_ir: Any) -> bool:
    changed = False
    for block in func_ir.blocks.values():
        body: list[Any] = []
        for inst in block.body:
            value = inst.value if isinstance(inst, ir.Assign) else None
            is_tuple = isinstance(value, (ir.Const, ir.Global, ir.FreeVar)) and isinstance(value.value, tuple)
            if value is None or not is_tuple or not _is_plain(value.value):
                body.append(inst)
                continue
            changed = True
            body.extend(_tuple_assignments(value.value, inst.target, inst.loc, block.scope))
        block.body = body
    return changed


def _is_plain(value: Any) -> bool:
    """Say whether a value is a tuple, to any depth, of ints, members of an IntEnum, None and slices: what names a
    shape, a coordinate, a tiler."""
    if isinstance(value, tuple):
        return not hasattr(value, "_fields") and all(map(_is_plain, value))
    return value is None or type(value) in (int, bool) or isinstance(value, enum.IntEnum)


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
