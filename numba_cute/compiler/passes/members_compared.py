# SPDX-License-Identifier: Apache-2.0
"""Members of the user's enumerations that are compared: `params.mode == Mode.STATIC`, `mode in (Mode.A, Mode.B)`. To
Numba a member is a number of run time; here it is static where it is compared, so that with a field that is static too
the result is."""

from __future__ import annotations

import enum
import operator
from typing import Any

from ... import seam
from ..ground.numba_cuda import ir
from .constants import Constants, NotConstant
from .definitions import statements

_COMPARED = (operator.eq, operator.ne, operator.contains)
_DONE = "cute_members"


def keep_compared(func_ir: Any, known: Constants) -> bool:
    """Have the members that are compared be static; say whether there was one."""
    found = []
    for place, inst in statements(func_ir.blocks):
        value: Any = inst.value if isinstance(inst, ir.Assign) else None
        if not isinstance(value, ir.Expr) or value.op != "binop" or value.fn not in _COMPARED or _DONE in value._kws:
            continue
        for side in ("lhs", "rhs"):
            try:
                held = known.of(getattr(value, side), place)
            except NotConstant:
                continue
            if _is_of_members(held):
                found.append((place, inst, side, held))
    for place, inst, side, held in reversed(found):
        block = func_ir.blocks[place.label]
        function, made = (block.scope.redefine(f"$numba_cute_{n}", inst.loc) for n in ("giver", "member"))
        block.body[place.index : place.index] = [
            ir.Assign(ir.Global("member", _giving(held), inst.loc), function, inst.loc),
            ir.Assign(ir.Expr.call(function, [], (), inst.loc), made, inst.loc),
        ]
        setattr(inst.value, side, made)
        inst.value._kws[_DONE] = True
    return bool(found)


def _is_of_members(x: Any) -> bool:
    """Say whether a value is a member of an enumeration that Numba knows, or a tuple of such."""
    if isinstance(x, tuple):
        return bool(x) and all(map(_is_of_members, x))
    return isinstance(x, enum.Enum) and not isinstance(x, seam.StaticEnum)


def _giving(member: Any) -> Any:
    """Return a function that gives a member."""

    @seam.traced
    def give() -> Any:
        return member

    return give
