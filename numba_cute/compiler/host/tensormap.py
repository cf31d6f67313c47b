# SPDX-License-Identifier: Apache-2.0
"""Tensor maps for the GPU: a checked record becomes the 128 bytes that the driver encodes."""

from __future__ import annotations

import ctypes
from typing import Any

from cuda.bindings import driver as bindings

from ...isa.facts.tensormap import Im2colWide, element_type
from ...seam import CuteError
from .device_memory import known_to_cuda

BYTES = 128
"""The size of a tensor map (CUDA driver API, CUtensorMap)."""
_TYPES = {"u8": "UINT8", "u16": "UINT16", "u32": "UINT32", "s32": "INT32", "u64": "UINT64", "s64": "INT64"}
_TYPES |= {"b4x16": "16U4_ALIGN8B", "b4x16_p64": "16U4_ALIGN16B", "b6x16_p32": "16U6_ALIGN16B"}
_TYPES |= {"f16": "FLOAT16", "bf16": "BFLOAT16", "f32": "FLOAT32", "tf32": "TFLOAT32", "f64": "FLOAT64"}


def _member(enum: str, prefix: str, name: str) -> Any:
    """A member of one of the driver's enumerations."""
    members = getattr(bindings, enum).__members__
    if prefix + name not in members:
        known = ", ".join(m.removeprefix(prefix) for m in members)
        raise CuteError(f"these CUDA bindings cannot encode a tensor map with {name}: {enum} has {known}; use another")
    return members[prefix + name]


def _choice(enum: str, prefix: str, name: str, none: str, more: str = "") -> Any:
    return _member(enum, prefix, "NONE" if name == none else more + name)


def _words(numbers: Any, kind: Any) -> list[Any]:
    return [kind(int(n)) for n in numbers]


def _options(record: Any) -> tuple[Any, ...]:
    """Return the arguments after the box that all three of the driver's functions take, except for the mode of im2col
    along W."""
    return (
        _words(record.element_strides, bindings.cuuint32_t),
        _choice("CUtensorMapInterleave", "CU_TENSOR_MAP_INTERLEAVE_", record.interleave, "none"),
    )


def _last(record: Any) -> tuple[Any, ...]:
    fill = "zero" if record.oob_fill == "zero" else "NAN_REQUEST_ZERO_FMA"
    return (
        _choice("CUtensorMapSwizzle", "CU_TENSOR_MAP_SWIZZLE_", record.swizzle, "none"),
        _choice("CUtensorMapL2promotion", "CU_TENSOR_MAP_L2_PROMOTION_", record.l2_promotion, "none", "L2_"),
        _choice("CUtensorMapFloatOOBfill", "CU_TENSOR_MAP_FLOAT_OOB_FILL_", fill, "zero"),
    )


def _known(record: Any) -> bool:
    """Return whether CUDA knows the first or the last byte: a map may begin before its array, in rows of no box."""
    ends = record.address, record.address + record.extent_bytes - 1
    return any(known_to_cuda(at) is not False for at in ends)


def encode(record: Any) -> bytes:
    """Encode a TensorMapRecord (isa/facts/tensormap.py checked it) as the bytes that a launch passes by value."""
    if record.place is None and not _known(record):
        raise CuteError(
            f"the tensor of a TMA atom, at {record.address:#x}, lies in the host's memory, which a GPU cannot read: "
            "make the atom of a tensor on the GPU"
        )
    kind = _member(
        "CUtensorMapDataType", "CU_TENSOR_MAP_DATA_TYPE_", _TYPES[element_type(record.dtype, record.unpacked)]
    )
    rank, walk = len(record.dims), record.im2col
    memory = (
        kind, rank, int(record.address), _words(record.dims, bindings.cuuint64_t),
        _words(record.strides_bytes or (16,), bindings.cuuint64_t),  # of one dimension the driver reads none
    )  # fmt: skip
    if walk is None:
        box = _words(record.box, bindings.cuuint32_t)
        error, made = bindings.cuTensorMapEncodeTiled(*memory, box, *_options(record), *_last(record))
    elif isinstance(walk, Im2colWide):
        if not hasattr(bindings, "cuTensorMapEncodeIm2colWide"):
            raise CuteError("these CUDA bindings cannot encode im2col along W: pip install 'cuda-bindings>=13'")
        mode = _member("CUtensorMapIm2ColWideMode", "CU_TENSOR_MAP_IM2COL_WIDE_MODE_", walk.mode.upper())
        error, made = bindings.cuTensorMapEncodeIm2colWide(
            *memory, walk.lower, walk.upper, walk.channels, walk.pixels, *_options(record), mode, *_last(record)
        )
    else:
        corners = list(map(int, walk.lower)), list(map(int, walk.upper))
        error, made = bindings.cuTensorMapEncodeIm2col(
            *memory, *corners, walk.channels, walk.pixels, *_options(record), *_last(record)
        )
    if error != bindings.CUresult.CUDA_SUCCESS:
        raise CuteError(f"the driver refused the tensor map: {error.name}\n  {record}")
    return ctypes.string_at(made.getPtr(), BYTES)
