# SPDX-License-Identifier: Apache-2.0
"""Structured sparsity of an MMA's A operand: which half of it is stored, and the metadata that says so.

A row is cut into chunks of 4 units, of which 2 are stored; a chunk has 4 bits of metadata: the index of the first
stored unit in bits 0 and 1, of the second in bits 2 and 3, ascending. A unit is an element (f16, bf16, 8 bits: 2 of
4), half an element (tf32: 1 of 2), or a pair of elements (4 bits: 4 of 8). PTX ISA, "Sparse matrix storage", for
mma.sp and for wgmma.mma_async.sp alike.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...seam import CuteError

LEGAL = tuple(i | j << 2 for i in range(4) for j in range(i + 1, 4))
"""The metadata of a chunk: two indices that ascend."""
HALVES = (0b0100, 0b1110)
"""The same where a unit is half an element: the first or the second element."""


def chunk(width: int) -> int:
    """Elements of `width` bits that 4 bits of metadata describe."""
    return {32: 2, 16: 4, 8: 4, 4: 8}[width]


@cache
def places(rows: int, k: int, width: int, selector: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the thread that holds the metadata of each chunk, and its first bit: both (rows, k / chunk), rows 16 for
    each warp. PTX ISA, the metadata figures of mma.sp and wgmma.mma_async.sp ("Tk: [m..n]").

    Of each four lanes 1, 2 or 4 give their words, from `selector` times that many on."""
    chunks = k // chunk(width)
    givers = chunks // 4
    row, c = np.arange(rows)[:, None], np.arange(chunks)[None, :]
    lower = row // 8 % 2
    if width >= 16:  # a word: 4 chunks of a row in its low half, of the row 8 further down in its high half
        giver, bit = c // 4 + 0 * row, 16 * lower + 4 * (c % 4)
    else:  # a word: 8 chunks of a row; the next lane has those of the row 8 further down
        giver, bit = lower + 2 * (c // 8), 4 * (c % 8) + 0 * row
    lane = row // 16 * 32 + row % 8 * 4 + selector * givers + giver
    for held in (lane, bit):
        held.setflags(write=False)
    return lane, bit


def stored(words: Any, rows: int, k: int, width: int, selector: int) -> NDArray[np.int64]:
    """The columns (rows, k / 2) of a dense matrix (rows, k) whose elements are stored, by the threads' metadata."""
    lane, bit = places(rows, k, width, selector)
    codes = np.asarray(words).astype(np.uint32).astype(np.int64)[lane] >> bit & 15
    legal = HALVES if width == 32 else LEGAL
    bad = ~np.isin(codes, legal)
    if bad.any():
        r, c = (int(x) for x in np.argwhere(bad)[0])
        raise CuteError(
            f"sparse mma: metadata {int(codes[r, c]):#06b} of row {r}, columns {c * chunk(width)} on (thread "
            f"{int(lane[r, c])}, bit {int(bit[r, c])}) is none of {', '.join(f'{x:#06b}' for x in legal)}; "
            "make it with nvgpu.compress"
        )
    return columns_of(codes, k, width)


def columns_of(codes: Any, k: int, width: int) -> NDArray[np.int64]:
    """The columns (rows, k / 2) of a dense matrix whose elements are stored, by each chunk's metadata (rows,
    chunks)."""
    first = np.arange(codes.shape[1])[None, :] * chunk(width)
    if width == 32:
        return np.asarray(first + codes // 14)
    pair = np.stack([codes & 3, codes >> 2], -1)
    if width == 4:
        pair = (2 * pair[..., None] + np.arange(2)).reshape(*codes.shape, 4)
    return np.asarray((first[..., None] + pair).reshape(len(codes), k // 2))


def expand(kept: Any, words: Any, k: int, width: int, selector: int) -> Any:
    """The dense matrix (rows, k) of the stored half `kept` (rows, k / 2)."""
    rows = len(kept)
    dense = np.zeros((rows, k), kept.dtype)
    np.put_along_axis(dense, stored(words, rows, k, width, selector), kept, 1)
    return dense


def compress(
    dense: Any, rows: int, k: int, width: int, held: tuple[Any, Any], count: int
) -> tuple[Any, NDArray[np.uint32]]:
    """The stored half (M, K / 2) of a matrix (M, K), and its metadata (M / rows, K / k, `count` words) for instructions
    of (rows, k): what `expand` undoes. held: the word of each row's chunk, and from which bit on it has it, as `places`
    gives them. An error where a chunk has too many that are not zero."""
    m, total = dense.shape
    split = dense.reshape(m, total // chunk(width), -1, 2 if width == 4 else 1)  # what is stored or left out together
    taken = (split != 0).any(-1)
    limit = 1 if width == 32 else 2
    bad = taken.sum(-1) > limit
    if bad.any():
        r, c = (int(x) for x in np.argwhere(bad)[0])
        at = c * chunk(width)
        raise CuteError(
            f"compress: a[{r}, {at}:{at + chunk(width)}] is {dense[r, at : at + chunk(width)].tolist()}; of "
            f"{chunk(width)} elements {'one' if width == 32 else 'two' if width > 4 else 'two pairs'} may be other "
            "than zero"
        )
    order = np.argsort(~taken, axis=-1, kind="stable")[..., :limit]  # those that are not zero first, then the first
    order = np.sort(order, axis=-1)
    kept = np.take_along_axis(split, order[..., None], 2).reshape(m, total // 2)
    codes = np.where(order[..., 0] == 1, HALVES[1], HALVES[0]) if width == 32 else order[..., 0] | order[..., 1] << 2
    lane, bit = held
    chunks = lane.shape[1]
    tiles = codes.reshape(m // rows, rows, total // k, chunks).transpose(0, 2, 1, 3).astype(np.uint32)
    words = np.zeros((m // rows, total // k, count), np.uint32)
    where: Any = (slice(None), slice(None), lane)
    np.bitwise_or.at(words, where, tiles << bit.astype(np.uint32))
    return kept, words
