# SPDX-License-Identifier: Apache-2.0
"""Every public name resolves, is documented and recorded, and stands once."""

import importlib
import importlib.util
import inspect
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import pytest

import numba_cute
from numba_cute.nvgpu import warpgroup
from numba_cute.nvgpu.common.matrix import RowMma
from tests import api

# The imports that documentation, examples and benchmarks showed before the package had rooms (b4870fd).
WRITTEN = """
import numba_cute as cute
from numba_cute import arch, nvgpu, pipeline, runtime, tilelang, utils
from numba_cute.config import override
from numba_cute.layout.pure import forget
from numba_cute.nvgpu import CopyUniversalOp, cpasync, warp, warpgroup
from numba_cute.pipeline import Agent, CooperativeGroup
from numba_cute.runtime import from_dlpack
from numba_cute.seam import CuteError, traced
from numba_cute.sim import RaceError, SimError, Trace, launch, name_range, simulate
from numba_cute.utils import sm80, sm90
"""
ALL = {"numba_cute", *(info.name for info in pkgutil.walk_packages(numba_cute.__path__, "numba_cute."))}
OF_TORCH = {"numba_cute.compat.cutlass.torch", "numba_cute.compat.on_cpu", "numba_cute.compat.scaled"}
"""Modules that import torch."""
MODULES = sorted(ALL if importlib.util.find_spec("torch") else ALL - OF_TORCH)
if importlib.util.find_spec("xdsl") is None:  # there is none for Python 3.10, and no IR
    MODULES = [m for m in MODULES if not f"{m}.".startswith("numba_cute.ir.")]


@pytest.mark.parametrize("line", WRITTEN.strip().splitlines())
def test_import_path_that_users_were_shown_still_works(line):
    exec(line, {})


@pytest.mark.parametrize("module", api.PUBLIC)
def test_star_import_gives_what_the_module_lists(module):
    scope = {}
    exec(f"from {module} import *", scope)
    names = importlib.import_module(module).__all__
    assert len(set(names)) == len(names) > 0
    assert set(scope) - {"__builtins__"} == set(names)


def test_public_names_have_docstrings():
    bad = []
    for module, name, value in api.names():
        own = value.__dict__.get("__doc__") if inspect.isclass(value) else inspect.getdoc(value)
        if not own and callable(value) and hasattr(value, "__name__"):
            bad.append(f"{module}.{name} has no docstring of its own")
        elif inspect.isclass(value) and own.startswith(f"{name}("):
            bad.append(f"{module}.{name}: dataclass's generated docstring")
    assert not bad


def test_the_api_is_as_recorded():
    differences = api.differences()
    assert not differences, (
        "the public API differs from the files of tests/api. If that is meant, say it in a line of CHANGELOG.md and "
        "run `python -m tests.api --record`:\n" + "\n".join(differences)
    )


CHANGES = {
    "a parameter": (
        numba_cute.TiledMma,
        "get_slice",
        lambda self, index: None,
        "cute: TiledMma.get_slice(self, index)",
    ),
    "a function's parameter": (numba_cute.math, "add", lambda a, b: None, "math: add(a, b)"),
    "a property": (numba_cute.TiledMma, "op", None, "cute: TiledMma.op: attribute"),
    "a member of a base": (RowMma, "more", lambda self: None, f"bases: {RowMma.__module__}.RowMma.more(self)"),
    "a member that is another in one class": (warpgroup.MmaF16BF16Op, "traits", 1, "MmaF16BF16Op.traits: attribute"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_of_any_kind_is_a_line(what, monkeypatch):
    owner, name, value, line = CHANGES[what]
    monkeypatch.setattr(owner, name, value, raising=False)
    assert any(d.startswith("  + ") and line in d for d in api.differences())


def test_no_function_or_class_shadows_a_module():
    shadows = []
    for package in filter(lambda m: hasattr(m, "__path__"), map(importlib.import_module, MODULES)):
        inside = {info.name for info in pkgutil.iter_modules(package.__path__)} & vars(package).keys()
        shadows += [f"{package.__name__}.{n}" for n in inside if not isinstance(vars(package)[n], ModuleType)]
    assert not shadows


def test_every_module_has_a_docstring():
    assert [m for m in MODULES if not importlib.import_module(m).__doc__] == []


def test_facades_import_only_what_a_module_lists():
    """A star import of a module without `__all__` would show all that it imports itself."""
    stars = set()
    for file in Path(numba_cute.__file__).parent.rglob("*.py"):
        package = ".".join(("numba_cute", *file.relative_to(Path(numba_cute.__file__).parent).parts[:-1]))
        for module in re.findall(r"^from (\S+) import \*", file.read_text(), re.MULTILINE):
            stars.add(importlib.util.resolve_name(module, package))
    assert len(stars) > 50
    assert [m for m in sorted(stars) if not hasattr(importlib.import_module(m), "__all__")] == []


def test_the_decorator_of_frozen_classes_warns_under_its_old_name():
    from numba_cute import seam

    with pytest.warns(DeprecationWarning, match="called frozen"):

        @seam.static
        class Pair:
            a: int

    assert seam.is_frozen_class(Pair) and Pair(1) == Pair(1)
