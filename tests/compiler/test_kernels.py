# SPDX-License-Identifier: Apache-2.0
"""`cute.kernel`, `cute.jit` and `cute.Constexpr`: a kernel of the CuTe DSL by its imports and its launch alone."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.runtime import from_dlpack


@cute.jit
def twice(x):
    return x * 2


@cute.kernel
def scale(x: cute.Tensor, out: cute.Tensor, n: cute.Constexpr[int], offset: cute.Float32 = 1):
    regs = cute.make_rmem_tensor(n, cute.Float32)
    tidx, _, _ = cute.arch.thread_idx()
    for i in cute.range_constexpr(n):
        regs[i] = twice(x[tidx, i]) + offset
    cute.autovec_copy(regs, out[tidx, None])


@cute.jit
def host(x, out, threads):
    scale(x, out, 4).launch(grid=[1, 1, 1], block=[threads, 1, 1])
    return twice(threads)


@pytest.fixture
def arrays():
    x = np.random.default_rng(0).random((8, 4), np.float32)
    return x, np.zeros_like(x)


def test_a_host_function_and_its_kernels_run_in_the_simulator(arrays):
    x, out = arrays
    assert cute.simulate(host)(from_dlpack(x), from_dlpack(out), 8) == 16
    np.testing.assert_array_equal(out, 2 * x + 1)


class Scaling:
    """An object that launches, as the CuTe DSL's examples have them."""

    threads = 8

    @cute.jit
    def __call__(self, x, out):
        scale(x, out, 4).launch(grid=1, block=self.threads)

    @cute.jit
    def twice(self, x, out):
        self(x, out)
        return self.threads


def test_an_object_that_launches_runs_in_the_simulator(arrays):
    x, out = arrays
    cute.simulate(Scaling())(from_dlpack(x), from_dlpack(out))
    np.testing.assert_array_equal(out, 2 * x + 1)
    out[:] = 0
    assert cute.simulate(Scaling().twice)(from_dlpack(x), from_dlpack(out)) == 8
    np.testing.assert_array_equal(out, 2 * x + 1)


def test_a_host_function_simulates_as_it_is_told(arrays):
    x, out = arrays

    @cute.kernel
    def racing(out):
        smem = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout(32))
        tidx, _, _ = cute.arch.thread_idx()
        smem[tidx] = 1
        out[tidx] = smem[(tidx + 1) % 8]

    @cute.jit
    def launches(out):
        racing(out).launch(grid=1, block=8)

    with pytest.raises(cute.sim.RaceError):
        cute.simulate(launches)(out.reshape(-1))
    cute.simulate(launches, checks=False)(out.reshape(-1))


def test_a_kernel_is_taken_as_any_other(arrays):
    x, out = arrays
    args = from_dlpack(x), from_dlpack(out), 4, np.float32(3)
    cute.simulate(scale)[1, 8](*args)
    np.testing.assert_array_equal(out, 2 * x + 3)
    compiled = cute.compile(scale, args)
    assert compiled.resources.local == 0 and "scale" in compiled.name
    assert "cute.autovec_copy" in cute.inspect(scale, args).text(limit=None)
    assert getattr(cute.cluster_shape(2)(scale).py_func, "__cute_cluster__", None) == (2, 1, 1)
    assert scale.__name__ == "scale"


@pytest.mark.gpu
def test_a_host_function_launches_on_a_gpu(arrays):
    torch = pytest.importorskip("torch")
    x, _ = arrays
    source, out = torch.from_numpy(x).cuda(), torch.zeros(8, 4, device="cuda")
    host(from_dlpack(source), from_dlpack(out), 8)
    torch.cuda.synchronize()
    np.testing.assert_array_equal(out.cpu().numpy(), 2 * x + 1)
    scale[1, 8](from_dlpack(source), from_dlpack(out), 4, np.float32(5))
    torch.cuda.synchronize()
    np.testing.assert_array_equal(out.cpu().numpy(), 2 * x + 5)


def test_arguments_may_be_named_and_left_out(arrays):
    x, out = arrays
    call = scale(x, n=4, out=out)
    assert call.args == (x, out, 4, 1)
    for wrong in (lambda: scale(x, out), lambda: scale(x, out, 4, 1, 5), lambda: scale(x, x=x, out=out, n=3),
                  lambda: scale(x, out, 4, m=1)):  # fmt: skip
        with pytest.raises(cute.CuteError, match="kernel scale"):
            wrong()


def test_options_reach_numba():
    @cute.kernel(lineinfo=True)
    def kernel(out):
        out[0] = 1

    assert kernel.targetoptions["lineinfo"]

    @cute.jit(inline="always")
    def one():
        return 1

    assert one() == 1 and one.targetoptions["inline"] == "always"


def test_a_method_is_no_kernel():
    with pytest.raises(cute.CuteError, match="is a method"):

        class Gemm:
            @cute.kernel
            def kernel(self, a): ...


# ------------------------------------------------------------------ static arguments


@cuda.jit
def plain(out, n, flag):
    for i in cute.range_constexpr(n):
        if cute.const_expr(flag):
            out[i] = n


@pytest.mark.parametrize("n, flag", [(3, True), (2, True), (3, False)])
def test_an_argument_may_be_static(n, flag):
    out = np.zeros(4, np.int32)
    args = out, cute.Constexpr(n), cute.Constexpr(flag)
    cute.simulate(plain)[1, 1](*args)
    assert out.tolist() == [n * flag * (i < n) for i in range(4)]
    ptx = cute.compile(plain, args).ptx
    assert ptx.count("st.global") == n * flag


@pytest.mark.gpu
def test_an_argument_may_be_static_on_a_gpu():
    if not cuda.is_available():
        pytest.skip("needs a GPU")
    out = np.zeros(4, np.int32)
    plain[1, 1](out, cute.Constexpr(3), cute.Constexpr(True))
    assert out.tolist() == [3, 3, 3, 0]
    cute.launch(plain, grid=1, block=1)(out, cute.Constexpr(2), cute.Constexpr(True))
    assert out.tolist() == [2, 2, 3, 0]


def test_what_cannot_be_a_static_argument_is_refused():
    for wrong in (1.5, "text", np.zeros(3)):
        with pytest.raises(cute.CuteError, match="an argument that is static is an int"):
            cute.Constexpr(wrong)
    assert repr(cute.Constexpr(cute.Constexpr(3))) == "Constexpr(3)"


def test_objects_of_this_library_are_static_as_they_are():
    layout = cute.make_layout(3)

    @cuda.jit
    def kernel(out, tile):
        out[0] = cute.const_expr(cute.size(tile))

    out = np.zeros(1, np.int32)
    cute.simulate(kernel)[1, 1](out, cute.Constexpr(layout))
    assert out[0] == 3
    cute.compile(kernel, (out, cute.Constexpr(layout)))
