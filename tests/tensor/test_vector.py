# SPDX-License-Identifier: Apache-2.0
"""Register vectors: arithmetic, comparison, selection, shapes, reduction, conversion, against NumPy."""

import operator

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.runtime import from_dlpack
from numba_cute.seam import traced
from numba_cute.tensor.ssa import broadcast_shape, broadcast_strides, promote

from ..conftest import assert_close

F32, BF16, F16, I32, U8 = cute.Float32, cute.BFloat16, cute.Float16, cute.Int32, cute.Uint8
COUNT = 8
ADD, MUL, MAX, MIN = (getattr(cute.ReductionOp, n) for n in ("ADD", "MUL", "MAX", "MIN"))


def over(run, fn, inputs, out_dtype, want, *, rtol=0.0, atol=0.0, count=COUNT, arch="sm_90a"):
    """Run `fn` on vectors loaded from rows of `inputs`, each (threads, count), and compare the stored result."""
    traced_fn = traced(fn)
    out = np.zeros((len(inputs[0]), np.size(want) // len(inputs[0])), out_dtype)

    @cuda.jit
    def kernel(a, b, c):
        i, _, _ = cute.arch.thread_idx()
        c[i, None].store(traced_fn(a[i, None].load(), b[i, None].load()))

    a, b = inputs if len(inputs) == 2 else (inputs[0], inputs[0])
    tensors = [lambda place, x=x: from_dlpack(place(x)) for x in (a, b, out)]

    def check():
        assert_close(out, np.asarray(want).reshape(out.shape), rtol=rtol, atol=atol)

    run(kernel, 1, len(a), tensors, outputs=[out], check=check, arch=arch)


def pair(rng, dtype, low=-4.0, high=4.0):
    a, b = (rng.uniform(low, high, (4, COUNT)) for _ in range(2))
    if np.issubdtype(np.dtype(dtype), np.integer):
        return a.astype(dtype), np.where(b.astype(dtype) == 0, np.array(3, dtype), b.astype(dtype))
    return a.astype(dtype), b.astype(dtype)


ARITHMETIC = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
              "floordiv": operator.floordiv, "mod": operator.mod}  # fmt: skip


@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.float16, np.int32], ids=lambda d: d.__name__)
def test_arithmetic_of_two_vectors(run, rng, name, dtype):
    a, b = pair(rng, dtype)
    wide = np.float32 if np.dtype(dtype).itemsize < 4 else dtype
    op = ARITHMETIC[name]
    want = op(a.astype(wide), b.astype(wide))
    out = np.float32 if name == "div" and dtype is np.int32 else dtype
    over(run, lambda x, y: op(x, y), (a, b), out, want.astype(out), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, y: 2.5 - x, lambda x, y: x * 0.5, lambda x, y: 1.0 / x, lambda x, y: -x, lambda x, y: abs(x),
        lambda x, y: x**3, lambda x, y: x + y[0], lambda x, y: x[2] * y, lambda x, y: 7 // y, lambda x, y: 7 % y,
    ],
    ids=["rsub", "mul", "rdiv", "neg", "abs", "cube", "lane", "rlane", "rfloordiv", "rmod"],
)  # fmt: skip
def test_arithmetic_with_scalars_keeps_the_vectors_type(run, rng, fn):
    a, b = pair(rng, np.float32, 0.5, 4.0)
    want = np.stack([fn(x, y) for x, y in zip(a, b)])
    over(run, fn, (a, b), np.float32, want, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("fn", [
    lambda x, y: x & y, lambda x, y: x | 5, lambda x, y: x ^ y, lambda x, y: ~x, lambda x, y: x << 2,
    lambda x, y: x >> 1, lambda x, y: x % 3, lambda x, y: x // -3,
], ids=["and", "or", "xor", "not", "shl", "shr", "mod", "floordiv"])  # fmt: skip
def test_integers_and_bits(run, rng, fn):
    a, b = (rng.integers(-1000, 1000, (4, COUNT), dtype=np.int32) for _ in range(2))
    over(run, fn, (a, b), np.int32, fn(a, b))


@pytest.mark.parametrize("op", ["<", "<=", "==", "!=", ">", ">="])
def test_comparisons_choose_by_where(run, rng, op):
    compare = {"<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt,
               ">=": operator.ge}[op]  # fmt: skip
    a, b = pair(rng, np.float32)
    b[:, ::3] = a[:, ::3]
    a[0, 1] = np.nan
    want = np.where(compare(a, b), np.float32(1), b)
    over(run, lambda x, y: cute.where(compare(x, y), 1.0, y), (a, b), np.float32, want)


def test_logic_of_comparisons(run, rng):
    a, b = pair(rng, np.float32)
    want = np.where(((a > 0) & ~(b > 0)) | (a < -3), a, 0)
    over(run, lambda x, y: cute.where(((x > 0) & ~(y > 0)) | (x < -3), x, 0.0), (a, b), np.float32, want)


@pytest.mark.parametrize(
    "op, of", [(ADD, np.sum), (MUL, np.prod), (MAX, np.max), (MIN, np.min)], ids=["add", "mul", "max", "min"]
)
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.int32], ids=lambda d: d.__name__)
def test_reduction_of_all_elements(run, rng, op, of, dtype):
    (a, _), start = pair(rng, dtype, 1.0, 3.0), 2
    initial = {ADD: lambda v: v + start, MUL: lambda v: v * start, MAX: lambda v: max(v, start),
               MIN: lambda v: min(v, start)}[op]  # fmt: skip
    want = np.array([initial(of(row.astype(np.float64))) for row in a])
    rtol = 2.0**-8 if dtype is ml_dtypes.bfloat16 else 1e-6
    over(run, lambda x, y: cute.full(1, x.reduce(op, start), x.dtype), (a, a), dtype, want, rtol=rtol)


