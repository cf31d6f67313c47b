# SPDX-License-Identifier: Apache-2.0
"""Constants that only types tell, as the result of `cute.size(tensor)`: the bounds of loops that are to be unrolled.

What they come from is typed for them, so far as it can be, on a copy in SSA form, so that each use has the type of what
reaches it alone. All of the function is typed only where that tells no type: it may be that of something before it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from ...seam import CuteError
from ...seam.ground.places import at_line
from ..ground.errors import lies_before, line_shown
from ..ground.faults import is_numbas
from ..ground.numba_cuda import NumbaError, ir, merge_adjacent_blocks, rename_labels, type_inference_stage, types
from ..ground.refusals import refusal
from .constants import FAULTS, NotConstant
from .definitions import Place, instructions
from .rounds import letting_go
from .ssa import in_ssa_form
from .uses import read_by


class TypedConstants:
    """The values of variables whose types are literals where a statement uses them. It is of one state of the IR.
    expected: the statements that are likely to be asked for, whose types are found with the first."""

    def __init__(self, state: Any, expected: list[Place]) -> None:
        self._state, self._expected, self._whole = state, expected, False
        self._found: dict[Place, dict[str, Any]] = {}

    def of(self, var: Any, use: Place) -> Any:
        """Return the value of a variable that the statement at `use` reads; NotConstant if its type tells none. Where a
        mistake before it stopped typing, that is raised."""
        found = _literal(self.type_of(var, use))
        if found is None or not isinstance(found[0], int):
            raise NotConstant
        return found[0]

    def type_of(self, var: Any, use: Place) -> Any:
        """Return the type of a variable that the statement at `use` reads, None if it has none yet. What stopped typing
        before it is raised, as by `of`."""
        if use not in self._found:
            self._found.update(self._types([use]))
        found = self._found[use].get(var.name)
        if (found is None or isinstance(found, Exception)) and not self._whole:
            self._whole = True
            self._found = self._types(list(self._found))
            found = self._found[use].get(var.name)
        if isinstance(found, Exception):
            raise found
        return found

    def literals(self, reads: list[tuple[Any, Place]]) -> list[tuple[Any] | None]:
        """Return the value, in a tuple, of each variable that the statement at a place reads, an int, a bool, a string
        or None; None for one whose type tells none."""
        missing = list(dict.fromkeys(use for _, use in reads if use not in self._found))
        if missing:
            try:
                self._found.update(self._types(missing))
            except CuteError:
                return [None] * len(reads)
        found = [self._found[use].get(var.name) for var, use in reads]
        return [_literal(x) for x in found]

    def _types(self, uses: list[Place]) -> dict[Place, dict[str, Any]]:
        """Return the types of what some statements read, and those that are expected to be asked for: None where there
        is none, or what is wrong before it."""
        func_ir, expected = self._state.func_ir.copy(), self._expected
        self._expected = []
        read = {
            use: _name_what_is_read(func_ir.blocks[use.label], use.index)
            for use in sorted({*uses, *expected}, key=lambda p: (p.label, -p.index))
        }
        if not self._whole:
            _leave_out_others(func_ir, {a.name for named in read.values() for a in named.values()})
        _copy_statements(func_ir)
        merge_adjacent_blocks(func_ir.blocks)  # the reconstruction goes down a chain of blocks by recursion
        func_ir.blocks = rename_labels(func_ir.blocks)
        func_ir.blocks = in_ssa_form(func_ir.blocks)
        assigned = {i.target.name: i.value for i in instructions(func_ir.blocks) if isinstance(i, ir.Assign)}
        _index_by_constants(func_ir, assigned)
        with letting_go():
            typed = self._typed(func_ir)
        func_ir.blocks.clear()
        return {use: {n: self._type(a, typed, assigned) for n, a in named.items()} for use, named in read.items()}

    def _typed(self, func_ir: Any) -> Any:
        state = self._state
        try:
            return type_inference_stage(
                state.typingctx, state.targetctx, func_ir, state.args, state.return_type, raise_errors=False
            )
        except (NumbaError, *FAULTS) as e:  # which Numba does not hold back: no such name in a module, no such index
            if not isinstance(e, CuteError) and not is_numbas(e):
                raise
            if isinstance(e, CuteError):
                raise
            told = refusal(e) or CuteError(str(e) or type(e).__name__)
            line = line_shown(str(e), state.func_id.func)
            raise (told if line is None else at_line(told, *line)) from e

    def _type(self, alias: Any, typed: Any, assigned: dict[str, Any]) -> Any:
        """Return the type of a variable in a typed function: None if it has none, or what is wrong before it."""
        ty = typed.typemap.get(alias.name)
        if ty not in (None, types.unknown):
            return ty if is_settled(alias.name, typed.typemap, assigned, self._state.typingctx) else None
        # it may be that typing came no further than to a mistake
        before = [e for e in typed.typing_errors or () if lies_before(e, alias.loc)]
        return before[0] if before else None


def _leave_out_others(func_ir: Any, wanted: set[str]) -> None:
    """Leave out the statements that no variable of some names comes from, on any way, and no result, by which a call of
    the function itself has its type. What a function does with an object or an array changes no type."""
    made: dict[str, set[str]] = defaultdict(set)
    for inst in instructions(func_ir.blocks):
        if type(inst) is ir.Assign:
            made[inst.target.name] |= read_by(inst.value)
        elif type(inst) is ir.Return:
            wanted.add(inst.value.name)
    todo = list(wanted)
    while todo:
        new = made[todo.pop()] - wanted
        wanted |= new
        todo.extend(new)
    entry = func_ir.blocks[min(func_ir.blocks)]
    some = entry.scope.redefine("$numba_cute_some_way", entry.loc)
    for block in func_ir.blocks.values():
        end = block.body[-1]
        if type(end) is ir.Branch and end.cond.name not in wanted:
            end = ir.Branch(some, end.truebr, end.falsebr, end.loc)
        block.body = [*(i for i in block.body if type(i) is ir.Assign and i.target.name in wanted), end]
    entry.body.insert(0, ir.Assign(ir.Const(True, entry.loc), some, entry.loc))


def _index_by_constants(func_ir: Any, assigned: dict[str, Any]) -> None:
    """Write down which items are of a constant index, as Numba does after this: for a tuple and a literal it compiles
    a function of its own, for each of their types."""
    for inst in instructions(func_ir.blocks):
        expr: Any = inst.value if type(inst) is ir.Assign else None
        if not isinstance(expr, ir.Expr) or expr.op != "getitem":
            continue
        index: Any = assigned.get(expr.index.name)
        seen = {expr.index.name}
        while type(index) is ir.Var and index.name not in seen:  # a name that is set once may be its own copy's
            seen.add(index.name)
            index = assigned.get(index.name)
        if type(index) is ir.Const and type(index.value) is int:
            inst.value = assigned[inst.target.name] = ir.Expr.static_getitem(
                expr.value, index.value, expr.index, expr.loc
            )


def _literal(ty: Any) -> tuple[Any] | None:
    """Return the value that a type says, in a tuple; None if it says none."""
    if isinstance(ty, types.NoneType):
        return (None,)
    return (ty.literal_value,) if isinstance(ty, types.Literal) else None


def _name_what_is_read(block: Any, index: int) -> dict[str, Any]:
    """Give each variable that a statement reads a second name right before it, which SSA leaves as it is."""
    inst = block.body[index]
    names = {v.name for v in inst.value.list_vars()}
    named = {name: block.scope.redefine("$numba_cute_read", inst.loc) for name in sorted(names)}
    block.body[index:index] = [ir.Assign(block.scope.get_exact(name), alias, inst.loc) for name, alias in named.items()]
    return named


def is_settled(name: str, typemap: Any, assigned: dict[str, Any], typing: Any) -> bool:
    """Say whether all that a variable comes from has a type, as `typing`, Numba's context, unifies them: a value that
    is not typed yet, or that is of another type, may differ from those that meet it in a phi."""
    seen, todo = {name}, [name]
    while todo:
        at = todo.pop()
        if typemap.get(at) in (None, types.unknown):
            return False
        value = assigned.get(at)
        uses = [value] if isinstance(value, ir.Var) else value.list_vars() if isinstance(value, ir.Expr) else ()
        new = {v.name for v in uses if isinstance(v, ir.Var)}
        if isinstance(value, ir.Expr) and value.op == "phi" and not _meet(new, typemap, typing):
            return False
        todo.extend(new - seen)
        seen |= new
    return True


def _meet(names: set[str], typemap: Any, typing: Any) -> bool:
    """Say whether the variables that meet in a phi have one type together: of one that has none Numba's partial typing
    keeps what came first."""
    came = [typemap.get(n) for n in sorted(names)]
    return None not in came and typing.unify_types(*came) is not None


def _copy_statements(func_ir: Any) -> None:
    """Copy the statements and expressions of a copy of a function, so that they may be changed without changing the
    function's. What is raised is left out: Numba cannot type it as it is written, before one of its own passes has been
    there."""
    for block in func_ir.blocks.values():
        block.body = [
            ir.StaticRaise(AssertionError, None, inst.loc) if isinstance(inst, ir.Raise) else copied_statement(inst)
            for inst in block.body
        ]


def copied_statement(inst: Any) -> Any:
    """Copy a statement, its expression and that one's arguments too."""
    new = twin(inst)
    value = vars(new).get("value")
    if type(value) is ir.Expr:
        new.value = twin(value)
        new.value._kws = dict(value._kws)
    return new


def twin(part: Any) -> Any:
    """Copy a part of the IR, as `copy.copy` does in ten times as long."""
    made = object.__new__(type(part))
    vars(made).update(vars(part))
    return made
