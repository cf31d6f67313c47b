# SPDX-License-Identifier: Apache-2.0
"""Find the values that are equal in all lanes of a warp, and the operations that all lanes come to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

_UNIFORM = ("cute_nvgpu.arch.make_warp_uniform", "nvvm.read.ptx.sreg.", "nvvm.vote.", "arith.constant")
_VARIES = ("nvvm.read.ptx.sreg.tid", "nvvm.read.ptx.sreg.laneid", "nvvm.elect", "nvvm.shfl", "nvvm.mbarrier",
           "cute.memref.load",
           "llvm.inline_asm")  # fmt: skip
_OF_WARPS = ("nvvm.elect.sync", "nvvm.wgmma", "cute_nvgpu.arch.sm100.alloc", "cute_nvgpu.arch.sm100.dealloc")
"""Begins the names of operations that whole warps execute."""
_LANES = 32


class Uniform:
    """Finds it in one function. root: gives the value that another one stands for. A number is alike in all lanes until
    it is found to depend on one."""

    def __init__(self, root: Callable[[SSAValue], SSAValue]) -> None:
        self.root = root
        self._varies: dict[SSAValue, bool] = {}

    def comes(self, op: Operation) -> bool:
        """Say whether all lanes of a warp come to an operation equally often: nothing around it depends on a lane, or
        an operation beside it needs whole warps."""
        at = op
        while (parent := at.parent_op()) is not None:
            if at.parent is not None and any(other.name.startswith(_OF_WARPS) for other in at.parent.ops):
                return True
            if isinstance(parent, scf.IfOp) and self.varies(parent.cond) or self._leaves_early(parent):
                return False
            at = parent
        return True

    def _leaves_early(self, op: Operation) -> bool:
        """Say whether an operation is a loop that some lanes leave before others."""
        if isinstance(op, scf.ForOp):
            return any(map(self.varies, (op.lb, op.ub, op.step)))
        if isinstance(op, scf.WhileOp):
            condition = op.before_region.block.last_op
            return isinstance(condition, scf.ConditionOp) and self.varies(condition.condition)
        return False

    def varies(self, value: SSAValue) -> bool:
        """Say whether a value may differ between the lanes of a warp."""
        value = self.root(value)
        if value not in self._varies:
            self._settle(value)
        return self._varies[value]

    def _settle(self, value: SSAValue) -> None:
        """Find it of a value and of all that it is made of: where one is found to vary, those made of it do."""
        made_of: dict[SSAValue, list[SSAValue]] = {}
        waiting = [value]
        while waiting:
            v = waiting.pop()
            if v in made_of or v in self._varies:
                continue
            made_of[v] = [self.root(x) for x in self._sources(v)]
            waiting += made_of[v]
        varying = {v for v in made_of if self._by_itself(v)}
        varying |= {x for found in made_of.values() for x in found if self._varies.get(x)}
        changed = True
        while changed:
            more = {v for v, found in made_of.items() if v not in varying and not varying.isdisjoint(found)}
            varying |= more
            changed = bool(more)
        self._varies.update((v, v in varying) for v in made_of)

    def _by_itself(self, value: SSAValue) -> bool:
        op = value.owner
        return isinstance(op, Operation) and op.name.startswith(_VARIES)

    def _sources(self, value: SSAValue) -> list[SSAValue]:
        """List what a value is made of, with the conditions that it depends on."""
        owner: Any = value.owner
        if isinstance(owner, Block):
            return self._carried(value, owner.parent_op())
        if owner.name.startswith((*_UNIFORM, *_VARIES)) or self._is_of_whole_warps(owner):
            return []
        if isinstance(owner, scf.IfOp):
            regions = [r for r in (owner.true_region, owner.false_region) if r.blocks]
            return [owner.cond, *(r.block.last_op.operands[value.index] for r in regions)]  # type: ignore[union-attr,attr-defined]
        if isinstance(owner, scf.ForOp):
            return [owner.lb, owner.ub, owner.step, owner.body.block.args[value.index + 1]]  # type: ignore[attr-defined]
        if isinstance(owner, scf.WhileOp):
            end: Any = owner.before_region.block.last_op
            return [end.condition, end.args[value.index]]  # type: ignore[attr-defined]
        return list(owner.operands)

    def _carried(self, value: Any, op: Operation | None) -> list[SSAValue]:
        assert isinstance(value, BlockArgument)
        if isinstance(op, scf.ForOp):
            if not value.index:
                return [op.lb, op.step]
            return [op.iter_args[value.index - 1], op.body.block.last_op.operands[value.index - 1]]  # type: ignore[union-attr]
        if isinstance(op, scf.WhileOp):
            end: Any = op.before_region.block.last_op
            if value.block is op.before_region.block:
                return [op.arguments[value.index], op.after_region.block.last_op.operands[value.index]]  # type: ignore[union-attr]
            return [end.args[value.index]]
        return []

    def _is_of_whole_warps(self, op: Operation) -> bool:
        """Say whether an operation divides a thread's index by whole warps, in a block that is a row of them."""
        if op.name not in ("arith.floordivsi", "arith.divsi"):
            return False
        place, divisor = (self.root(v).owner for v in op.operands)
        number = divisor.value if isinstance(divisor, arith.ConstantOp) else None
        if not isinstance(number, IntegerAttr) or number.value.data % _LANES or not number.value.data:
            return False
        return getattr(place, "name", "") == "nvvm.read.ptx.sreg.tid.x" and self._row_of_warps(op)

    def _row_of_warps(self, op: Operation) -> bool:
        at: Operation | None = op
        while at is not None:
            found = {**at.attributes, **at.properties}.get("nvvm.reqntid")
            if found is not None:
                return found.get_values()[0] % _LANES == 0  # type: ignore[attr-defined,no-any-return]
            at = at.parent_op()
        return False


__all__ = ["Uniform"]
