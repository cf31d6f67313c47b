# SPDX-License-Identifier: Apache-2.0
"""The CuTe IR's names for what a tensor does as a whole, as functions of it."""

from __future__ import annotations

from typing import Any

from ..seam import CuteError, Number, traced
from .algebra import shape, stride
from .ssa import TensorSSA
from .tensor import Tensor

__all__ = ["clear", "fill", "get_shape", "get_stride", "load", "store"]

get_shape = shape
get_stride = stride


def _tensor(t: Any, what: str) -> Tensor:
    if not isinstance(t, Tensor):
        raise CuteError(f"{what}: tensor {t!r} is not a tensor")
    return t


@traced
def load(tensor: Tensor) -> TensorSSA:
    """Load all elements of `tensor`, whose shape is static, as one immutable vector in registers: `tensor.load()`. Any
    thread. Raises CuteError for anything else. PTX ld and mov, any target.

    >>> t = cute.runtime.from_dlpack(np.arange(4, dtype=np.float32))
    >>> cute.simulate(lambda t: print(cute.load(t).reduce(cute.ReductionOp.ADD, 0.0)))[1, 1](t)
    6.0
    """
    return _tensor(tensor, "load").load()


@traced
def store(value: TensorSSA, tensor: Tensor) -> None:
    """Set all elements of `tensor`, whose shape is static, from `value`, a TensorSSA of as many elements of its type:
    `tensor.store(value)`. Any thread. Raises CuteError for others. PTX st and mov, any target.

    >>> x = cute.runtime.from_dlpack(np.arange(4, dtype=np.float32))
    >>> def kernel(x):
    ...     cute.store(x.load() + 1, x)
    ...     print(x[3])
    >>> cute.simulate(kernel)[1, 1](x)
    4.0
    """
    if isinstance(value, Tensor):
        raise CuteError("store: value is a tensor: give the vector first and the tensor second, store(v, t)")
    _tensor(tensor, "store").store(value)


@traced
def fill(tensor: Tensor, value: Number) -> None:
    """Set every element of `tensor`, whose shape is static, to `value`: `tensor.fill(value)`. Any thread. Raises
    CuteError for anything else. PTX st and mov, any target.

    >>> x = np.zeros(4, np.float32)
    >>> cute.simulate(lambda t: cute.fill(t, 2))[1, 1](cute.runtime.from_dlpack(x))
    >>> x
    array([2., 2., 2., 2.], dtype=float32)
    """
    _tensor(tensor, "fill").fill(value)


@traced
def clear(tensor: Tensor) -> None:
    """Set every element of `tensor`, whose shape is static, to zero. Any thread. Raises CuteError for anything else.
    PTX st and mov, any target.

    >>> x = np.ones(4, np.float32)
    >>> cute.simulate(lambda t: cute.clear(t))[1, 1](cute.runtime.from_dlpack(x))
    >>> x
    array([0., 0., 0., 0.], dtype=float32)
    """
    _tensor(tensor, "clear").fill(0)
