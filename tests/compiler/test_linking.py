# SPDX-License-Identifier: Apache-2.0
"""`cute.compile` links what a launch links: half precision, the grid's barrier, reshapes, functions of others."""

import math
import re

import ml_dtypes
import numpy as np
import pytest
from numba import cuda
from numba.cuda import fp16, types

import numba_cute as cute
from numba_cute.compiler.ground.building import building
from numba_cute.compiler.ground.target import compiling_for
from numba_cute.compiler.host.lowering import lowered

ADD_ONE = cuda.CUSource('extern "C" __device__ int add_one(int* to, int x) { *to = x + 1; return 0; }')
MISSING = cuda.CUSource('extern "C" __device__ int another(int* to, int x) { return 0; }')
WRONG = cuda.CUSource('extern "C" __device__ int add_one(int* to, int x) { return nothing; }')
add_one = cuda.declare_device("add_one", "int32(int32)", link=ADD_ONE)
lacks_it = cuda.declare_device("add_one", "int32(int32)", link=MISSING)
does_not_compile = cuda.declare_device("add_one", "int32(int32)", link=WRONG)


@cuda.jit
def halves(x, out):
    out[0], out[1], out[2], out[3] = x[0] + x[1], -x[0], x[0] * x[1], x[0] / x[1]
    out[4] = fp16.hfma(x[0], x[1], fp16.hneg(x[0]))
    out[5] = math.sqrt(x[2]) + cuda.fp16.hsqrt(x[2])
    if x[0] > x[1]:
        out[6] = abs(x[0])
    cute.arch.sync_warp()


@cuda.jit
def of_tensors(x, out):
    t, o = cute.make_tensor(x, 8), cute.make_tensor(out, 8)
    o[0], o[1], o[2], o[3] = t[0] + t[1], -t[0], t[0] * t[1], t[0] / t[1]
    o[4] = t[0] * t[1] - t[0]
    o[5] = t[1] + t[1]
    o[6] = -cute.Float16.inf
    if o[6] < t[0]:
        o[6] = t[0]


@pytest.mark.parametrize(
    "kernel", [pytest.param(halves, marks=pytest.mark.slow), of_tensors], ids=["numba's", "of tensors"]
)
def test_half_precision(kernel):
    x, out = np.array([6, 1.5, 2.25, 0, 0, 0, 0, 0], np.float16), np.zeros(8, np.float16)
    cute.simulate(kernel)[1, 1](x, out)
    np.testing.assert_array_equal(out[:7], [7.5, -6, 9, 4, 3, 3, 6])
    compiled = cute.compile(kernel, x, out)
    assert compiled.cubin[:4] == b"\x7fELF" and compiled.resources.registers


@pytest.mark.slow
def test_bfloat16():
    @cuda.jit
    def kernel(x, out):
        t, o = cute.make_tensor(x, 2), cute.make_tensor(out, 2)
        o[0] = t[0] + t[1]
        o[1] = -cute.BFloat16.inf

    x, out = np.full(2, 2, ml_dtypes.bfloat16), np.zeros(2, ml_dtypes.bfloat16)
    cute.simulate(kernel)[1, 1](x, out)
    assert out.tolist() == [4, -math.inf]
    assert cute.compile(kernel, x, out).cubin[:4] == b"\x7fELF"


@pytest.mark.parametrize("library", [pytest.param(False, marks=pytest.mark.slow), True], ids=["alone", "beside cute"])
def test_the_barrier_of_a_grid(library):
    @cuda.jit
    def kernel(out):
        i = cute.arch.lane_idx() if library else cuda.laneid
        out[i] = 1
        cuda.cg.this_grid().sync()
        out[32 + i] = out[31 - i]

    out = np.zeros(64, np.int32)
    cute.simulate(kernel)[1, 32](out)
    assert out.all()
    compiled = cute.compile(kernel, out)
    assert b"cudaCGSynchronize" in compiled.cubin and compiled.resources.registers


def test_functions_that_are_declared():
    @cuda.jit
    def kernel(out):
        out[cute.arch.lane_idx()] = add_one(3)

    assert b"add_one" in cute.compile(kernel, np.zeros(32, np.int32)).cubin
    given = cuda.jit(link=[ADD_ONE])(kernel.py_func)
    assert b"add_one" in cute.compile(given, np.zeros(32, np.int32)).cubin


@pytest.mark.slow
@pytest.mark.parametrize(
    "function, said", [(lacks_it, "add_one"), (does_not_compile, "nothing")], ids=["lacks", "wrong"]
)
def test_what_cannot_be_linked_is_told(function, said):
    @cuda.jit
    def kernel(out):
        out[cute.arch.lane_idx()] = function(3)

    with pytest.raises(cute.CuteError, match=rf"(?s)could not be linked for sm_90a with .*{said}"):
        cute.compile(kernel, np.zeros(32, np.int32))


@cuda.jit
def reshaped(x, out):
    i = cute.arch.lane_idx()
    out[i] = x.reshape(4, 8)[i // 8, i % 8] + x.reshape((8, 4))[i // 4, i % 4]


def test_arrays_that_are_reshaped():
    x, out = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    cute.simulate(reshaped)[1, 32](x, out)
    np.testing.assert_array_equal(out, 2 * x)
    assert b"numba_attempt_nocopy_reshape" in cute.compile(reshaped, x, out).cubin


# ------------------------------------------------------------------ what is compiled is launched as the kernel is


@pytest.mark.parametrize("make", [cuda.jit, cute.kernel, lambda f: f], ids=["cuda.jit", "cute.kernel", "plain"])
def test_what_is_compiled_is_launched_as_the_kernel_is(make):
    @make
    def kernel(x, out, scale=2.0):
        i = cute.arch.lane_idx()
        out[i] = scale * x[i]

    x, out = np.arange(32.0), np.zeros(32)
    compiled = cute.compile(kernel, x, out)

    @cute.jit
    def host(x, out):
        compiled(x, out).launch(grid=1, block=32)
        compiled(x, out, scale=3.0).launch(grid=[1, 1, 1], block=[32, 1, 1])

    cute.simulate(host)(x, out)
    np.testing.assert_array_equal(out, 3 * x)
    assert len(cute.compile(host, x, out).kernels) == 2
    assert callable(compiled[1, 32])


def numbered(n):
    """A device function that no other kernel has; run-time branches keep it one."""
    space = {"cute": cute}
    exec(f"@cute.jit\ndef f{n}(x):\n    if x > {n}:\n        return x * {n + 2}\n    return x", space)
    return space[f"f{n}"]


def test_device_functions_are_linked_in_the_order_of_their_calls():
    fs = tuple(map(numbered, range(9)))

    @cuda.jit
    def kernel(out, n):
        for i in cute.range_constexpr(9):
            out[i] = fs[i](n)

    with compiling_for("sm_90a") as cc, building(kernel.py_func):
        made = lowered(kernel.py_func, (types.int32[::1], types.int32), {}, cc)
    order = [int(n) for text in made.library.llvm_strs for n in re.findall(r"^define .*@\S*?2f(\d)B", text, re.M)]
    assert order == list(range(9))
