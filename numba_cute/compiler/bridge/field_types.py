# SPDX-License-Identifier: Apache-2.0
"""The types of fields of objects: what they are where a field may be set, and what a field may be set to."""

from __future__ import annotations

import inspect
from typing import Any

from ... import promotion, seam
from ...seam import CuteError
from ...seam.ground.names import no_field
from ..ground.numba_cuda import types
from ..ground.refusals import kind
from . import tree
from .given_floats import GivenFloat, number_type
from .leaf_types import Multiple
from .list_types import alike, is_list
from .object_types import StructRef, Value


def plain_type(ty: types.Type) -> types.Type:
    """Return a type without what is known to divide its numbers: a field may be set to others."""
    if isinstance(ty, Multiple):
        return ty.literal_type
    if isinstance(ty, GivenFloat):
        return types.float32 if promotion.followed() else types.float64
    if isinstance(ty, types.BaseTuple):
        return alike(ty, [plain_type(t) for t in ty])
    return Value(tree.plain(ty.spec)) if isinstance(ty, Value) else ty


def run_time(ty: types.Type) -> types.Type:
    """Return a type of numbers, or of a tuple of them, without their values. Integers have 64 bits, as what is computed
    of them has: the field may be set to that."""
    if isinstance(ty, types.BaseTuple):
        return alike(ty, [run_time(t) for t in ty])
    if isinstance(ty, types.StringLiteral):
        return ty
    if promotion.followed():
        return number_type(ty)
    ty = types.unliteral(ty)
    return types.int64 if isinstance(ty, types.Integer) and ty != types.uint64 else ty


def _fits(cls: type, ty: types.Type, have: types.Type) -> bool:
    number = (types.Integer, types.Float, types.Boolean)
    if ty in (have, plain_type(have)):
        return True
    have = types.unliteral(have)
    if not isinstance(ty, number) or isinstance(ty, types.Literal) or not isinstance(have, number):
        return False
    return seam.is_struct_class(cls) or _holds_all(ty, have)


def _holds_all(ty: Any, have: Any) -> bool:
    """Say whether a field of a plain class keeps every number of a type as it is: Python's would change its type."""
    if isinstance(ty, types.Float):
        return not isinstance(have, types.Float) or have.bitwidth <= ty.bitwidth
    if isinstance(ty, types.Boolean) or isinstance(have, types.Float):
        return isinstance(have, types.Boolean)
    return isinstance(have, types.Boolean) or have.signed <= ty.signed


def check_assignment(ref: StructRef, name: str, have: types.Type) -> None:
    if name not in ref.types:
        raise seam.UnknownName(no_field(ref.cls.__name__, name, ref.types))
    if not _fits(ref.cls, ref.types[name], have):
        remedy = (
            "annotate the field with a DType if it changes at run time"
            if seam.is_struct_class(ref.cls)
            else "make it with a value of that type, or convert what it is set to"
        )
        raise CuteError(f"{ref.cls.__name__}.{name} was made as {ref.types[name]} and cannot become {have}: {remedy}")


_NUMBERS = (types.Number, types.Boolean)


def refuse_other_values(ref: StructRef, name: str, have: types.Type) -> None:
    """Raise a CuteError if a field cannot be set to a value: a property without a setter; a static field; a field that
    holds a tuple or a list, to anything else or to one of another length; a plain object's number, to one that its type
    does not hold."""
    want, raw = ref.types.get(name), inspect.getattr_static(ref.cls, name, None)
    if isinstance(raw, property):
        if raw.fset is None:
            raise CuteError(f"{ref.cls.__name__}.{name} is a property without a setter: it cannot be assigned")
        return
    if want is None:
        raise seam.UnknownName(no_field(ref.cls.__name__, name, ref.types))
    if name not in ref.stored and want != have:
        struct = seam.is_struct_class(ref.cls)
        remedy = "annotate the field with a DType" if struct else "make it with a run-time value, as cute.Int32(0),"
        raise CuteError(
            f"{ref.cls.__name__}.{name} is static ({kind(str(want))}) and "
            f"cannot be assigned: {remedy} if it changes at run time"
        )
    if isinstance(want, types.BaseTuple):
        same = isinstance(have, types.BaseTuple) and len(have) == len(want) and is_list(have) == is_list(want)
        if not same:
            check_assignment(ref, name, have)
    elif isinstance(want, _NUMBERS) and not isinstance(want, types.Literal) and not seam.is_struct_class(ref.cls):
        check_assignment(ref, name, have)
