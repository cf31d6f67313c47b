# SPDX-License-Identifier: Apache-2.0
"""Names of `cutlass.cute.runtime`: stand-ins for compiling, and switches of other launches."""

from __future__ import annotations

import dataclasses
from typing import Any

from ...dtypes import DType
from ...runtime import from_dlpack as _from_dlpack, make_fake_tensor, make_ptr as _make_ptr
from ...seam import CuteError
from ...seam.hooks.driver import DRIVER
from ...seam.marks.constexpr import LeftOut
from ...tensor.address import Address
from ...tensor.dlpack import element_of
from ...tensor.pointer import AddressSpace, Pointer
from ...tensor.tensor import Tensor
from ..runs import RUN

__all__ = ["find_runtime_libraries", "from_dlpack", "load_module", "make_fake_stream", "make_ptr", "nullptr"]


def from_dlpack(
    tensor_dlpack: Any, assumed_align: int | None = None, use_32bit_stride: bool = False, *,
    enable_tvm_ffi: bool = False, force_tf32: bool = False,
) -> Tensor:  # fmt: skip
    """Make a tensor over the memory of an array, as `numba_cute.runtime.from_dlpack`.

    tensor_dlpack, assumed_align: as there. use_32bit_stride: taken; offsets have the width that they need.
    enable_tvm_ffi: taken; launches are as fast. force_tf32: elements of 32 bits are TFloat32. Of torch's fake and meta
    tensors it makes what stands for a tensor, to compile for.
    """
    made = _standing_for(tensor_dlpack, assumed_align)
    if made is None:
        made = _from_dlpack(tensor_dlpack, assumed_align)
    if force_tf32:
        from ... import TFloat32

        made.element_type = TFloat32
    return made


def _standing_for(x: Any, assumed_align: int | None) -> Tensor | None:
    """Return what stands for a tensor of torch's without memory; None for others."""
    if not hasattr(x, "fake_mode") and getattr(x, "is_meta", False) is not True:
        return None
    shape, stride = tuple(map(int, x.shape)), tuple(map(int, x.stride()))
    return make_fake_tensor(element_of(x.dtype), shape, stride, assumed_align=assumed_align)


class _Current(int, LeftOut):
    """The stream that torch is using."""


def make_fake_stream(*, use_tvm_ffi_env_stream: bool = False) -> int:
    """Make a stream to compile with: the default one. use_tvm_ffi_env_stream: calls of what is compiled leave the
    argument out, and run in the stream that torch is using."""
    return _Current() if use_tvm_ffi_env_stream else 0


def find_runtime_libraries(*, enable_tvm_ffi: bool = True) -> list[str]:
    """Return the paths of the libraries that compiled functions need: there are none. enable_tvm_ffi: taken."""
    return []


def load_module(file_path: str, *, enable_tvm_ffi: bool = False) -> Any:
    """Refuse: kernels are kept and shipped by `python -m numba_cute cache`."""
    raise CuteError(
        f"load_module({file_path!r}): there are no files of compiled functions here; kernels are kept on disk by "
        "themselves, and `python -m numba_cute cache export FILE` ships them"
    )


def make_ptr(
    dtype: DType, value: Any, mem_space: AddressSpace = AddressSpace.generic, assumed_align: int | None = None
) -> Pointer:  # fmt: skip
    """Make a pointer from an address, as `numba_cute.make_ptr`; in a simulated run one into a GPU's memory knows it.

    dtype, value, mem_space, assumed_align: as there; value also as `ctypes` has it.
    """
    value = getattr(value, "value", value)
    made = _make_ptr(dtype, value, mem_space, assumed_align)
    if RUN.get() is None or type(value) is not int:
        return made
    for first, nbytes, _, owner in DRIVER.held():
        if first <= value < first + nbytes:
            return dataclasses.replace(made, address=Address(value, owner, memory=(first, first + nbytes)))
    return made


def nullptr(
    dtype: DType, mem_space: AddressSpace = AddressSpace.gmem, assumed_align: int | None = None
) -> Pointer:  # fmt: skip
    """Make a pointer to nothing, to compile for. dtype, mem_space, assumed_align: as for `make_ptr`."""
    return _make_ptr(dtype, 0, mem_space, assumed_align)
