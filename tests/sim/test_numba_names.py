# SPDX-License-Identifier: Apache-2.0
"""What numba.cuda only declares (libdevice, half precision, cache hints, vector types), records and iteration: computed
in the simulator, or refused, but never silently nothing."""

import math
import re
from types import FunctionType

import numba
import numpy as np
import pytest
from numba import cuda
from numba.cuda import bf16, fp16, libdevice

import numba_cute as cute
from numba_cute.seam import CuteError
from numba_cute.sim import simulate
from numba_cute.sim.python.numba_functions import declared

NAMES = [n for n, f in vars(libdevice).items() if isinstance(f, FunctionType)]
UNKNOWN = {f"{n}{s}" for n in ("j0", "j1", "jn", "y0", "y1", "yn") for s in ("", "f")}
"""Bessel functions."""
SAMPLES = {"float32": np.float32(0.625), "float64": 0.625, "int32": 5, "int64": 5, "int16": np.int16(0x3900)}
PLACES = [True, False]


def run(kernel, *args, checks=True, threads=32):
    simulate(kernel, checks=checks)[1, threads](*args)
    return args[-1]


def stand_in(fn):
    return declared(fn, lambda name: getattr(np, name))


@pytest.mark.parametrize("name", NAMES)
def test_every_function_of_libdevice_is_computed_or_refused(name):
    fn = getattr(libdevice, name)
    types = re.findall(r":type \w+: (\w+)", fn.__doc__)
    args = [1 + SAMPLES[t] if name.startswith("acosh") else SAMPLES[t] for t in types]
    if name in UNKNOWN:
        with pytest.raises(CuteError, match=f"libdevice.{name}: the simulator does not know this function"):
            stand_in(fn)(*args)
        return
    found = stand_in(fn)(*args)
    wanted = re.findall(r"(?:float|int)\d+", re.search(r":rtype: (.*)", fn.__doc__)[1])
    for x in found if isinstance(found, tuple) else (found,):
        assert np.isfinite(float(x)) and np.dtype(x.dtype.numpy).name in wanted


@pytest.mark.parametrize(
    ("name", "args", "want"),
    [
        ("rsqrtf", (4.0,), 0.5), ("fast_fdividef", (3.0, 4.0), 0.75), ("erfinv", (0.5204998778130465,), 0.5),
        ("normcdf", (0.0,), 0.5), ("sincospi", (0.5,), (1.0, 0.0)), ("frexp", (6.0,), (0.75, 3)), ("logb", (9.0,), 3.0),
        ("dadd_ru", (1.0, 2.0**-60), 1 + 2.0**-52), ("dadd_rd", (1.0, 2.0**-60), 1.0), ("frcp_rz", (3.0,), 0.33333331),
        ("fmaf_rn", (2.0, 3.0, 4.0), 10.0), ("double2int_rd", (-1.5,), -2), ("double2uint_rz", (-1.5,), 0),
        ("float2int_rn", (2.5,), 2), ("int2float_rz", (16777219,), 16777218.0),
        ("ll2double_ru", (2**53 + 1,), 2.0**53 + 2), ("double2hiint", (1.0,), 0x3FF00000), ("round", (-2.5,), -3.0),
        ("brev", (1,), -(2**31)), ("clz", (1,), 31), ("popcll", (-1,), 64), ("mulhi", (2**30, 8), 2), ("ffs", (0,), 0),
        ("byte_perm", (0x03020100, 0x07060504, 0x7531), 0x07050301), ("hadd", (-3, 0), -2), ("usad", (1, 3, 4), 6),
        ("float_as_int", (1.0,), 0x3F800000), ("hiloint2double", (0x3FF00000, 0), 1.0),
        ("isnanf", (math.nan,), 1), ("lgamma", (0.0,), math.inf), ("ldexpf", (1.0, 2000), math.inf),
        ("remquo", (7.0, 2.0), (-1.0, 4)),
    ],
)  # fmt: skip
def test_functions_of_libdevice(name, args, want):
    got = stand_in(getattr(libdevice, name))(*args)
    got = tuple(map(float, got)) if isinstance(got, tuple) else float(got)
    np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-15)


@pytest.mark.parametrize("checks", PLACES)
@pytest.mark.parametrize("library", [False, True], ids=["alone", "beside cute"])
def test_declared_functions_in_a_kernel(checks, library):
    @cuda.jit
    def kernel(a, out):
        t = cute.arch.lane_idx() if library else cuda.threadIdx.x
        s, c = libdevice.sincosf(cuda.ldcg(a, t))
        v = cuda.float32x2(s * s, c * c)
        w = cuda.float32x4(v, 1, 2)
        cuda.stcs(out, t, v.x + v.y + w.z + w.w + cuda.float32x3(v, 1).z + libdevice.rsqrtf(np.float32(4)))

    a = np.linspace(0, 3, 32).astype(np.float32)
    np.testing.assert_allclose(run(kernel, a, np.zeros(32, np.float32), checks=checks), 5.5, rtol=1e-6)


def test_half_precision():
    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x
        x = fp16.hfma(a[t], a[t], fp16.hneg(a[t]))
        if fp16.hlt(x, a[t]):
            out[t] = fp16.hadd(x, fp16.hsqrt(a[t]))

    a = np.linspace(0.1, 0.9, 32).astype(np.float16)
    x = (a.astype(np.float64) ** 2 - a).astype(np.float16)
    want = (x.astype(np.float64) + np.sqrt(a.astype(np.float64)).astype(np.float16)).astype(np.float16)
    np.testing.assert_array_equal(run(kernel, a, np.zeros(32, np.float16)), want)


