# SPDX-License-Identifier: Apache-2.0
"""`range` with the CuTe DSL's keywords, and `cute.range`: Python's `range`, or `range_constexpr` where they say
`unroll_full=True`."""

from __future__ import annotations

import builtins
from typing import Any

from ... import seam
from ...seam import CuteError
from ...seam.guards.messages import NO_STATIC_UNROLLING
from ..ground.errors import located
from ..ground.numba_cuda import ir
from .constants import Constants, NotConstant
from .definitions import Place, statements
from .rolled import ONCE

_NAME = "cute.range"


def plain_ranges(func_ir: Any, args: Any) -> bool:
    """Make Python's `range` of `cute.range` and of a `range` with keywords; say whether there was one. args: the types
    of the function's arguments. CuteError: a keyword that there is not, or an `unroll_full` that is not static."""
    known, changed = Constants(func_ir.blocks, args), False
    for place, inst in list(statements(func_ir.blocks)):
        call = inst.value if isinstance(inst, ir.Assign) else None
        if not isinstance(call, ir.Expr) or call.op != "call":
            continue
        try:
            function = known.of(call.func, place)
        except NotConstant:
            continue
        if function is not seam.range and not (function is builtins.range and call.kws):
            continue
        new = seam.range_constexpr if _is_full(call, place, known) else builtins.range
        name = ONCE if new is builtins.range and _is_once(call, place, known) else _NAME
        call.kws = ()
        _before(func_ir.blocks[place.label], inst, call, new, name)
        changed = True
    return changed


def counts_at_run_time(known: Constants, place: Place, call: Any) -> bool:
    """Make Python's `range` of a call with `unroll_full=True`, whose bounds are known only at run time; say whether it
    is such a one, and not `range_constexpr` as it is written."""
    made, _ = known.assignment(call.func, place) or (None, place)
    if not isinstance(made, ir.Global) or made.name != _NAME:
        return False
    made.value = builtins.range
    return True


def _is_full(call: Any, place: Place, known: Constants) -> bool:
    """Say whether a call of `range` asks for copies."""
    given = dict(call.kws)
    try:
        seam.check_keywords(given)
    except CuteError as e:
        raise located(e, call.loc) from None
    try:
        return bool(known.of(given["unroll_full"], place)) if "unroll_full" in given else False
    except NotConstant:
        raise located(CuteError(NO_STATIC_UNROLLING), call.loc) from None


def _is_once(call: Any, place: Place, known: Constants) -> bool:
    """Say whether a call of `range` asks for no copies. What is known later, or at run time, is a hint that is not
    taken."""
    try:
        return "unroll" in dict(call.kws) and known.of(dict(call.kws)["unroll"], place) == 1
    except NotConstant:
        return False


def _before(block: Any, inst: Any, call: Any, function: Any, name: str) -> None:
    """Let a call be of another function, a global of that name."""
    var = block.scope.redefine("$numba_cute_range", call.loc)
    call.func = var
    block.body.insert(block.body.index(inst), ir.Assign(ir.Global(name, function, call.loc), var, call.loc))
