# SPDX-License-Identifier: Apache-2.0
"""Operators of lists that are laid out as tuples, which Numba would take for tuples: a sum or a slice of lists is a
list, and a list and a tuple are neither added nor ordered."""

from __future__ import annotations

import operator
from typing import Any

from ...seam import CuteError
from ...seam.source.language import no_operator
from ..ground.errors import as_typing_error
from ..ground.numba_cuda import types, typing
from . import contexts
from .list_types import is_list, list_type

_SIGNS: dict[Any, str] = {
    operator.add: "+", operator.iadd: "+", operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">=",
}  # fmt: skip


@contexts.call_rule
def _operated(func: Any, args: Any) -> Any:
    key = getattr(func, "typing_key", func)
    sign = _SIGNS.get(key) if callable(key) and len(args) == 2 else None
    if sign is None or not any(map(is_list, args)) or not all(isinstance(a, types.BaseTuple) for a in args):
        return None
    if not all(map(is_list, args)):
        raise as_typing_error(CuteError(no_operator(sign, ["list" if is_list(a) else "tuple" for a in args])))
    return typing.signature(list_type([*args[0], *args[1]]), *args) if key is operator.add else None


@contexts.call_rule
def _sliced(func: Any, args: Any) -> Any:
    if func != "static_getitem" or not is_list(args[0]) or not isinstance(args[1], slice):
        return None
    return typing.signature(list_type(list(args[0])[args[1]]), *args)
