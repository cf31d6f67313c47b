# SPDX-License-Identifier: Apache-2.0
"""The arrays that a simulated launch is given: torch's of the CPU are NumPy's over the same memory."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import dtypes
from ..seam import CuteError
from ..seam.ground.naming import described
from ..seam.hooks.driver import DRIVER

_BY_NAME = {np.dtype(d.numpy).name: np.dtype(d.numpy) for d in dtypes.WHOLE if d is not dtypes.TFloat32}


def on_host(args: Sequence[Any]) -> tuple[Any, ...]:
    """Return a launch's arguments with a NumPy array for each tensor of torch's, to any depth of tuples.

    args: the arguments. CuteError: a tensor on a GPU, one that requires a gradient, or one that is not what lies in its
    memory."""
    return tuple(map(_one, args))


def _one(value: Any) -> Any:
    if isinstance(value, tuple) and type(value) is not tuple and not hasattr(value, "_make"):
        return value
    if isinstance(value, tuple):
        made = on_host(value)
        same = all(a is b for a, b in zip(made, value))
        return value if same else getattr(type(value), "_make", tuple)(made)
    asks = [getattr(type(value), name, None) for name in ("data_ptr", "stride", "element_size")]
    return _array(value) if all(map(callable, asks)) else value


class _Memory:
    """A view of a tensor's memory for NumPy, which keeps the tensor alive."""

    def __init__(self, tensor: Any) -> None:
        size = tensor.element_size()
        self.tensor = tensor
        self.__array_interface__ = {
            "data": (tensor.data_ptr(), False), "shape": tuple(tensor.shape), "typestr": f"<u{size}", "version": 3,
            "strides": tuple(s * size for s in tensor.stride()),
        }  # fmt: skip


def _array(tensor: Any) -> Any:
    """View the memory of one of torch's as a NumPy array."""
    dtype = _BY_NAME.get(str(tensor.dtype).removeprefix("torch."))
    if dtype is None:  # which the compiler's front end refuses
        return tensor
    address = int(tensor.data_ptr())
    for wrong, do in (
        (tensor.is_cuda and not _stands_for_a_gpu(address), "give tensors of the CPU: x.cpu()"),
        (tensor.requires_grad, "a kernel has no gradient: give x.detach()"),
        (getattr(tensor, "is_neg", bool)(), "its memory holds the other sign: give x.resolve_neg()"),
        (address == 0 and tensor.numel() > 0, "it has no memory: give a tensor with data"),
    ):
        if wrong:
            raise CuteError(f"simulate: argument {described(tensor)}: {do}")
    if not tensor.numel():
        return np.empty(tuple(tensor.shape), dtype)
    return np.asarray(_Memory(tensor)).view(dtype)


def _stands_for_a_gpu(address: int) -> bool:
    """Tell whether memory of the host stands for a GPU's there (see `Driver.held`)."""
    return any(first <= address < first + nbytes for first, nbytes, _, _ in DRIVER.held())


def dim3(name: str, value: Any) -> tuple[int, int, int]:
    """Give the three extents that a value says. name: of what they are, for the CuteError."""
    dims = tuple(map(integer, value if isinstance(value, (tuple, list)) else (value,)))
    if not 1 <= len(dims) <= 3 or any(d is None or d < 1 for d in dims):
        raise CuteError(f"{name} {value!r} must be one to three positive integers")
    x, y, z = (*dims, 1, 1)[:3]
    return x, y, z  # type: ignore[return-value]


def integer(value: Any) -> int | None:
    """Give an integer of Python's, NumPy's or the like, or None."""
    try:
        return operator.index(value)
    except TypeError:
        return None
