# SPDX-License-Identifier: Apache-2.0
"""Values that differ between the lanes of a convoy (see `convoy`): what is computed with them is computed for each
lane as for a lane alone, in the same types.

Whatever needs one number (`if`, `int`, an index) makes the lanes part: `Convoy.agree`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ....dtypes import Boolean, DType, from_numpy
from ....seam import CuteError, Leaf, current
from ....seam.guards.messages import negative
from .compute import wrapped
from .number import CLASSES, Number, from_python
from .traced import compares, computed, join, joined


class Lanes(Leaf):
    """One number for each lane of a convoy, all of one type: Python's ints, bools or floats.

    dtype: the type; None for ints (addresses and the like) that are computed with as they are. The values are kept as a
    list, as an array of which the list is the `tolist()`, or both. lanes: for which lanes they are; the convoy may
    since have lost some."""

    __slots__ = ("convoy", "dtype", "lanes", "_list", "_array")
    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None

    def __init__(
        self, convoy: Any, dtype: DType | None, values: list[Any] | None, array: Any = None, lanes: Any = None
    ) -> None:
        self.convoy, self.dtype, self.lanes = convoy, dtype, lanes or convoy.lanes
        self._list, self._array = values, array

    def _keep(self) -> None:
        """Drop the lanes that went another way."""
        at = self.convoy.positions(self.lanes)
        self._list = _some(self._list, at) if self._list is not None else None
        self._array = self._array[at] if self._array is not None else None
        self.lanes = self.convoy.lanes

    @property
    def own(self) -> list[Any]:
        """The values of all the lanes that they were made for."""
        return self._array.tolist() if self._list is None else self._list

    @property
    def values(self) -> list[Any]:
        """The values, lane by lane."""
        if self.lanes is not self.convoy.lanes:
            if self.convoy.partial:
                return _some(self.own, self.convoy.positions(self.lanes))
            self._keep()
        if self._list is None:
            self._list = self._array.tolist()
        return self._list

    @property
    def numbers(self) -> Any:
        """The values with their type, lane by lane."""
        return list(map(CLASSES[self.dtype].make, self.values)) if self.dtype is not None else self.values

    def array(self, dtype: Any) -> Any:
        """The values as an array of a type that holds them."""
        if self.lanes is not self.convoy.lanes:
            if self.convoy.partial:
                own = np.array(self._list, dtype) if self._array is None else self._array
                return own[self.convoy.positions(self.lanes)].astype(dtype, copy=False)
            self._keep()
        if self._array is None:
            return np.array(self._list, dtype)  # not kept: it may have rounded them
        return self._array.astype(dtype, copy=False)

    def held(self) -> Lanes:
        """The values as they are, whatever this object is used for later."""
        return Lanes(self.convoy, self.dtype, self._list if self._array is None else None, self._array, self.lanes)

    def known(self) -> Any:
        return self if self.dtype is None else Lanes(self.convoy, None, self._list, self._array, self.lanes)

    def assumed(self, divisor: int) -> Any:
        """The same, of which a divisor is promised: an error if it does not divide them all."""
        values = self.values
        if any(x % divisor for x in values):
            raise CuteError(f"assume: src is {values}, which are not all multiples of divby={divisor}")
        return self

    @property
    def divisor(self) -> int:  # type: ignore[override]
        """Return a number that divides the values of all lanes."""
        integers = self.dtype is None or self.dtype.is_integer
        return math.gcd(*self.values) or 1 if integers else 1

    def map(self, dtype: DType | None, f: Callable[[Any], Any]) -> Any:
        return self.convoy.of(dtype, [f(x) for x in self.values])

    def __repr__(self) -> str:
        return f"Lanes({self.values})"

    # one number
    def __bool__(self) -> bool:
        return bool(self.convoy.agree([bool(x) for x in self.values]))

    def __index__(self) -> int:
        return int(self.convoy.agree([operator.index(x) for x in self.values]))

    def __int__(self) -> int:
        return int(self.convoy.agree([int(x) for x in self.values]))

    def __float__(self) -> float:
        values = [float(x) for x in self.values]
        return float.fromhex(self.convoy.agree([x.hex() for x in values]))

    # traced code, a number each
    def _natural(self, op: str, a: Any, b: Any) -> Any:
        for xs in (_values(a, 1), _values(b, 1)):
            if min(xs) < 0:
                raise CuteError(negative(_values(a, 1)[0], _values(b, 1)[0], op))
        return a // b if op == "floordiv" else a % b

    def _natural_up(self, a: Any, b: Any) -> Any:
        down = self._natural("floordiv", a, b)
        return down + current().cast(a % b != 0, down.dtype)

    def _beyond(self, coord: Any, extent: Any) -> bool:
        width = len(self.values)
        return not all(0 <= c < n for c, n in zip(_values(coord, width), _values(extent, width)))

    def __pos__(self) -> Any:
        return self

    def __neg__(self) -> Any:
        return _computed("sub", operator.sub, -0.0 if self.dtype is not None and self.dtype.is_float else 0, self)

    def __invert__(self) -> Any:
        return _computed("xor", operator.xor, self, True if self.dtype is Boolean else -1)


def _some(values: list[Any], at: Any) -> list[Any]:
    """The values at some places."""
    return values[at] if type(at) is slice else [values[i] for i in at]


_NUMBERS = (int, float, Number)


def _values(x: Any, width: int) -> list[Any]:
    return x.values if type(x) is Lanes else [x.value if isinstance(x, Number) else x] * width


def _meeting(a: Any, b: Any) -> DType | None:
    """The type in which two operands meet; none for addresses with whole numbers."""
    x, y = (getattr(v, "dtype", None) for v in (a, b))
    bare = [v for v in (a, b) if type(v) is Lanes and v.dtype is None]
    if bare:
        return None
    return join(x, y) if x is not None and y is not None else joined(a, b)


def _computed(op: str, plain: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """An operator of traced code, by the rules of `number.arithmetic`."""
    lanes = a if type(a) is Lanes else b
    width = len(lanes.values)
    t = _meeting(a, b)
    xs, ys = _values(a, width), _values(b, width)
    if t is None:
        return lanes.convoy.of(None, list(map(plain, xs, ys)))
    held = CLASSES[t]
    if held.integer and (op in _RING or _plainly(op, xs, ys, t)):
        out = list(map(plain, xs, ys))
        if min(out) < held.low or max(out) > held.high:
            out = [wrapped(x, t) for x in out]
        return lanes.convoy.of(t, out)
    return lanes.convoy.of(t, [computed(op, x, y, t) for x, y in zip(xs, ys)])


_RING = ("add", "sub", "mul")


def _plainly(op: str, xs: list[int], ys: list[int], t: DType) -> bool:
    """Say whether an operator does the same as Python's: nothing is negative, divided by 0, or shifted out."""
    if op in ("lshift", "rshift") and max(ys) >= t.width:
        return False
    return min(xs) >= 0 and min(ys) >= (op in ("floordiv", "mod")) and max(max(xs), max(ys)) <= CLASSES[t].high


