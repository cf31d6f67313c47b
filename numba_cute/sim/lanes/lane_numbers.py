# SPDX-License-Identifier: Apache-2.0
"""Numbers and vectors of lanes that run together, as elements of a type."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...dtypes import DType
from ..python.arithmetic.compute import limits
from ..python.arithmetic.lanes import Lanes, LaneVector
from ..python.arithmetic.number import leaf_type
from ..python.values import as_number


def elements_of(x: Any, dtype: DType) -> Any:
    """A vector's elements, or a column of a scalar's."""
    return array_of(x) if isinstance(x, (np.ndarray, LaneVector)) else column_of(numbers_of(x, dtype))


def array_of(x: Any) -> Any:
    return x.array if type(x) is LaneVector else x


def column_of(x: Any) -> Any:
    """A number for each lane, to meet vectors."""
    return x[:, None] if isinstance(x, np.ndarray) else x


def numbers_of(x: Any, dtype: DType) -> Any:
    """Convert a scalar to an element of a type: for lanes an array."""
    if type(x) is not Lanes:
        return as_number(x, dtype)
    if x.dtype is dtype or x.dtype is not None and x.dtype.is_float and dtype.is_float and dtype.width >= 32:
        with np.errstate(over="ignore"):
            return x.array(dtype.numpy)
    return np.array(_converted(x, dtype), dtype.numpy)


def _converted(x: Lanes, dtype: DType) -> list[Any]:
    """The values as elements of a type, as Python's numbers."""
    values = x.values
    if dtype.is_integer and (x.dtype is None or x.dtype.is_integer):
        low, high = limits(dtype)
        if low <= min(values) and max(values) <= high:
            return values
    return [as_number(v, dtype) for v in values]


def lanes_cast(x: Lanes, dtype: DType) -> Any:
    """`cast` for each lane."""
    if x.dtype is dtype:
        return x
    if x.dtype is not None and x.dtype.is_float and dtype.is_float and dtype.width >= 32:
        with np.errstate(over="ignore"):
            return x.convoy.of_array(dtype, x.array(dtype.numpy))
    return x.convoy.of(leaf_type(dtype), _converted(x, dtype))
