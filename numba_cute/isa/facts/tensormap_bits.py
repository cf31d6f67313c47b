# SPDX-License-Identifier: Apache-2.0
"""Tensor maps in the simulator's memory: 128 bytes that instructions copy, change field by field, and use.

The hardware's bits are opaque (CUDA driver API, "CUtensorMap"), and on a GPU the driver makes them. These hold the same
fields. A map is checked when it is used, not at each change: in between it need not be legal.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import dtypes
from ...dtypes import DType
from ...seam import CuteError
from .tensormap import (
    ELEMENT_TYPES,
    INTERLEAVES,
    L2_PROMOTIONS,
    OOB_FILLS,
    Im2col,
    Im2colWide,
    TensorMapRecord,
    element_type,
)

Bytes = NDArray[np.uint8]
BYTES = 128
_MAGIC = 0x50414D54
_BEGUN = 0x4E414D54
"""The magic word of a map that a kernel makes of 128 zeros, field by field."""
_ONCE = ("global_address", "rank", "elemtype", "interleave_layout", "swizzle_mode", "fill_mode")
"""The fields that a map has one of; others it has for each dimension."""
_FORMAT = np.dtype(
    [
        ("magic", "u4"), ("im2col", "u1"), ("rank", "u1"), ("dtype", "u1"), ("elemtype", "u1"),
        ("interleave_layout", "u1"), ("swizzle_mode", "u1"), ("swizzle_atomicity", "u1"), ("fill_mode", "u1"),
        ("l2_promotion", "u1"), ("global_address", "u8"), ("global_dim", "u4", 5), ("global_stride", "u8", 4),
        ("box_dim", "u2", 5), ("element_stride", "u1", 5), ("lower", "i2", 3), ("upper", "i2", 3), ("set", "u1"),
    ]
)  # fmt: skip
# PTX ISA, "Tensormap new_val validity"
_ELEMENT_CODES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32.ftz", "f64", "bf16", "tf32", "tf32.ftz",
                  "b4x16", "b4x16_p64", "b6x16_p32")  # fmt: skip
_SWIZZLE_CODES = ("none", "32B", "64B", "128B")
_ATOMS = ("", "_ATOM_32B", "_ATOM_32B_FLIP_8B", "_ATOM_64B")
_DTYPES: tuple[DType, ...] = (*dtypes.WHOLE, *dtypes.NARROW)
_OF_ELEMENT = {element_type(d): d for d in reversed(dtypes.WHOLE) if d.ptx in ELEMENT_TYPES}
_OF_ELEMENT |= {element_type(d, unpacked): d for d in reversed(dtypes.NARROW) for unpacked in (False, True)}
_WIDE = {2: "w", 3: "w128"}
"""The im2col modes, except 1, the box in all directions."""
assert [f.name for f in fields(Im2col)] == ["lower", "upper", "channels", "pixels"]


def _padded(values: tuple[int, ...], count: int, fill: int = 0) -> list[int]:
    return [*values, *(fill,) * (count - len(values))]


def pack(record: TensorMapRecord) -> Bytes:
    """The record's 128 bytes."""
    word: Any = np.zeros(1, _FORMAT)
    swizzle, _, atom = record.swizzle.partition("_ATOM")
    word["magic"], word["rank"] = _MAGIC, record.rank - 1
    word["dtype"] = _DTYPES.index(record.dtype)
    word["elemtype"] = _ELEMENT_CODES.index(element_type(record.dtype, record.unpacked))
    word["interleave_layout"] = list(INTERLEAVES).index(record.interleave)
    word["swizzle_mode"] = _SWIZZLE_CODES.index(swizzle)
    word["swizzle_atomicity"] = _ATOMS.index(f"_ATOM{atom}" if atom else "")
    word["fill_mode"] = OOB_FILLS.index(record.oob_fill)
    word["l2_promotion"] = L2_PROMOTIONS.index(record.l2_promotion)
    word["global_address"] = record.address
    word["global_dim"] = [(n - 1) & 0xFFFFFFFF for n in _padded(record.dims, 5, 1)]
    word["global_stride"] = _padded(record.strides_bytes, 4)
    word["box_dim"] = _padded(record.box, 5, 1)
    word["element_stride"] = _padded(record.element_strides, 5, 1)
    walk = record.im2col
    if isinstance(walk, Im2colWide):
        word["im2col"] = next(code for code, mode in _WIDE.items() if mode == walk.mode)
        word["lower"], word["upper"] = (walk.lower, 0, 0), (walk.upper, 0, 0)
    elif walk is not None:
        word["im2col"] = 1
        word["lower"], word["upper"] = _padded(walk.lower, 3), _padded(walk.upper, 3)
    out = np.zeros(BYTES, np.uint8)
    out[: _FORMAT.itemsize] = word.view(np.uint8)
    return out


