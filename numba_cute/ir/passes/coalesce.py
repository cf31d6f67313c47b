# SPDX-License-Identifier: Apache-2.0
"""`coalesce`: the tensors of copies get as few modes as say the same."""

from __future__ import annotations

from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

import numba_cute

from ... import layout
from ...compiler.inspection import inference
from ...tensor.tensor import Tensor
from ..library.operations import target_of
from .copies import plain_copy
from .rewriting import Maker, rewrite_each, with_values


class Coalesce(ModulePass):
    """Coalesce the layouts of both tensors of a copy by each thread (`cute.autovec_copy`, `cute.basic_copy`, and
    `cute.copy` by CopyUniversalOp of no given width): they are copied in the order of their elements, which stays.

    Other copies take their first mode for what one instruction moves, and stay as they are."""

    name = "coalesce"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite_each(op, _Coalesce())


class _Coalesce(RewritePattern):
    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        with inference.abstractly(target_of(op)):
            copy = plain_copy(op)
            if copy is None or (op.name == "numba_cute.copy" and copy.bits):
                return
            maker = Maker(rewriter, op)
            made = {t: _coalesced(maker, t, of) for t, of in ((copy.src, copy.a), (copy.dst, copy.b))}
        if any(new is not old for old, new in made.items()):
            rewriter.replace(op, with_values(op, lambda value: made.get(value, value)))  # type: ignore[arg-type]


def _coalesced(maker: Maker, t: SSAValue, of: Tensor) -> Any:
    if layout.coalesce(of.layout) == of.layout:
        return t
    return maker.call(numba_cute.coalesce, (t,), hint=t.name_hint or "")
