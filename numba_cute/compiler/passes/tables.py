# SPDX-License-Identifier: Apache-2.0
"""Tables in a kernel: `{ADD: operator.add, MAX: max}[op]`, of which only the item that is looked up stays. A kernel has
no dictionaries of its own."""

from __future__ import annotations

from typing import Any

from numba.cuda.core import ir

from ...seam import CuteError
from ...seam.source.language import NO_DICT, no_such_key
from ..ground.errors import located
from .constants import Constants, NotConstant
from .definitions import Place, statements


def look_up(func_ir: Any, known: Constants) -> bool:
    """Put in the place of each look-up in a table what it finds, where the table's keys and the index are known; say
    whether there was one. CuteError: the table has no such key."""
    changed = False
    for place, inst in list(statements(func_ir.blocks)):
        value = inst.value if isinstance(inst, ir.Assign) else None
        if isinstance(value, ir.Expr) and value.op in ("getitem", "static_getitem"):
            found = _item(value, place, known)
            if found is not None:
                inst.value = found
                changed = True
    if changed:
        _drop_tables(func_ir.blocks)
    return changed


def _item(value: Any, place: Place, known: Constants) -> Any:
    """Return the variable of the item that an expression looks up; None if it looks up none that is known."""
    made, at = known.assignment(value.value, place) or (None, place)
    if not isinstance(made, ir.Expr) or made.op != "build_map":
        return None
    try:
        index = value.index if value.op == "static_getitem" else known.of(value.index, place)
        keys = [known.of(k, at) for k, _ in made.items]
    except NotConstant:
        return None
    for key, (_, item) in zip(reversed(keys), reversed(made.items)):  # of two that are equal Python has the later one
        if key is index or (hash(key) == hash(index) and key == index):
            return item
    raise located(CuteError(no_such_key(index, keys)), value.loc)


def refuse_others(func_ir: Any, items: bool = False) -> None:
    """Raise a CuteError, with its line, for a table that is asked for more than items; for items too, if all that are
    known were found."""
    tables: set[str] = set()
    while new := {i.target.name for _, i in statements(func_ir.blocks) if _is_dict(i, tables)} - tables:
        tables |= new
    for _, inst in statements(func_ir.blocks) if tables else ():
        if _is_dict(inst, tables) or isinstance(inst, ir.Del):
            continue
        value: Any = inst.value if isinstance(inst, ir.Assign) else None
        item = isinstance(value, ir.Expr) and value.op in ("getitem", "static_getitem")
        read = {v.name for v in (inst.list_vars() if value is None else _read(value))}
        if tables & read and not (item and not items and value.value.name in tables):
            raise located(CuteError(NO_DICT), inst.loc)


def _is_dict(inst: Any, tables: set[str]) -> bool:
    value = inst.value if isinstance(inst, ir.Assign) else None
    if isinstance(value, ir.Var):
        return value.name in tables
    return isinstance(value, ir.Expr) and value.op == "build_map"


def _drop_tables(blocks: dict[int, Any]) -> None:
    """Take away the tables that nothing reads any more."""
    while True:
        read = {v.name for _, i in statements(blocks) if not isinstance(i, ir.Assign) for v in i.list_vars()}
        read |= {v.name for _, i in statements(blocks) if isinstance(i, ir.Assign) for v in _read(i.value)}
        dead = {id(i) for _, i in statements(blocks) if _is_table(i, blocks) and i.target.name not in read}
        if not dead:
            return
        for block in blocks.values():
            block.body = [i for i in block.body if id(i) not in dead]


def _read(value: Any) -> list[Any]:
    return [value] if isinstance(value, ir.Var) else value.list_vars() if isinstance(value, ir.Expr) else []


def _is_table(inst: Any, blocks: dict[int, Any]) -> bool:
    """Say whether a statement makes a table, or gives one another name."""
    if not isinstance(inst, ir.Assign):
        return False
    if isinstance(inst.value, ir.Var):
        made = [i for _, i in statements(blocks) if isinstance(i, ir.Assign) and i.target.name == inst.value.name]
        return len(made) == 1 and _is_table(made[0], blocks)
    return isinstance(inst.value, ir.Expr) and inst.value.op == "build_map"
