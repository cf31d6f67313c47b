# SPDX-License-Identifier: Apache-2.0
"""Tensor maps for the GPU: a checked record becomes the driver's 128 bytes, through cuda.core.

A launch takes 128 bytes by value only as cuda.core's `TensorMapDescriptor`. Its public maker,
`StridedMemoryView.as_tensor_map`, knows neither im2col nor TFloat32, and its enums have no public names; so all maps
are made by its private ones, whose absence is an error that says so.
"""

from __future__ import annotations

import functools
from importlib.metadata import version
from typing import Any

from cuda.core.utils import StridedMemoryView

from ...isa.facts.tensormap import Im2colWide, element_type
from ...seam import CuteError
from .device_memory import known_to_cuda


class _Memory:
    """Global memory as cuda.core takes it: the CUDA array interface, outermost dimension first."""

    def __init__(self, record: Any) -> None:
        size = max(1, record.dtype.width // 8)  # elements below a byte count as they stand
        strides = (size, *(int(s) for s in record.strides_bytes))
        self.__cuda_array_interface__ = {
            "data": (int(record.address), False),
            "shape": tuple(int(d) for d in reversed(record.dims)),
            "strides": tuple(reversed(strides)),
            "typestr": f"<u{size}" if size > 1 else "|u1",
            "version": 3,
        }


@functools.cache
def _private() -> tuple[Any, Any]:
    """Import cuda.core's module of tensor maps and its error of the driver."""
    try:
        from cuda.core import _tensor_map
        from cuda.core._utils.cuda_utils import CUDAError
    except ImportError as e:
        raise CuteError(
            f"cuda-core {version('cuda-core')} makes no tensor maps as 1.2 does ({e}): pip install "
            "'cuda-core>=1.2,<1.3', or a numba-cute that is written for it"
        ) from e
    return _tensor_map, CUDAError


_ENUMS = {"u8": "UINT8", "u16": "UINT16", "u32": "UINT32", "s32": "INT32", "u64": "UINT64", "s64": "INT64"}
_ENUMS |= {"b4x16": "16U4_ALIGN8B", "b4x16_p64": "16U4_ALIGN16B", "b6x16_p32": "16U6_ALIGN16B"}
_ENUMS |= {"f16": "FLOAT16", "bf16": "BFLOAT16", "f32": "FLOAT32", "tf32": "TFLOAT32", "f64": "FLOAT64"}


def _member(enum: Any, *names: str) -> Any:
    for name in names:
        if name in enum.__members__:
            return enum[name]
    raise CuteError(
        f"this cuda.core cannot encode a tensor map with {names[0]}: its {enum.__name__} has "
        f"{', '.join(enum.__members__)}; use one of those"
    )


def _options(core: Any, record: Any) -> dict[str, Any]:
    """Return what tiled and im2col maps share; cuda.core takes dimensions outermost first."""
    none = ("NONE",)
    swizzle = none if record.swizzle == "none" else (f"SWIZZLE_{record.swizzle}", f"B{record.swizzle[:-1]}")
    promotion = none if record.l2_promotion == "none" else (f"L2_{record.l2_promotion}",)
    interleave = none if record.interleave == "none" else (f"INTERLEAVE_{record.interleave}", f"B{record.interleave}")
    fill = none if record.oob_fill == "zero" else ("NAN_REQUEST_ZERO_FMA",)
    return {
        "element_strides": tuple(reversed(record.element_strides)),
        "data_type": _member(core.TensorMapDataType, _ENUMS[element_type(record.dtype, record.unpacked)]),
        "interleave": _member(core.TensorMapInterleave, *interleave),
        "swizzle": _member(core.TensorMapSwizzle, *swizzle),
        "l2_promotion": _member(core.TensorMapL2Promotion, *promotion),
        "oob_fill": _member(core.TensorMapOOBFill, *fill),
    }


def encode(record: Any) -> Any:
    """Encode a TensorMapRecord (isa/facts/tensormap.py checked it) as what `cuda.core.launch` passes by value."""
    if known_to_cuda(record.address) is False:
        raise CuteError(
            f"the tensor of a TMA atom, at {record.address:#x}, lies in the host's memory, which a GPU cannot read: "
            "make the atom of a tensor on the GPU"
        )
    core, cuda_error = _private()
    view = StridedMemoryView.from_cuda_array_interface(_Memory(record), stream_ptr=-1)
    options = _options(core, record)
    try:
        if record.im2col is None:
            return core.TensorMapDescriptor._from_tiled(view, box_dim=tuple(reversed(record.box)), **options)
        walk = record.im2col
        if isinstance(walk, Im2colWide):
            return core.TensorMapDescriptor._from_im2col_wide(
                view, walk.lower, walk.upper, walk.channels, walk.pixels,
                mode=_member(core.TensorMapIm2ColWideMode, walk.mode.upper()), **options,
            )  # fmt: skip
        lower, upper = tuple(reversed(walk.lower)), tuple(reversed(walk.upper))
        return core.TensorMapDescriptor._from_im2col(view, lower, upper, walk.channels, walk.pixels, **options)
    except (ValueError, cuda_error) as e:
        raise CuteError(f"the driver refused the tensor map: {e}\n  {record}") from e
