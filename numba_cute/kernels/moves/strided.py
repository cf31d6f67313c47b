# SPDX-License-Identifier: Apache-2.0
"""Copy a tensor into another of the same shape, both of any strides: what is read or written by what asks for rows of
multiples of 16 bytes goes by way of such a copy."""

from __future__ import annotations

import math
from typing import Any

from numba_cute.kernels import entry
from numba_cute.kernels.moves import box
from numba_cute.kernels.moves.places import VECTOR, Moved

__all__ = ["copy_of"]


def copy_of(x: Any, y: Any) -> Any:
    """Plan y[...] = x. x, y: arrays of torch's or NumPy's, of one shape, not empty, and one type; no
    element of y lies twice."""
    return box.work(_moved(x, y))


def _moved(x: Any, y: Any) -> Moved:
    """Describe the copy. Modes that follow each other in both become one, neighbours of both one element."""
    modes = sorted((s, r, n) for n, r, s in zip(x.shape, entry.strides(x), entry.strides(y)) if n > 1)
    shape, of_x, of_y = [1], [1], [1]  # a mode whose elements lie side by side in both, of one
    for s, r, n in modes:
        if s == of_y[-1] * shape[-1] and r == of_x[-1] * shape[-1]:
            shape[-1] *= n
        else:
            shape, of_x, of_y = [*shape, n], [*of_x, r], [*of_y, s]
    width, aligned = entry.element_type(x).width // 8, (entry.aligned(x), entry.aligned(y))
    if all(aligned):
        f = math.gcd(VECTOR // width, shape[0], *of_x[1:], *of_y[1:])
        shape[0], width = shape[0] // f, width * f
        of_x, of_y = ([1, *(s // f for s in of[1:])] for of in (of_x, of_y))
    return Moved(tuple(shape), tuple(of_x), tuple(of_y), width, *aligned)
