# SPDX-License-Identifier: Apache-2.0
"""Run-time values in traced code: each has a Numba type and, while lowering, an LLVM value (None while typing)."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import dtypes, seam
from ...seam import CuteError
from ...seam.ground.error import RunTimeCondition
from ...seam.ground.packages import is_library
from ...seam.marks.plain import is_users_frame
from ...seam.source import texts
from ...seam.source.language import NO_DISPATCH, NO_KEY
from ..ground import llvmlite as ir
from ..ground.numba_cuda import types

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


_DTYPES = {
    t._code: d for d, t in reversed(_SCALARS.items()) if d is not dtypes.TFloat32 and not (d.is_float and d.width <= 8)
}
"""By the number of a Numba type, since hashing one takes long; of several element types that it holds, the first."""


def scalar_type(dtype: dtypes.DType) -> types.Type:
    """Return the Numba type that holds one element of `dtype` (a float of at most 8 bits travels as the float32 of its
    value, a 4-bit integer as one of 8)."""
    found = _SCALARS.get(dtype)
    if found is None:
        raise CuteError(f"{dtype} is not a type of a kernel's numbers: memory alone holds it")
    return found


def dtype_of(ty: types.Type) -> dtypes.DType:
    """Return the element type of a Numba scalar type."""
    ty = types.unliteral(ty)
    if ty._code not in _DTYPES:
        raise CuteError(f"a value of Numba type {ty} has no CuTe element type")
    return _DTYPES[ty._code]


def class_of_number(ty: types.Type) -> type | None:
    """Return the class that Python has for the numbers of a Numba type; None for anything else."""
    kinds = ((types.Boolean, bool), (types.Integer, int), (types.Float, float), (types.Complex, complex))
    return next((cls for kind, cls in kinds if isinstance(ty, kind)), None)


class NumberLeaf(seam.Leaf):
    """An integer, float or bool known only at run time.

    Its operators are those of traced code: C's, in the type in which two operands meet (`joined`), but that `//`, `%`
    and `>>` round as Python's. What divides coordinates, which are not negative, says so (`_natural`). In a plain
    function of the user's that is traced (`Tracer.plain`) all operators are Numba's, as they are where Numba compiles
    it.
    """

    __slots__ = ("type", "ir", "divisor")
    __array_ufunc__ = None  # NumPy's scalars leave the operation to this class

    def __init__(self, type: types.Type, ir: Any = None, divisor: int = 1) -> None:
        self.type = type
        self.ir = ir
        self.divisor = divisor

    def assumed(self, divisor: int) -> NumberLeaf:
        """Return the same number, which `divisor` is now known to divide."""
        if not isinstance(self.type, types.Integer):
            raise CuteError(f"assume: src {self.type} is not an integer")
        return NumberLeaf(self.type, self.ir, math.lcm(self.divisor, divisor))

    def _natural(self, op: str, a: Any, b: Any) -> Any:
        if op == "floordiv":
            return a if _is(b, 1) else 0 if _is(a, 0) else _traced("udiv", a, b)
        return 0 if _is(a, 0) or _divides(b, a) else _traced("urem", a, b)

    def __bool__(self) -> bool:
        raise seam.signalled(
            RunTimeCondition(
                f"a run-time value ({self.type}) cannot decide compile-time control flow: "
                "branch on it in the kernel itself, or make it static"
            )
        )

    def __index__(self) -> int:
        words = f"a static int is needed here, and this one ({self.type}) is known only at run time"
        raise seam.signalled(RunTimeCondition(words))

    __int__ = __index__

    def __float__(self) -> float:
        words = f"a static number is needed here, and this one ({self.type}) is known only at run time"
        raise seam.signalled(RunTimeCondition(words))

    __complex__ = __float__

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """Return for `isinstance` in a plain function of the user's the class that Python has for such a number. In
        traced functions it is not an int, as in the simulator."""
        if sys._getframe(1).f_globals.get("__name__") == "functools":
            raise CuteError(NO_DISPATCH)
        return class_of_number(self.type) or NumberLeaf if _is_plain(sys._getframe(1)) else NumberLeaf

    def __repr__(self) -> str:
        if texts.decides():
            raise seam.signalled(RunTimeCondition(texts.NO_TEXT))
        known = f"{{div={self.divisor}}}" if self.divisor > 1 else ""
        return "?" + ("" if self.type in (types.int32, types.int64) else str(self.type)) + known

    def __hash__(self) -> int:
        """Return a key for this library's tables. The user's dictionaries and sets would look for the leaf itself."""
        if is_users_frame(sys._getframe(1)):
            raise CuteError(NO_KEY)
        return object.__hash__(self)


def _is_plain(caller: Any) -> bool:
    """Say whether an operator stands in a plain function of the user's. caller: the frame that it stands in."""
    if not getattr(seam.current_or(None), "plain", False):
        return False
    return not is_library(caller.f_globals.get("__name__"))


