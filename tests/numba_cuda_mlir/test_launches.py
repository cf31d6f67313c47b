# SPDX-License-Identifier: Apache-2.0
"""Launches of that package's kernels: configurations, options, signatures, arrays and streams, with no GPU."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from cuda.bindings import driver as bindings
from numba.cuda import types
from numba.cuda.dispatcher import CUDADispatcher
from numba.cuda.typing.typeof import typeof
from numba_cuda_mlir import cuda, types as mlir_types
from numba_cuda_mlir.descriptor import MLIRDispatcher, _ArgMarshaller
from numba_cuda_mlir.numba_cuda.cudadrv.devicearray import DeviceNDArray
from numba_cuda_mlir.numba_cuda.cudadrv.driver import Stream

import numba_cute as cute
from numba_cute.compiler.bridge.typeofs import type_of_argument
from numba_cute.compiler.host import mlir_kernels
from numba_cute.compiler.host.mlir_names import numba_type

from ..compiler.noting import kernel_of, launches, packed, planned, words_of
from . import kernels

__all__ = ["launches"]


class Pair(NamedTuple):
    a: Any
    b: Any


@cuda.jit
def kernel(x, n=1):
    x[cuda.grid(1) + cute.arch.lane_idx() // 32] = n


def device_array(address=0x1000, shape=(4, 8), dtype=np.float32, order="C"):
    """An array of that package's, over memory that is none."""
    like = np.zeros(shape, dtype, order=order)
    memory = SimpleNamespace(device_ctypes_pointer=ctypes.c_void_p(address), device_pointer=address)
    return DeviceNDArray(like.shape, like.strides, like.dtype, gpu_data=memory)


def stream_of(handle):
    return Stream(bindings.CUstream(handle), external=True)


# ---------------------------------------------------------------- configurations


def test_a_configuration_is_spelled_as_that_package_spells_it():
    stream = stream_of(0x55)
    for made in (kernel[2, 32, stream, 64], kernel.configure(2, 32, stream=stream, sharedmem=64)):
        assert (made.griddim, made.blockdim, made.sharedmem) == ((2, 1, 1), (32, 1, 1), 64)
        assert int(made.stream.handle) == 0x55
    assert kernel[2, 32, None, None].sharedmem == 0
    assert kernel[2, 32, stream] is kernel[2, 32, stream]
    for made in (kernel[4, 32, stream, 64, 2], kernel.configure(4, 32, stream, 64, cluster=(2, 1, 1))):
        setting = made._setting
        assert (setting.grid, setting.smem, setting.cluster, setting.stream) == ((4, 1, 1), 64, (2, 1, 1), 0x55)
    with pytest.raises(cute.CuteError, match=r"kernel\[.*\]: give grid, block, and optionally stream, smem and cl"):
        kernel[2]
    with pytest.raises(cute.CuteError, match="cluster=0: up to three positive ints"):
        kernel[2, 32, 0, 0, 0]


def test_a_launch_without_a_gpu_says_how_to_go_on():
    for launch in (kernel[2, 32], kernel[2, 32, 0, 0, 2], kernels.late[2, 32]):
        with pytest.raises(cute.CuteError, match=r"there is no GPU to launch it on .*cute.simulate\("):
            launch(np.zeros(32, np.float32))


def test_a_simulation_takes_launches_of_both_kinds_of_kernels():
    x = np.zeros(64, np.float32)
    with cute.simulation():
        for launch, args, want in (
            (kernel[2, 32], (x, 3), 3), (kernel[2, 32, None, None, 2], (x, 4), 4), (kernels.plain[2, 32], (x,), 2),
            (kernels.late[1, 64], (x,), 32), (kernel.forall(64, tpb=32), (x, 5), 5),
        ):  # fmt: skip
            launch(*args)
            assert (x == want).all()
        kernels.given[2, 32](cute.make_layout(64, stride=3), x)
        assert (x == 3 * np.arange(64)).all()


def test_a_plain_kernel_that_is_given_objects_of_this_library_is_launched_by_numba_cuda(monkeypatch):
    seen = []

    def configure(self, *where):
        return lambda *args: seen.append((self.py_func.__name__, where, args))

    monkeypatch.setattr(mlir_kernels.MlirKernel, "configure", configure)
    layout, stream, x = cute.make_layout(32), stream_of(0x55), np.zeros(32)
    kernels.given[(2, 2), 32, stream, 64, 2](layout, x)
    kernels.given[1, 32]((layout, layout), x)
    kernels.given[1, 32](Pair(layout, 1), x)
    kernels.late[1, 32](x)
    assert seen == [
        ("given", ((2, 2, 1), (32, 1, 1), stream, 64, (2, 1, 1)), (layout, x)),
        ("given", ((1, 1, 1), (32, 1, 1), None, None, None), ((layout, layout), x)),
        ("given", ((1, 1, 1), (32, 1, 1), None, None, None), ((layout, 1), x)),
        ("late", ((1, 1, 1), (32, 1, 1), None, None, None), (x,)),
    ]


