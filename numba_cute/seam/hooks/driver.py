# SPDX-License-Identifier: Apache-2.0
"""Questions of the host to a GPU's driver about memory; the compiler, which has the driver, answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from numba_cute.seam.ground.error import CuteError

from ...seam.ground.records import dataclass


def _unread(address: int, nbytes: int) -> Any:
    raise CuteError(f"{nbytes} bytes at {address:#x} lie on a GPU, and there is no driver to read them by")


def _no_peers(addresses: list[int], device: int) -> Any:
    raise CuteError("memory of several GPUs, and there is no driver to map it by")


@dataclass
class Driver:
    """The questions; as made here, without a driver.

    known: return whether an address is one of a GPU's, managed or pinned memory; None if there is no GPU to ask. read:
    copy so many bytes from an address of a GPU to the host, as a NumPy array. held: yield the memory of the host that
    stands for a GPU's: where each piece begins, its bytes, its name for reports, and what keeps it alive.

    pinned: give so many words of memory that the host and all GPUs see, zeroed, as a NumPy array of Uint32 that lives
    as long as the process; None if there is no GPU. shareable: say whether the memory at an address has a handle by
    which it can be mapped again. beside: map the allocations that hold these addresses, one for each rank, side by
    side, for a device; gives an object with `address`, `distance` in bytes and `bases`, and unmaps when that is freed.
    base: give where the driver's allocation begins that holds an address.
    """

    known: Callable[[int], bool | None] = lambda address: None
    read: Callable[[int, int], Any] = _unread
    held: Callable[[], Iterable[tuple[int, int, str, Any]]] = lambda: ()
    pinned: Callable[[int], Any] = lambda words: None
    beside: Callable[[list[int], int], Any] = _no_peers
    shareable: Callable[[int], bool] = lambda address: False
    base: Callable[[int], int] = lambda address: _no_peers([address], 0)


DRIVER = Driver()
