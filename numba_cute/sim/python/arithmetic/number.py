# SPDX-License-Identifier: Apache-2.0
"""Numbers with their types: what kernels compute with in the simulator, where it is known only at run time.

Their Python operators are those of traced code (see `traced`). Jitted code computes by Numba's rules: see `operators`.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from .... import seam
from ....dtypes import Boolean, DType, Float32, Float64, Int8, Int64, Uint8, from_numpy
from ....seam.ground.error import NoIndex
from ....seam.ground.naming import described, shown, type_name
from ....seam.marks.plain import is_users_frame
from ....seam.source.language import NO_KEY
from .compute import limits
from .overloads import TYPES

_KEPT = 1 << 16
"""The most numbers of one type that are kept, each as the one object for its value."""


class Number(seam.Leaf):
    """A number of one type; a subclass for each. Equal integers of one type are mostly one object, so that what is
    computed of them may be remembered: by the object, not by its value, for 1 is not Int32(1).

    value: a Python int, bool or float. divisor: of an integer, what is promised to divide it. low, high: the least and
    the greatest integer of the type. least, most: of a static one that takes the type where it meets it."""

    __slots__ = ("value",)
    __array_ufunc__ = None  # NumPy's scalars leave the operation to this class
    dtype: ClassVar[DType]
    make: ClassVar[Callable[..., Any]]
    """make(value, divisor=1): the number of a value that lies in the type."""
    found: ClassVar[Callable[[int], Any]]
    """found(value): such a number of an integer, if there is one already; else None."""
    kept = True
    integer: ClassVar[bool]
    low: ClassVar[int]
    high: ClassVar[int]
    least: ClassVar[int]
    most: ClassVar[int]

    def __init__(self, value: Any) -> None:
        self.value = value

    def known(self) -> Any:
        return self.value

    def assumed(self, divisor: int) -> Any:
        """The same number, which `divisor` is promised to divide: an error if it does not."""
        if not self.dtype.is_integer:
            raise seam.CuteError(f"assume: src {type_name(self.dtype.name)} is not an integer")
        if type(divisor) is not int or divisor < 1:
            raise seam.CuteError(f"assume: divby={described(divisor)}, must be an integer of at least 1")
        if self.value % divisor:
            raise seam.CuteError(f"assume: src is {self}, which is not a multiple of divby={divisor}")
        return self.make(self.value, math.lcm(self.divisor, divisor))

    def __eq__(self, o: object) -> bool:
        if isinstance(o, Number):
            return bool(self.value == o.value)
        return bool(self.value == o) if isinstance(o, (int, float, np.generic)) else NotImplemented

    def __hash__(self) -> int:
        """A key for this library's tables: the user's dictionaries and sets cannot be asked, as in compiled code."""
        if is_users_frame(sys._getframe(1)):
            raise seam.CuteError(NO_KEY)
        return object.__hash__(self)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __index__(self) -> int:
        if self.dtype.is_float:
            raise NoIndex(f"{self!r} is not an index: give an integer")
        return int(self.value)

    def __int__(self) -> int:
        try:
            return int(self.value)
        except (OverflowError, ValueError):
            raise seam.CuteError(f"{self.value} has no integer") from None

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        return str(self.value)

    def __repr__(self) -> str:
        return f"{self.dtype}({self.value})"

    def __format__(self, spec: str) -> str:
        return format(self.value, spec)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.value, self.dtype.numpy if dtype is None else dtype)

    def view(self, kind: Any) -> Any:
        """The same bits as a number of another type of NumPy's, of the same width."""
        try:
            bits = np.array(self.value, self.dtype.numpy).view(getattr(kind, "numpy", kind)).reshape(1)
        except (TypeError, ValueError, SyntaxError, RecursionError):  # NumPy reads texts as Python's
            raise seam.CuteError(f"view({shown(kind)}): give a type of NumPy's of {self.dtype.width} bits") from None
        return typed(from_numpy(bits.dtype), elements(bits)[0])

    def item(self) -> Any:
        return self


