# SPDX-License-Identifier: Apache-2.0
"""A value that the architecture leaves undefined: it may be computed with and dropped, but not used.

A lane that shuffles from one outside the mask gets such a value. Reductions do that as a matter of course in the lanes
whose result nobody wants; storing it, branching on it or indexing with it is the error.
"""

from __future__ import annotations

from typing import Any

from .report import DivergenceError


class Undefined:
    """What computing with it gives is itself; whoever needs its value gets the error. why: where it comes from."""

    __array_ufunc__ = None  # NumPy's scalars leave the operation to this class
    __slots__ = ("why", "dtype")

    def __init__(self, why: str, dtype: Any) -> None:
        self.why, self.dtype = why, dtype

    def _itself(self, *_: Any) -> Undefined:
        return self

    def _used(self, *_: Any, **__: Any) -> Any:
        raise DivergenceError(self.why)


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"):
    setattr(Undefined, f"__{_name}__", Undefined._itself)
    setattr(Undefined, f"__r{_name}__", Undefined._itself)
for _name in ("neg", "pos", "abs", "invert"):
    setattr(Undefined, f"__{_name}__", Undefined._itself)
for _name in ("bool", "int", "float", "index", "array", "len", "lt", "le", "gt", "ge", "eq", "ne", "complex", "iter"):
    setattr(Undefined, f"__{_name}__", Undefined._used)
