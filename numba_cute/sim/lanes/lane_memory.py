# SPDX-License-Identifier: Apache-2.0
"""NumPy arrays as kernels see them where lanes run together: an element read or written is a step (`convoy`)."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from ...dtypes import from_numpy
from ..ground.access import Pieces
from ..hardware.machine import Machine
from ..hardware.pieces import write_pieces
from ..hardware.together import NotTogether
from ..python.arithmetic.lanes import Apart, Lanes
from ..python.arithmetic.number import Number, leaf_type
from ..python.arithmetic.operators import cast
from ..python.arrays import Owned, Record, element_value, is_selection, place, tracked, typed_element

_get, _set = np.ndarray.__getitem__, np.ndarray.__setitem__


def _varies(at: Any) -> bool:
    """Tell whether an index differs between lanes."""
    return any(type(i) is Lanes for i in at) if isinstance(at, tuple) else type(at) is Lanes


def _lane_values(value: Any, dtype: Any) -> Any:
    """Convert numbers to elements of an array: for lanes a list."""
    if type(value) is not Lanes:
        if not isinstance(value, (int, float, Number, np.generic)):
            raise NotTogether("an element is set to a number")
        return element_value(value, dtype)
    held = cast(value, leaf_type(from_numpy(dtype)))
    return held.array(dtype) if type(held) is Lanes else np.array(held.value, dtype)


class Stepped(Owned):
    """An array as lanes have it that run together."""

    _address: int | None = None  # of its first element, in its memory

    def __getitem__(self, at: Any) -> Any:
        at = place(at)
        index = at if isinstance(at, tuple) else (at,)
        whole = len(index) == self.ndim and all(isinstance(i, (Lanes, int, np.integer)) for i in index)
        if whole and self.dtype.names:
            return Record(self, at)
        if is_selection(at):
            raise NotTogether("an index of arrays gives each thread an array of its own")
        f = self._run.thread.convoy
        if _varies(at):
            return f.step(self._gather, f, index)
        return f.step(self._read, f, at) if whole else _get(self, at)

    def __setitem__(self, at: Any, value: Any) -> None:
        f = self._run.thread.convoy
        f.step(self._set, f, place(at), value)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        raise NotTogether("arithmetic on whole arrays is not a step")

    def _places(self, index: tuple[Any, ...]) -> tuple[Any, ...]:
        """The index of one element in each lane."""
        if len(index) != self.ndim or not all(isinstance(i, (Lanes, int, np.integer)) for i in index):
            raise NotTogether("an index of lanes names elements")
        return tuple(i.array(np.int64) if type(i) is Lanes else i for i in index)

    def _read(self, f: Any, at: Any) -> Any:
        Machine(self._run, None, f.threads).polls((id(self), at))
        out = typed_element(_get(self, at))
        self._told(f, at if isinstance(at, tuple) else (at,))
        return out

    def _gather(self, f: Any, index: tuple[Any, ...]) -> Any:
        places = self._places(index)
        out = f.of_array(from_numpy(self.dtype), _get(bare(self), places))
        self._told(f, places)
        return out

    def _region(self, m: Machine, places: tuple[Any, ...]) -> tuple[Any, Pieces]:
        """The memory that holds the lanes' elements, and where in it."""
        if len(places) != self.ndim or self.dtype.names:
            raise NotTogether("more than an element is accessed")
        if self._address is None:
            self._address = int(self.ctypes.data) - (self._cta.smem.start if self._cta is not None else 0)
        at: Any = self._address
        for i, stride, n in zip(places, self.strides, self.shape):
            if isinstance(i, np.ndarray):
                at = (i if i.min() >= 0 else np.where(i < 0, i + n, i)) * stride + at
            else:
                at = at + (i + n if i < 0 else int(i)) * stride
        starts = at.astype(np.int64, copy=False) if isinstance(at, np.ndarray) else np.full(m.lanes, at, np.int64)
        if self._cta is not None:
            return self._cta.smem, Pieces(starts, self.itemsize)
        memory = self._run.memory.at(int(starts[0]), 1, m)
        return memory, Pieces(starts - memory.address, self.itemsize)

    def _told(self, f: Any, places: tuple[Any, ...]) -> None:
        """Tell of what the lanes read, where checks ask for it."""
        if self._run.watch.accesses:
            m = Machine(self._run, None, f.threads)
            m.told(*self._region(m, places), False)

    def _set(self, f: Any, at: Any, value: Any) -> None:
        index = at if isinstance(at, tuple) else (at,)
        if self._run.watch.accesses:
            places, m = self._places(index), Machine(self._run, None, f.threads)
            _get(self, places)  # an index outside is said first
            memory, region = self._region(m, places)
            data = np.empty((m.lanes, 1), self.dtype)
            data[:, 0] = _lane_values(value, self.dtype)
            write_pieces(m, memory, region, data.view(np.uint8), swizzles=False)
        elif _varies(at):
            _set(self, self._places(index), _lane_values(value, self.dtype))
        else:
            if type(value) is Lanes:
                value = value.numbers[-1]  # the lanes write in order
            _set(self, at, element_value(value, self.dtype))