def test_a_plain_launch_is_that_package_s(monkeypatch):
    seen = []
    monkeypatch.setattr(mlir_kernels, "twin", lambda d: pytest.fail("numba-cuda was asked"))
    monkeypatch.setattr("numba_cuda_mlir.descriptor._ArgMarshaller._call_impl", lambda self, *args: seen.append(args))
    kernels.plain[1, 32](7, (1, 2.0), Pair(1, 2), np.float32(1))
    assert seen == [(7, (1, 2.0), (1, 2), np.float32(1))]


def test_whose_a_plain_kernel_is_is_asked_until_it_is_compiled_and_after_recompile(monkeypatch):
    def ours(x):
        return cute.size(3)

    def plain(x):
        return 3

    @cuda.jit
    def kernel(x):
        x[0] = helper(x)

    seen, its_own, by_numba_cuda = [], "its own", "numba-cuda"
    monkeypatch.setattr(
        "numba_cuda_mlir.descriptor._ArgMarshaller._call_impl", lambda self, *args: seen.append(its_own)
    )
    monkeypatch.setattr(mlir_kernels, "_launch", lambda configured, args: seen.append(by_numba_cuda))
    configured = kernel[1, 32]
    helper = ours
    configured(7)
    helper = plain
    configured(7)
    helper = ours
    configured(7)  # it is compiled
    configured(cute.make_layout(3))
    kernel._c = kernel._new_kernel_dispatcher()  # what recompile() does
    configured(7)
    assert seen == [by_numba_cuda, its_own, its_own, by_numba_cuda, by_numba_cuda]


def test_a_configuration_of_what_is_no_kernel_of_that_package_is_its_own(monkeypatch):
    seen = []
    monkeypatch.setattr("numba_cuda_mlir.descriptor._ArgMarshaller._call_impl", lambda self, *args: seen.append(args))
    for dispatcher in (None, SimpleNamespace(overloads={})):
        _ArgMarshaller(lambda *args: None, dispatcher=dispatcher)(cute.make_layout(3))
    assert seen == [(cute.make_layout(3),)] * 2


# ---------------------------------------------------------------- options and signatures


def named(x):
    x[0] = cute.arch.thread_idx()[0]


@pytest.mark.parametrize(
    "options, want",
    [
        ({}, {"opt": True, "debug": 0, "inline": "never", "lto": True}), ({"max_registers": 64}, {"max_registers": 64}),
        ({"launch_bounds": (128, 2)}, {"launch_bounds": (128, 2)}), ({"lineinfo": True}, {"lineinfo": True}),
        ({"fastmath": True}, {"fastmath": True}), ({"fast_math": True}, {"fastmath": True}),
        ({"opt": False}, {"opt": False}),
        ({"opt_level": 0}, {"opt": False}), ({"opt_level": 3}, {"opt": True}), ({"inline": True}, {"inline": "always"}),
        ({"forceinline": True}, {"forceinline": True}), ({"debug": True, "opt": False}, {"debug": True, "opt": False}),
        ({"link": ["a.cu"]}, {"link": ["a.cu"]}), ({"lto": False}, {"lto": False}),
        ({"device": True}, {"device": True}),
        ({"shared_memory_carveout": 50}, {"shared_memory_carveout": 50}), ({"annotations_as_signatures": False}, {}),
    ],
    ids=str,
)  # fmt: skip
def test_options_are_numba_cudas(options, want):
    found = cuda.jit(**options)(named).targetoptions
    assert {n: found[n] for n in want} == want
    assert found.keys() <= {*cuda_options(), "max_registers"}


def cuda_options():
    from numba import cuda as numba_cuda

    return numba_cuda.jit(named).targetoptions


