# SPDX-License-Identifier: Apache-2.0
"""Element types. A `DType` names a type; calling it makes a value of that type that is known only at run time.

``Float32`` is both what a tensor's elements are and, called, a conversion: ``Int32(x)``. On the host the call
gives a `Scalar`, which a kernel receives as a run-time value where a plain int would be static.
"""

from __future__ import annotations

import math
import operator
import sys
from typing import TYPE_CHECKING, Any, Union, overload

import ml_dtypes
import numpy as np

from . import seam
from .seam.ground.element_classes import Element, OfElements, OfKind
from .seam.ground.error import NoIndex
from .seam.ground.names import UnknownName
from .seam.ground.records import dataclass
from .seam.guards import element_values

__all__ = [
    "BFloat16", "Boolean", "DType", "Float", "Float16", "Float32", "Float4E2M1FN", "Float64", "Float6E2M3FN",
    "Float6E3M2FN", "Float8E4M3FN", "Float8E5M2", "Float8E8M0FNU", "Int16", "Int32", "Int4", "Int64", "Int8",
    "Integer", "Numeric", "TFloat32", "Uint16", "Uint32", "Uint4", "Uint64", "Uint8",
]  # fmt: skip

if TYPE_CHECKING:
    # To a type checker an element type is a class and DType its class, so that `count: cute.Int32` is an annotation.
    _Base = type
else:
    _Base = Element


@dataclass(frozen=True, eq=False)  # each is one object: it is a key everywhere, and looked up by identity
class DType(_Base, metaclass=OfElements):
    """One element type. Called with `value`, it converts that number to a value of the type, known only at run time.

    name: the public name ("BFloat16"); ptx: the PTX type ("bf16"); width: bits; kind: "float", "int", "uint" or "bool";
    numpy: the NumPy (or ml_dtypes) type that holds one element on the host and in the simulator.

    >>> cute.BFloat16.width, cute.Float32.bytes, cute.Float8E4M3FN.is_float
    (16, 4, True)
    """

    name: str
    ptx: str
    width: int
    kind: str
    numpy: Any
    __cute_element__ = True

    def __post_init__(self) -> None:
        element_values.check_fields(self)

    @property
    def is_float(self) -> bool:
        """True of floats."""
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """True of integers, signed or not; Boolean is none."""
        return self.kind in ("int", "uint")

    mlir_type = property(lambda self: self, doc="The type itself, for texts of PTX: MLIR's in the CuTe DSL.")

    def is_same_kind(self, other: DType) -> bool:
        """Return whether this type and an `other` are both integers, signed or not, both floats, or both booleans."""
        return (self.is_integer, self.is_float) == (other.is_integer, other.is_float)

    @property
    def signed(self) -> bool:
        """True of floats and signed integers."""
        return self.kind in ("int", "float")

    @property
    def bytes(self) -> int:
        """The bytes of one element; an error for types narrower than a byte."""
        if self.width % 8:
            raise UnknownName(f"{self.name} has {self.width} bits: it has no size in whole bytes; ask its `width`")
        return self.width // 8

    @property
    def zero(self) -> Any:
        """The number 0: of this type in a kernel, a plain number on the host; so too `one`, `inf` and `nan`."""
        return self._constant(0)

    @property
    def one(self) -> Any:
        """The number 1."""
        return self._constant(1)

    @property
    def inf(self) -> Any:
        """Infinity; an error for types that lack it."""
        return self._constant(math.inf)

    @property
    def nan(self) -> Any:
        """Not a number; an error for types that lack it."""
        return self._constant(math.nan)

    def _constant(self, value: float) -> Any:
        if value and not math.isfinite(value):
            held = float(np.array([value]).astype(self.numpy)[0]) if self.is_float else 0.0
            if not (math.isnan(held) if math.isnan(value) else held == value):
                raise seam.CuteError(f"{self.name}.{value}: the type has no such number")
        running = seam.current_or(None)
        return value if running is None else running.cast(value, self)

    def __call__(self, value: Any) -> Any:
        """Convert `value` to this type: in a kernel a run-time value, on the host a `Scalar`."""
        return seam.current_or(_HOST).cast(value, self)

    def __instancecheck__(self, x: Any) -> bool:
        """Return whether a number that is known only at run time, or a `Scalar`, is of this type."""
        of = isinstance(x, seam.Leaf) and (x.dtype if isinstance(x, Scalar) else seam.current().type_of(x))
        return bool(of == self)

    def __or__(self, other: Any) -> Any:
        """A union in an annotation: `cute.Float32 | None`."""
        return Union[self, element_values.union_member(other)]  # noqa: UP007 - this is what X | Y calls

    def __ror__(self, other: Any) -> Any:
        return Union[element_values.union_member(other), self]  # noqa: UP007

    def __reduce__(self) -> str:
        return self.name  # a copy, and what was pickled, is the type itself

    def __repr__(self) -> str:
        return self.name