def bare(x: Any) -> Any:
    return x.view(np.ndarray) if isinstance(x, Stepped) else x


def alone(x: Any) -> Any:
    """The array as a lane alone has it."""
    return tracked(bare(x), x._run, x._cta) if isinstance(x, Stepped) else x


def stepped(a: Any, run: Any) -> Any:
    """The array as a kernel gets it."""
    if isinstance(a, Stepped):
        return a
    out = a.view(Stepped)
    out.belongs(run, getattr(a, "_cta", None))
    return out


class LaneArray(Apart):
    """`cuda.local.array`: one array for each lane, from the thread of index `first` on. data: (lanes, *shape).
    undefined: which elements nobody has written, where that is followed."""

    __slots__ = ("run", "data", "first", "undefined")
    __array_ufunc__ = None

    def __init__(self, run: Any, data: Any, first: int) -> None:
        self.run, self.data, self.first = run, data, first
        self.undefined = np.ones(data.shape, bool) if run.undefined else None

    shape = property(lambda self: self.data.shape[1:])
    ndim = property(lambda self: self.data.ndim - 1)
    size = property(lambda self: self.data[0].size)
    dtype = property(lambda self: self.data.dtype)
    every = property(lambda self: self.data)

    def __len__(self) -> int:
        return int(self.data.shape[1])

    def of(self, thread: Any) -> Any:
        """The array of one thread."""
        return self.data[thread.index - self.first]

    def __cute_view__(self) -> NoReturn:
        """Refuse to make a tensor of it."""
        raise NotTogether("a tensor of local arrays")

    def _at(self, at: Any) -> tuple[Any, Any]:
        """The convoy, and the index of one element in each lane."""
        f = self.run.thread.convoy
        at = place(at)
        index = at if isinstance(at, tuple) else (at,)
        whole = len(index) == self.ndim and all(isinstance(i, (Lanes, int, np.integer)) for i in index)
        if not whole or self.dtype.names:
            raise NotTogether(f"index {at} of a local array is not a number")
        lanes = np.array(f.lanes) - self.first
        return f, (lanes, *(i.array(np.int64) if type(i) is Lanes else i for i in index))

    def __getitem__(self, at: Any) -> Any:
        f, index = self._at(at)
        return f.step(self._element, f, index)

    def _element(self, f: Any, index: Any) -> Any:
        out = f.of_array(from_numpy(self.dtype), self.data[index])
        if self.undefined is not None and self.undefined[index].any():
            raise NotTogether("an element that nobody wrote is read, which may be right")
        return out

    def __setitem__(self, at: Any, value: Any) -> None:
        f, index = self._at(at)
        f.step(self._set, index, value)

    def _set(self, index: Any, value: Any) -> None:
        self.data[index] = _lane_values(value, self.dtype)
        if self.undefined is not None:
            self.undefined[index] = False
