# SPDX-License-Identifier: Apache-2.0
"""The arguments of a call of a function in a kernel, before Numba puts that function in its place.

Numba takes the arguments in their order, whatever they are named, and appends all defaults: of `def f(a, b=2, c=3)` the
call `f(1, 5)` would have c = 2. So each call names none, and has them all.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import CodeType
from typing import Any

from ...seam import CuteError
from ...seam.ground.names import WrongArguments
from ..ground.errors import located
from ..ground.numba_cuda import ir
from ..ground.places import Place, placing_inlined


def inlining(inline: Callable[..., Any]) -> Callable[..., Any]:
    """Make of the function by which Numba inlines a call the one that does it here."""
    return placing_inlined(_with_all_arguments(inline))


def _with_all_arguments(inline: Callable[..., Any]) -> Callable[..., Any]:
    """Make of the function by which Numba inlines a call one that completes the call of a closure of a kernel."""

    def called(func_ir: Any, space: Any, block: Any, at: int, callee: Any, *args: Any, **named: Any) -> Any:
        inst = block.body[at]
        if isinstance(callee, ir.Expr) and isinstance(inst.loc, Place) and inst.value.op == "call":
            before = _completed(func_ir, block.scope, inst, callee)
            block.body[at:at] = before
            at += len(before)
        return inline(func_ir, space, block, at, callee, *args, **named)

    return called


def _completed(func_ir: Any, scope: Any, inst: Any, callee: Any) -> list[Any]:
    """Give a call the arguments for all parameters, in their order. Return the statements that make them. CuteError:
    the function does not take those of the call."""
    call, code, loc = inst.value, callee.code, inst.loc
    defaults = _defaults(func_ir, callee.defaults)
    signature = _signature(code, len(defaults))
    if call.vararg is not None or not (call.kws or defaults or len(signature.parameters) != len(call.args)):
        return []
    given = dict(call.kws)
    try:
        bound = signature.bind(*call.args, **given).arguments
    except TypeError as e:
        text = f"{code.co_name}{signature} was called with other arguments: {e}"
        raise located(WrongArguments(text), loc) from None
    before: list[Any] = []

    def variable(value: Any) -> Any:
        if isinstance(value, ir.Var):
            return value
        made = scope.redefine("$numba_cute_argument", loc)
        before.append(ir.Assign(value, made, loc))
        return made

    named = dict(zip(code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount], defaults))
    args = []
    for p in signature.parameters.values():
        if p.kind is p.VAR_KEYWORD:
            raise located(CuteError(f"def {code.co_name}(**{p.name}) in a kernel: name the parameters"), loc)
        value: Any = bound.get(p.name, () if p.kind is p.VAR_POSITIONAL else named.get(p.name))
        args.append(variable(ir.Expr.build_tuple(list(value), loc) if p.kind is p.VAR_POSITIONAL else value))
    call.args, call.kws = args, ()
    return before


def _defaults(func_ir: Any, defaults: Any) -> list[Any]:
    """Return the defaults of a function's last positional parameters: variables, and constants."""
    if isinstance(defaults, ir.Var):
        made = func_ir.get_definition(defaults)
        defaults = tuple(made.items if isinstance(made, ir.Expr) else made.value)
    return [x if isinstance(x, ir.Var) else ir.Const(x, ir.unknown_loc) for x in defaults or ()]


def _signature(code: CodeType, defaults: int) -> inspect.Signature:
    P = inspect.Parameter  # noqa: N806
    names, count = iter(code.co_varnames), code.co_argcount
    found = [
        P(next(names), P.POSITIONAL_OR_KEYWORD, default=... if i >= count - defaults else P.empty) for i in range(count)
    ]
    own = [P(next(names), P.KEYWORD_ONLY) for _ in range(code.co_kwonlyargcount)]
    if code.co_flags & inspect.CO_VARARGS:
        found.append(P(next(names), P.VAR_POSITIONAL))
    found += own
    if code.co_flags & inspect.CO_VARKEYWORDS:
        found.append(P(next(names), P.VAR_KEYWORD))
    return inspect.Signature(found)
