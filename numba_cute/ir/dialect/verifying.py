# SPDX-License-Identifier: Apache-2.0
"""Verify a module and report as MLIR does: the first mistake of each function."""

from __future__ import annotations

import traceback
from collections.abc import Iterator

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.irdl.dominance import DominanceInfo
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.exceptions import VerifyException

from ...seam.ground.packages import package_of
from .operations import CuteOperation
from .spelled import SpelledOperation

Problem = tuple[Operation, str]


def verified(op: Operation) -> Iterator[Problem]:
    """List what is wrong, with the operations."""
    return _Verifier(op).check(op)


def from_xdsl(e: BaseException) -> bool:
    """Say whether a line of xDSL's raised an exception."""
    frames = [frame for frame, _ in traceback.walk_tb(e.__traceback__)]
    return package_of(frames[-1].f_globals.get("__name__")) == "xdsl"


class _Verifier:
    """Checks operations. order: where each stands in the module."""

    def __init__(self, module: Operation) -> None:
        self.order = {op: i for i, op in enumerate(module.walk())}
        self.dominance: dict[Region, DominanceInfo] = {}

    def check(self, op: Operation) -> Iterator[Problem]:
        """List what is wrong with an operation, and with those within it if it is right."""
        here = _own_problems(op) or self._uses(op)
        yield from here
        if here:
            return
        for region in op.regions:
            for block in region.blocks:
                for inner in block.ops:
                    wrong = list(self.check(inner))
                    yield from wrong
                    if wrong and not inner.has_trait(IsolatedFromAbove, value_if_unregistered=False):
                        return

    def _uses(self, op: Operation) -> list[Problem]:
        """Find an operand that is not made before the operation on each way to it."""
        for i, value in enumerate(op.operands):
            if not self._made_before(value, op):
                return [(op, f"'{op.name}' op operand #{i} does not dominate this use")]
        return []

    def _made_before(self, value: SSAValue, op: Operation) -> bool:
        try:
            owner = value.owner
        except ValueError:  # xDSL's, of a value that the text names and nothing makes
            return False
        block = owner if isinstance(owner, Block) else owner.parent
        if block is None or block.parent is None:
            return False
        at: Operation | None = op
        while at is not None and (at.parent is None or at.parent.parent is not block.parent):
            at = at.parent_op()
        if at is None or at.parent is None:
            return False
        if at.parent is not block:
            return self._dominance(block.parent).strictly_dominates(block, at.parent)
        return isinstance(owner, Block) or self.order[owner] < self.order[at]

    def _dominance(self, region: Region) -> DominanceInfo:
        if region not in self.dominance:
            self.dominance[region] = DominanceInfo(region)
        return self.dominance[region]


def _own_problems(op: Operation) -> list[Problem]:
    try:
        verify_alone(op)
    except VerifyException as e:
        if isinstance(op, (CuteOperation, SpelledOperation)):
            return [(op, m) for m in op.problems() or [str(e)]]
        return [(op, f"'{op.name}' op {e}")]
    return []


def verify_alone(op: Operation) -> None:
    """Check an operation without those within it. Raises VerifyException with the rule that it breaks."""
    if isinstance(op, scf.WhileOp):
        _verify_while(op)
    try:
        op.verify(verify_nested_ops=False)
    except ValueError as e:  # xDSL's, of a value that the text names and nothing makes
        if not from_xdsl(e):
            raise
        raise VerifyException("holds a value that nothing defines") from e


def _verify_while(op: scf.WhileOp) -> None:
    """Check the types of a loop's blocks, for which xDSL raises a plain Exception."""
    for region, values, name in (
        (op.before_region, op.arguments, "its operands"),
        (op.after_region, op.res, "its results"),
    ):
        if len(region.blocks) != 1:
            raise VerifyException("expects two regions of one block each")
        taken, given = ([v.type for v in group] for group in (region.block.args, values))
        if taken != given:
            shown = [", ".join(map(str, types)) for types in (taken, given)]
            raise VerifyException(f"its block takes ({shown[0]}), and {name} are of ({shown[1]})")


__all__ = ["Problem", "from_xdsl", "verified"]
