# SPDX-License-Identifier: Apache-2.0
"""Values that differ between the lanes of a fragment (see `fragment`): what Python code computes with them is computed
for each lane by the same operator, so that nothing is rounded or wrapped otherwise than for a lane alone.

Whatever needs one number (`if`, `int`, an index) makes the lanes part: `Fragment.agree`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..seam import Leaf

_NUMBERS = (int, float, complex, np.generic)


class Lanes(Leaf):
    """One number for each lane of a fragment, as Python or NumPy scalars.

    They are kept as a list, as an array of which the list is the `tolist()`, or both. lanes: for which lanes they are;
    the fragment may since have lost some."""

    __slots__ = ("fragment", "lanes", "_list", "_array")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, fragment: Any, values: list[Any] | None, array: Any = None, lanes: Any = None) -> None:
        self.fragment, self.lanes = fragment, lanes or fragment.lanes
        self._list, self._array = values, array

    def _keep(self) -> None:
        """Drop the lanes that went another way."""
        at = self.fragment.positions(self.lanes)
        self._list = [self._list[i] for i in at] if self._list is not None else None
        self._array = self._array[at] if self._array is not None else None
        self.lanes = self.fragment.lanes

    @property
    def list(self) -> list[Any]:
        """The values, lane by lane."""
        if self.lanes is not self.fragment.lanes:
            self._keep()
        if self._list is None:
            self._list = self._array.tolist()
        return self._list

    def array(self, dtype: Any) -> Any:
        """The values as an array of a type that holds them."""
        if self.lanes is not self.fragment.lanes:
            self._keep()
        if self._array is None:
            return np.array(self._list, dtype)  # not kept: it may have rounded them
        return self._array.astype(dtype, copy=False)

    def held(self) -> Lanes:
        """The values as they are, whatever this object is used for later."""
        return Lanes(self.fragment, self._list if self._array is None else None, self._array, self.lanes)

    @property
    def divisor(self) -> int:  # type: ignore[override]
        """What divides the values of all lanes."""
        values = self.list
        return math.gcd(*values) if set(map(type, values)) == {int} else 1

    def map(self, f: Callable[[Any], Any]) -> Any:
        return self.fragment.of([f(x) for x in self.list])

    def __repr__(self) -> str:
        return f"Lanes({self.list})"

    # one number
    def __bool__(self) -> bool:
        return bool(self.fragment.agree([bool(x) for x in self.list]))

    def __index__(self) -> int:
        return int(self.fragment.agree([operator.index(x) for x in self.list]))

    def __int__(self) -> int:
        return int(self.fragment.agree([int(x) for x in self.list]))

    def __float__(self) -> float:
        values = [float(x) for x in self.list]
        return float.fromhex(self.fragment.agree([x.hex() for x in values]))

    # a number each
    def __neg__(self) -> Any:
        return self.map(operator.neg)

    def __pos__(self) -> Any:
        return self.map(operator.pos)

    def __abs__(self) -> Any:
        return self.map(abs)

    def __invert__(self) -> Any:
        return self.map(operator.invert)

    def __round__(self, digits: Any = None) -> Any:
        return self.map(lambda x: round(x) if digits is None else round(x, digits))

    def __trunc__(self) -> Any:
        return self.map(math.trunc)

    def __floor__(self) -> Any:
        return self.map(math.floor)

    def __ceil__(self) -> Any:
        return self.map(math.ceil)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or kwargs or not all(isinstance(x, (Lanes, *_NUMBERS)) for x in inputs):
            return NotImplemented
        return lanewise(ufunc)(*inputs)


def _operator(name: str) -> None:
    op = getattr(operator, name)

    def forward(self: Lanes, other: Any) -> Any:
        if type(other) is Lanes:
            return self.fragment.of(list(map(op, self.list, other.list)))
        if isinstance(other, _NUMBERS):
            return self.fragment.of([op(x, other) for x in self.list])
        return NotImplemented

    def backward(self: Lanes, other: Any) -> Any:
        if isinstance(other, _NUMBERS):
            return self.fragment.of([op(other, x) for x in self.list])
        return NotImplemented

    plain = name.strip("_")
    setattr(Lanes, f"__{plain}__", forward)
    if plain not in ("lt", "le", "eq", "ne", "gt", "ge"):
        setattr(Lanes, f"__r{plain}__", backward)


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and_", "or_", "xor",
              "lt", "le", "eq", "ne", "gt", "ge"):  # fmt: skip
    _operator(_name)


def lanewise(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` of numbers, for each lane where one of them is `Lanes`."""

    def call(*args: Any, **kwargs: Any) -> Any:
        for a in args:
            if type(a) is Lanes:
                break
        else:
            return f(*args, **kwargs)
        width = len(a.list)
        columns = [x.list if type(x) is Lanes else [x] * width for x in args]
        return a.fragment.of([f(*row, **kwargs) for row in zip(*columns)])

    return call


