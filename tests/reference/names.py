# SPDX-License-Identifier: Apache-2.0
"""Which names of the CuTe DSL a file uses that this library does not have, read from its source:
`python -m tests.reference.names PATH…`."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numba_cute.compat import install
from numba_cute.compat.importing import ROOT

from .files import LEFT_OUT


def missing(source: str) -> list[str]:
    """List the names of `cutlass` that a file's source uses and that are not there; of one that this Python cannot read
    there is none."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return []
    bound, absent = dict[str, tuple[str, Any]](), set[str]()
    for node in ast.walk(tree):
        for name, path in _imported(node):
            found = _found(path)
            if found is None:
                absent.add(path)
            else:
                bound[name] = path, found[0]
    for node in ast.walk(tree):
        chain = _chain(node)
        if chain and chain[0] in bound:
            path, value = bound[chain[0]]
            for name in chain[1:]:
                path, value = f"{path}.{name}", _attribute(value, name)
                if value is None:
                    absent.add(path)
                if not _is_module(value):
                    break
    return sorted(absent)


def _imported(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the names that an import of `cutlass` binds, and of what."""
    if isinstance(node, ast.Import):
        for a in node.names:
            if a.name.split(".")[0] == ROOT:
                yield (a.asname, a.name) if a.asname else (ROOT, ROOT)
    if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] == ROOT:
        yield from ((a.asname or a.name, f"{node.module}.{a.name}") for a in node.names if a.name != "*")


def _found(path: str) -> tuple[Any] | None:
    """What a dotted name stands for, in a tuple; None for nothing."""
    try:
        return (importlib.import_module(path),)
    except ImportError:
        pass
    module, _, name = path.rpartition(".")
    try:
        value = _attribute(importlib.import_module(module), name)
    except ImportError:
        return None
    return None if value is None else (value,)


def _attribute(value: Any, name: str) -> Any:
    try:
        return getattr(value, name)
    except AttributeError:
        return None


def _is_module(value: Any) -> bool:
    return type(value).__name__ in ("module", "Mirror")


def _chain(node: ast.AST) -> list[str]:
    """The names of `a.b.c`; none of another expression."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    return [node.id, *names] if isinstance(node, ast.Name) and names else []


def main(paths: list[str]) -> None:
    """Print, for each file that lacks some, the names that are not there."""
    install()
    files = [f for p in map(Path, paths) for f in (sorted(p.rglob("*.py")) if p.is_dir() else [p])]
    files = [f for f in files if not any(part in str(f) for part in LEFT_OUT)]
    whole = 0
    for file in files:
        absent = missing(file.read_text())
        whole += not absent
        if absent:
            print(f"{file}: {', '.join(absent)}")
    print(f"{whole} of {len(files)} files find all their names")


if __name__ == "__main__":
    main(sys.argv[1:])