def codes(dtype: DType, unpacked: bool, swizzle: str, oob_fill: str) -> dict[str, int]:
    """The codes of a tiled map's fields that are choices, by the field, as the PTX ISA numbers them."""
    name, _, atom = swizzle.partition("_ATOM")
    found = {
        "elemtype": _ELEMENT_CODES.index(element_type(dtype, unpacked)), "interleave_layout": 0,
        "swizzle_mode": _SWIZZLE_CODES.index(name), "fill_mode": OOB_FILLS.index(oob_fill),
    }  # fmt: skip
    if atom:
        found["swizzle_atomicity"] = _ATOMS.index(f"_ATOM{atom}")
    return found


def _missing(word: Any) -> list[str]:
    """The fields that nobody has set of a map that a kernel makes of zeros."""
    rank = int(word["rank"]) + 1
    each = [f for f in ("box_dim", "element_stride") if not word[f][:rank].all()]
    return each + [f for f in _ONCE if not word["set"] & 1 << _ONCE.index(f)]


def _word(data: Bytes) -> Any:
    word = np.frombuffer(data[: _FORMAT.itemsize].tobytes(), _FORMAT)[0].copy()
    if not data.any():
        word["magic"] = _BEGUN
    if word["magic"] not in (_MAGIC, _BEGUN):
        raise CuteError(
            "these 128 bytes are no tensor map: copy one there first (cpasync.copy_tensormap, or from a kernel's atom)"
        )
    return word


def replace_field(data: Bytes, field: str, ord: int, value: int) -> Bytes:
    """The bytes with one field changed, as tensormap.replace does: `field` and `value` are the PTX ISA's."""
    word: Any = _word(data)
    if field == "global_dim":
        value = (value - 1) & 0xFFFFFFFF
    if word[field].ndim:
        word[field][ord] = value
    else:
        word[field] = value
    if field in _ONCE:
        word["set"] |= 1 << _ONCE.index(field)
    if field == "elemtype":
        word["dtype"] = _DTYPES.index(_OF_ELEMENT[_ELEMENT_CODES[value].removesuffix(".ftz")])
    out = data.copy()
    out[: _FORMAT.itemsize] = np.frombuffer(word.tobytes(), np.uint8)
    return out


def unpack(data: Bytes) -> TensorMapRecord:
    """The record of such bytes; an error if they are no tensor map, or one that TMA would refuse."""
    word = _word(data)
    rank = int(word["rank"]) + 1
    if word["magic"] == _BEGUN and _missing(word):
        raise CuteError(f"it was made of zeros, and nobody has set {', '.join(_missing(word))} (tensormap.replace)")

    def ints(field: str, count: int) -> tuple[int, ...]:
        return tuple(int(x) for x in word[field][:count])

    walk: Im2col | Im2colWide | None = None
    channels, pixels = ints("box_dim", 2)
    if word["im2col"] in _WIDE:
        walk = Im2colWide(int(word["lower"][0]), int(word["upper"][0]), channels, pixels, _WIDE[int(word["im2col"])])
    elif word["im2col"]:
        walk = Im2col(ints("lower", rank - 2), ints("upper", rank - 2), channels, pixels)
    return TensorMapRecord(
        dtype=_DTYPES[word["dtype"]],
        address=int(word["global_address"]),
        dims=tuple(n + 1 for n in ints("global_dim", rank)),
        strides_bytes=ints("global_stride", rank - 1),
        box=ints("box_dim", rank),
        element_strides=ints("element_stride", rank),
        swizzle=_SWIZZLE_CODES[word["swizzle_mode"]] + _ATOMS[word["swizzle_atomicity"]],
        interleave=list(INTERLEAVES)[word["interleave_layout"]],
        oob_fill=OOB_FILLS[word["fill_mode"]],
        l2_promotion=L2_PROMOTIONS[word["l2_promotion"]],
        im2col=walk,
        unpacked=_ELEMENT_CODES[word["elemtype"]] in ("b4x16_p64", "b6x16_p32"),
    )
