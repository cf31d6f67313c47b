# SPDX-License-Identifier: Apache-2.0
"""What is promised to divide run-time values: carried through the algebra, used by copies, checked where it can be."""

import re
from contextvars import ContextVar

import ml_dtypes
import numpy as np
import pytest
from numba import cuda
from numba.cuda.typing.typeof import Purpose, typeof

import numba_cute as cute
from numba_cute import seam
from numba_cute.compiler.host import arguments
from numba_cute.dtypes import Scalar
from numba_cute.runtime import from_dlpack, make_fake_compact_tensor, make_fake_tensor
from numba_cute.seam import traced


@cuda.jit
def copy_rows(src, dst):
    """Thread i copies row i, eight elements at a time."""
    i, _, _ = cute.arch.thread_idx()
    a, b = cute.zipped_divide(src[i, None], (8,)), cute.zipped_divide(dst[i, None], (8,))
    for j in range(a.shape[1][0]):
        cute.autovec_copy(a[None, j], b[None, j])


def accesses(ptx):
    return sorted(set(re.findall(r"(?:ld|st)\.global\S*", ptx)))


def rows(divisibility, dtype=cute.Float16):
    """A fake row-major tensor whose rows are multiples of `divisibility` elements."""
    n = cute.sym_int(divisibility=divisibility)
    return make_fake_compact_tensor(dtype, (cute.sym_int(), n), stride_order=(1, 0), assumed_align=16)


@pytest.mark.parametrize(
    "divisibility, dtype, want",
    [
        (8, cute.Float16, "v4.u32"), (16, cute.BFloat16, "v4.u32"), (4, cute.Float16, "v2.u32"),
        (2, cute.Float16, "u32"), (6, cute.Float16, "u32"), (1, cute.Float16, "u16"),
        (16, cute.Uint8, "v2.u32"), (4, cute.Float32, "v4.f32"), (2, cute.Float64, "v2.f64"),
    ],
)  # fmt: skip
def test_a_row_stride_of_known_divisor_gives_accesses_as_wide_as_it_proves(divisibility, dtype, want):
    t = rows(divisibility, dtype)
    ptx = cute.compile(copy_rows, (t, t)).ptx
    assert accesses(ptx) == [f"ld.global.{want}", f"st.global.{want}"]


def aligned(rng, shape, dtype):
    raw = np.zeros(int(np.prod(shape)) * np.dtype(dtype).itemsize + 16, np.uint8)
    start = -raw.ctypes.data % 16
    a = raw[start : start + raw.size - 16].view(dtype).reshape(shape)
    a[...] = rng.standard_normal(shape).astype(dtype)
    return a


@pytest.mark.parametrize("shape", [(5, 24), (3, 64)])
def test_a_marked_tensor_is_copied(run, rng, shape):
    a, b = aligned(rng, shape, np.float16), aligned(rng, shape, np.float16)

    def argument(x):
        return lambda place: from_dlpack(place(x), assumed_align=16).mark_compact_shape_dynamic(1, divisibility=8)

    def check():
        np.testing.assert_array_equal(b, a)

    run(copy_rows, 1, shape[0], [argument(a), argument(b)], outputs=[b], check=check)


def test_marking_promises_the_strides_that_the_extent_decides():
    t = from_dlpack(np.zeros((4, 6, 32), np.float32)).mark_compact_shape_dynamic(2, divisibility=8)
    assert repr(t.layout) == "(4,6,?{div=8}):(?{div=48},?{div=8},1)"
    t = t.mark_compact_shape_dynamic(1, divisibility=3)
    assert repr(t.layout) == "(4,?{div=3},?{div=8}):(?{div=24},?{div=8},1)"


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: from_dlpack(np.zeros((4, 20), np.float32)).mark_compact_shape_dynamic(1, divisibility=8), "extent 20"),
        (lambda: cute.assume(cute.Int32(20), divby=8), "Int32(20) is not a multiple of 8"),
        (lambda: cute.assume(20, 8), "src is 20, which is not a multiple of divby=8"),
        (lambda: cute.assume(cute.Int32(8), 0), "divby 0"),
        (lambda: cute.assume(2.0, 2), "src 2.0 is not an integer"),
        (lambda: cute.assume(cute.Float32(2), 2), "Float32(2.0) is not an integer"),
        (lambda: cute.SymInt(16), "width 16"),
        (lambda: cute.SymInt(divisibility=0), "divisibility 0"),
    ],
)
def test_a_promise_that_does_not_hold_is_refused_before_any_launch(make, message):
    with pytest.raises(cute.CuteError, match=re.escape(message)):
        make()