@pytest.mark.parametrize("profile, axis", [((None, 0), 0), ((0, None), 1)], ids=["rows", "columns"])
@pytest.mark.parametrize("shape", [(2, 4), (4, 2), (8, 1)], ids=str)
def test_reduction_keeps_the_modes_marked_none(run, rng, profile, axis, shape):
    a, _ = pair(rng, np.float32)
    want = np.stack([row.reshape(shape[::-1]).max(axis) for row in a])  # colexicographic: mode 0 is NumPy's last axis
    over(run, lambda x, y: x.reshape(shape).reduce(MAX, -100.0, profile), (a, a), np.float32, want)


def test_any_and_all(run, rng):
    a, _ = pair(rng, np.float32)
    a[1] = 1
    a[2] = -1

    def both(x, y):
        some, every = (cute.where(c, 1, 0) for c in (cute.any_(x > 0), cute.all_(x > 0)))
        return cute.full(1, cute.Float32(some + 2 * every), cute.Float32)

    want = np.array([(r > 0).any() + 2 * (r > 0).all() for r in a], np.float32)
    over(run, both, (a, a), np.float32, want)


def test_broadcasting_by_shape(run, rng):
    a, b = pair(rng, np.float32)
    want = np.stack([(r[:4][None, :] * s[[0, 4]][:, None]).reshape(-1) for r, s in zip(a, b)])

    def fn(x, y):
        column = x.reshape((4, 2))[None, 0]  # (4,)
        row = y.reshape((4, 2))[0, None].reshape((1, 2))
        return column * row  # (4, 2)

    over(run, fn, (a, b), np.float32, want)


def test_indexing_takes_elements_and_modes(run, rng):
    a, b = pair(rng, np.float32)
    want = np.stack([np.concatenate([r.reshape(2, 4)[:, 1], [r[0], s[7]]]) for r, s in zip(a, b)])

    def fn(x, y):
        column = x.reshape((4, 2))[1, None]
        regs = cute.make_rmem_tensor(4, cute.Float32)
        regs[0], regs[1], regs[2], regs[3] = column[0], column[1], x[0], y.reshape((4, 2))[3, 1]
        return regs.load()

    over(run, fn, (a, b), np.float32, want)


@cuda.jit
def indexed_in_a_loop(a, c):
    i, _, _ = cute.arch.thread_idx()
    v, total = a[i, None].load(), F32(0)
    for j in range(COUNT):
        total += F32(v[j]) * F32(j)
    c[i] = total


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16], ids=lambda d: d.__name__)
def test_a_loop_goes_over_a_vector_in_registers(run, rng, dtype):
    a, out = rng.integers(-8, 8, (4, COUNT)).astype(dtype), np.zeros(4, np.float32)
    tensors = [lambda place, x=x: from_dlpack(place(x)) for x in (a, out)]
    want = a.astype(np.float32) @ np.arange(COUNT, dtype=np.float32)
    run(indexed_in_a_loop, 1, 4, tensors, outputs=[out], check=lambda: assert_close(out, want))


@pytest.mark.parametrize("dtype", [cute.Float32, cute.BFloat16, cute.Int8], ids=str)
def test_an_index_of_run_time_takes_elements_and_modes(dtype):
    @cuda.jit
    def kernel(c):
        i, _, _ = cute.arch.thread_idx()
        t = cute.make_rmem_tensor((2, 4), dtype)
        for j in cute.range_constexpr(COUNT):
            t[j] = dtype(j * j)
        v = t.load()
        c[i, 0] = F32(v[2 * i + 1])
        c[i, 1] = F32(v[i % 2, i])
        c[i, 2] = F32(v[None, i][1])

    out = np.zeros((4, 3), np.float32)
    cute.simulate(kernel)[1, 4](out)
    i = np.arange(4)
    assert out.T.tolist() == [((2 * i + 1) ** 2).tolist(), ((i % 2 + 2 * i) ** 2).tolist(), ((1 + 2 * i) ** 2).tolist()]
    assert cute.compile(kernel, (out,), arch="sm_90a").resources.spill_stores == 0


