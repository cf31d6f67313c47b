# SPDX-License-Identifier: Apache-2.0
"""Loops over a `range` whose bounds a run knows. Numba counts the items first, by a division, and in each round counts
down and on only where an item is left, by a selection and a copy. Here what is left of the way is held, and the step
taken from it in each round: no item is left where nothing of it is."""

from __future__ import annotations

from typing import Any

from ..ground.builder import Builder, Target
from ..ground.llvmlite import alloca_once_value, create_struct_proxy
from ..ground.numba_cuda import RefType, iternext_impl, types
from . import contexts


def _begin(context: Target, builder: Builder, sig: Any, args: Any) -> Any:
    """Lower `iter(range)`. Of the iterator's fields `count` holds what is left, and `stop` what a round takes from it:
    both are positive, whichever way the range goes."""
    of = create_struct_proxy(sig.args[0])(context, builder, args[0])
    begun = create_struct_proxy(sig.return_type)(context, builder)
    start, stop, step = of.start, of.stop, of.step
    up = builder.icmp_signed(">", step, step.type(0))
    left = builder.select(up, builder.sub(stop, start), builder.sub(start, stop))
    begun.iter, begun.count = (alloca_once_value(builder, x) for x in (start, left))
    begun.step, begun.stop = step, builder.select(up, step, builder.neg(step))
    return begun._getvalue()


@iternext_impl(RefType.UNTRACKED)
def _next(context: Target, builder: Builder, sig: Any, args: Any, result: Any) -> None:
    """Lower `next(iterator)`. After the last item nobody asks for the next one, so it may be any number."""
    of = create_struct_proxy(sig.args[0])(context, builder, args[0])
    left, value = builder.load(of.count), builder.load(of.iter)
    result.set_valid(builder.icmp_signed(">", left, left.type(0)))
    result.yield_(value)
    builder.store(builder.sub(left, of.stop), of.count)
    builder.store(builder.add(value, of.step), of.iter)


for _range in (types.range_state32_type, types.range_state64_type, types.unsigned_range_state64_type):
    contexts.lower("getiter", _range)(_begin)
    contexts.lower("iternext", _range.iterator_type)(_next)