def _operand(x: Any) -> Any:
    """Return an operand as a leaf, or as a static number of Python's; None if it is not a number."""
    if isinstance(x, (NumberLeaf, int, float)):
        return x
    if isinstance(x, dtypes.Scalar):
        return seam.current().cast(x, x.dtype)
    if isinstance(x, np.generic) and x.dtype.kind in "biuf":
        return seam.current().cast(x.item(), dtypes.from_numpy(x.dtype))
    return None


def _operator(op: str, reflected: bool) -> Callable[..., Any]:
    """Return the method of an operator with two operands. op: its name in `operator`."""
    swapped = reflected and op not in ("add", "mul", "and_", "or_", "xor")  # constants stay on the right

    def call(self: NumberLeaf, o: Any, *more: Any) -> Any:
        o = _operand(o)
        if o is None:
            return NotImplemented
        a, b = (o, self) if swapped else (self, o)
        if more or _is_plain(sys._getframe(1)):
            return _operated(sys._getframe(1), op, a, b, *more)
        if op in _COMPARISONS:
            return seam.current().compare(_COMPARISONS[op], a, b)
        return _traced(op, a, b)

    return call


def _function(f: Any) -> Callable[..., Any]:
    """Return the method by which Python's `abs`, `round` and the like ask an object."""

    def call(self: NumberLeaf, *more: Any) -> Any:
        if f == "neg" and not _is_plain(sys._getframe(1)):
            return _traced("sub", -0.0 if isinstance(self.type, types.Float) else 0, self)
        if f == "invert" and not _is_plain(sys._getframe(1)):
            return _traced("xor", self, True if self.type == types.boolean else -1)
        if f == "pos" and not _is_plain(sys._getframe(1)):
            return self
        return _operated(sys._getframe(1), f, self, *more)

    return call


def _operated(caller: Any, op: str, *operands: Any) -> Any:
    """Apply an operator as the file of the `caller`, a frame, has it."""
    reference = seam.is_of_hook(caller.f_globals, caller.f_code.co_filename)
    return seam.current().operate(op, *operands, reference=reference)  # type: ignore[attr-defined]


_COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift", "rshift")
for _name in (*_BINARY, "divmod", *_COMPARISONS):
    setattr(NumberLeaf, f"__{_name.rstrip('_')}__", _operator(_name, False))
    if _name not in _COMPARISONS:
        setattr(NumberLeaf, f"__r{_name.rstrip('_')}__", _operator(_name, True))
for _name in ("neg", "pos", "invert", "abs", "round", "floor", "ceil", "trunc"):
    setattr(NumberLeaf, f"__{_name}__", _function(_name))


def _is(x: Any, value: int) -> bool:
    return type(x) is not NumberLeaf and isinstance(x, int) and x == value


def _divides(b: Any, a: Any) -> bool:
    return type(b) is int and b > 0 and seam.divisor(a) % b == 0


_KEEPS = {"add": 0, "sub": 0, "mul": 1, "floordiv": 1, "or_": 0, "xor": 0, "lshift": 0, "rshift": 0}
"""The static operand with which an operator gives the other one: on the left too of those that commute."""
_ZERO = ("mul", "floordiv", "mod")
"""Those of integers that give 0 of a static 0 on the left."""


def _traced(op: str, a: Any, b: Any) -> Any:
    """Apply an operator of traced code to two numbers, one of them a leaf. What is static of it stays static."""
    keeps = _KEEPS.get(op)
    if keeps is not None and _is(b, keeps):
        return a
    if op in ("add", "mul", "or_", "xor") and _is(a, keeps or 0):
        return b
    if not any(isinstance(getattr(x, "type", None), types.Float) for x in (a, b)):
        if op in _ZERO and _is(a, 0) or op == "mul" and _is(b, 0) or op == "mod" and _divides(b, a):
            return 0
    result = seam.current().arith(op, a, b)  # type: ignore[attr-defined]
    if isinstance(result.type, types.Integer):
        found = seam.divisor_of(op, a, b)
        result.divisor = found if result.type.signed or op not in _WRAPPING else found & -found
    return result


_WRAPPING = ("add", "sub", "mul", "lshift")
"""Operations that may wrap around in an unsigned type, where only powers of two divide what they divided before."""


def joined(a: Any, b: Any) -> types.Type:
    """Return the type in which two operands of traced code meet (`dtypes.joined`)."""
    if isinstance(a, NumberLeaf) and isinstance(b, NumberLeaf) and a.type == b.type:
        return a.type
    x, y = (dtype_of(v.type) if isinstance(v, NumberLeaf) else v for v in (a, b))
    return scalar_type(dtypes.joined(x, y))


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
