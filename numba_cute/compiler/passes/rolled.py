# SPDX-License-Identifier: Apache-2.0
"""Loops that say `unroll=1`, and those that wait at barriers: libNVVM makes copies of a loop's body as it likes, and is
told to leave them."""

from __future__ import annotations

from typing import Any

from ..emit.waiting import is_waiting
from ..ground import llvmlite as llvm
from ..ground.numba_cuda import compute_cfg_from_blocks, ir

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
    """The loops of a function that is lowered which say so, and those that wait in a round. lower: what lowers it."""

    def __init__(self, lower: Any) -> None:
        self._lower, blocks = lower, lower.func_ir.blocks
        self._found = headers(blocks)
        self._labels = {id(block): label for label, block in blocks.items()}
        self._loops = tuple(compute_cfg_from_blocks(blocks).loops().values())
        self._made: dict[int, list[Any]] = {}

    def lowered(self, block: Any, before: int) -> None:
        """Note the LLVM blocks of a block that was just lowered. before: how many the function had."""
        if self._loops:
            label = self._labels[id(block)]
            self._made[label] = [self._lower.blkmap[label], *self._lower.function.blocks[before:]]

    def mark(self) -> None:
        """Say it at the ends of these loops' rounds, once all is lowered."""
        for loop in self._loops:
            made = [block for label in loop.body for block in self._made.get(label, ())]
            if loop.header in self._found or is_waiting(made):
                header, node = self._lower.blkmap[loop.header], _node(self._lower.module)
                for block in made:
                    self._say(block, header, node)

    def _say(self, block: Any, header: Any, node: Any) -> None:
        """Say it of a block that begins another round."""
        end = block.terminator
        if end is not None and header in end.operands:
            with self._lower.builder.goto_block(block):
                self._lower.builder.asm(_NOTHING, "", "", (), True)
            end.set_metadata("llvm.loop", node)


def _node(module: Any) -> Any:
    """Make a loop's metadata, which name themselves first, so that no two loops have the same."""
    said = module.add_metadata([llvm.MetaDataString(module, "llvm.loop.unroll.disable")])
    node = llvm.MDValue(module, (), name=str(len(module.metadata)))
    node.operands = node, said
    return node
