# SPDX-License-Identifier: Apache-2.0
"""Comparisons of a signed integer and an unsigned one of 64 bits, by their values. Numba rounds both to float64."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from numba.cuda import types, typing
from numba.cuda.cpython import numbers
from numba.cuda.typing.templates import AbstractTemplate

from . import contexts

_SIGNS: dict[Any, str] = {
    operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">=", operator.eq: "==", operator.ne: "!=",
}  # fmt: skip


class _Compared(AbstractTemplate):
    """A template of one operator."""

    def generic(self, args: Any, kws: Any) -> Any:
        plain = [types.unliteral(a) for a in args]
        signed = any(isinstance(a, types.Integer) and a.signed for a in plain)
        if len(args) != 2 or types.uint64 not in plain or not signed:
            return None
        return typing.signature(types.boolean, *(a if a == types.uint64 else types.int64 for a in plain))


def _register(op: Any, first: Any, second: Any, made: Callable[[str], Any]) -> None:
    contexts.lower(op, first, second)(made(_SIGNS[op]))


for _op in _SIGNS:
    contexts.template(_op)(type("_Compared", (_Compared,), {}))
    _register(_op, types.int64, types.uint64, numbers.int_signed_unsigned_cmp)
    _register(_op, types.uint64, types.int64, numbers.int_unsigned_signed_cmp)
