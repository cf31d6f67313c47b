# SPDX-License-Identifier: Apache-2.0
"""What this library changes in Numba: all of it is listed, and refused on a Numba that it was not written for."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import subprocess
import sys
import types
from importlib.metadata import PackageNotFoundError

import numba
import pytest
from numba.cuda import cgutils, types as numba_types
from numba.cuda.compiler import CUDAFlags

import numba_cute as cute
from numba_cute.compiler import patches
from numba_cute.compiler.ground import versions
from numba_cute.compiler.ground.versions import NUMBA_CUDA
from numba_cute.compiler.patches import PATCHES, Patch, digest_of

CHANGED = """
import importlib, json, sys

def of_numba(name):
    return name.split(".")[0] in ("numba", "llvmlite")

modules = [importlib.import_module(name) for name in json.load(sys.stdin)]
modules = [m for m in modules if of_numba(m.__name__)]

def attributes():
    spaces = {}
    for module in modules:
        spaces[module.__name__] = dict(vars(module))
        for value in vars(module).values():
            if isinstance(value, type) and of_numba(value.__module__):
                spaces[f"{value.__module__}.{value.__qualname__}"] = dict(vars(value))
    return {f"{space}.{name}": value for space, names in spaces.items() for name, value in names.items()}

before = attributes()
import numba_cute
after = attributes()
print(len(before))
print(json.dumps(sorted(k for k in before.keys() | after.keys() if before.get(k) is not after.get(k))))
"""


def full_name(patch: Patch) -> str:
    owner = patch.owner
    space = owner.__name__ if isinstance(owner, types.ModuleType) else f"{owner.__module__}.{owner.__qualname__}"
    return f"{space}.{patch.name}"


def test_the_import_changes_the_attributes_of_numba_that_are_listed_and_no_others():
    modules = [n for n, m in sys.modules.items() if n.split(".")[0] in ("numba", "llvmlite") and m is not None]
    done = subprocess.run(
        [sys.executable, "-c", CHANGED], input=json.dumps(sorted(modules)), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    count, changed = done.stdout.splitlines()
    assert int(count) > 10_000
    assert json.loads(changed) == sorted(map(full_name, PATCHES))


@pytest.mark.parametrize("patch", PATCHES, ids=str)
def test_a_patch_is_in_its_place_and_says_why(patch):
    placed = vars(patch.owner)[patch.name]
    assert placed is getattr(type, patch.name, None) or placed.__module__.startswith("numba_cute.compiler.")
    assert patch.why.startswith("to ")


@pytest.mark.parametrize("patch", PATCHES, ids=str)
def test_what_stands_in_a_patch_s_place_already_is_refused(patch):
    """As the patch itself does once it is applied."""
    with pytest.raises(cute.CuteError, match=rf"numba-cuda [\d.]+: {patch} (has another source|is there, and was not)"):
        patches.check([patch])


def test_a_class_that_is_registered_as_a_type_is_found(monkeypatch):
    """As it is without the patches, which ask for the bases of classes alone until then."""
    meta, asked = type(numba_types.Type), ("__instancecheck__", "__subclasscheck__")
    for name in asked:  # which registering takes away
        monkeypatch.setattr(meta, name, vars(meta)[name])
    made, other = type("Made", (numba_types.Type,), {}), type("Other", (), {})
    assert not isinstance(other(), made) and isinstance(numba_types.int32, numba_types.Type)
    made.register(other)
    assert isinstance(other(), made) and issubclass(other, made) and not isinstance(other(), numba_types.Integer)
    assert not any(name in vars(meta) for name in asked)


class Plain:
    def works(self, x):
        return x + 1


class Changed:
    def works(self, x, y=0):
        return x + y + 1


class Without:
    pass


def twice(works):
    return lambda self, x: 2 * works(self, x)


PATCH = Patch(Plain, "works", twice, digest_of([Plain.works]), why="to have twice as much")
ADDED = Patch(Without, "works", lambda _: Plain.works, digest_of([Plain.works]), "to work", (Plain.works,), added=True)


def test_a_patch_makes_its_attribute_of_what_stood_there(monkeypatch):
    monkeypatch.setattr(Plain, "works", Plain.works)  # to have it back
    patches.apply([PATCH])
    assert Plain().works(3) == 8


@pytest.mark.parametrize(
    "patch, how",
    [
        (dataclasses.replace(PATCH, owner=Without), "Without.works is not there"),
        (dataclasses.replace(PATCH, owner=Changed), "Changed.works has another source"),
        (dataclasses.replace(PATCH, reads=(Changed.works,)), "Plain.works has another source, or what works with it"),
        (dataclasses.replace(ADDED, owner=Plain), "Plain.works is there, and was not"),
        (dataclasses.replace(ADDED, reads=(Changed.works,)), "Without.works has another source, or what works with it"),
    ],
    ids=["missing", "changed", "changed beside it", "come to be", "changed beside what is added"],
)
def test_another_numba_is_refused_with_the_versions_and_what_to_do_before_any_patch(patch, how, monkeypatch):
    monkeypatch.setattr(versions, "version", lambda name: "0.31.7")
    before = Plain.works
    with pytest.raises(cute.CuteError) as caught:
        patches.apply([PATCH, ADDED, patch])
    said = str(caught.value)
    assert said.startswith(f"numba-cuda 0.31.7: {how}")
    assert f"which replaces it {patch.why}, is written for numba-cuda {NUMBA_CUDA.tried[-1]}" in said
    assert f"pip install numba-cuda=={NUMBA_CUDA.tried[-1]}" in said
    assert Plain.works is before and "works" not in vars(Without)


@pytest.mark.parametrize("installed, ok", [(NUMBA_CUDA.tried[-1], True), ("0.31.7", False)])
def test_without_numbas_source_its_version_decides(installed, ok, monkeypatch):
    monkeypatch.setattr(versions, "version", lambda name: installed)
    made: dict[str, object] = {}
    exec("def works(self, x): return x + 1", made)
    patch = dataclasses.replace(PATCH, owner=type("NoSource", (), {"works": made["works"]}))
    assert (patches.difference(patch) is None) is ok


@pytest.mark.parametrize(
    "change", ["del {0}.recompile", "{0}.recompile = {0}.compile_device"], ids=["lacks", "differs"]
)
def test_the_import_fails_on_another_numba(change):
    program = f"""
