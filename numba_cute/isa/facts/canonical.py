# SPDX-License-Identifier: Apache-2.0
"""Canonical layouts of the PTX ISA: the places of a matrix operand's elements in shared memory.

See "Shared Memory Matrix Layout" and "Strides" under wgmma. Memory is seen as chunks of 16 bytes: T elements along
the major dimension. The swizzle permutes chunks by their address: within a period of 8 * swizzle bytes, address bits
4 and up are XORed with bits 7 and up.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...seam import CuteError

CHUNK = 16
K_MAJOR, MN_MAJOR = 0, 1
"""Major-ness, as the instruction's transpose bits have it."""
SWIZZLE_128B_BASE32B = 12832
"""The swizzle of 128 bytes in atoms of 32 (tcgen05.mma): what MN-major operands of 32-bit elements need. A group of
rows has 4 of them, not 8."""


@lru_cache(maxsize=1024)
def chunk_offsets(
    major: int, swizzle: int, leading: int, stride: int, mn: int, k: int, elem_bytes: int
) -> NDArray[np.int64]:
    """The byte offset of each chunk of an (mn, k) operand before swizzling: shape (mn, k / T) if K-major,
    (k, mn / T) if MN-major, with T = 16 / elem_bytes.

    swizzle: 0, 32, 64 or 128 bytes, or SWIZZLE_128B_BASE32B, whose rows are of 128 bytes and step by 4 of k, not 8;
    W = max(swizzle, 16) / 16 chunks make a row. Where the strides (bytes) step:

    | major | swizzle | leading | stride |
    | --- | --- | --- | --- |
    | K | any | next W chunks along k | next 8 rows of mn |
    | MN | no | next 8 rows of k | next chunk along mn |
    | MN | yes | next W chunks along mn | next 8 rows of k |

    The PTX ISA says that swizzled K-major operands do not use the leading offset: their k is 2 chunks, W 2 or more. B
    of a sparse wgmma has 4 chunks, which with W 2 (a swizzle of 32 bytes) take it: seen on an H200, 2026-11-21.
    """
    group = 8
    if swizzle == SWIZZLE_128B_BASE32B:
        if major != MN_MAJOR:
            raise CuteError("the swizzle of 128 bytes in atoms of 32 is for MN-major operands")
        swizzle, group = 128, 4
    width = max(swizzle // CHUNK, 1)
    per_chunk = CHUNK // elem_bytes
    rows, chunks = (mn, k // per_chunk) if major == K_MAJOR else (k, mn // per_chunk)
    row, chunk = np.arange(rows, dtype=np.int64)[:, None], np.arange(chunks, dtype=np.int64)[None, :]
    next_rows, next_chunks = (stride, leading) if major == K_MAJOR or swizzle else (leading, stride)
    along = chunk % width * CHUNK + chunk // width * next_chunks
    offsets = row % group * (width * CHUNK) + row // group * next_rows + along
    offsets.setflags(write=False)
    return offsets


def swizzle_parameters(name: int | str) -> tuple[int, int, int] | None:
    """Return (bits, base, shift) of what a descriptor (a number of bytes, or SWIZZLE_128B_BASE32B) or a tensor map (a
    name such as "128B") calls a swizzle; None for one that does not permute addresses alone."""
    return _PARAMETERS.get(name)


_PARAMETERS: dict[int | str, tuple[int, int, int]] = {
    0: (0, 4, 3), 32: (1, 4, 3), 64: (2, 4, 3), 128: (3, 4, 3), SWIZZLE_128B_BASE32B: (2, 5, 2),
    "none": (0, 4, 3), "32B": (1, 4, 3), "64B": (2, 4, 3), "128B": (3, 4, 3), "128B_ATOM_32B": (2, 5, 2),
    "128B_ATOM_64B": (1, 6, 1),
}  # fmt: skip


def need_canonical(what: str, start: int, swizzle: int, run: int, base_offset: int) -> None:
    """Raise CuteError for an operand (`what`) whose `run` contiguous bytes from `start` on leave their row of `swizzle`
    bytes, and for a base_offset: swizzles permute addresses, so that their pattern begins at multiples of its period.
    """
    row = 128 if swizzle == SWIZZLE_128B_BASE32B else swizzle
    if base_offset and swizzle:
        raise CuteError(
            f"{what} with base_offset {base_offset}: the simulator knows only 0, of memory that is swizzled by its "
            f"address, whose pattern begins at each multiple of {8 * row} bytes"
        )
    if swizzle and start % row + min(run, row) > row:
        raise CuteError(
            f"{what}: {min(run, row)} bytes from byte {start % row} of a row of {row} leave it; let the tile begin at "
            "a multiple of 128 bytes, or take a part of K that does not"
        )


def swizzle_addresses(addresses: NDArray[np.int64], swizzle: int) -> NDArray[np.int64]:
    """Addresses (bytes) as the swizzle of `swizzle` bytes (0, 32, 64, 128, or SWIZZLE_128B_BASE32B) permutes them: an
    involution."""
    if swizzle == SWIZZLE_128B_BASE32B:
        return addresses ^ ((addresses >> 7 & 3) << 5)
    if swizzle not in (0, 32, 64, 128):
        raise CuteError(f"swizzle is {swizzle}: it must be 0, 32, 64 or 128 bytes")
    mask = max(swizzle // CHUNK, 1) - 1
    return addresses ^ ((addresses >> 7 & mask) << 4)
