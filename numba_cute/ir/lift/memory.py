# SPDX-License-Identifier: Apache-2.0
"""Memory that a kernel takes: registers, and shared memory."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import scf
from xdsl.ir import Operation

from .patterns import layout_of
from .recasts import Recast
from .spelling import element, layout_text, swizzle_text
from .values import Expr, Tree
from .writer import Lifter, lifts

STATIC = 48 << 10
"""The bytes that a kernel has of static shared memory: PTX has more as dynamic memory alone."""


@lifts("cute.memref.alloca")
def alloca(w: Lifter, op: Any) -> None:
    """Registers, or shared memory: all of it is static, or all is taken from a launch's dynamic memory."""
    elem, space, align, swizzle, layout = op.results[0].type.data
    if space == "rmem" and op in w.flow.recasts:
        _two_arrays(w, op, w.flow.recasts[op])
        return
    if space == "rmem":
        at = w.expr(op.operands[0]) if op.operands else layout_text(layout)
        w.bind(op.results[0], Expr(f"cute.make_rmem_tensor({at}, {w.element(elem)})"), moves=False)
        return
    if space != "smem":
        w.refuse(op, f"memory in {space} is not allocated so")
    count = cosize(layout_of(op.results[0].type))
    if shared_bytes(w.flow.function) > STATIC:
        if _repeats(op):
            w.refuse(
                op, f"a loop allocates shared memory of more than {STATIC} bytes in all: each round would take more"
            )
        text = f"{w.allocator()}.allocate_array({w.element(elem)}, {count}, {align or 1})"
    else:
        text = f"cute.arch.alloc_smem({w.element(elem)}, {count}, {align or 'None'})"
    if swizzle is not None:
        text = f"cute.recast_ptr({text}, swizzle_={swizzle_text(swizzle)})"
    w.bind(op.results[0], Expr(f"cute.make_tensor({text}, {layout_text(layout)})"), moves=False)


def _repeats(op: Operation) -> bool:
    """Say whether an operation stands in a loop."""
    around = op.parent_op()
    return around is not None and (isinstance(around, (scf.ForOp, scf.WhileOp)) or _repeats(around))


def _two_arrays(w: Lifter, op: Any, found: Recast) -> None:
    """Registers that the module views in two widths: an array for each."""
    if found.why:
        t = found.view.results[0].type.data[0]  # type: ignore[attr-defined]
        w.refuse(found.view, f"registers of {op.results[0].type.data[0]} are not viewed as {t}: {found.why}")
    names = []
    for v, width in zip((op.results[0], found.view.results[0]), found.widths, strict=True):
        names.append(w.local("registers"))
        w.line(f"{names[-1]} = cute.make_rmem_tensor({found.bits // width}, {w.element(v.type.data[0])})")
    w.values[found.view] = names
    begin = f"cute.make_tensor({names[0]}.iterator, {layout_text(op.results[0].type.data[-1])})"
    w.bind(op.results[0], Expr(begin), moves=False)


def cosize(layout: Any) -> int:
    """Count the elements from the first of a static layout to its last."""
    flat = zip(Tree(layout.shape).flat(), Tree(layout.stride).flat(), strict=True)
    return 1 + int(sum((s - 1) * d for s, d in flat))


def shared_bytes(function: Operation) -> int:
    """Count the bytes of shared memory that a function allocates."""
    total = 0
    for op in function.walk():
        if op.name == "cute.memref.alloca" and (t := op.results[0].type).data[1] == "smem":  # type: ignore[attr-defined]
            align = t.data[2] or 1  # type: ignore[attr-defined]
            width = getattr(element(t.data[0]), "width", 8)  # type: ignore[attr-defined]
            total = -(-total // align) * align + -(-cosize(layout_of(t)) * width // 8)
    return total


__all__ = ["STATIC", "cosize", "shared_bytes"]
