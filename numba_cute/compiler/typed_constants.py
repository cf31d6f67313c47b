# SPDX-License-Identifier: Apache-2.0
"""Constants that only types tell, as the result of `cute.size(tensor)`: the bounds of loops that are to be unrolled.

The function is typed for them, so far as it can be, on a copy in SSA form, so that each use has the type of what
reaches it alone.
"""

from __future__ import annotations

import copy
import functools
from typing import Any

from numba.cuda import types
from numba.cuda.core import ir
from numba.cuda.core.ssa import reconstruct_ssa
from numba.cuda.core.typed_passes import type_inference_stage

from ..seam import CuteError
from .constants import NotConstant
from .definitions import statements
from .errors import lies_before


class Refused(Exception):
    """Typing does not reach a variable: another statement is wrong, as the error in `args` says."""


class TypedConstants:
    """The values of a function's temporaries whose types are literals. It is of one state of the IR."""

    def __init__(self, state: Any) -> None:
        self._state = state

    def of(self, var: Any) -> Any:
        """The value of a temporary (which is assigned once); NotConstant if its type tells none. Where a mistake before
        it stopped typing, Refused with that."""
        typed, assigned = self._typed
        ty = typed.typemap.get(var.name)
        if isinstance(ty, types.IntegerLiteral) and self._is_settled(var.name):
            return ty.literal_value
        before = [e for e in typed.typing_errors if lies_before(e, var.loc)]
        if before:  # typing came no further than this
            raise Refused(before[0])
        raise NotConstant

    @functools.cached_property
    def _typed(self) -> tuple[Any, dict[str, Any]]:
        """What typing found, and the assignment of each variable of the copy."""
        state = self._state
        func_ir = reconstruct_ssa(_copied(state.func_ir))
        try:
            typed = type_inference_stage(
                state.typingctx, state.targetctx, func_ir, state.args, state.return_type, raise_errors=False
            )
        except Exception as e:  # what Numba does not hold back: a module has no such name, an index none such type
            raise Refused(CuteError(str(e) or type(e).__name__)) from e
        return typed, {i.target.name: i.value for _, i in statements(func_ir.blocks) if isinstance(i, ir.Assign)}

    def _is_settled(self, name: str) -> bool:
        """Whether all that a variable comes from has a type: a value that is not typed yet may differ from those that
        meet it in a phi."""
        typed, assigned = self._typed
        seen, todo = {name}, [name]
        while todo:
            at = todo.pop()
            if typed.typemap.get(at) is None:
                return False
            value = assigned.get(at)
            uses = [value] if isinstance(value, ir.Var) else value.list_vars() if isinstance(value, ir.Expr) else ()
            new = {v.name for v in uses if isinstance(v, ir.Var)} - seen
            seen |= new
            todo.extend(new)
        return True


def _copied(func_ir: Any) -> Any:
    """A function's IR whose statements and expressions may be changed without changing this one's."""
    new = func_ir.copy()
    for block in new.blocks.values():
        block.body = [copied_statement(inst) for inst in block.body]
    return new


def copied_statement(inst: Any) -> Any:
    """A statement of its own, its expression and that one's arguments too."""
    new = copy.copy(inst)
    if isinstance(getattr(new, "value", None), ir.Expr):
        new.value = copy.copy(new.value)
        new.value._kws = dict(new.value._kws)
    return new
