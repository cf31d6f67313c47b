# SPDX-License-Identifier: Apache-2.0
"""Fields that a function adds to a `SimpleNamespace` that it is given: from there on its variable holds a namespace
that has them too. The caller's has not: reading them there is refused, as a field that there is not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ...seam import CuteError, traced
from ..bridge.object_types import StructRef
from ..bridge.settings import set_later
from ..ground.errors import located
from ..ground.numba_cuda import ir
from .definitions import statements


def add_fields(func_ir: Any, args: Any) -> bool:
    """Make new namespaces where fields are added to those that are arguments; say whether there were any. args: the
    types of the function's arguments."""
    given = _given(func_ir, args)
    if not given:
        return False
    copies = _copies(func_ir)
    added: dict[str, set[str]] = {name: set() for name in given}
    found = [(place, inst) for place, inst in statements(func_ir.blocks) if isinstance(inst, ir.SetAttr)]
    for place, inst in reversed(found):  # what stands behind a statement is changed before it
        name = _written(inst.target.name, copies)
        if name in given and inst.attr not in given[name].types:
            added[name].add(inst.attr)
            _replace(func_ir.blocks[place.label], place.index, inst, name)
    for name, new in added.items():
        changing = set_later(SimpleNamespace) & given[name].types.keys() - new if new else ()
        if changing:
            text = f"{name}: fields are added to it here, and {min(changing)} is set elsewhere: give it all at once"
            raise located(CuteError(text), func_ir.loc)
    return any(added.values())


def _given(func_ir: Any, args: Any) -> dict[str, StructRef]:
    """Return the variables that hold nothing but an argument that is a namespace, and its type."""
    found: dict[str, StructRef] = {}
    again: set[str] = set()
    for _, inst in statements(func_ir.blocks):
        if not isinstance(inst, ir.Assign):
            continue
        name, value = inst.target.name, inst.value
        ty = args[value.index] if isinstance(value, ir.Arg) and value.index < len(args) else None
        if name in found:
            again.add(name)
        elif isinstance(ty, StructRef) and ty.cls is SimpleNamespace:
            found[name] = ty
    return {name: ty for name, ty in found.items() if name not in again}


def _copies(func_ir: Any) -> dict[str, str]:
    """Return the variable of which each one that the bytecode's stack has is a copy."""
    assigned = [inst for _, inst in statements(func_ir.blocks) if isinstance(inst, ir.Assign)]
    return {
        i.target.name: i.value.name for i in assigned if isinstance(i.value, ir.Var) and i.target.name.startswith("$")
    }


def _written(name: str, copies: dict[str, str]) -> str:
    while name in copies:
        name = copies[name]
    return name


def _replace(block: Any, index: int, inst: Any, name: str) -> None:
    """Have a variable hold a new namespace in place of setting a field."""
    function, field = (block.scope.redefine(f"$numba_cute_{n}", inst.loc) for n in ("with_field", "field"))
    call = ir.Expr.call(function, [inst.target, field, inst.value], (), inst.loc)
    block.body[index : index + 1] = [
        ir.Assign(ir.Global("with_field", with_field, inst.loc), function, inst.loc),
        ir.Assign(ir.Const(inst.attr, inst.loc), field, inst.loc),
        ir.Assign(call, block.scope.get_exact(name), inst.loc),
    ]


@traced
def with_field(namespace: Any, name: str, value: Any) -> Any:
    """Return a namespace with the fields of `namespace` and one more."""
    held = {n: getattr(namespace, n) for n in namespace._ty.types}
    return SimpleNamespace(**(held | {name: value}))