Numeric = DType
"""The CuTe DSL's name for element types in annotations."""


if TYPE_CHECKING:
    Float = Integer = DType
else:

    class Float(metaclass=OfKind):
        """The CuTe DSL's name for the types of floats.

        >>> isinstance(cute.BFloat16, cute.Float), isinstance(cute.Int8, cute.Float)
        (True, False)
        """

        kinds = ("float",)

    class Integer(metaclass=OfKind):
        """The CuTe DSL's name for the types of integers, signed or not.

        >>> isinstance(cute.Int32, cute.Integer), isinstance(cute.Float32, cute.Integer)
        (True, False)
        """

        kinds = ("int", "uint")


KINDS: tuple[type, ...] = (DType, Float, Integer)
"""The classes that `issubclass` may ask element types for."""


class Scalar(seam.Leaf):
    """A number that a kernel receives as a run-time value (a plain Python int is static)."""

    __slots__ = ("dtype", "value", "divisor")
    dtype: DType
    value: Any
    divisor: int

    def __init__(self, dtype: DType, value: Any, divisor: int = 1) -> None:
        _set_dtype(self, dtype)
        _set_value(self, value)
        _set_divisor(self, divisor)

    def __setattr__(self, name: str, value: Any) -> None:
        raise seam.CuteError(
            f"{self!r}.{name} cannot be assigned: a {type(self).__name__} is immutable; make another number"
        )

    def __copy__(self) -> Scalar:
        return self

    def __deepcopy__(self, memo: Any) -> Scalar:
        return self

    def __reduce__(self) -> Any:
        return Scalar, (self.dtype, self.value, self.divisor)

    def assumed(self, divisor: int) -> Scalar:
        """Return the same number with the promise that `divisor` divides it: checked, for the number is known here."""
        if not self.dtype.is_integer:
            raise seam.CuteError(f"assume: src {self!r} is not an integer")
        element_values.check_divisor(divisor)
        Scalar(self.dtype, self.value, divisor).checked()
        return Scalar(self.dtype, self.value, math.lcm(self.divisor, divisor))

    def checked(self, simulated: bool = False) -> Any:
        """Return the value, for a kernel that is launched; an error if it breaks the promise of its divisor. simulated:
        whether the simulator launches it, not a GPU."""
        if self.divisor > 1 and self.value % self.divisor:
            raise seam.CuteError(f"{self!r} is not a multiple of {self.divisor}, as it was promised to be")
        return self.value

    def captured(self, simulated: bool = False) -> Any:
        """Return the value as a constant of a kernel that captures it as a global or closure variable. simulated: as
        for `checked`."""
        return self.checked(simulated)

    def __index__(self) -> int:
        if self.dtype.is_float:
            raise NoIndex(f"{self!r} is no index: give an integer")
        return element_values.to_int(self.value)

    def __int__(self) -> int:
        return element_values.to_int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __repr__(self) -> str:
        return f"{self.dtype}({self.value})"

    def __eq__(self, other: object) -> Any:
        raw = other.value if isinstance(other, Scalar) else other
        return bool(self.value == raw) if isinstance(raw, (int, float, np.generic)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.value)

    def __pos__(self) -> Scalar:
        return self

    def __abs__(self) -> Any:
        return -self if self.value < 0 else self

    def __neg__(self) -> Any:
        return _scalar("sub", 0, self)

    def __invert__(self) -> Any:
        return _scalar("xor", self, -1)


