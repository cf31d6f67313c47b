# SPDX-License-Identifier: Apache-2.0
"""Arguments of a launch for another process: recipes that can be pickled, and arguments made from them."""

from __future__ import annotations

import enum
import importlib
from typing import Any

import numpy as np

from ...dtypes import DType

_PLAIN = (bool, int, float, complex, str, bytes, type(None), DType, enum.Enum, np.generic)


def recipe(value: Any) -> Any:
    """Return what `made` makes an argument like this from: arrays of NumPy with their values, arrays on a GPU of the
    same kind, shape and strides with random values. None for what it cannot."""
    if isinstance(value, _PLAIN):
        return "plain", value
    if isinstance(value, (tuple, list)):
        items = [recipe(v) for v in value]
        return None if None in items else ("items", type(value), items)
    if isinstance(value, np.ndarray):
        return "plain", value
    if callable(getattr(value, "data_ptr", None)) and callable(getattr(value, "stride", None)):
        device, dtype = str(value.device), str(value.dtype).removeprefix("torch.")
        return "torch", tuple(value.shape), tuple(value.stride()), dtype, device
    library = type(value).__module__.partition(".")[0]
    if library in ("numba", "numba_cuda_mlir", "cupy") and hasattr(value, "__cuda_array_interface__"):
        host = value.get() if library == "cupy" else value.copy_to_host()
        return library, host
    return None


def made(how: Any) -> Any:
    """Make an argument from its recipe."""
    kind, *rest = how
    if kind == "plain":
        return rest[0]
    if kind == "items":
        cls, items = rest
        values = [made(i) for i in items]
        return cls(*values) if hasattr(cls, "_fields") else cls(values)
    if kind == "torch":
        return _torch(*rest)
    if kind == "cupy":
        return importlib.import_module("cupy").asarray(rest[0])
    return importlib.import_module("numba.cuda").to_device(rest[0])


def _torch(shape: tuple[int, ...], stride: tuple[int, ...], dtype: str, device: str) -> Any:
    torch = importlib.import_module("torch")
    kind = getattr(torch, dtype)
    room = 1 + sum((n - 1) * d for n, d in zip(shape, stride) if n) if 0 not in shape else 0
    if kind.is_floating_point or kind.is_complex:
        flat = torch.randn(room, device=device).to(kind)
    elif kind is torch.bool:
        flat = torch.randint(0, 2, (room,), device=device).to(kind)
    else:
        flat = torch.randint(0, 100, (room,), device=device, dtype=kind)
    return flat.as_strided(shape, stride)
