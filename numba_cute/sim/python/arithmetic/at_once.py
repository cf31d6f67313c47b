# SPDX-License-Identifier: Apache-2.0
"""Operators of lanes that run together, computed by NumPy where that gives what each lane's own number gives; else
None."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from ....dtypes import Boolean, DType, Float32, Float64, Uint64
from .cases import COMPARED
from .lanes import Lanes

RING = ("add", "sub", "mul", "and_", "or_", "xor")
"""Operators whose result's low bits depend on the operands' low bits alone."""
_FLOATS = (Float32, Float64)


def binary(op: str, result: DType, a: Any, b: Any, x: DType, y: DType) -> Any:
    """An operator of operands of the types `x` and `y`, lanes or Python's numbers, as an array of the result's type."""
    how = _how(op, result, x, y)
    return None if how is None else how(a, b)


@functools.cache
def _how(op: str, result: DType, x: DType, y: DType) -> Any:
    """Give what computes an operator of two types; None if NumPy cannot."""
    if x in _FLOATS or y in _FLOATS:
        return functools.partial(_of_floats, op, result, x) if x is y else None
    if not (_is_whole(x) and _is_whole(y)):
        return None
    compares = op in COMPARED
    if compares and not (x is y or x.is_integer and y.is_integer and x.signed and y.signed):
        return None
    if not compares and not result.is_integer and not x is y is result or Uint64 in (x, y) and op not in RING:
        return None
    apply, dtype = getattr(operator, op), result.numpy
    if x is y and x.is_integer and (compares or op in RING and x is result):
        held: Any = x.numpy

        def of_one_type(a: Any, b: Any) -> Any:
            left, right = (v if type(v) is not Lanes else v.array(held) if v.dtype is x else None for v in (a, b))
            if left is None or right is None:  # an address, which may be any integer
                return None
            return apply(*(v if type(v) is np.ndarray else held(v) for v in (left, right)))

        return of_one_type
    plainly = not compares and op not in RING

    def of_two(a: Any, b: Any) -> Any:
        left, right = _bits(a, x), _bits(b, y)
        if left is None or right is None or plainly and not _plainly(op, left, right, result):
            return None
        out = apply(left, right)
        return out if compares else out.astype(dtype, copy=False)

    return of_two


def _is_whole(t: DType) -> bool:
    return t.is_integer or t is Boolean


def _plainly(op: str, left: Any, right: Any, result: DType) -> bool:
    """Tell whether an operator does what Python's does, whatever the rules: nothing negative is divided or shifted
    right, nothing is divided by 0 or shifted out."""
    if op in ("lshift", "rshift"):
        inside = right.min() >= 0 and right.max() < result.width
        return bool(inside and (op == "lshift" or left.min() >= 0))
    return op in ("floordiv", "mod") and bool(left.min() >= 0 and right.min() > 0)


def _bits(v: Any, dtype: DType) -> Any:
    """An integer's low 64 bits."""
    if type(v) is not Lanes:
        return np.int64(v if v < 1 << 63 else v - (1 << 64))
    if v.dtype is None:  # an address, which may be any integer
        return None
    return v.array(dtype.numpy).astype(np.int64, copy=False)


def _of_floats(op: str, result: DType, dtype: DType, a: Any, b: Any) -> Any:
    """The same of floats of one type: of two halves as many digits again, so that what is rounded once is right."""
    compares = op in COMPARED
    if not compares and (result is not dtype or op not in ("add", "sub", "mul", "truediv")):
        return None
    left, right = (v.array(dtype.numpy) if type(v) is Lanes else dtype.numpy(v) for v in (a, b))
    with np.errstate(all="ignore"):
        out = getattr(operator, op)(left, right)
    return out if compares or not np.isnan(out).any() else None  # the bits of a NaN are the processor's affair


def cast_lanes(v: Lanes, src: DType, dst: DType) -> Any:
    """Lanes' numbers of one type as another's."""
    if v.dtype is None or not (_is_whole(src) or src in _FLOATS) or not (_is_whole(dst) or dst in _FLOATS):
        return None
    if dst.is_integer and src in _FLOATS or dst in _FLOATS and src is Uint64:  # which saturate, or are rounded twice
        return None
    with np.errstate(over="ignore"):
        return v.array(src.numpy).astype(dst.numpy)
