# SPDX-License-Identifier: Apache-2.0
"""Conversion of each element type to each, on values at all edges: the simulator, the host and compiled code alike.

The reference looks a number up among all numbers of the target type, in exact arithmetic.
"""

from __future__ import annotations

import bisect
import functools
import math
from fractions import Fraction

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import dtypes
from numba_cute.runtime import from_dlpack, pack, unpack
from numba_cute.seam import traced

COUNT, THREADS = 8, 24
TYPES = tuple(d for d in dtypes.ALL if d is not dtypes.TFloat32)
INFINITE = (dtypes.Float16, dtypes.BFloat16, dtypes.Float32, dtypes.Float64)
NAMES = {"ids": lambda d: d.name}


# ------------------------------------------------------------------ what is right


@functools.cache
def positive(dtype):
    """All finite numbers of a small type that are not negative, the bits of each being its place."""
    bits = np.arange(1 << (dtype.width - 1), dtype=np.uint16 if dtype.width == 16 else np.uint8)
    with np.errstate(invalid="ignore"):
        values = bits.view(dtype.numpy).astype(np.float64)
    return [float(v) for v in values[np.isfinite(values)]]


def nearest(x, dtype):
    """The magnitude of a small type nearest to the fraction x >= 0, ties to even; inf or the largest beyond."""
    known = positive(dtype)
    step = Fraction(known[-1]) - Fraction(known[-2])
    if x >= Fraction(known[-1]) + step / 2:
        return math.inf if dtype in INFINITE else known[-1]
    i = bisect.bisect_right(known, x)
    if i == len(known):
        return known[-1]
    below, above = Fraction(known[i - 1]), Fraction(known[i])
    low = x - below < above - x or (x - below == above - x and (i - 1) % 2 == 0)
    return known[i - 1] if low else known[i]


def in_float32(x):
    """A fraction as Float32, to nearest even."""
    if abs(x) >= Fraction(2) ** 128 - Fraction(2) ** 103:
        return math.copysign(math.inf, x)
    guess = np.float32(float(x))
    near = [float(np.nextafter(guess, np.float32(s) * np.float32(np.inf))) for s in (-1, 1)] + [float(guess)]
    near = [n for n in near if math.isfinite(n)]
    return min(near, key=lambda n: (abs(Fraction(n) - x), int(np.float32(n).view(np.uint32)) & 1))


def reference(v, dtype):
    """The number v (a Python int or float) as `dtype` has it."""
    nan = isinstance(v, float) and math.isnan(v)
    if dtype.kind == "bool":
        return nan or v != 0
    if dtype.is_integer:
        low = -(1 << (dtype.width - 1)) if dtype.signed else 0
        high = low + (1 << dtype.width) - 1
        if isinstance(v, int):
            return (v - low) % (1 << dtype.width) + low
        return 0 if nan else low if v <= low else high if v >= high else math.trunc(v)
    if nan:
        return math.inf if dtype.width < 8 else v  # the types below 8 bits have no NaN: see `expected`
    if dtype is dtypes.Float64:
        return float(v)
    if dtype is dtypes.Float8E8M0FNU:
        x = abs(v)
        if x == 0 or x == math.inf:
            return 2.0 ** (127 if x else -127)
        mantissa, power = math.frexp(x) if isinstance(v, float) else (1, (x - 1).bit_length())
        return 2.0 ** min(max(power - (mantissa == 0.5), -127), 127)
    sign = math.copysign(1.0, v)
    if math.isinf(v) if isinstance(v, float) else False:
        return v if dtype in INFINITE else sign * positive(dtype)[-1]
    if dtype is dtypes.Float32:
        return in_float32(Fraction(v)) if v else v
    return sign * nearest(abs(Fraction(v)), dtype)


@functools.cache
def case(src):
    """Elements of a type, and what each type makes of them."""
    a = edges(src, np.random.default_rng([*src.name.encode()]))
    values = numbers(a)
    return a, values, {d: expected(values, d) if d is not src else a for d in TYPES}


