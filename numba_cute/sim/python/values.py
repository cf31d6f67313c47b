# SPDX-License-Identifier: Apache-2.0
"""Numbers, registers and vectors as whoever runs code at once computes them: the simulator, and the host."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import seam
from ...dtypes import Boolean, DType, Float32, Float64, Int32, Scalar, converted, from_numpy, number
from ...isa.form.instr import Instr
from ...seam import COMPARISONS, CuteError, Regs
from ...seam.ground.naming import shown
from ...seam.guards.messages import no_number
from ..hardware.machine import Machine
from .arithmetic.compute import limits, rounder
from .arithmetic.elementwise import bits_as, compute, computed_in
from .arithmetic.number import CLASSES, Number, elements, leaf_type, typed
from .arithmetic.traced import compared, joined

_STATIC_TYPES = {bool: Boolean, int: Int32, float: Float32}


def as_number(value: Any, dtype: DType) -> Any:
    """Convert a scalar to an element of a type, as the GPU converts it (see `dtypes.converted`)."""
    if isinstance(value, (Number, Scalar)):
        value = value.value
    if type(value) is float and dtype.width >= 32 and dtype.is_float:
        return rounder(Float64 if dtype.width == 64 else Float32)(value)
    return number(value, dtype)


def cast(value: Any, dtype: DType) -> Any:
    """A scalar as a run-time number of the type in which elements of `dtype` travel."""
    return _CASTS[dtype](value)


class _Casts(dict[DType, Callable[[Any], Any]]):
    """By an element's type, what makes a number of one."""

    def __missing__(self, dtype: DType) -> Callable[[Any], Any]:
        held = CLASSES[leaf_type(dtype)]
        found = self[dtype] = _to_integer(dtype, held) if dtype.is_integer else _to_other(dtype, held)
        return found


def _to_other(dtype: DType, held: type[Number]) -> Callable[[Any], Any]:
    def call(value: Any) -> Any:
        if type(value) is held and held.dtype is dtype:
            return value
        return held.make(as_number(value, dtype))

    return call


def _to_integer(dtype: DType, held: type[Number]) -> Callable[[Any], Any]:
    low, high = limits(dtype)
    make = held.make

    def call(value: Any) -> Any:
        kind = type(value)
        if kind is held and held.dtype is dtype:
            return value
        plain = value.value if isinstance(value, (Number, Scalar)) else value
        if type(plain) is not int:
            return make(as_number(plain, dtype))
        known = seam.divisor(value) or 1
        if isinstance(value, Number) and dtype.width < value.dtype.width:  # it may wrap
            known &= -known
        return make(plain if low <= plain <= high else as_number(plain, dtype), known)

    return call


_CASTS = _Casts()


def type_of(scalar: Any) -> DType:
    """The type of a scalar; a static one has that of its kind."""
    if isinstance(scalar, (Scalar, Number)):
        return scalar.dtype
    found = _STATIC_TYPES.get(type(scalar))
    if found is None and not isinstance(scalar, np.generic):
        raise CuteError(no_number(scalar))
    return found or from_numpy(scalar.dtype)


def chosen(cond: Any, a: Any, b: Any) -> Any:
    """`a` or `b`, in the type in which both meet."""
    if isinstance(cond, Number) and type(a) is type(b) and isinstance(a, Number) and a.divisor == b.divisor:
        return a if cond.value else b
    if not isinstance(cond, Number) or not isinstance(a, _SCALARS) or not isinstance(b, _SCALARS):
        return a if cond else b
    if not isinstance(a, Number) and not isinstance(b, Number):
        if a == b:
            return a
        a = cast(a, Int32 if isinstance(a, int) else Float32)
    t, value = joined(a, b), a if cond else b
    known = math.gcd(seam.divisor(a), seam.divisor(b)) or 1
    return CLASSES[t].make(as_number(value, t), *((known,) if t.is_integer else ()))


_SCALARS = (int, float, Number)
CASTABLE = (*_SCALARS, Scalar, np.generic)


def as_array(values: Any, dtype: DType) -> Any:
    """An array converted as the GPU does (see `dtypes.converted`)."""
    a = np.asarray(values)
    return converted(a, dtype) if a.dtype != dtype.numpy else a.copy()


def _elements(x: Any, dtype: DType) -> Any:
    return x if isinstance(x, np.ndarray) else as_number(x, dtype)


