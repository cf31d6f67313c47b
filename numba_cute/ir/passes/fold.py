# SPDX-License-Identifier: Apache-2.0
"""`fold`: what is known when a kernel is compiled is written as what it is."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import GreedyRewritePatternApplier, PatternRewriter, PatternRewriteWalker, RewritePattern

from ...compiler.inspection import inference
from ..library.operations import Inferred, StaticOp
from ..library.types import description_of
from .rewriting import only_gives, placed, plain_constant, with_values


class ToStatic(RewritePattern):
    """Write a result that its type says whole, of the layout algebra on static operands say, as `numba_cute.static`."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if not isinstance(op, Inferred) or op.result is None or not only_gives(op):
            return
        if inference.is_whole(description_of(op.result.type)):
            rewriter.replace(op, placed(StaticOp.create(result_types=[op.result.type]), op))


class ToConstants(RewritePattern):
    """Write numbers, tuples of them, types and members where they are used."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if not isinstance(op, Inferred) or not any(map(_constant, op.values)):
            return

        def constant(value: SSAValue) -> object:
            found = _constant(value)
            return value if found is None else found[0]

        rewriter.replace(op, with_values(op, constant))


def _constant(value: SSAValue) -> tuple[object, ...] | None:
    return plain_constant(description_of(value.type)) if isinstance(value.owner, StaticOp) else None


class UnusedStatic(RewritePattern):
    """Leave out a `numba_cute.static` that nobody uses any more."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if isinstance(op, StaticOp) and all(r.first_use is None for r in op.results):
            rewriter.erase(op)


class Fold(ModulePass):
    """Write results that are known when a kernel is compiled as `numba_cute.static` or, numbers and tuples of them,
    where they are used. So the operations of the layout algebra on static operands go."""

    name = "fold"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns = GreedyRewritePatternApplier(
            [ToStatic(), ToConstants(), UnusedStatic()], dce_enabled=False, folding_enabled=False
        )
        PatternRewriteWalker(patterns).rewrite_module(op)