def test_a_declaration_that_nobody_knows_is_refused():
    @cuda.jit
    def kernel(out):
        out[0] = libdevice.j0(1.0)

    with pytest.raises(CuteError, match="libdevice.j0: the simulator does not know"):
        run(kernel, np.zeros(1), threads=1)


@pytest.mark.parametrize("checks", PLACES)
def test_records(checks):
    @cuda.jit
    def kernel(one, r, out):
        t = cuda.threadIdx.x
        r.x[t] = t
        r[t].n = one.n
        r[t]["m"] = 1
        out[t] = r[t].x + r[t].n + r["m"][t]

    dtype = np.dtype([("x", np.float32), ("n", np.int32), ("m", np.int8)])
    one = np.array([(0, 7, 0)], dtype)[0]
    got = run(kernel, one, np.zeros(32, dtype), np.zeros(32, np.float32), checks=checks)
    np.testing.assert_array_equal(got, np.arange(32) + 8)


@pytest.mark.parametrize("checks", PLACES)
def test_rows_are_iterated(checks):
    @cuda.jit
    def kernel(a, out):
        total = numba.float32(0)
        for x in a[cuda.threadIdx.x]:
            total += x
        out[cuda.threadIdx.x] = total

    a = np.arange(64, dtype=np.float32).reshape(8, 8)
    np.testing.assert_array_equal(run(kernel, a, np.zeros(8, np.float32), checks=checks, threads=8), a.sum(1))


@pytest.mark.parametrize("checks", PLACES)
def test_numbers_wrap_and_overflow_without_a_warning(checks):
    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x
        out[t] = a[t] + np.int32(1) + np.int32(2**32) + np.int32(math.trunc(np.float32(0.5)))
        if np.float32(3e38) * np.float32(3e38) < 1:
            out[t] = 0

    got = run(kernel, np.full(32, 2**31 - 1, np.int32), np.zeros(32, np.int32), checks=checks)
    assert (got == -(2**31)).all()


@pytest.mark.parametrize("checks", PLACES)
def test_types_of_numbers_are_what_they_are(checks):
    @cuda.jit
    def kernel(a, out):
        x, n = a[cuda.threadIdx.x], len(a)
        same = isinstance(n, int) and isinstance(x, np.float32) and type(x) is np.float32
        out[cuda.threadIdx.x] = same and isinstance(float(x), float)

    assert run(kernel, np.ones(32, np.float32), np.zeros(32, np.bool_), checks=checks).all()


@pytest.mark.parametrize("checks", PLACES)
def test_tensors_of_numbas_own_arrays(checks):
    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x
        shared, mine = cuda.shared.array(64, numba.float32), cuda.local.array(2, numba.float32)
        cute.autovec_copy(cute.make_tensor(a, (2, 32))[None, t], cute.make_tensor(mine, 2))
        mine[1] += 1
        cute.autovec_copy(cute.make_tensor(mine, 2), cute.make_tensor(shared, (2, 32))[None, t])
        cuda.syncthreads()
        out[t] = shared[63 - 2 * t]

    a = np.arange(64, dtype=np.float32)
    np.testing.assert_array_equal(run(kernel, a, np.zeros(32, np.float32), checks=checks), a[::-2] + 1)


def test_bfloat16():
    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x
        x = bf16.hfma(bf16.bfloat16(a[t]), bf16.float32_to_bfloat16(2.0), bf16.bfloat16(1))
        out[t] = bf16.bfloat16_to_float32(bf16.hadd(x, bf16.hsqrt(bf16.bfloat16(4))))

    a = np.arange(32, dtype=np.float32)
    np.testing.assert_array_equal(run(kernel, a, np.zeros(32, np.float32)), 2 * a + 3)


@pytest.mark.parametrize("checks", PLACES)
def test_alignment_of_arrays(checks):
    @cuda.jit
    def kernel(out):
        cuda.shared.array(3, numba.int32, alignment=16)
        big = cuda.shared.array(5, numba.float32, alignment=1024)
        mine = cuda.local.array(2, numba.int32, alignment=16)
        mine[0] = cute.make_tensor(big, 5).iterator.toint() % 128  # as far as this process aligns it
        out[cuda.threadIdx.x] = mine[0]

    assert not (run(kernel, np.zeros(32, np.int32), checks=checks) % 16).any()


def test_an_alignment_that_numba_refuses():
    @cuda.jit
    def kernel(out):
        cuda.shared.array(3, numba.int32, alignment=12)

    with pytest.raises(CuteError, match="alignment must be a power of two"):
        run(kernel, np.zeros(1))


@cuda.jit
def count_with_few_atomics(x, out):
    """One atomic for the lanes that are active together, whichever they are."""
    i = cuda.grid(1)
    if x[i] > 0:
        mask = cuda.activemask()
        positive = cuda.ballot_sync(mask, True)
        if cuda.laneid == cuda.ffs(positive) - 1:
            cuda.atomic.add(out, 0, cuda.popc(positive))


@pytest.mark.parametrize("checks", PLACES)
def test_active_lanes_are_those_that_are_said_to_be(checks):
    x = np.random.default_rng(0).integers(-1, 2, 128)
    out = np.zeros(1, np.int32)
    simulate(count_with_few_atomics, checks=checks)[2, 64](x, out)
    assert out[0] == (x > 0).sum()
