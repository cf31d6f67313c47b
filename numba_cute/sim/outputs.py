# SPDX-License-Identifier: Apache-2.0
"""Outputs that a run has not written: `simulate(kernel, outputs=…)`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..seam import CuteError
from .ground.report import UninitializedReadError, count, ranges
from .hardware.address_spaces import array_range
from .python.arrays import array_of

_MOST = 4  # ranges of elements that are named


def parameters(outputs: Iterable[str] | str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The outputs that a launch names, of the kernel's parameters `names`. CuteError for one that is none."""
    found = (outputs,) if isinstance(outputs, str) else tuple(outputs)
    wrong = [n for n in found if n not in names]
    if wrong:
        raise CuteError(
            f"simulate: outputs {wrong[0]!r} is not a parameter of the kernel, which has {', '.join(names)}"
        )
    return found


def check_written(memory: Any, outputs: dict[str, Any], kernel: str) -> None:
    """Raise an error for the first output with elements that nobody has written. memory: the run's, whose shadow the
    check `races` keeps. outputs: the arguments, by name."""
    for name, value in outputs.items():
        for array in _arrays(value):
            addresses = _addresses(array).ravel()
            missing = np.flatnonzero(~_written(memory, addresses, array.itemsize))
            if missing.size:
                first = ", ".join(map(str, np.unravel_index(missing[0], array.shape)))
                which = ranges(missing.tolist()).split(", ")
                some = ", ".join(which[:_MOST]) + (" and others" if len(which) > _MOST else "")
                raise UninitializedReadError(
                    f"output {name} of kernel {kernel}: {missing.size} of {count(array.size, 'element')} were "
                    f"never written, {name}[{first}] first (in order: {some}); "
                    f"they hold what was there before the launch"
                )


def _arrays(value: Any) -> list[NDArray[Any]]:
    """The arrays behind an argument."""
    value = array_of(value)
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, tuple):
        return [a for v in value for a in _arrays(v)]
    found = getattr(value, "__cute_allocations__", None)
    return [_of_owner(owner, nbytes) for _, nbytes, _, owner, _ in found()] if found is not None else []


def _of_owner(owner: Any, nbytes: int) -> NDArray[Any]:
    """Return the object that holds a tensor's memory, as an array: its elements, or bytes if it is not an array of the
    host's."""
    owner = array_of(owner)
    if isinstance(owner, np.ndarray) and array_range(owner)[1] == nbytes:
        return owner
    raise CuteError(
        "simulate: outputs: give the output as an array, or as a tensor of one: only of those are elements known"
    )


def _addresses(array: NDArray[Any]) -> NDArray[np.int64]:
    """The address of each element."""
    found = np.full(array.shape, array.ctypes.data, np.int64)
    for axis, (extent, stride) in enumerate(zip(array.shape, array.strides)):
        found += (np.arange(extent) * stride).reshape((extent,) + (1,) * (array.ndim - axis - 1))
    return found


def _written(memory: Any, addresses: NDArray[np.int64], width: int) -> NDArray[np.bool_]:
    """Tell of each element whether all of its bytes were written."""
    held = memory.find(int(addresses.min())) if addresses.size else None
    if held is None or held.shadow is None:
        return np.zeros(addresses.shape, bool)
    at, written = addresses - held.address, np.ones(addresses.shape, bool)
    for byte in range(width):
        written &= held.shadow.writers[at + byte] != 0
    return written
