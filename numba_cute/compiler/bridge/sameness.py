# SPDX-License-Identifier: Apache-2.0
"""`x is y` and `x is not y` in kernels: of objects (structs, register tensors) whether their addresses are the same, of
members of an enumeration whether their values are, of all else what the types tell. Of numbers nobody knows."""

from __future__ import annotations

import operator
from typing import Any

from ...seam import CuteError
from ..ground.builder import Builder, Target
from ..ground.errors import as_typing_error
from ..ground.numba_cuda import AbstractTemplate, types, typing
from . import contexts
from .leaf_types import Registers
from .list_types import is_list
from .object_types import StructRef, Value


def _identical(args: Any) -> bool | None:
    """Say whether two values are one object, where their types tell: None is one, and so is each static object."""
    first, second = args
    if isinstance(first, types.NoneType) or isinstance(second, types.NoneType):
        return None if any(isinstance(t, (types.Optional, types.Omitted)) for t in args) else first == second
    if any(isinstance(t, StructRef) for t in args):
        same = isinstance(first, StructRef) and isinstance(second, StructRef) and first._key == second._key
        return None if same or any(isinstance(t, types.Optional) for t in args) else False
    objects = [_object(t) for t in args]
    if None not in objects:
        return objects[0] is objects[1]
    if not any(isinstance(t, Value) for t in args):
        return None
    return None if first == second or _is_member(args) else False


def _object(ty: Any) -> Any:
    """Return the static object, or the function, that a type stands for; None if it stands for values."""
    if isinstance(ty, types.Dispatcher):
        return ty.dispatcher
    if isinstance(ty, types.Function):
        return ty.typing_key
    return ty.spec[2] if isinstance(ty, Value) and ty.spec[0] == "const" else None


def _is_member(args: Any) -> bool:
    """Say whether one value is a member of an enumeration that its type says, and the other some member of the same."""
    members = [t for t in args if isinstance(t, types.EnumMember)]
    return len(members) == 1 and any(type(_object(t)) is members[0].instance_class for t in args)


def _is_addressed(ty: Any) -> bool:
    """Say whether values of a type are told apart by their addresses."""
    if isinstance(ty, Value):
        return bool(ty.leaves) and all(isinstance(t, Registers) for t in ty.leaves)
    return isinstance(ty, StructRef)


@contexts.call_rule
def _refuse(func: Any, args: Any) -> None:
    """Refuse to tell apart two objects of one type that are only values: Numba would take some answer."""
    key = getattr(func, "typing_key", func)
    if key not in (operator.is_, operator.is_not) or len(args) != 2 or _identical(args) is not None:
        return
    if any(isinstance(a, Value) for a in args) and not _is_addressed(args[0]) and not _is_member(args):
        sign = "is" if key is operator.is_ else "is not"
        raise as_typing_error(
            CuteError(
                f"x {sign} y of two objects that never change, layouts or tensors: a kernel knows what they hold, not "
                "which they are; compare them by =="
            )
        )


@contexts.call_rule
def _refuse_numbers(func: Any, args: Any) -> None:
    if getattr(func, "typing_key", func) in (operator.is_, operator.is_not):
        of_numbers = all(isinstance(a, (types.Number, types.Boolean)) for a in args)
        if of_numbers and not all(isinstance(a, types.Literal) for a in args):
            raise as_typing_error(
                CuteError(
                    "`is` of numbers in a kernel: it asks which objects they are, and they are only values; compare "
                    "them by `==`, and ask a truth value itself"
                )
            )


@contexts.call_rule
def _refuse_tuples(func: Any, args: Any) -> None:
    if getattr(func, "typing_key", func) in (operator.is_, operator.is_not):
        if all(isinstance(a, types.BaseTuple) for a in args):
            what = "lists" if any(map(is_list, args)) else "tuples"
            raise as_typing_error(CuteError(f"`is` of two {what} in a kernel: compare what they hold, by `==`"))


def _compare_member(op: Any, context: Target, builder: Builder, kinds: Any, args: Any) -> Any:
    """Lower the comparison of a member that its type says with one that is known at run time."""
    at = 0 if isinstance(kinds[0], types.EnumMember) else 1
    number = kinds[at].dtype
    value = context.get_constant(number, _object(kinds[1 - at]).value)
    compare = context.get_function(op, typing.signature(types.boolean, number, number))
    return compare(builder, (args[at], value))


def _register_members(op: Any) -> None:
    @contexts.template(op)
    class Template(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            return typing.signature(types.boolean, *args) if len(args) == 2 and _is_member(args) else None

    def lower(context: Target, builder: Builder, sig: Any, args: Any) -> Any:
        return _compare_member(op, context, builder, sig.args, args)

    contexts.lower(op, Value, types.EnumMember)(lower)
    contexts.lower(op, types.EnumMember, Value)(lower)


def _register(op: Any, same: bool) -> None:
    @contexts.template(op)
    class Template(AbstractTemplate):
        prefer_literal = True

        def generic(self, args: Any, kws: Any) -> Any:
            answer = _identical(args) if len(args) == 2 else None
            if answer is not None:
                return typing.signature(types.literal(answer is same), *args)
            if len(args) == 2 and (args[0] == args[1] and _is_addressed(args[0]) or _is_member(args)):
                return typing.signature(types.boolean, *args)
            return None

    def lower(context: Target, builder: Builder, sig: Any, args: Any) -> Any:
        if isinstance(sig.return_type, types.Literal):
            return context.get_constant(types.boolean, sig.return_type.literal_value)
        a, b = args
        if _is_member(sig.args):
            return _compare_member(operator.eq if same else operator.ne, context, builder, sig.args, args)
        if isinstance(sig.args[0], Value):
            a, b = (builder.extract_value(x, 0) for x in args)
        return builder.icmp_unsigned("==" if same else "!=", a, b)

    ours = (Value, types.NoneType, StructRef)
    for kind in (types.Any, *ours):  # the nearest one is chosen, and there must be one
        for own in ours:
            contexts.lower(op, own, kind)(lower)
            if kind is types.Any:
                contexts.lower(op, kind, own)(lower)


_register(operator.is_, True)
_register(operator.is_not, False)
_register_members(operator.eq)
_register_members(operator.ne)
