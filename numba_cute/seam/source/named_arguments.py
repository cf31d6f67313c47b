# SPDX-License-Identifier: Apache-2.0
"""`f(x, **names)` in kernels, which Numba knows not: a call of a function of this library stands in its place, and one
where `names` is set to a dictionary. So too where a call has many named arguments, and one of them branches."""

from __future__ import annotations

import ast
from types import CodeType
from typing import Any

from ..ground.bytecode import operations, opnames
from ..marks.decorators import traced

_CALL, _DICT = "__cute_call__", "__cute_dict__"
_MOST = 15
"""Named arguments that Python passes one by one; more it puts into a dictionary, which Numba takes apart in straight
code alone."""


@traced
def call_with(function: Any, dictionaries: Any, /, *args: Any, **named: Any) -> Any:
    """Call a function with arguments, those that are named and those in dictionaries."""
    for held in dictionaries:
        named = dict(**named, **held)
    return function(*args, **named)


@traced
def dictionary(**named: Any) -> dict[str, Any]:
    """Return a dictionary."""
    return named


def has_dictionaries(code: CodeType) -> bool:
    """Say whether code, or a function in it, calls with a dictionary's items for named arguments."""
    inner = (c for c in code.co_consts if isinstance(c, CodeType))
    return "DICT_MERGE" in opnames(code) or any(map(has_dictionaries, inner))


def has_many(code: CodeType) -> bool:
    """Say whether code, or a function in it, calls with so many named arguments that Python makes a dictionary of
    them, and one of them branches."""
    added = jumps = False
    for o in operations(code):
        if o.name == "BUILD_MAP" and not added:
            jumps = False
        elif o.name == "MAP_ADD":
            added = True
        elif o.name == "CALL_FUNCTION_EX":
            if added and jumps:
                return True
            added = False
        jumps |= "JUMP" in o.name
    return any(has_many(c) for c in code.co_consts if isinstance(c, CodeType))


class NamedArguments(ast.NodeTransformer):
    """Puts such calls in their places. given: by name, the functions that they call."""

    def __init__(self, definition: Any) -> None:
        self._names = {
            k.value.id for n in ast.walk(definition) if isinstance(n, ast.Call)
            for k in n.keywords if k.arg is None and isinstance(k.value, ast.Name)
        }  # fmt: skip
        self.given: dict[str, Any] = {}

    def visit_Assign(self, node: ast.Assign) -> Any:
        if any(isinstance(t, ast.Name) and t.id in self._names for t in node.targets):
            node.value = self._as_calls(node.value)
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        held = [self._as_calls(k.value) for k in node.keywords if k.arg is None]
        named = [k for k in node.keywords if k.arg is not None]
        if len(named) > _MOST and not node.args and any(map(_branches, named)):  # Python makes a dictionary of them
            held = [*self._in_parts(named, node), *held]
            named = []
        if not held:
            return node
        self.given[_CALL] = call_with
        first = [node.func, ast.Tuple(held, ast.Load())]
        return ast.copy_location(ast.Call(ast.Name(_CALL, ast.Load()), [*first, *node.args], named), node)

    def _in_parts(self, named: list[ast.keyword], node: ast.Call) -> list[ast.expr]:
        """Return calls for dictionaries of so few names that Python passes them one by one."""
        self.given[_DICT] = dictionary
        parts = (named[i : i + _MOST] for i in range(0, len(named), _MOST))
        return [ast.copy_location(ast.Call(ast.Name(_DICT, ast.Load()), [], part), node) for part in parts]

    def _as_calls(self, value: ast.expr) -> ast.expr:
        """Return an expression with calls for the dictionaries that it may give."""
        if isinstance(value, ast.IfExp):
            value.body, value.orelse = self._as_calls(value.body), self._as_calls(value.orelse)
            return value
        named = _named(value)
        if named is None:
            return value
        self.given[_DICT] = dictionary
        return ast.copy_location(ast.Call(ast.Name(_DICT, ast.Load()), [], named), value)


def _branches(keyword: ast.keyword) -> bool:
    """Say whether the value of a named argument is found by a branch or a loop."""
    return any(isinstance(n, (ast.IfExp, ast.BoolOp, ast.ListComp, ast.Compare)) for n in ast.walk(keyword.value))


def _named(value: ast.expr) -> list[ast.keyword] | None:
    """Return the items of a dictionary of names that is written down; None of anything else."""
    if isinstance(value, ast.Dict):
        names = [k.value for k in value.keys if isinstance(k, ast.Constant) and isinstance(k.value, str)]
        return [ast.keyword(n, v) for n, v in zip(names, value.values)] if len(names) == len(value.keys) else None
    of_dict = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dict"
    return value.keywords if isinstance(value, ast.Call) and of_dict and not value.args else None
