# SPDX-License-Identifier: Apache-2.0
"""The types of what arrays, records and tuples are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....dtypes import Int64, from_numpy
from ..arithmetic.number import leaf_type
from .types import NOTHING, Known, RecordOf, Type, join, loosened, number_type


def field_of(record: RecordOf, name: Any) -> Type:
    """Return the type of a record's field; None if it has no such field."""
    if name not in record.dtype.fields:
        return None
    dtype = record.dtype.fields[name][0]
    if dtype.subdtype is not None:
        return Known(np.zeros(dtype.subdtype[1], dtype.subdtype[0]))
    return Known(RecordOf(dtype)) if dtype.names else leaf_type(from_numpy(dtype))


def item_of_tuple(whole: tuple[Type, ...], index: Type) -> Type:
    """Return the type of a tuple's item: of any of them where the index is a number that is not known. None if there
    is no such item."""
    if isinstance(index, Known) and type(index.value) is int:
        return whole[index.value] if -len(whole) <= index.value < len(whole) else None
    if number_type(index) is None:
        return None
    found: Type = NOTHING
    for x in whole:
        found = join(found, loosened(x), doubtful=True)
    return found


def item_of_array(array: Any, index: Type) -> Type:
    """Return the type of an array's element, or the array that a part of it is; None if an index is not known."""
    indices = index if type(index) is tuple else (index,)
    numbers = [number_type(i) is not None for i in indices]
    whole = [isinstance(i, Known) and (i.value is None or i.value is ...) for i in indices]
    known = [n or w or isinstance(i, Known) and type(i.value) is slice for n, w, i in zip(numbers, whole, indices)]
    if not all(known) or whole.count(False) > array.ndim:
        return None
    if len(indices) == array.ndim and all(numbers):
        return Known(RecordOf(array.dtype)) if array.dtype.names else leaf_type(from_numpy(array.dtype))
    at = tuple(0 if n else i.value for n, i in zip(numbers, indices))
    shape = tuple(max(1, n) for n in array.shape)
    return Known(np.zeros(shape, array.dtype)[at])


def attribute_of_array(array: Any, name: str) -> Type:
    """Return the type of an attribute of an array."""
    if name == "shape":
        return (Int64,) * array.ndim
    if name in ("ndim", "dtype"):
        return Known(getattr(array, name))
    return Int64 if name == "size" else None
