# SPDX-License-Identifier: Apache-2.0
"""The pass `cute-fold-static`: what a type says whole becomes a `cute.static`, and what nobody uses goes."""

from __future__ import annotations

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IntegerAttr, i1
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator, NoMemoryEffect, is_side_effect_free, is_speculatable

from .attributes import CuteType
from .checked import leaves_of
from .inference import value_of_type
from .meaning import FUNCTIONS
from .operations import OPERATIONS, CuteOperation


def fold_static(module: Operation) -> None:
    """Fold a module in place."""
    for region in module.regions:
        for block in reversed(region.blocks):
            op = block.last_op
            while op is not None:
                before = op.prev_op
                fold_static(op)
                _fold(op)
                op = before


def is_pure(op: Operation) -> bool:
    """Return whether an operation may go where nobody uses it, or move. A division may where it divides by no zero."""
    if isinstance(op, CuteOperation) and op.has_trait(NoMemoryEffect) and not op.DEFINITION.safe:
        divisor = op.args[-1].type
        leaves = leaves_of(value_of_type(divisor).value)
        return all(type(x) is int and x != 0 for x in leaves)
    return is_side_effect_free(op) and is_speculatable(op)


def _fold(op: Operation) -> None:
    if isinstance(op, OPERATIONS["static"]) or op.has_trait(IsTerminator) or not is_pure(op):
        return
    if not any(result.uses for result in op.results):
        Rewriter.erase_op(op)
        return
    verdict = _verdict(op)
    if verdict is not None:
        Rewriter.replace_op(op, ConstantOp(IntegerAttr(int(verdict), i1)))
        return
    for result in op.results:
        if isinstance(result.type, CuteType) and result.type.is_static and result.uses:
            made = OPERATIONS["static"].create(result_types=[result.type])
            Rewriter.insert_op(made, InsertPoint.before(op))
            result.replace_all_uses_with(made.results[0])
    if not any(result.uses for result in op.results):
        Rewriter.erase_op(op)


def _verdict(op: Operation) -> bool | None:
    """Return the result of a comparison of static values; None for any other operation."""
    if not isinstance(op, (OPERATIONS["equal"], OPERATIONS["elem_less"])):
        return None
    operands = [value_of_type(a.type) for a in op.operands]
    if not all(v.is_static for v in operands):
        return None
    found: bool = FUNCTIONS[op.name.removeprefix("cute.")](operands, {})[0].value
    return found