from numba.cuda.dispatcher import CUDADispatcher, _LaunchConfiguration
before = _LaunchConfiguration.__init__
{change.format("CUDADispatcher")}
try:
    import numba_cute
except Exception as e:
    print(type(e).__name__, e)
print(_LaunchConfiguration.__init__ is before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    said, untouched = done.stdout.splitlines()
    assert said.startswith("CuteError numba-cuda ") and "CUDADispatcher.recompile" in said and "pip install" in said
    assert untouched == "True"


@pytest.mark.parametrize(
    "installed, told",
    [("0.31.0", "pip install -U numba-cute"), ("0.29.3", f"pip install numba-cuda=={NUMBA_CUDA.tried[-1]} (http"),
     (NUMBA_CUDA.tried[-1], "imported before numba_cute")],
    ids=["newer", "older", "the same"],
)  # fmt: skip
def test_a_numba_cuda_that_lacks_a_name_is_refused_with_what_to_do(installed, told, monkeypatch):
    monkeypatch.setattr(versions, "version", lambda name: installed)
    monkeypatch.delattr(cgutils, "pack_array")
    monkeypatch.delitem(sys.modules, "numba_cute.compiler.ground.numba_cuda")
    with pytest.raises(cute.CuteError) as caught:
        versions.check()
    said = str(caught.value)
    assert said.startswith(f"numba-cuda {installed}: cannot import name 'pack_array' from 'numba.cuda.cgutils'. ")
    assert f"pip install numba-cuda=={NUMBA_CUDA.tried[-1]}" in said and told in said


def test_a_numba_cuda_that_cannot_be_imported_at_all_is_told(monkeypatch):
    monkeypatch.delattr(numba, "cuda")
    monkeypatch.setitem(sys.modules, "numba.cuda", None)
    monkeypatch.delitem(sys.modules, "numba_cute.compiler.ground.numba")
    with pytest.raises(
        cute.CuteError, match=r"fails without numba_cute too, with numba [\d.]+, numba-cuda [\d.]+, numpy"
    ):
        importlib.import_module("numba_cute.compiler.ground.numba")

    def nothing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(versions, "version", nothing)  # there is no numba: Python says so itself
    with pytest.raises(ModuleNotFoundError, match="import of numba.cuda halted"):
        importlib.import_module("numba_cute.compiler.ground.numba")


def test_a_patch_s_source_is_what_python_says_it_is():
    """Digests are of it, and it is found without reading tokens."""
    held = (m for patch in PATCHES for m in vars(patch.owner).values() if inspect.isfunction(m))
    functions = [f for f in (*held, *(f for patch in PATCHES for f in patch.reads)) if _has_source(f)]
    assert len(functions) > 100
    assert [f.__qualname__ for f in functions if patches._source(f) != inspect.getsource(f)] == []


def _has_source(function):
    try:
        return function.__module__.startswith("numba.cuda") and bool(inspect.getsource(function))
    except (OSError, TypeError):
        return False


def test_all_options_of_a_function_are_listed_as_numba_lists_them():
    for flags in (CUDAFlags(), CUDAFlags()):
        flags.debuginfo, flags.fastmath = True, True
        assert list(flags.values().items()) == [(name, getattr(flags, name)) for name in flags.options]
        flags.discard("debuginfo")
        assert flags.values() == {name: getattr(flags, name) for name in flags.options}
