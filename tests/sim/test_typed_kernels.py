# SPDX-License-Identifier: Apache-2.0
"""Where kernels get numbers from and where they leave them: arguments, arrays, records, tensors, instructions. The same
with checks and without, and for the lanes of a warp one by one and together."""

import math

import numba
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import dtypes
from numba_cute.sim import launch, simulate

from .arithmetic_oracle import bits, edge_values

WAYS = ["checks", "one by one", "together"]
F32 = np.float32


@pytest.fixture(params=WAYS)
def run(request, monkeypatch):
    """Launches a kernel one of these ways; gives its last argument."""
    if request.param == "one by one":
        monkeypatch.setattr(launch, "why_alone", lambda *_: "a test")
    else:
        monkeypatch.setattr(launch, "uses_library", lambda _: True)

    def start(kernel, *args, threads=32):
        simulated = simulate(kernel, checks=request.param != "together")
        done = simulated.once((1, 1, 1), (threads, 1, 1), 0, [args], None)
        assert done.shared is (request.param != "one by one")
        return args[-1]

    return start


def test_narrow_integers_are_widened(run):
    @cuda.jit
    def kernel(a, b, out):
        t = cuda.threadIdx.x
        out[t] = a[t] + b[t]

    a, b = np.full(32, 127, np.int8), np.arange(100, 132).astype(np.int8)
    np.testing.assert_array_equal(run(kernel, a, b, np.zeros(32, np.int64)), a.astype(np.int64) + b)


def test_a_float32_argument_divided_by_an_int_is_float64(run):
    @cuda.jit
    def kernel(x, out):
        out[cuda.threadIdx.x] = x / 3

    assert (run(kernel, F32(0.1), np.zeros(32)) == np.float64(F32(0.1)) / 3).all()


def test_arguments_have_their_own_type(run):
    @cuda.jit
    def kernel(i, u, f, d, b, n, pair, out):
        t = cuda.threadIdx.x
        out[0, t], out[1, t], out[2, t] = cuda.clz(i), cuda.clz(n), cuda.clz(u)
        out[3, t], out[4, t], out[5, t] = f * f, d * d, b + b
        out[6, t], out[7, t], out[8, t] = cuda.popc(-i), u - np.uint32(1), pair[0] / pair[1]

    i, u, f = np.int32(0x100000), np.uint32(0), F32(1.1)
    got = run(kernel, i, u, f, 1.1, True, 0x100000, (F32(1), F32(3)), np.zeros((9, 32)))[:, 3]
    third = np.float64(F32(1) / F32(3))
    want = [11, 43, 32, np.float64(f * f), 1.1 * 1.1, 2, 44, 2.0**64, third]  # -i is an int64
    np.testing.assert_array_equal(got, want)


def test_scalars_of_cute_have_their_own_type(run):
    @cuda.jit
    def kernel(i, f, h, out):
        t = cuda.threadIdx.x
        out[0, t], out[1, t], out[2, t] = cuda.clz(i), f * f, h * h

    args = dtypes.Int32(0x100000), dtypes.Float32(1.1), dtypes.Float16(1.1)
    got = run(kernel, *args, np.zeros((3, 32)))[:, 0]
    np.testing.assert_array_equal(got, [11, F32(1.1) * F32(1.1), np.float16(1.1) * np.float16(1.1)])


RECORD = np.dtype([("n", np.int32), ("x", np.float32), ("b", np.uint8), ("v", np.float64, (2,))], align=True)


def test_what_is_written_to_a_record_argument_comes_back(run):
    @cuda.jit
    def kernel(r, out):
        if cuda.threadIdx.x == 0:
            r.n = r.n + 1
            r["x"] = r.x / 3
            r.b = 300
            r.v[1] = 5
            out[0] = r.x * r.x

    record = np.zeros(1, RECORD)[0]
    record["n"], record["x"] = 2**31 - 1, 1
    out = run(kernel, record, np.zeros(1))
    assert (record["n"], record["x"], record["b"], record["v"][1]) == (-(2**31), F32(1 / 3), 44, 5)
    assert out[0] == np.float64(F32(1 / 3) * F32(1 / 3))


def test_fields_of_an_array_of_records_have_their_types(run):
    @cuda.jit
    def kernel(r, out):
        t = cuda.threadIdx.x
        r[t].n = r[t].n + r[t].b * 2
        r[t].b = r[t].n
        out[t] = r[t].x * r[t].x

    records = np.zeros(32, RECORD)
    records["b"], records["x"] = 200, np.linspace(0, 1, 32)
    out = run(kernel, records, np.zeros(32))
    assert (records["n"] == 400).all() and (records["b"] == 144).all()
    np.testing.assert_array_equal(out, (records["x"] * records["x"]).astype(np.float64))


