# SPDX-License-Identifier: Apache-2.0
"""Names that the CuTe DSL has at its top: leaves of tuples, division by a prepared number, rounding modes."""

from fractions import Fraction

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import nvgpu
from numba_cute.runtime import from_dlpack
from numba_cute.seam import traced

SHAPE = (4, (8, (2, 4)), 16)


def test_leaves_are_found_by_value_and_by_predicate():
    assert cute.find(SHAPE, 4) == 0 and cute.find(SHAPE, 2) == (1, 1, 0) and cute.find(SHAPE, 3) is None
    assert cute.find_if(SHAPE, lambda x, i: x > 4) == (1, 0)
    assert cute.find_if(SHAPE, lambda x, i: i == 2) == 2
    assert cute.find((cute.Int32(3), 3), 3) == 1, "what is known only at run time is not looked at"
    with pytest.raises(cute.CuteError, match="must be a static integer"):
        cute.find(SHAPE, cute.Int32(4))


@pytest.mark.parametrize(
    "value, integer, leaf, tuple_",
    [(3, True, True, True), (np.int32(3), True, True, True), (cute.Int64(3), True, True, True),
     (2.0, False, False, False), (True, False, False, False), (cute.Float32(2), False, False, False),
     (None, False, True, False), (cute.E(0), False, True, False), (SHAPE, False, False, True),
     ((1, None), False, False, False), ((), False, False, True)],
)  # fmt: skip
def test_kinds_of_leaves(value, integer, leaf, tuple_):
    assert (cute.is_integer(value), cute.is_valid_leaf(value), cute.is_int_tuple(value)) == (integer, leaf, tuple_)


def test_leaves_and_their_transforms():
    assert cute.get_leaves(SHAPE) == (4, 8, 2, 4, 16)
    assert cute.get_leaves(cute.make_layout((4, (2, 2)))) == (4, 2, 2, 1, 4, 8)
    assert cute.transform_apply((1, 2), (3, 4), f=lambda a, b: a * b, g=lambda *x: sum(x)) == 11
    assert cute.transform_apply(2, 3, f=lambda a, b: a * b, g=lambda x: -x) == -6
    assert cute.has_scaled_basis((1, (cute.E(1), 0))) and not cute.has_scaled_basis(SHAPE)
    assert cute.pretty_str((4, (2, None))) == "(4,(2,_))" and cute.pretty_str(cute.make_layout(4)) == "4:1"


@cuda.jit
def looks(out, n):
    out[0] = cute.find_if((n, (8, 2)), lambda_of)[1]
    out[1] = cute.size(cute.get_leaves(cute.make_layout((n, 4))))
    out[2] = 1 if cute.is_integer(n) else 0
    out[3] = cute.static(5)


@traced
def lambda_of(x, i):
    return cute.is_static(x) and x == 2


def test_tuples_are_looked_through_in_kernels():
    out = np.zeros(4, np.int64)
    cute.compile(looks, (out, np.int64(3)))


def test_an_atom_of_either_kind():
    assert isinstance(cute.make_atom(nvgpu.CopyUniversalOp(), cute.Float32), cute.CopyAtom)
    assert isinstance(cute.make_atom(nvgpu.MmaUniversalOp(cute.Float32)), cute.Atom)
    with pytest.raises(cute.CuteError, match="copy_internal_type"):
        cute.make_atom(nvgpu.CopyUniversalOp())


# ------------------------------------------------------------------ division by a prepared number


@cuda.jit
def divided(d, out):
    i, _, _ = cute.arch.thread_idx()
    n = i * 7919
    q, r = divmod(n, d)
    out[0, i] = q
    out[1, i] = r
    out[2, i] = n // d
    out[3, i] = n % d
    q, r = d.divmod(n)
    out[4, i] = q * 1000 + r


@pytest.mark.parametrize("divisor", [1, 3, 7, 64, 1000, 2**31 - 1])
@pytest.mark.parametrize("wrap", [cute.Int32, int], ids=["run-time", "static"])
def test_a_prepared_divisor_divides_as_the_operators_do(run, divisor, wrap):
    out = np.zeros((5, 64), np.int32)

    def check():
        n = np.arange(64) * 7919
        q, r = n // divisor, n % divisor
        np.testing.assert_array_equal(out, np.array([q, r, q, r, (q * 1000 + r).astype(np.int32)]))

    run(divided, 1, 64, [cute.fast_divmod_create_divisor(wrap(divisor)), out], outputs=[out], check=check)


def test_a_prepared_divisor_divides_on_the_host_and_needs_no_division_in_a_kernel():
    d = cute.fast_divmod_create_divisor_v2(cute.Int32(7))
    assert isinstance(d, cute.FastDivmodDivisorV2)
    assert divmod(100, d) == (14, 2) and 100 // d == 14 and 100 % d == 2
    ptx = cute.compile(divided, (d, np.zeros((5, 64), np.int32))).ptx
    assert "div." not in ptx and "rem." not in ptx


