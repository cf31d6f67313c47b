# SPDX-License-Identifier: Apache-2.0
"""Run-time values in traced code: each has a Numba type and, while lowering, an LLVM value (None while typing)."""

from __future__ import annotations

import math
import sys
from typing import Any

from llvmlite import ir
from numba.cuda import types

from ... import dtypes, seam
from ...seam import CuteError
from ...seam.error import RunTimeCondition
from ...seam.language import NO_KEY
from ...seam.plain import is_users_frame
from ...seam.whose import is_library

_SCALARS: dict[dtypes.DType, types.Type] = {
    dtypes.Boolean: types.boolean,
    dtypes.Int8: types.int8,
    dtypes.Int16: types.int16,
    dtypes.Int32: types.int32,
    dtypes.Int64: types.int64,
    dtypes.Uint8: types.uint8,
    dtypes.Uint16: types.uint16,
    dtypes.Uint32: types.uint32,
    dtypes.Uint64: types.uint64,
    dtypes.Float16: types.float16,
    dtypes.BFloat16: types.bfloat16,
    dtypes.TFloat32: types.float32,
    dtypes.Float32: types.float32,
    dtypes.Float64: types.float64,
    dtypes.Float8E4M3FN: types.float32,
    dtypes.Float8E5M2: types.float32,
    dtypes.Float8E8M0FNU: types.float32,
    dtypes.Int4: types.int8,
    dtypes.Uint4: types.uint8,
    dtypes.Uint6: types.uint8,
    dtypes.Float4E2M1FN: types.float32,
    dtypes.Float6E2M3FN: types.float32,
    dtypes.Float6E3M2FN: types.float32,
}


def scalar_type(dtype: dtypes.DType) -> types.Type:
    """Return the Numba type that holds one element of `dtype` (a float of at most 8 bits travels as the float32 of its
    value, a 4-bit integer as one of 8)."""
    return _SCALARS[dtype]


def dtype_of(ty: types.Type) -> dtypes.DType:
    """Return the element type of a Numba scalar type."""
    ty = types.unliteral(ty)
    for dtype, scalar in _SCALARS.items():
        if scalar == ty and dtype is not dtypes.TFloat32 and not (dtype.is_float and dtype.width <= 8):
            return dtype
    raise CuteError(f"a value of Numba type {ty} has no CuTe element type")


def class_of_number(ty: types.Type) -> type | None:
    """Return the class that Python has for the numbers of a Numba type; None for anything else."""
    kinds = ((types.Boolean, bool), (types.Integer, int), (types.Float, float), (types.Complex, complex))
    return next((cls for kind, cls in kinds if isinstance(ty, kind)), None)


