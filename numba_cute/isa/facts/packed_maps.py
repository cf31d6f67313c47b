# SPDX-License-Identifier: Apache-2.0
"""Tensor maps of elements of 4 and 6 bits (CUDA driver API, "cuTensorMapEncodeTiled", of
CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B, 16U4_ALIGN16B and 16U6_ALIGN16B; PTX ISA, "tensormap.replace", .elemtype b4x16,
b4x16_p64 and b6x16_p32). sm_100."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ... import dtypes
from ...dtypes import DType
from ...seam import CuteError
from ...seam.ground.records import dataclass

CHUNK = 16
"""Elements that lie together: in 16 bytes of shared memory where they are unpacked."""


@dataclass(frozen=True)
class PackedForm:
    """A form in which elements smaller than a byte go to shared memory.

    name: the PTX ISA's. driver: the CUDA driver's, after CU_TENSOR_MAP_DATA_TYPE_. loads, stores: the swizzles with
    which a map can do each. columns: what dims[0] and the innermost coordinate are multiples of; box: boxes' innermost
    extent, or None where any multiple of 16 bytes will do."""

    name: str
    driver: str
    loads: tuple[str, ...]
    stores: tuple[str, ...]
    columns: int
    box: int | None = None


_ALL = ("none", "32B", "64B", "128B", "128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B", "128B_ATOM_64B")
_WIDE = ("none", "128B", "128B_ATOM_32B")
_PACKED = PackedForm("b4x16", "16U4_ALIGN8B", _ALL, _ALL, 2)
_FOUR = PackedForm("b4x16_p64", "16U4_ALIGN16B", _WIDE, (), 128, 128)
_SIX = PackedForm("b6x16_p32", "16U6_ALIGN16B", _WIDE, (*_WIDE, "128B_ATOM_64B"), 128, 128)


def form(dtype: DType, unpacked: bool) -> PackedForm:
    """The form of a map of `dtype`. Those of 6 bits are always unpacked."""
    if dtype.width == 6:
        return _SIX
    return _FOUR if unpacked else _PACKED


def check(record: Any) -> None:
    """An error if a map of elements below a byte cannot be so."""
    if record.im2col is not None or record.interleave != "none":
        raise CuteError(f"tensor map: {record.dtype} has tiled maps alone; view the bytes as Uint8 for im2col")
    if any(n != 1 for n in record.element_strides):
        raise CuteError(f"tensor map: element_strides {record.element_strides} of {record.dtype} must all be 1")
    f = form(record.dtype, record.unpacked)
    for name, n in (("dims[0]", record.dims[0]), ("box[0]", record.box[0])):
        if n % f.columns or (name == "box[0]" and f.box not in (None, n)):
            want = f"{f.box}" if name == "box[0]" and f.box else f"a multiple of {f.columns}"
            raise CuteError(
                f"tensor map: {name} is {n} elements of {record.dtype}; as {f.driver} it must be {want}"
                + ("; pad the tensor" if name == "dims[0]" else "; use another tile")
            )
    if record.swizzle not in (*f.loads, *f.stores):
        raise CuteError(
            f"tensor map: swizzle {record.swizzle!r} is none that {f.driver} has: {', '.join(map(repr, f.loads))}"
        )


def in_bytes(record: Any) -> Any:
    """The same memory and box, in bytes."""
    width = record.dtype.width
    dims = (record.dims[0] * width // 8, *record.dims[1:])
    box = (record.box[0] * width // 8, *record.box[1:])
    return replace(record, dtype=dtypes.Uint8, dims=dims, box=box, swizzle="none", unpacked=False)