def printed(fmt: str, args: Sequence[Any]) -> str:
    """Return what C's printf prints, by a format of C's."""
    plain = tuple(a.value if isinstance(a, (Number, Scalar)) else a for a in args)
    return re.sub(r"%([-+ #0]*\d*(?:\.\d+)?)(?:hh|ll|[hlqjzt])?([a-zA-Z])", r"%\1\2", fmt) % plain


class Values:
    """Answers of a backend (`seam.Backend`) that need neither memory nor threads."""

    def _machine(self) -> Machine:
        """Return the machine on which the body of an instruction runs."""
        raise NotImplementedError

    def _registers(self, regs: Regs, verb: str) -> Any:
        """A span of registers, as an array that shares their memory. verb: what is about to be done, "read" or
        "written"."""
        raise NotImplementedError

    def either(self, compiled: Callable[[], Any], simulated: Callable[[], Any]) -> Any:
        return simulated()

    def same_registers(self, a: Any, b: Any) -> bool:
        return a is b

    def read(self, regs: Regs) -> Any:
        return typed(regs.dtype, elements(self._registers(regs, "read")[:1])[0])

    def write(self, regs: Regs, value: Any) -> None:
        self._registers(regs, "written")[0] = as_number(value, regs.dtype)

    def fill(self, regs: Regs, value: Any) -> None:
        self._registers(regs, "written")[...] = as_number(value, regs.dtype)

    def vector(self, regs: Regs) -> Any:
        return self._registers(regs, "read").copy()

    def unvector(self, vector: Any, regs: Regs) -> None:
        self._registers(regs, "written")[...] = vector

    def convert(self, vector: Any, src: DType, dst: DType, count: int) -> Any:
        return as_array(vector, dst)

    def pack(self, dtype: DType, values: Sequence[Any]) -> Any:
        if len(values) > 1 and all(v is values[0] for v in values):
            return np.full(len(values), as_number(values[0], dtype), dtype.numpy)
        return np.array([as_number(v, dtype) for v in values], dtype.numpy)

    def lane(self, vector: Any, index: int) -> Any:
        found = elements(vector[index : index + 1])[0]
        if type(found) is list:
            raise CuteError(f"TensorSSA: the vector is an array of shape {vector.shape}: give its elements in a row")
        return typed(from_numpy(vector.dtype), found)

    def bitcast(self, vector: Any, dtype: DType) -> Any:
        return bits_as(vector, dtype)

    def take(self, vector: Any, indices: Sequence[int]) -> Any:
        return vector[list(indices)]

    def elementwise(self, op: Any, dtype: DType, *operands: Any) -> Any:
        out = self.computed(op, dtype, operands, _elements)
        if any(isinstance(x, np.ndarray) for x in operands):
            return out
        return typed(Boolean if op in COMPARISONS else dtype, elements(out.reshape(1))[0])

    def computed(self, op: Any, dtype: DType, operands: Sequence[Any], of: Callable[[Any, DType], Any]) -> Any:
        """Compute an operation on arrays. of: gives the elements of an operand as they are in a type."""
        inner = computed_in(dtype)
        arrays = []
        for i, x in enumerate(operands):
            condition = op == "where" and i == 0
            arrays.append(np.asarray(of(x, Boolean if condition else dtype), (Boolean if condition else inner).numpy))
        if isinstance(op, Instr):
            names = [o.name for o in op.operands if o.reads]
            out = np.asarray(op.perform(self._machine(), op.case({}), dict(zip(names, arrays))))
        else:
            out = np.asarray(compute(op, dtype, arrays))
        return out if op in COMPARISONS else as_array(out, dtype)

    def type_of(self, scalar: Any) -> DType:
        return type_of(scalar)

    # scalars
    def cast(self, value: Any, dtype: DType) -> Any:
        if not isinstance(value, CASTABLE):
            raise CuteError(f"{dtype}({shown(value)}): only numbers convert to an element type")
        return cast(value, dtype)

    def select(self, cond: Any, a: Any, b: Any) -> Any:
        return chosen(cond, a, b)

    def compare(self, op: str, a: Any, b: Any) -> Any:
        return compared(op, a, b)

    def when(self, cond: Any, then: Callable[[], None], *, of_python: bool = False) -> None:
        if cond:
            then()

    def loop(self, start: Any, stop: Any, body: Callable[[Any], None]) -> None:
        run_time = isinstance(start, Number) or isinstance(stop, Number)
        make = CLASSES[joined(start, stop) if run_time else Int32].make
        for i in range(start, stop):
            body(make(i))