STORED = {
    np.uint8: [(300, 44), (-1, 255), (1e9, 255), (-5.0, 0)],
    np.int8: [(200, -56), (40000.0, -1), (math.nan, 0)],
    np.int16: [(40000, -25536), (1e9, 32767), (-1e9, -32768)],
    np.uint16: [(-1, 65535), (1e9, 65535)],
    np.int32: [(1 << 40, 0), ((1 << 31), -(1 << 31)), (1e20, 2**31 - 1), (math.nan, -(2**31))],
    np.uint32: [(-1, 2**32 - 1), (-1.0, 0)],
    np.int64: [(1e30, 2**63 - 1)],
    np.float32: [(1e300, math.inf), (0.1, F32(0.1))],
    np.bool_: [(2, True), (0.0, False), (math.nan, True)],
}


@pytest.mark.parametrize("place", ["global", "shared", "local"])
@pytest.mark.parametrize("kind", STORED, ids=lambda t: t.__name__)
def test_what_is_stored_is_converted_as_by_the_gpu(run, kind, place):
    @cuda.jit
    def kernel(x, out):
        t = cuda.threadIdx.x
        if place == "global":
            out[t] = x + x * 0
        else:
            if place == "shared":
                a = cuda.shared.array(32, out.dtype)
            else:
                a = cuda.local.array(32, out.dtype)
            a[t] = x + x * 0
            out[t] = a[t]

    for value, want in STORED[kind]:
        if value == value or place == "global":
            got = run(kernel, value, np.zeros(32, kind))
            assert (got == want).all(), (value, got[0], want)


@pytest.mark.parametrize("dtype", [cute.Int8, cute.Uint8, cute.Int16, cute.Float32, cute.Boolean], ids=str)
def test_what_is_stored_in_a_tensor_is_converted_as_traced_code_does(run, dtype):
    @cuda.jit
    def kernel(x, out):
        t = cuda.threadIdx.x
        cute.make_tensor(out, 32)[t] = x

    for x in (300, -1, 200.7, -5.5, 1e30):
        got = run(kernel, x, np.zeros(32, dtype.numpy))
        assert (got == dtypes.converted(x, dtype)).all(), x


