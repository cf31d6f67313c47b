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


def test_api_is_what_the_snapshot_records():
    was, now = api.SNAPSHOT.read_text().splitlines(), api.lines()
    gone = [f"  - {line}" for line in was if line not in set(now)]
    new = [f"  + {line}" for line in now if line not in set(was)]
    assert not gone and not new, (
        "the public API differs from tests/api_snapshot.txt. If that is meant, say it in a line of CHANGELOG.md and "
        "run `python -m tests.api --record`:\n" + "\n".join(gone + new)
    )
    assert was == now, "the snapshot's lines stand in another order: run `python -m tests.api --record`"


@pytest.mark.parametrize("module", [m for m in MODULES if hasattr(importlib.import_module(m), "__path__")])
def test_no_function_or_class_shadows_a_module(module):
    package = importlib.import_module(module)
    inside = {info.name for info in pkgutil.iter_modules(package.__path__)}
    assert [n for n in inside & vars(package).keys() if not isinstance(vars(package)[n], ModuleType)] == []


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
