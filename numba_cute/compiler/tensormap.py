# SPDX-License-Identifier: Apache-2.0
"""Tensor maps for the GPU: a checked record becomes the driver's 128 bytes, through cuda.core."""

from __future__ import annotations

from typing import Any

from cuda.core import _tensor_map as core
from cuda.core.utils import StridedMemoryView

from .. import dtypes
from ..seam import CuteError


class _Memory:
    """Global memory as cuda.core takes it: the CUDA array interface, outermost dimension first."""

    def __init__(self, record: Any) -> None:
        size = record.dtype.bytes
        strides = (size, *(int(s) for s in record.strides_bytes))
        self.__cuda_array_interface__ = {
            "data": (int(record.address), False),
            "shape": tuple(int(d) for d in reversed(record.dims)),
            "strides": tuple(reversed(strides)),
            "typestr": f"<u{size}" if size > 1 else "|u1",
            "version": 3,
        }


_ENUMS = {"u8": "UINT8", "s8": "UINT8", "e4m3": "UINT8", "e5m2": "UINT8", "u16": "UINT16", "s16": "UINT16"}
_ENUMS |= {"u32": "UINT32", "s32": "INT32", "u64": "UINT64", "s64": "INT64", "f16": "FLOAT16", "bf16": "BFLOAT16"}
_ENUMS |= {"f32": "FLOAT32", "tf32": "TFLOAT32", "f64": "FLOAT64"}


def _member(enum: Any, *names: str) -> Any:
    for name in names:
        if name in enum.__members__:
            return enum[name]
    raise CuteError(f"{enum.__name__} has no member {names[0]}; it has {', '.join(enum.__members__)}")


def _data_type(dtype: dtypes.DType) -> Any:
    if dtype.ptx not in _ENUMS:
        raise CuteError(f"dtype {dtype}: a tensor map has no such element type; it has {', '.join(sorted(_ENUMS))}")
    return _member(core.TensorMapDataType, _ENUMS[dtype.ptx])


def encode(record: Any) -> Any:
    """A TensorMapRecord (see isa/tensormap.py, which checked it) as what `cuda.core.launch` passes by value."""
    view = StridedMemoryView.from_cuda_array_interface(_Memory(record), stream_ptr=-1)
    none = ("NONE",)
    swizzle = none if record.swizzle == "none" else (f"SWIZZLE_{record.swizzle}", f"B{record.swizzle[:-1]}")
    promotion = none if record.l2_promotion == "none" else (f"L2_{record.l2_promotion.removeprefix('L2_')}",)
    try:
        return view.as_tensor_map(
            box_dim=tuple(reversed(record.box)),
            element_strides=tuple(reversed(record.element_strides)),
            data_type=_data_type(record.dtype),
            swizzle=_member(core.TensorMapSwizzle, *swizzle),
            l2_promotion=_member(core.TensorMapL2Promotion, *promotion),
            oob_fill=_member(
                core.TensorMapOOBFill, *(none if record.oob_fill == "zero" else ("NAN_REQUEST_ZERO_FMA",))
            ),
        )
    except ValueError as e:
        raise CuteError(f"the driver refused the tensor map: {e}\n  {record}") from e
