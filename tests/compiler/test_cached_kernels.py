# SPDX-License-Identifier: Apache-2.0
"""Dispatchers look for kernels of this library in the disk cache."""

from __future__ import annotations

import pytest
from numba import cuda
from numba.cuda import types
from numba.cuda.core import config as numba_config
from numba.cuda.target import CUDATargetContext
from numba.cuda.typing.typeof import typeof

import numba_cute as cute
from numba_cute import config
from numba_cute.compiler.host import recording, store

ARRAY = types.Array(types.float32, 1, "C")


@pytest.fixture(autouse=True)
def folder(tmp_path):
    with config.override(cache=True, cache_dir=str(tmp_path / "cache")):
        yield


@cuda.jit
def scaled(x, lay):
    x[0] = cute.size(lay)


@pytest.fixture
def device(monkeypatch):
    """A GPU that is not here: kernels are assembled for it, and not loaded."""
    from numba.cuda.cudadrv import devices
    from numba.cuda.dispatcher import _Kernel

    class Context:
        class device:  # noqa: N801
            compute_capability = (9, 0)

    monkeypatch.setattr(devices, "get_context", lambda *_: Context)
    monkeypatch.setattr("numba.cuda.dispatcher.get_current_device", lambda: Context.device)
    monkeypatch.setattr("numba.cuda.compiler.get_current_device", lambda: Context.device, raising=False)
    monkeypatch.setattr(_Kernel, "bind", lambda self: self._codelibrary.get_cubin())


def test_a_dispatcher_rebuilds_a_kernel_from_disk(device, monkeypatch):
    argtypes = (ARRAY, typeof(cute.make_layout(11)))
    made, again = (cuda.jit(launch_bounds=64)(scaled.py_func) for _ in range(2))
    kernel = made.compile(argtypes)
    with monkeypatch.context() as patched:  # what only compiling needs takes Numba half a second to load
        patched.delattr(CUDATargetContext, "load_additional_registries")
        kept = again.compile(argtypes)
    assert sum(made.stats.cache_misses.values()) == sum(again.stats.cache_hits.values()) == 1
    assert type(kernel) is type(kept) and kernel is not kept
    assert kept.argument_types == kernel.argument_types and kept.entry_name == kernel.entry_name
    assert kept._codelibrary.get_asm_str() == kernel._codelibrary.get_asm_str()
    assert bytes(kept._codelibrary.get_cubin().code) == bytes(kernel._codelibrary.get_cubin().code)
    assert again.compile(argtypes) is kept
    recorded = recording._twin(kept)  # a timeline compiles it again, to tell its events
    assert recorded.py_func is scaled.py_func and recorded.argument_types == kept.argument_types


@cuda.jit(launch_bounds=64)
def copied_singly(x, lay):
    held = cute.make_rmem_tensor(4, cute.Float32)
    cute.autovec_copy(cute.make_tensor(x, lay), held)
    x[0] = held[3]


def test_notes_of_a_launch_come_back_from_disk(device):
    argtypes = (ARRAY, typeof(cute.make_layout(4, stride=8)))
    made, again = (cuda.jit(launch_bounds=64)(copied_singly.py_func).compile(argtypes) for _ in range(2))
    assert made is not again
    (note,) = made._cute_notes
    assert again._cute_notes == (note,) and "src, 4:8, are known to lie side by side" in note


@cuda.jit(launch_bounds=(384, 1))
def asks_for_too_much(x, lay):
    if cuda.threadIdx.x < 128:
        cute.arch.setmaxregister_decrease(152)
    else:
        cute.arch.setmaxregister_increase(240)


def test_a_launch_is_refused_that_would_wait_for_registers_for_ever(device):
    with pytest.raises(cute.CuteError, match="ask for 152, 240 and 240 registers a thread, .* begins with 64512 on"):
        asks_for_too_much.compile((ARRAY, typeof(cute.make_layout(11))))


FACTOR = 2


def by_factor(x, lay):
    x[0] = FACTOR * cute.size(lay)


@pytest.mark.parametrize("eager", [False, True], ids=["by the launch", "by its signature"])
def test_cache_true_asks_for_the_same_cache(device, monkeypatch, eager):
    """Numba's own does not ask whether a global is as it was."""
    argtypes = (ARRAY, typeof(cute.make_layout(11)))

    def hits():
        kernel = cuda.jit([argtypes], cache=True)(by_factor) if eager else cuda.jit(cache=True)(by_factor)
        kernel.compile(argtypes)
        return sum(kernel.stats.cache_hits.values())

    assert [hits(), hits()] == [0, 1]
    monkeypatch.setitem(globals(), "FACTOR", 3)
    assert [hits(), hits()] == [0, 1]


@pytest.mark.parametrize("options", [{}, {"cache": True}], ids=["default", "cache=True"])
def test_plain_kernels_are_numbas_to_keep(device, options, monkeypatch, tmp_path):
    monkeypatch.setattr(numba_config, "CACHE_DIR", str(tmp_path / "numba's"))

    def plain(x):
        x[0] = 1

    kernel = cuda.jit(**options)(plain)
    kernel.compile((ARRAY,))
    assert type(kernel._cache).__name__ == ("CUDACache" if options else "NullCache")
    assert list(store.entries()) == []
