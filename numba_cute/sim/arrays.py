# SPDX-License-Identifier: Apache-2.0
"""NumPy arrays as kernels see them while races are checked: each element read or written is an access."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .hazards import Box, Region, Shadow
from .machine import Machine
from .report import OutOfBoundsError
from .undefined import Undefined, used


class Tracked(np.ndarray[Any, Any]):
    """An array of global memory, or of the shared memory of `_cta`."""

    _run: Any = None
    _cta: Any = None
    _at: Any = None

    def __array_finalize__(self, base: Any) -> None:
        if isinstance(base, Tracked):
            self._run, self._cta = base._run, base._cta

    def __getitem__(self, at: Any) -> Any:
        try:
            out = np.ndarray.__getitem__(self, at)
        except IndexError as e:
            raise self._outside(at, e) from None
        if not isinstance(out, np.ndarray):
            self.access(at, False)
        return out

    def __setitem__(self, at: Any, value: Any) -> None:
        try:
            np.ndarray.__getitem__(self, at)
        except IndexError as e:
            raise self._outside(at, e) from None
        if type(value) is Undefined:
            raise used(value, f"is stored to {'shared' if self._cta is not None else 'global'} memory")
        self.access(at, True)
        if isinstance(value, Tracked):
            value.access(..., False)
        try:
            np.ndarray.__setitem__(self, at, value)
        except OverflowError:  # a Python int wraps round, as in a kernel
            np.ndarray.__setitem__(self, at, np.uint64(int(value) & (1 << 64) - 1).astype(self.dtype))

    def __getattr__(self, name: str) -> Any:
        """A field of an array of records."""
        if name not in (self.dtype.names or ()):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self[name]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """What is computed from it is no longer memory that threads share."""
        for x in inputs:
            if isinstance(x, Tracked):
                x.access(..., False)
        for x in kwargs.get("out", ()):
            if isinstance(x, Tracked):
                x.access(..., True)
        if "out" in kwargs:
            kwargs["out"] = tuple(_plain(x) for x in kwargs["out"])
        return getattr(ufunc, method)(*(_plain(x) for x in inputs), **kwargs)

    def _machine(self) -> Machine:
        return Machine(self._run, None, [self._run.thread])

    def _outside(self, at: Any, e: IndexError) -> OutOfBoundsError:
        m = self._machine()
        return OutOfBoundsError(
            f"array: {m.describe()} of block {m.cta.index} uses index {at} of an array of shape {self.shape} at "
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
        """Check an access to the element (or part) at an index."""
        m = self._machine()
        index = at if isinstance(at, tuple) else (at,)
        region: Region
        if len(index) == self.ndim and all(isinstance(i, (int, np.integer)) for i in index):
            start = self.address(at)
            shadow, origin = self._shadow(start, m)
            region = Region(start - origin, start - origin + self.itemsize)
        else:
            part = np.ndarray.__getitem__(self, at).view(np.ndarray)
            if part.size == 0:
                return m
            start = int(part.ctypes.data) - (self._cta.smem.start if self._cta else 0)
            shadow, origin = self._shadow(start, m)
            region = Box(start - origin, part.shape, part.strides, part.itemsize)
        if not write:
            m.polls(start)
        m.run.races.check(m, shadow, region, write, atomic=atomic)
        if m.run.trace is not None:
            m.run.trace.accessed(m, "shared" if self._cta is not None else "global", start, region.nbytes, write)
        return m

    def _shadow(self, address: int, m: Machine) -> tuple[Shadow, int]:
        if self._cta is not None:
            return self._cta.smem.shadow, 0
        held = self._run.memory.at(address, 1, m)
        return held.shadow, held.address


def _plain(x: Any) -> Any:
    return x.view(np.ndarray) if isinstance(x, Tracked) else x


def tracked(a: Any, run: Any, cta: Any = None) -> Any:
    """The array as a kernel gets it; itself if nothing is checked."""
    if a.dtype.names and a.dtype.type is not np.record:
        a = a.view(np.dtype((np.record, a.dtype)))  # elements whose fields are attributes, as in Numba
    if run.races is None or isinstance(a, Tracked):
        return a.view(np.recarray) if a.dtype.names and run.races is None else a
    out = a.view(Tracked)
    out._run, out._cta = run, cta
    return out
