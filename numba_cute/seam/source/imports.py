# SPDX-License-Identifier: Apache-2.0
"""`import` in kernels: what it gives, which is the same for all threads, stands in its place."""

from __future__ import annotations

import ast
import importlib
from types import CodeType
from typing import Any

from ..ground.bytecode import opnames
from ..ground.error import CuteError
from ..ground.places import at_line

_HIDDEN = "__cute_import_{}__"


def has_import(code: CodeType) -> bool:
    """Say whether code, or a function in it, imports."""
    return "IMPORT_NAME" in opnames(code) or any(has_import(c) for c in code.co_consts if isinstance(c, CodeType))


class Imports(ast.NodeTransformer):
    """Puts an assignment in the place of each import. fn: the function. given: by name, what was imported."""

    def __init__(self, fn: Any) -> None:
        self._fn = fn
        self.given: dict[str, Any] = {}

    def visit_Import(self, node: ast.Import) -> Any:
        made = []
        for alias in node.names:
            module = self._module(alias.name, 0, node)
            name = alias.asname or alias.name.partition(".")[0]
            made.append(self._assigned(name, module if alias.asname else self._module(name, 0, node), node))
        return made

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        source = self._module(node.module or "", node.level, node)
        made = []
        for alias in node.names:
            try:
                found = getattr(source, alias.name)
            except AttributeError:
                found = self._module(f"{source.__name__}.{alias.name}", 0, node)
            made.append(self._assigned(alias.asname or alias.name, found, node))
        return made

    def _module(self, name: str, level: int, node: ast.stmt) -> Any:
        try:
            return importlib.import_module("." * level + name, self._fn.__globals__.get("__package__"))
        except ImportError as e:
            raise at_line(CuteError(f"`{ast.unparse(node)}`: {e}"), self._fn.__code__.co_filename, node.lineno) from e

    def _assigned(self, name: str, value: Any, node: ast.stmt) -> ast.stmt:
        hidden = _HIDDEN.format(len(self.given))
        self.given[hidden] = value
        return ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], ast.Name(hidden, ast.Load())), node)
