# SPDX-License-Identifier: Apache-2.0
"""Host functions that were compiled with tensors, and are called with arrays: what was promised of the tensors holds of
the arrays, and is checked."""

from __future__ import annotations

from typing import Any

from ..compiler.host.result import CompiledHost
from ..dtypes import Scalar
from ..layout import Layout
from ..runtime import from_dlpack
from ..seam import CuteError
from ..seam.marks.constexpr import parameters_of, with_static
from ..tensor.tensor import Tensor


class CompiledForArrays(CompiledHost):
    """A compiled host function whose arrays become tensors as those that it was compiled with."""

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run the host function on `args` and `named`, as `CompiledHost` does."""
        whole = with_static(self.host, self.args, args, named)
        for name, first in zip(parameters_of(self.host)[0], self.args):
            if isinstance(first, Tensor) and hasattr(whole.get(name), "__dlpack__"):
                whole[name] = tensor_as(first, whole[name], name)
        return self.host(**whole)


def tensor_as(first: Tensor, array: Any, name: str) -> Tensor:
    """Make a tensor of an array with the alignment, and what is static and what divides extents and strides, of a
    `first` one. name: the argument. CuteError: the array is not so."""
    made = from_dlpack(array)
    if made.element_type.width == first.element_type.width:
        made.element_type = first.element_type
    if made.element_type is not first.element_type or type(first.layout) is not Layout:
        raise CuteError(f"{name}: compiled with {first!r}, and called with an array of {made.element_type}")
    if not isinstance(first.shape, tuple) or len(first.shape) != len(made.shape):
        raise CuteError(f"{name}: compiled with {first!r}, and called with an array of shape {made.shape}")
    made = from_dlpack(array, assumed_align=first.iterator.alignment)
    made.element_type = first.element_type
    shape, stride = [], []
    for i, old in enumerate(first.shape):
        n = made.shape[i]
        shape.append(_as(old, n, f"{name}: extent {i}"))
        stride.append(_as(first.stride[i], made.stride[i] if n != 1 else int(first.stride[i]), f"{name}: stride {i}"))
    return Tensor(made.iterator, Layout(tuple(shape), tuple(stride)))


def _as(old: Any, new: int, what: str) -> Any:
    if isinstance(old, Scalar):
        if new % old.divisor:
            raise CuteError(f"{what} is {new}, and was compiled as a multiple of {old.divisor}")
        return Scalar(old.dtype, new, old.divisor)
    if old != new:
        raise CuteError(
            f"{what} is {new}, and the function was compiled for {old}: compile it for that, or make it dynamic"
        )
    return new
