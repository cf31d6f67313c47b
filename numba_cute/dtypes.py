# SPDX-License-Identifier: Apache-2.0
"""Element types. A `DType` names a type; calling it makes a value of that type that is known only at run time.

``Float32`` is both what a tensor's elements are and, called, a conversion: ``Int32(x)``. On the host the call
gives a `Scalar`, which a kernel receives as a run-time value where a plain int would be static.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from . import seam


@dataclass(frozen=True)
class DType:
    """One element type.

    name: the public name ("BFloat16"); ptx: the PTX type ("bf16"); width: bits; kind: "float", "int", "uint" or
    "bool"; numpy: the NumPy (or ml_dtypes) type that holds one element on the host and in the simulator.
    """

    name: str
    ptx: str
    width: int
    kind: str
    numpy: Any

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def signed(self) -> bool:
        return self.kind in ("int", "float")

    @property
    def bytes(self) -> int:
        """Bytes of one element; an error for types narrower than a byte."""
        if self.width % 8:
            raise TypeError(f"{self.name} has {self.width} bits: it has no size in whole bytes")
        return self.width // 8

    def __call__(self, value: Any) -> Any:
        return seam.current_or(_HOST).cast(value, self)

    def __repr__(self) -> str:
        return self.name


class Scalar(seam.Leaf):
    """A number that a kernel receives as a run-time value (a plain Python int is static)."""

    __slots__ = ("dtype", "value")

    def __init__(self, dtype: DType, value: Any) -> None:
        self.dtype = dtype
        self.value = value

    def __index__(self) -> int:
        return int(self.value)

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __repr__(self) -> str:
        return f"{self.dtype}({self.value})"

    def __eq__(self, other: object) -> bool:
        return self.value == (other.value if isinstance(other, Scalar) else other)

    def __hash__(self) -> int:
        return hash(self.value)

    def _binary(self, other: Any, op: Any) -> Any:
        return Scalar(self.dtype, op(self.value, other.value if isinstance(other, Scalar) else other))

    def __add__(self, o: Any) -> Any:
        return self._binary(o, lambda a, b: a + b)

    __radd__ = __add__

    def __sub__(self, o: Any) -> Any:
        return self._binary(o, lambda a, b: a - b)

    def __rsub__(self, o: Any) -> Any:
        return self._binary(o, lambda a, b: b - a)

    def __mul__(self, o: Any) -> Any:
        return self._binary(o, lambda a, b: a * b)

    __rmul__ = __mul__

    def __floordiv__(self, o: Any) -> Any:
        return self._binary(o, lambda a, b: a // b)

    def __mod__(self, o: Any) -> Any:
        return self._binary(o, lambda a, b: a % b)

    def __lt__(self, o: Any) -> bool:
        return bool(self.value < (o.value if isinstance(o, Scalar) else o))

    def __gt__(self, o: Any) -> bool:
        return bool(self.value > (o.value if isinstance(o, Scalar) else o))


class _Host:
    """What a DType call does where no kernel is being run or compiled."""

    @staticmethod
    def cast(value: Any, dtype: DType) -> Scalar:
        raw = value.value if isinstance(value, Scalar) else value
        return Scalar(dtype, dtype.numpy(raw).item() if dtype.width <= 64 else raw)


_HOST = _Host()

Boolean = DType("Boolean", "pred", 8, "bool", np.bool_)
Int8 = DType("Int8", "s8", 8, "int", np.int8)
Int16 = DType("Int16", "s16", 16, "int", np.int16)
Int32 = DType("Int32", "s32", 32, "int", np.int32)
Int64 = DType("Int64", "s64", 64, "int", np.int64)
Uint8 = DType("Uint8", "u8", 8, "uint", np.uint8)
Uint16 = DType("Uint16", "u16", 16, "uint", np.uint16)
Uint32 = DType("Uint32", "u32", 32, "uint", np.uint32)
Uint64 = DType("Uint64", "u64", 64, "uint", np.uint64)
Float16 = DType("Float16", "f16", 16, "float", np.float16)
BFloat16 = DType("BFloat16", "bf16", 16, "float", ml_dtypes.bfloat16)
TFloat32 = DType("TFloat32", "tf32", 32, "float", np.float32)
Float32 = DType("Float32", "f32", 32, "float", np.float32)
Float64 = DType("Float64", "f64", 64, "float", np.float64)
Float8E4M3FN = DType("Float8E4M3FN", "e4m3", 8, "float", ml_dtypes.float8_e4m3fn)
Float8E5M2 = DType("Float8E5M2", "e5m2", 8, "float", ml_dtypes.float8_e5m2)

# Narrower than a byte, or scale factors: operands of matrix instructions, not elements of tensors in memory.
Uint1 = DType("Uint1", "b1", 1, "uint", np.bool_)
Int4 = DType("Int4", "s4", 4, "int", ml_dtypes.int4)
Uint4 = DType("Uint4", "u4", 4, "uint", ml_dtypes.uint4)
Float4E2M1FN = DType("Float4E2M1FN", "e2m1", 4, "float", ml_dtypes.float4_e2m1fn)
Float6E2M3FN = DType("Float6E2M3FN", "e2m3", 6, "float", ml_dtypes.float6_e2m3fn)
Float6E3M2FN = DType("Float6E3M2FN", "e3m2", 6, "float", ml_dtypes.float6_e3m2fn)
Float8E8M0FNU = DType("Float8E8M0FNU", "ue8m0", 8, "float", ml_dtypes.float8_e8m0fnu)

ALL: tuple[DType, ...] = (Boolean, Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64)
ALL += (Float16, BFloat16, TFloat32, Float32, Float64, Float8E4M3FN, Float8E5M2)

_BY_NUMPY = {np.dtype(d.numpy): d for d in ALL if d is not TFloat32}


def from_numpy(dtype: Any) -> DType:
    """The DType of a NumPy (or ml_dtypes) dtype."""
    try:
        return _BY_NUMPY[np.dtype(dtype)]
    except KeyError:
        raise TypeError(f"dtype {dtype}: no CuTe element type; known are {', '.join(map(repr, ALL))}") from None