@pytest.mark.parametrize("dtype, top", [(ml_dtypes.float8_e4m3fn, 448.0), (ml_dtypes.float8_e5m2, 57344.0)])
def test_eight_bit_floats_saturate(run, dtype, top):
    a = np.array([[1e6, -1e6, 447.0, 1.0625, 0, 2.0**-9, 300.0, -0.1]], np.float32)
    over(run, lambda x, y: x.to(cute.dtypes.from_numpy(dtype)), (a, a), dtype, np.clip(a, -top, top).astype(dtype))


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16, np.float16], ids=lambda d: d.__name__)
def test_scalars_of_narrow_types_are_numbers(run, rng, dtype):
    a = rng.uniform(-3, 3, (4, COUNT)).astype(dtype)
    out = np.zeros((4, COUNT), dtype)

    @cuda.jit
    def kernel(a, c):
        i, _, _ = cute.arch.thread_idx()
        for j in range(8):
            c[i, j] = cute.Float32(a[i, j]) * 2 + 1

    def check():
        assert_close(out, (a.astype(np.float32) * 2 + 1).astype(dtype))

    run(kernel, 1, 4, [lambda place, x=x: from_dlpack(place(x)) for x in (a, out)], outputs=[out], check=check)


def test_odd_counts_of_narrow_elements(run, rng):
    a = rng.uniform(-3, 3, (4, 5)).astype(ml_dtypes.bfloat16)
    over(run, lambda x, y: x + y, (a, a), ml_dtypes.bfloat16, a.astype(np.float32) * 2, count=5)


def test_bits_of_one_type_as_another(run, rng):
    a, _ = pair(rng, np.float32)
    over(run, lambda x, y: x.bitcast(cute.Uint32) ^ 0x80000000, (a, a), np.uint32, (-a).view(np.uint32))


# The rules alone, on the host


@pytest.mark.parametrize("a, b, want", [
    (F32, I32, F32), (BF16, F16, F32), (BF16, F32, F32), (I32, cute.Uint32, cute.Uint32), (cute.Int64, cute.Uint32,
     cute.Int64), (cute.Boolean, U8, U8), (I32, F16, F16), (cute.Float8E4M3FN, cute.Float8E5M2, F32),
], ids=str)  # fmt: skip
def test_types_meet_in_either_order(a, b, want):
    assert promote(a, b) == want and promote(b, a) == want


@pytest.mark.parametrize("a, b, want", [
    ((4,), (4, 3), (4, 3)), ((4, 1), (1, 3), (4, 3)), (1, ((2, 2), 3), ((2, 2), 3)), (((4, 8),), (4, 8), (4, 8)),
    ((1, 5), ((2, 2), 1), ((2, 2), 5)), (8, (8,), 8),
], ids=str)  # fmt: skip
def test_shapes_broadcast(a, b, want):
    assert broadcast_shape(a, b) == want


@pytest.mark.parametrize("a, b", [((4,), (3,)), ((2, 4), (4, 2)), ((4, 8), ((4, 8), 8))], ids=str)
def test_shapes_that_do_not_broadcast(a, b):
    with pytest.raises(cute.CuteError, match="each must be equal, or of one element"):
        broadcast_shape(a, b)


def test_repeated_modes_have_stride_0():
    assert broadcast_strides((4, 1), (4, 3)) == (1, 0) and broadcast_strides((4,), (4, (2, 3))) == (1, (0, 0))
    with pytest.raises(cute.CuteError, match=r"shape \(4, 2\) does not fit \(4, 3\)"):
        broadcast_strides((4, 2), (4, 3))


@pytest.mark.parametrize("scalar, dtype", [(cute.Float16(0.3), 16), (cute.Float32(0.3), 32), (0.3, 16)])
def test_a_typed_float_is_promoted_with_the_elements_as_a_vector_is(scalar, dtype):
    @cuda.jit
    def kernel(x, out, by):
        scaled = x.load() * by
        out[0] = scaled.dtype.width
        out[1] = scaled[0]

    x, out = np.array([1.001, 2], np.float16), np.zeros(2, np.float32)
    cute.simulate(kernel)[1, 1](from_dlpack(x), from_dlpack(out), scalar)
    by = np.float32(0.3) if dtype == 32 else np.float16(0.3)
    assert out.tolist() == [dtype, np.float32(x[0] * by)]
    assert cute.compile(kernel, from_dlpack(x), from_dlpack(out), scalar, arch="sm_80").ptx
