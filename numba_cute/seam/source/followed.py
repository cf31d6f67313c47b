# SPDX-License-Identifier: Apache-2.0
"""Functions of kernels that Python itself is followed through: `not x` of what is known only at run time is computed,
as where Numba compiles the function; Python would ask for a truth value now. `with cute.arch.elect_one():` is the `if`
that it means (with_statements.py)."""

from __future__ import annotations

import ast
import functools
import weakref
from types import CellType, CodeType, FunctionType
from typing import Any

from ..ground.backend import current
from ..ground.bytecode import decides
from ..ground.leaf import Leaf
from ..ground.places import syntax_of
from .with_statements import opens_elected

_NOT, _WHEN = "__cute_not__", "__cute_when__"
_FUTURE = 0x1000000  # of `from __future__ import annotations`
_MADE: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def followed(fn: FunctionType) -> FunctionType:
    """Return a function whose `not` and `with elect_one():` take what is known only at run time; itself where it has
    none, or no source. A `with` whose block sets a variable, or is left, stays."""
    if fn not in _MADE:
        _MADE[fn] = _rewritten(fn) or fn
    made: FunctionType = _MADE[fn]
    return made


def not_of(x: Any) -> Any:
    """Return `not x`, which is known at run time alone if `x` is."""
    return current().compare("==", x, 0) if isinstance(x, Leaf) else not x


def when(condition: Any) -> Any:
    """Make the context manager of the `if` of a condition that is known at run time alone."""
    return current().guarded(condition)


_GIVEN = {_NOT: not_of, _WHEN: when}


class _AtRunTime(ast.NodeTransformer):
    """Puts a call in the place of each `not` and each `with elect_one():`. found: whether there is one."""

    def __init__(self) -> None:
        self.found = False

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Not):
            return node
        self.found = True
        return ast.copy_location(ast.Call(ast.Name(_NOT, ast.Load()), [node.operand], []), node)

    def visit_With(self, node: ast.With) -> Any:
        self.generic_visit(node)
        if not opens_elected(node) or node.items[0].optional_vars is not None or any(map(_is_more, _within(node))):
            return node
        self.found = True
        item = node.items[0]
        item.context_expr = ast.Call(ast.Name(_WHEN, ast.Load()), [item.context_expr], [])
        return node


def _within(node: ast.With) -> list[ast.AST]:
    return [part for statement in node.body for part in ast.walk(statement)]


def _is_more(part: ast.AST) -> bool:
    """Say whether a part of a block does what a function in its place would not: it sets a variable, or leaves it."""
    if isinstance(part, ast.Name):
        return not isinstance(part.ctx, ast.Load)
    return isinstance(part, (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom))


def _rewritten(fn: FunctionType) -> FunctionType | None:
    code = fn.__code__
    if not decides(code):
        return None
    try:
        tree, first = syntax_of(fn)
        (body,) = tree.body
    except (OSError, SyntaxError, ValueError):
        return None
    if not isinstance(body, ast.FunctionDef) or body.name != code.co_name:
        return None
    calls = _AtRunTime()
    body = calls.visit(body)
    if not calls.found:
        return None
    body.decorator_list, body.returns = [], None
    if not code.co_kwonlyargcount:  # Numba has no such parameters: a function made for it takes them by place
        body.args.args += body.args.kwonlyargs
        body.args.kwonlyargs, body.args.kw_defaults = [], []
    for a in (*body.args.posonlyargs, *body.args.args, *body.args.kwonlyargs, body.args.vararg, body.args.kwarg):
        if a is not None:
            a.annotation = None
    ast.increment_lineno(body, first - 1)
    outer: Any = ast.parse(f"def outer({', '.join((*code.co_freevars, *_GIVEN))}): pass").body[0]
    outer.body = [body]
    module = ast.fix_missing_locations(ast.Module([outer], []))
    new = _inner(_inner(compile(module, code.co_filename, "exec", dont_inherit=True, flags=code.co_flags & _FUTURE)))
    cells = dict(zip(code.co_freevars, fn.__closure__ or ())) | {n: CellType(x) for n, x in _GIVEN.items()}
    made = FunctionType(new, fn.__globals__, fn.__name__, fn.__defaults__, tuple(cells[n] for n in new.co_freevars))
    made.__kwdefaults__ = fn.__kwdefaults__
    functools.update_wrapper(made, fn)
    del made.__wrapped__  # type: ignore[attr-defined]
    return made


def _inner(code: CodeType) -> CodeType:
    return next(c for c in code.co_consts if isinstance(c, CodeType))
