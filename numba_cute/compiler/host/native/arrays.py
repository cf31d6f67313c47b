# SPDX-License-Identifier: Apache-2.0
"""Whose an array is, as a launch must know it: how its memory is read with no Python, and the stream that its library
is using."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

from .... import seam
from ....isa.facts.tensormap import TensorMapRecord
from ....seam.ground.records import dataclass
from ....seam.hooks.dltensor import DLTensor
from ....seam.marks.constexpr import Constexpr
from ...bridge import tree
from ...ground.numba_cuda import DeviceNDArray
from . import words

_CAPSULES = ("__dlpack_c_exchange_api__", "__c_dlpack_exchange_api__")
"""Attributes of an array's class that hold DLPack's exchange functions; torch's first name for them last."""
CUDA = words.DL_CUDA


class _Exchange(ctypes.Structure):
    """dlpack.h, DLPackExchangeAPI, its header first."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("managed_from_object", ctypes.c_void_p),
        ("object_from_managed", ctypes.c_void_p),
        ("view", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    ]


@dataclass(frozen=True)
class Stream:
    """The stream that a library is using on a device. tells: the address of DLPack's function that says it, or 0;
    then calls: a Python function that gives its handle."""

    tells: int
    calls: Callable[[], int] | None
    device: int


@dataclass(frozen=True)
class Description:
    """An array whose attributes describe it. checked, is_: the attribute that says its type, and what it must be.
    device, pointer: names of an attribute and of one of its; None for none. called: `words.CALL_…`, which of them
    are methods. unit: bytes that a stride counts, 0 for an element. false: an attribute that must be False."""

    checked: str
    is_: Any
    device: tuple[str, str | None] | None
    pointer: tuple[str, str | None]
    shape: str
    strides: str
    called: int
    unit: int
    false: str | None = None


def exchange_of(array: Any) -> tuple[int, int] | None:
    """The functions of DLPack that view an array and tell its library's stream; None if its class has none."""
    cls: Any = type(array)
    return _exchange(cls)


@functools.cache
def _exchange(cls: Any) -> tuple[int, int] | None:
    capsule = next((c for n in _CAPSULES if (c := getattr(cls, n, None)) is not None), None)
    if capsule is None:
        return None
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    try:
        at = get(capsule, b"dlpack_exchange_api")
    except ValueError:
        return None
    while at:
        found = _Exchange.from_address(at)
        if found.major == 1:
            return (found.view, found.stream) if found.view and found.stream else None
        at = found.previous
    return None


def view_of(array: Any) -> Any | None:
    """The DLTensor of an array whose class has DLPack's exchange functions; None for any other."""
    functions = exchange_of(array)
    if functions is None:
        return None
    view = DLTensor()
    call = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(functions[0])
    return view if call(array, ctypes.addressof(view)) == 0 else None


def _library(cls: Any) -> str:
    return str(cls.__module__.partition(".")[0])


def device_of(array: Any) -> int | None:
    """The number of the GPU that an array lies on, where its library says it; None for anything else."""
    view = view_of(array)
    if view is not None:
        return int(view.device_id) if view.device_type == CUDA else None
    if _library(type(array)) == "torch" and callable(getattr(array, "data_ptr", None)):
        return int(array.get_device()) if array.is_cuda else None
    if _library(type(array)) == "cupy" and hasattr(array, "data"):
        return int(array.device.id)
    return None


def stream_of(array: Any) -> Stream | None:
    """The stream that an array's library is using on its device; None for anything that has no such stream."""
    return _stream(type(array), device_of(array))


def _stream(cls: Any, device: int | None) -> Stream | None:
    """The stream that the library of a class of arrays is using on a device; None if it has none."""
    if device is None:
        return None
    functions = _exchange(cls)
    if functions is not None:
        return Stream(functions[1], None, device)
    if _library(cls) == "torch":
        current = sys.modules["torch"].cuda.current_stream
        return Stream(0, _OfTorch(current, device), device)
    return Stream(0, _of_cupy, device) if _library(cls) == "cupy" else None


@dataclass(frozen=True)
class _OfTorch:
    current: Any
    device: int

    def __call__(self) -> int:
        return int(self.current(self.device).cuda_stream)


def _of_cupy() -> int:
    return int(sys.modules["cupy"].cuda.get_current_stream().ptr)


def handle_of(stream: Stream) -> int:
    """Ask for the stream's handle now."""
    if stream.calls is not None:
        return stream.calls()
    handle = ctypes.c_void_p()
    tell = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)(stream.tells)
    tell(CUDA, stream.device, ctypes.addressof(handle))
    return handle.value or 0


def streams_of(args: Any) -> Iterator[Stream]:
    """The streams that the libraries of arguments are using: of those in tuples too, and of the arrays whose memory an
    object of this library speaks of."""
    for a in args:
        if isinstance(a, (tuple, list)):
            yield from streams_of(a)
        elif isinstance(a, Constexpr):
            continue
        elif seam.is_frozen_class(type(a)):
            found = stream_of_object(a)
            if found is not None:
                yield found
        elif (found := stream_of(a)) is not None:
            yield found


def stream_of_object(obj: Any) -> Stream | None:
    """The stream that the library is using whose array an object of this library was made of; None for others."""
    leaves: list[Any] = []
    tree.flatten(obj, leaves)
    return stream_of_leaves(leaves)


def stream_of_leaves(leaves: list[Any]) -> Stream | None:
    """As `stream_of_object`, of the object's leaves."""
    for leaf in leaves:
        if isinstance(leaf, TensorMapRecord):
            found = None if leaf.place is None else _stream(*leaf.place)
        else:
            owner = getattr(leaf, "owner", getattr(getattr(leaf, "address", None), "owner", None))
            found = None if owner is None else stream_of(owner[0] if isinstance(owner, tuple) else owner)
        if found is not None:
            return found
    return None


_codes: dict[Stream | None, int] = {None: 0}


def code_of(stream: Stream | None) -> int:
    """A number that tells a stream from others."""
    return _codes.setdefault(stream, len(_codes))


def current_stream(args: Any) -> int:
    """The handle of the stream in which a launch that names none runs: that of the first argument whose library has a
    current one; CUDA's default stream, 0, if there is none."""
    found = next(streams_of(args), None)
    return 0 if found is None else handle_of(found)


OF_NUMBA: set[type] = {DeviceNDArray}
"""Classes of device arrays with the attributes of Numba's."""


def description(array: Any, numba_type: Any) -> Description | None:
    """Return the attributes that describe an array of a known library; None for any other array."""
    if type(array) in OF_NUMBA:
        own = numba_type if type(array) is DeviceNDArray else array._numba_type_
        return Description("_numba_type_", own, None, ("_strided_memory_view_shim", "ptr"), "shape", "strides", 0, 1)
    if _library(type(array)) == "cupy":
        return Description("dtype", array.dtype, ("data", "device_id"), ("data", "ptr"), "shape", "strides", 0, 1)
    if _library(type(array)) == "torch":
        called = words.CALL_DEVICE | words.CALL_POINTER | words.CALL_STRIDES
        where = ("get_device", None), ("data_ptr", None)
        return Description("dtype", array.dtype, *where, "shape", "stride", called, 0, "requires_grad")
    return None
