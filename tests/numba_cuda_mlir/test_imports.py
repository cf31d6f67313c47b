# SPDX-License-Identifier: Apache-2.0
"""When the bridge meets numba-cuda-mlir, and what it does with another version of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numba_cuda_mlir.descriptor as descriptor
import pytest

import numba_cute as cute
from numba_cute.compiler import mlir, patches
from numba_cute.compiler.ground import versions
from numba_cute.compiler.host import elsewhere, mlir_kernels

ROOT = Path(__file__).resolve().parents[2]

KERNELS = """
@cuda.jit
def kernel(x):
    x[cuda.threadIdx.x] = cute.size(cute.make_layout(3))

@cuda.jit
def plain(x):
    x[cuda.threadIdx.x] = 1
print(type(kernel).__name__, type(plain).__name__)
"""


def child(code, cwd, **environment):
    """What a new process prints that runs the code."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([*environment.pop("first", []), str(ROOT)]), **environment}
    (cwd / "main.py").write_text(code)
    done = subprocess.run([sys.executable, "main.py"], cwd=cwd, env=env, capture_output=True, text=True, check=False)
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "imports",
    [
        "from numba_cuda_mlir import cuda\nimport numba_cute as cute\n",
        "import numba_cute as cute\nimport sys\nassert 'numba_cuda_mlir' not in sys.modules\n"
        "from numba_cuda_mlir import cuda\n",
    ],
    ids=["that package first", "this library first"],
)
def test_the_order_of_imports_does_not_matter(imports, tmp_path):
    assert child(imports + KERNELS, tmp_path) == ["MlirKernel MLIRDispatcher"]


@pytest.mark.slow
def test_without_the_package_an_import_of_it_is_python_s_error(tmp_path):
    code = (
        "import sys\nsys.path_importer_cache.clear()\nimport numba_cute\n"
        "sys.meta_path = [f for f in sys.meta_path if 'PathFinder' not in repr(f)]\nimport numba_cuda_mlir.descriptor\n"
    )
    assert "ModuleNotFoundError: No module named 'numba_cuda_mlir'" in child(code, tmp_path)


def test_both_changes_are_in_their_places_and_say_why():
    for patch in mlir.patches():
        assert vars(patch.owner)[patch.name].__module__ == mlir_kernels.__name__
        assert patch.why.startswith("to ")
        with pytest.raises(
            cute.CuteError, match=rf"numba-cuda-mlir 0[\d.]+: {patch} (has another source|is there, and)"
        ):
            patches.check([patch], mlir.MLIR)


def test_another_version_keeps_all_its_own_and_refuses_kernels_of_this_library(monkeypatch):
    class MLIRDispatcher:
        def __init__(self, py_func, targetoptions=None):
            self.py_func = py_func

        def _configure_cached(self):
            pass

    class _ArgMarshaller:
        def __init__(self):
            pass

        def __call__(self):
            pass

    launch = _ArgMarshaller.__call__
    other = SimpleNamespace(MLIRDispatcher=MLIRDispatcher, _ArgMarshaller=_ArgMarshaller)
    monkeypatch.setitem(sys.modules, "numba_cuda_mlir.descriptor", other)
    monkeypatch.setattr(versions, "version", lambda name: "0.7.1")
    told = list(mlir_kernels.TOLD)
    mlir.meet()
    assert _ArgMarshaller.__call__ is launch and "__new__" not in vars(MLIRDispatcher) and told == mlir_kernels.TOLD

    def plain(x):
        pass

    def kernel(x):
        cute.size(x)

    assert MLIRDispatcher(plain).py_func is plain
    said = (
        r"kernel: it uses numba_cute\. numba-cuda-mlir 0\.7\.1: .* is written for numba-cuda-mlir 0\.6\.0: "
        r"pip install numba-cuda-mlir==0\.6\.0"
    )
    with pytest.raises(cute.CuteError, match=said):
        MLIRDispatcher(kernel, targetoptions={})


def test_what_is_not_there_any_more_is_another_version_too(monkeypatch):
    class MLIRDispatcher:
        def __init__(self, py_func):
            pass

    monkeypatch.setitem(sys.modules, "numba_cuda_mlir.descriptor", SimpleNamespace(MLIRDispatcher=MLIRDispatcher))
    mlir.meet()
    MLIRDispatcher(lambda x: None)
    with pytest.raises(
        cute.CuteError,
        match=r"it uses numba_cute\. numba-cuda-mlir .*_ArgMarshaller.*pip install numba-cuda-mlir==0\.6\.0",
    ):
        MLIRDispatcher(lambda x: cute.size(x))


def test_a_simulation_takes_launches_of_a_package_that_is_loaded_while_it_lasts():
    class Launched:
        def __call__(self):
            return "launched"

    own, taken = Launched.__call__, []
    with cute.simulation():
        elsewhere.also(Launched, "__call__", lambda launcher, self: taken.append(launcher))
        assert Launched()() is None and len(taken) == 1
    assert Launched.__call__ is own and Launched()() == "launched"
    with cute.simulation():
        Launched()()
    assert len(taken) == 2 and Launched.__call__ is own
    elsewhere._INSTEAD.pop()


def test_the_finder_finds_that_module_alone_and_meets_it_once(monkeypatch):
    met = []
    finder = mlir._Finder()
    monkeypatch.setattr(mlir, "meet", lambda: met.append(1))
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    assert finder.find_spec("numba_cuda_mlir") is None and finder.find_spec("json") is None
    spec = finder.find_spec(descriptor.__name__, [str(Path(descriptor.__file__).parent)])
    assert spec.origin == descriptor.__file__
    loader = type(spec.loader)
    monkeypatch.setattr(loader, "exec_module", lambda self, module: met.append(module))
    again = finder.find_spec(descriptor.__name__, [str(Path(descriptor.__file__).parent)])
    again.loader.exec_module("module")
    assert met == ["module", 1] and finder not in sys.meta_path
    again.loader.exec_module("module")
    assert met == ["module", 1, "module"]