_set_dtype, _set_value, _set_divisor = (vars(Scalar)[n].__set__ for n in ("dtype", "value", "divisor"))
_OF_INTEGERS = ("and_", "or_", "xor", "lshift", "rshift")


def _scalar(op: str, a: Any, b: Any) -> Any:
    """One operation of two numbers, one of them a Scalar: of the type in which they meet, as in a kernel."""
    if any(isinstance(x, seam.Leaf) and not isinstance(x, Scalar) for x in (a, b)):  # of the kernel that runs
        x, y = (seam.current().cast(v.value, v.dtype) if isinstance(v, Scalar) else v for v in (a, b))
        return getattr(operator, op)(x, y)
    if not all(isinstance(x, (Scalar, int, float)) for x in (a, b)):
        return NotImplemented
    if (found := element_values.of_dsl(op, a, b, sys._getframe(2))) is not None:
        return found
    dtype = joined(*(x.dtype if isinstance(x, Scalar) else x for x in (a, b)))
    if op in _OF_INTEGERS and dtype.is_float:
        raise seam.CuteError(f"{a!r} and {b!r}: bits are of integers")
    x, y = (v.value if isinstance(v, Scalar) else v for v in (a, b))
    y = element_values.right_of(op, a, b, y, isinstance(b, Scalar) and seam.tries())
    if op == "truediv" and not dtype.is_float:
        dtype = Float64
    known = seam.divisor_of(op, a, b) if dtype.is_integer else 1
    result = 0 if op == "lshift" and y >= 64 else getattr(operator, op)(x, y)
    cast = number(result, dtype)
    return Scalar(dtype, cast, known if cast == result else known & -known)


def _operator(op: str) -> None:
    name = op.rstrip("_")
    setattr(Scalar, f"__{name}__", lambda a, b: _scalar(op, a, b))
    setattr(Scalar, f"__r{name}__", lambda a, b: _scalar(op, b, a))


def _comparison(op: str) -> None:
    def call(a: Scalar, b: Any) -> bool:
        found = element_values.of_dsl(op, a, b, sys._getframe(1))
        return bool(getattr(operator, op)(a.value, element_values.number_beside(a, b)) if found is None else found)

    setattr(Scalar, f"__{op}__", call)


for _op in ("lt", "le", "gt", "ge"):
    _comparison(_op)
for _op in ("add", "sub", "mul", "truediv", "floordiv", "mod", *_OF_INTEGERS):
    _operator(_op)


def joined(a: Any, b: Any) -> DType:
    """Return the type in which two operands of traced code meet, of which one at least is typed: a static number takes
    the other's, where it fits. a, b: a type each, or a static number."""
    if not isinstance(a, DType):
        a, b = b, a
    if isinstance(b, DType):
        if a is b:
            return a
        kind = [t for t in (a, b) if t.is_float] or [t for t in (a, b) if t.kind != "bool"]
        return max(kind, key=lambda t: (t.width, t.signed))
    dtype: DType = a
    if dtype.is_float or isinstance(b, float):
        return dtype if dtype.is_float else Float64
    if dtype is Boolean:
        return dtype if isinstance(b, bool) else Int32
    return dtype if -(1 << dtype.width - 1) <= b < 1 << dtype.width else Int64


class _Host:
    """The conversion that a DType call makes where no kernel is being run or compiled."""

    @staticmethod
    def cast(value: Any, dtype: DType) -> Scalar:
        raw = value.value if isinstance(value, Scalar) else value
        cast = number(raw, dtype)
        known = value.divisor if isinstance(value, Scalar) and dtype.is_integer and cast == raw else 1
        return Scalar(dtype, cast, known)


_HOST = _Host()

