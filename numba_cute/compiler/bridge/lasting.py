# SPDX-License-Identifier: Apache-2.0
"""Find the parts of a call that are this library's alone, and so the same in every kernel: all else may change between
two kernels."""

from __future__ import annotations

import functools
from types import BuiltinFunctionType, FunctionType
from typing import Any

from ...seam.ground.packages import is_library
from ...seam.hooks.recording import recording
from ...seam.marks.constexpr import Constexpr
from ...seam.marks.host_objects import python_of
from ...seam.marks.plain import is_users_module
from ..ground.building import known_block, known_launch
from ..ground.numba_cuda import types
from ..ground.target import current_arch
from .object_types import BoundJitted, BoundTraced, StructRef, Value

_NUMBERS = (types.Number, types.Boolean, types.Literal, types.NoneType, types.Array, types.SliceType)
_CONSTANTS = (int, bool, float, complex, str, bytes, type(None), type(Ellipsis), range, slice)


def setting() -> tuple[Any, ...]:
    """Return what else this library's functions ask: the target, and what is known of the launch."""
    return current_arch(), known_launch(), known_block()


def is_lasting_function(fn: Any) -> bool:
    """Say whether a function's code is this library's own, and reads nothing of a user's; while a timeline is recorded
    nothing is."""
    if not is_library(getattr(fn, "__globals__", {}).get("__name__")):  # a decorator of the user's may copy __module__
        return False
    return recording() is None and (not fn.__closure__ or _closes_over_ours(fn))


@functools.cache
def _closes_over_ours(fn: Any) -> bool:
    return all(cell.cell_contents is fn or is_lasting_value(cell.cell_contents) for cell in fn.__closure__)


def lasts(ty: Any) -> bool:
    """Say whether nothing in a type is of a user: no function, class or object."""
    if isinstance(ty, _NUMBERS):
        return True
    if isinstance(ty, types.Omitted):
        return is_lasting_value(ty.value)
    if isinstance(ty, types.Dispatcher):
        return is_lasting_function(ty.dispatcher.py_func)
    if isinstance(ty, types.BaseTuple):
        return not hasattr(ty, "instance_class") and all(map(lasts, ty))
    if isinstance(ty, Value):
        return _of_value(ty)
    if isinstance(ty, StructRef):
        return _is_lasting_class(ty.cls) and all(lasts(t) for _, t in ty.fields)
    if isinstance(ty, (BoundTraced, BoundJitted)):
        return lasts(ty.this)
    return False


def _of_value(ty: Value) -> bool:
    found: bool | None = ty.__dict__.get("_cute_lasts")
    if found is None:
        found = ty._cute_lasts = _of_spec(ty.spec)
    return found


def _of_spec(spec: Any) -> bool:
    kind = spec[0]
    if kind == "leaf":
        return not isinstance(spec[1], StructRef) or lasts(spec[1])
    if kind == "const":
        return is_lasting_value(spec[2])
    return (kind != "node" or _is_lasting_class(spec[1])) and all(map(_of_spec, spec[-1]))


def _is_lasting_class(cls: Any) -> bool:
    """Say whether a class and its bases are this library's, or Python's own."""
    return all(is_library(c.__module__) or c.__module__ in _PYTHONS for c in cls.__mro__)


_PYTHONS = ("builtins", "typing", "enum", "abc", "functools", "operator", "_operator", "math")


def is_lasting_value(obj: Any) -> bool:
    """Say whether nothing in an object is of a user."""
    if type(obj) in _CONSTANTS:
        return True
    if type(obj) in (tuple, list):
        return all(map(is_lasting_value, obj))
    if isinstance(obj, (FunctionType, BuiltinFunctionType)):
        return obj.__module__ in _PYTHONS or is_lasting_function(obj)
    if isinstance(obj, type):
        return _is_lasting_class(obj)
    if isinstance(obj, functools.partial):
        return all(map(is_lasting_value, (obj.func, *obj.args, *obj.keywords.values())))
    if isinstance(obj, Constexpr) or python_of(obj) is not None or not _is_lasting_class(type(obj)):
        return False
    return all(map(_is_simple, getattr(obj, "__dict__", {}).values()))


def _is_simple(obj: Any) -> bool:
    """Say whether a field of an object of this library holds nothing of a user's."""
    if isinstance(obj, type):
        return not is_users_module(obj.__module__)
    return not isinstance(obj, FunctionType) or is_lasting_value(obj)
