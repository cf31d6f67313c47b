# SPDX-License-Identifier: Apache-2.0
"""Functions of `numba.cuda` that compute: popc, clz, ffs, brev, fma, cbrt and selp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....dtypes import DType, Uint32, Uint64
from ....seam import CuteError
from .compute import convert, rounder, wrapped
from .elementwise import compute as on_arrays
from .functions import passing
from .number import CLASSES, Number
from .operators import type_of_class, value_of
from .overloads import REALS, SIGNED, UNSIGNED, Case, choose

_INTEGERS = (*SIGNED, *UNSIGNED)

CASES: dict[str, list[Case]] = {
    **{name: [Case(t, (t,)) for t in _INTEGERS] for name in ("popc", "clz")},
    "ffs": [Case(Uint32, (t,)) for t in _INTEGERS],
    "brev": [Case(t, (t,)) for t in (Uint32, Uint64)],
    "fma": [Case(t, (t, t, t)) for t in REALS],
    "cbrt": [Case(t, (t,)) for t in REALS],
}
"""Numba's signatures."""


_BITS: dict[str, Callable[[int, DType], int]] = {
    "popc": lambda bits, t: bin(bits).count("1"),
    "clz": lambda bits, t: t.width - bits.bit_length(),
    "ffs": lambda bits, t: (bits & -bits).bit_length(),
    "brev": lambda bits, t: int(f"{bits:0{t.width}b}"[::-1], 2),
}


def _computed(name: str) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        types = [type_of_class(type(a)) for a in args]
        case = choose(CASES[name], tuple(types)) if None not in types else None  # type: ignore[arg-type]
        if case is None:
            raise CuteError(f"cuda.{name}{args}: it takes {len(CASES[name][0].operands)} numbers")
        values = [convert(value_of(a), t, want) for a, t, want in zip(args, types, case.operands)]  # type: ignore[arg-type]
        result, operand = case.result, case.operands[0]
        assert isinstance(result, DType)
        if name in _BITS:
            out: Any = wrapped(_BITS[name](values[0] & (1 << operand.width) - 1, operand), result)
        elif name == "fma":
            out = float(on_arrays("fma", operand, [np.asarray(v, operand.numpy) for v in values]))
        else:
            out = rounder(result)(float(np.cbrt(values[0])))
        return CLASSES[result].make(out)

    return passing(call)


def _selp(cond: Any, a: Any, b: Any) -> Any:
    return a if cond else b


INTRINSICS: dict[str, Callable[..., Any]] = {**{name: _computed(name) for name in CASES}, "selp": passing(_selp)}
Number.bit_count = lambda self: INTRINSICS["popc"](self)  # type: ignore[attr-defined]
