# SPDX-License-Identifier: Apache-2.0
"""`numba_cute.nvgpu.ptx`: one row of the instruction table, issued:
`numba_cute.nvgpu.ptx "ldmatrix", dst = (%regs, !b32, 0, 4), addr = %a, num = 4, trans = false`."""

from __future__ import annotations

from typing import Any

from xdsl.ir import Operation
from xdsl.irdl import irdl_op_definition

from ...compiler.inspection import inference
from ...compiler.inspection.effects import PURE, WRITES, Effects
from ...dtypes import DType
from ...isa.form.instr import row_of
from ...isa.form.kinds import Operand
from ...seam import CuteError, frozen, traced
from ...typed.descriptions import Description
from .machine import span
from .operations import Inferred


@frozen
class Row:
    """A row of the instruction table with its static parameters, called with its operands.

    name: the row's. statics: (name, value) of each static parameter. given: the names of the operands, in the order in
    which they are passed. A span of registers is passed as `machine` names it."""

    name: str
    statics: tuple[tuple[str, Any], ...]
    given: tuple[str, ...]

    @traced
    def __call__(self, *operands: Any) -> Any:
        """Issue it with these `operands`. Executed by the row's issuer. Raises CuteError for static parameters and
        operands that the row does not have. PTX and least target: the row's."""
        row, statics = row_of(self.name), dict(self.statics)
        given = {n: _operand(x) for n, x in zip(self.given, operands)}
        result = row(**given, **statics)
        outs = [o for o in row.operands_in(row.case(statics)) if o.writes and given.get(o.name) is None]
        if len(outs) == 1:
            return _words(outs[0], result)
        return tuple(map(_words, outs, result)) if outs else None


def _words(out: Operand, result: Any) -> Any:
    """Return the row's result for an operand: a tuple for a vector, even of one word."""
    return (result,) if out.count is not None and not isinstance(result, tuple) else result


def _operand(x: Any) -> Any:
    return span(x) if isinstance(x, tuple) and len(x) == 4 and isinstance(x[1], DType) else x


@irdl_op_definition
class PtxOp(Inferred):
    """Issue one row of the instruction table: its operands and static parameters by name."""

    name = "numba_cute.nvgpu.ptx"

    def row(self) -> tuple[Row, tuple[Any, ...]]:
        """Give the row, and the patterns of its operands. Raises CuteError for what is not a row."""
        if len(self.arguments.positional) != 1:
            raise CuteError('ptx: give the row\'s name, then operands and static parameters by theirs: `ptx "mapa", …`')
        row = row_of(self.arguments.positional[0])
        operands = tuple((n, p) for n, p in self.arguments.keywords if n in row.names)
        statics = tuple((n, p) for n, p in self.arguments.keywords if n not in row.names)
        return Row(row.name, statics, tuple(n for n, _ in operands)), tuple(p for _, p in operands)

    def _asked(self) -> tuple[Row, tuple[Description, ...]]:
        row, _ = self.row()
        keywords = self.described()[1]
        return row, tuple(keywords[name] for name in row.given)

    def infer(self, arch: str) -> Description:
        return inference.infer(*self._asked(), arch=arch)

    def effects(self) -> Effects | None:
        return PURE if row_of(self.arguments.positional[0]).pure else frozenset({WRITES})


OPERATIONS: tuple[type[Operation], ...] = (PtxOp,)
