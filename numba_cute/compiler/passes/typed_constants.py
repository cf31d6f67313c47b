# SPDX-License-Identifier: Apache-2.0
"""Constants that only types tell, as the result of `cute.size(tensor)`: the bounds of loops that are to be unrolled,
and the conditions of branches.

The function is typed for them, so far as it can be, on a copy in SSA form, so that each use has the type of what
reaches it alone.
"""

from __future__ import annotations

import contextlib
import copy
from typing import Any

from numba.cuda import types
from numba.cuda.core import ir
from numba.cuda.core.errors import NumbaError
from numba.cuda.core.ir_utils import merge_adjacent_blocks, rename_labels
from numba.cuda.core.ssa import reconstruct_ssa
from numba.cuda.core.typed_passes import type_inference_stage

from ...seam import CuteError
from ..bridge.contexts import holding_errors
from ..ground.errors import lies_before
from .constants import FAULTS, NotConstant
from .definitions import Place, statements
from .static_values import Unknown, static_value


class Refused(Exception):
    """Typing does not reach a variable: another statement is wrong, as the error in `args` says."""


class TypedConstants:
    """The values of variables whose types are literals where a statement uses them. It is of one state of the IR."""

    def __init__(self, state: Any) -> None:
        self._state = state
        self._found: dict[Place, dict[str, Any]] = {}

    def of(self, var: Any, use: Place) -> Any:
        """Return the value of a variable that the statement at `use` reads; NotConstant if its type tells none. Where a
        mistake before it stopped typing, Refused with that."""
        if use not in self._found:
            self._found[use] = self._values(use)
        found = self._found[use].get(var.name)
        if isinstance(found, Refused):
            raise found
        if found is None:
            raise NotConstant
        return found

    def conditions(self, asked: dict[int, Any]) -> dict[int, bool]:
        """Return the truth of variables at the ends of blocks, so far as types tell it. asked: by the block's label."""
        places = {label: len(self._state.func_ir.blocks[label].body) - 1 for label in asked}
        found: dict[int, bool] = {}
        try:
            types_of = self._types_of({(label, at): {asked[label].name} for label, at in places.items()})
        except Refused:
            return found
        for label, at in places.items():
            ty, settled, _ = types_of[label, at][asked[label].name]
            if settled:
                with contextlib.suppress(Unknown, *FAULTS):
                    found[label] = bool(static_value(ty))
        return found

    def _values(self, use: Place) -> dict[str, Any]:
        """Return the values of what one statement reads: ints, None where there is none, or what is wrong before it."""
        at = use.label, use.index
        inst = self._state.func_ir.blocks[use.label].body[use.index]
        found = self._types_of({at: {v.name for v in inst.value.list_vars()}})[at]
        out: dict[str, Any] = {}
        for name, (ty, settled, errors) in found.items():
            if isinstance(ty, types.IntegerLiteral) and settled:
                out[name] = ty.literal_value
            else:  # it may be that typing came no further than to a mistake
                out[name] = Refused(errors[0]) if errors and ty in (None, types.unknown) else None
        return out

    def _types_of(self, uses: dict[tuple[int, int], set[str]]) -> dict[tuple[int, int], dict[str, Any]]:
        """Return, for variables that statements (block, index) read: the type, whether it is settled, and the mistakes
        before it."""
        func_ir = _copied(self._state.func_ir)
        _simple_raises(func_ir)
        read = {at: _name_what_is_read(func_ir.blocks[at[0]], at[1], uses[at]) for at in sorted(uses, reverse=True)}
        merge_adjacent_blocks(func_ir.blocks)  # the reconstruction goes down a chain of blocks by recursion
        func_ir.blocks = rename_labels(func_ir.blocks)
        func_ir = reconstruct_ssa(func_ir)
        assigned = {i.target.name: i.value for _, i in statements(func_ir.blocks) if isinstance(i, ir.Assign)}
        typed = self._typed(func_ir)

        def found(alias: Any) -> Any:
            ty = typed.typemap.get(alias.name)
            before = [e for e in typed.typing_errors or () if lies_before(e, alias.loc)]
            return ty, _is_settled(alias.name, typed.typemap, assigned), before

        return {at: {name: found(alias) for name, alias in named.items()} for at, named in read.items()}

    def _typed(self, func_ir: Any) -> Any:
        state = self._state
        try:
            with holding_errors():
                return type_inference_stage(
                    state.typingctx, state.targetctx, func_ir, state.args, state.return_type, raise_errors=False
                )
        except (NumbaError, *FAULTS) as e:  # which Numba does not hold back: no such name in a module, no such index
            raise Refused(CuteError(str(e) or type(e).__name__)) from e


def _name_what_is_read(block: Any, index: int, names: set[str]) -> dict[str, Any]:
    """Give each variable that a statement reads a second name right before it, which SSA leaves as it is."""
    inst = block.body[index]
    named = {name: block.scope.redefine("$numba_cute_read", inst.loc) for name in sorted(names)}
    block.body[index:index] = [ir.Assign(block.scope.get_exact(name), alias, inst.loc) for name, alias in named.items()]
    return named


def _is_settled(name: str, typemap: Any, assigned: dict[str, Any]) -> bool:
    """Say whether all that a variable comes from has a type: a value that is not typed yet may differ from those that
    meet it in a phi."""
    seen, todo = {name}, [name]
    while todo:
        at = todo.pop()
        if typemap.get(at) in (None, types.unknown):
            return False
        value = assigned.get(at)
        uses = [value] if isinstance(value, ir.Var) else value.list_vars() if isinstance(value, ir.Expr) else ()
        new = {v.name for v in uses if isinstance(v, ir.Var)} - seen
        seen |= new
        todo.extend(new)
    return True


def _simple_raises(func_ir: Any) -> None:
    """Make raises static that Numba has not rewritten yet: it types no others, and what they raise does not matter."""
    for block in func_ir.blocks.values():
        last = block.terminator
        if isinstance(last, ir.Raise) and last.exception is not None:
            block.body[-1] = ir.StaticRaise(AssertionError, None, last.loc)


def _copied(func_ir: Any) -> Any:
    """Copy a function's IR, whose statements and expressions may be changed without changing this one's."""
    new = func_ir.copy()
    for block in new.blocks.values():
        block.body = [copied_statement(inst) for inst in block.body]
    return new


def copied_statement(inst: Any) -> Any:
    """Copy a statement, its expression and that one's arguments too."""
    new = copy.copy(inst)
    if isinstance(getattr(new, "value", None), ir.Expr):
        new.value = copy.copy(new.value)
        new.value._kws = dict(new.value._kws)
    return new