class Number(seam.Leaf):
    """An integer, float or bool known only at run time.

    `//` and `%` of integers are unsigned: they divide coordinates, which are not negative. `==` stays identity, so
    that leaves can be keys; `seam.current().compare` compares values. In a plain function of the user's that is traced
    (`Tracer.plain`) all operators are Numba's, as they are where Numba compiles it.
    """

    __slots__ = ("type", "ir", "divisor")

    def __init__(self, type: types.Type, ir: Any = None, divisor: int = 1) -> None:
        self.type = type
        self.ir = ir
        self.divisor = divisor

    def assumed(self, divisor: int) -> Number:
        """Return the same number, which `divisor` is now known to divide."""
        if not isinstance(self.type, types.Integer):
            raise CuteError(f"assume: src {self.type} is not an integer")
        return Number(self.type, self.ir, math.lcm(self.divisor, divisor))

    def __bool__(self) -> bool:
        raise RunTimeCondition(
            f"a run-time value ({self.type}) cannot decide compile-time control flow: "
            "branch on it in the kernel itself, or make it static"
        )

    def __index__(self) -> int:
        raise RunTimeCondition(f"a static int is needed here, and this one ({self.type}) is known only at run time")

    __int__ = __index__

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """Return for `isinstance` in the user's Python the class that Python has for such a number."""
        return class_of_number(self.type) or Number if is_users_frame(sys._getframe(1)) else Number

    def __repr__(self) -> str:
        known = f"{{div={self.divisor}}}" if self.divisor > 1 else ""
        return "?" + ("" if self.type in (types.int32, types.int64) else str(self.type)) + known

    def __add__(self, o: Any) -> Any:
        return self if _is(o, 0) else _arith("add", self, o)

    __radd__ = __add__

    def __sub__(self, o: Any) -> Any:
        return self if _is(o, 0) else _arith("sub", self, o)

    def __rsub__(self, o: Any) -> Any:
        return _arith("sub", o, self)

    def __neg__(self) -> Any:
        return _arith("sub", 0, self)

    def __mul__(self, o: Any) -> Any:
        if not isinstance(o, (int, float, Number)):
            return NotImplemented
        return 0 if _is(o, 0) else self if _is(o, 1) else _arith("mul", self, o)

    __rmul__ = __mul__

    def __floordiv__(self, o: Any) -> Any:
        return self if _is(o, 1) else _arith("udiv", self, o)

    def __rfloordiv__(self, o: Any) -> Any:
        return 0 if _is(o, 0) else _arith("udiv", o, self)

    def __mod__(self, o: Any) -> Any:
        return 0 if type(o) is int and o > 0 and self.divisor % o == 0 else _arith("urem", self, o)

    def __rmod__(self, o: Any) -> Any:
        return 0 if _is(o, 0) else _arith("urem", o, self)

    def __truediv__(self, o: Any) -> Any:
        return _arith("fdiv", self, o)

    def __and__(self, o: Any) -> Any:
        return _arith("and_", self, o)

    __rand__ = __and__

    def __or__(self, o: Any) -> Any:
        return self if _is(o, 0) else _arith("or_", self, o)

    __ror__ = __or__

    def __xor__(self, o: Any) -> Any:
        return self if _is(o, 0) else _arith("xor", self, o)

    __rxor__ = __xor__

    def __invert__(self) -> Any:
        return _arith("xor", self, True if self.type == types.boolean else -1)

    def __lshift__(self, o: Any) -> Any:
        return self if _is(o, 0) else _arith("shl", self, o)

    def __rlshift__(self, o: Any) -> Any:
        return _arith("shl", o, self)

    def __rshift__(self, o: Any) -> Any:
        return self if _is(o, 0) else _arith("lshr", self, o)

    def __eq__(self, o: object) -> Any:
        return True if self is o else _equality("==", self, o)

    def __ne__(self, o: object) -> Any:
        return _equality("!=", self, o)

    def __hash__(self) -> int:
        """Return a key for this library's tables. The user's dictionaries and sets would look for the leaf itself."""
        if is_users_frame(sys._getframe(1)):
            raise CuteError(NO_KEY)
        return object.__hash__(self)

    def __lt__(self, o: Any) -> Any:
        return _compare("<", self, o)

    def __le__(self, o: Any) -> Any:
        return _compare("<=", self, o)

    def __gt__(self, o: Any) -> Any:
        return _compare(">", self, o)

    def __ge__(self, o: Any) -> Any:
        return _compare(">=", self, o)


def _is_plain(caller: Any) -> bool:
    """Say whether an operator stands in a plain function of the user's. caller: the frame that it stands in."""
    if not getattr(seam.current_or(None), "plain", False):
        return False
    return not is_library(caller.f_globals.get("__name__"))


def _compare(op: str, a: Any, b: Any) -> Any:
    if not isinstance(b, (int, float, Number, dtypes.Scalar)):
        return NotImplemented  # a vector compares itself with a number
    if _is_plain(sys._getframe(2)):
        return seam.current().operate(op, a, b)  # type: ignore[attr-defined]
    return seam.current().compare(op, a, b)