def expected(values, dtype):
    out = [reference(v, dtype) for v in values]
    if dtype.is_float and dtype.width < 8:
        out = [positive(dtype)[-1] if v == math.inf else v for v in out]
    if dtype.is_integer and dtype.width >= 8 or dtype.kind == "bool":
        return np.array(out, dtype.numpy)
    return np.array(out, np.int8 if dtype.is_integer else np.float64).astype(dtype.numpy)


# ------------------------------------------------------------------ what is converted


def edges(dtype, rng):
    """COUNT * THREADS elements of a type: all of a small one, or its edges and those of the types below, and some."""
    n = COUNT * THREADS
    if dtype.width <= 8 and dtype.kind != "bool":
        raw = rng.permutation(1 << dtype.width).astype(np.uint8)
        return np.resize(raw, n).view(dtype.numpy)
    if dtype.kind == "bool":
        return rng.integers(0, 2, n).astype(np.bool_)
    if dtype.is_integer:
        low = -(1 << (dtype.width - 1)) if dtype.signed else 0
        high = low + (1 << dtype.width) - 1
        some = {low, low + 1, high, high - 1, 0, 1, 2, 5, 6, 7, 8, 15, 16, 127, 128, 129, 255, 256, 257, 448, 464, 465}
        for p in range(8, dtype.width):
            for d in (0, 1, -1, 1 << p >> 8, (1 << p >> 8) + 1, (1 << p >> 8) - 1, 1 << p >> 9, (1 << p >> 9) + 1):
                some.add((1 << p) + d)
        some = [v for v in some if low <= v <= high] + [-v for v in some if low <= -v <= high]
        some = rng.permutation(np.array(some, dtype.numpy))[: n - 16]
        more = rng.integers(low, high, n - len(some), dtype.numpy, endpoint=True)
        return np.concatenate([some, more])
    special = [0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.5, 6.0, 7.0, 5.0, -5.5, 0.25]
    special += [127.5, 128.0, -128.5, -129.0, 255.5, 256.0, 448.0, 464.0, 465.0, 57344.0, 61440.0, 65504.0, 65519.0]
    special += [65520.0, 2.0**31 - 128, 2.0**31, -(2.0**31), 2.0**32, 2.0**63, -(2.0**63), 2.0**64, 2.0**65, 1e-45]
    special += [2.0**-24, 2.0**-25, 3 * 2.0**-25, 2.0**-126, 2.0**-127, 3 * 2.0**-128, 2.0**-133, 2.0**-134, -300.7]
    with np.errstate(over="ignore"):
        first = np.array(special, np.float64).astype(dtype.numpy)
        ties = [ties_of(d, rng, dtype, 10) for d in dtypes.ALL if d.is_float and d.width < min(dtype.width, 32)]
        ties.append(rng.standard_normal(n).astype(dtype.numpy))
    return np.concatenate([first, *ties])[:n]


def ties_of(narrow, rng, dtype, count):
    """Half-way between numbers of a narrower type, and the next numbers of `dtype` beside that."""
    known = positive(narrow)
    at = rng.integers(0, len(known) - 1, count)
    middle = np.array([(known[i] + known[i + 1]) / 2 for i in at]) * rng.choice([-1, 1], count)
    exact = middle.astype(dtype.numpy)
    if dtype.width < 32:
        return exact
    up, down = np.nextafter(exact, exact.dtype.type(np.inf)), np.nextafter(exact, exact.dtype.type(0))
    return np.concatenate([exact[:4], up[4:7], down[7:]])


def numbers(a):
    """Python numbers; exact."""
    return [int(v) if dtypes.from_numpy(a.dtype).is_integer else bool(v) if a.dtype == bool else float(v) for v in a]


def same(got, want):
    """Element by element, bit by bit; NaN is NaN."""
    bits = f"u{want.dtype.itemsize}"
    floats = dtypes.from_numpy(want.dtype).is_float
    nan = np.isnan(want.astype(np.float64)) if floats else np.zeros(want.shape, bool)
    both = nan & np.isnan(got.astype(np.float64)) if floats else nan
    return both | (got.view(bits) == want.view(bits))


