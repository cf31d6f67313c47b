# SPDX-License-Identifier: Apache-2.0
"""Comparisons of a signed integer and an unsigned one of 64 bits, and of an integer of 64 bits and a float, by their
values. Numba rounds both to float64."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ..ground import llvmlite as ir
from ..ground.builder import Builder, Target
from ..ground.numba_cuda import AbstractTemplate, numbers, types, typing
from . import contexts

_SIGNS: dict[Any, str] = {
    operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">=", operator.eq: "==", operator.ne: "!=",
}  # fmt: skip


_LONG = (types.int64, types.uint64)
_SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_EXACT = 1 << 53
"""Integers below it have a double of their own."""


class _Compared(AbstractTemplate):
    """A template of one operator."""

    def generic(self, args: Any, kws: Any) -> Any:
        plain = [types.unliteral(a) for a in args]
        if len(args) == 2 and any(a in _LONG for a in plain) and any(isinstance(a, types.Float) for a in plain):
            halves = types.float16 in plain
            return (
                None
                if halves
                else typing.signature(types.boolean, *(a if a in _LONG else types.float64 for a in plain))
            )
        signed = any(isinstance(a, types.Integer) and a.signed for a in plain)
        if len(args) != 2 or types.uint64 not in plain or not signed:
            return None
        return typing.signature(types.boolean, *(a if a == types.uint64 else types.int64 for a in plain))


def _register(op: Any, first: Any, second: Any, made: Callable[[str], Any]) -> None:
    contexts.lower(op, first, second)(made(_SIGNS[op]))


def _is_exact(value: Any) -> bool:
    """Say whether a number is a constant that no rounding of the other one can reach by mistake."""
    return isinstance(value, ir.Constant) and isinstance(value.constant, (int, float)) and abs(value.constant) < _EXACT


def _with_float(kind: Any, sign: str, swapped: bool) -> Any:
    """Compare an integer and a double: where the integer's own double is the other one, as integers."""
    sign = _SWAPPED.get(sign, sign) if swapped else sign

    def lower(context: Target, builder: Builder, sig: Any, args: Any) -> Any:
        x, f = args[::-1] if swapped else args
        near = (builder.sitofp if kind.signed else builder.uitofp)(x, f.type)
        rounded = (builder.fcmp_unordered if sign == "!=" else builder.fcmp_ordered)(sign, near, f)
        if _is_exact(x) or _is_exact(f):
            return rounded
        whole = (builder.fptosi if kind.signed else builder.fptoui)(f, x.type)
        exact = (builder.icmp_signed if kind.signed else builder.icmp_unsigned)(sign, x, whole)
        beyond = builder.fcmp_ordered(">=", f, f.type(2.0 ** (63 if kind.signed else 64)))  # which rounding may give
        exact = builder.select(beyond, exact.type(int(sign in ("<", "<=", "!="))), exact)
        return builder.select(builder.fcmp_ordered("==", near, f), exact, rounded)

    return lower


for _op in _SIGNS:
    for _kind in _LONG:
        contexts.lower(_op, _kind, types.float64)(_with_float(_kind, _SIGNS[_op], False))
        contexts.lower(_op, types.float64, _kind)(_with_float(_kind, _SIGNS[_op], True))
    contexts.template(_op)(type("_Compared", (_Compared,), {}))
    _register(_op, types.int64, types.uint64, numbers.int_signed_unsigned_cmp)
    _register(_op, types.uint64, types.int64, numbers.int_unsigned_signed_cmp)
