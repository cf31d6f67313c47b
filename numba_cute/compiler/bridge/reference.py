# SPDX-License-Identifier: Apache-2.0
"""Operators of numbers by the CuTe DSL's rule (`promotion`), in functions of files that import `cutlass`: their types,
and what they are in LLVM IR. Floats of Python's stay static among themselves (`GivenFloat`)."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from ... import promotion
from ...dtypes import Int32
from ...seam import CuteError
from ...seam.source.language import no_operator
from ..emit.leaves import scalar_type
from ..ground.builder import Builder, Target
from ..ground.errors import as_typing_error
from ..ground.numba_cuda import lowering_registry, models, register_model, types, typing
from ..ground.refusals import SIGNS, kind
from . import contexts
from .given_floats import GivenFloat, is_number, is_static, kind_of_number, number_type, type_of, value_of

_OPERATORS = {getattr(operator, name): name for name in (*promotion.BINARY, *promotion.UNARY)} | {
    getattr(operator, f"i{name.rstrip('_')}"): name for name in promotion.BINARY if name not in promotion.COMPARED
}
_FOLDED: tuple[Any, ...] = (abs, min, max, round, int, float, bool, pow, operator.not_)
"""Functions of Python's that give what is static of what is static, as those of `math` do."""


def unified(first: Any, second: Any) -> Any:
    """Return the type in which two numbers meet, None if there is none; NotImplemented of others."""
    if not (is_number(first) and is_number(second)):
        return NotImplemented
    if types.unliteral(first) == types.unliteral(second) and not is_static(first) and not is_static(second):
        return NotImplemented  # what is known to divide both stays
    found = promotion.promoted(kind_of_number(first), kind_of_number(second))
    return None if found is None else scalar_type(found)


class ReferenceFunction(contexts.Function):
    """An operator or function of Python's by the CuTe DSL's rule, where it is given numbers."""

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        key = self.typing_key
        if kws or not args or not all(map(is_number, args)) or _is_of_integers(key, args):
            return super().get_call_type(context, args, kws)
        if all(map(is_static, args)) and (found := _folded(key, args)) is not None:
            self._impl_keys[tuple(args)] = _CONSTANT
            return typing.signature(found, *args)
        name = _OPERATORS.get(key)
        if name is None:
            return super().get_call_type(context, _arguments(key, args), kws)
        sig = _signature(name, args)
        if sig is None:
            raise as_typing_error(
                CuteError(no_operator(SIGNS.get(name, name), [kind(str(number_type(a))) for a in args]))
            )
        self._impl_keys[sig.args] = ("reference", name)
        return sig


register_model(ReferenceFunction)(models.OpaqueModel)


def _arguments(key: Any, args: Any) -> Any:
    """Return the types of what a function of Python's is given: those of `min`, `max` and `range` meet in one, and a
    static float is a Float32."""
    if key in (min, max, range):
        meet = promotion.meeting(*map(kind_of_number, args))
        if meet is not None and (key is not range or meet is Int32):
            return (scalar_type(meet),) * len(args)
    return tuple(number_type(a) if isinstance(a, GivenFloat) else a for a in args)


def _of(key: Any, known: Any) -> Any:
    """Return an operator or function by the reference's rule; of another global what the context finds, `known`."""
    ruled = key in _OPERATORS or key in _FOLDED or key is range or getattr(key, "__module__", "") == "math"
    if not ruled or not isinstance(known, types.Function):
        return known
    made = _MADE.get(key)
    if made is None or made[0] is not known:
        made = _MADE[key] = (known, ReferenceFunction(known.templates))
    return made[1]


_MADE: dict[Any, tuple[Any, ReferenceFunction]] = {}
"""By function: Numba's type of it, and the one by the rule, which remembers how it is lowered."""

contexts.RULE.update(function=_of, unify=unified, constant=type_of)


