# SPDX-License-Identifier: Apache-2.0
"""NumPy arrays as kernels see them: an element that is read has its type, and what is written is converted to it as
Numba does. While a check watches accesses, each is told to it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ... import seam
from ...dtypes import from_numpy
from ...seam import CuteError
from ..ground.access import Box, Region
from ..ground.report import OutOfBoundsError, of_block
from ..hardware.address_spaces import SMEM_WINDOW
from ..hardware.machine import Machine
from .arithmetic.compute import convert
from .arithmetic.number import CLASSES, Number, elements, from_python, leaf_type
from .arithmetic.operators import type_of_class, value_of
from .arithmetic.undefined import Undefined, used

_get, _set = np.ndarray.__getitem__, np.ndarray.__setitem__
_MAKE: dict[type, Any] = {}
"""By NumPy's type of scalars, what makes a number of one."""


def typed_element(x: Any) -> Any:
    """A scalar of NumPy's with its type; anything else as it is."""
    make = _MAKE.get(type(x))
    if make is None:
        if not isinstance(x, np.generic) or type_of_class(type(x)) is None:
            return x
        make = _MAKE[type(x)] = CLASSES[leaf_type(from_numpy(x.dtype))].make
    return make(x.item() if x.dtype.kind in "biuf" else elements(np.array([x]))[0])


def place(at: Any) -> Any:
    """An index with Python's ints for numbers."""
    if isinstance(at, tuple):
        return tuple(i.__index__() if isinstance(i, Number) else i for i in at)
    return at.__index__() if isinstance(at, Number) else at


def is_selection(at: Any) -> bool:
    """Say whether an index has arrays in it, which choose elements."""
    return (
        any(isinstance(i, (np.ndarray, list)) for i in at)
        if isinstance(at, tuple)
        else isinstance(at, (np.ndarray, list))
    )


def element_value(value: Any, dtype: Any) -> Any:
    """Convert a number to an element of an array, as Numba casts it; anything else stays as it is."""
    if isinstance(value, Record):
        return value.void()
    src = type_of_class(type(value))
    if src is None or dtype.names:
        return value
    dst = leaf_type(from_numpy(dtype))
    return convert(value_of(value), src, dst)


class OutsideError(CuteError, IndexError):
    """An index outside of an array, without checks: Python's IndexError for who catches one."""


class DeviceArray(np.ndarray[Any, Any]):
    """An array in a kernel. declared: of one that `cuda.shared.array` gave, not of its parts: whether its extents are
    known while the kernel is compiled, and the alignment that it asks for (or 0)."""

    declared: tuple[bool, int] | None = None

    def __cute_view__(self) -> seam.ArrayView:
        """Return the view from which a tensor is made: static or not, as it is to compiled code."""
        running: Any = seam.current()
        address, readonly = self.__array_interface__["data"]
        at = address - running.run.thread.cta.smem.start
        shared = 0 <= at < SMEM_WINDOW
        known, alignment = self.declared or (False, 0)
        shape: Any = self.shape
        strides: Any = tuple(s // self.itemsize for s in self.strides)
        if not known:
            inner = self.ndim - 1 if self.flags.c_contiguous else 0 if self.flags.f_contiguous else -1
            shape = tuple(map(from_python, shape))
            strides = tuple(1 if i == inner else from_python(s) for i, s in enumerate(strides))
        return seam.ArrayView(
            from_numpy(self.dtype), at if shared else address, shape, strides, readonly, shared, alignment
        )

    def __getitem__(self, at: Any) -> Any:
        at = place(at)
        try:
            out = _get(self, at)
        except IndexError as e:
            raise self._outside(at, e) from None
        if isinstance(out, np.ndarray):
            return out
        return typed_element(out) if not self.dtype.names else Record(self, at)

    def __setitem__(self, at: Any, value: Any) -> None:
        at = place(at)
        try:
            _set(self, at, element_value(value, self.dtype))
        except IndexError as e:
            raise self._outside(at, e) from None

    def _outside(self, at: Any, e: IndexError) -> CuteError:
        return OutsideError(
            f"array: index {at} of an array of shape {self.shape}; guard it with the array's size ({e})"
        )

    def __getattr__(self, name: str) -> Any:
        """A field of an array of records, or what the user's `@overload_method` or `@overload_attribute` adds."""
        if name in (self.dtype.names or ()):
            return self[name]
        extensions = getattr(getattr(seam.current_or(None), "run", None), "extensions", None)
        if extensions is None or name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return extensions.of_array(self, name)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))


