# SPDX-License-Identifier: Apache-2.0
"""`cuda.local.array`: a thread's own array, whose elements must be written before they are read."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .machine import Machine
from .report import OutOfBoundsError, UninitializedReadError


class LocalArray(np.ndarray[Any, Any]):
    """A local array that knows which of its elements were written."""

    _run: Any = None
    _written: Any = None

    def __array_finalize__(self, base: Any) -> None:
        if isinstance(base, LocalArray) and self._written is None:
            self._run = base._run

    def __getitem__(self, at: Any) -> Any:
        try:
            out = np.ndarray.__getitem__(self, at)
        except IndexError as e:
            raise _outside(self, at, e) from None
        if self._written is not None:
            seen = self._written[at]
            if isinstance(out, LocalArray):
                out._written = seen
            elif not seen:
                m = _machine(self)
                raise UninitializedReadError(
                    f"uninitialised: element {at} of a local array (cuda.local.array) is read by {m.describe()} at "
                    f"{m.place}, but this thread has never written it; fill it first"
                )
        return out

    def __setitem__(self, at: Any, value: Any) -> None:
        try:
            np.ndarray.__setitem__(self, at, value)
        except IndexError as e:
            raise _outside(self, at, e) from None
        if self._written is not None:
            self._written[at] = True

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        for x in kwargs.get("out", ()):
            if isinstance(x, LocalArray) and x._written is not None:
                x._written[...] = True
        if "out" in kwargs:
            kwargs["out"] = tuple(_plain(x) for x in kwargs["out"])
        return getattr(ufunc, method)(*(_plain(x) for x in inputs), **kwargs)


def _plain(x: Any) -> Any:
    return x.view(np.ndarray) if isinstance(x, LocalArray) else x


def _machine(a: LocalArray) -> Machine:
    return Machine(a._run, None, [a._run.thread])


def _outside(a: LocalArray, at: Any, e: IndexError) -> OutOfBoundsError:
    m = _machine(a)
    return OutOfBoundsError(
        f"local array: {m.describe()} uses index {at} of a local array of shape {a.shape} at {m.place} ({e})"
    )


def local_array(run: Any, data: NDArray[Any]) -> Any:
    """A fresh local array; without the check of uninitialised reads, `data` itself."""
    if "uninitialised" not in run.checks:
        return data
    out = data.view(LocalArray)
    out._run, out._written = run, np.zeros(data.shape, np.bool_)
    return out