# ------------------------------------------------------------------ math


MODES = {"rn": cute.RoundingMode.NEAREST_EVEN, "rz": cute.RoundingMode.ZERO, "rp": cute.RoundingMode.UP,
         "rm": cute.RoundingMode.DOWN}  # fmt: skip
EXACT = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
}  # fmt: skip


def rounded(x, mode, dtype):
    """A fraction in float32 or float64, as the mode has it."""
    near = dtype(float(x))
    options = sorted({float(np.nextafter(near, dtype(-np.inf))), float(near), float(np.nextafter(near, dtype(np.inf)))})
    below = max(o for o in options if Fraction(o) <= x)
    above = min(o for o in options if Fraction(o) >= x)
    if mode == "rn":
        return min((below, above), key=lambda o: (abs(Fraction(o) - x), int(dtype(o).view(f"u{dtype().itemsize}")) & 1))
    return below if mode == "rm" or mode == "rz" and x > 0 else above


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("mode", MODES)
def test_rounding_modes(run, rng, mode, dtype):
    a, b = rng.standard_normal((2, 4, 8)).astype(dtype)
    a[0, 0], b[0, 0] = 1, 2.0**-30 if dtype == np.float32 else 2.0**-60
    outs = np.zeros((6, 4, 8), dtype)
    how = MODES[mode]

    @cuda.jit
    def kernel(a, b, out):
        i, _, _ = cute.arch.thread_idx()
        x, y = a[i, None].load(), b[i, None].load()
        out[0, i, None].store(cute.add(x, y, rounding=how))
        out[1, i, None].store(cute.sub(x, y, rounding=how))
        out[2, i, None].store(cute.mul(x, y, rounding=how))
        out[3, i, None].store(cute.div(x, y, rounding=how))
        out[4, i, None].store(cute.fma(x, y, x, rounding=how))
        out[5, i, None].store(cute.sqrt(x * x, rounding=how))

    def check():
        for k, (name, f) in enumerate(EXACT.items()):
            want = [rounded(f(Fraction(float(x)), Fraction(float(y))), mode, dtype) for x, y in zip(a.flat, b.flat)]
            np.testing.assert_array_equal(outs[k].reshape(-1), np.array(want, dtype), err_msg=name)
        fma = [Fraction(float(x)) * Fraction(float(y)) + Fraction(float(x)) for x, y in zip(a.flat, b.flat)]
        np.testing.assert_array_equal(outs[4].reshape(-1), np.array([rounded(x, mode, dtype) for x in fma], dtype))
        squares, roots = (a * a).reshape(-1), outs[5].reshape(-1)
        for s, r in zip(squares.tolist(), roots):
            down, up = Fraction(float(r)) ** 2 <= Fraction(s), Fraction(float(r)) ** 2 >= Fraction(s)
            assert {"rz": down, "rm": down, "rp": up, "rn": True}[mode], (s, r)

    run(kernel, 1, 4, [lambda place, x=x: from_dlpack(place(x)) for x in (a, b, outs)], outputs=[outs], check=check)


def test_rounding_modes_are_of_wide_floats():
    @cuda.jit
    def kernel(a):
        a.store(cute.add(a.load(), a.load(), rounding=cute.RoundingMode.UP))

    t = cute.runtime.make_fake_tensor(cute.Float16, (8,), (1,))
    with pytest.raises(cute.CuteError, match="only Float32 and Float64"):
        cute.compile(kernel, (t,))


def test_powers_magnitudes_and_kinds(run):
    a = np.array([-2.5, 3.0, 0.5, np.nan, np.inf, 2.0**-130, 0.0, -1.0], np.float32)
    i = np.array([-3, 2, 5, 0, 1, -1, 7, 4], np.int32)
    outs = np.zeros((5, 8), np.float32)
    ints = np.zeros((3, 8), np.int32)

    @cuda.jit
    def kernel(a, i, out, ints):
        x, n = a.load(), i.load()
        out[0, None].store(cute.fpowi(x, 3))
        out[1, None].store(cute.absf(x))
        out[2, None].store(cute.max(x, 1.0, propagate_nan=True))
        out[3, None].store(cute.min(x, 1.0))
        out[4, None].store(cute.fpowi(x, 0))
        ints[0, None].store(cute.ipowi(n, 5))
        ints[1, None].store(cute.absi(n))
        ints[2, None].store(cute.isnormal(x).to(cute.Int32))

    def check():
        want = [a * a * a, np.abs(a), np.where(np.isnan(a), np.nan, np.fmax(a, 1)), np.fmin(a, 1)]
        np.testing.assert_array_equal(outs[:4], np.array(want, np.float32))
        np.testing.assert_array_equal(ints, [i**5, np.abs(i), [1, 1, 1, 0, 0, 0, 0, 1]])

    tensors = [lambda place, x=x: from_dlpack(place(x)) for x in (a, i, outs, ints)]
    run(kernel, 1, 1, tensors, outputs=[outs, ints], check=check)
