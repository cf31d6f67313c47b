# SPDX-License-Identifier: Apache-2.0
"""Every public name resolves and is documented."""

import importlib
import inspect
import pkgutil
import re

import pytest

import numba_cute

PUBLIC = [
    "numba_cute",
    "numba_cute.arch",
    "numba_cute.math",
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


def function_of(member):
    """The function behind a method, property or function; None of anything else."""
    member = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
    return member if inspect.isfunction(member) else None


def documented():
    """(name, function or class, its own docstring, all that documents its parameters) of each public function, class,
    method, constructor and property; a method's parameters may be those of its class or of a base of it."""
    seen = set()
    values = {
        f"{m}.{n}": getattr(importlib.import_module(m), n) for m in PUBLIC for n in importlib.import_module(m).__all__
    }
    for name, value in values.items():
        if id(value) in seen:
            continue
        seen.add(id(value))
        if inspect.isclass(value):
            bases = [c for c in value.__mro__ if c.__module__.startswith("numba_cute")]
            about = " ".join(c.__dict__.get("__doc__") or "" for c in bases)
            yield name, value, value.__doc__ or "", about
            for attribute, member in {k: v for c in reversed(bases) for k, v in vars(c).items()}.items():
                public = not attribute.startswith("_") or attribute in ("__init__", "__call__")
                function = function_of(member) if public else None
                # `struct` makes constructors that take any arguments; the fields are the class's affair
                if (
                    function
                    and function.__module__.startswith("numba_cute")
                    and function.__module__ != "numba_cute.seam.marks"
                ):
                    yield f"{name}.{attribute}", function, function.__doc__ or "", f"{function.__doc__} {about}"
        elif callable(value) and hasattr(value, "__name__"):
            doc = inspect.getdoc(value) or ""
            yield name, value, doc, doc


def test_docstrings_name_every_public_parameter():
    unnamed = []
    for name, function, _, about in documented():
        parameters = () if inspect.isclass(function) else inspect.signature(function).parameters
        missing = [p for p in parameters if p not in ("self", "loc", "ip") and not re.search(rf"\b{p}\b", about)]
        unnamed += [f"{name}: {', '.join(missing)}"] if missing else []
    assert not unnamed, "\n".join(unnamed)


def test_docstrings_say_what_a_thing_does_or_is():
    """As in "Return whether …" and "The rows that …", not "Whether …" and "What …"."""
    assert not [name for name, _, doc, _ in documented() if re.match(r"(What|Whether)\b", doc)]


def test_every_module_has_a_docstring():
    without = []
    for info in pkgutil.walk_packages(numba_cute.__path__, "numba_cute."):
        if not importlib.import_module(info.name).__doc__:
            without.append(info.name)
    assert not without
