# SPDX-License-Identifier: Apache-2.0
"""`//`, `%` and `divmod` of a signed integer and an unsigned one of 64 bits by their values, where Numba divides their
bits as signed; powers of integers, which Numba takes through a double where Python's bytecode has one return, and
`round` and the like, which it takes through one everywhere; the truth of halves."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

from ...seam import CuteError
from ...seam.guards.messages import NO_DIGITS, no_extreme
from ..ground.builder import Builder, Target
from ..ground.errors import as_typing_error
from ..ground.llvmlite import alloca_once, pack_array
from ..ground.numba_cuda import AbstractTemplate, numbers, types, typing
from . import contexts

_PAIRS = ((types.int64, types.uint64), (types.uint64, types.int64))
_SIGNED = typing.signature(types.int64, types.int64, types.int64)


def _divided(builder: Builder, kinds: Any, a: Any, b: Any, of_signed: Callable[[], tuple[Any, Any]]) -> tuple[Any, Any]:
    """Return the quotient and the remainder, rounded down, as int64. of_signed: gives those of the operands' bits as
    signed numbers, which are right but where the unsigned one has its highest bit set."""
    zero, minus_one = a.type(0), a.type(-1)
    unsigned = a if kinds[0] == types.uint64 else b
    large = builder.and_(builder.icmp_signed("<", unsigned, zero), builder.icmp_signed("!=", b, zero))
    quotient, remainder = (alloca_once(builder, a.type) for _ in range(2))
    with builder.if_else(large, likely=False) as (of_large, other):
        with of_large:
            found = _by_large if unsigned is b else _of_large
            for place, value in zip((quotient, remainder), found(builder, a, b, zero, minus_one)):
                builder.store(value, place)
        with other:
            for place, value in zip((quotient, remainder), of_signed()):
                builder.store(value, place)
    return builder.load(quotient), builder.load(remainder)


def _by_large(builder: Builder, a: Any, b: Any, zero: Any, minus_one: Any) -> tuple[Any, Any]:
    """Divide by 2 ** 63 or more."""
    below = builder.icmp_signed("<", a, zero)
    return builder.select(below, minus_one, zero), builder.select(below, builder.add(a, b), a)


def _of_large(builder: Builder, a: Any, b: Any, zero: Any, minus_one: Any) -> tuple[Any, Any]:
    """Divide 2 ** 63 or more."""
    below = builder.icmp_signed("<", b, zero)
    by = builder.select(below, builder.neg(b), b)
    whole, rest = builder.udiv(a, by), builder.urem(a, by)
    more = builder.icmp_signed("!=", rest, zero)
    up = builder.neg(builder.add(whole, builder.zext(more, a.type)))
    return (
        builder.select(below, up, whole),
        builder.select(builder.and_(below, more), builder.add(rest, b), rest),
    )


def _lower_division(op: Any, pick: Callable[[Any, Any], Any]) -> None:
    """pick: gives the operator's result, of the builder and both numbers."""
    for kinds in _PAIRS:

        def lower(context: Target, builder: Builder, sig: Any, args: Any, kinds: Any = kinds) -> Any:
            def of_signed() -> tuple[Any, Any]:
                both = numbers.int_divmod_impl(context, builder, _SIGNED.replace(return_type=_BOTH), args)
                return builder.extract_value(both, 0), builder.extract_value(both, 1)

            a, b = args
            return pick(builder, _divided(builder, kinds, a, b, of_signed))

        contexts.lower(op, *kinds)(lower)


_BOTH = types.UniTuple(types.int64, 2)
for _at, _name in enumerate(("floordiv", "mod")):
    for _op in (getattr(operator, _name), getattr(operator, f"i{_name}")):
        _lower_division(_op, functools.partial(lambda at, builder, both: both[at], _at))
_lower_division(divmod, pack_array)


@contexts.template(divmod)
class _Divmod(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        plain = tuple(types.uint64 if types.unliteral(a) == types.uint64 else a for a in args)
        signed = [a for a in plain if isinstance(a, types.Integer) and types.unliteral(a).signed]
        if len(args) != 2 or types.uint64 not in plain or len(signed) != 1:
            return None
        return typing.signature(_BOTH, *(a if a == types.uint64 else types.int64 for a in plain))


def _lower_power(op: Any, first: Any, second: Any) -> None:
    result = types.int64 if types.int64 in (first, second) else types.uint64

    def power(x: Any, y: Any) -> Any:
        made, base, left = result(1), result(x), types.uint64(y)
        if y < 0:
            if base != 1 and base != result(-1):
                left = types.uint64(1)
                base = result(0)
        while left != types.uint64(0):
            if left & types.uint64(1):
                made *= base
            left >>= types.uint64(1)
            base *= base
        return made

    def lower(context: Target, builder: Builder, sig: Any, args: Any) -> Any:
        return context.compile_internal(builder, power, sig, args)

    contexts.lower(op, first, second)(lower)


for _op in (operator.pow, operator.ipow, pow):
    for _first in (types.int64, types.uint64):
        for _second in (types.int64, types.uint64):
            _lower_power(_op, _first, _second)


@contexts.call_rule
def _extreme(func: Any, args: Any) -> Any:
    """Type `min` and `max` of unsigned integers of 64 bits and static ones; refuse them of such and signed ones, which
    Numba rounds to float64."""
    key = getattr(func, "typing_key", func)
    if not callable(key) or key not in (min, max):
        return None
    items = tuple(args[0]) if len(args) == 1 and isinstance(args[0], types.BaseTuple) else args
    signed = [a for a in items if isinstance(a, types.Integer) and types.unliteral(a).signed]
    if types.uint64 not in items or not signed or not all(isinstance(a, types.Integer) for a in items):
        return None
    if items is not args or any(getattr(a, "literal_value", -1) < 0 for a in signed):
        raise as_typing_error(CuteError(no_extreme(key.__name__)))
    kinds = (types.uint64,) * len(args)
    func._impl_keys[kinds] = key  # as its own answer would have left it, for lowering
    return typing.signature(types.uint64, *kinds)


@contexts.call_rule
def _rounded(func: Any, args: Any) -> Any:
    """Type `round`, `math.floor` and the like of integers, which Numba takes through a double. Refuse `round(x, n)`,
    whose decimal digits Numba finds by a division that rounds."""
    key = getattr(func, "typing_key", func)
    if key is round and len(args) == 2 and not isinstance(args[1], types.NoneType):
        raise as_typing_error(CuteError(NO_DIGITS))
    if not callable(key) or key not in _WHOLE or len(args) != 1 or not isinstance(args[0], types.Integer):
        return None
    kind = types.int64 if types.unliteral(args[0]).signed else types.uint64
    func._impl_keys[(kind,)] = ("whole", kind)
    return typing.signature(kind, kind)


_WHOLE = (round, math.floor, math.ceil, math.trunc)
for _kind in (types.int64, types.uint64):
    contexts.lower(("whole", _kind), _kind)(lambda context, builder, sig, args: args[0])


def _is_zero(builder: Builder, bits: Any, op: str) -> Any:
    return builder.icmp_unsigned(op, builder.shl(bits, bits.type(1)), bits.type(0))  # which drops the sign


for _half in (types.float16, types.bfloat16):  # held as their bits, which Numba compares as a float's
    contexts.lower(bool, _half)(lambda context, builder, sig, args: _is_zero(builder, args[0], "!="))
    contexts.lower(operator.not_, _half)(lambda context, builder, sig, args: _is_zero(builder, args[0], "=="))
