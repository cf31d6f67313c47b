# SPDX-License-Identifier: Apache-2.0
"""Dynamic shared memory, given out line by line of a kernel."""

from __future__ import annotations

from typing import Any

from ..arch.smem import alloc_smem
from ..dtypes import Int64
from ..seam import current
from ..tensor.pointer import AddressSpace, Pointer


def smem_bytes(nbytes: int, align: int, name: str) -> tuple[Any, int]:
    """Give `nbytes` of dynamic shared memory to the calling line of the kernel: their address, and how far that is from
    the first. align: a power of two of at most 1024. name: for the simulator's reports."""
    b = current()
    start = b.allocate_smem(nbytes, align)
    address = b.smem_base() + start
    note = getattr(b, "note", None)
    if note is not None:
        note(address, nbytes, name)
    return address, start


def barrier_words(count: int, name: str) -> Pointer:
    """Give `count` 64-bit words of shared memory for barriers: dynamic ones in a kernel that allocates such, so that it
    may use all that a block has; static ones elsewhere. name: for the simulator's reports."""
    if not current().allocates_smem():
        return alloc_smem(Int64, count)
    return Pointer(Int64, AddressSpace.smem, smem_bytes(8 * count, 8, name)[0], 0, 8)
