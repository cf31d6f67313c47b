# SPDX-License-Identifier: Apache-2.0
"""Tensors on the host: from arrays of other libraries, from addresses, and stand-ins for compiling without data."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from . import dtypes, layout
from .dtypes import DType, Int64, Scalar
from .layout import IntTuple, Layout
from .seam import CuteError
from .seam.ground.backend import RUNNING
from .seam.ground.naming import described
from .seam.hooks.casting import CASTING, OfArrays
from .tensor.address import Address
from .tensor.dlpack import ArrayInfo, inspect_array
from .tensor.pointer import AddressSpace, Pointer, make_ptr
from .tensor.symmetric import multicast, side_by_side
from .tensor.tensor import Tensor, extent

__all__ = [
    "from_dlpack", "from_multicast", "from_symmetric", "make_fake_compact_tensor", "make_fake_tensor", "make_ptr",
    "pack", "remembered", "unpack",
]  # fmt: skip


def from_dlpack(tensor_dlpack: Any, assumed_align: int | None = None) -> Tensor:
    """Make a tensor over the memory of an array, with its static shape and strides.

    tensor_dlpack: a NumPy array (for the simulator), or any array on a GPU with DLPack or the CUDA array interface;
    bf16 and fp8 too (ml_dtypes, torch, jax), and packed fp4 (torch.float4_e2m1fn_x2), its contiguous mode twice as
    long; other elements narrower than a byte through `pack`. assumed_align: bytes that the address is known to be a
    multiple of, a power of two (default: one element's); an error if it is not. The tensor keeps the array alive, and
    so do its parts and pointers; a launch does not. An array that is not writeable gives a tensor that may only be
    read. CuteError: an array without a dimension, and one that is not what lies in its memory (a mask, torch's negative
    or conjugate bit, bytes in another order, a fake or meta tensor).

    >>> cute.runtime.from_dlpack(np.zeros((4, 8), np.float32), assumed_align=4)
    Tensor(ptr<Float32, gmem, align 4>, (4,8):(8,1))
    """
    if RUNNING.backends:
        raise CuteError(
            "from_dlpack in a kernel: call it on the host and pass the tensor; of an array that a kernel has, "
            "make_tensor(x, layout) makes one"
        )
    return _over.cast(tensor_dlpack, assumed_align)  # type: ignore[no-any-return]


@OfArrays
def _over(array: Any, assumed_align: int | None) -> Tensor:
    """A tensor over an array's memory."""
    return CASTING.described(_of, inspect_array(array), assumed_align)  # type: ignore[no-any-return]


def _of(info: ArrayInfo, assumed_align: int | None, what: str = "from_dlpack") -> Tensor:
    """A tensor over the memory of an array that was found."""
    if not info.shape:
        raise CuteError(f"{what}: the array has no dimension; reshape it to (1,)")
    pointer = _pointer(info.dtype, Address(info.address), AddressSpace.gmem, assumed_align, what)
    shape = Layout(info.shape, info.strides)
    first, nbytes = extent(Tensor(pointer, shape))
    address = Address(info.address, info.owner, memory=(first, first + nbytes))
    return Tensor(dataclasses.replace(pointer, address=address, readonly=info.readonly), shape)


def from_symmetric(x: Any, group: Any = None, assumed_align: int | None = None) -> Tensor:
    """Make a tensor over the memory that each rank of a group has of `x`: its last mode is the rank. All ranks of the
    group, in the same order of calls.

    x: a tensor of torch's, allocated by torch.distributed._symmetric_memory.empty (CUDA backend), or a part of one; in
    the simulator, what `cute.sim.symmetric` gave. group: of torch.distributed; None for the default one.
    assumed_align: as for `from_dlpack`. Of a tensor of shape (m, n) it has shape (m, n, ranks), and `[None, None, r]`
    is rank r's memory: loads, stores, copies, atomics, TMA atoms and partitions of it reach that over NVLink. The
    memory of all ranks is mapped once more, side by side, as long as the storage of `x` or a tensor made of it lives.
    In a kernel, access your own rank's memory by this tensor or by `x`, not by both. CuteError, on all ranks: `x` is no
    symmetric memory, is not alike on all ranks, has no handles (NVSHMEM's), or lies on GPUs that cannot reach each
    other; the group has one rank.

    >>> class Symmetric:  # stands for what cute.sim.symmetric gives
    ...     __cute_symmetric__ = True
    ...     peers = np.arange(16, dtype=np.float32).reshape(2, 4, 2).transpose(1, 2, 0)
    >>> peers = cute.runtime.from_symmetric(Symmetric())
    >>> peers
    Tensor(ptr<Float32, gmem, align 4>, (4,2,2):(2,1,8))
    >>> cute.simulate(lambda peers: print(peers[0, 1, 0], peers[0, 1, 1]))[1, 1](peers)
    1.0 9.0
    """
    _on_host("from_symmetric")
    return _of(side_by_side(x, group), assumed_align, "from_symmetric")


def from_multicast(x: Any, group: Any = None, assumed_align: int | None = None) -> Tensor:
    """Make a tensor of the shape of `x` over the multicast mapping of all ranks' memory: `multimem` instructions
    (`utils.distributed`) add up what lies on all ranks, or store to all. All ranks of the group. sm_90, NVSwitch.

    x, group, assumed_align: as for `from_symmetric`. Anything but `multimem` instructions is refused of it in a kernel.
    CuteError: as there, and where the machine has no multicast.

    >>> class Symmetric:  # stands for what cute.sim.symmetric gives
    ...     __cute_symmetric__ = True
    ...     multicast = np.zeros((4, 2), np.float32)
    >>> cute.runtime.from_multicast(Symmetric())
    Tensor(ptr<Float32, gmem, align 4, multicast>, (4,2):(2,1))
    """
    _on_host("from_multicast")
    made = _of(multicast(x, group), assumed_align, "from_multicast")
    return Tensor(dataclasses.replace(made.iterator, multicast=True), made.layout)


def _on_host(what: str) -> None:
    if RUNNING.backends:
        raise CuteError(f"{what} in a kernel: call it on the host and pass the tensor")


def remembered(function: Callable[..., Any]) -> Any:
    """Decorate a function of the host that makes the arguments of a kernel of arrays, so that it runs once for arrays
    of a kind: for others of that kind what it gave is made anew in machine code, each tensor and tensor map with the
    address of its own array. That takes about a microsecond for a tensor, and two for a TMA atom.

        @cute.runtime.remembered
        def arguments(x, y, tile):
            x, y = from_dlpack(x, assumed_align=16), from_dlpack(y, assumed_align=16)
            return (*cpasync.make_tiled_tma_atom(LOAD, x, LAYOUT, tile), y), (cute.ceil_div(y.shape[0], tile[0]), 1, 1)

        args, grid = arguments(x, y, (64, 64))
        kernel[grid, 128](*args)

    function: takes arrays (torch's, on the GPU) and immutable arguments, in order: numbers, texts, element types,
    layouts, operations, and tuples of these. Others, as NumPy's, arrays in tuples, objects and functions of yours,
    and arguments that are given by name make it run. Of an array it may depend on nothing but its class, element
    type, shape, strides, device, and whether it begins at a multiple of 16 bytes. What else it reads (globals,
    closures, defaults, attributes) is looked at in each call, and it runs where that changed; it runs each time where
    that cannot be followed, as of an `import` in it, or where it asks for an address, as by `data_ptr`. It gives a
    tuple, nested or not, of its arrays, tensors, atoms, pointers, layouts, numbers and kernels; what gives anything
    else, as a list, runs each time. Nothing is learnt of a call with the same array twice. It keeps no array.
    CuteError: it is not a function.

    >>> as_tensor = cute.runtime.remembered(lambda x: cute.runtime.from_dlpack(x))
    >>> as_tensor(np.zeros((2, 3), np.float32)).layout
    (2,3):(3,1)
    """
    if not callable(function):
        raise CuteError(f"remembered: {function!r} is not a function")
    return OfArrays(function)


def _pointer(dtype: DType, address: Scalar, space: AddressSpace, assumed_align: int | None, what: str) -> Pointer:
    size = max(1, dtype.width // 8)
    align = size if assumed_align is None else assumed_align
    if type(align) is not int or align < size or align & (align - 1):
        raise CuteError(f"{what}: assumed_align {align!r} must be a power of two of at least {size} bytes")
    if int(address) % align:
        raise CuteError(f"{what}: address {int(address):#x} is not a multiple of assumed_align = {align} bytes")
    return Pointer(dtype, space, address, 0, align)


def make_fake_tensor(
    dtype: DType,
    shape: IntTuple,
    stride: IntTuple,
    *,
    memspace: AddressSpace = AddressSpace.gmem,
    assumed_align: int | None = None,
) -> Tensor:
    """Make a tensor without memory, to compile a kernel for.

    dtype: its element type. shape, stride: ints are static; a `cute.SymInt`, or a number like `Int32(1024)`, stands for
    a value known only at run time, with the divisibility that it states. memspace: an AddressSpace, by default global
    memory. assumed_align: bytes that the address will be a multiple of (default: one element's).

    >>> cute.runtime.make_fake_tensor(cute.Float16, (cute.sym_int(), 64), stride=(64, 1))
    Tensor(ptr<Float16, gmem, align 2>, (?,64):(64,1))
    """
    if not isinstance(dtype, DType):
        raise CuteError(f"make_fake_tensor: dtype {dtype!r} is not an element type; use one like cute.Float32")
    return Tensor(_pointer(dtype, Int64(0), memspace, assumed_align, "make_fake_tensor"), Layout(shape, stride))


def make_fake_compact_tensor(
    dtype: DType,
    shape: IntTuple,
    *,
    stride_order: Any = None,
    memspace: AddressSpace = AddressSpace.gmem,
    assumed_align: int | None = None,
) -> Tensor:
    """Make a fake tensor, as `make_fake_tensor` does, with compact strides.

    dtype, shape, memspace, assumed_align: as there. stride_order: for each mode its place from the innermost (0)
    outwards; by default the first mode is innermost.

    >>> cute.runtime.make_fake_compact_tensor(cute.Float16, (64, 8))
    Tensor(ptr<Float16, gmem, align 2>, (64,8):(1,64))
    """
    shape = shape if isinstance(shape, tuple) else (shape,)
    if not isinstance(stride_order, (tuple, list, type(None))):
        raise CuteError(f"make_fake_compact_tensor: stride_order {stride_order!r} is not a tuple of places")
    order = tuple(range(len(shape))) if stride_order is None else tuple(stride_order)
    if set(order) != set(range(len(shape))) or len(order) != len(shape):
        raise CuteError(f"make_fake_compact_tensor: stride_order {stride_order!r} must place each mode of {shape} once")
    strides: list[Any] = [1] * len(shape)
    step: Any = 1
    for m in sorted(range(len(shape)), key=order.__getitem__):
        strides[m] = step
        extent = layout.size(shape[m])
        step = step * extent if type(extent) is int else Int64(extent) * step
    return make_fake_tensor(dtype, shape, tuple(strides), memspace=memspace, assumed_align=assumed_align)


def pack(array: Any) -> Any:
    """Pack elements narrower than a byte into bytes (a uint8 array) along the last axis, the first in the lowest bits.

    array: of ml_dtypes' int4, uint4, float4_e2m1fn, float6_e2m3fn or float6_e3m2fn, which have a byte for each element;
    the last axis must make whole bytes. `recast_tensor(from_dlpack(pack(x)), cute.Float4E2M1FN)` is the tensor.

    >>> x = np.arange(8).reshape(2, 4).astype(cute.Float4E2M1FN.numpy)
    >>> cute.runtime.pack(x).shape
    (2, 2)
    """
    try:
        a = np.asarray(array)
    except ValueError as e:
        raise CuteError(f"pack: array {described(array)}: {e}") from None
    width = _narrow(a.dtype, "pack").width
    if a.ndim == 0 or a.shape[-1] * width % 8:
        raise CuteError(f"pack: shape {a.shape}: the last axis of {width}-bit elements does not make whole bytes")
    bits = np.unpackbits(a.view(np.uint8)[..., None], axis=-1, count=width, bitorder="little")
    return np.packbits(bits.reshape(*a.shape[:-1], -1), axis=-1, bitorder="little")


def unpack(packed: Any, dtype: DType) -> Any:
    """Undo `pack`: give the elements of `packed`, a uint8 array, as an array of the NumPy type of `dtype`, a byte for
    each. The last axis must make whole elements.

    >>> x = np.arange(8).reshape(2, 4).astype(cute.Float4E2M1FN.numpy)
    >>> (cute.runtime.unpack(cute.runtime.pack(x), cute.Float4E2M1FN) == x).all()
    np.True_
    """
    if not isinstance(packed, np.ndarray) or packed.dtype != np.uint8:
        raise CuteError(f"unpack: packed {packed!r:.80} is not an array of uint8")
    raw, width = packed, _narrow(dtype.numpy, "unpack").width
    if raw.ndim == 0 or raw.shape[-1] * 8 % width:
        raise CuteError(f"unpack: shape {raw.shape}: the last axis of bytes does not make whole {dtype} elements")
    bits = np.unpackbits(raw, axis=-1, bitorder="little").reshape(*raw.shape[:-1], -1, width)
    return np.packbits(bits, axis=-1, bitorder="little")[..., 0].view(dtype.numpy)


def _narrow(numpy_dtype: Any, what: str) -> DType:
    found = next((d for d in dtypes.NARROW if np.dtype(d.numpy) == np.dtype(numpy_dtype)), None)
    if found is None:
        raise CuteError(f"{what}: {np.dtype(numpy_dtype).name} elements are not narrower than a byte")
    return found
