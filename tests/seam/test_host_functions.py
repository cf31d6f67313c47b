# SPDX-License-Identifier: Apache-2.0
"""Functions of `cute.jit` that the host calls compute on the CPU at once: the reference is NumPy."""

from __future__ import annotations

import ctypes
import math
import re

import ml_dtypes
import numpy as np
import pytest

import numba_cute as cute
from numba_cute.runtime import from_dlpack, make_fake_tensor, make_ptr, pack


def ran(function, *args):
    """Call a function as one of the host; gives what it returned."""
    return cute.jit(function)(*args)


TYPES = [np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64, np.float16, ml_dtypes.bfloat16, np.float32]
TYPES += [np.float64, np.bool_]


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: np.dtype(t).name)
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_elements_are_read_and_written(dtype, dynamic):
    x = np.random.default_rng(0).integers(0, 100, (5, 7)).astype(dtype)
    y = np.zeros((7, 5), dtype)

    def transpose(x, y):
        for i in range(5):
            for j in range(7):
                y[j, i] = x[i, j]

    tensors = [from_dlpack(a) for a in (x, y)]
    ran(transpose, *(t.mark_layout_dynamic(1) if dynamic else t for t in tensors))
    np.testing.assert_array_equal(y, x.T)


@pytest.mark.parametrize("dtype", [cute.Int4, cute.Uint4, cute.Float4E2M1FN, cute.Float6E3M2FN], ids=str)
def test_elements_narrower_than_a_byte_leave_their_neighbours(dtype):
    values = np.arange(16).astype(dtype.numpy)
    held = cute.recast_tensor(from_dlpack(pack(values)), dtype)
    out = np.zeros(16, np.float32)

    def change(t, out):
        t[3] = 1
        t[4] = t[2]
        for i in range(16):
            out[i] = t[i]

    ran(change, held, from_dlpack(out))
    values[3], values[4] = 1, values[2]
    np.testing.assert_array_equal(out, values.astype(np.float32))


def test_coordinates_of_every_kind():
    x = np.arange(24, dtype=np.int32)
    t = cute.make_tensor(from_dlpack(x).iterator, cute.make_layout((4, (2, 3)), stride=(6, (3, 1))))
    found = []

    def read(t):
        for c in (7, (1, 5), (1, (1, 2)), cute.Int32(7), (cute.Int32(1), 5)):
            found.append((int(t[c]), int(t.layout(c if not isinstance(c, cute.IntValue) else 7))))
        part = t[1, None]
        found.append((int(part[3]), int(t.layout((1, 3)))))

    ran(read, t)
    assert all(a == b for a, b in found), found


def test_numbers_compute_in_their_own_types():
    def compute():
        big, third = cute.Int32(2**31 - 1), cute.Float32(1) / 3
        return big + 1, third * 3, third, cute.Uint8(250) + cute.Uint8(10), cute.Float16(1000) * 100

    wrapped, one, third, small, inf = ran(compute)
    assert wrapped == -(2**31)
    assert third.value == np.float32(1) / np.float32(3) and one.value == np.float32(third.value) * np.float32(3)
    assert small == 4
    assert math.isinf(inf.value)


def test_vectors_compute_as_in_a_kernel():
    rng = np.random.default_rng(1)
    a, b = rng.random((4, 8), np.float32), rng.random((4, 8), np.float32) + 1
    out, flags, total = np.zeros_like(a), np.zeros((4, 8), np.bool_), np.zeros(2, np.float32)

    def compute(a, b, out, flags, total):
        x, y = a.load(), b.load()
        out.store(cute.math.exp2(x) / y - x * 2)
        flags.store(x * 2 > y)
        total[0] = x.reduce(cute.ReductionOp.ADD, 0.0)
        total[1] = cute.where(x > y, x, y).reduce(cute.ReductionOp.MAX, 0.0)

    ran(compute, *map(from_dlpack, (a, b, out, flags, total)))
    np.testing.assert_allclose(out, np.exp2(a) / b - a * 2, rtol=1e-6)
    np.testing.assert_array_equal(flags, a * 2 > b)
    np.testing.assert_allclose(total, [a.sum(), np.maximum(a, b).max()], rtol=1e-6)


