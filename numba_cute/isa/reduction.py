# SPDX-License-Identifier: Apache-2.0
"""What the reductions of bulk and tensor copies compute (PTX ISA, "cp.reduce.async.bulk")."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_PLAIN = {"add": np.add, "min": np.minimum, "max": np.maximum,
          "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}  # fmt: skip


def combine(op: str, old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
    """Each element of `old` with that of `new`. Integer sums wrap, float sums round to nearest even, and those of
    float32 flush subnormals. inc and dec count up or down, wrapping at the operand."""
    if op == "inc":
        return np.where(old >= new, 0, old + 1).astype(old.dtype)
    if op == "dec":
        return np.where((old == 0) | (old > new), new, old - 1).astype(old.dtype)
    with np.errstate(over="ignore"):
        if op == "add" and old.dtype == np.float32:
            return _flushed(_flushed(old) + _flushed(new))
        out: NDArray[Any] = _PLAIN[op](old, new)
    return out.astype(old.dtype, copy=False)


def _flushed(x: NDArray[Any]) -> NDArray[Any]:
    """Subnormals as zeros of their sign."""
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), x), x)
