# SPDX-License-Identifier: Apache-2.0
"""A failing program made small: statements are deleted while it fails in the same way."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ..pool import run_all

TRIES = 300


def _shorter(source: str) -> Iterator[str]:
    """Yield the program with a statement less, the long ones first, or with a compound one's body in its place."""
    places = []
    for at, node in enumerate(ast.walk(ast.parse(source))):
        for field in ("body", "orelse"):
            statements = getattr(node, field, None)
            for i, statement in enumerate(statements if isinstance(statements, list) else []):
                places.append((-(statement.end_lineno - statement.lineno), at, field, i))  # type: ignore[operator]
    for _, at, field, i in sorted(places):
        for inner in (False, True):
            tree = ast.parse(source)
            holder = getattr(list(ast.walk(tree))[at], field)
            body = getattr(holder[i], "body", None)
            if inner and (not isinstance(body, list) or isinstance(holder[i], (ast.FunctionDef, ast.ClassDef))):
                continue
            holder[i : i + 1] = body if inner else []
            if not holder and field == "body":
                holder.append(ast.Pass())
            yield ast.unparse(ast.fix_missing_locations(tree))


def shrunk(found: dict[str, Any], command: tuple[str, ...]) -> dict[str, Any]:
    """Return what came of the shortest program that fails as this one does; command: the workers'."""
    tries = 0
    while True:
        for source in _shorter(found["source"]):
            tries += 1
            if tries > TRIES:
                return found
            if "def kernel" not in source or source == found["source"]:
                continue
            new = next(iter(run_all([(found["label"], source)], 1, command)))
            if new["kind"] == found["kind"] and new["compiled"][:20] == found["compiled"][:20]:
                found = new
                break
        else:
            return found
