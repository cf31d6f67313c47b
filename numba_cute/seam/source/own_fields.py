# SPDX-License-Identifier: Apache-2.0
"""Statements `self.f = …` of a kernel that is a method: the field becomes a variable of the kernel.

What a kernel holds of its object does not change, for it is in the kernel's type. So the kernel's own `self.f` is a
variable, as static as what it is set to; a method that it calls, or a function that it gives `self`, is given an object
with the variables' values. Both engines, and Python, see the same function.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .kernels_object import at_launch, check_fields, with_fields

_CHECK, _AT_LAUNCH, _WITH = "__cute_check_fields__", "__cute_at_launch__", "__cute_with_fields__"
OWN_FIELDS: dict[str, Callable[..., Any]] = {_CHECK: check_fields, _AT_LAUNCH: at_launch, _WITH: with_fields}
"""Functions that the rewritten kernel calls, by the names that it has there."""
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def fields_set(definition: ast.FunctionDef) -> frozenset[str]:
    """Return the names of the fields that a method sets in its object, as far as they can be variables: none where it
    gives its object's name to another, deletes a field, or where a function in it sets one or hides the object."""
    this = _object(definition)
    if this is None:
        return frozenset()
    whole = list(ast.walk(definition))
    inner = [n for x in _scopes(definition) for n in ast.walk(x)]
    changed = [n for n in whole if _is_field(n, this) and not isinstance(n.ctx, ast.Load)]  # type: ignore[attr-defined]
    within = any(n is c for n in inner for c in changed) or any(isinstance(n, ast.arg) and n.arg == this for n in inner)
    renamed = any(isinstance(n, ast.Name) and n.id == this and not isinstance(n.ctx, ast.Load) for n in whole)
    deleted = any(isinstance(n.ctx, ast.Del) for n in changed)  # type: ignore[attr-defined]
    refused = within or renamed or deleted
    return frozenset() if refused else frozenset(n.attr for n in changed)  # type: ignore[attr-defined]


def with_variables(definition: ast.FunctionDef, names: frozenset[str]) -> None:
    """Make the fields `names` of a method's object variables of the method.

    A field that a statement of the method's own body sets, ahead of all that reads it, is unset before that; any other
    one has at first the value of the launch.
    """
    this = _object(definition)
    assert this is not None
    taken = {n.id for n in ast.walk(definition) if isinstance(n, ast.Name)}
    variables = {name: _free(f"{this}__{name}", taken) for name in sorted(names)}
    body: list[ast.stmt] = [_check(definition, this, names)]
    known: dict[str, str] = {}

    def begin(which: Iterable[str], at: ast.stmt) -> None:
        for name in which:
            call = _call(_AT_LAUNCH, this, name)
            body.append(ast.copy_location(ast.Assign([ast.Name(variables[name], ast.Store())], call), at))
            known[name] = variables[name]

    if any(isinstance(n, ast.Name) and n.id == this for x in _scopes(definition) for n in ast.walk(x)):
        begin(variables, definition.body[0])  # a function in it may be called at any time
    for s in definition.body:
        new = [n for n in variables if n not in known and _mentions(s, this, n)]
        begin((n for n in new if not _sets_first(s, this, n)), s)
        body.append(_Variables(this, variables, dict(known)).visit(s))
        known |= {n: variables[n] for n in new}
    definition.body = body


def _check(definition: ast.FunctionDef, this: str, names: frozenset[str]) -> ast.stmt:
    """The statement that says whether the object's class lets its fields be variables."""
    called = {id(n.func) for n in ast.walk(definition) if isinstance(n, ast.Call)}
    read = {n.attr for n in ast.walk(definition) if _is_field(n, this) and id(n) not in called}  # type: ignore[attr-defined]
    call = _call(_CHECK, this, ",".join(sorted(names)), ",".join(sorted(read - names)))
    return ast.copy_location(ast.Expr(call), definition.body[0])


def _call(function: str, this: str, *words: str) -> ast.Call:
    return ast.Call(ast.Name(function, ast.Load()), [ast.Name(this, ast.Load()), *map(ast.Constant, words)], [])


def _scopes(definition: ast.FunctionDef) -> list[ast.AST]:
    return [x for s in definition.body for x in ast.walk(s) if isinstance(x, _SCOPES)]


def _object(definition: ast.FunctionDef) -> str | None:
    """Return the name of a method's object."""
    arguments = (*definition.args.posonlyargs, *definition.args.args)
    return arguments[0].arg if arguments else None


def _is_field(node: Any, this: str) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == this


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _mentions(s: ast.AST, this: str, name: str) -> bool:
    """Say whether a statement sets or reads a field."""
    return any(_is_field(n, this) and n.attr == name for n in ast.walk(s))  # type: ignore[attr-defined]


def _sets_first(s: ast.stmt, this: str, name: str) -> bool:
    """Say whether a statement sets a field whatever happens, and does not read it."""
    targets = s.targets if isinstance(s, ast.Assign) else [s.target] if isinstance(s, ast.AnnAssign) else []
    found = [n for n in ast.walk(s) if _is_field(n, this) and n.attr == name]  # type: ignore[attr-defined]
    whole = list(_parts(targets))
    return bool(found) and all(any(n is t for t in whole) for n in found)


def _parts(targets: Any) -> Iterator[ast.expr]:
    for t in targets:
        if isinstance(t, (ast.Tuple, ast.List)):
            yield from _parts(t.elts)
        else:
            yield t


class _Variables(ast.NodeTransformer):
    """Puts variables in the place of fields. this: the object's name. variables: by the fields. known: those that
    have a value."""

    def __init__(self, this: str, variables: dict[str, str], known: dict[str, str]) -> None:
        self._this, self._variables, self._known = this, variables, known

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if not _is_field(node, self._this):
            return self.generic_visit(node)
        name = self._variables.get(node.attr)
        return node if name is None else ast.copy_location(ast.Name(name, node.ctx), node)

    def visit_Call(self, node: ast.Call) -> Any:
        if _is_field(node.func, self._this) and node.func.attr not in self._variables:  # type: ignore[attr-defined]
            method: Any = node.func
            node.func = ast.copy_location(ast.Attribute(self._now(method.value), method.attr, ast.Load()), method)
            node.args = [self.visit(a) for a in node.args]
            node.keywords = [self.visit(k) for k in node.keywords]
            return node
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> Any:
        return self._now(node) if node.id == self._this else node

    def _now(self, node: ast.expr) -> ast.expr:
        """The object with the fields as they are there."""
        if not self._known:
            return node
        values: list[ast.expr] = [ast.Name(v, ast.Load()) for v in self._known.values()]
        names = ast.Constant(",".join(self._known))
        return ast.copy_location(ast.Call(ast.Name(_WITH, ast.Load()), [node, names, *values], []), node)
