# SPDX-License-Identifier: Apache-2.0
"""NumPy arrays as kernels see them where lanes run together: an element read or written is a step (`fragment`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .lanes import Lanes
from .machine import Machine

_plain = np.ndarray.__getitem__


class Stepped(np.ndarray[Any, Any]):
    """An array of global or shared memory."""

    _run: Any = None

    def __array_finalize__(self, base: Any) -> None:
        if isinstance(base, Stepped):
            self._run = base._run

    def __getitem__(self, at: Any) -> Any:
        f = self._run.thread.fragment
        index = at if isinstance(at, tuple) else (at,)
        if any(type(i) is Lanes for i in index):
            return f.step(self._gather, f, index)
        if len(index) == self.ndim and all(isinstance(i, (int, np.integer)) for i in index):
            return f.step(self._read, f, at)
        return _plain(self, at)

    def __setitem__(self, at: Any, value: Any) -> None:
        f = self._run.thread.fragment
        f.step(self._set, f, at, value)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        raise TypeError("arithmetic on whole arrays is not a step")

    def _places(self, index: tuple[Any, ...]) -> tuple[Any, ...]:
        """The index of one element in each lane."""
        if len(index) != self.ndim or not all(isinstance(i, (Lanes, int, np.integer)) for i in index):
            raise TypeError("an index of lanes names elements")
        return tuple(np.array(i.list) if type(i) is Lanes else i for i in index)

    def _read(self, f: Any, at: Any) -> Any:
        Machine(self._run, None, f.threads).polls((id(self), at))
        return _plain(self, at)

    def _gather(self, f: Any, index: tuple[Any, ...]) -> Any:
        return f.of(list(_plain(bare(self), self._places(index))))

    def _set(self, f: Any, at: Any, value: Any) -> None:
        index = at if isinstance(at, tuple) else (at,)
        if any(type(i) is Lanes for i in index):
            at = self._places(index)
            if type(value) is Lanes:
                value = np.array(value.list)
            elif not isinstance(value, (int, float, np.generic)):
                raise TypeError("an element is set to a number")
        elif type(value) is Lanes:
            value = value.list[-1]  # the lanes write in order
        np.ndarray.__setitem__(self, at, value)


def bare(x: Any) -> Any:
    return x.view(np.ndarray) if isinstance(x, Stepped) else x


def stepped(a: Any, run: Any) -> Any:
    """The array as a kernel gets it."""
    if not run.shared or isinstance(a, Stepped):
        return a
    out = a.view(Stepped)
    out._run = run
    return out
