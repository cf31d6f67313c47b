# SPDX-License-Identifier: Apache-2.0
"""The types of what those of numba.cuda's functions give that may not be called only to see it: they meet other
threads, make arrays, or change memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....dtypes import Boolean, Int32, Int64, Uint32, from_numpy
from ....seam import CuteError
from ..arithmetic.number import leaf_type
from ..numba_stand_in import numpy_dtype
from .types import Known, Type, number_type

Rule = Callable[[Sequence[Type], dict[str, Type]], Type]
"""Gives a result's type from those of the arguments by place and by name; None if that is not known."""
_SHUFFLES = ("shfl_sync", "shfl_up_sync", "shfl_down_sync", "shfl_xor_sync")
_TYPES: dict[str, Type] = {
    **dict.fromkeys(("all_sync", "any_sync", "eq_sync"), Boolean),
    **dict.fromkeys(("ballot_sync", "match_any_sync"), Int32),
    **dict.fromkeys(("syncthreads_count", "syncthreads_and", "syncthreads_or"), Int32),
    **dict.fromkeys(("lanemask_lt", "activemask"), Uint32),
    "match_all_sync": (Int32, Boolean),
}
_ATOMICS = ("add", "sub", "max", "min", "nanmax", "nanmin", "and_", "or_", "xor", "inc", "dec", "exch", "cas",
            "compare_and_swap")  # fmt: skip


def rules(cuda: Any) -> dict[Any, Rule]:
    """By the function of what stands for numba.cuda, what gives the type of its result from those of its arguments."""
    found: dict[Any, Rule] = {getattr(cuda, name): _value for name in _SHUFFLES}
    found |= {getattr(cuda, name): _always(t) for name, t in _TYPES.items()}
    found |= {getattr(cuda.atomic, name): _element for name in _ATOMICS}
    return found | {cuda.shared.array: _array, cuda.local.array: _array, cuda.grid: _indices, cuda.gridsize: _indices}


def _always(t: Type) -> Rule:
    return lambda plain, named: t


def _argument(plain: Sequence[Type], named: dict[str, Type], at: int, name: str) -> Type:
    """Return the type of one argument; None if there is none."""
    return plain[at] if at < len(plain) else named.get(name)


def _value(plain: Sequence[Type], named: dict[str, Type]) -> Type:
    return number_type(_argument(plain, named, 1, "value"))


def _element(plain: Sequence[Type], named: dict[str, Type]) -> Type:
    array = _argument(plain, named, 0, "ary")
    if not isinstance(array, Known) or not isinstance(array.value, np.ndarray):
        return None
    return leaf_type(from_numpy(array.value.dtype))


def _array(plain: Sequence[Type], named: dict[str, Type]) -> Type:
    """Return an array like the one that is made: its elements are not looked at."""
    shape, dtype = _argument(plain, named, 0, "shape"), _argument(plain, named, 1, "dtype")
    if not isinstance(dtype, Known):
        return None
    rank = len(shape) if type(shape) is tuple else 1
    try:
        made = numpy_dtype(dtype.value)
    except (TypeError, CuteError):  # no type: the call itself says it when it runs
        return None
    return Known(np.zeros((1,) * rank, made))


def _indices(plain: Sequence[Type], named: dict[str, Type]) -> Type:
    rank = _argument(plain, named, 0, "ndim")
    if not isinstance(rank, Known) or rank.value not in (1, 2, 3):
        return None
    return Int64 if rank.value == 1 else (Int64,) * rank.value
