# SPDX-License-Identifier: Apache-2.0
"""Kernels of numba-cuda-mlir that use this library: whose they are, what their names mean, and their PTX."""

from __future__ import annotations

import importlib
import pickle
import re
import runpy
import sys
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace

import numba
import numba_cuda_mlir
import numpy as np
import pytest
from numba.cuda.dispatcher import CUDADispatcher
from numba_cuda_mlir import cuda
from numba_cuda_mlir.cuda import cg, inline_ptx
from numba_cuda_mlir.descriptor import MLIRDispatcher

import numba_cute as cute
from numba_cute import config
from numba_cute.compiler.host import disk_cache
from numba_cute.compiler.host.mlir_names import is_of_package
from numba_cute.seam.ground.counterparts import counterpart

from ..ptx_digests import normalised
from . import kernels

ROOT = Path(__file__).resolve().parents[2]
LANES = kernels.LANES
NUMBERS = np.arange(32, dtype=np.float32)


def ptx(kernel, *args, arch="sm_90a"):
    return normalised(cute.compile(kernel, *args, arch=arch).ptx)


def in_numba_cuda(function):
    """The function as it is with `from numba import cuda`."""
    space = {**function.__globals__, "cuda": numba.cuda, "float32": numba.cuda.float32}
    space["squared"] = numba.cuda.jit(kernels.squared.py_func, device=True)
    return numba.cuda.jit(FunctionType(function.__code__, space, function.__name__))


def test_a_kernel_is_numba_cudas_if_it_names_this_library_and_that_package_s_own_if_not():
    assert isinstance(cuda.jit(kernels.names), CUDADispatcher)
    assert isinstance(kernels.defined_below, CUDADispatcher)
    assert type(kernels.plain) is type(kernels.squared) is type(kernels.late) is MLIRDispatcher


class Raises:
    """As that package's driver where there is no GPU."""

    def __getattr__(self, name):
        raise RuntimeError(name)


raises = Raises()


@pytest.mark.parametrize("name", ["jit", "compile", "to_device", "select_device", "declare_device"])
def test_a_kernel_that_names_functions_of_the_host_is_that_package_s(name):
    """As those that `consteval` runs: what they name leads to what is changed in that package."""
    space = {"cuda": cuda, "numba_cuda": numba.cuda}
    for package in ("cuda", "numba_cuda"):
        exec(f"def kernel(x): x[0] = {package}.{name}(x)", space)
        assert type(cuda.jit(space["kernel"])) is MLIRDispatcher


def test_a_kernel_that_names_what_raises_when_it_is_looked_at_is_that_package_s():
    assert type(cuda.jit(lambda x: raises.anything)) is MLIRDispatcher


def test_a_pickled_kernel_is_one_again():
    again = pickle.loads(pickle.dumps(kernels.defined_below))
    assert (
        type(again) is type(kernels.defined_below) and again.py_func.__code__ == kernels.defined_below.py_func.__code__
    )


def test_names_mean_what_they_do_in_numba_cuda():
    here, there = cuda.jit(kernels.names), in_numba_cuda(kernels.names)
    assert ptx(here, NUMBERS, 3) == ptx(there, NUMBERS, 3)
    for kernel in (here, there):
        x = NUMBERS.copy()
        cute.simulate(kernel)[1, 32](x, 3)
        np.testing.assert_allclose(x, kernels.of_names(), rtol=1e-6)


def through_the_root(x):
    i = numba_cuda_mlir.cuda.threadIdx.x
    x[i] = numba_cuda_mlir.types.float32(cute.size(LANES) + i)


def through_a_module(x):
    i = kernels.cuda.threadIdx.x
    x[i] = kernels.squared(kernels.float32(i)) + kernels.TWO + cute.size(LANES)


@cute.kernel
def of_this_library(x):
    x[cuda.threadIdx.x] = kernels.squared(cuda.float32(7))


def through_a_closure():
    threads, square = cuda, kernels.squared

    def kernel(x):
        i = threads.threadIdx.x
        x[i] = square(threads.float32(i)) + cute.size(LANES)

    return kernel


