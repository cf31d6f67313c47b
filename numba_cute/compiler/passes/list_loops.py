# SPDX-License-Identifier: Apache-2.0
"""Loops over lists that change in them, before lists become tuples: each round takes its item when it begins."""

from __future__ import annotations

from typing import Any

from ...seam import CuteError
from ..ground.errors import located
from ..ground.numba_cuda import compute_cfg_from_blocks, ir
from .definitions import instructions
from .unroll import header_chain, takes_next

CHANGES = (
    "a list gets another length, or its name another list, in a loop that goes over it: go over a copy, x.copy(), or "
    "over its indices, cute.range_constexpr(len(x))"
)


def follow(blocks: dict[int, Any], lists: Any) -> None:
    """Mark the iterators of such loops. lists: the function's (`_Lists`). CuteError, with its line: such a list gets
    another length, or its name another list."""
    for loop in compute_cfg_from_blocks(blocks).loops().values() if lists.names else ():
        body = [inst for label in loop.body for inst in blocks[label].body]
        taken = takes_next(blocks[header_chain(blocks, loop.header)[-1]])
        over = _iterators(taken, lists) if taken is not None else set()
        changes = [(i, var.name) for i in body if over and (var := lists.changed(i)) is not None]
        for begins in [i for i in instructions(blocks) if _is_iterator(i) and i.target.name in over] if changes else ():
            names = _gone_over(begins.value.value, lists)
            changing = [i for i, name in changes if name in names]
            set_anew = [i for i in body if isinstance(i, ir.Assign) and i.target.name in names]
            for inst in [i for i in changing if not _keeps_length(i)] + (set_anew if changing else []):
                raise located(CuteError(CHANGES), inst.loc)
            if changing:
                begins.value._kws["cute_follows"] = True


def _is_iterator(inst: Any) -> bool:
    return isinstance(inst, ir.Assign) and isinstance(inst.value, ir.Expr) and inst.value.op == "getiter"


def _iterators(taken: Any, lists: Any) -> set[str]:
    """Return the names of the iterator by which a loop's header takes its next item."""
    name = taken.value.name
    return {name, *(v.name for v in lists.made.get(name, ()) if isinstance(v, ir.Var))}


def _gone_over(var: Any, lists: Any) -> set[str]:
    """Return the lists whose items a variable gives, one by one."""
    if var.name in lists.names:
        return {var.name}
    calls = [v for v in lists.made.get(var.name, ()) if isinstance(v, ir.Expr) and v.op == "call"]
    makers = [c for c in calls if any(lists.function(c) is f for f in (enumerate, zip, reversed))]
    return set().union(*(_gone_over(a, lists) for c in makers for a in c.args))


def _keeps_length(inst: Any) -> bool:
    """Say whether a change of a list leaves its length as it was."""
    if isinstance(inst, (ir.SetItem, ir.StaticSetItem)):
        return True
    return isinstance(inst, ir.Assign) and inst.value.op == "getattr" and inst.value.attr in ("reverse", "sort")
