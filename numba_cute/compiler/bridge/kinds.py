# SPDX-License-Identifier: Apache-2.0
"""Tell the simulator the types of numbers, and what is known of a function's arguments (`typed.meetings`)."""

from __future__ import annotations

import functools
import inspect
from types import CodeType, MethodType
from typing import Any

from ... import seam
from ...seam import CuteError
from ...seam.marks import plain
from ...typed.meetings import LITERALS, Fields, Kind, Static, Version, group, outline
from ..emit.leaves import dtype_of
from ..ground.lifted import written
from ..ground.memory import memory
from ..ground.numba_cuda import types
from .given_floats import GivenFloat
from .leaf_types import Multiple
from .object_types import StructRef, Value
from .tree import Spec, fields_of
from .values import numba_type


def kind_of_type(ty: types.Type) -> Kind:
    """Return what the simulator converts to, for values of a type; None if nothing in them is converted."""
    if isinstance(ty, Value):
        return _kind_within(ty.spec)
    if isinstance(ty, (types.Omitted, types.Literal)):
        return LITERALS.get(type(ty.value if isinstance(ty, types.Omitted) else ty.literal_value))
    if isinstance(ty, types.BaseTuple):
        return group(map(kind_of_type, ty))
    if isinstance(ty, GivenFloat):
        return LITERALS[float]
    try:
        return dtype_of(ty.literal_type if isinstance(ty, Multiple) else ty)
    except CuteError:  # no number, or one that this library has no type for
        return None


def _kind_within(spec: Spec) -> Kind:
    """Return the kind of a part of an immutable object, of which numbers alone are converted."""
    if spec[0] == "leaf":
        return kind_of_type(spec[1]) if isinstance(spec[1], (types.Integer, types.Boolean)) else None
    if spec[0] in ("tuple", "list", "named"):
        return group(map(_kind_within, spec[-1]))
    if spec[0] == "node":
        return Fields(tuple(zip(fields_of(spec[1]), map(_kind_within, spec[2]))))
    return None


def given_as(ty: types.Type) -> Any:
    """Return what is known of an argument of a type: its `Fields`, its value (`Static`), or its kind."""
    if isinstance(ty, StructRef):
        return Fields(tuple((name, given_as(t)) for name, t in ty.fields))
    if isinstance(ty, types.Literal):
        return Static(ty.literal_value)
    if isinstance(ty, GivenFloat):
        return Static(ty.value)
    return group(map(given_as, ty)) if isinstance(ty, types.BaseTuple) else outline(kind_of_type(ty))


def held_by(ty: types.Type) -> tuple[tuple[str, Any], ...]:
    """Return the fields of an immutable object that are numbers, by name: a `Static`, or None of run time."""
    if not isinstance(ty, Value) or ty.spec[0] != "node":
        return ()
    parts = zip(fields_of(ty.spec[1]), ty.spec[2])
    numbers = ((name, part) for name, part in parts if part[0] == "leaf" or part[1:2] in ((int,), (bool,)))
    return tuple((name, Static(part[2]) if part[0] == "const" else None) for name, part in numbers)


def note_version(code: CodeType, version: Version) -> None:
    """Record a version of a function that the front end made."""
    memory().meetings.setdefault(written(code), set()).add(version)


def note_traced(fn: Any, pysig: inspect.Signature, args: tuple[types.Type, ...]) -> None:
    """Note that a function is traced for arguments of some types, if it is the user's: nothing in it is converted.

    pysig: the parameters that the call fills.
    """
    fn, args = _whole_call(fn, pysig, args)
    function = getattr(fn, "__func__", fn)
    if isinstance(fn, MethodType) and seam.is_frozen_class(type(fn.__self__)):
        return  # the simulator runs it as it is
    if plain.is_plain_function(function) and plain.is_users(function):
        code = function.__code__
        lifted = code.co_argcount - written(code).co_argcount
        held = tuple(map(held_by, args))[lifted:]
        note_version(code, Version(tuple(map(given_as, args))[lifted:], held=held))


def _whole_call(fn: Any, pysig: inspect.Signature, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Return the function that a partial calls, and the types of all that it is given; of any other callable itself.

    pysig, args: the parameters that a call fills, and its arguments' types.
    """
    function: Any = fn.func if isinstance(fn, functools.partial) else None
    method = getattr(function, "__self__", None) is not None
    code = getattr(function, "__code__", None)
    if code is None or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return fn, args
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    held = (function.__self__, *fn.args) if method else fn.args
    given = dict(zip(names, map(numba_type, held))) | {n: numba_type(x) for n, x in fn.keywords.items()}
    given |= dict(zip(pysig.parameters, args[len(args) - len(pysig.parameters) :]))
    return function, tuple(given[n] for n in names if n in given)
