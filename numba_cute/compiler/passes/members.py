# SPDX-License-Identifier: Apache-2.0
"""Members of enumerations of the user's that a call is given: what they are is known to the function that is called.

Numba keeps of a member no more than its number, known at run time. So this library's functions are given the number of
an IntEnum's member, and functions of the user's the member itself, which stands there as if it was written there;
what is compared with a member is compared with itself, too, so that the answer is static where the other one is.
"""

from __future__ import annotations

import enum
import operator
from operator import itemgetter
from typing import Any

from ... import seam
from ...seam.marks import plain
from ...seam.marks.constexpr import Constexpr, names_constexpr
from ...seam.marks.host_objects import python_of
from ..bridge.given_floats import StaticFloat
from ..bridge.object_types import Value
from ..ground.numba_cuda import CUDADispatcher, ir, typeof_impl
from .constants import Constants, NotConstant
from .definitions import Place


class Member:
    """A member of an enumeration as an argument of a call."""

    def __init__(self, member: Any) -> None:
        self.member = member


@typeof_impl.register(Member)
def _of_member(obj: Member, c: Any) -> Value:
    return Value(("const", type(obj.member), obj.member))


def keep_members(func_ir: Any, known: Constants) -> bool:
    """Give calls the members that they name, and write the members that this function is given where it reads them; say
    whether there is one."""
    changed = False
    for inst in func_ir.blocks[min(func_ir.blocks)].body:
        value = inst.value if isinstance(inst, ir.Assign) else None
        member = _given(known.args, value.index) if isinstance(value, ir.Arg) else None
        if member is not None:
            inst.value, changed = ir.Global(f"{type(member).__name__}.{member.name}", member, inst.loc), True
    before: list[tuple[Place, list[Any]]] = []  # put there at the end: until then `known` looks statements up
    for place, inst in sorted(known.expressions("binop") + known.expressions("call"), key=itemgetter(0)):
        made = _written(inst.value, place, known, func_ir.blocks[place.label].scope)
        if made:
            before.append((place, made))
    for place, made in reversed(before):
        func_ir.blocks[place.label].body[place.index : place.index] = made
    return changed or bool(before)


def _given(args: Any, index: int) -> Any:
    """Return the member that a parameter's type says; None if it says none."""
    ty = args[index] if index < len(args) else None
    spec = ty.spec if isinstance(ty, Value) else ("", None, None)
    return spec[2] if spec[0] == "const" and is_member(spec[2]) else None


def is_member(value: Any) -> bool:
    """Say whether a value is a member of an enumeration that is not of this library."""
    return isinstance(value, enum.Enum) and not isinstance(value, seam.StaticEnum)


_COMPARES = (operator.eq, operator.ne)


def _written(call: Any, place: Place, known: Constants, scope: Any) -> list[Any]:
    """Return the assignments of what a call, or a comparison, is given in the place of members, and change it."""
    if call.op == "binop" and call.fn in _COMPARES:
        of_members = _Members(known, scope, place)
        call.lhs, call.rhs = of_members.of(call.lhs, place), of_members.of(call.rhs, place)
        return of_members.made
    if call.op != "call":
        return []
    try:
        function = known.of(call.func, place)
    except NotConstant:
        return []
    if seam.is_traced(function) or seam.is_frozen_class(function):
        given: _Members = _Numbers(known, scope, place)
    elif isinstance(function, CUDADispatcher) or plain.is_plain_function(function):
        given = _Members(known, scope, place)
    elif plain.is_plain_class(function):
        given = _Unchanged(known, scope, place)
    else:
        return []
    floats, static = _Floats(known, scope, place), _static_parameters(function)
    by_place = [*static.values(), *(False for _ in call.args)]
    call.args = [(floats if s else given).of(v, place) for s, v in zip(by_place, call.args)]
    call.kws = [(name, (floats if static.get(name) else given).of(v, place)) for name, v in call.kws]
    return [*given.made, *floats.made]


def _static_parameters(function: Any) -> dict[str, bool]:
    """Return the parameters of a function or a class of the user's, and of each whether it is marked Constexpr."""
    of = python_of(function) or function
    if seam.is_traced(of) or seam.is_frozen_class(of):
        return {}
    try:
        parameters = plain.own_signature(of).parameters
    except (TypeError, ValueError):
        return {}
    return {n: p.annotation is Constexpr or names_constexpr(p.annotation) for n, p in parameters.items()}


class _Members:
    """Gives a function of the user's the members that a call names. made: the assignments that come before the call,
    at `place`."""

    def __init__(self, known: Constants, scope: Any, place: Place) -> None:
        self._known, self._scope, self._place = known, scope, place
        self.made: list[Any] = []

    def of(self, var: Any, use: Place) -> Any:
        """Return what the call is given for a variable that is read at `use`."""
        value = self._value(var, use)
        return self._assigned(ir.Global(var.name, Member(value), var.loc), var) if is_member(value) else var

    def _value(self, var: Any, use: Place) -> Any:
        try:
            return self._known.of(var, use)
        except NotConstant:
            return None

    def _assigned(self, value: Any, var: Any) -> Any:
        target = self._scope.redefine("$numba_cute_member", var.loc)
        self.made.append(ir.Assign(value, target, var.loc))
        return target


class _Unchanged(_Members):
    """Gives what the call is given."""

    def of(self, var: Any, use: Place) -> Any:
        """Return the variable."""
        return var


class _Floats(_Members):
    """Gives a float of the source to a parameter that is static: its type says the number. Members as of others."""

    def of(self, var: Any, use: Place) -> Any:
        """Return what the call is given for a variable that is read at `use`."""
        value = self._value(var, use)
        if type(value) is not float:
            return super().of(var, use)
        return self._assigned(ir.Global(var.name, StaticFloat(value), var.loc), var)


class _Numbers(_Members):
    """Gives a function of this library the numbers of the members that a call names, in tuples too."""

    def of(self, var: Any, use: Place) -> Any:
        """Return what the call is given for a variable that is read at `use`."""
        value = self._value(var, use)
        if is_member(value) and isinstance(value, int):
            return self._assigned(ir.Const(int(value), var.loc), var)
        node, at = self._known.assignment(var, use) or (None, use)
        if not isinstance(node, ir.Expr) or node.op != "build_tuple":
            return var
        items = [self.of(item, at) for item in node.items]
        changed = [a is not b for a, b in zip(items, node.items)]
        kept = all(c or self._known.is_same(item, at, self._place) for c, item in zip(changed, node.items))
        return self._assigned(ir.Expr.build_tuple(items, var.loc), var) if any(changed) and kept else var