def _all_in(values: list[int], t: DType) -> bool:
    return CLASSES[t].low <= min(values) and max(values) <= CLASSES[t].high


def compared(op: str, plain: Callable[[Any, Any], bool], a: Any, b: Any) -> Any:
    """A comparison in traced code."""
    lanes = a if type(a) is Lanes else b
    width = len(lanes.values)
    t = _meeting(a, b)
    xs, ys = _values(a, width), _values(b, width)
    if t is None or CLASSES[t].integer and _all_in(xs, t) and _all_in(ys, t):
        out = list(map(plain, xs, ys))
    else:
        out = [compares(op, x, y, t) for x, y in zip(xs, ys)]
    return lanes.convoy.of(Boolean, out)


def _operator(op: str) -> None:
    plain, name = getattr(operator, op), op.rstrip("_")

    def forward(self: Lanes, other: Any) -> Any:
        return _computed(op, plain, self, other) if isinstance(other, (Lanes, *_NUMBERS)) else NotImplemented

    def backward(self: Lanes, other: Any) -> Any:
        return _computed(op, plain, other, self) if isinstance(other, _NUMBERS) else NotImplemented

    setattr(Lanes, f"__{name}__", forward)
    setattr(Lanes, f"__r{name}__", backward)


def _comparison(op: str, name: str) -> None:
    plain = getattr(operator, name)

    def call(self: Lanes, other: Any) -> Any:
        return compared(op, plain, self, other) if isinstance(other, (Lanes, *_NUMBERS)) else NotImplemented

    setattr(Lanes, f"__{name}__", call)


