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
from collections.abc import Callable
from operator import itemgetter
from typing import Any

from ... import seam
from ...seam import CuteError
from ...seam.marks.plain import refuse_own_operators
from ..ground.errors import located
from ..ground.numba_cuda import (
    ConstantInferenceError,
    FunctionPass,
    NumbaError,
    build_definitions,
    ir,
    postproc,
    register_pass,
)
from . import branches, leftovers, lists, module_names, namespaces, prints, ranges, sequences, tables, unroll, wholes
from .at_most_once import take_once
from .constants import Constants, NotConstant, Whole
from .definitions import Place, instructions, statements
from .members import keep_members
from .members_compared import keep_compared
from .rewrites import quietly
from .typed_constants import TypedConstants

_FOLDED = frozenset(("binop", "inplace_binop", "unary", "getattr", "getitem", "static_getitem", "call"))


@register_pass(mutates_CFG=True, analysis_only=False)
class KeepConstants(FunctionPass):
    _name = "numba_cute_keep_constants"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        func_ir, known = state.func_ir, _Known(state)
        _refuse_own_operators(func_ir)
        changed = prints.print_compiling(func_ir)
        changed |= module_names.load_at_once(func_ir, state.typingctx)
        changed |= namespaces.add_fields(func_ir, state.args)
        changed |= ranges.plain_ranges(func_ir, state.args)
        changed |= tables.write_down(func_ir)
        with quietly(func_ir):
            changed |= _constant_slices(func_ir)
        made, more = lists.tuples_for_lists(func_ir)
        changed |= made
        changed |= _settle(known)
        changed |= known.after(tables.hand_on)
        changed |= known.after(keep_compared)
        tables.refuse_others(func_ir)  # of what is reached
        changed |= known.after(keep_members)
        while _decide_by_types(state, known):
            changed = True
            if more:
                made, more = lists.tuples_for_lists(func_ir)
                if made:
                    known.forget()
            _settle(known)  # arithmetic on the indices, tuples that they index, branches on them
            known.after(keep_members)
        lists.refuse_growing(func_ir)
        tables.refuse_others(func_ir, items=True)
        tables.refuse_keys(func_ir, known.now())
        changed |= tables.drop(func_ir.blocks)
        if changed:
            unroll.tidy(func_ir)
            if not state.flags.debuginfo or state.flags.dbg_directives_only:  # or a debugger shows them
                leftovers.leave_out(func_ir)
            func_ir._definitions = build_definitions(func_ir.blocks)
            postproc.PostProcessor(func_ir).run()
        return changed


class _Known:
    """The known facts of a function's variables: found once for each state of its IR."""

    def __init__(self, state: Any) -> None:
        self.func_ir, self._args = state.func_ir, state.args
        self._now: Constants | None = None
        self._told: dict[int, Any] = {}
        self._again: list[Place] | None = None

    def now(self) -> Constants:
        """Return what is known of the IR as it is."""
        if self._now is None:
            self._now = Constants(self.func_ir.blocks, self._args, self._told)
        return self._now

    def forget(self) -> None:
        """Note that statements were added, moved or taken away, or mean something else."""
        self._now = self._again = None

    def after_pruning(self) -> None:
        """Note that blocks were left out, and ends of others changed, and nothing else."""
        again = self.now().after_pruning()
        if self._again is not None:
            self._again = sorted({*self._again, *again})

    def unfolded(self) -> tuple[list[tuple[Place, Any]], bool]:
        """Return the statements that may be folded and were not looked at since; and whether these are all."""
        blocks, again = self.func_ir.blocks, self._again
        self._again = []
        if again is None:
            return list(statements(blocks)), True
        return [(p, blocks[p.label].body[p.index]) for p in again if p.label in blocks], False

    def after(self, step: Callable[[Any, Constants], bool]) -> bool:
        """Take a step that may change the IR by what is known; say whether it did."""
        changed = step(self.func_ir, self.now())
        if changed:
            self.forget()
        return changed

    def prune(self, step: Callable[[Any, Constants], bool]) -> bool:
        """Take a step that may leave blocks out by what is known, and changes nothing else; say whether it did."""
        changed = step(self.func_ir, self.now())
        if changed:
            self.after_pruning()
        return changed


