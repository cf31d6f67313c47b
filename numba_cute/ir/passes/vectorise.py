# SPDX-License-Identifier: Apache-2.0
"""`vectorise`: copies by each thread get the widest accesses that layouts and alignment allow."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

import numba_cute

from ... import layout
from ...compiler.inspection import inference
from ...layout import Layout
from ...tensor.move import WIDEST, vector_width
from ..library import instructions
from ..library.operations import StaticOp, target_of
from ..library.types import type_of
from .copies import PlainCopy, plain_copy
from .rewriting import Maker, rewrite_each

_WIDTHS = (8, 16, 32, 64, 128)
"""Bits that one access can have."""


class Vectorise(ModulePass):
    """Make of a copy by each thread a `cute.copy` by an atom of the widest accesses that the layouts of both tensors
    and the alignment of both pointers allow, 128 bits at most; the tensors are divided into its vectors.

    So `cute.autovec_copy`, `cute.basic_copy`, and `cute.copy` by CopyUniversalOp without predicates, if it has narrower
    accesses or leaves them open."""

    name = "vectorise"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite_each(op, _Vectorise())


class _Vectorise(RewritePattern):
    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        with inference.abstractly(target_of(op)):
            copy = plain_copy(op)
            if copy is None:
                return
            a, b = copy.a, copy.b
            width = vector_width(a.iterator, a.layout, b.iterator, b.layout, WIDEST)
            bits = width * int(a.element_type.width)
            if bits not in _WIDTHS or (op.name == "numba_cute.copy" and bits <= copy.bits):
                return
            self._rewrite(Maker(rewriter, op), copy, width, bits)
        rewriter.erase(op)

    def _rewrite(self, maker: Maker, copy: PlainCopy, width: int, bits: int) -> None:
        made = StaticOp.create(result_types=[type_of(inference.description_of_argument(vector_of(copy, width)))])
        vector = maker.insert(made).results[0]
        tensors = [
            maker.call(numba_cute.zipped_divide, (t, vector), hint=t.name_hint or "") for t in (copy.src, copy.dst)
        ]
        atom = maker.call(instructions.make_copy_atom, ("CopyUniversalOp", copy.a.element_type, bits), hint="atom")
        maker.call(numba_cute.copy, (atom, *tensors))


def vector_of(copy: PlainCopy, width: int) -> Layout:
    """Return the elements of one access, as a layout onto their numbers in the order of both tensors."""
    if width == 1:
        return Layout(1, 0)
    common = layout.max_common_layout(copy.a.layout, copy.b.layout)
    vector: Layout = layout.coalesce(layout.composition(common, layout.make_layout(width)))
    return vector
