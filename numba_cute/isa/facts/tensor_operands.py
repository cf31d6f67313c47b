# SPDX-License-Identifier: Apache-2.0
"""Operands of tcgen05.mma as numbers: elements of shared memory and of tensor memory, scale factors, and the metadata
of a sparse A (PTX ISA, "Packing formats of elements", "Block Scaling", "Sparse Matrices")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...seam import CuteError
from . import sparse
from .canonical import CHUNK, K_MAJOR, chunk_offsets, need_canonical, swizzle_addresses
from .tensor_descriptors import ABSOLUTE, Tcgen05Descriptor

QUARTER = 32
"""The lanes of a part of the matrix unit, which has its own scale factors."""


def container(dtype: dtypes.DType, packed: bool) -> int:
    """Bits that an element takes along K: `packed` ones, of mxf4, no more than they have, others at least a byte."""
    return dtype.width if packed else max(dtype.width, 8)


def in_chunks(chunks: Any, dtype: dtypes.DType, packed: bool) -> Any:
    """The elements of chunks of 16 bytes of shared memory, (count, 16): (count, elements), exact in float64 (int64).
    Of less than a byte 16 are in the first bytes of each chunk, unless `packed`."""
    if dtype.width >= 8:
        return _whole(chunks, dtype)
    if packed:
        return _nibbles(chunks)
    bits = np.unpackbits(chunks[:, : 2 * dtype.width], axis=1, bitorder="little")
    fields = bits.reshape(len(chunks), 16, dtype.width)
    return np.packbits(fields, axis=2, bitorder="little")[..., 0].view(dtype.numpy).astype(np.float64)


def in_words(words: Any, dtype: dtypes.DType, packed: bool) -> Any:
    """The elements of words of tensor memory, (rows, columns): (rows, elements). Of less than a byte each has a byte,
    of 6 bits its bits 0 to 5, of 4 its bits 2 to 5, unless they are `packed`."""
    held = np.ascontiguousarray(words).view(np.uint8)
    if dtype.width >= 8:
        return _whole(held, dtype)
    if packed:
        return _nibbles(held)
    codes = np.asarray(held >> 2 & 15 if dtype.width == 4 else held & 63, np.uint8)
    return codes.view(dtype.numpy).astype(np.float64)


def _whole(held: Any, dtype: dtypes.DType) -> Any:
    held = np.ascontiguousarray(held)
    if dtype is dtypes.TFloat32:
        return (held.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(float)
    with np.errstate(invalid="ignore"):  # memory that nobody wrote may hold a NaN that signals
        return held.view(dtype.numpy).astype(np.int64 if dtype.is_integer else np.float64)


def _nibbles(held: Any) -> Any:
    codes = np.stack([held & 15, held >> 4], -1).reshape(*held.shape[:-1], -1)
    return codes.view(dtypes.Float4E2M1FN.numpy).astype(np.float64)


def addresses(d: Tcgen05Descriptor, major: int, mn: int, k_bytes: int, size: int) -> tuple[Any, tuple[int, int]]:
    """The address of each chunk of an operand of (mn, `k_bytes` of K), and the shape in which they stand. size: of an
    element, in bytes (of MN-major ones alone does it matter)."""
    if d.mode == ABSOLUTE:
        return _absolute(d, major, mn, k_bytes)
    if k_bytes == 48 and d.swizzle:
        at = d.start % d.swizzle
        if at + k_bytes > d.swizzle:
            raise CuteError(
                f"tcgen05.mma: 48 bytes of K from byte {at} of a row of {d.swizzle} leave it; give a descriptor of "
                "mode ABSOLUTE, whose `leading` is the address at which they go on (sm_103a)"
            )
    run = k_bytes if major == K_MAJOR else mn * size
    need_canonical("tcgen05 descriptor", d.start, d.swizzle, run, d.base_offset)
    offsets = chunk_offsets(major, d.swizzle, d.leading, d.stride, mn, k_bytes // size, size)
    return swizzle_addresses(d.start + offsets.ravel(), d.swizzle), (offsets.shape[0], offsets.shape[1])


def _absolute(d: Tcgen05Descriptor, major: int, mn: int, k_bytes: int) -> tuple[Any, tuple[int, int]]:
    """The same where `leading` is the address at which K goes on beyond the row of 128 bytes in which it starts."""
    if major != K_MAJOR or d.swizzle != 128 or d.base_offset:
        raise CuteError(
            f"tcgen05.mma: {d} has mode ABSOLUTE, which is for K-major operands with a swizzle of 128 bytes and no "
            "base_offset"
        )
    row, chunk = np.arange(mn)[:, None], np.arange(k_bytes // CHUNK)[None, :]
    left = (128 - d.start % 128) // CHUNK
    along = np.where(chunk < left, d.start + chunk * CHUNK, d.leading + (chunk - left) * CHUNK)
    found = along + row % 8 * 128 + row // 8 * d.stride
    return swizzle_addresses(found.ravel(), 128), (mn, k_bytes // CHUNK)


# ---------------------------------------------------------------- scale factors


_FACTORS = {"ue8m0": dtypes.Float8E8M0FNU, "ue4m3": dtypes.Float8E4M3FN}


def factor_columns(rows: int, per_k: int, first: int, stride: int) -> int:
    """Return the number of columns that the factors of `rows` rows (columns) of A (B) take: `per_k` each, from byte
    `first` of a word on; the words of one row are `stride` columns apart."""
    return -(-rows // QUARTER) + (first + per_k - 1) // 4 * stride


def factors(words: Any, name: str, rows: int, per_k: int, first: int, stride: int, sf: str, halves: int = 1) -> Any:
    """The scale factors (halves, rows, `per_k`), of (128 lanes, columns) words. Row r has its own in lane r % 32 of
    column r // 32, bytes `first` on, and beyond the word's end `stride` columns further. They lie there again in each
    32 lanes; with 2 halves lanes 64 and up have another half of the rows. name: of the operand, for errors."""
    held = np.ascontiguousarray(words).view(np.uint8).reshape(4, QUARTER, -1, 4)
    row, byte = np.arange(rows)[:, None], first + np.arange(per_k)[None, :]
    each = held[:, row % QUARTER, row // QUARTER + byte // 4 * stride, byte % 4]  # (quarter, row, factor)
    groups = each.reshape(halves, 4 // halves, rows, per_k)
    bad = np.argwhere((groups != groups[:, :1]).any(axis=(2, 3)))
    if len(bad):
        half, copy = (int(x) for x in bad[0])
        base = half * 128 // halves
        raise CuteError(
            f"tcgen05.mma: the scale factors of {name} in lanes {base + QUARTER * copy} on are not those in lanes "
            f'{base} on: each 32 lanes must have them (a "32x128b" tcgen05.cp with warpx4 copies them so)'
        )
    raw: Any = groups[:, 0]
    if sf == "ue4m3":
        raw = raw & 0x7F  # no sign
    with np.errstate(invalid="ignore"):
        return raw.view(_FACTORS[sf].numpy).astype(np.float64)


# ---------------------------------------------------------------- a sparse A


SPREAD = (16, 32)
"""The widths whose metadata of 16 rows lies in words of two rows each; of others each row has two words."""


def metadata_columns(width: int) -> int:
    """Return the number of columns that the metadata of one multiply takes, for elements of `width` bits."""
    return 1 if width in SPREAD else 2


def metadata(lanes: Any, k: int, width: int) -> tuple[Any, Any, Any]:
    """Return the place of the metadata of the rows in these lanes: the lane, the column and the first bit of each chunk
    (rows, chunks). width: of an element, as the metadata has it: 32, 16, 8 or (pairs) 4.

    Of 16- and 32-bit elements 16 lanes hold 16 rows: lane r % 8, of the second half of K 8 further, has row r in its
    low half, row r + 8 in its high half. Of others each lane has its row's, the first along K lowest."""
    row, chunk = lanes[:, None] % 16, np.arange(k // sparse.chunk(width))[None, :]
    if width not in SPREAD:
        return lanes[:, None] + 0 * chunk, chunk // 8 + 0 * row, 4 * (chunk % 8) + 0 * row
    bit = 16 * (row // 8) + 4 * (chunk % 4)
    return lanes[:, None] - row + row % 8 + 8 * (chunk // 4), 0 * bit, bit


def expand(stored: Any, words: Any, lanes: Any, k: int, width: int) -> Any:
    """The dense rows (rows, k) of a sparse A, of its stored half (rows, k / 2). words: (128 lanes, columns) of
    metadata. lanes: where each row of D lies. width: as for `metadata`."""
    holder, column, bit = metadata(lanes, k, width)
    codes = np.asarray(words)[holder, column].astype(np.int64) >> bit & 15
    legal: Sequence[int] = sparse.HALVES if width == 32 else (*sparse.LEGAL, 0b0110)
    wrong = np.argwhere(~np.isin(codes, legal))
    if len(wrong):
        r, c = (int(x) for x in wrong[0])
        raise CuteError(
            f"tcgen05.mma.sp: metadata {int(codes[r, c]):#06b} of the row in lane {int(lanes[r])}, elements "
            f"{c * sparse.chunk(width)} on, is none of {', '.join(f'{x:#06b}' for x in legal)}; make it with "
            "nvgpu.compress"
        )
    dense = np.zeros((len(stored), k), stored.dtype)
    np.put_along_axis(dense, sparse.columns_of(codes, k, width), stored, 1)
    return dense
