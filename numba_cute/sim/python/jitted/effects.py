# SPDX-License-Identifier: Apache-2.0
"""The types of what those of numba.cuda's functions give that may not be called only to see it: they meet other
threads, make arrays, or change memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....dtypes import Boolean, Int32, Int64, Uint32, from_numpy
from ..arithmetic.number import leaf_type
from ..numba_stand_in import numpy_dtype
from .types import Known, Type, number_type

Rule = Callable[[Sequence[Type]], Type]
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
    return lambda args: t


def _value(args: Sequence[Type]) -> Type:
    return number_type(args[1])


def _element(args: Sequence[Type]) -> Type:
    array = args[0].value
    return leaf_type(from_numpy(array.dtype)) if isinstance(array, np.ndarray) else None


def _array(args: Sequence[Type]) -> Type:
    """An array like the one that is made: its elements are not looked at."""
    shape, dtype = args[0], args[1]
    rank = len(shape) if type(shape) is tuple else 1
    return Known(np.zeros((1,) * rank, numpy_dtype(dtype.value)))


def _indices(args: Sequence[Type]) -> Type:
    rank = args[0].value
    return Int64 if rank == 1 else (Int64,) * rank