if TYPE_CHECKING:

    class _Value(Scalar, metaclass=DType):
        """The type of a struct's field that is annotated with an element type: it takes numbers, and is read as any."""

        def __init__(self, value: Any) -> None: ...
        @overload
        def __get__(self, instance: None, owner: Any) -> DType: ...
        @overload
        def __get__(self, instance: object, owner: Any) -> Any: ...
        def __get__(self, instance: Any, owner: Any) -> Any: ...
        def __set__(self, instance: Any, value: float | seam.Leaf) -> None: ...

    # fmt: off
    class Boolean(_Value): ...
    class Int8(_Value): ...
    class Int16(_Value): ...
    class Int32(_Value): ...
    class Int64(_Value): ...
    class Uint8(_Value): ...
    class Uint16(_Value): ...
    class Uint32(_Value): ...
    class Uint64(_Value): ...
    class Float16(_Value): ...
    class BFloat16(_Value): ...
    class TFloat32(_Value): ...
    class Float32(_Value): ...
    class Float64(_Value): ...
    class Float8E4M3FN(_Value): ...
    class Float8E5M2(_Value): ...
    class Float8E8M0FNU(_Value): ...
    class Int4(_Value): ...
    class Uint4(_Value): ...
    class Float4E2M1FN(_Value): ...
    class Float6E2M3FN(_Value): ...
    class Float6E3M2FN(_Value): ...
    # fmt: on
else:
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
    Float8E8M0FNU = DType("Float8E8M0FNU", "ue8m0", 8, "float", ml_dtypes.float8_e8m0fnu)
    # Narrower than a byte: packed in memory, the first element in the lowest bits.
    Int4 = DType("Int4", "s4", 4, "int", ml_dtypes.int4)
    Uint4 = DType("Uint4", "u4", 4, "uint", ml_dtypes.uint4)
    Float4E2M1FN = DType("Float4E2M1FN", "e2m1", 4, "float", ml_dtypes.float4_e2m1fn)
    Float6E2M3FN = DType("Float6E2M3FN", "e2m3", 6, "float", ml_dtypes.float6_e2m3fn)
    Float6E3M2FN = DType("Float6E3M2FN", "e3m2", 6, "float", ml_dtypes.float6_e3m2fn)

# Operands of matrix instructions, and bits as such: not elements of tensors.
Uint1 = DType("Uint1", "b1", 1, "uint", np.bool_)
Uint6 = DType("Uint6", "b6", 6, "uint", np.uint8)

WHOLE: tuple[DType, ...] = (Boolean, Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64)
WHOLE += (Float16, BFloat16, TFloat32, Float32, Float64, Float8E4M3FN, Float8E5M2, Float8E8M0FNU)
"""Elements of whole bytes."""
NARROW: tuple[DType, ...] = (Int4, Uint4, Float4E2M1FN, Float6E2M3FN, Float6E3M2FN)
ALL: tuple[DType, ...] = WHOLE + NARROW

_BY_NUMPY = {np.dtype(d.numpy): d for d in ALL if d is not TFloat32}  # Uint6 too is held in a byte of its own


def from_numpy(dtype: Any) -> DType:
    """Return the DType of `dtype`, a NumPy (or ml_dtypes) dtype; a CuteError if there is none."""
    try:
        return _BY_NUMPY[np.dtype(dtype)]
    except (KeyError, TypeError, ValueError, SyntaxError, RecursionError):  # NumPy reads texts as Python's
        raise element_values.no_element_type(dtype, ALL) from None


# ------------------------------------------------------------------ conversion, as on a GPU

_TOP = {"e4m3": 448.0, "e5m2": 57344.0, "e2m3": 7.5, "e3m2": 28.0, "e2m1": 6.0}
"""The largest numbers of the types to which conversions saturate (PTX ISA, "cvt", .satfinite)."""


_PLAIN = (bool, int, float)
_HALVES = (Float16, BFloat16)
_LEAST, _MOST = 2.0**-14, 65504.0
"""The least and the greatest normal number of Float16: between them nothing overflows, or loses digits besides."""


def number(value: Any, dtype: DType) -> Any:
    """Convert a scalar as `converted` does: a Python int, float or bool that `dtype` holds."""
    kind = type(value)
    if dtype.kind == "bool" and kind in _PLAIN:
        return value != 0
    if kind is int and dtype.is_integer:
        bits = value & ((1 << dtype.width) - 1)
        return bits - (1 << dtype.width) if dtype.kind == "int" and bits >> (dtype.width - 1) else bits
    if kind is float and dtype in _HALVES:
        single = float(np.float32(value)) if _LEAST <= abs(value) <= _MOST else None
        if single == value:  # so that it is rounded once
            return float(dtype.numpy(single))
    return converted(element_values.one_number(value, dtype), dtype).item()