def test_float32_sums_are_rounded_at_every_step(run):
    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x
        values, regs = cute.make_tensor(a, (32, 64))[t, None], cute.make_rmem_tensor(64, cute.Float32)
        cute.autovec_copy(values, regs)
        total, doubled = cute.Float32(0), cute.Float32(0)
        for i in range(64):
            total = total + values[i]
            doubled += regs[i] * 2.0
        out[0, t], out[1, t], out[2, t] = total, regs.load().reduce(cute.ReductionOp.ADD, 0.0), doubled

    a = np.random.default_rng(0).standard_normal((64, 32)).astype(F32)
    total, doubled = np.zeros(32, F32), np.zeros(32)
    for row in a:
        total = total + row
        doubled = doubled + row.astype(np.float64) * 2.0
    tree = a
    while len(tree) > 1:
        tree = tree[: len(tree) // 2] + tree[len(tree) // 2 :]
    got = run(kernel, a.T.copy().reshape(-1).reshape(32, 64).T.copy().reshape(-1), np.zeros((3, 32)))
    np.testing.assert_array_equal(got[0], total.astype(np.float64))
    np.testing.assert_array_equal(got[1], tree[0].astype(np.float64))
    np.testing.assert_array_equal(got[2], doubled)


def test_numbers_of_the_library_have_types(run):
    @cuda.jit
    def kernel(out):
        t = cute.arch.thread_idx()[0]
        u, i, f = cute.Uint32(t), cute.Int32(t), cute.Float32(t)
        out[0, t], out[1, t], out[2, t] = u - cute.Uint32(5), ~u, i << 40
        out[3, t], out[4, t], out[5, t] = f / 3, f * f / cute.Float32(3), i // 3
        out[6, t], out[7, t] = (i * 2147483647) // 5, cute.arch.lane_idx() * cute.arch.shuffle_sync(f, 1)
        out[8, t] = cute.crd2idx((t, 2), cute.make_layout((32, 4))) - u

    got = run(kernel, np.zeros((9, 32)))
    t = np.arange(32)
    f = t.astype(F32)
    np.testing.assert_array_equal(got[0], (t.astype(np.uint64) - np.uint64(5)).astype(np.float64))
    np.testing.assert_array_equal(got[1], (~t.astype(np.uint32)).astype(np.float64))
    np.testing.assert_array_equal(got[2], (t << 40).astype(np.float64))
    np.testing.assert_array_equal(got[3], f.astype(np.float64) / 3)
    np.testing.assert_array_equal(got[4], (f * f / F32(3)).astype(np.float64))
    np.testing.assert_array_equal(got[5], t // 3)
    np.testing.assert_array_equal(got[6], t * 2147483647 // 5)
    np.testing.assert_array_equal(got[7], t.astype(np.float64))
    np.testing.assert_array_equal(got[8], 64)


def test_traced_code_computes_in_the_types_that_its_leaves_have(run):
    """As the compiler's: a static integer takes the other's type, and only wider operands widen."""

    @cuda.jit
    def kernel(i, j, out):
        t = cuda.threadIdx.x
        at = cute.crd2idx((i, t), cute.make_layout((1 << 20, 32), stride=(1 << 12, 1)))
        wide = cute.crd2idx((j, t), cute.make_layout((1 << 20, 32), stride=(1 << 12, 1)))
        out[0, t], out[1, t] = at, wide

    got = run(kernel, np.int32(1 << 19), np.int64(1 << 19), np.zeros((2, 32), np.int64))
    t = np.arange(32)
    np.testing.assert_array_equal(got[0], np.int64(np.int32(-(1 << 31))) + t)
    np.testing.assert_array_equal(got[1], (1 << 31) + t)


def test_fields_of_structs_keep_their_types(run):
    @cute.struct
    class Counter:
        n: cute.Int32
        x: cute.Float32

        def step(self, by):
            self.n += by
            self.x = self.x * 1.1

    @cuda.jit
    def kernel(out):
        t = cuda.threadIdx.x
        c = Counter(2147483647, 1.0)
        c.step(1)
        out[0, t], out[1, t] = c.n, c.x

    got = run(kernel, np.zeros((2, 32)))
    assert (got[0] == -(2**31)).all() and (got[1] == np.float64(F32(1.1))).all()


def test_atomics_are_in_the_arrays_type(run):
    @cuda.jit
    def kernel(a, old):
        t = cuda.threadIdx.x
        if t == 0:
            old[0] = cuda.atomic.add(a, 0, 2.9)
            old[1] = cuda.atomic.max(a, 1, 1 << 33)
            old[2] = cuda.atomic.cas(a, 2, 5, 7) * 3000000000

    a = np.array([1, 5, 5], np.int32)
    old = run(kernel, a, np.zeros(3, np.int64))
    np.testing.assert_array_equal(a, [3, 5, 7])
    np.testing.assert_array_equal(old, [1, 5, 15000000000])


@pytest.mark.parametrize("kinds", [(np.int8, np.int32), (np.uint32, np.uint32), (F32, F32), (np.int64, np.uint64),
                                   (F32, np.int64), (np.bool_, np.int16), (np.float64, F32)],
                         ids=lambda p: "-".join(t.__name__ for t in p))  # fmt: skip
def test_lanes_that_run_together_compute_what_each_alone_does(monkeypatch, kinds):
    integers = all(np.dtype(k).kind in "biu" for k in kinds)
    both_signs = kinds == (np.int64, np.uint64)  # which have no least and no greatest: that is refused

    @cuda.jit
    def kernel(a, b, out):
        t = cute.arch.lane_idx()
        x, y = a[t], b[t]
        out[0, t], out[1, t], out[2, t], out[3, t] = x + y, x - y, x * y, x / y
        out[4, t], out[5, t], out[6, t], out[7, t] = x // y, x % y, -x, +y
        out[8, t], out[9, t], out[10, t] = x < y, x == y, not x
        if not both_signs:
            out[11, t], out[12, t] = min(+x, +y), max(+x, +y)
        out[13, t] = abs(+x)
        out[14, t], out[15, t], out[16, t] = int(x), np.float32(y), np.int8(x)
        out[17, t], out[18, t] = math.sqrt(+x), (x + 1) * 3
        if integers:
            out[19, t], out[20, t], out[21, t], out[22, t] = x & y, x | y, x ^ y, ~x
            out[23, t], out[24, t] = x << 3, x >> 2

    of = [dtypes.from_numpy(k) for k in kinds]
    pairs = [(x, y) for x in edge_values(of[0]) for y in edge_values(of[1])][::5]
    pairs += [pairs[0]] * (-len(pairs) % 32)
    found = []
    for why_alone in (launch.why_alone, lambda *_: "a test"):
        monkeypatch.setattr(launch, "why_alone", why_alone)
        rows = []
        for at in range(0, len(pairs), 32):
            a, b = (np.array([p[i] for p in pairs[at : at + 32]], kinds[i]) for i in (0, 1))
            out = np.zeros((25, 32), np.float64)
            done = simulate(kernel, checks=False).once((1, 1, 1), (32, 1, 1), 0, [(a, b, out)], None)
            assert done.shared is (not found)
            rows.append([bits(x) for x in out.reshape(-1)])
        found.append(rows)
    assert found[0] == found[1]


def test_device_functions_and_defaults_are_typed(run):
    @cuda.jit(device=True)
    def scaled(x, by=0.1, n=3):
        return x * by + n

    third = 1 / 3

    @cuda.jit
    def kernel(a, out):
        t = cuda.threadIdx.x
        out[0, t] = scaled(a[t])
        out[1, t] = a[t] * F32(third)
        out[2, t] = a[t] * third
        out[3, t] = numba.float32(a[t]) * a[t]

    a = np.linspace(0, 1, 32, dtype=F32)
    got = run(kernel, a, np.zeros((4, 32)))
    np.testing.assert_array_equal(got[0], a.astype(np.float64) * 0.1 + 3)
    np.testing.assert_array_equal(got[1], (a * F32(third)).astype(np.float64))
    np.testing.assert_array_equal(got[2], a.astype(np.float64) * third)
    np.testing.assert_array_equal(got[3], (a * a).astype(np.float64))