@cuda.jit
def assumes(n, out):
    m = cute.assume(n, divby=8)
    out[0] = m + 1


def test_the_simulator_checks_a_kernels_promise():
    out = np.zeros(1, np.int32)
    cute.simulate(assumes)[1, 1](24, out)
    assert out[0] == 25
    with pytest.raises(cute.CuteError, match="src is 20, which is not a multiple of divby=8"):
        cute.simulate(assumes)[1, 1](20, out)


@cuda.jit
def strided(pointer, ld, out):
    i, _, _ = cute.arch.thread_idx()
    n = cute.assume(ld, divby=4)
    t = cute.make_tensor(pointer, cute.make_layout((64, 4), stride=(n, 1)))
    regs = cute.make_rmem_tensor(4, cute.Float32)
    cute.autovec_copy(t[i, None], regs)
    out[i] = (regs[0] + regs[1]) + (regs[2] + regs[3])


def test_a_kernel_may_assume_of_its_own_argument(run, rng):
    a, out = aligned(rng, (4, 12), np.float32), np.zeros(4, np.float32)
    a[...] = rng.integers(-99, 99, a.shape)

    def pointer(place):
        return from_dlpack(place(a), assumed_align=16).iterator

    def check():
        x = a[:, :4]
        np.testing.assert_array_equal(out, x.sum(axis=1))

    def simulated_too(place):
        place(a)
        return np.int64(12)

    if run.name == "simulator":
        source = from_dlpack(a, assumed_align=16)  # a bare pointer says not how far its memory reaches
        cute.simulate(through_tensor)[1, 4](source, 12, out)
        check()
        return
    run(strided, 1, 4, [pointer, simulated_too, out], outputs=[out], check=check)


@cuda.jit
def through_tensor(source, ld, out):
    i, _, _ = cute.arch.thread_idx()
    n = cute.assume(ld, divby=4)
    t = cute.make_tensor(source.iterator, cute.make_layout((64, 4), stride=(n, 1)))
    regs = cute.make_rmem_tensor(4, cute.Float32)
    cute.autovec_copy(t[i, None], regs)
    out[i] = (regs[0] + regs[1]) + (regs[2] + regs[3])


def test_what_a_kernel_assumes_widens_its_accesses():
    p = make_fake_tensor(cute.Float32, (1024,), (1,), assumed_align=16).iterator
    out = make_fake_tensor(cute.Float32, (64,), (1,))
    ptx = cute.compile(strided, (p, np.int64(12), out)).ptx
    assert "ld.global.v4.f32" in ptx and not re.search(r"ld\.global\.f32", ptx)


