# SPDX-License-Identifier: Apache-2.0
"""Finding the memory of another library's array, through NumPy's, CUDA's and DLPack's protocols, with no import of
it."""

from __future__ import annotations

import ctypes
import dataclasses
import sys
from typing import Any

import ml_dtypes
import numpy as np

from .. import dtypes
from ..dtypes import DType
from ..seam import CuteError
from ..seam.ground.records import dataclass
from ..seam.hooks.dltensor import DLTensor


@dataclass(frozen=True)
class ArrayInfo:
    """The memory of an array.

    address: bytes, of the first element; strides: elements; owner: the object that must live on while it is used;
    readonly: its elements may only be read.
    """

    dtype: DType
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    owner: Any
    readonly: bool = False


_BY_NAME = {np.dtype(d.numpy).name: d for d in dtypes.WHOLE if d is not dtypes.TFloat32}
_BY_NAME["float4_e2m1fn_x2"] = dtypes.Float4E2M1FN  # torch: two to a byte, the first in the low bits
_UNPACKED = {np.dtype(d.numpy).name: d for d in dtypes.NARROW}


def element_of(x: Any) -> DType:
    """Return the element type of an array's type, which is found by its name, as NumPy, ml_dtypes, torch
    ("torch.bfloat16") and jax call it. CuteError: there is none."""
    name = str(getattr(x, "name", None) or x).removeprefix("torch.")
    if not getattr(x, "isnative", True):
        raise CuteError(
            f"from_dlpack: dtype {x!r} has its bytes in another order: take x.astype(x.dtype.newbyteorder('='))"
        )
    if name in _UNPACKED:
        raise CuteError(
            f"from_dlpack: an array of {name} has a whole byte for each element of {_UNPACKED[name].width} bits; "
            f"pack it: cute.recast_tensor(from_dlpack(cute.runtime.pack(x)), cute.{_UNPACKED[name]})"
        )
    if name not in _BY_NAME:
        raise CuteError(f"from_dlpack: dtype {x} has no CuTe element type; known are {', '.join(sorted(_BY_NAME))}")
    return _BY_NAME[name]


_LAZY = {
    "is_neg": ("its negative bit is set, and its memory holds the numbers with the other sign", "x.resolve_neg()"),
    "is_conj": ("its conjugate bit is set, and its memory holds the conjugate numbers", "x.resolve_conj()"),
}
"""Flags of torch's tensors that their memory does not show, with the reason and the remedy."""


def _check_is_its_memory(x: Any) -> None:
    """Raise a CuteError if an array is not what lies in its memory. x: of NumPy, or as torch's tensors."""
    masked = sys.modules.get("numpy.ma")  # who has such an array has imported it, which takes 20 ms
    if masked is not None and isinstance(x, masked.MaskedArray):
        _refuse(x, "its mask would be left out", "x.filled(value), or x.data for all elements")
    if getattr(x, "is_nested", False) is True:
        _refuse(x, "it is nested, of several shapes", "x.unbind(), or a padded tensor")
    for name, (why, instead) in _LAZY.items():
        asks = getattr(x, name, None)
        if asks is not None and asks():
            _refuse(x, why, instead)


def _refuse(x: Any, why: str, instead: str) -> None:
    raise CuteError(f"from_dlpack: tensor_dlpack, a {type(x).__name__}: {why}; pass {instead}")


def inspect_array(x: Any) -> ArrayInfo:
    """Find the memory of `x` by the first protocol that it has. CuteError: it has none, or is not what lies there."""
    _check_is_its_memory(x)
    info = _found(x)
    if info.address == 0 and 0 not in info.shape:
        _refuse(x, "it has no memory of its own, as fake, meta and wrapping tensors have none", "a tensor with data")
    return info


