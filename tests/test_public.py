# SPDX-License-Identifier: Apache-2.0
"""Every public name resolves and is documented."""

import importlib
import inspect
import pkgutil

import pytest

import numba_cute

PUBLIC = [
    "numba_cute",
    "numba_cute.arch",
    "numba_cute.nvgpu",
    "numba_cute.nvgpu.cpasync",
    "numba_cute.nvgpu.warp",
    "numba_cute.nvgpu.warpgroup",
    "numba_cute.pipeline",
    "numba_cute.runtime",
    "numba_cute.tilelang",
    "numba_cute.tilelang.cpasync",
    "numba_cute.utils",
    "numba_cute.utils.sm80",
    "numba_cute.utils.sm90",
]


def public_names():
    for module in PUBLIC:
        for name in getattr(importlib.import_module(module), "__all__", ()):
            yield pytest.param(module, name, id=f"{module}.{name}")


@pytest.mark.parametrize("module", PUBLIC)
def test_public_module_lists_its_names_once(module):
    names = importlib.import_module(module).__all__
    assert len(set(names)) == len(names) > 0


@pytest.mark.parametrize(("module", "name"), list(public_names()))
def test_public_name_resolves_and_has_a_docstring(module, name):
    value = getattr(importlib.import_module(module), name)
    if inspect.isclass(value):
        assert value.__dict__.get("__doc__"), f"{module}.{name} has no docstring of its own"
        assert not value.__doc__.startswith(f"{name}("), f"{module}.{name}: dataclass's generated docstring"
    elif callable(value) and hasattr(value, "__name__"):
        assert inspect.getdoc(value), f"{module}.{name} has no docstring"


def test_every_module_has_a_docstring():
    without = []
    for info in pkgutil.walk_packages(numba_cute.__path__, "numba_cute."):
        if not importlib.import_module(info.name).__doc__:
            without.append(info.name)
    assert not without