for _op in ("add", "sub", "mul", "floordiv", "mod", "and_", "or_", "xor", "lshift", "rshift", "truediv"):
    _operator(_op)
for _op, _name in (("<", "lt"), ("<=", "le"), (">", "gt"), (">=", "ge"), ("==", "eq"), ("!=", "ne")):
    _comparison(_op, _name)


def lanewise(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` of numbers, for each lane where one of them is `Lanes`."""

    def call(*args: Any, **kwargs: Any) -> Any:
        for a in args:
            if type(a) is Lanes:
                break
        else:
            return f(*args, **kwargs)
        width = len(a.values)
        columns = [x.numbers if type(x) is Lanes else [x] * width for x in args]
        return a.convoy.gathered([from_python(f(*row, **kwargs)) for row in zip(*columns)])

    return call


class LaneVector(Leaf):
    """A vector of registers (`Backend.vector`) for each lane: an array (lanes, count)."""

    __slots__ = ("convoy", "lanes", "_array")
    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None

    def __init__(self, convoy: Any, array: Any, lanes: Any = None) -> None:
        self.convoy, self._array, self.lanes = convoy, array, lanes or convoy.lanes

    @property
    def own(self) -> Any:
        """The vectors of all the lanes that they were made for."""
        return self._array

    @property
    def array(self) -> Any:
        if self.lanes is not self.convoy.lanes:
            if self.convoy.partial:
                return self._array[self.convoy.positions(self.lanes)]
            self._array = self._array[self.convoy.positions(self.lanes)]
            self.lanes = self.convoy.lanes
        return self._array

    def held(self) -> LaneVector:
        return LaneVector(self.convoy, self._array, self.lanes)

    def __len__(self) -> int:
        return int(self._array.shape[1])

    def __getitem__(self, at: int) -> Any:
        """One element of each lane."""
        array = self.array
        return self.convoy.of_array(from_numpy(array.dtype), array[:, at])


class Apart:
    """A value of which each lane has one of its own."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    @property
    def every(self) -> Any:
        """All of them, as one array whose first mode is the lanes."""
        raise NotImplementedError

    def of(self, thread: Any) -> Any:
        """The one of a thread."""
        raise NotImplementedError


class LaneFile(Apart):
    """A register file of each lane: the rows of the slab `base` from the thread of index `first` on.

    undefined: of each byte of the slab whether nobody has written it, while that is so of some; left: of how many."""

    __slots__ = ("base", "first", "undefined", "left")

    def __init__(self, slab: Any, first: int) -> None:
        self.base, self.first = slab, first
        self.undefined: Any = None
        self.left = 0

    def undefine(self, convoy: Any) -> None:
        """Say that nobody has written any."""
        self.undefined = np.ones((len(self.base), self.base.strides[0]), bool)
        self.left = len(convoy.threads) * self.base.strides[0]

    def has_undefined(self, convoy: Any, regs: Any) -> bool:
        """Say whether a lane has not written some of a span of its registers."""
        return any(bool(part.any()) for part in self._parts(convoy, regs))

    def define(self, convoy: Any, regs: Any) -> None:
        """The lanes have written a span."""
        for part in self._parts(convoy, regs):
            self.left -= int(np.count_nonzero(part))
            part[...] = False
        if not self.left:
            self.undefined = None

    def _parts(self, convoy: Any, regs: Any) -> list[Any]:
        size = np.dtype(regs.dtype.numpy).itemsize
        if type(regs.start) is not Lanes:
            at = slice(regs.start * size, (regs.start + regs.count) * size)
            rows = self.rows(convoy)
            return [self.undefined[rows, at]] if type(rows) is slice else [self.undefined[row, at] for row in rows]
        rows = [t.index - self.first for t in convoy.threads]
        pairs = zip(rows, regs.start.values)
        return [self.undefined[row, at * size : (at + regs.count) * size] for row, at in pairs]

    @property
    def every(self) -> Any:
        return self.base

    def rows(self, convoy: Any) -> Any:
        """Return an index for the lanes' rows: a slice if they are adjacent."""
        threads = convoy.threads
        low, high = threads[0].index - self.first, threads[-1].index - self.first
        if high - low + 1 == len(threads):
            return slice(low, high + 1)
        return [t.index - self.first for t in threads]

    def of(self, thread: Any) -> Any:
        """The file of one thread."""
        return self.base[thread.index - self.first]