class OwnArray(DeviceArray):
    """A local array, whose elements a tensor may be made of."""

    @property
    def __array_interface__(self) -> Any:
        """Whoever asks for the address is about to use it."""
        running: Any = seam.current()
        known = running.run.thread.locals
        if not any(a is self for a in known):
            known.append(self)
        return bare_array(self).__array_interface__

    def part(self, at: int, nbytes: int, write: bool) -> Any:
        """Bytes of the elements, to be read or written."""
        return bare_array(self).reshape(-1).view(np.uint8)[at : at + nbytes]


class Record:
    """An element of an array of records: its fields are attributes and items, which are read and written in place."""

    __slots__ = ("_array", "_at")

    def __init__(self, array: Any, at: Any) -> None:
        object.__setattr__(self, "_array", array)
        object.__setattr__(self, "_at", at)

    def _field(self, name: Any) -> tuple[Any, str]:
        names = self._array.dtype.names
        name = names[name] if not isinstance(name, str) else name
        if name not in names:
            raise AttributeError(f"the record has no field {name!r}, only {', '.join(names)}")
        return self._array[name], name

    def __getitem__(self, name: Any) -> Any:
        return self._field(name)[0][self._at]

    def __setitem__(self, name: Any, value: Any) -> None:
        self._field(name)[0][self._at] = value

    def __getattr__(self, name: str) -> Any:
        return self[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def void(self) -> Any:
        """The whole record, as NumPy has it."""
        return _get(self._array.view(np.ndarray), self._at)


def _nobody() -> None:
    """Stand for the owner of an array that has none."""


class Owned(DeviceArray):
    """An array of global memory, or of the shared memory of `_cta`, as a launch's kernel has it.

    It does not keep its launch. A view keeps the array that it is one of, of which NumPy tells the garbage collector
    nothing: if that kept the launch, and the launch the view, neither would ever be freed."""

    _owners: tuple[Callable[[], Any], Callable[[], Any]] = (_nobody, _nobody)

    def __array_finalize__(self, base: Any) -> None:
        if isinstance(base, Owned):
            self._owners = base._owners

    @property
    def _run(self) -> Any:
        return self._owners[0]()

    @property
    def _cta(self) -> Any:
        return self._owners[1]()

    def belongs(self, run: Any, cta: Any) -> None:
        """Note the launch, and the CTA whose shared memory it is; None for global memory."""
        self._owners = weakref.ref(run), _nobody if cta is None else weakref.ref(cta)


class Tracked(Owned):
    """An array as a thread alone has it."""

    _at: Any = None

    def __getitem__(self, at: Any) -> Any:
        at = place(at)
        try:
            out = _get(self, at)
        except IndexError as e:
            raise self._outside(at, e) from None
        if is_selection(at):
            self.access(at, False)
            return np.array(out).view(OwnArray)
        if isinstance(out, np.ndarray):
            return out
        if self.dtype.names:
            return Record(self, at)
        self.access(at, False)
        return typed_element(out)

    def __setitem__(self, at: Any, value: Any) -> None:
        at = place(at)
        try:
            _get(self, at)
        except IndexError as e:
            raise self._outside(at, e) from None
        if type(value) is Undefined:
            raise used(value, f"is stored to {'shared' if self._cta is not None else 'global'} memory")
        if isinstance(value, Record) and isinstance(value._array, Tracked):
            value._array.access(value._at, False)
        self.access(at, True)
        if isinstance(value, Tracked):
            value.access(..., False)
        _set(self, at, element_value(value, self.dtype))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Compute on plain arrays: the result is no longer memory that threads share."""
        for x in inputs:
            if isinstance(x, Tracked):
                x.access(..., False)
        for x in kwargs.get("out", ()):
            if isinstance(x, Tracked):
                x.access(..., True)
        if "out" in kwargs:
            kwargs["out"] = tuple(bare_array(x) for x in kwargs["out"])
        return getattr(ufunc, method)(*(bare_array(x) for x in inputs), **kwargs)

    def _machine(self) -> Machine:
        return Machine(self._run, None, [self._run.thread])

    def _outside(self, at: Any, e: IndexError) -> OutOfBoundsError:
        m = self._machine()
        return OutOfBoundsError(
            f"array: {m.describe()}{of_block(m.cta)} uses index {at} of an array of shape {self.shape} at "
            f"{m.place}; guard it with the array's size ({e})"
        )

    def address(self, at: Any) -> int:
        """The address of one element: in shared memory of its CTA, or in this process."""
        if self._at is None:
            self._at = (int(self.ctypes.data) - (self._cta.smem.start if self._cta else 0), self.strides, self.shape)
        start, strides, shape = self._at
        for i, stride, n in zip(at if isinstance(at, tuple) else (at,), strides, shape):
            i = int(i)
            start += (i + n if i < 0 else i) * stride
        return start  # type: ignore[no-any-return]

    def access(self, at: Any, write: bool, atomic: str | None = None) -> Machine:
        """Check an access to the element (or part, or elements that arrays choose) at an index."""
        at = place(at)
        m = self._machine()
        index = at if isinstance(at, tuple) else (at,)
        if is_selection(at):
            for i in index:
                if isinstance(i, Tracked):
                    i.access(..., False)
            numbers = np.arange(self.size).reshape(self.shape)[tuple(map(bare_array, index))]
            for element in zip(*np.unravel_index(numbers.reshape(-1), self.shape)):
                m = self.access(tuple(map(int, element)), write, atomic)
            return m
        region: Region
        if len(index) == self.ndim and all(isinstance(i, (int, np.integer)) for i in index):
            start = self.address(at)
            memory, origin = self._memory(start, m)
            region = Region(start - origin, start - origin + self.itemsize)
        else:
            part = _get(self, at).view(np.ndarray)
            if part.size == 0:
                return m
            start = int(part.ctypes.data) - (self._cta.smem.start if self._cta else 0)
            memory, origin = self._memory(start, m)
            region = Box(start - origin, part.shape, part.strides, part.itemsize)
        if not write:
            m.polls(start)
        for tell in m.run.watch.accesses:
            tell(m, memory, region, write, atomic)
        if m.run.trace is not None:
            m.run.trace.accessed(m, "shared" if self._cta is not None else "global", start, region.nbytes, write)
        return m

    def _memory(self, address: int, m: Machine) -> tuple[Any, int]:
        """The memory that holds an address, and where it begins."""
        if self._cta is not None:
            return self._cta.smem, 0
        held = self._run.memory.at(address, 1, m)
        return held, held.address


def bare_array(x: Any) -> Any:
    """An array as NumPy has it."""
    return x.view(np.ndarray) if isinstance(x, DeviceArray) else x


def tracked(a: Any, run: Any, cta: Any = None) -> Any:
    """The array as a kernel gets it."""
    if isinstance(a, DeviceArray):
        return a
    if not run.watch.accesses:
        return a.view(DeviceArray)
    out = a.view(Tracked)
    out.belongs(run, cta)
    return out


def array_of(value: Any) -> Any:
    """The NumPy array that an argument wraps (as the device arrays of Numba's simulator do), or the argument."""
    if isinstance(value, (np.ndarray, np.generic, type)) or not hasattr(value, "__array_interface__"):
        return value
    array = np.asarray(value)
    return array if array.ndim else value