@cuda.jit
def ordinary(n, a, out):
    """A promised number is an ordinary one to Numba."""
    m = cute.assume(n, divby=8)
    total = 0
    for i in range(m):
        total += a[i] * (m // 8)
    k = m
    while k > 3:
        k = k - 3
    out[0] = total + min(m, 5) + (1 if m > 4 else 0)
    out[m - 8] = m
    out[1] = cute.size(cute.make_layout((m, 2))) + k
    out[2] = m * 2.5


def test_a_promised_number_is_an_ordinary_one_in_the_kernel(run):
    a, out = np.arange(16, dtype=np.int64), np.zeros(16, np.float64)

    def check():
        assert out[0] == 120 * 2 + 5 + 1 and out[8] == 16 and out[1] == 33 and out[2] == 40

    run(ordinary, 1, 1, [np.int64(16), a, out], inouts=[out], check=check)


FOUND = {}
NOTED = ContextVar("NOTED", default=FOUND)  # what a traced function may change


@traced
def note(name, x):
    NOTED.get().setdefault(name, set()).add(cute.get_divisibility(x))


@cuda.jit
def algebra(n):
    m = cute.assume(n, divby=24)
    note("assumed", m)
    note("size", cute.size((m, 4)))
    note("quotient", cute.ceil_div(m, 8))
    note("offset", cute.crd2idx((n, 1), cute.make_layout((8, 4), stride=(m, 48))))
    note("stride", cute.make_layout((m, 4)).stride[1])
    note("rounded", cute.round_up(n, 16))
    note("both", cute.assume(m, divby=16))
    note("wide", cute.Int64(m))
    cute.composition(cute.make_layout((8, 16), stride=(16, 1)), cute.make_layout(m))


def test_divisors_follow_the_algebra():
    FOUND.clear()
    cute.compile(algebra, (np.int64(0),))
    want = {"assumed": 24, "size": 96, "quotient": 3, "offset": 24, "stride": 24, "rounded": 16, "both": 48, "wide": 24}
    assert {name: {d} for name, d in want.items()} == FOUND, "typing and lowering agree"


@cute.struct
class Holder:
    lay: object


@cuda.jit
def set_to_another(n, out):
    held = Holder(cute.make_layout((cute.assume(n, divby=8), 4)))
    if out[0] == 0:
        held.lay = cute.make_layout((n - 3, 4))
    note("set", held.lay.shape[0])


def test_of_a_field_that_is_set_nothing_is_promised():
    FOUND.clear()
    cute.compile(set_to_another, (np.int64(0), np.zeros(2, np.int64)))
    assert {"set": {1}} == FOUND


def test_divisor_rules_hold_for_all_small_numbers():
    ops = {
        "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "and_": lambda a, b: a & b,
        "or_": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "udiv": lambda a, b: a // b, "urem": lambda a, b: a % b,
        "shl": lambda a, b: a << b,
    }  # fmt: skip
    for d in (1, 2, 3, 4, 6, 8, 12):
        for other in (1, 2, 3, 4, 6, 8, cute.Int32(12).assumed(4)):
            for k in range(5):
                for name, op in ops.items():
                    a = cute.Int32(d * k).assumed(d)
                    value = op(d * k, int(other))
                    assert value % seam.divisor_of(name, a, other) == 0, (name, d, k, other)


def test_a_loop_joins_what_is_known():
    @cuda.jit
    def kernel(t, n, out):
        part = t[None, 0]
        for j in range(1, n):
            part = t[None, j]
        cute.autovec_copy(part, out)

    column = make_fake_tensor(cute.Float32, (4, 64), (1, cute.sym_int64(4)), assumed_align=16)
    ptx = cute.compile(kernel, (column, np.int64(2), make_fake_tensor(cute.Float32, (4,), (1,), assumed_align=16))).ptx
    assert "ld.global.v4" in ptx and "st.global.v4" in ptx


def test_one_kernel_serves_all_shapes_that_keep_the_promise():
    def kind(shape, divisibility):
        t = from_dlpack(np.zeros(shape, ml_dtypes.bfloat16), assumed_align=2)
        return typeof(t.mark_compact_shape_dynamic(1, divisibility=divisibility), Purpose.argument)

    assert kind((4, 16), 8) == kind((4, 32), 8) != kind((4, 16), 1)


@cuda.jit
def takes(n, out):
    out[0] = n


@pytest.mark.parametrize(
    "number, message",
    [
        (Scalar(cute.Int32, 20, 8), "Int32(20) is not a multiple of 8, as it was promised to be"),
        (cute.sym_int(divisibility=8), "?{div=8} has no value"),
    ],
)
def test_a_number_that_breaks_its_promise_is_refused_at_the_launch(number, message):
    with pytest.raises(cute.CuteError, match=re.escape(message)):
        cute.simulate(takes)[1, 1](number, np.zeros(1, np.int32))
    with pytest.raises(cute.CuteError, match=re.escape(message)):
        arguments.scalar_argument(typeof(number, Purpose.argument), number)


class OnDevice:
    """An array that says that it lies on a GPU."""

    def __init__(self, array):
        self.__cuda_array_interface__ = {**array.__array_interface__, "version": 3}


def test_a_kernel_compiled_for_a_promise_checks_each_argument():
    promised = typeof(rows(8), Purpose.argument)

    def packed(columns, mark=False):
        t = from_dlpack(OnDevice(np.zeros((4, columns), np.float16)), assumed_align=16)
        return arguments.value_arguments(promised, t.mark_compact_shape_dynamic(1) if mark else t)

    assert [int(x.value) for x in packed(24)][-3:] == [4, 24, 24], "what is static fits a kernel for run-time values"
    with pytest.raises(cute.CuteError, match="20 is not a multiple of 8, as the kernel was compiled for"):
        packed(20)
    with pytest.raises(cute.CuteError, match="20.* is not a multiple of 8, as the kernel was compiled for"):
        packed(20, mark=True)


def test_a_promise_of_a_symbol_is_kept():
    n = cute.assume(cute.sym_int64(divisibility=4, symbol="n"), 6)
    assert (repr(n), n.divisibility, n.width) == ("n{div=12}", 12, 64)
