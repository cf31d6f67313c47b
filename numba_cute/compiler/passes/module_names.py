# SPDX-License-Identifier: Apache-2.0
"""Names in modules of this library, as `cute.arch.sync_threads`: one statement has what three load from module to
module, before loops are unrolled and types inferred. What has rules of its own as a module's attribute, a number or a
function of Numba's, is left to them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from ...seam import CuteError
from ...seam.ground.packages import is_librarys
from ..bridge.object_types import Value
from ..ground.numba_cuda import NumbaError, ir
from .definitions import instructions
from .uses import read_in

_LOADS = (ir.Global, ir.FreeVar)


def load_at_once(func_ir: Any, typingctx: Any) -> bool:
    """Load what modules of this library hold by one statement each; say whether there was any. typingctx: tells the
    type of what is loaded."""
    modules = _modules(func_ir.blocks)
    if not modules:
        return False
    changed = False
    for label in sorted(func_ir.blocks):
        for inst in func_ir.blocks[label].body:
            expr: Any = inst.value if type(inst) is ir.Assign else None
            if type(expr) is not ir.Expr or expr.op != "getattr" or expr.value.name not in modules:
                continue
            found = getattr(modules[expr.value.name], expr.attr, None)
            if isinstance(found, ModuleType):
                if inst.target.name.startswith("$") and is_librarys(found):
                    modules[inst.target.name] = found
            elif callable(found) and _is_value(found, typingctx):
                name = f"{modules[expr.value.name].__name__}.{expr.attr}"  # not one that a builtin has
                inst.value = ir.Global(name, found, expr.loc)
                changed = True
    if changed:
        _leave_out_unread(func_ir.blocks, modules.keys())
    return changed


def _is_value(found: Any, typingctx: Any) -> bool:
    """Say whether what a module holds is a function or an object of this library's to a kernel. What has no type is
    refused where it is read."""
    try:
        return isinstance(typingctx.resolve_value_type(found), Value)
    except (ValueError, NumbaError, CuteError):
        return False


def _modules(blocks: dict[int, Any]) -> dict[str, ModuleType]:
    """Return the modules of this library that variables of the bytecode's stack have, which are set once."""
    found: dict[str, ModuleType] = {}
    seen: set[str] = set()
    for inst in instructions(blocks):
        if type(inst) is not ir.Assign:
            continue
        name, value = inst.target.name, inst.value
        if name in seen:
            found.pop(name, None)
        elif isinstance(value, _LOADS) and isinstance(value.value, ModuleType) and is_librarys(value.value):
            found[name] = value.value
        seen.add(name)
    return found


def _leave_out_unread(blocks: dict[int, Any], names: Any) -> None:
    """Leave out the statements that set variables of some names which nothing reads."""
    gone: set[str] = set(names)
    while gone:
        read = {v for inst in instructions(blocks) for v in read_in(inst) if v in gone}
        gone -= read
        if not gone:
            return
        for block in blocks.values():
            block.body = [i for i in block.body if type(i) is not ir.Assign or i.target.name not in gone]
        gone = read