@pytest.mark.parametrize(
    "options, said",
    [
        ({"opt_level": 2}, "opt_level=2.*: opt_level 0 and 3"), ({"ptxas_options": "-v"}, "ptxas_options='-v'"),
        ({"chip": "sm_90"}, "chip='sm_90'.*arch="), ({"cc": (9, 0)}, "cc=.*arch="), ({"capi": True}, "capi=True"),
        ({"extensions": [object()]}, "extensions="), ({"link": [object()]}, "link=.*names of files"),
        ({"dump": True}, "dump=True"), ({"features": "+ptx80"}, "features="), ({"abi": "c"}, "abi='c'"),
        ({"inline": lambda *a: True}, "inline="), ({"experimental_ast_transforms": True}, "experimental_ast"),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)  # fmt: skip
def test_options_that_numba_cuda_lacks_are_refused(options, said):
    with pytest.raises(cute.CuteError, match=rf"cuda\.jit\({said}"):
        cuda.jit(**options)(named)


@pytest.mark.parametrize(
    "of_package, want",
    [
        (mlir_types.float32, types.float32), (mlir_types.int64, types.int64), (mlir_types.boolean, types.boolean),
        (mlir_types.complex64, types.complex64), (mlir_types.none, types.none), (mlir_types.float16, types.float16),
        (mlir_types.float32[:], types.float32[:]), (mlir_types.int8[:, ::1], types.int8[:, ::1]),
        (mlir_types.float64[::1, :], types.float64[::1, :]),
        (mlir_types.UniTuple(mlir_types.int32, 2), types.UniTuple(types.int32, 2)),
        (mlir_types.Tuple((mlir_types.int32, mlir_types.float32[:])), types.Tuple((types.int32, types.float32[:]))),
    ],
    ids=str,
)  # fmt: skip
def test_types_of_signatures_are_numba_cudas(of_package, want):
    assert type(of_package) is not type(want) and numba_type(of_package) == want
    assert numba_type(want) is want


def test_a_type_that_numba_cuda_lacks_is_refused():
    from numba_cuda_mlir.type_defs.vector_types import VectorType

    with pytest.raises(cute.CuteError, match="type .* of numba_cuda_mlir: .* has no such type"):
        numba_type(VectorType(mlir_types.float32, 7))


@pytest.mark.parametrize("by", ["signature", "annotations"])
def test_a_kernel_with_a_signature_is_compiled_for_it(by, monkeypatch):
    seen = []

    def compile(self, sig):
        seen.append(sig)
        self.overloads[sig] = None

    monkeypatch.setattr(CUDADispatcher, "compile", compile)

    def kernel(x, n):
        x[n] = cute.arch.thread_idx()[0]

    if by == "annotations":
        kernel.__annotations__ = {"x": mlir_types.float32[::1], "n": mlir_types.int32}
        made = cuda.jit(kernel)
    else:
        made = cuda.jit(mlir_types.void(mlir_types.float32[::1], mlir_types.int32))(kernel)
    assert seen == [(types.float32[::1], types.int32)] and not made._can_compile
    made.overloads.clear()


def test_what_numba_cudas_kernels_lack_is_said():
    with pytest.raises(AttributeError, match="kernel.inspect_mlir: the kernel uses numba_cute, so numba-cuda compiles"):
        kernel.inspect_mlir()
    assert not hasattr(kernel, "nothing") and not hasattr(kernel, "_cute_nothing")
    with pytest.raises(cute.CuteError, match=r"cute\.compile\(named, …\)\.ptx is its PTX"):
        cuda.compile_ptx(named, (mlir_types.float32[:],))


# ---------------------------------------------------------------- arguments


@pytest.mark.parametrize("order, dtype", [("C", np.float32), ("F", np.int8), ("C", np.complex128)])
def test_a_device_array_of_that_package_is_an_array(order, dtype):
    array = device_array(order=order, dtype=dtype)
    want = types.Array(typeof(np.zeros(1, dtype)).dtype, 2, order)
    assert typeof(array) == type_of_argument(array) == want
    words = []
    kernel_of((array,))._prepare_args(want, array, 0, [], words)
    assert words[2:] == [32, np.dtype(dtype).itemsize, 0x1000, 4, 8, *array.strides]


def test_a_device_array_of_that_package_is_launched_in_machine_code(launches):
    site = planned(launches, (device_array(),))
    assert words_of(packed(launches, site, device_array(0x2000)))[2:] == [32, 4, 0x2000, 4, 8, 32, 4]
    assert words_of(packed(launches, site, device_array(0x3000, (2, 8))))[2:] == [16, 4, 0x3000, 2, 8, 32, 4]
    for other in (device_array(dtype=np.int32), device_array(order="F"), device_array(shape=4)):
        launches.seen.clear()
        site.call(other)
        assert not launches.seen and site.slow.calls.pop() == ((other,), {})


def test_a_tensor_of_a_device_array_of_that_package_is_cast():
    def address(at):
        return int(cute.runtime.from_dlpack(device_array(at)).iterator.toint())

    assert [address(at) for at in (0x1000, 0x2000)] == [0x1000, 0x2000]


def test_hints_are_the_arrays_that_they_hold():
    host = np.zeros(3, np.float32)
    assert typeof(cuda.In(host)) == typeof(cuda.InOut(host)) == typeof(host)
    from numba.cuda.args import In, InOut, Out

    from numba_cute.seam.ground.counterparts import counterpart

    for hint, kind in ((cuda.In, In), (cuda.Out, Out), (cuda.InOut, InOut)):
        made = counterpart(hint(host))
        assert type(made) is kind and made.value is host


def test_a_device_function_of_that_package_is_an_argument():
    @cuda.jit
    def applied(x, function):
        x[cute.arch.thread_idx()[0]] = function(cute.Float32(3))

    x = np.zeros(1, np.float32)
    assert type(kernels.squared) is MLIRDispatcher
    cute.simulate(applied)[1, 1](x, kernels.squared)
    assert x[0] == 9