# ------------------------------------------------------------------ the tests


@traced
def convert(x, row, targets):
    for t in targets:
        t[row, None].store(x.to(t.element_type))


@cuda.jit
def all_types(a, targets):
    i, _, _ = cute.arch.thread_idx()
    convert(a[i, None].load(), i, targets)


def tensor(place, array, dtype):
    t = from_dlpack(place(array))
    return cute.recast_tensor(t, dtype) if in_bytes(dtype) else t


def stored(array, dtype):
    if dtype.width < 8:
        return pack(array)
    return array.view(np.uint8) if in_bytes(dtype) else array


def read(held, dtype):
    """The other way, as one row."""
    if dtype.width < 8:
        return unpack(held, dtype).reshape(-1)
    return held.view(dtype.numpy).reshape(-1)


def in_bytes(dtype):
    """Whether arrays of these elements are made of bytes: other libraries do not have them."""
    return dtype.width < 8 or dtype is dtypes.Float8E8M0FNU


@pytest.mark.parametrize("src", TYPES, **NAMES)
def test_each_type_to_each(run, src):
    a, values, wanted = case(src)
    held = stored(a.reshape(THREADS, COUNT), src)
    outs = [stored(np.zeros((THREADS, COUNT), d.numpy), d) for d in TYPES]

    def check():
        wrong = []
        for out, dtype in zip(outs, TYPES):
            got, want = read(out, dtype), wanted[dtype]
            for i in np.flatnonzero(~same(got, want))[:3]:
                wrong.append(f"{src}({values[i]!r}) to {dtype}: got {got[i]!r}, want {want[i]!r}")
        assert not wrong, "\n".join(wrong)

    def source(place):
        return tensor(place, held, src)

    def targets(place):
        return tuple(tensor(place, out, d) for out, d in zip(outs, TYPES))

    run(all_types, 1, THREADS, [source, targets], outputs=outs, check=check)


@pytest.mark.parametrize("src", TYPES, **NAMES)
def test_the_host_converts_alike(src):
    a, values, wanted = case(src)
    for dtype in TYPES:
        if dtype is not src:
            assert same(dtypes.converted(a, dtype), wanted[dtype]).all(), (src, dtype)
            few = np.array([dtype(v).value for v in values[:8]]).astype(np.float64)
            np.testing.assert_array_equal(few, wanted[dtype][:8].astype(np.float64), err_msg=f"{src} {dtype}")


SMALL = tuple(d for d in TYPES if d.is_float and d.width <= 8)


@traced
def there_and_back(x, i, narrow, wide):
    for k, t in enumerate(narrow):
        t[i, None].store(x.to(t.element_type))
        wide[i, None, k].store(t[i, None].load().to(cute.Float32))


@cuda.jit
def small_floats(a, narrow, wide):
    i, _, _ = cute.arch.thread_idx()
    there_and_back(a[i, None].load(), i, narrow, wide)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a", "sm_120a"])
def test_every_target_converts_small_floats(arch):
    def fake(dtype, more=()):
        return cute.runtime.make_fake_tensor(dtype, (4, 8, *more), (8, 1, *(32 for _ in more)), assumed_align=8)

    args = (fake(cute.Float32), tuple(fake(d) for d in SMALL), fake(cute.Float32, (len(SMALL),)))
    ptx = cute.compile(small_floats, args, arch=arch).ptx
    least = {"e4m3": 89, "e5m2": 89, "e2m1": 100, "e2m3": 100, "e3m2": 100}
    for d in SMALL:
        has = int(arch.strip("sm_a")) >= least.get(d.ptx, 1000)
        assert (f"cvt.rn.satfinite.{d.ptx}x2.f32" in ptx) == (f"cvt.rn.f16x2.{d.ptx}x2" in ptx) == has, d