def _found(x: Any) -> ArrayInfo:
    if isinstance(x, np.ndarray):
        info = _in_elements(element_of(x.dtype), x.__array_interface__["data"][0], x.shape, x.strides, x)
        return dataclasses.replace(info, readonly=not x.flags.writeable)
    if callable(getattr(x, "data_ptr", None)) and callable(getattr(x, "stride", None)):  # torch
        shape, strides = tuple(map(int, x.shape)), tuple(map(int, x.stride()))
        info = ArrayInfo(element_of(x.dtype), int(x.data_ptr()), shape, strides, x)
        return _by_nibbles(info) if info.dtype is dtypes.Float4E2M1FN else info
    interface = getattr(x, "__cuda_array_interface__", None)
    if interface is not None:
        if interface.get("mask") is not None:
            _refuse(x, "its mask would be left out", "an array with the elements filled in")
        named = hasattr(x, "dtype")  # bfloat16 and fp8 have no typestr
        dtype = element_of(x.dtype if named else np.dtype(interface["typestr"]))
        info = _in_elements(dtype, interface["data"][0], interface["shape"], interface.get("strides"), x)
        return dataclasses.replace(info, readonly=bool(interface["data"][1]))
    if hasattr(x, "__dlpack__"):
        return _from_capsule(x)
    raise CuteError(
        f"from_dlpack: {type(x).__name__} is not an array; it needs __dlpack__, "
        "__cuda_array_interface__ or to be of NumPy"
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
    return dataclasses.replace(info, shape=shape, strides=strides)


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


class _Versioned(ctypes.Structure):
    """dlpack.h, DLManagedTensorVersioned."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    ]


_READ_ONLY = 1
"""dlpack.h, DLPACK_FLAG_BITMASK_READ_ONLY."""
_VERSION = (1, 0)
"""The first of DLPack that says so."""
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
    capsule = _capsule(x)
    t, readonly = _opened(capsule)
    packed = (t.code, t.bits, t.lanes) == _PACKED_FLOAT4
    found = np.uint8 if packed else _CODES.get((t.code, t.bits)) if t.lanes == 1 else None
    if found is None:
        raise CuteError(f"from_dlpack: DLPack type code {t.code}, {t.bits} bits, {t.lanes} lanes has no element type")
    shape = tuple(t.shape[i] for i in range(t.ndim))
    address = int(t.data or 0) + int(t.byte_offset)
    dtype = element_of(np.dtype(found))
    strides = tuple(t.strides[i] for i in range(t.ndim)) if t.strides else None
    if strides is None:
        info = _in_elements(dtype, address, shape, None, (x, capsule))
    else:
        info = ArrayInfo(dtype, address, shape, strides, (x, capsule))
    info = dataclasses.replace(info, readonly=readonly)
    return _by_nibbles(dataclasses.replace(info, dtype=dtypes.Float4E2M1FN)) if packed else info


def _capsule(x: Any) -> Any:
    """Return the capsule of `x`, of the newest version that it knows: older ones cannot say that it is read-only."""
    on = {"stream": -1} if int(x.__dlpack_device__()[0]) == _CUDA else {}
    try:
        return x.__dlpack__(max_version=_VERSION, **on)
    except TypeError:  # it is of before versions
        return x.__dlpack__(**on)


def _opened(capsule: Any) -> tuple[Any, bool]:
    """A capsule's DLTensor, and whether it is read-only."""
    api = ctypes.pythonapi
    api.PyCapsule_GetPointer.restype, api.PyCapsule_GetName.restype = ctypes.c_void_p, ctypes.c_char_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    name = api.PyCapsule_GetName(capsule)
    at = api.PyCapsule_GetPointer(capsule, name)
    if name == b"dltensor_versioned":
        held = ctypes.cast(at, ctypes.POINTER(_Versioned)).contents
        return held.tensor, bool(held.flags & _READ_ONLY)
    return ctypes.cast(at, ctypes.POINTER(DLTensor)).contents, False


def on_host(owner: Any) -> bool:
    """Return whether what `inspect_array` found lies in the host's memory."""
    if isinstance(owner, tuple):  # what came as a capsule
        return int(owner[0].__dlpack_device__()[0]) != _CUDA
    if isinstance(owner, np.ndarray):
        return True
    cpu = getattr(owner, "is_cpu", None)  # torch
    if cpu is not None:
        return bool(cpu)
    cuda = getattr(owner, "is_cuda", None)
    return not (hasattr(owner, "__cuda_array_interface__") if cuda is None else cuda)


def gpu_of(array: Any) -> int | None:
    """Return the number of the GPU that an array says it lies on; None if it does not say."""
    tell = getattr(array, "__dlpack_device__", None)
    return None if tell is None else int(tell()[1])
