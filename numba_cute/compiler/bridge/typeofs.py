# SPDX-License-Identifier: Apache-2.0
"""The Numba types of this library's objects, as arguments, globals and closure variables.

Each class is registered by itself, so that the types of anything else are found as Numba finds them, in the same time.
"""

from __future__ import annotations

import enum
import functools
import threading
import warnings
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from ... import dtypes, seam
from ...seam import CuteError
from ...seam.marks.constexpr import Constexpr
from ...seam.marks.host_objects import as_argument
from ...seam.marks.plain import is_named_tuple, is_plain_class, refuse_own_operators
from ..ground.numba import NumbaExperimentalFeatureWarning
from ..ground.numba_cuda import Purpose, typeof, typeof_impl, types
from ..ground.ownership import owns
from . import tree
from .given_floats import GivenFloat
from .leaf_types import leaf_type
from .object_types import Value


def _of_static(obj: Any, c: Any) -> Value:
    """Return the type of a compile-time object. One that is immutable with all that it holds remembers its own:
    launches ask every time."""
    found: Value | None = obj.__dict__.get("_cute_numba_type")
    if found is None:
        found = _of_constant(obj, c)
        if found.lasts:
            object.__setattr__(obj, "_cute_numba_type", found)
    return found


def _of_struct(obj: Any, c: Any) -> Value:
    raise CuteError(
        f"{type(obj).__name__} is held by reference and cannot be a kernel's argument: pass what its fields are made "
        "from, and construct it in the kernel"
    )


def _of_constant(obj: Any, c: Any) -> Value:
    spec = tree.flatten(obj, [])
    changes = tree.changes(spec)
    return Value(spec, changes if c.purpose is Purpose.argument else (), lasts=not changes)


def _register_marked(cls: type) -> None:
    typeof_impl.register(cls)(_of_static if seam.is_frozen_class(cls) else _of_struct)


def _is_compile_time(obj: Any) -> bool:
    """Say whether a function or class is one of this library's, or was marked by it."""
    if isinstance(obj, type):
        if obj in dtypes.KINDS:
            return True
        return seam.is_frozen_class(obj) or seam.is_struct_class(obj) or issubclass(obj, seam.StaticEnum)
    return seam.is_traced(obj)


_CALLED = (FunctionType, BuiltinFunctionType, functools.partial)
_MAY_HOLD_ONE = (*_CALLED, MethodType, tuple, type, Constexpr)


class _Asking(threading.local):
    def __init__(self) -> None:
        self.whose: list[Callable[[], bool]] = []


_asking = _Asking()
"""The arguments whose types are asked for, innermost last: whether they are a kernel's of this library."""


def type_of_argument(value: Any) -> Any:
    """Return the type of an argument of a kernel of this library. ValueError: it can be none."""
    refuse_own_operators(value)
    if not isinstance(value, tuple):
        return _asked(lambda: True, typeof, value, Purpose.argument)
    with warnings.catch_warnings():  # of a tuple of functions: a kernel calls each by itself
        warnings.simplefilter("ignore", NumbaExperimentalFeatureWarning)
        return _asked(lambda: True, typeof, value, Purpose.argument)


def _asked(ours: Callable[[], bool], find: Callable[..., Any], *args: Any) -> Any:
    _asking.whose.append(ours)
    try:
        return find(*args)
    finally:
        _asking.whose.pop()


def _takes_functions(c: Any) -> bool:
    """Say whether a function that is asked for is an argument of a kernel of this library: Numba's take none."""
    return c.purpose is Purpose.argument and bool(_asking.whose) and _asking.whose[-1]()


def typing_own(typeof_pyval: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Make of a dispatcher's `typeof_pyval` one that knows functions where its kernel is this library's."""

    def typed(self: Any, val: Any) -> Any:
        if not isinstance(val, _MAY_HOLD_ONE):
            return typeof_pyval(self, val)
        return _asked(lambda: owns(self.py_func, ()), typeof_pyval, self, val)

    return typed


def _extend(cls: type) -> None:
    """Find the types of functions and classes of this library among all functions and classes."""
    before: Callable[[Any, Any], Any] = typeof_impl.dispatch(cls)

    def typeof_marked(obj: Any, c: Any) -> Any:
        given = (isinstance(obj, _CALLED) or is_plain_class(obj) or is_named_tuple(obj)) and _takes_functions(c)
        return _of_constant(obj, c) if given or _is_compile_time(obj) else before(obj, c)

    typeof_impl.register(cls)(typeof_marked)


_unknown: Callable[[Any, Any], Any] = typeof_impl.dispatch(object)


def _of_method(obj: MethodType, c: Any) -> Any:
    """Return the type of a bound method that is a kernel's argument: of what kernels hold of it."""
    kept = as_argument(obj) if _takes_functions(c) else obj
    return _unknown(obj, c) if kept is obj else _of_constant(kept, c)


def _of_static_argument(obj: Constexpr, c: Any) -> Any:
    if isinstance(obj.value, (bool, int)):
        return types.literal(obj.value)
    if isinstance(obj.value, float):
        return GivenFloat(obj.value)
    if callable(obj.value) and not isinstance(obj.value, type) and not seam.is_frozen_class(type(obj.value)):
        return _of_constant(obj.value, c)
    return typeof_impl(obj.value, c)


seam.tell_marked(_register_marked)
typeof_impl.register(Constexpr)(_of_static_argument)
typeof_impl.register(MethodType)(_of_method)
typeof_impl.register(dtypes.Scalar)(lambda obj, c: leaf_type(obj))
typeof_impl.register(dtypes.DType)(_of_constant)
typeof_impl.register(seam.StaticEnum)(_of_constant)
for _kind in (FunctionType, BuiltinFunctionType, functools.partial, type, enum.EnumMeta):
    _extend(_kind)
