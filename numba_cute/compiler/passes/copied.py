# SPDX-License-Identifier: Apache-2.0
"""Objects that a loop carries from round to round, as in `work = following`, while its next round makes another: if
nothing in the kernel sets a field of such an object, a copy of it is the object. And objects that each round makes for
a field, as in `pipe.state = advanced(pipe.state)`: nothing else has such an object, and a copy of it is the object."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...seam import is_struct_class
from ...seam.marks.plain import is_plain_class
from ..bridge.effects import kinds
from ..bridge.object_types import StructRef
from ..bridge.settings import set_later
from ..ground.numba_cuda import ir, types
from .definitions import statements
from .uses import read_in


class Copied(ir.Assign):
    """An assignment of a copy, which has a place of its own in the frame."""


def copy_carried(blocks: dict[int, Any], typemap: Any, carried: set[str]) -> bool:
    """Let variables that loops carry have copies of objects that nothing changes; say whether there was one."""
    if _compares(blocks, typemap):
        return False
    wanted = _sources(blocks, carried)
    changed = False
    for place, inst in statements(blocks):
        if type(inst) is ir.Assign and isinstance(inst.value, ir.Var) and inst.target.name in wanted:
            if typemap[inst.target.name] == typemap[inst.value.name] and _never_changes(typemap[inst.target.name]):
                blocks[place.label].body[place.index] = Copied(inst.value, inst.target, inst.loc)
                changed = True
    return changed


def copy_into_fields(blocks: dict[int, Any], typemap: Any, made: set[str]) -> bool:
    """Let fields have copies of objects that variables of `made` hold, which are used for nothing but that; say whether
    there was one."""
    used = Counter(v for _, i in statements(blocks) if not isinstance(i, ir.Del) for v in read_in(i))
    changed = False
    for place, inst in list(statements(blocks)):
        value: Any = getattr(inst, "value", None)
        if not sets_field(inst, typemap) or value.name not in made or used[value.name] > 1:
            continue
        if _holds_none(typemap[value.name]):
            copy = ir.Var(value.scope, f"{value.name}.copy", inst.loc)
            typemap[copy.name] = typemap[value.name]
            body = blocks[place.label].body
            body.insert(next(i for i, x in enumerate(body) if x is inst), Copied(value, copy, inst.loc))
            inst.value = copy  # of the same statement, by which its types are known
            changed = True
    return changed


def sets_field(inst: Any, typemap: Any) -> bool:
    """Say whether a statement sets a field of an object, and calls no property of its class."""
    ty = typemap[inst.target.name] if isinstance(inst, ir.SetAttr) else None
    return isinstance(ty, StructRef) and inst.attr in ty.types


def _compares(blocks: dict[int, Any], typemap: Any) -> bool:
    """Say whether a function asks which object is which, or gives two of one kind to a call, which may."""
    values = [i.value for _, i in statements(blocks) if isinstance(i, ir.Assign) and isinstance(i.value, ir.Expr)]
    asked = (e for e in values if e.op == "binop")
    if any(all(isinstance(typemap[v.name], StructRef) for v in (e.lhs, e.rhs)) for e in asked):
        return True
    return any(_gives_two(e, typemap) for e in values if e.op == "call")


def _gives_two(call: Any, typemap: Any) -> bool:
    """Say whether a call is given two objects of one type, that whose method it is among them."""
    receiver = getattr(typemap[call.func.name], "this", None)
    given = [receiver, *(typemap[v.name] for v in (*call.args, *(v for _, v in call.kws)))]
    objects = [ty for ty in given if isinstance(ty, StructRef)]
    return len(set(objects)) < len(objects)


def _sources(blocks: dict[int, Any], carried: set[str]) -> set[str]:
    """Return variables, and those from which they come where ways meet."""
    found = set(carried)
    grown = True
    while grown:
        before = len(found)
        for _, inst in statements(blocks):
            value = getattr(inst, "value", None)
            if isinstance(value, ir.Expr) and value.op == "phi" and inst.target.name in found:
                found |= {v.name for v in value.incoming_values if v is not ir.UNDEFINED}
        grown = len(found) > before
    return found


def _never_changes(ty: Any) -> bool:
    """Say whether nothing in the kernel sets a field of an object of a type, which holds no objects itself."""
    return _holds_none(ty) and not set_later(ty.cls) & ty.types.keys()


def _holds_none(ty: Any) -> bool:
    """Say whether an object of a type holds no objects itself."""
    if not isinstance(ty, StructRef) or not (is_plain_class(ty.cls) or is_struct_class(ty.cls)):
        return False
    inner: list[types.Type] = [t for _, t in ty.fields]
    return not any(map(kinds, inner))
