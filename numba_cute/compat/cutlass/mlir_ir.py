# SPDX-License-Identifier: Apache-2.0
"""Names of MLIR's Python that annotations and `isinstance` use; Numba has no MLIR, so nothing is one of these. The
types of numbers are element types, where they are made; what else is called refuses."""

from __future__ import annotations

import functools
from typing import Any

from ...dtypes import BFloat16, Float16, Float32, Float64, Int8, Int16, Int32, Int64
from ...seam import CuteError
from .dialects import Operation
from .vectors import VectorType

__all__ = [
    "BF16Type", "F16Type", "F32Type", "F64Type", "InsertionPoint", "IntegerType", "Location", "MLIRError", "Type",
    "Value", "VectorType",
]  # fmt: skip

MLIRError = CuteError
"""Name the error that a refused kernel raises."""


class Value:
    """A value of MLIR."""


class Location:
    """A place in a source."""


class InsertionPoint:
    """A place for operations."""


class Type:
    """A type of MLIR."""


class IntegerType(Type):
    """A type of integers."""

    @staticmethod
    def get_signless(width: int) -> Any:
        """Return the element type of signed integers of a width."""
        known = {8: Int8, 16: Int16, 32: Int32, 64: Int64}
        if width not in known:
            raise CuteError(f"IntegerType.get_signless: width {width!r} must be 8, 16, 32 or 64")
        return known[width]


def _type(name: str, dtype: Any) -> type:
    return type(name, (Type,), {"__doc__": f"{dtype} of MLIR.", "get": staticmethod(lambda *context: dtype)})


F16Type, BF16Type = _type("F16Type", Float16), _type("BF16Type", BFloat16)
F32Type, F64Type = _type("F32Type", Float32), _type("F64Type", Float64)


class _Absent(type):
    """The class of classes of MLIR that are not here."""

    def __call__(cls, *args: Any, **named: Any) -> Any:
        return Operation(f"ir.{cls.__name__}")(*args, **named)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return Operation(f"ir.{cls.__name__}.{name}")


@functools.cache
def __getattr__(name: str) -> type:
    """Return a class of MLIR, whose objects there are none of."""
    if not name[:1].isupper():
        raise AttributeError(name)
    return _Absent(name, (), {"__doc__": "A class of MLIR."})
