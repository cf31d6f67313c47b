# SPDX-License-Identifier: Apache-2.0
"""Choose among several signatures as Numba's typing does: the one whose arguments need the least conversion."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ....dtypes import (
    BFloat16,
    Boolean,
    DType,
    Float16,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    from_numpy,
)

SIGNED = (Int8, Int16, Int32, Int64)
UNSIGNED = (Uint8, Uint16, Uint32, Uint64)
INTEGERS = SIGNED + UNSIGNED
REALS = (Float32, Float64)
TYPES = (Boolean, *INTEGERS, Float16, BFloat16, *REALS)
"""The types of numbers that kernels compute with."""

EXACT, PROMOTE, SAFE, UNSAFE = range(4)
"""Ranks of the conversion of a type to another, best first."""


class Case(NamedTuple):
    """One signature: the result's type (or a tuple of types), and the operands'."""

    result: DType | tuple[DType, ...]
    operands: tuple[DType, ...]


def _chain(*types: DType) -> list[tuple[DType, DType]]:
    return list(zip(types, types[1:]))


_PROMOTES = _chain(*SIGNED) + _chain(*UNSIGNED) + _chain(Float16, Float32, Float64)
_SAFE = [
    (Boolean, Int8), (Boolean, Uint8), (Uint8, Int16), (Uint16, Int32), (Uint32, Int64),
    (Int8, Float16), (Int16, Float32), (Int32, Float64), (Int64, Float64), (Uint64, Float64),
]  # fmt: skip
_UNSAFE = [(Int16, Float16), (Float16, Int16), (Int32, Float32), (Float32, Int32)]


def _conversions() -> dict[tuple[DType, DType], int]:
    """Return the rank of each type's conversion to each other: that of the worst step on a path of conversions."""
    found: dict[tuple[DType, DType], int] = {(t, t): EXACT for t in TYPES}
    for kind, pairs in ((PROMOTE, _PROMOTES), (SAFE, _SAFE)):
        for a, b in pairs:
            found[a, b] = kind
            found.setdefault((b, a), UNSAFE)
    for pair in _UNSAFE:
        found.setdefault(pair, UNSAFE)
    plain = [t for t in TYPES if t is not BFloat16]
    for through, a, b in itertools.product(plain, plain, plain):
        if a is not b and (a, through) in found and (through, b) in found:
            found[a, b] = min(found.get((a, b), UNSAFE), max(found[a, through], found[through, b]))
    for t in plain:  # BFloat16 has its own rules, and no path leads through it
        if t is not Boolean:
            found[BFloat16, t] = SAFE if t in REALS else UNSAFE
            found[t, BFloat16] = SAFE if t in (Int8, Uint8) else UNSAFE
    return found


CONVERSIONS = _conversions()


def choose(cases: Sequence[Case], types: tuple[DType, ...], unsafe: bool = True) -> Case | None:
    """The case for arguments of these types: with the fewest unsafe conversions, then the fewest safe ones, then the
    fewest promotions; the first of equals. None if there is none. unsafe: whether conversions may lose."""
    best: Case | None = None
    least: tuple[int, ...] = (len(types) + 1,)
    for case in cases:
        if len(case.operands) != len(types):
            continue
        needed = [CONVERSIONS.get(pair) for pair in zip(types, case.operands)]
        if None in needed or (not unsafe and UNSAFE in needed):
            continue
        rating = tuple(needed.count(kind) for kind in (UNSAFE, SAFE, PROMOTE))
        if rating < least:
            best, least = case, rating
    return best


@functools.cache
def unified(a: DType, b: DType) -> DType | None:
    """The type of a variable that has one or the other type, by the way that the code took; None if there is none."""
    if a is b:
        return a
    return None if BFloat16 in (a, b) else from_numpy(np.promote_types(a.numpy, b.numpy))