def converted(values: Any, dtype: DType) -> Any:
    """Convert numbers to an array of `dtype` elements, as a GPU does.

    Integers wrap around. Floats are rounded to nearest even, once; to integers towards zero, saturating, NaN to 0; to
    types of at most 8 bits saturating (a NaN becomes the largest number of a type that has none); to Float8E8M0FNU,
    which holds powers of two, their magnitude upwards. To Boolean: False for 0, else True.
    """
    values = _plain(values)
    with np.errstate(all="ignore"):
        if dtype.kind == "bool":
            return values != 0
        if dtype.is_integer:
            return _to_integers(values, dtype)
        if dtype.width >= 32:
            return values.astype(dtype.numpy)
        if dtype is Float8E8M0FNU:
            return _to_powers(rounded_to_odd(values))
        single = rounded_to_odd(values)
        top = _TOP.get(dtype.ptx)
        if top is not None:
            single = np.clip(single, np.float32(-top), np.float32(top))
            if dtype.width < 8:
                single = np.where(np.isnan(single), np.float32(top), single)
        return single.astype(dtype.numpy)


def _plain(values: Any) -> Any:
    """Numbers as an array of a type that NumPy itself knows, exactly."""
    a = np.asarray(values)
    if a.dtype.kind == "O":  # Python ints that no type of NumPy holds
        return np.array([int(x) & (1 << 64) - 1 for x in a.reshape(-1)], np.uint64).reshape(a.shape)
    if a.dtype.kind in "iub" or a.dtype.kind == "f":
        return a
    return a.astype(np.int8 if np.dtype(a.dtype).name in ("int4", "uint4") else np.float64)


def _to_integers(values: Any, dtype: DType) -> Any:
    low = -(1 << (dtype.width - 1)) if dtype.kind == "int" else 0
    high = low + (1 << dtype.width) - 1
    wide = np.uint64 if dtype.kind == "uint" else np.int64
    if values.dtype.kind == "f":
        whole = np.trunc(np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf))
        over, under = whole >= float(high + 1), whole < float(low)
        out = np.where(over | under, 0.0, whole).astype(wide)
        out = np.where(over, wide(high), np.where(under, wide(low), out))
    else:
        out = values.astype(wide)
        if dtype.width < 64:
            out = out & wide((1 << dtype.width) - 1)
            out = np.where(out > high, out - wide(1 << dtype.width if dtype.kind == "int" else 0), out)
    return out.astype(np.int8 if dtype.width < 8 else dtype.numpy).astype(dtype.numpy)


def _to_powers(values: Any) -> Any:
    """The least powers of two that are not smaller, from 2**-127 to 2**127."""
    mantissa, exponent = np.frexp(np.abs(values.astype(np.float64)))
    power = np.where(mantissa == 0.5, exponent - 1, exponent)
    power = np.where(values == 0, -127, np.where(np.isinf(values), 127, power))
    bits = np.where(np.isnan(values), 255, np.clip(power, -127, 127) + 127)
    return bits.astype(np.uint8).view(Float8E8M0FNU.numpy)


def rounded_to_odd(values: Any) -> Any:
    """Round numbers to Float32, the last bit set where that is not exact: rounding the result once more is then
    rounding once."""
    values = np.asarray(values)
    if values.dtype.kind in "iu" and values.dtype.itemsize == 8:  # 64 bits: what a double has no room for, as one bit
        low = values & values.dtype.type(0x7FF)
        big = np.abs(values.astype(np.float64)) >= 2.0**53
        values = np.where(big, (values - low) | np.where(low != 0, 0x800, 0).astype(values.dtype), values)
    wide = values.astype(np.float64)
    single = wide.astype(np.float32)
    beyond = np.abs(single.astype(np.float64)) > np.abs(wide)
    single = np.where(beyond, np.nextafter(single, np.float32(0)), single)  # towards zero
    inexact = np.isfinite(wide) & (single.astype(np.float64) != wide)
    return np.where(inexact, (single.view(np.int32) | 1).view(np.float32), single).astype(np.float32)
