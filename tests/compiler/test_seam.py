# SPDX-License-Identifier: Apache-2.0
"""What is taken of numba, numba-cuda and llvmlite: the files of the seam list it, all of it and nothing else."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from numba_cute.compiler.ground import llvmlite as ir
from numba_cute.compiler.ground.builder import Builder, Target
from numba_cute.compiler.ground.numba_cuda import PRIVATE, cuda_target

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
    nodes = [n for n in parsed(GROUND / f"{seam}.py") if isinstance(n, ast.ImportFrom) and n.module]
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
    file = Path(pytest.importorskip(module).__file__)  # numba-cuda is there; others may be asked for that are not
    files = file.parent.rglob("*.py") if file.name == "__init__.py" else [file]
    there = set(re.findall(r"\b_\w+", "\n".join(f.read_text() for f in files)))
    assert [name for name, where in LISTED if where == module and name not in there] == []
    assert all(PRIVATE[module].values())


def test_a_private_name_is_found(tmp_path):
    file = tmp_path / "code.py"
    file.write_text("class A:\n    def f(self, other):\n        self._own = other._theirs\n        return self._own\n")
    assert asked_for(file) == {"_theirs": 3}


# ---------------------------------------------------------------------- builders and the target
KINDS = {"builder": Builder, "context": Target}
WRITERS = [path for path in COMPILER if path.relative_to(PACKAGE).parts[1] in ("ground", "emit", "bridge", "passes")]


def members_of(kind: type) -> set[str]:
    return {name for name in {**vars(kind), **kind.__annotations__} if not name.startswith("_")}


def is_of(node: ast.AST, name: str, of_self: bool = False) -> bool:
    """Say whether an expression is a builder, or the target that a tracer has. of_self: `self` is a tracer."""
    if name == "builder":
        made = isinstance(node, ast.Call) and getattr(node.func, "attr", None) == "IRBuilder"
        return made or getattr(node, "attr", None) == name
    holders = ("tracer", "self") if of_self else ("tracer",)
    return getattr(node, "attr", None) == name and getattr(node.value, "id", None) in holders


def taken_apart(node: ast.Assign) -> Iterator[tuple[ast.AST, ast.AST]]:
    (place,) = node.targets[:1]
    if isinstance(place, ast.Tuple) and isinstance(node.value, ast.Tuple):
        yield from zip(place.elts, node.value.elts)
    else:
        yield place, node.value


def variables(function: ast.FunctionDef, name: str) -> set[str]:
    """The variables of a function that are a builder, or a target: as its annotations and assignments say."""
    kind, args = KINDS[name].__name__, function.args
    found = {a.arg for a in (*args.args, *args.kwonlyargs) if getattr(a.annotation, "id", None) == kind}
    assigned = (pair for n in ast.walk(function) if isinstance(n, ast.Assign) for pair in taken_apart(n))
    return found | {place.id for place, value in assigned if isinstance(place, ast.Name) and is_of(value, name)}


def asked_of(nodes: Sequence[ast.AST], name: str, of_self: bool = False) -> dict[str, int]:
    """What code asks of builders, or of the target that it lowers for, each with a line."""
    found = {n.attr: n.lineno for n in nodes if isinstance(n, ast.Attribute) and is_of(n.value, name, of_self)}
    for function in nodes:
        if isinstance(function, ast.FunctionDef):
            own = variables(function, name)
            inside = (n for n in ast.walk(function) if own and isinstance(n, ast.Attribute))
            found |= {n.attr: n.lineno for n in inside if getattr(n.value, "id", None) in own}
    return found


@pytest.mark.parametrize("name", KINDS)
def test_what_is_asked_of_builders_and_the_target_is_listed(name):
    asked = {path: asked_of(parsed(path), name, path.parent.name == "emit") for path in WRITERS}
    listed = members_of(KINDS[name])
    others = [f"{p.name}:{line}: {n}" for p, found in asked.items() for n, line in found.items() if n not in listed]
    assert others == [], f"list them in {KINDS[name].__name__} of compiler/ground/builder.py"
    spelled = {n.value for p in WRITERS for n in parsed(p) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    assert listed - {n for found in asked.values() for n in found} - spelled == set(), "nobody asks for these"


@pytest.mark.parametrize("name", KINDS)
def test_what_could_be_a_builder_or_the_target_says_so(name):
    kind = KINDS[name].__name__
    functions = ((p, n) for p in WRITERS for n in parsed(p) if isinstance(n, ast.FunctionDef))
    args = [(p, a, {b.arg for b in f.args.args}) for p, f in functions for a in f.args.args if a.arg == name]
    lowering = [(p, a) for p, a, all_ in args if "builder" in all_ and p.name not in ("scalars.py", "builder.py")]
    assert len(lowering) > 30
    assert [f"{p.name}:{a.lineno}" for p, a in lowering if getattr(a.annotation, "id", None) != kind] == []


def test_llvmlite_and_numba_answer_what_is_listed():
    module = ir.Module()
    block = ir.Function(module, ir.FunctionType(ir.VoidType(), ()), "f").append_basic_block()
    for kind, made in ((Builder, ir.IRBuilder(block)), (Target, cuda_target.target_context)):
        for name in members_of(kind):
            ours, theirs = vars(kind).get(name), getattr(made, name)
            if ours is not None:
                names = list(inspect.signature(ours).parameters)[1:]
                wrapped = inspect.signature(theirs).parameters  # by a decorator that adds some, or a context manager's
                others = wrapped.keys() | inspect.signature(theirs, follow_wrapped=False).parameters.keys()
                assert set(names) <= others, f"{kind.__name__}.{name}"


def test_a_method_that_is_not_listed_is_found():
    code = """
def f(context: Target, builder: Builder, tracer):
    b, n = tracer.builder, 3
    context.frob(builder.fma(n))
    return b.rol(tracer.builder.ror(1)), n.bit_length()
"""
    nodes = tuple(ast.walk(ast.parse(code)))
    assert set(asked_of(nodes, "builder")) == {"fma", "rol", "ror"}
    assert set(asked_of(nodes, "context")) == {"frob"}
