# SPDX-License-Identifier: Apache-2.0
"""Symmetric memory: as much of each GPU, at even distances, and one range of addresses that stands for all (multicast).

On GPUs every rank maps the memory of all side by side in its own addresses; here all ranks share one process, so that
an address means the same to each."""

from __future__ import annotations

import weakref
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

POISON = 0xFF  # NaN in every floating-point type
LINE = 256
"""Bytes: each rank's part begins at a multiple of these, and as many that nobody may use lie between two."""


class Symmetric:
    """Memory of the same shape on each GPU, as `cute.sim.symmetric` makes it.

    ranks: how many GPUs. arrays: by rank, its memory. peers: all of it, as an array whose last mode is the rank.
    multicast: an array whose addresses stand for all ranks' memory, for multimem instructions; what is in it means
    nothing.

    >>> x = cute.sim.symmetric((4, 8), cute.Float32, 2)
    >>> x.arrays[1].shape, x.peers.shape, x.multicast.shape
    ((4, 8), (4, 8, 2), (4, 8))
    """

    __cute_symmetric__ = True

    def __init__(self, shape: tuple[int, ...], dtype: Any, ranks: int, empty: bool = False) -> None:
        element = np.dtype(dtype)
        self.ranks, self._nbytes = ranks, prod(shape) * element.itemsize
        distance = -(-self._nbytes // LINE) * LINE + LINE
        raw = np.zeros((ranks + 1) * distance + LINE, np.uint8)
        first = -raw.ctypes.data % LINE
        at = [first + r * distance for r in range(ranks + 1)]
        parts = [np.ndarray(shape, element, raw, start) for start in at]
        self.arrays: tuple[NDArray[Any], ...] = tuple(parts[:-1])
        self.multicast: NDArray[Any] = parts[-1]
        self.peers: NDArray[Any] = np.ndarray((*shape, ranks), element, raw, first, (*parts[0].strides, distance))
        begins = tuple(int(raw.ctypes.data) + start for start in at)
        written = tuple(np.zeros(self._nbytes, np.bool_) for _ in range(ranks)) if empty else None
        for start in at[:-1] if empty else ():
            raw[start : start + self._nbytes] = POISON
        _HELD[id(raw)] = Parts(begins[:-1], begins[-1], self._nbytes, written)
        weakref.finalize(raw, _HELD.pop, id(raw), None)  # which each of the arrays keeps alive

    def __repr__(self) -> str:
        array = self.arrays[0]
        return f"Symmetric({self.ranks} ranks, shape {array.shape}, {array.dtype})"


class Parts(NamedTuple):
    """The addresses of symmetric memory. begins: of each rank's part. multicast: the one that stands for all. nbytes:
    of each. written: by rank, which bytes were written of memory that was made empty."""

    begins: tuple[int, ...]
    multicast: int
    nbytes: int
    written: tuple[NDArray[np.bool_], ...] | None = None

    def written_until_now(self, rank: int, data: NDArray[np.uint8]) -> NDArray[np.bool_] | None:
        """Return which bytes of a rank's part were written; None if all were. What the host has written is seen by what
        lies there: where that is no poison, all of the part counts as written."""
        found = self.written[rank] if self.written is not None else None
        if found is None or found.all():
            return None
        if (data[~found] != POISON).any():
            found[...] = True
            return None
        return found

    def everywhere(self, address: int) -> tuple[int, ...]:
        """Return the addresses in all ranks' memory that one of the multicast range stands for."""
        return tuple(start + address - self.multicast for start in self.begins)


_HELD: dict[int, Parts] = {}
"""All symmetric memory of this process."""


def parts_at(address: int) -> Parts | None:
    """Find the symmetric memory in which an address lies, or which it stands for."""
    for held in _HELD.values():
        if held.begins[0] <= address < held.multicast + held.nbytes:
            return held
    return None
