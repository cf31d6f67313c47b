# SPDX-License-Identifier: Apache-2.0
"""The step of a loop over a `range` whose bounds a run knows. Numba counts down, and on, only where an item is left; so
does LLVM then, by a selection and a copy in each round. Here both are done each time: after the last item nobody asks
what they are."""

from __future__ import annotations

from typing import Any

from numba.cuda import cgutils, types
from numba.cuda.core.imputils import RefType, iternext_impl

from . import contexts


@iternext_impl(RefType.UNTRACKED)
def _next(context: Any, builder: Any, sig: Any, args: Any, result: Any) -> None:
    of = cgutils.create_struct_proxy(sig.args[0])(context, builder, args[0])
    count, value = builder.load(of.count), builder.load(of.iter)
    result.set_valid(builder.icmp_signed(">", count, count.type(0)))
    result.yield_(value)
    builder.store(builder.sub(count, count.type(1)), of.count)
    builder.store(builder.add(value, of.step), of.iter)


for _of in (types.int32, types.int64, types.uint64):
    contexts.lower("iternext", types.RangeIteratorType(_of))(_next)
