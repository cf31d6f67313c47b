# SPDX-License-Identifier: Apache-2.0
"""Fields of plain objects that a kernel makes and then sets: `p = SimpleNamespace(n=0)`, `p.n = i`. Numbers that the
constructor is given for them are no constants."""

from __future__ import annotations

from typing import Any

from numba.cuda.core import ir

from ...seam.marks import plain
from .constants import Constants, NotConstant
from .definitions import Place, statements


def keep_varying(func_ir: Any, known: Constants) -> bool:
    """Tell constructors of plain objects which fields the function sets; say whether there is one."""
    names = frozenset(i.attr for _, i in statements(func_ir.blocks) if isinstance(i, ir.SetAttr))
    found = [(p, i, cls) for p, i in statements(func_ir.blocks) if names and (cls := _constructed(i, p, known))]
    for place, inst, cls in found:
        block = func_ir.blocks[place.label]
        maker = block.scope.redefine("$numba_cute_maker", inst.loc)
        made = ir.Assign(ir.Const(plain.Maker(cls, names), inst.loc), maker, inst.loc)
        block.body.insert(block.body.index(inst), made)
        inst.value.func = maker
    return bool(found)


def _constructed(inst: Any, place: Place, known: Constants) -> Any:
    """Return the plain class whose constructor a statement calls; None if it calls anything else."""
    expr = inst.value if isinstance(inst, ir.Assign) else None
    if not isinstance(expr, ir.Expr) or expr.op != "call":
        return None
    try:
        cls = known.of(expr.func, place)
    except NotConstant:
        return None
    return cls if plain.is_plain_class(cls) else None
