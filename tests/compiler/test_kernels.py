# SPDX-License-Identifier: Apache-2.0
"""`cute.kernel`, `cute.jit` and `cute.Constexpr`: a kernel of the CuTe DSL by its imports and its launch alone."""

import enum
from types import SimpleNamespace

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.compiler.host.kernel import _assemble
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


class Launching:
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
    cute.simulate(Launching())(from_dlpack(x), from_dlpack(out))
    np.testing.assert_array_equal(out, 2 * x + 1)
    out[:] = 0
    assert cute.simulate(Launching().twice)(from_dlpack(x), from_dlpack(out)) == 8
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
    assert "cute.autovec_copy" in cute.inspect_ptx(scale, args).text(limit=None)
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
    for wrong in (np.float32(1.5), "text", np.zeros(3)):
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


# ------------------------------------------------------------------ methods


class Mode(enum.Enum):
    ADD = 1
    SKIP = 2


class Base:
    def shifted(self, x):
        return x + self.bias


class Scaling(Base):
    """What a kernel may ask of its object: fields of all kinds, a property, methods of every kind, a class's own."""

    weight = 3

    def __init__(self, n, dtype, mode=Mode.ADD):
        self.n, self.dtype, self.mode = n, dtype, mode
        self.bias, self.flag, self.none, self.numbers, self.half = np.int64(1), False, None, [1, 2], 0.5
        self.doubled = lambda x: x * 2
        self.unknown = np.zeros(3)

    @property
    def twice(self):
        return self.n * 2

    @staticmethod
    def sum(x, y):
        return x + y

    @cute.jit
    def helped(self, x, times: int = 2):
        for _ in range(times):
            x = self.shifted(x)
        return x

    @cute.jit
    def __call__(self, x, out, threads: cute.Constexpr = 8):
        self.layout, self.offset = cute.make_layout((self.n, 2)), cute.Int32(7)

        @cute.struct
        class Storage:
            rows: cute.struct.MemRange[self.dtype, self.n * threads]

        self.storage = Storage
        self.kernel(x, out).launch(grid=[1, 1, 1], block=[threads, 1, 1])

    @cute.kernel
    def kernel(self, x: cute.Tensor, out: cute.Tensor, more: int = 5):
        tidx, _, _ = cute.arch.thread_idx()
        storage = cute.utils.SmemAllocator().allocate(self.storage)
        rows = storage.rows.get_tensor(cute.make_layout((8, self.n)))
        for i in cute.range_constexpr(self.n):
            rows[tidx, i] = self.helped(x[tidx, i])
        chosen = rows if not self.flag else 0
        if self.none is not None:
            chosen = self.none
        k = self.numbers[1] * self.weight * self.twice + self.offset + more
        if cute.const_expr(self.mode == Mode.ADD):
            k += 1000
        for i in cute.range_constexpr(cute.size(self.layout) // 2):
            out[tidx, i] = self.doubled(self.sum(chosen[tidx, i], self.half)) + k

    def expected(self, x):
        return (x + 2 + 0.5) * 2 + 2 * 3 * 2 * self.n + 7 + 5 + 1000 * (self.mode is Mode.ADD)


@pytest.mark.parametrize("mode", Mode, ids=str)
def test_a_kernel_may_be_a_method(arrays, mode):
    x, out = arrays
    scaling = Scaling(4, cute.Float32, mode)
    cute.simulate(scaling)(from_dlpack(x), from_dlpack(out))
    np.testing.assert_allclose(out, scaling.expected(x), rtol=1e-6)
    compiled = cute.compile(scaling, from_dlpack(x), from_dlpack(out))
    (kernel,) = compiled.kernels
    assert kernel.resources.local == 0 and kernel.ptx.count("st.global") == 4


def test_a_storage_class_is_one_however_often_it_is_described():
    def described(n):
        @cute.struct
        class Storage:
            rows: cute.struct.MemRange[cute.Float32, n]

        return Storage

    assert described(4) is described(4) and described(4) is not described(5)


def test_an_object_is_as_it_is_at_the_launch(arrays):
    x, out = arrays
    scaling = Scaling(4, cute.Float32)
    cute.simulate(scaling)(from_dlpack(x), from_dlpack(out))
    scaling.offset, scaling.flag = cute.Int32(70), True
    with pytest.raises((cute.CuteError, TypeError)):
        cute.simulate(scaling.kernel)[1, 8](from_dlpack(x), from_dlpack(out))
    scaling.flag = False
    cute.simulate(scaling.kernel)[1, 8](from_dlpack(x), from_dlpack(out), more=6)
    np.testing.assert_allclose(out, scaling.expected(x) + 64, rtol=1e-6)


@pytest.mark.gpu
def test_a_method_launches_on_a_gpu(arrays):
    torch = pytest.importorskip("torch")
    x, _ = arrays
    source, out = torch.from_numpy(x).cuda(), torch.zeros(8, 4, device="cuda")
    scaling = Scaling(4, cute.Float32)
    compiled = cute.compile(scaling, from_dlpack(source), from_dlpack(out), 8)
    for run in (scaling, compiled):
        out.zero_()
        run(from_dlpack(source), from_dlpack(out))
        torch.cuda.synchronize()
        np.testing.assert_allclose(out.cpu().numpy(), scaling.expected(x), rtol=1e-6)
    scaling.kernel[1, 8](from_dlpack(source), from_dlpack(out), more=6)
    cute.launch(scaling.kernel, grid=1, block=8)(from_dlpack(source), out=from_dlpack(out), more=7)
    torch.cuda.synchronize()
    np.testing.assert_allclose(out.cpu().numpy(), scaling.expected(x) + 2, rtol=1e-6)


class Wrong:
    def __init__(self):
        self.array, self.n = np.zeros(3), 1

    @cute.kernel
    def held(self, out):
        out[0] = self.array[0]

    @cute.kernel
    def absent(self, out):
        out[0] = self.absent_field

    @cute.kernel
    def sets(self, out):
        this = self
        this.n = 2

    @cute.kernel
    def launches(self, out):
        self.held(out)


@pytest.mark.parametrize("name, said", [
    ("held", "Wrong.array is of type ndarray, which a kernel cannot hold"),
    ("absent", "Wrong has no attribute 'absent_field'"),
    ("sets", "Wrong.n cannot be assigned here: a Wrong is immutable"),
    ("launches", "held is a kernel, and a kernel calls none"),
])  # fmt: skip
def test_what_a_kernel_cannot_do_with_its_object(name, said):
    out, kernel = np.zeros(1), getattr(Wrong(), name)
    with pytest.raises(cute.CuteError, match=said):
        cute.simulate(kernel)[1, 1](out)
    with pytest.raises(cute.CuteError, match=said):
        cute.compile(kernel, (out,))


def test_arguments_of_every_launch_may_be_named_and_left_out():
    @cute.kernel
    def add(x, out, n: cute.Constexpr, more=1):
        for i in cute.range_constexpr(n):
            out[i] = x[i] + more

    x, out = np.arange(4), np.zeros(4, int)
    cute.simulate(add)[1, 1](x, n=3, out=out)
    assert out.tolist() == [1, 2, 3, 0]
    with pytest.raises(cute.CuteError, match="kernel add"):
        cute.simulate(add)[1, 1](x, out, m=4)
    assert cute.compile(add, x, out, 4).ptx.count("st.global") == cute.compile(add, (x, out, 4)).ptx.count("st.global")


def test_a_compiled_host_function_remembers_what_is_static():
    calls = []

    @cute.jit
    def run(x, n: cute.Constexpr, y=3):
        calls.append((x, n, y))

    compiled = cute.compile(run, 1, 2)
    compiled(5)
    compiled(5, 6)
    compiled(5, y=7)
    assert calls == [(1, 2, 3), (5, 2, 3), (5, 2, 6), (5, 2, 7)]


def test_a_launch_says_how_large_blocks_are():
    @cute.kernel
    def plain(out):
        out[cuda.threadIdx.x] = 1

    @cute.kernel(launch_bounds=(64,))
    def bounded(out):
        out[cuda.threadIdx.x] = 1

    @cute.jit
    def run(out):
        plain(out).launch(grid=1, block=[64, 1, 1], min_blocks_per_mp=3)
        plain(out).launch(grid=1, block=32, max_number_threads=[128, 1, 1])
        bounded(out).launch(grid=1, block=32)

    out = np.zeros(64)
    first, second, third = (k.ptx for k in cute.compile(run, out).kernels)
    assert ".reqntid 64, 1, 1" in first and ".minnctapersm 3" in first
    assert ".maxntid 128" in second and ".minnctapersm" not in second
    assert ".maxntid 64" in third
    cute.simulate(run)(out)
    assert out.all()
    with pytest.raises(cute.CuteError, match="min_blocks_per_mp 0 must be an int from 1 on"):
        plain(out).launch(grid=1, block=32, min_blocks_per_mp=0)
    with pytest.raises(cute.CuteError, match="more threads than max_number_threads 16"):
        plain(out).launch(grid=1, block=32, max_number_threads=16)


def test_numbers_that_stand_for_others_may_be_0():
    @cute.kernel
    def kernel(atom):
        cute.nvgpu.cpasync.prefetch_descriptor(atom)

    @cute.jit
    def host(x: cute.Pointer, m: cute.Int32):
        t = cute.make_tensor(x, cute.make_layout((m, 64), stride=(64, 1)))
        box = cute.make_layout((8, 64), stride=(64, 1))
        load = cute.nvgpu.cpasync.CopyBulkTensorTileG2SOp()
        atom, _ = cute.nvgpu.cpasync.make_tiled_tma_atom(load, t, box, (8, 64))
        kernel(atom).launch(grid=(640 // m, 1, 1), block=32)

    nothing = cute.make_ptr(cute.Float16, 0, cute.AddressSpace.gmem, assumed_align=16)
    (compiled,) = cute.compile(host, nothing, cute.Int32(0), arch="sm_90a").kernels
    assert "prefetch.tensormap" in compiled.ptx
    with pytest.raises(cute.CuteError, match=r"dims\[1\] is 0"):
        cute.simulate(host)(nothing, cute.Int32(0))


def test_numbers_are_instances_of_their_element_types():
    def converted(x):
        return x if isinstance(x, cute.Int32) else cute.Int32(x)

    @cute.kernel
    def kernel(out, n: cute.Int32):
        out[0] = converted(n)
        out[1] = converted(5)
        out[2] = 1 if isinstance(n, (cute.Float32, cute.Int32)) else 2
        out[3] = 1 if isinstance(n, cute.Int64) or isinstance(3, cute.Int32) else 2

    assert isinstance(cute.Int32(3), cute.Int32) and not isinstance(cute.Int32(3), cute.Int64)
    assert not isinstance(3, cute.Int32) and not isinstance(np.int32(3), cute.Int32)
    out = np.zeros(4, np.int32)
    cute.simulate(kernel)[1, 1](from_dlpack(out), 4)
    assert list(out) == [4, 5, 1, 2]
    cute.compile(kernel, (from_dlpack(out), 4), arch="sm_90a")


@pytest.mark.parametrize("files, lto", [((), False), (("other.ltoir",), True)])
def test_a_kernel_that_is_linked_with_nothing_is_assembled_and_not_optimised_a_second_time(files, lto):
    library = SimpleNamespace(
        _linking_files=files, needs_cudadevrt=False, _lto=True, _nvvm_options={}, _max_registers=None, _cubin_cache={},
        _ensure_cc=lambda cc: (9, 0), get_asm_str=lambda: ".version 8.0\n.target sm_90a\n.visible .entry k() { ret; }",
    )  # fmt: skip
    assert _assemble(library, "k") == () and library._lto is lto and len(library._cubin_cache) == (not lto)
