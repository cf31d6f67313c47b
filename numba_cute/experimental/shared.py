# SPDX-License-Identifier: Apache-2.0
"""Dynamic shared memory, given out line by line of a kernel."""

from __future__ import annotations

from typing import Any

from ..seam import current


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
