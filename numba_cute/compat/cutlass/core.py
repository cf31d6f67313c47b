# SPDX-License-Identifier: Apache-2.0
"""Names of `cutlass.cute` that are not those of this library's own modules."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, Union

from numba_cute import where

from ...compiler import jit as _jit
from ...compiler.host.kernels import CONVERTS
from ...dtypes import Scalar
from ...layout import ComposedLayout
from ...runtime import from_dlpack
from ...seam import traced
from ...tensor.tensor import Tensor
from . import options as _options
from .options import *  # noqa: F403 - `cute.compile` and its options
from .tma_traits import CopyAtom

__all__ = ["CopyAtom", "Int", "and_", "jit", "native_struct", "select_", *_options.__all__]

_Tensor, _ComposedLayout = Tensor, ComposedLayout  # by these names files reach the classes
select_ = where

Int = Union[int, Scalar]  # noqa: UP007 - files subscribe and unite it as a class


@traced
def _pack_shape(shape: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """Return a shape: in the CuTe DSL as its compiler has it."""
    return shape


_pack_tile = _pack_shape


@traced
def and_(lhs: Any, *rest: Any, loc: Any = None, ip: Any = None) -> Any:
    """Return whether all conditions hold, each of which is computed. lhs, rest: they."""
    result = lhs
    for x in rest:
        if isinstance(result, bool):
            result = x if result else False
        elif isinstance(x, bool):
            result = result if x else False
        else:
            result = (result != 0) & (x != 0)
    return result


def native_struct(cls: Any) -> Any:
    """Decorate a class of run-time values: here a dataclass, as kernels take them."""
    return cls if dataclasses.is_dataclass(cls) else dataclasses.dataclass(cls)


def jit(function: Any = None, **options: Any) -> Any:
    """Mark a function of the host or of a kernel, as `numba_cute.jit`: of the arrays that the host gives, tensors are
    made, whose extents and strides are run-time values.

    function: the Python. options: those of `cuda.jit(device=True)`; the CuTe DSL's `preprocess` is taken.
    """
    options.pop("preprocess", None)
    if function is None:
        return functools.partial(jit, **options)
    vars(getattr(function, "py_func", function))[CONVERTS] = _given
    return _jit(function, **options)


def _given(args: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the arguments that the Python takes, of those of a call. `no_cache` is for the compiler."""
    named.pop("no_cache", None)
    return [_tensors(a) for a in args], {n: _tensors(a) for n, a in named.items()}


def _tensors(value: Any) -> Any:
    """Return what a host function is given: tensors for arrays, to any depth."""
    if type(value) in (tuple, list):
        return type(value)(map(_tensors, value))
    if not hasattr(value, "__dlpack__"):
        return value
    made = from_dlpack(value)
    ones = [i for i, d in enumerate(made.stride) if d == 1]
    wide = [i for i in ones if made.shape[i] != 1]
    lead = next(iter([*wide[::-1], *ones[::-1]]), None)
    return made if len(made.shape) == 0 else made.mark_layout_dynamic(leading_dim=lead)
