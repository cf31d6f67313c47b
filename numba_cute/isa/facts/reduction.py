# SPDX-License-Identifier: Apache-2.0
"""The reductions of bulk and tensor copies (PTX ISA, "cp.reduce.async.bulk")."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .rounding import NAN16, flushed

_PLAIN = {"add": np.add, "min": np.minimum, "max": np.maximum,
          "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}  # fmt: skip
_NAN = {"float16": NAN16, "bfloat16": NAN16, "float32": 0x7FFFFFFF}
"""The bits of a NaN result, as an H200 gives them (2026-11-21); those of f64 are not known."""


def combine(op: str, old: NDArray[Any], new: NDArray[Any], flush: bool = False) -> NDArray[Any]:
    """Each element of `old` with that of `new`. Integer sums wrap, float sums round to nearest even. flush: float32
    sums take subnormals as zeros. Of floats, min and max give the operand that is no NaN, and take -0 for less than
    +0. inc and dec count up or down, wrapping at the operand."""
    if op == "inc":
        return np.where(old >= new, 0, old + 1).astype(old.dtype)
    if op == "dec":
        return np.where((old == 0) | (old > new), new, old - 1).astype(old.dtype)
    if old.dtype.kind in "iu":
        whole: np.ndarray = _PLAIN[op](old, new).astype(old.dtype, copy=False)
        return whole
    with np.errstate(over="ignore", invalid="ignore"):  # infinities and NaNs are results like others
        if op in ("min", "max"):
            out = _extreme(op, old, new)
        elif flush and old.dtype == np.float32:
            out = flushed(flushed(old) + flushed(new))
        else:
            out = np.add(old, new)
    return _canonical(out.astype(old.dtype, copy=False))


def across(op: str, values: NDArray[Any], magnitudes: bool, nan: bool) -> NDArray[Any]:
    """Return the least or greatest of each row of `values` (op "min", "max"). Of floats: of their magnitudes, where
    that is asked for; NaN if one is and `nan`, else if all are; of zeros +0 is the greater."""
    if values.dtype.kind in "iu":
        whole: np.ndarray = _PLAIN[op].reduce(values, axis=1)
        return whole
    x = np.abs(values) if magnitudes else values
    found = x[:, 0]
    for column in x.T[1:]:
        found = _extreme(op, np.where(np.isnan(found), column, found), np.where(np.isnan(column), found, column))
    found = np.where(np.isnan(x).any(axis=1) & nan, np.float32(np.nan), found)
    return _canonical(np.ascontiguousarray(found, x.dtype))


def _extreme(op: str, old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
    beyond = old < new if op == "min" else old > new
    zero = (old == new) & (np.signbit(old) == (op == "min"))
    return np.where(beyond | zero | np.isnan(new), old, new)


def _canonical(values: NDArray[Any]) -> NDArray[Any]:
    """With the hardware's bits for each NaN."""
    nan = np.isnan(values)
    if values.dtype.name not in _NAN or not nan.any():
        return values
    bits = np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")
    return np.where(nan, bits.dtype.type(_NAN[values.dtype.name]), bits).view(values.dtype)
