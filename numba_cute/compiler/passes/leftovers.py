# SPDX-License-Identifier: Apache-2.0
"""Statements that are left over once constants are folded and loops unrolled: numbers that were folded into others, and
the names that a copy of a loop's body gave its index. Each would be typed, looked through by all passes and lowered."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..ground.numba_cuda import ir, replace_vars_inner, replace_vars_stmt
from .definitions import instructions
from .uses import read_in

_SAME = (int, bool, str, type(None))
"""The types whose equal constants are one."""
_RENAMED = frozenset((ir.SetItem, ir.StaticSetItem, ir.SetAttr, ir.Return, ir.Branch, ir.Print))


def leave_out(func_ir: Any) -> None:
    """Let statements read a constant, a global or a closure's variable by the first of its names in a block, and leave
    out those that nothing reads."""
    once = Counter(i.target.name for i in instructions(func_ir.blocks) if type(i) is ir.Assign)
    reads: Counter[str] = Counter()
    names: set[str] = set()
    for block in func_ir.blocks.values():
        first: dict[str, Any] = {}
        loads: dict[Any, Any] = {}
        for inst in block.body:
            read = read_in(inst)
            if not read.isdisjoint(first) and _rename(inst, first):
                read = read_in(inst)
            reads.update(read)
            if type(inst) is not ir.Assign or once[inst.target.name] > 1:
                continue
            target, key = inst.target, _loaded(inst)
            if key is not None:
                names.add(target.name)
                have = loads.setdefault(key, target)
                if have is not target:
                    first[target.name] = have
                loads[target.name] = target
            elif type(inst.value) is ir.Var and inst.value.name in loads:
                names.add(target.name)
                first[target.name] = inst.value
    for block in func_ir.blocks.values():
        kept = []
        for inst in reversed(block.body):
            if type(inst) is ir.Assign and inst.target.name in names and not reads[inst.target.name]:
                reads.subtract(read_in(inst))
            else:
                kept.append(inst)
        block.body = kept[::-1]


def _loaded(inst: Any) -> Any:
    """Return what tells the constant, or the global's object, that a statement loads from others; None if it loads
    none. A constant that stands for what the user named has that name alone."""
    value, target = inst.value, inst.target.name
    kind = type(value)
    if kind is ir.Const:
        held = value.value
        same = target.startswith("$") and type(held) in _SAME
        return (type(held), held, value.use_literal_type) if same else (ir.Const, target)
    if kind in (ir.Global, ir.FreeVar) and target.startswith("$"):
        return kind, value.name, id(value.value)
    return None


def _rename(inst: Any, first: dict[str, Any]) -> bool:
    """Have a statement read variables by other names; say whether it is of a kind that can."""
    if type(inst) is ir.Assign:
        inst.value = replace_vars_inner(inst.value, first)
    elif type(inst) in _RENAMED:
        replace_vars_stmt(inst, first)
    else:
        return False
    return True