def _settle(known: _Known) -> bool:
    """Fold constants and leave out what is not reached because of them, until nothing changes."""
    changed = _fold(known)
    changed |= known.after(tables.look_up)
    while known.prune(branches.prune_known):
        changed = True
        _fold(known)  # of a variable that is set on one way alone
    return changed


def _decide_by_types(state: Any, facts: _Known) -> bool:
    """Write down integers, or leave out what is not reached because of conditions, that only types tell; if there is
    none, unroll some loops. Say whether something changed."""
    func_ir, known = state.func_ir, facts.now()
    ranges = unroll.ranges(known)
    typed = TypedConstants(state, unroll.undecided(func_ir, ranges, known))
    if wholes.write_down(func_ir, known, typed):
        facts.forget()
        return True
    if branches.prune_typed(func_ir, known, typed, unroll.pending(func_ir, ranges)):
        facts.after_pruning()
        return True
    changed = _unroll_some(func_ir, ranges, known, typed)
    if changed:
        facts.forget()
    return changed


def _unroll_some(func_ir: Any, unrolled: set[Place], known: Constants, typed: TypedConstants) -> bool:
    """Unroll the outermost `range_constexpr` loops, so that an inner bound may be an outer index's copy, as far as
    their bounds are known; or the first loop over a tuple. False if there is none."""
    loops = sequences.Sequences(func_ir, known, typed)
    found: list[tuple[unroll.Loop, unroll.Items]] = []
    taken: set[int] = set()
    for place, inst in sorted(known.expressions("call") + known.expressions("getiter"), key=itemgetter(0)):
        expr = inst.value
        if place.label in taken:
            continue
        if place in unrolled:
            try:
                loop = unroll.loop_at(func_ir.blocks, loops.cfg, place.label, place.index)
                items = [ir.Const(i, expr.loc) for i in unroll.indices(expr, place, known, typed)]
            except (CuteError, NumbaError) as e:  # it may be said by what is known when those before it are unrolled
                if found:
                    break
                if isinstance(e, unroll.NoStaticBounds) and ranges.counts_at_run_time(known, place, expr):
                    return True
                raise
            found.append((loop, items))
            taken |= loop.inside
        elif expr.op == "getiter" and not loops.stays(place):
            if found:
                break
            if take_once(func_ir, place, known) or loops.unroll_at(place):
                return True
    unroll.unroll_all(func_ir, found)
    return bool(found)


def _constant_slices(func_ir: Any) -> bool:
    """Find constant slices, as in `shape[:3]`, now, as Numba does later: typing is to understand them for `unroll`."""
    changed = False
    for inst in instructions(func_ir.blocks):
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


def _fold(facts: _Known) -> bool:
    """Replace arithmetic on constant ints, and ints read from modules and constant objects, by constants; constant
    tuples by those of literals."""
    known, changed = facts.now(), False
    todo, whole = facts.unfolded()
    for place, inst in todo:
        if not isinstance(inst, ir.Assign):
            continue
        known.learn(place)
        expr = inst.value
        if not isinstance(expr, ir.Expr) or expr.op not in _FOLDED:
            continue
        try:
            value = known.given(expr, place)
        except NotConstant:
            continue
        if type(value) in (int, bool) or (type(value) is float and _is_asserted(expr, place, known)):
            made = Whole if expr.op == "call" and known.is_of_float(expr, place) else ir.Const
            inst.value = made(value, inst.loc)  # which gives what `known` has
            changed = True
    if whole and _expand_tuples(facts.func_ir):
        facts.forget()
        changed = True
    return changed


def _is_asserted(expr: Any, place: Place, known: Constants) -> bool:
    """Say whether an expression is `const_expr(x)`, which is x: of a float no type tells that it is static."""
    return expr.op == "call" and known.of(expr.func, place) is seam.const_expr


def _refuse_own_operators(func_ir: Any) -> None:
    """Refuse what a name of the host's stands for, if its class says itself what operators of numbers and tuples do."""
    for inst in instructions(func_ir.blocks):
        if isinstance(inst, ir.Assign) and isinstance(inst.value, (ir.Global, ir.FreeVar)):
            try:
                refuse_own_operators(inst.value.value)
            except CuteError as e:
                raise located(e, inst.loc) from None


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