@pytest.mark.parametrize(
    "kernel, want",
    [
        (through_the_root, NUMBERS + 32), (through_a_module, NUMBERS**2 + 34), (of_this_library, 49 + 0 * NUMBERS),
        (through_a_closure(), NUMBERS**2 + 32), (kernels.late, 32 + 0 * NUMBERS), (kernels.plain, 2 + 0 * NUMBERS),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)  # fmt: skip
def test_names_are_found_wherever_they_stand(kernel, want):
    kernel = kernel if hasattr(kernel, "py_func") else cuda.jit(kernel)
    x = np.zeros(32, np.float32)
    cute.simulate(kernel)[1, 32](x)
    assert (x == want).all()
    assert "st.global" in ptx(kernel, x)


def test_tools_take_plain_kernels_of_that_package():
    x = np.zeros(32, np.float32)
    assert "numba_cute.kernel" in str(cute.inspect(kernels.late, (x,)))
    assert "x[cuda.grid(1)] = TWO" in str(cute.inspect_ptx(kernels.plain, (x,)))

    @cute.cluster_shape(2)
    @cuda.jit
    def shaped(x):
        x[cuda.grid(1)] = 1

    assert type(shaped) is MLIRDispatcher
    assert "reqnctapercluster" in ptx(shaped, x)


def by_name(x):
    inline_ptx("")
    x[0] = cute.size(LANES)


def by_attribute(x):
    x[0] = cute.size(LANES)
    cuda.inline_ptx("")


def of_an_experiment(x):
    x[0] = cute.size(LANES) + cuda.experimental.consteval(3)


declared = cuda.declare_device("declared", "float32(float32)")


def by_declaration(x):
    x[0] = cute.size(LANES) + declared(x[1])


@pytest.mark.parametrize(
    "kernel, said",
    [
        (by_name, r"inline_ptx of numba_cuda_mlir: numba-cute compiles its kernels by numba-cuda, which has no such"),
        (by_attribute, "module 'numba.cuda' has no attribute 'inline_ptx'"),
        (of_an_experiment, "module 'numba.cuda' has no attribute 'experimental'"),
        (by_declaration, r"ExternFunction.* of numba_cuda_mlir: numba-cute compiles .* no such thing"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_what_numba_cuda_lacks_is_refused_by_name_at_the_line(kernel, said):
    made, x = cuda.jit(kernel), np.zeros(2, np.float32)
    for run in (lambda: cute.compile(made, x), lambda: cute.simulate(made)[1, 1](x)):
        with pytest.raises(cute.CuteError, match=said) as caught:
            run()
        assert f"in kernel {kernel.__name__}, {__file__}:" in str(caught.value)


def test_what_is_not_of_the_package_is_its_own_counterpart():
    def mine():
        pass

    mine.__module__, mine.__qualname__ = "numba_cuda_mlir.cuda", "clz"  # as functools.wraps leaves it
    for x in (mine, np, NUMBERS, 3, kernels, cute.make_layout(4), numba.cuda.grid, SimpleNamespace(), None):
        assert counterpart(x) is x
    assert counterpart(cuda.clz) is numba.cuda.clz and counterpart(cg.this_grid) is numba.cuda.cg.this_grid
    assert counterpart(cuda.atomic.add) is numba.cuda.atomic.add and counterpart(np) is np
    assert counterpart(kernels.squared) is counterpart(kernels.squared) and type(kernels.squared) is MLIRDispatcher


def test_every_name_that_both_packages_have_in_kernels_is_found():
    """Modules, functions, stubs and types; numbers and None are the same."""
    both = {n: getattr(cuda, n) for n in dir(numba.cuda) if not n.startswith("_") and hasattr(cuda, n)}
    of_kernels = [n for n, x in both.items() if getattr(getattr(numba.cuda, n), "__module__", "").endswith("stubs")]
    assert {"threadIdx", "atomic", "syncwarp", "popc", "float32x4"} <= set(of_kernels)
    for name in [*of_kernels, "float32", "int64", "grid", "syncthreads", "libdevice", "cg", "shared", "local", "const"]:
        if both[name] is not None and not isinstance(both[name], int):
            assert counterpart(both[name]) is getattr(numba.cuda, name), name


@pytest.mark.parametrize("name", ["cuda", "types", "cuda.libdevice", "numba_cuda.cg", "cuda.fp16", "numba_cuda.types"])
def test_no_name_of_a_module_means_something_else_in_its_counterpart(name):
    """Types, functions and stubs: `i8` of `numba_cuda_mlir.types` is int8, and Numba's is int64."""
    module = importlib.import_module(f"numba_cuda_mlir.{name}")
    there, seen = counterpart(module), 0
    for attribute, value in vars(module).items():
        if attribute.startswith("_") or not is_of_package(value) or not hasattr(there, attribute):
            continue
        try:
            found = counterpart(value)
        except cute.CuteError:  # of the host
            continue
        seen += 1
        if not isinstance(value, (ModuleType, type)) and attribute != "get_hashable_key":  # which compilers call
            assert found is getattr(there, attribute), attribute
    assert seen > 5


def of_types(x):
    x[0] = numba_cuda_mlir.types.i8(300 + cute.size(LANES)) + cuda.types.int8(1)


def test_i8_is_int8():
    x = np.zeros(1, np.float32)
    cute.simulate(cuda.jit(of_types))[1, 1](x)
    assert x[0] == np.int64(332).astype(np.int8) + 1
    assert "1117388800" in ptx(cuda.jit(of_types), x)  # 77.0


def test_a_disk_cache_key_reads_the_device_functions_of_that_package(monkeypatch):
    def key():
        with config.override(cache=True):
            found = disk_cache.key_of(through_a_module, (), {}, "", "kernel")
        assert found.text and not found.why
        return found.text

    before = key()
    assert key() == before
    other = cuda.jit(device=True)(lambda x: x * x * x)
    monkeypatch.setattr(kernels, "squared", other)
    assert key() != before


def made_with(package, path, source=None, **scope):
    """What a file of kernels holds, with `cuda` of a package."""
    text = (source or path.read_text()).replace("from numba import cuda", f"from {package} import cuda")
    assert f"from {package} import cuda" in text
    module = ModuleType(scope["__name__"])
    vars(module).update(scope, __file__=str(path))
    exec(compile(text, str(path), "exec"), vars(module))
    return module


def test_the_page_of_the_documentation_runs(tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "numba_cuda_mlir.md").read_text(), re.DOTALL)
    (tmp_path / "page.py").write_text(code)
    made = runpy.run_path(str(tmp_path / "page.py"))  # it asserts its result
    assert type(made["squared"]) is MLIRDispatcher and isinstance(made["kernel"], CUDADispatcher)
    assert "red.shared" not in ptx(made["kernel"], made["x"])


@pytest.mark.slow
def test_the_readmes_kernel_has_the_same_ptx(tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    found = []
    for package, kind in (("numba", numba.cuda.dispatcher.CUDADispatcher), ("numba_cuda_mlir", CUDADispatcher)):
        (tmp_path / f"{package}.py").write_text(code)
        made = made_with(package, tmp_path / f"{package}.py", code, __name__="readme")
        assert isinstance(made.total, kind)
        found.append(ptx(made.total, made.tma, made.source, made.out))
    assert found[0] == found[1]


@pytest.mark.slow
def test_the_ampere_gemm_has_the_same_ptx(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "examples")
    found = []
    for package in ("numba", "numba_cuda_mlir"):
        made = made_with(package, ROOT / "examples" / "ampere_gemm.py", __name__="ampere")
        a, b = (np.zeros((256, 128), np.float16) for _ in range(2))
        args = made.arguments(a, b, np.zeros((256, 256), np.float16), "f16")[0]
        found.append(ptx(made.gemm, *args, arch="sm_80"))
    assert found[0] == found[1]


@pytest.mark.slow
def test_the_hopper_gemm_has_the_same_ptx(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "examples")
    import hopper_gemm

    kernel = sys.modules["numba_cute.kernels.gemm.dense"]
    made = made_with(
        "numba_cuda_mlir", Path(kernel.__file__), __name__="numba_cute.kernels.gemm.dense",
        __package__="numba_cute.kernels.gemm",
    )  # fmt: skip
    a, b, c = hopper_gemm.problem(256, 256, 128, cute.Float16)
    args = hopper_gemm.arguments(a, b, c, cute.Float16, 1, hopper_gemm.USUAL)[0]
    assert made.gemm is not kernel.gemm
    assert ptx(made.gemm, *args) == ptx(kernel.gemm, *args)
