# SPDX-License-Identifier: Apache-2.0
"""`cuda.local.array`: a thread's own array, which knows which of its elements were written (see `undefined`)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...ground.report import OutOfBoundsError, assigned_name, place_of
from ...hardware.machine import Machine
from ...python.arithmetic.undefined import Made, Never, Undefined, number_kind, used
from ...python.arrays import OwnArray, Record, bare_array, element_value, place, typed_element


class LocalArray(OwnArray):
    """A local array. _why: for each element 0 once it is written, or the number (from 1 on) of why it is undefined;
    those that were never written have -1."""

    _run: Any = None
    _made: Any = None
    _why: Any = None
    _reasons: Any = None

    def __array_finalize__(self, base: Any) -> None:
        if isinstance(base, LocalArray):
            self._run, self._made, self._reasons = base._run, base._made, base._reasons

    def __getitem__(self, at: Any) -> Any:
        at = place(at)
        try:
            out = np.ndarray.__getitem__(self, at)
        except IndexError as e:
            raise _outside(self, at, e) from None
        if isinstance(at, str):  # a field: its elements are as defined as the records
            out._why = self._why if out.shape == self.shape else None
            return out
        if self._why is not None:
            why = self._why[at]
            if isinstance(out, LocalArray):
                out._why = why
            elif why and not self.dtype.names:
                return Undefined(self._reason(int(why), at), number_kind(self.dtype))
        return Record(self, at) if self.dtype.names and not isinstance(out, np.ndarray) else typed_element(out)

    def _reason(self, why: int, at: Any) -> Any:
        if why > 0:
            return self._reasons[why - 1]
        return Never(self._made, at, self._run.thread, place_of(sys._getframe(1)))

    def __setitem__(self, at: Any, value: Any) -> None:
        at, undefined = place(at), type(value) is Undefined
        try:
            held = np.ndarray.__getitem__(self, at) if undefined else element_value(value, self.dtype)
            np.ndarray.__setitem__(self, at, held)
        except IndexError as e:
            raise _outside(self, at, e) from None
        if self._why is not None:
            self._why[at] = 0
            if undefined:
                self._reasons.append(value.why)
                self._why[at] = len(self._reasons)
            elif isinstance(value, LocalArray) and value._why.any():
                part = self._why[at]
                for found in np.argwhere(np.broadcast_to(value._why, part.shape)):
                    i = tuple(found.tolist())
                    self._reasons.append(value._reason(int(np.broadcast_to(value._why, part.shape)[i]), i))
                    part[i] = len(self._reasons)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        for x in inputs:
            if isinstance(x, LocalArray) and x._why is not None and x._why.any():
                at = tuple(int(i) for i in np.argwhere(x._why)[0])
                raise used(Undefined(x._reason(int(x._why[at]), at if len(at) > 1 else at[0])), "is used")
        for x in kwargs.get("out", ()):
            if isinstance(x, LocalArray) and x._why is not None:
                x._why[...] = 0
        if "out" in kwargs:
            kwargs["out"] = tuple(bare_array(x) for x in kwargs["out"])
        return getattr(ufunc, method)(*(bare_array(x) for x in inputs), **kwargs)

    def part(self, at: int, nbytes: int, write: bool) -> Any:
        size, whys = self.itemsize, self._why.reshape(-1)
        for i in range(at // size, -(-(at + nbytes) // size)):
            if write:
                whys[i] = 0
            elif whys[i]:
                raise used(Undefined(self._reason(int(whys[i]), i)), "is loaded through a tensor made of it")
        return super().part(at, nbytes, write)


def _outside(a: LocalArray, at: Any, e: IndexError) -> OutOfBoundsError:
    m = Machine(a._run, None, [a._run.thread])
    return OutOfBoundsError(
        f"local array: {m.describe()} uses index {at} of a local array of shape {a.shape} at {m.place} ({e})"
    )


def local_array(run: Any, data: NDArray[Any], frame: FrameType) -> LocalArray:
    """A fresh local array, made where the user's code calls."""
    out = data.view(LocalArray)
    made = Made("the local array", assigned_name(frame), data.dtype, place_of(frame), None)
    out._run, out._made, out._why, out._reasons = run, made, np.full(data.shape, -1, np.int32), []
    return out
