# SPDX-License-Identifier: Apache-2.0
"""Note where a kernel of narrow floats computes in float64 because of a literal or an integer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..ground.memory import Loss, memory
from ..ground.numba_cuda import AnalysisPass, ir, register_pass, types

_WHY = (
    "meets a Python float or an integer, and both are computed in float64: convert that, as cute.Float32(0.5), or the "
    "variable where it is first set"
)
_OPERATIONS = ("binop", "inplace_binop", "unary")


@register_pass(mutates_CFG=False, analysis_only=True)
class NoteLosses(AnalysisPass):
    _name = "numba_cute_note_losses"

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        if types.float64 in state.typemap.values():
            memory().losses.update(dict.fromkeys(_Reader(state).found()))
        return False


class _Reader:
    """Reads one function as Numba typed it. born: the variables that are float64 because of a literal alone."""

    def __init__(self, state: Any) -> None:
        self._types, self._calls = state.typemap, state.calltypes
        self._statements = [
            s for block in state.func_ir.blocks.values() for s in block.body if isinstance(s, ir.Assign)
        ]
        self._born = {s.target.name for s in self._statements if self._type(s.target) == types.float64}
        while True:
            explicit = {
                s.target.name for s in self._statements if s.target.name in self._born and self._is_meant(s.value)
            }
            if not explicit:
                return
            self._born -= explicit

    def _type(self, var: Any) -> Any:
        return types.unliteral(self._types[var.name])

    def found(self) -> Iterable[Loss]:
        """Yield each place where such a number meets a narrower float."""
        for s in self._statements:
            operands = self._operands(s.value)
            narrow = [t for t in map(self._type, operands) if isinstance(t, types.Float) and t.bitwidth < 64]
            if narrow and self._computed(s.value) == types.float64 and not any(map(self._is_wide, operands)):
                yield Loss(f"a {narrow[0]} {_WHY}", s.loc.filename, s.loc.line, True)

    def _is_wide(self, var: Any) -> bool:
        """Say whether a number is float64 for another reason than a literal."""
        return bool(self._type(var) == types.float64) and var.name not in self._born

    def _operands(self, value: Any) -> list[Any]:
        is_operation = isinstance(value, ir.Expr) and value.op in _OPERATIONS
        return [v for v in value.list_vars() if isinstance(self._type(v), types.Number)] if is_operation else []

    def _computed(self, value: Any) -> Any:
        """Return the type in which an operation computes; comparisons with literals are narrowed by LLVM."""
        return getattr(self._calls.get(value), "return_type", None)

    def _is_meant(self, value: Any) -> bool:
        """Say whether a float64 is one for another reason than a literal, or an integer that meets a narrower float."""
        if isinstance(value, (ir.Const, ir.Global, ir.FreeVar)):
            return not isinstance(value.value, float)
        if isinstance(value, ir.Var):
            return self._is_wide(value)
        if isinstance(value, ir.Expr) and value.op == "phi":
            return any(self._is_wide(v) for v in value.incoming_values if isinstance(v, ir.Var))
        operands = self._operands(value)
        return any(map(self._is_wide, operands)) or not any(isinstance(self._type(v), types.Float) for v in operands)
