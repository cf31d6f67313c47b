# SPDX-License-Identifier: Apache-2.0
"""The host's memory, as host functions read and write it: within arrays, or at addresses that were given as numbers."""

from __future__ import annotations

import ctypes
import os
from typing import Any

import numpy as np

from ...seam import CuteError

_PAGE = 1 << 12
"""Nothing lies at lower addresses; those of fake tensors do."""


class HostMemory:
    """The memory. trial: what is written is kept aside, where later reads find it, and the memory stays as it is; of
    what stands for a tensor, to compile for, all is 0."""

    def __init__(self, trial: bool = False) -> None:
        self.trial = trial
        self._aside: dict[tuple[int, int], Any] = {}  # whole arrays, by their ends
        self._bytes: dict[int, int] = {}  # of memory that was given as a number
        self._probe: _Probe | None = None

    def read(self, address: Any, nbytes: int) -> Any:
        """Return a copy of the bytes at an address."""
        ends, at = _reached(address, nbytes, self.trial), int(address)
        if ends is None:
            return self._read_number(at, nbytes)
        aside = self._aside.get(ends)
        if aside is not None:
            return aside[at - ends[0] :][:nbytes].copy()
        return np.frombuffer(ctypes.string_at(at, nbytes), np.uint8).copy()

    def write(self, address: Any, data: Any) -> None:
        """Write bytes at an address. data: an array of them."""
        ends, at = _reached(address, data.nbytes, self.trial), int(address)
        if self.trial and ends is None:
            self._bytes.update(zip(range(at, at + data.nbytes), data.tolist()))
        elif self.trial and ends is not None:
            self._kept(ends)[at - ends[0] :][: data.nbytes] = data
        elif ends is None:
            self._probed().write(at, data.tobytes())
        else:
            ctypes.memmove(at, data.tobytes(), data.nbytes)

    def view(self, address: Any, nbytes: int, writes: bool) -> Any:
        """Return an array over the bytes at an address, None of memory that was given as a number. writes: whether they
        are to be written."""
        ends, at = _reached(address, nbytes, self.trial), int(address)
        if ends is None:
            return None
        if self.trial and (writes or ends in self._aside):
            return self._kept(ends)[at - ends[0] :][:nbytes]
        return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(at))

    def _read_number(self, at: int, nbytes: int) -> Any:
        stands_for_one = self.trial and at < _PAGE
        found = bytes(nbytes) if stands_for_one else self._probed().read(at, nbytes)
        known = (self._bytes.get(at + i, x) for i, x in enumerate(found)) if self._bytes else found
        return np.fromiter(known, np.uint8, nbytes)

    def _probed(self) -> _Probe:
        self._probe = self._probe or _Probe()
        return self._probe

    def _kept(self, ends: tuple[int, int]) -> Any:
        found = self._aside.get(ends)
        if found is None:
            found = np.frombuffer(ctypes.string_at(ends[0], ends[1] - ends[0]), np.uint8).copy()
            self._aside[ends] = found
        return found


def _reached(address: Any, nbytes: int, trial: bool) -> tuple[int, int] | None:
    """The ends of the array in which an access lies; None if the address was given as a number. CuteError: it does not
    lie there, or not in the host's memory."""
    find = getattr(type(address), "reached", None)
    return None if find is None or trial and int(address) < _PAGE else find(address, nbytes)


class _Probe:
    """Reads and writes memory of which nobody knows whether it is there: a pipe refuses what is not (EFAULT)."""

    def __init__(self) -> None:
        self.ends = os.pipe()
        self.c = ctypes.CDLL(None, use_errno=True)
        for call in (self.c.read, self.c.write):
            call.argtypes, call.restype = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t), ctypes.c_ssize_t

    def close(self) -> None:
        """Close the pipe."""
        for end in self.ends:
            os.close(end)

    __del__ = close

    def read(self, address: int, nbytes: int) -> bytes:
        """Return the bytes at an address; CuteError if they cannot be read."""
        if self.c.write(self.ends[1], address, nbytes) != nbytes:
            raise _absent(address, nbytes, "read")
        return os.read(self.ends[0], nbytes)

    def write(self, address: int, data: bytes) -> None:
        """Write bytes at an address; CuteError if they cannot be written."""
        os.write(self.ends[1], data)
        if self.c.read(self.ends[0], address, len(data)) != len(data):
            self.close()  # with what is left in it
            self.ends = os.pipe()
            raise _absent(address, len(data), "written")


def _absent(address: int, nbytes: int, verb: str) -> CuteError:
    return CuteError(
        f"{nbytes} bytes at {address:#x} cannot be {verb} by a host function: they are not the host's memory. A "
        "pointer that it follows must point to memory of the CPU; what lies on a GPU is for its kernels"
    )
