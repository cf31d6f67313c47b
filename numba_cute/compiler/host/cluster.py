# SPDX-License-Identifier: Apache-2.0
"""Cluster shapes, as a part of the kernel or of a launch."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from ...isa.form.limits import check_any_cluster
from ...seam import CuteError
from ...seam.ground.naming import described


def cluster_shape(*shape: int) -> Callable[[Any], Any]:
    """Decorate a kernel with its cluster shape: ``@cute.cluster_shape(2, 1)`` above ``@cuda.jit``.

    shape: CTAs along x, y and z, one to three positive ints whose product is at most 16; CuteError for any other. A
    plain launch then forms such clusters; the grid must be a multiple of the shape. A kernel that has a shape stays
    as it is, and a second one is made of the same function: ``alone = cute.cluster_shape(1)(gemm)``. PTX
    `.reqnctapercluster`, sm_90.

    >>> @cute.cluster_shape(2, 1)
    ... @cuda.jit
    ... def kernel():
    ...     print(arch.block_idx_in_cluster())
    >>> cute.simulate(kernel)[2, 1]()
    0
    1
    """
    dims = checked_cluster(shape)

    def mark(kernel: Any) -> Any:
        inner = getattr(kernel, "dispatcher", None)
        if inner is not None:  # of `cute.kernel`
            return type(kernel)(mark(inner), kernel.__self__)
        function = getattr(kernel, "py_func", kernel)
        if hasattr(function, "__cute_cluster__"):
            function = copied(function)
            kernel = type(kernel)(function, kernel.targetoptions) if hasattr(kernel, "py_func") else function
        function.__cute_cluster__ = dims
        return kernel

    return mark


def copied(f: Any) -> Any:
    """Return a function like another, with attributes of its own."""
    copy = FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
    copy.__kwdefaults__, copy.__qualname__, copy.__doc__ = f.__kwdefaults__, f.__qualname__, f.__doc__
    copy.__dict__.update(f.__dict__)
    return copy


def checked_extents(what: str, given: Any) -> int | tuple[int, ...]:
    """Return a grid or a block, as `what` names it, as an int or up to three; CuteError if it is none."""
    try:
        if isinstance(given, (str, bytes, dict, set)):
            raise TypeError
        one = isinstance(given, int) or not hasattr(given, "__len__")
        dims = (int(given),) if one else tuple(int(x[0] if type(x) is tuple and len(x) == 1 else x) for x in given)
    except (TypeError, ValueError, OverflowError, RecursionError, CuteError):
        dims, one = (), False
    if not 1 <= len(dims) <= 3:
        raise CuteError(f"launch: {what} {described(given)}: give an integer, or a tuple of up to three")
    return dims[0] if one else dims


def checked_cluster(shape: Any) -> tuple[int, int, int]:
    """Return a cluster shape as three ints; CuteError says what is wrong with it."""
    dims = (shape,) if isinstance(shape, int) else tuple(shape) if isinstance(shape, (tuple, list)) else ()
    if not 1 <= len(dims) <= 3 or not all(isinstance(d, int) and d >= 1 for d in dims):
        raise CuteError(f"cluster={shape!r}: up to three positive ints")
    dims = (*dims, 1, 1)[:3]
    check_any_cluster(dims)
    return dims
