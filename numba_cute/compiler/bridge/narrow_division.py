# SPDX-License-Identifier: Apache-2.0
"""`//` and `%` of integers of 64 bits whose values 32 bits hold, as of two int32, which Numba has meet in an int64:
they are divided in 32 bits, by a third of the instructions. By a constant that is positive a tenth of what Numba writes
for LLVM to leave out is written. The result is the same."""

from __future__ import annotations

import operator
from typing import Any

from ..emit.ranges import narrowed
from ..ground import llvmlite as ir
from ..ground.builder import Builder, Target
from ..ground.numba_cuda import numbers, types, typing
from . import contexts

_WIDE, _NARROW = types.int64, types.int32


def _lower(ops: tuple[Any, Any], impl: Any, quotient: bool) -> None:
    def lower(context: Target, builder: Builder, sig: Any, args: Any) -> Any:
        a, b = (narrowed(builder, x, 32) for x in args)
        if isinstance(args[1], ir.Constant) and 0 < args[1].constant < 2**63:
            if a is None or b is None:
                return _by_constant(builder, args[0], args[1], quotient)
            return builder.sext(_by_constant(builder, a, b, quotient), args[0].type)
        if a is None or b is None:
            return impl(context, builder, sig, args)
        found = impl(context, builder, typing.signature(_NARROW, _NARROW, _NARROW), (a, b))
        wide = builder.sext(found, args[0].type)
        return _overflowed(builder, a, b, wide) if quotient else wide

    for op in ops:
        contexts.lower(op, _WIDE, _WIDE)(lower)


def _by_constant(builder: Builder, a: Any, b: Any, quotient: bool) -> Any:
    """Divide by a constant that is positive, rounding down."""
    rest = builder.srem(a, b)
    below = builder.icmp_signed("<", rest, a.type(0))
    if quotient:
        found = builder.sdiv(a, b)
        return builder.select(below, builder.sub(found, a.type(1)), found)
    return builder.select(below, builder.add(rest, b), rest)


def _overflowed(builder: Builder, a: Any, b: Any, wide: Any) -> Any:
    """Give 2 ** 31 for -(2 ** 31) // -1, for which Numba gives 0 in 32 bits."""
    if isinstance(b, ir.Constant) and b.constant != -1:
        return wide
    both = builder.and_(builder.icmp_signed("==", a, a.type(-(2**31))), builder.icmp_signed("==", b, b.type(-1)))
    return builder.select(both, wide.type(2**31), wide)


_lower((operator.floordiv, operator.ifloordiv), numbers.int_floordiv_impl, True)
_lower((operator.mod, operator.imod), numbers.int_rem_impl, False)
