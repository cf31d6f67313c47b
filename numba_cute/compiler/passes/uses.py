# SPDX-License-Identifier: Apache-2.0
"""Find the variables that the statements of a function use and set, and do Numba's post-processing that follows from
them.

Numba's own, which follows ten of its passes, computes each time which variables live where. Only generators, and those
of its steps that write `del` statements, ask for it: of this library's functions it is computed when it is asked for.
Nor are `del` statements written where nothing comes of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from ..ground.numba_cuda import (
    VariableLifetime,
    _use_defs_result,
    canonicalize_cfg,
    compute_use_defs,
    ir,
    ir_extension_usedefs,
)

_KINDS: dict[type, int] = {}
"""The way in which statements hold variables, by class: 0 for none, then a variable, an instruction, a sequence, a
dictionary; an expression, which is an instruction that is asked for nothing but its dictionary."""


def listing(listed: Callable[[Any, Any], list[Any]]) -> Callable[[Any, Any], list[Any]]:
    """Make of Numba's list of the variables in a part of a statement one that asks once for each class what it is: its
    own asks abstract classes each time, which took a twentieth of a compilation."""

    def found(self: Any, part: Any) -> list[Any]:
        variables: list[Any] = []
        _list(part.values() if type(part) is dict else (part,), variables)
        return variables

    return found


def _list(parts: Any, variables: list[Any]) -> None:
    for part in parts:
        kind = _KINDS.get(type(part))
        if kind is None:
            kind = _KINDS[type(part)] = _kind(part)
        if kind == 0:
            continue
        if kind == 1:
            variables.append(part)
        elif kind == 2:
            variables.extend(part.list_vars())
        elif kind == 5:
            _list(part._kws.values(), variables)
        else:
            _list(part if kind == 3 else part.values(), variables)


def _kind(part: Any) -> int:
    if type(part) is ir.Expr:
        return 5
    kinds = (ir.var_types, ir.inst_types, (list, tuple), dict)
    return next((at for at, kind in enumerate(kinds, 1) if isinstance(part, kind)), 0)


_WRITTEN = frozenset((ir.Const, ir.Global, ir.FreeVar, ir.Arg))
_PLAIN = frozenset((str, int, bool, type(None)))
_OTHERS = frozenset((
    ir.Branch, ir.Return, ir.SetItem, ir.StaticSetItem, ir.SetAttr, ir.DelItem, ir.DelAttr, ir.StoreMap, ir.Print,
    ir.Raise, ir.StaticRaise, ir.DynamicRaise, ir.TryRaise, ir.StaticTryRaise, ir.DynamicTryRaise, ir.EnterWith,
    ir.PopBlock,
))  # fmt: skip
"""The statements that set no variable."""


def read_by(value: Any) -> set[str]:
    """Return the names of the variables that the right-hand side of an assignment reads."""
    found: set[str] = set()
    if type(value) is ir.Expr:
        for part in value._kws.values():
            _collect(part, found)
    elif type(value) not in _WRITTEN:
        _collect(value, found)
    return found


def read_in(inst: Any) -> set[str]:
    """Return the names of the variables that a statement reads; of one that is no assignment, all that it names."""
    return read_by(inst.value) if type(inst) is ir.Assign else {v.name for v in inst.list_vars()}


def _collect(part: Any, found: set[str]) -> None:
    kind = type(part)
    if kind is ir.Var:
        found.add(part.name)
    elif kind is list or kind is tuple:
        for x in part:
            _collect(x, found)
    elif kind not in _PLAIN and isinstance(part, ir.inst_types):
        found.update(v.name for v in part.list_vars())


def uses_and_definitions(blocks: dict[int, Any]) -> Any:
    """Return what Numba's `compute_use_defs` does, in less time: by block, the names that it reads and does not set
    before, and those that it sets."""
    found = {label: of_block(block) for label, block in blocks.items()}
    return _use_defs_result(
        usemap={label: used for label, (used, _) in found.items()},
        defmap={label: defined for label, (_, defined) in found.items()},
    )


def of_block(block: Any) -> tuple[set[str], set[str]]:
    """Return the names that a block reads and does not set before, and those that it sets."""
    used: set[str] = set()
    defined: set[str] = set()
    for inst in block.body:
        kind = type(inst)
        if kind is ir.Assign:
            target, read = inst.target.name, read_by(inst.value)
            if target not in read:
                defined.add(target)
            used.update(read - defined)
        elif kind is ir.Del:
            if inst.value not in defined:
                used.add(inst.value)
        elif kind in _OTHERS and kind not in ir_extension_usedefs:
            used.update(v.name for v in inst.list_vars() if v.name not in defined)
        elif kind is not ir.Jump:  # of another package
            found = compute_use_defs({0: block})
            return found.usemap[0], found.defmap[0]
    return used, defined


def _shape(blocks: dict[int, Any]) -> dict[int, list[int]]:
    """Return the labels of a function's blocks, and where each leads."""
    return {label: block.terminator.get_targets() for label, block in blocks.items()}


class _Lifetime(VariableLifetime):
    @cached_property
    def usedefs(self) -> Any:
        return uses_and_definitions(self._blocks)


def mark(func_id: Any, flags: Any) -> None:
    """Note that a function, by its identity in Numba, is of this library; and whether `del` statements mean something
    there: they count references, and end what a debugger shows."""
    func_id.numba_cute_own = True
    func_id.numba_cute_dels = flags.nrt or flags.dbg_extend_lifetimes


def when_asked(run: Callable[..., None]) -> Callable[..., None]:
    """Make of Numba's post-processing one that computes for functions of this library what is asked for alone."""

    def post_process(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
        func_ir = self.func_ir
        if func_ir.is_generator or not getattr(func_ir.func_id, "numba_cute_own", False):
            run(self, emit_dels, extend_lifetimes)
            return
        shape = _shape(func_ir.blocks)
        if getattr(func_ir, "cute_canonical", None) != shape:
            func_ir.blocks = canonicalize_cfg(func_ir.blocks)
            func_ir.cute_canonical = _shape(func_ir.blocks)
        func_ir.variable_lifetime = _Lifetime(func_ir.blocks)
        func_ir.generator_info = None
        if emit_dels and func_ir.func_id.numba_cute_dels:
            self._insert_var_dels(extend_lifetimes=extend_lifetimes)

    return post_process