def _equality(op: str, a: Any, b: Any) -> Any:
    if isinstance(b, (int, float, Number)) and _is_plain(sys._getframe(2)):
        return seam.current().operate(op, a, b)  # type: ignore[attr-defined]
    return NotImplemented


def _is(x: Any, value: int) -> bool:
    return isinstance(x, int) and x == value


def _arith(op: str, a: Any, b: Any) -> Any:
    if not isinstance(a, (int, float, Number)) or not isinstance(b, (int, float, Number)):
        return NotImplemented
    plain = _is_plain(sys._getframe(2))
    tracer: Any = seam.current()
    result = tracer.operate(op, a, b) if plain else tracer.arith(op, a, b)
    if isinstance(result.type, types.Integer):
        found = seam.divisor_of(op, a, b)
        result.divisor = found if result.type.signed or op not in _WRAPPING else found & -found
    return result


_WRAPPING = ("add", "sub", "mul", "shl")
"""Operations that may wrap around in an unsigned type, where only powers of two divide what they divided before."""


def joined(a: Any, b: Any) -> types.Type:
    """Return the type in which two operands meet: a static int takes the other's type if it fits there."""
    if not isinstance(a, Number):
        a, b = b, a
    if not isinstance(b, Number):
        if isinstance(a.type, types.Float) or isinstance(b, float):
            return a.type if isinstance(a.type, types.Float) else types.float64
        if isinstance(a.type, types.Boolean):
            return types.boolean if isinstance(b, bool) else types.int32
        fits = -(2 ** (a.type.bitwidth - 1)) <= b < 2**a.type.bitwidth
        return a.type if fits else types.int64
    if a.type == b.type:
        return a.type
    floats = [t for t in (a.type, b.type) if isinstance(t, types.Float)]
    if floats:
        return max(floats, key=lambda t: t.bitwidth)
    if types.boolean in (a.type, b.type):
        return b.type if a.type == types.boolean else a.type
    wide = max(a.type.bitwidth, b.type.bitwidth)
    if a.type.bitwidth == b.type.bitwidth:
        return a.type if a.type.signed else b.type
    return a.type if a.type.bitwidth == wide else b.type


class RegFile(seam.Leaf):
    """Registers of one thread: `count` elements, held in the frame as an array that SROA turns into registers.

    Elements narrower than 32 bits are packed into 32-bit words, as the instructions that use them want them.
    """

    __slots__ = ("dtype", "count", "ir")

    def __init__(self, dtype: dtypes.DType, count: int, ir: Any = None) -> None:
        self.dtype, self.count, self.ir = dtype, count, ir

    def __repr__(self) -> str:
        return f"registers<{self.count} x {self.dtype}>"


class VectorLeaf(seam.Leaf):
    """`count` elements of one type as one immutable value, packed as a RegFile packs them."""

    __slots__ = ("dtype", "count", "ir")

    def __init__(self, dtype: dtypes.DType, count: int, ir: Any = None) -> None:
        self.dtype, self.count, self.ir = dtype, count, ir


WORD = ir.IntType(32)


def element_ir(dtype: dtypes.DType) -> ir.Type:
    """Return the LLVM type that one array slot of a RegFile has: the element's own, or a 32-bit word of packed ones."""
    if dtype.width < 32:
        return WORD
    if dtype.is_float:
        return ir.DoubleType() if dtype.width == 64 else ir.FloatType()
    return ir.IntType(dtype.width)


def held(dtype: dtypes.DType) -> int:
    """Return the bits that one element takes in a register: 8 for one of 6 bits."""
    return 8 if dtype.width == 6 else dtype.width


def per_slot(dtype: dtypes.DType) -> int:
    """Count how many elements one array slot of a RegFile holds."""
    return max(1, 32 // held(dtype))


def slots(dtype: dtypes.DType, count: int) -> int:
    """Count how many array slots `count` elements take."""
    return -(-count // per_slot(dtype))