def test_a_host_function_gives_what_a_kernel_gives():
    def compute(x, out):
        held = cute.make_rmem_tensor((2, 3), cute.BFloat16)
        held.fill(0.1)
        held[0, 1] = x[2]
        v = held.load().to(cute.Float32) * x[1] + cute.Float16(0.3)
        for i in cute.range_constexpr(6):
            out[i] = v[i]
        out[6] = cute.arch.popc(cute.Int32(x[0])) + cute.Int32(7) // 2

    x = np.float32([13, 1.7, 0.3])
    here, there = np.zeros(7, np.float32), np.zeros(7, np.float32)
    ran(compute, from_dlpack(x), from_dlpack(here))
    cute.simulate(cute.kernel(compute))[1, 1](from_dlpack(x), from_dlpack(there))
    np.testing.assert_array_equal(here, there)


def test_fill_and_copies_between_tensors():
    x, y = np.zeros((6, 4), np.float32), np.zeros((4, 6), np.float32)

    def compute(x, y):
        x.fill(2.5)
        x[2, None].fill(7)
        y.store(cute.make_tensor(x.iterator, cute.make_layout((4, 6), stride=(1, 4))).load())
        cute.autovec_copy(x[None, 1], y[1, None])

    ran(compute, from_dlpack(x), from_dlpack(y))
    want = np.full((6, 4), 2.5, np.float32)
    want[2] = 7
    np.testing.assert_array_equal(x, want)
    moved = want.T.copy()
    moved[1] = want[:, 1]
    np.testing.assert_array_equal(y, moved)


@pytest.mark.parametrize("shape, stride", [
    ((4, (2, 3)), (6, (3, 1))), ((3, 2), (-2, 5)), ((2, 2), (0, 3)), (5, 4), ((1, (1, 2)), (7, (9, 2))),
])  # fmt: skip
def test_whole_tensors_move_as_their_elements_do(shape, stride):
    x, y, z = (np.arange(24, dtype=np.int32) + n for n in (0, 50, 100))
    lay = cute.make_layout(shape, stride=stride)
    first = sum(
        -int(d) * (int(s) - 1) for s, d in zip(cute.flatten_to_tuple(shape), cute.flatten_to_tuple(stride)) if d < 0
    )

    def compute(*tensors):
        x, y, z = (cute.make_tensor(t.iterator + first, lay) for t in tensors)
        y.store(x.load() + 1)
        z.fill(7)
        return tuple(x.load()[i] for i in range(cute.size(lay)))

    places = [first + int(lay(i)) for i in range(cute.size(lay))]
    assert [int(n) for n in ran(compute, *map(from_dlpack, (x, y, z)))] == x[places].tolist()
    want_y, want_z = np.arange(24) + 50, np.arange(24) + 100
    for at in places:
        want_y[at], want_z[at] = x[at] + 1, 7
    assert y.tolist() == want_y.tolist() and z.tolist() == want_z.tolist()


def test_the_host_has_room_for_more_than_a_thread():
    x, y = np.zeros(300_000, np.float32), np.arange(300_000, dtype=np.float32)

    def compute(x, y):
        x.store(y.load() * 2)
        y[None].fill(1)

    ran(compute, from_dlpack(x), from_dlpack(y))
    np.testing.assert_array_equal(x, np.arange(300_000, dtype=np.float32) * 2)
    assert (y == 1).all()


