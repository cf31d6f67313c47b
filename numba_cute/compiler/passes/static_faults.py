# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of what the source alone says, as `1 // 0`: what Python raises, and what no type of a kernel holds, is
refused at its line. At run time a GPU goes on with some number."""

from __future__ import annotations

import math
import operator
from typing import Any

from ...seam import CuteError
from ...seam.source.language import too_large
from ..ground.errors import located
from ..ground.numba_cuda import ir, types

_RAISED = (ArithmeticError, ValueError)
_FUNCTIONS = (int, float, bool, abs, round, divmod, pow, operator.not_)
_NUMBERS = (int, float)
_LARGEST = 4096
"""Bits of integers that are still computed."""


class Unknown(Exception):
    """A value is not known."""


class _Values:
    """The values of the variables of a typed function that are set once, to numbers of the source."""

    def __init__(self, func_ir: Any, typemap: Any) -> None:
        self._typemap = typemap
        seen: set[str] = set()
        self._again: set[str] = set()
        for block in func_ir.blocks.values():
            for inst in block.find_insts(ir.Assign):
                (self._again if inst.target.name in seen else seen).add(inst.target.name)
        self._found: dict[str, Any] = {}

    def learn(self, inst: Any) -> None:
        """Note what an assignment gives; CuteError if Python raises there."""
        value = inst.value
        try:
            found = self._literal(inst.target)
        except Unknown:
            try:
                found = self._of(value, inst)
            except Unknown:
                return
        if inst.target.name not in self._again:
            self._found[inst.target.name] = found

    def known(self, var: Any) -> Any:
        if var.name in self._found:
            return self._found[var.name]
        return self._literal(var)

    def _literal(self, var: Any) -> Any:
        ty = self._typemap.get(var.name)
        if isinstance(ty, types.Literal) and isinstance(ty.literal_value, (*_NUMBERS, str)):
            return ty.literal_value
        raise Unknown

    def _of(self, value: Any, inst: Any) -> Any:
        if isinstance(value, (ir.Const, ir.Global, ir.FreeVar)):
            return value.value
        if isinstance(value, ir.Var):
            return self.known(value)
        op = value.op if isinstance(value, ir.Expr) else ""
        if op == "getattr":
            module = self.known(value.value)
            if module is math:
                return getattr(math, value.attr, None)
        elif op in ("binop", "inplace_binop"):
            fn = value.fn if op == "binop" else value.immutable_fn
            return self._computed(fn, [self.known(value.lhs), self.known(value.rhs)], inst)
        elif op == "unary":
            return self._computed(value.fn, [self.known(value.value)], inst)
        elif op == "call" and not value.kws and value.vararg is None:
            fn = self.known(value.func)
            if any(fn is f for f in _FUNCTIONS) or getattr(fn, "__module__", None) == "math":
                return self._computed(fn, [self.known(a) for a in value.args], inst)
        raise Unknown

    def _computed(self, fn: Any, given: list[Any], inst: Any) -> Any:
        text = fn in (int, float) and len(given) == 1 and isinstance(given[0], str)
        if not text and not all(type(x) in (int, float, bool) for x in given):
            raise Unknown
        if _is_huge(fn, given):
            raise located(CuteError(f"{_shown(fn)}: an int of more than 64 bits, which kernels do not have"), inst.loc)
        try:
            result = fn(*given)
        except _RAISED as e:
            raise located(CuteError(f"this raises {type(e).__name__}: {e}"), inst.loc) from None
        except TypeError:
            raise Unknown from None
        ty = types.unliteral(self._typemap.get(inst.target.name))
        if type(result) is int and isinstance(ty, types.Integer) and not _holds(ty, result):
            raise located(CuteError(too_large(result)), inst.loc)
        if type(result) is float and isinstance(ty, types.Integer) or type(result) is complex:
            kind = type(result).__name__
            words = f"{_shown(fn)} of static integers gives a {kind} here: write float numbers, as 2.0"
            if type(result) is complex:
                words = f"{_shown(fn)} of static numbers gives a complex number: kernels compute with real ones"
            raise located(CuteError(words), inst.loc)
        return result

    def ways(self, last: Any) -> list[int]:
        """List the blocks where a block's last statement may go."""
        if isinstance(last, ir.Branch):
            try:
                return [last.truebr if self.known(last.cond) else last.falsebr]
            except Unknown:
                pass
        return list(last.get_targets())


def _is_huge(fn: Any, given: list[Any]) -> bool:
    if fn not in (operator.lshift, operator.pow, pow) or len(given) != 2 or not all(type(x) is int for x in given):
        return False
    bits = given[0].bit_length()
    return bits > 0 and given[1] > 0 and (abs(given[0]) > 1 or fn is operator.lshift) and bits * given[1] > _LARGEST


def _shown(fn: Any) -> str:
    name = str(fn.__name__)
    return {"lshift": "`<<`", "pow": "`**`"}.get(name, name)


def _holds(ty: Any, value: int) -> bool:
    low = -(1 << ty.bitwidth - 1) if ty.signed else 0
    return bool(low <= value < low + (1 << ty.bitwidth))


def refuse_faults(func_ir: Any, typemap: Any) -> None:
    """Raise a CuteError, with its line, for arithmetic that always raises."""
    values = _Values(func_ir, typemap)
    reached = {min(func_ir.blocks)}
    for at in sorted(func_ir.blocks):  # a value comes before its uses, but in a loop, where it is not set once
        if at in reached:
            for inst in func_ir.blocks[at].find_insts(ir.Assign):
                values.learn(inst)
            reached.update(values.ways(func_ir.blocks[at].terminator))
