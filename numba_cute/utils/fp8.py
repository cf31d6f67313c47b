# SPDX-License-Identifier: Apache-2.0
"""8-bit floats on the host: many array libraries cannot hold them, and keep their bits in Uint8 arrays instead."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import runtime
from ..dtypes import DType, Float8E4M3FN, Float8E5M2
from ..seam import CuteError, traced
from ..tensor.move import WIDEST
from ..tensor.tensor import Tensor, recast_tensor

__all__ = ["create_cute_tensor_for_fp8", "get_divisibility", "is_fp8_dtype"]

_TORCH = {"Float8E4M3FN": "float8_e4m3fn", "Float8E5M2": "float8_e5m2"}


@traced
def is_fp8_dtype(dtype: Any) -> bool:
    """Return whether `dtype` is Float8E4M3FN or Float8E5M2.

    >>> utils.is_fp8_dtype(cute.Float8E4M3FN)
    True
    """
    return isinstance(dtype, DType) and dtype in (Float8E4M3FN, Float8E5M2)


def create_cute_tensor_for_fp8(
    storage_tensor: Any, dtype: DType, leading_dim: int, source_f32_tensor: Any = None
) -> Tensor:
    """Make a tensor of `dtype` elements over the memory of `storage_tensor`, with a dynamic layout. If that begins at
    a multiple of 16 bytes, the tensor's type says so. On the host.

    storage_tensor: an array of NumPy or torch: of bytes (uint8, int8) if dtype is an 8-bit float, else of dtype.
    leading_dim: the contiguous dimension. source_f32_tensor: an array of floats of the same shape and library, first
    converted (to nearest even) into the storage.

    >>> codes = np.zeros((2, 8), np.uint8)
    >>> utils.create_cute_tensor_for_fp8(codes, cute.Float8E4M3FN, 1, np.ones((2, 8), np.float32)).element_type
    Float8E4M3FN
    """
    if not isinstance(dtype, DType):
        raise CuteError(f"create_cute_tensor_for_fp8: dtype {dtype!r} is not an element type")
    tensor = runtime.from_dlpack(storage_tensor)
    if tensor.iterator.address % WIDEST == 0:
        tensor = runtime.from_dlpack(storage_tensor, assumed_align=WIDEST)
    if tensor.element_type.width != dtype.width:
        raise CuteError(
            f"create_cute_tensor_for_fp8: storage_tensor holds {tensor.element_type}, of another width than {dtype}; "
            "give an array of uint8 for 8-bit floats"
        )
    if source_f32_tensor is not None:
        _fill(storage_tensor, dtype, source_f32_tensor)
    tensor = tensor.mark_layout_dynamic(leading_dim)
    return tensor if tensor.element_type == dtype else recast_tensor(tensor, dtype)


def _fill(storage: Any, dtype: DType, source: Any) -> None:
    """Convert `source` into the bits of `storage`."""
    if tuple(storage.shape) != tuple(source.shape):
        raise CuteError(
            f"create_cute_tensor_for_fp8: source_f32_tensor has shape {tuple(source.shape)}, but storage_tensor has "
            f"{tuple(storage.shape)}"
        )
    if isinstance(storage, np.ndarray):
        with np.errstate(over="ignore"):
            storage[...] = np.asarray(source).astype(dtype.numpy).view(storage.dtype)
    elif is_fp8_dtype(dtype):
        import torch

        storage.copy_(source.to(getattr(torch, _TORCH[dtype.name])).view(storage.dtype))
    else:
        storage.copy_(source)


@traced
def get_divisibility(contiguous_dim_size: int, upper_bound: int = 128) -> int:
    """Return the largest power of two, at most `upper_bound` (one itself), that divides a dimension of
    `contiguous_dim_size` elements.

    >>> utils.get_divisibility(96, 128)
    32
    """
    size, bound = contiguous_dim_size, upper_bound
    if type(size) is not int or size < 1:
        raise CuteError(f"get_divisibility: contiguous_dim_size {size!r} must be a positive int")
    if type(bound) is not int or bound < 1 or bound & (bound - 1):
        raise CuteError(f"get_divisibility: upper_bound {bound!r} must be a power of two")
    return min(size & -size, bound)
