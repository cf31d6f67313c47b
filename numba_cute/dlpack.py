# SPDX-License-Identifier: Apache-2.0
"""Where an array of another library lies: through NumPy's, CUDA's and DLPack's protocols, with no import of it."""

from __future__ import annotations

import ctypes
import dataclasses
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from . import dtypes
from .dtypes import DType
from .seam import CuteError


@dataclass(frozen=True)
class ArrayInfo:
    """address: bytes, of the first element; strides: elements; owner: what must live on while it is used."""

    dtype: DType
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    owner: Any


_BY_NAME = {np.dtype(d.numpy).name: d for d in dtypes.WHOLE if d is not dtypes.TFloat32}
_BY_NAME["float4_e2m1fn_x2"] = dtypes.Float4E2M1FN  # torch: two to a byte, the first in the low bits
_UNPACKED = {np.dtype(d.numpy).name: d for d in dtypes.NARROW}


def _dtype(x: Any) -> DType:
    """By name, as NumPy, ml_dtypes, torch ("torch.bfloat16") and jax call it."""
    name = str(getattr(x, "name", None) or x).removeprefix("torch.")
    if name in _UNPACKED:
        raise CuteError(
            f"from_dlpack: an array of {name} has a whole byte for each element of {_UNPACKED[name].width} bits; "
            f"pack it: cute.recast_tensor(from_dlpack(cute.runtime.pack(x)), cute.{_UNPACKED[name]})"
        )
    if name not in _BY_NAME:
        raise CuteError(f"from_dlpack: dtype {x} has no CuTe element type; known are {', '.join(sorted(_BY_NAME))}")
    return _BY_NAME[name]


def inspect_array(x: Any) -> ArrayInfo:
    """What `x` is, by the first protocol that it has."""
    if isinstance(x, np.ndarray):
        return _in_elements(_dtype(x.dtype), x.__array_interface__["data"][0], x.shape, x.strides, x)
    if callable(getattr(x, "data_ptr", None)) and callable(getattr(x, "stride", None)):  # torch
        info = ArrayInfo(_dtype(x.dtype), int(x.data_ptr()), tuple(map(int, x.shape)), tuple(map(int, x.stride())), x)
        return _by_nibbles(info) if info.dtype is dtypes.Float4E2M1FN else info
    interface = getattr(x, "__cuda_array_interface__", None)
    if interface is not None:
        named = hasattr(x, "dtype")  # bfloat16 and fp8 have no typestr
        dtype = _dtype(x.dtype if named else np.dtype(interface["typestr"]))
        return _in_elements(dtype, interface["data"][0], interface["shape"], interface.get("strides"), x)
    if hasattr(x, "__dlpack__"):
        return _from_capsule(x)
    raise CuteError(
        f"from_dlpack: {type(x).__name__} is no array; it needs __dlpack__, __cuda_array_interface__ or to be of NumPy"
    )


def _by_nibbles(info: ArrayInfo) -> ArrayInfo:
    """An array of pairs of 4-bit elements as one of the elements: the contiguous mode holds twice as many."""
    if 1 not in info.strides:
        raise CuteError(
            f"from_dlpack: an array of strides {info.strides} holds two 4-bit elements in each byte, along no mode: "
            "one stride must be 1"
        )
    packed = max(i for i, d in enumerate(info.strides) if d == 1)
    shape = tuple(2 * s if i == packed else s for i, s in enumerate(info.shape))
    strides = tuple(1 if i == packed else 2 * d for i, d in enumerate(info.strides))
    return ArrayInfo(info.dtype, info.address, shape, strides, info.owner)


def _in_elements(dtype: DType, address: int, shape: Any, strides: Any, owner: Any) -> ArrayInfo:
    if strides is None:
        strides, step = [], dtype.bytes
        for s in reversed(shape):
            strides.insert(0, step)
            step *= s
    if any(d % dtype.bytes for d in strides):
        raise CuteError(
            f"from_dlpack: strides {tuple(strides)} bytes are not multiples of {dtype}'s {dtype.bytes} bytes"
        )
    return ArrayInfo(dtype, int(address), tuple(map(int, shape)), tuple(int(d) // dtype.bytes for d in strides), owner)


class _DLTensor(ctypes.Structure):
    """dlpack.h, DLTensor, at the start of a DLManagedTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_CODES: dict[tuple[int, int], Any] = {(4, 16): ml_dtypes.bfloat16, (6, 8): np.bool_}
_CODES.update({(10, 8): ml_dtypes.float8_e4m3fn, (12, 8): ml_dtypes.float8_e5m2})
_CODES.update({(0, 8 * n): np.dtype(f"i{n}") for n in (1, 2, 4, 8)})
_CODES.update({(1, 8 * n): np.dtype(f"u{n}") for n in (1, 2, 4, 8)})
_CODES.update({(2, 8 * n): np.dtype(f"f{n}") for n in (2, 4, 8)})
"""dlpack.h, DLDataTypeCode, and bits."""
_PACKED_FLOAT4 = (17, 4, 2)
"""kDLFloat4_e2m1fn, bits, lanes: two to a byte."""

_CUDA = 2


def _from_capsule(x: Any) -> ArrayInfo:
    device = x.__dlpack_device__()[0]
    capsule = x.__dlpack__(stream=-1) if int(device) == _CUDA else x.__dlpack__()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    t = ctypes.cast(get(capsule, b"dltensor"), ctypes.POINTER(_DLTensor)).contents
    packed = (t.code, t.bits, t.lanes) == _PACKED_FLOAT4
    found = np.uint8 if packed else _CODES.get((t.code, t.bits)) if t.lanes == 1 else None
    if found is None:
        raise CuteError(f"from_dlpack: DLPack type code {t.code}, {t.bits} bits, {t.lanes} lanes has no element type")
    shape = tuple(t.shape[i] for i in range(t.ndim))
    address = int(t.data or 0) + int(t.byte_offset)
    dtype = _dtype(np.dtype(found))
    strides = tuple(t.strides[i] for i in range(t.ndim)) if t.strides else None
    if strides is None:
        info = _in_elements(dtype, address, shape, None, (x, capsule))
    else:
        info = ArrayInfo(dtype, address, shape, strides, (x, capsule))
    return _by_nibbles(dataclasses.replace(info, dtype=dtypes.Float4E2M1FN)) if packed else info


def on_host(owner: Any) -> bool:
    """Whether what `inspect_array` found lies in the host's memory."""
    if isinstance(owner, tuple):  # what came as a capsule
        return int(owner[0].__dlpack_device__()[0]) != _CUDA
    if isinstance(owner, np.ndarray):
        return True
    cuda = getattr(owner, "is_cuda", None)  # torch
    return not (hasattr(owner, "__cuda_array_interface__") if cuda is None else cuda)
