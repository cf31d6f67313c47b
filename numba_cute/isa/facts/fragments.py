# SPDX-License-Identifier: Apache-2.0
"""Registers as matrices: what bodies of matrix instructions do to their operands."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import dtypes
from ...layout.layout import Layout
from . import fragment_layouts

_VIEWS = {d.ptx: d.numpy for d in (dtypes.Float16, dtypes.BFloat16, dtypes.Float8E4M3FN, dtypes.Float8E5M2)}
_BYTES = {"s8": np.int8, "u8": np.uint8}
_TF32 = np.uint32(0xFFFFE000)
"""The bits of a float that tf32 has; the hardware ignores the others."""

_E2M1, _E2M3, _E3M2 = (
    np.arange(1 << d.width, dtype=np.uint8).view(d.numpy).astype(np.float32)
    for d in (dtypes.Float4E2M1FN, dtypes.Float6E2M3FN, dtypes.Float6E3M2FN)
)
WIDTHS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1}
WIDTHS |= {"e2m1": 4, "e2m1x8": 8, "e2m3": 8, "e3m2": 8}
"""Bits that an element takes in a register. e2m1x8: one e2m1 in bits 2 to 5 of a byte, as .kind::f8f6f4 has it; its
6-bit types lie in bits 0 to 5."""


def nearest_tf32(numbers: Any) -> Any:
    """Round float32 to the digits of tf32, to nearest even, NaNs apart: as a tensor map of tf32 loads them (seen on an
    H200, 2026-11-30)."""
    bits = np.ascontiguousarray(numbers).view(np.uint32)
    rounded = (bits + 0xFFF + (bits >> 13 & 1)) & _TF32
    return np.where(np.isnan(numbers), numbers, rounded.view(np.float32))


def values(words: Any, ab: str) -> Any:
    """The elements of registers `words` (…, registers), 32 bits each, as float32 or (integer types) int32."""
    words = np.ascontiguousarray(words)
    words = words if words.dtype.itemsize == 4 else words.astype(np.uint32)
    if ab == "tf32":
        return (words.view(np.uint32) & _TF32).view(np.float32)
    if ab in _VIEWS:
        return words.view(_VIEWS[ab]).astype(np.float32)
    if ab in _BYTES:
        return words.view(_BYTES[ab]).astype(np.int32)
    raw = words.view(np.uint8)
    if ab == "b1":
        return np.unpackbits(raw, axis=-1, bitorder="little").astype(np.int32)
    if ab == "e2m1x8":
        return _E2M1[raw >> 2 & 15]
    if ab in ("e2m3", "e3m2"):
        return (_E2M3 if ab == "e2m3" else _E3M2)[raw & 63]
    nibbles = np.stack([raw & 15, raw >> 4], -1).reshape(*raw.shape[:-1], -1)
    if ab == "e2m1":
        return _E2M1[nibbles]
    signed = nibbles.astype(np.int32)
    return (signed ^ 8) - 8 if ab == "s4" else signed


def matrix(held: Any, layout: Layout, rows: int, columns: int) -> NDArray[Any]:
    """The matrix (rows, columns) whose elements a fragment holds: `held` (threads, values), as `layout` places them."""
    out = np.empty(rows * columns, held.dtype)
    out[fragment_layouts.row_major(layout, rows, columns)] = held
    return out.reshape(rows, columns)


def product(a: Any, b: Any, op: str) -> Any:
    """The number of bits set in `op` ("xor", "and") of each row of a (m, k) and b (n, k)."""
    both = a @ b.T
    return both if op == "and" else a.sum(1)[:, None] + b.sum(1)[None, :] - 2 * both
