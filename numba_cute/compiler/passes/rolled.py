# SPDX-License-Identifier: Apache-2.0
"""Loops that say `unroll=1`: libNVVM makes copies of a loop's body as it likes, of one that waits at barriers too, and
is told to leave them."""

from __future__ import annotations

from typing import Any

from llvmlite import ir as llvm
from numba.cuda.core import ir

ONCE = "cute.range(unroll=1)"
"""The name of the global that such a loop's `range` becomes."""

_NOTHING = llvm.FunctionType(llvm.VoidType(), ())
"""The type of an empty assembly, which keeps a round's end a block of its own: where a round ends with an `if`, LLVM
has both ways go back, and loses what was said."""


def headers(blocks: dict[int, Any]) -> dict[int, int]:
    """Return the headers of the loops that say so, each with the block that comes before its first round."""
    found = {}
    for label, block in blocks.items():
        once: set[str] = set()
        for inst in block.body:
            value = inst.value if isinstance(inst, ir.Assign) else None
            if isinstance(value, ir.Global) and value.name == ONCE:
                once.add(inst.target.name)
            elif isinstance(value, ir.Expr) and _of(value) in once:
                once.add(inst.target.name)
                if value.op == "getiter" and isinstance(block.terminator, ir.Jump):
                    found[block.terminator.target] = label
            elif isinstance(value, ir.Var) and value.name in once:
                once.add(inst.target.name)
    return found


def _of(expr: Any) -> str | None:
    """Return the name of what is called, or gone through."""
    of = {"call": "func", "getiter": "value"}.get(expr.op)
    return getattr(expr, of).name if of is not None else None


class Rolled:
    """The loops of a function that is lowered which say so. lower: what lowers it."""

    def __init__(self, lower: Any) -> None:
        self._lower, self._found = lower, headers(lower.func_ir.blocks)
        self._labels = {id(block): label for label, block in lower.func_ir.blocks.items()} if self._found else {}
        self._nodes: dict[int, Any] = {}

    def mark(self, block: Any) -> None:
        """Say it of a block that was just lowered, if it begins another round."""
        end = block.terminator
        for header in end.get_targets() if self._found and isinstance(end, (ir.Jump, ir.Branch)) else ():
            if header in self._found and self._found[header] != self._labels[id(block)]:
                if header not in self._nodes:
                    self._nodes[header] = _node(self._lower.module)
                end_of_round = self._lower.builder.block.terminator
                with self._lower.builder.goto_block(self._lower.builder.block):
                    self._lower.builder.asm(_NOTHING, "", "", (), True)
                end_of_round.set_metadata("llvm.loop", self._nodes[header])


def _node(module: Any) -> Any:
    """Make a loop's metadata, which name themselves first, so that no two loops have the same."""
    said = module.add_metadata([llvm.MetaDataString(module, "llvm.loop.unroll.disable")])
    node = llvm.values.MDValue(module, (), name=str(len(module.metadata)))
    node.operands = node, said
    return node