def _is_of_integers(key: Any, args: Any) -> bool:
    """Say whether all is static and whole, which is so by any rule (`passes/literals.py`)."""
    if key is range or any(isinstance(a, GivenFloat) for a in args) or not all(map(is_static, args)):
        return False
    return (
        key is not float and _OPERATORS.get(key) not in ("truediv", "pow") and getattr(key, "__module__", "") != "math"
    )


def _folded(key: Any, args: Any) -> Any:
    """Return the type of what Python computes of static numbers; None where it raises."""
    name = _OPERATORS.get(key)
    try:
        found = (getattr(operator, name) if name is not None else key)(*map(value_of, args))
    except (ArithmeticError, ValueError, TypeError):
        return None
    whole = isinstance(found, int) and -(1 << 63) <= found < 1 << 63
    return type_of(found) if whole or isinstance(found, float) else None


def _signature(name: str, args: Any) -> Any:
    kinds = [kind_of_number(a) for a in args]
    if len(args) == 1:
        found = promotion.unary(name, kinds[0])
        return None if found is None else typing.signature(scalar_type(found), scalar_type(kinds[0]))
    case = promotion.binary(name, *kinds, any(isinstance(a, types.BooleanLiteral) for a in args))
    if case is None:
        return None
    return typing.signature(scalar_type(case.result), *map(scalar_type, case.operands))


# ---------------------------------------------------------------- lowering

_CONSTANT = ("reference", "constant")


def _constant(context: Target, builder: Builder, sig: Any, args: Any) -> Any:
    ty = sig.return_type
    return context.get_constant(types.float64 if isinstance(ty, GivenFloat) else types.unliteral(ty), value_of(ty))


contexts.lower(_CONSTANT, types.VarArg(types.Any))(_constant)
lowering_registry.lower_cast(GivenFloat, types.Any)(
    lambda context, builder, fromty, toty, value: context.get_constant(toty, _held(toty, fromty.value))
)


def _held(ty: Any, value: float) -> Any:
    """Return a float as a constant of a type holds it."""
    if isinstance(ty, (types.Float, GivenFloat)):
        return value
    return bool(value) if isinstance(ty, types.Boolean) else int(value)


def _by_numba(name: str, context: Target, builder: Builder, sig: Any, args: Any) -> Any:
    """Lower an operator of floats as Numba does."""
    with promotion.following(False):
        fn = context.typing_context.resolve_value_type(getattr(operator, name))
        own = fn.get_call_type(context.typing_context, sig.args, {})
        given = [context.cast(builder, v, have, want) for v, have, want in zip(args, sig.args, own.args)]
        out = context.get_function(fn, own)(builder, given)
    return context.cast(builder, out, own.return_type, sig.return_type)


_COMPARE = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


def _divided(builder: Builder, x: Any, y: Any, signed: bool, whole: bool) -> Any:
    """Divide integers: rounded down if it is `whole`, else the remainder, with the dividend's sign; 0 where hardware
    says nothing."""
    zero = x.type(0)
    wrong = builder.icmp_signed("==", y, zero)
    if signed:
        least = builder.icmp_signed("==", x, x.type(-(1 << x.type.width - 1)))
        wrong = builder.or_(wrong, builder.and_(least, builder.icmp_signed("==", y, x.type(-1))))
    by = builder.select(wrong, x.type(1), y)
    if not signed:
        out = (builder.udiv if whole else builder.urem)(x, by)
    elif not whole:
        out = builder.srem(x, by)
    else:
        quotient = builder.sdiv(x, by)
        rest = builder.sub(x, builder.mul(quotient, by))
        down = builder.and_(
            builder.icmp_signed("!=", rest, zero), builder.icmp_signed("<", builder.xor(rest, by), zero)
        )
        out = builder.sub(quotient, builder.zext(down, x.type))
    return builder.select(wrong, zero, out)


