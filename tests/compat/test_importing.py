# SPDX-License-Identifier: Apache-2.0
"""`compat.install` answers for the modules of the CuTe DSL, and for nothing else."""

from __future__ import annotations

import importlib
import re
import sys
import types

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import CuteError
from numba_cute.compat import install, uninstall
from numba_cute.compat.modules import MODULES
from numba_cute.seam.ground import names


@pytest.fixture
def installed():
    install()
    yield
    uninstall()


NEED_TORCH = {"cutlass.torch"}


@pytest.mark.parametrize("name", sorted(set(MODULES) - NEED_TORCH))
def test_a_module_has_its_names(installed, name):
    module = importlib.import_module(name)
    assert module.__name__ == name
    for public in module.__all__:
        assert not isinstance(getattr(module, public), types.ModuleType)


@pytest.mark.parametrize("names", [
    "cutlass: Float32 Int32 Boolean Constexpr const_expr range Numeric dtype CUDA_VERSION pipeline utils cute",
    "cutlass.cute: Tensor Layout jit kernel compile size nvgpu arch runtime testing GenerateLineInfo OptLevel",
    "cutlass.cute.nvgpu: cpasync tcgen05 warp warpgroup CopyUniversalOp OperandMajorMode",
    "cutlass.utils: SmemAllocator HardwareInfo WorkTileInfo sm100 blackwell_helpers hopper_helpers",
    "cutlass.cutlass_dsl: T dsl_user_op Int32 Boolean if_generate extract_mlir_values extract_mlir_attributes",
    "cutlass.base_dsl._mlir_helpers.op: dsl_user_op",
    "cutlass.cute.nvgpu.common: OpError",
    "cutlass.cute.runtime: nullptr",
    "cutlass.cute.arch.nvvm: atomicrmw red",
    "cutlass._mlir.dialects.cute: AddressSpace",
    "cutlass._mlir.ir: F32Type IntegerType Attribute MLIRError",
])  # fmt: skip
def test_what_files_import_is_there(installed, names):
    name, _, wanted = names.partition(": ")
    module = importlib.import_module(name)
    assert [n for n in wanted.split() if not hasattr(module, n)] == []


def test_names_take_locations_as_those_of_this_library_do(installed):
    import cutlass.cute

    assert cutlass.cute.where is cutlass.cute.select_ is cute.where


def test_names_are_the_objects_of_this_library(installed):
    import cutlass
    import cutlass.cute

    assert cutlass.Float32 is cute.Float32
    assert cutlass.cute.make_layout is cute.make_layout
    assert cutlass.cute.arch.thread_idx is cute.arch.thread_idx


def test_an_unknown_name_is_said(installed):
    import cutlass

    with pytest.raises(AttributeError, match="cutlass has no 'Flaot32' in numba_cute"):
        cutlass.Flaot32  # noqa: B018
    with pytest.raises(ImportError):
        import cutlass.no_such_module  # noqa: F401


def test_words_of_an_absent_name_are_written_when_they_are_asked_for(installed, monkeypatch):
    """Numba asks each global of a kernel for its protocols."""
    cutlass = importlib.import_module("cutlass.cute")
    monkeypatch.setattr(names, "unknown", None)
    assert not hasattr(cutlass, "_no_such_name_")
    monkeypatch.undo()
    with pytest.raises(AttributeError, match="cutlass.cute has no '_no_such_name_' in numba_cute: .* has no attribute"):
        cutlass._no_such_name_  # noqa: B018


def test_without_it_nothing_is_answered():
    uninstall()
    assert "cutlass" not in sys.modules
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("cutlass")


def test_the_package_itself_gets_no_names(installed):
    importlib.import_module("cutlass.cute.core")
    assert not hasattr(cute, "core") or "core" in cute.__all__
    assert not hasattr(cute, "typing")


def test_beside_the_cute_dsl_itself_it_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "cutlass", types.ModuleType("cutlass"))
    with pytest.raises(CuteError, match="cutlass has been imported already"):
        install()


@pytest.mark.parametrize("options, match", [
    ("--no-such-option", "is not an option of the CuTe DSL"),
    ("--link-libraries a.bc", "LinkLibraries"),
    ("opt-level 2", "is not an option of the CuTe DSL"),
])  # fmt: skip
def test_options_that_mean_nothing_here_are_refused(installed, options, match):
    import cutlass.cute

    with pytest.raises(CuteError, match=match):
        cutlass.cute.compile(lambda: None, options=options)


def test_an_autotuned_function_is_compiled_in_the_configuration_that_is_named(installed):
    import cutlass
    import cutlass.cute

    @cute.kernel
    def kernel(x, by: cutlass.Constexpr):
        x[0] = by

    @cutlass.cute.testing.autotune_jit(params_dict={"by": [7, 9]})
    @cute.jit
    def fill(x, by: cutlass.Constexpr = 7):
        kernel(x, by).launch(grid=1, block=1)

    made = cutlass.cute.compile(fill, np.zeros(1, np.int32), by=9)
    assert re.search(r"mov\S* \t?%r\d+, 9;", made.kernels[0].ptx)


def test_names_of_earlier_releases_mean_what_they_meant(installed):
    import cutlass.cute as cute_dsl
    from cutlass.utils.smem_allocator import SmemAllocator

    @cute.kernel
    def kernel(out):
        smem = SmemAllocator().allocate_tensor(cute.Int32, cute.make_layout(32), 16)
        smem[cute_dsl.arch.thread_idx()[0]] = cute_dsl.arch.mapa(smem.iterator, 0).toint()
        cute_dsl.arch.fence_proxy(cute_dsl.arch.ProxyKind.async_shared, space=cute_dsl.arch.SharedSpace.shared_cta)
        out[0] = smem[0]

    ptx = cute.compile(kernel, np.zeros(1, np.int32), arch="sm_90a").ptx
    assert "fence.proxy.async.shared::cta" in ptx and "mapa.shared::cluster" in ptx


def test_a_patch_of_the_preprocessor_that_would_do_nothing_is_refused(installed, monkeypatch):
    from cutlass.base_dsl.ast_preprocessor import DSLPreprocessor

    monkeypatch.setattr(DSLPreprocessor, "visit_If", lambda self, node: node)
    with pytest.raises(CuteError, match="DSLPreprocessor.visit_For is set"):
        DSLPreprocessor.visit_For = None
