# SPDX-License-Identifier: Apache-2.0
"""Linear algebra of one thread on whole tensors of static shape. (Products of matrices: `nvgpu.MmaUniversalOp`.)"""

from __future__ import annotations

from typing import Any

from .. import layout
from ..seam import CuteError, Number, traced
from .ssa import elementwise
from .tensor import Tensor, static_size

__all__ = ["axpby", "gemv"]


def _check(what: str, **tensors: Any) -> None:
    for name, t in tensors.items():
        if not isinstance(t, Tensor):
            raise CuteError(f"{what}: {name} {t!r} is not a tensor")
        static_size(t, what)


@traced
def axpby(alpha: Number, x: Tensor, beta: Number, y: Tensor) -> None:
    """Compute y = alpha * x + beta * y, element by element, in the type in which x and y meet. alpha, beta: scalars. x,
    y: tensors of static shape with as many elements. Any thread.

    >>> x, y = np.ones(4, np.float32), np.ones(4, np.float32)
    >>> tensors = [cute.runtime.from_dlpack(a) for a in (x, y)]
    >>> cute.simulate(lambda x, y: cute.axpby(2.0, x, 3.0, y))[1, 1](*tensors)
    >>> y
    array([5., 5., 5., 5.], dtype=float32)
    """
    _check("axpby", x=x, y=y)
    if layout.size(x.shape) != layout.size(y.shape):
        raise CuteError(f"axpby: x has shape {x.shape} and y {y.shape}; they must have as many elements")
    total = x.load().reshape(y.shape) * alpha + y.load() * beta
    y.store(total.to(y.element_type))


@traced
def gemv(alpha: Number, a: Tensor, x: Tensor, beta: Number, y: Tensor) -> None:
    """Compute y = alpha * (a @ x) + beta * y in the type in which they meet. alpha, beta: scalars. a: a tensor (M, K);
    x: (K); y: (M); all static. Any thread.

    >>> a, x, y = np.ones((2, 3), np.float32), np.ones(3, np.float32), np.zeros(2, np.float32)
    >>> tensors = [cute.runtime.from_dlpack(t) for t in (a, x, y)]
    >>> cute.simulate(lambda a, x, y: cute.gemv(2.0, a, x, 0.0, y))[1, 1](*tensors)
    >>> y
    array([6., 6.], dtype=float32)
    """
    _check("gemv", a=a, x=x, y=y)
    if layout.rank(a.layout) != 2:
        raise CuteError(f"gemv: a has shape {a.shape}; it must be (M, K)")
    m, k = int(layout.size(a.shape[0])), int(layout.size(a.shape[1]))
    if (layout.size(y.shape), layout.size(x.shape)) != (m, k):
        raise CuteError(f"gemv: a has shape {a.shape}, x {x.shape} and y {y.shape}; they must be (M, K), (K) and (M)")
    matrix, vector = a.load().reshape((m, k)), x.load().reshape(k)
    product = matrix[None, 0] * vector[0]
    for i in range(1, k):
        product = elementwise("fma", matrix[None, i], vector[i], product)
    total = product * alpha + y.load().reshape((m,)) * beta
    y.store(total.reshape(y.shape).to(y.element_type))