def test_printing(capsys):
    x = np.float32([[1, 2.5], [3, 4]])

    def tell(x, n):
        cute.printf("a(dynamic) = {}", 3.14)
        cute.printf("n = {}, x = {:.2f}", n, x[0, 1])
        cute.printf(cute.make_layout((n, 2)))
        cute.print_tensor(x)
        cute.print_tensor(x.load() * 2)
        print("python", n > 2)

    cute.jit(tell)(from_dlpack(x), cute.Int32(8))
    said = capsys.readouterr().out.splitlines()
    assert said[:3] == ["a(dynamic) = 3.140000", "n = 8, x = 2.50", "(8,2):(1,8)"]
    assert said[4:6] == ["1.0 2.5", "3.0 4.0"]
    assert said[7:9] == ["2.0 5.0", "6.0 8.0"]
    assert said[9:] == ["python True"]


def test_a_pointer_given_as_a_number_is_followed():
    x = np.arange(8, dtype=np.int32)

    def compute(p):
        t = cute.make_tensor(p, 8)
        t[1] = t[0] + t[7]

    ran(compute, make_ptr(cute.Int32, x.ctypes.data))
    assert x[1] == 7


class TestRefused:
    def test_beyond_an_array(self):
        x = np.zeros(8, np.float32)
        t = from_dlpack(x[2:6])
        for i in (-1, 4):
            with pytest.raises(cute.CuteError, match="out of"):
                ran(lambda t, i=i: t[i], t)
        wide = cute.make_tensor(t.iterator, 16)
        for act in (lambda t: t[4], lambda t: t.load(), lambda t: t.fill(1)):
            with pytest.raises(cute.CuteError, match=r"out of bounds: \d+ bytes at 0x.* begins at"):
                ran(act, wide)
        assert not x[6:].any()

    @pytest.mark.parametrize("address", [0, 64, 1 << 40])
    def test_memory_that_is_not_the_hosts(self, address):
        t = cute.make_tensor(make_ptr(cute.Int32, address), 4)
        with pytest.raises(cute.CuteError, match="not the host's memory|without memory"):
            ran(lambda t: t[0], t)
        with pytest.raises(cute.CuteError, match="not the host's memory|without memory"):
            ran(lambda t: t.fill(0), t)

    def test_memory_that_may_only_be_read(self):
        x = np.zeros(4, np.float32)
        x.flags.writeable = False
        with pytest.raises(cute.CuteError, match="read-only"):
            ran(lambda t: t.fill(1), from_dlpack(x))
        constant = ctypes.pythonapi.Py_GetVersion
        constant.restype = ctypes.c_void_p
        t = cute.make_tensor(make_ptr(cute.Int8, ctypes.cast(constant, ctypes.c_void_p).value), 4)  # code
        with pytest.raises(cute.CuteError, match="cannot be written"):
            ran(lambda t: t.fill(1), t)

    def test_a_tensor_on_a_gpu(self):
        class OnGpu:
            __cuda_array_interface__ = {"shape": (4,), "typestr": "<f4", "data": (1 << 20, False), "version": 3}

        with pytest.raises(cute.CuteError, match="lies on a GPU.*in a kernel"):
            ran(lambda t: t[0], from_dlpack(OnGpu()))

    @pytest.mark.parametrize("act", [
        lambda: cute.arch.thread_idx(), lambda: cute.arch.sync_threads(), lambda: cute.arch.lane_idx(),
        lambda: cute.utils.SmemAllocator().allocate(16), lambda: cute.arch.elect_one(),
        lambda: cute.arch.dynamic_smem_size(),
    ])  # fmt: skip
    def test_what_needs_threads(self, act):
        with pytest.raises(cute.CuteError, match="runs on the CPU, where there are no threads"):
            ran(act)

    def test_outside_of_a_host_function(self):
        t = from_dlpack(np.zeros(4, np.float32))
        with pytest.raises(cute.CuteError, match=r"inside a kernel or a @cute.jit function"):
            t[0]
        with pytest.raises(ZeroDivisionError):
            ran(lambda t: 1 // 0, t)
        with pytest.raises(cute.CuteError, match="inside a kernel"):
            t[0]


class TestCompiling:
    def test_compile_leaves_memory_and_prints_nothing(self, capsys):
        x = np.arange(4, dtype=np.float32)
        seen = []

        @cute.jit
        def host(t):
            t.fill(5)
            seen.append(float(t[1]))
            cute.printf("said {}", t[0])
            cute.print_tensor(t)

        made = cute.compile(host, from_dlpack(x), arch="sm_90a")
        assert seen == [5.0] and x.tolist() == [0, 1, 2, 3]
        assert capsys.readouterr().out == ""
        made(from_dlpack(x))
        assert x.tolist() == [5] * 4
        assert capsys.readouterr().out.startswith("said 5.000000\n")

    def test_compile_with_what_stands_for_a_tensor(self):
        @cute.jit
        def host(t):
            t[1] = t[0] + 3
            assert cute.size(t) == 4

        made = cute.compile(host, make_fake_tensor(cute.Float32, (4,), (1,)), arch="sm_90a")
        x = np.zeros(4, np.float32)
        made(from_dlpack(x))
        assert x.tolist() == [0, 3, 0, 0]


def test_kernels_see_what_the_host_wrote():
    @cute.kernel
    def double(t):
        t[cute.arch.thread_idx()[0]] = t[cute.arch.thread_idx()[0]] * 2

    @cute.jit
    def host(t):
        for i in range(4):
            t[i] = i + 1
        double(t).launch(grid=1, block=4)
        t[3] = t[3] + t[0]

    x = np.zeros(4, np.float32)
    cute.simulate(host)(from_dlpack(x))
    assert x.tolist() == [2, 4, 6, 10]


class TestLayoutsOfFunctions:
    def test_a_layout_of_a_function(self):
        def inner(c):
            x, y = c
            return x, y + 1

        lay = cute.make_composed_layout(inner, (1, 0), cute.make_identity_layout((8, 4)))
        assert [lay(i) for i in (0, 9)] == [(1, 1), (2, 2)]
        assert cute.size(lay) == 32 and str(lay).startswith("inner o (1,0) o ")

    def test_it_reads_a_tensor_anew_each_time(self):
        index, data = np.int32([3, 1, 2, 0]), np.float32([0, 10, 20, 30])

        def gather(index, data):
            t = cute.make_tensor(data.iterator, cute.make_composed_layout(lambda c: index[c], 0, cute.make_layout(4)))
            first = [float(t[i]) for i in range(4)]
            index[0] = 2
            t[1] = 5
            return first, float(t[0]), [float(x.value) for x in (t.load()[i] for i in range(4))]

        first, changed, whole = ran(gather, from_dlpack(index), from_dlpack(data))
        assert first == [30, 10, 20, 0] and changed == 20 and whole == [20, 5, 20, 0]
        assert data[1] == 5

    def test_kernels_take_none(self):
        lay = cute.make_composed_layout(lambda c: c, 0, cute.make_layout(4))

        @cute.kernel
        def kernel(out, lay):
            out[0] = lay(0)

        for given in (lay, (1, lay), cute.make_tensor(from_dlpack(np.zeros(4, np.int32)).iterator, lay)):
            with pytest.raises(cute.CuteError, match="is the host's"):
                cute.simulate(kernel)[1, 1](np.zeros(1, np.int32), given)
            with pytest.raises(cute.CuteError, match="is the host's"):
                cute.compile(kernel, np.zeros(1, np.int32), given, arch="sm_90a")


def test_layouts_whose_numbers_the_host_knows_compose():
    def compose():
        number = cute.Int32
        a = cute.make_layout((number(10), number(2)), stride=(number(16), number(4)))
        b = cute.make_layout((number(5), number(4)), stride=(number(1), number(5)))
        return cute.composition(a, b)

    a, b = cute.make_layout((10, 2), stride=(16, 4)), cute.make_layout((5, 4), stride=(1, 5))
    made = ran(compose)
    assert [int(made(i)) for i in range(20)] == [a(b(i)) for i in range(20)]
    with pytest.raises(cute.CuteError, match=re.escape("known only at run time")):
        compose()