class LaneVector(Leaf):
    """A vector of registers (`Backend.vector`) for each lane: an array (lanes, count)."""

    __slots__ = ("fragment", "lanes", "_array")
    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None

    def __init__(self, fragment: Any, array: Any, lanes: Any = None) -> None:
        self.fragment, self._array, self.lanes = fragment, array, lanes or fragment.lanes

    @property
    def array(self) -> Any:
        if self.lanes is not self.fragment.lanes:
            self._array = self._array[self.fragment.positions(self.lanes)]
            self.lanes = self.fragment.lanes
        return self._array

    def held(self) -> LaneVector:
        return LaneVector(self.fragment, self._array, self.lanes)

    def __len__(self) -> int:
        return int(self._array.shape[1])

    def __getitem__(self, at: int) -> Any:
        """One element of each lane, as NumPy's scalars."""
        return self.fragment.of(list(self.array[:, at]))

    def tolist(self) -> list[Any]:
        array = self.array
        return [self.fragment.of_array(array[:, i]) for i in range(array.shape[1])]


class LaneFile:
    """A register file of each lane: the rows of a slab from the thread of index `first` on."""

    __slots__ = ("slab", "first")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, slab: Any, first: int) -> None:
        self.slab, self.first = slab, first

    def rows(self, fragment: Any) -> Any:
        """What selects the lanes' rows: a slice where they lie side by side."""
        threads = fragment.threads
        low, high = threads[0].index - self.first, threads[-1].index - self.first
        if high - low + 1 == len(threads):
            return slice(low, high + 1)
        return [t.index - self.first for t in threads]

    def of(self, thread: Any) -> Any:
        """The file of one thread."""
        return self.slab[thread.index - self.first]


class LaneArray:
    """`cuda.local.array`: one array for each lane of a warp. data: (32, *shape)."""

    __slots__ = ("run", "data")
    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None

    def __init__(self, run: Any, data: Any) -> None:
        self.run, self.data = run, data

    shape = property(lambda self: self.data.shape[1:])
    ndim = property(lambda self: self.data.ndim - 1)
    size = property(lambda self: self.data[0].size)
    dtype = property(lambda self: self.data.dtype)

    def __len__(self) -> int:
        return int(self.data.shape[1])

    def of(self, thread: Any) -> Any:
        """The array of one thread."""
        return self.data[thread.lane]

    def _at(self, at: Any) -> tuple[Any, Any]:
        """The fragment, and the index of one element in each lane."""
        f = self.run.thread.fragment
        index = at if isinstance(at, tuple) else (at,)
        if len(index) != self.ndim or not all(isinstance(i, (Lanes, int, np.integer)) for i in index):
            raise TypeError(f"index {at} of a local array is no element")
        lanes = np.array(f.lanes)
        return f, (lanes, *(i.array(np.int64) if type(i) is Lanes else i for i in index))

    def __getitem__(self, at: Any) -> Any:
        f, index = self._at(at)
        return f.step(lambda: f.of(list(self.data[index])))

    def __setitem__(self, at: Any, value: Any) -> None:
        f, index = self._at(at)
        f.step(self._set, index, value)

    def _set(self, index: Any, value: Any) -> None:
        self.data[index] = value.list if type(value) is Lanes else value