def _of_integers(name: str, builder: Builder, x: Any, y: Any, signed: bool) -> Any:
    if name in _COMPARE:
        return (builder.icmp_signed if signed else builder.icmp_unsigned)(_COMPARE[name], x, y)
    if name in ("floordiv", "mod"):
        return _divided(builder, x, y, signed, name == "floordiv")
    if name == "rshift":
        return _shifted(builder, builder.ashr if signed else builder.lshr, x, y, signed)
    if name == "lshift":
        return _shifted(builder, builder.shl, x, y, False)
    return getattr(
        builder, {"add": "add", "sub": "sub", "mul": "mul", "and_": "and_", "or_": "or_", "xor": "xor"}[name]
    )(x, y)


def _shifted(builder: Builder, shift: Callable[..., Any], x: Any, y: Any, signed: bool) -> Any:
    """Shift by as many bits as there are, or more, which shifts all of them out."""
    within = builder.icmp_unsigned("<", y, y.type(x.type.width))
    if signed:
        return shift(x, builder.select(within, y, y.type(x.type.width - 1)))
    return builder.select(within, shift(x, builder.select(within, y, y.type(0))), x.type(0))


def _lower_binary(name: str, context: Target, builder: Builder, sig: Any, args: Any) -> Any:
    a, b = sig.args
    args = tuple(
        context.get_constant(ty, v) if isinstance(v, (bool, int, float)) else v for ty, v in zip(sig.args, args)
    )  # Numba gives a static exponent as it is
    if name == "pow" or isinstance(a, types.Float) and name not in ("floordiv", "mod"):
        return _by_numba(name, context, builder, sig, args)
    if isinstance(a, types.Float):
        return _float_division(name, context, builder, sig, args)
    if name == "truediv":
        x, y = (context.cast(builder, v, ty, types.float32) for v, ty in zip(args, sig.args))
        return _by_numba(name, context, builder, typing.signature(types.float32, types.float32, types.float32), (x, y))
    signed = a != types.boolean and a.signed
    x, y = args
    out = _of_integers(name, builder, x, y, signed)
    if sig.return_type == types.boolean and name not in _COMPARE and a != types.boolean:
        return builder.icmp_signed("!=", out, out.type(0))
    return out


def _float_division(name: str, context: Target, builder: Builder, sig: Any, args: Any) -> Any:
    """`//` of floats is the floor of their quotient, and `%` is C's fmod."""
    x, y = args
    ty = sig.args[0]
    if name == "floordiv":
        out = _by_numba("truediv", context, builder, sig, args)
        wide = ty if ty.bitwidth >= 32 else types.float32
        module = builder.module
        value = context.cast(builder, out, ty, wide)
        fn = module.declare_intrinsic("llvm.floor", [value.type])
        return context.cast(builder, builder.call(fn, [value]), wide, ty)
    wide = ty if ty.bitwidth >= 32 else types.float32
    with promotion.following(False):
        fmod = context.typing_context.resolve_value_type(math.fmod)
        own = fmod.get_call_type(context.typing_context, (wide, wide), {})
        given = [context.cast(builder, v, ty, wide) for v in (x, y)]
        out = context.get_function(fmod, own)(builder, given)
    return context.cast(builder, out, wide, ty)


def _lower_unary(name: str, context: Target, builder: Builder, sig: Any, args: Any) -> Any:
    (x,), (ty,) = args, sig.args
    if name == "pos":
        return x
    if name == "invert":
        return builder.not_(x)
    return _by_numba("neg", context, builder, sig, args) if isinstance(ty, types.Float) else builder.neg(x)


def _register(name: str, lower: Callable[..., Any], count: int) -> None:
    def implementation(context: Target, builder: Builder, sig: Any, args: Any) -> Any:
        return lower(name, context, builder, sig, args)

    contexts.lower(("reference", name), *(types.Any,) * count)(implementation)


for _name in promotion.BINARY:
    _register(_name, _lower_binary, 2)
for _name in promotion.UNARY:
    _register(_name, _lower_unary, 1)