class Integer(Number):
    """One of whole numbers, or a bool."""

    __slots__ = ("divisor",)

    def __init__(self, value: int, divisor: int = 1) -> None:
        self.value, self.divisor = value, divisor


def _maker(cls: type[Number]) -> tuple[Callable[..., Number], Any]:
    """`cls.make` and `cls.found`."""
    if cls.dtype.is_float:
        return cls, None
    known: dict[Any, Number] = {}
    get = known.get
    canonical = bool if cls.dtype is Boolean else int
    make_new: Any = cls

    def make(value: Any, divisor: int = 1) -> Number:
        found = get(value if divisor == 1 else (value, divisor))
        if found is not None:
            return found
        if len(known) >= _KEPT:
            known.clear()
        new: Number = make_new(canonical(value), divisor)
        known[value if divisor == 1 else (value, divisor)] = new
        return new

    return make, get


def _class(dtype: DType) -> type[Number]:
    low, high = limits(dtype)
    space = {"__slots__": (), "dtype": dtype, "__doc__": f"A {dtype}.", "integer": dtype.is_integer, "low": low,
             "high": high, "least": -(1 << dtype.width - 1), "most": (1 << dtype.width) - 1}  # fmt: skip
    cls: Any = type(dtype.name, (Number if dtype.is_float else Integer,), space)
    make, found = _maker(cls)
    cls.make, cls.found = staticmethod(make), found
    return cls  # type: ignore[no-any-return]


CLASSES: dict[DType, type[Number]] = {t: _class(t) for t in TYPES}
TRUE, FALSE = CLASSES[Boolean].make(True), CLASSES[Boolean].make(False)

_PLAIN = {int: Int64, float: Float64, bool: Boolean}


@functools.cache
def leaf_type(dtype: DType) -> DType:
    """The type in which a kernel holds an element: what has less than 8 bits, and floats of 8, travel as others."""
    if dtype in CLASSES:
        return dtype
    if dtype.is_float:
        return Float32
    return Int8 if dtype.signed else Uint8


def typed(dtype: DType, value: Any) -> Any:
    """The number of an element's value, as Python has it (`tolist`)."""
    return CLASSES[leaf_type(dtype)].make(value)


def from_python(value: Any) -> Any:
    """A number of Python's or NumPy's as Numba types it: an int as Int64 (Uint64 if it is too large for that)."""
    dtype = _PLAIN.get(type(value))
    if dtype is not None:
        if dtype is Int64 and not -(1 << 63) <= value < 1 << 63:
            return wide(value)
        return CLASSES[dtype].make(value)
    if isinstance(value, np.generic) and value.dtype.kind in "biuf" or type(value).__module__ == "ml_dtypes":
        return typed(from_numpy(value.dtype), value.item())
    return value


def elements(array: Any) -> list[Any]:
    """The elements of an array as Python's numbers, those too of types that NumPy does not know itself."""
    if array.dtype.kind in "biuf":
        return array.tolist()  # type: ignore[no-any-return]
    narrow = from_numpy(array.dtype)
    return array.astype(np.int8 if narrow.is_integer else np.float64).tolist()  # type: ignore[no-any-return]


def wide(value: int) -> Any:
    """An int literal beyond Int64: Numba has Uint64 for it, and nothing beyond that."""
    if not 0 <= value < 1 << 64:
        raise seam.CuteError(f"{value}: an int of more than 64 bits, which kernels do not have")
    return CLASSES[from_numpy(np.uint64)].make(value)


def plain(value: Any) -> Any:
    """The Python number in a `Number`; anything else as it is."""
    return value.value if isinstance(value, Number) else value


def static_hash(value: Any) -> int:
    """Return the result of a method `__hash__`; refuse one that is known only at run time."""
    if isinstance(value, Number):
        raise seam.CuteError(NO_KEY)
    return hash(value)
