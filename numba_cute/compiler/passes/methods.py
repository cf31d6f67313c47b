# SPDX-License-Identifier: Apache-2.0
"""Python's methods as Numba does not know them: `super()`, and questions about fields whose answer the type
of `self` already holds, as `self.bias is None`."""

from __future__ import annotations

import operator
import sys
from typing import Any

from ..bridge.object_types import StructRef
from ..ground.numba_cuda import FunctionPass, get_definition, guard, ir, register_pass, types


@register_pass(mutates_CFG=False, analysis_only=False)
class Methods(FunctionPass):
    _name = "numba_cute_methods"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        func_ir, args = state.func_ir, state.args
        if not any(isinstance(a, StructRef) for a in args):
            return False
        changed = isinstance(args[0], StructRef) and _supers(func_ir, args[0])
        return _nones(func_ir, args) or changed


def _supers(func_ir: Any, this: StructRef) -> bool:
    """Make `Base.name(self, …)` of `super().name(…)`, as Python would find it for this class."""
    holder = _defining_class(func_ir.func_id.func)
    if holder is None or holder not in this.cls.__mro__:
        return False
    made = {
        inst.target.name
        for block in func_ir.blocks.values()
        for inst in block.find_insts(ir.Assign)
        if isinstance(inst.value, ir.Expr) and inst.value.op == "call" and not inst.value.args
        if getattr(guard(get_definition, func_ir, inst.value.func), "value", None) is super
    }
    bound: dict[str, Any] = {}
    for block in func_ir.blocks.values():
        body = []
        for inst in block.body:
            value = inst.value if isinstance(inst, ir.Assign) else None
            if isinstance(value, ir.Global) and value.value is super:
                continue
            if value is not None and inst.target.name in made:
                continue
            if isinstance(value, ir.Expr) and value.op == "getattr" and value.value.name in made:
                owner = _owner(this.cls, holder, value.attr)
                base = block.scope.redefine("$numba_cute_base", inst.loc)
                body.append(ir.Assign(ir.Const(owner, inst.loc), base, inst.loc))
                bound[inst.target.name] = True
                inst.value = ir.Expr.getattr(base, value.attr, inst.loc)
            elif isinstance(value, ir.Expr) and value.op == "call" and value.func.name in bound:
                me = block.scope.redefine("$numba_cute_self", inst.loc)
                body.append(ir.Assign(ir.Arg(func_ir.arg_names[0], 0, inst.loc), me, inst.loc))
                value.args = (me, *value.args)
            elif isinstance(inst, ir.Del) and inst.value in made:
                continue
            body.append(inst)
        block.body = body
    return bool(made)


def _defining_class(fn: Any) -> Any:
    """Return the class whose body defines a method that says `super()`."""
    if "__class__" not in fn.__code__.co_freevars:
        return None
    return fn.__closure__[fn.__code__.co_freevars.index("__class__")].cell_contents


def _owner(cls: type, holder: type, name: str) -> Any:
    mro = cls.__mro__
    for base in mro[mro.index(holder) + 1 :]:
        if name in vars(base):
            return base
    return mro[mro.index(holder) + 1]


def _nones(func_ir: Any, args: Any) -> bool:
    """Make constants of `x is None` and `x is not None` where x is a field (of a field…) of an argument."""
    changed = False
    for block in func_ir.blocks.values():
        for inst in block.find_insts(ir.Assign):
            value = inst.value
            if not (isinstance(value, ir.Expr) and value.op == "binop" and value.fn in (operator.is_, operator.is_not)):
                continue
            sides = [_field_type(func_ir, args, v) for v in (value.lhs, value.rhs)]
            if None in sides or not any(isinstance(t, types.NoneType) for t in sides):
                continue
            same = isinstance(sides[0], types.NoneType) and isinstance(sides[1], types.NoneType)
            inst.value = ir.Const(same is (value.fn is operator.is_), inst.loc)
            changed = True
    return changed


def _field_type(func_ir: Any, args: Any, var: Any) -> Any:
    """Return the type of None, or of a field of an argument; None if it is not known before typing."""
    node = guard(get_definition, func_ir, var)
    while isinstance(node, ir.Var):
        node = guard(get_definition, func_ir, node)
    if isinstance(node, (ir.Const, ir.Global, ir.FreeVar)):
        return types.none if node.value is None else None
    if isinstance(node, ir.Arg):
        return args[node.index] if isinstance(args[node.index], StructRef) else None
    if isinstance(node, ir.Expr) and node.op == "getattr":
        owner = _field_type(func_ir, args, node.value)
        return owner.types.get(node.attr) if isinstance(owner, StructRef) else None
    return None


def flow_super_attr(self: Any, state: Any, inst: Any) -> None:
    """Follow Python 3.12's `LOAD_SUPER_ATTR`, which Numba lacks, through the stack: `super().name` is one opcode there,
    and here 3.11's call and attribute. A method of Numba's `TraceRunner`."""
    this, holder, maker = state.pop(), state.pop(), state.pop()
    made, res = state.make_temp(), state.make_temp()
    null = [state.make_null()] if inst.arg & 1 else []  # it is called: as LOAD_ATTR leaves a method
    for value in (res, *null) if sys.version_info >= (3, 13) else (*null, res):
        state.push(value)
    state.append(inst, maker=maker, given=(holder, this) if inst.arg & 2 else (), made=made, res=res)


def interpret_super_attr(self: Any, inst: Any, maker: str, given: tuple[str, ...], made: str, res: str) -> None:
    """Write what `flow_super_attr` found as IR. A method of Numba's `Interpreter`."""
    self.store(ir.Expr.call(self.get(maker), [self.get(g) for g in given], (), loc=self.loc), made)
    self.store(ir.Expr.getattr(self.get(made), self.code_names[inst.arg >> 2], loc=self.loc), res)
