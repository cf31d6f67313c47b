# SPDX-License-Identifier: Apache-2.0
"""What is taken of numba, numba-cuda and llvmlite: the files of the seam list it, all of it and nothing else."""

from __future__ import annotations

import ast
import functools
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from numba_cute.compiler.ground.numba_cuda import PRIVATE

from ..test_layers import PACKAGE, SOURCES

GROUND = PACKAGE / "compiler" / "ground"
COMPILER = [path for path in SOURCES if path.is_relative_to(PACKAGE / "compiler")]
OF_PYTHON = {"_getframe", "_get_dump", "_make", "_replace"}
LISTED = [(name, module) for module, groups in PRIVATE.items() for names in groups for name in names.split()]
NAMES = {name for name, _ in LISTED}


@functools.cache
def parsed(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text())))


def is_private(name: str) -> bool:
    return re.match(r"_[^_]", name) is not None and not name.startswith("_cute")


# ---------------------------------------------------------------------- names that are imported
def names_of(seam: str) -> set[str]:
    """The names that a file of the seam has for others."""
    nodes = [n for n in parsed(GROUND / f"{seam}.py") if isinstance(n, ast.ImportFrom)]
    return {alias.asname or alias.name for node in nodes for alias in node.names}


def taken_of(seam: str) -> set[str]:
    """The names that other files take from a file of the seam."""
    found = set()
    for path in COMPILER:
        as_module = set()
        for node in parsed(path):
            if isinstance(node, ast.ImportFrom) and node.level:
                if (node.module or "").split(".")[-1] == seam:
                    found |= {alias.name for alias in node.names}
                as_module |= {alias.asname or alias.name for alias in node.names if alias.name == seam}
        attributes = (n for n in parsed(path) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name))
        found |= {n.attr for n in attributes if n.value.id in as_module}
    return found


@pytest.mark.parametrize("seam", ["numba", "numba_cuda", "llvmlite"])
def test_what_the_seam_names_is_what_is_taken(seam):
    own = {n.id for n in parsed(GROUND / f"{seam}.py") if isinstance(n, ast.Name)}
    assert len(names_of(seam)) > 10
    assert names_of(seam) - taken_of(seam) == set(), "nobody asks for these"
    assert taken_of(seam) - names_of(seam) - own == set()


# ---------------------------------------------------------------------- private names
@functools.cache
def defined_in(path: Path) -> set[str]:
    """The names that a file gives something: functions, classes, variables, attributes of `self`."""
    found = set()
    for node in parsed(path):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                found.add(node.attr)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)  # of __slots__, or what object.__setattr__ is given
    return found


def asked_for(path: Path) -> dict[str, int]:
    """The private attributes that a file asks for, and gives nothing itself, each with a line."""
    own = defined_in(path)
    attributes = (n for n in parsed(path) if isinstance(n, ast.Attribute) and is_private(n.attr))
    return {n.attr: n.lineno for n in attributes if n.attr not in own}


def overridden() -> Iterator[tuple[type, str]]:
    """Private names that classes of the compiler give another meaning than the classes of Numba below them."""
    modules = [m for name, m in list(sys.modules.items()) if name.startswith("numba_cute.compiler.")]
    classes = {c for m in modules for c in vars(m).values() if isinstance(c, type) and c.__module__ == m.__name__}
    for cls in classes:
        below = [b for b in cls.__mro__ if b.__module__.split(".")[0] == "numba"]
        file = GROUND.parents[1] / Path(*cls.__module__.split(".")[1:]).with_suffix(".py")
        named = {n.name if isinstance(n, ast.FunctionDef) else getattr(n, "id", "") for n in parsed(file)}
        yield from ((cls, n) for n in vars(cls).keys() & named if is_private(n) and any(n in vars(b) for b in below))


def test_private_names_that_are_asked_for_are_listed():
    ours = {name for path in COMPILER for name in defined_in(path)} - NAMES
    unknown = [
        f"{path.relative_to(PACKAGE)}:{line}: {name}"
        for path in COMPILER
        for name, line in asked_for(path).items()
        if name not in NAMES and name not in ours | OF_PYTHON
    ]
    unknown += [f"{cls.__module__}.{cls.__name__} overrides {name}" for cls, name in overridden() if name not in NAMES]
    assert unknown == [], "private names of Numba: list them in PRIVATE of compiler/ground/numba_cuda.py"


def test_private_names_that_are_listed_are_asked_for():
    text = "\n".join(path.read_text() for path in COMPILER if path.parent != GROUND or path.stem != "numba_cuda")
    text += (GROUND / "numba_cuda.py").read_text().partition("PRIVATE: ")[0]
    asked = set(re.findall(r"\b_\w+", text))
    assert [name for name in NAMES if name not in asked] == []


@pytest.mark.parametrize("module", PRIVATE)
def test_private_names_are_where_they_are_said_to_be(module):
    file = Path(importlib.import_module(module).__file__)
    files = file.parent.rglob("*.py") if file.name == "__init__.py" else [file]
    there = set(re.findall(r"\b_\w+", "\n".join(f.read_text() for f in files)))
    assert [name for name, where in LISTED if where == module and name not in there] == []
    assert all(PRIVATE[module].values())


def test_a_private_name_is_found(tmp_path):
    file = tmp_path / "code.py"
    file.write_text("class A:\n    def f(self, other):\n        self._own = other._theirs\n        return self._own\n")
    assert asked_for(file) == {"_theirs": 3}
