# SPDX-License-Identifier: Apache-2.0
"""PTX as text: the compiler puts it into the kernel, the simulator runs what it is said to mean."""

import re

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch

SUM = "{ .reg .f32 s; add.f32 s, {$r0}, {$r1}; mul.f32 {$w0}, s, {$r0}; sub.f32 {$w1}, {$r0}, {$r1}; }"


def sums(a, b):
    return (a + b) * a, a - b


@cute.jit
def twice(x, dtype: cute.Constexpr, name: cute.Constexpr):
    text = f"add.{name} $0, $1, $1;"
    return arch.inline_ptx(text, write_only_types=[dtype], read_only_args=[x], meaning=lambda v: v + v)


@cuda.jit
def texts(x, out):
    lane = arch.lane_idx()
    arch.inline_ptx("nanosleep.u32 {$r0};", read_only_args=[20], meaning=lambda n: None)
    a, b = arch.inline_ptx(
        SUM, write_only_types=(cute.Float32, cute.Float32), read_only_args=[x[lane], cute.Float32(2)], meaning=sums
    )
    index = arch.inline_ptx("mov.u32 {$w0}, %laneid;", write_only_types=[cute.Uint32], meaning=arch.lane_idx)
    far = arch.inline_ptx(
        "add.s64 {$w0}, {$r0}, {$r1};", write_only_types=[cute.Int64], read_only_args=[1 << 40, cute.Int64(-1)],
        meaning=lambda p, q: p + q,
    )  # fmt: skip
    out[lane, 0], out[lane, 1], out[lane, 2], out[lane, 3] = a, b, index, far - (1 << 40)
    out[lane, 4] = cute.Float32(twice(cute.Float16(x[lane]), cute.Float16, "f16"))
    out[lane, 5] = cute.Float32(twice(cute.Float64(x[lane]), cute.Float64, "f64"))
    out[lane, 6] = twice(cute.Int16(7), cute.Int16, "s16")


def test_text_is_run_as_it_is_said_to_mean(run, rng):
    x, out = rng.integers(0, 100, 32).astype(np.float32), np.zeros((32, 7), np.float32)

    def check():
        want = [(x + 2) * x, x - 2, np.arange(32), np.full(32, -1), 2 * x, 2 * x, np.full(32, 14)]
        np.testing.assert_array_equal(out, np.stack(want, 1))

    run(texts, 1, 32, (x, out), outputs=[out], check=check)


def test_lanes_that_run_together_do_the_same(rng):
    x, out, other = rng.integers(0, 100, 32).astype(np.float32), np.zeros((32, 7)), np.zeros((32, 7))
    cute.simulate(texts)[1, 32](x, out)
    cute.simulate(texts, checks=False)[1, 32](x, other)
    np.testing.assert_array_equal(out, other)


def test_a_place_ends_where_its_braces_do():
    @cuda.jit
    def kernel(out):
        out[0] = arch.inline_ptx("mov.b32 {$w0}, {$r0}; // {$r0}1", write_only_types=[cute.Int32], read_only_args=[7])

    assert re.search(r"// (%r\d+|7)1\n", cute.compile(kernel, (np.zeros(1, np.int32),)).ptx)


def test_any_text_stands_there():
    @cuda.jit
    def kernel(out):
        arch.inline_ptx('// "quoted" \\ and é\n\tnanosleep.u32 $0;', read_only_args=[cute.Int32(out.shape[0])])

    ptx = cute.compile(kernel, np.zeros(1)).ptx
    assert '// "quoted" \\ and é\n\tnanosleep.u32' in ptx


def test_text_stands_as_it_is_and_stays():
    ptx = cute.compile(texts, (np.zeros(32, np.float32), np.zeros((32, 7), np.float32))).ptx
    assert "nanosleep.u32" in ptx and "{ .reg .f32 s; add.f32 s, " in ptx and "add.f16" in ptx


WRONG = {
    "a place without one": (dict(ptx="mov.u32 {$w1}, 1;", write_only_types=(cute.Int32,)), r"\{\$w1\}.*it has w0"),
    "a number without an operand": (dict(ptx="mov.u32 $0, $1;", write_only_types=(cute.Int32,)), r"\$1.*it has w0"),
    "more digits than Python reads": (
        dict(ptx=f"mov.u32 $0, ${'9' * 5000};", write_only_types=(cute.Int32,)),
        "has w0",
    ),
    "an operand without a place": (dict(ptx="nanosleep.u32 4;", read_only_args=(4,)), "r0 is not in"),
    "a type without a register": (dict(ptx="mov.u32 $0, 1;", write_only_types=(cute.Int8,)), "only_types has Int8"),
    "one type alone": (dict(ptx="mov.u32 $0, 1;", write_only_types=cute.Int32), "give several, in brackets"),
    "a bool": (dict(ptx="nanosleep.u32 $0;", read_only_args=(True,)), "read_only_args has"),
    "no text": (dict(ptx=3), "give a static text"),
    "an empty text": (dict(ptx=" "), "of one instruction or more"),
}


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_are_said(case):
    given, said = WRONG[case]
    ptx, types, args = given["ptx"], given.get("write_only_types", ()), given.get("read_only_args", ())

    @cuda.jit
    def kernel(out):
        arch.lane_idx()
        arch.inline_ptx(ptx, write_only_types=types, read_only_args=args, meaning=lambda *args: 1)

    for attempt in (lambda: cute.simulate(kernel)[1, 1](np.zeros(1)), lambda: cute.compile(kernel, np.zeros(1))):
        with pytest.raises(cute.CuteError, match=f"(?s)inline_ptx: .*{said}"):
            attempt()


@pytest.mark.parametrize(
    "meaning, said", [(None, "the simulator knows no PTX: say what 'mov.u32 "), (sums, "returns 2 numbers, but")]
)
def test_the_simulator_asks_for_the_meaning(meaning, said):
    text = "mov.u32 $0, $1; add.u32 $0, $0, $2;"

    @cuda.jit
    def kernel(out):
        out[0] = arch.inline_ptx(text, write_only_types=[cute.Uint32], read_only_args=[1, 2], meaning=meaning)

    with pytest.raises(cute.CuteError, match=said):
        cute.simulate(kernel)[1, 1](np.zeros(1))
    assert "add.u32" in cute.compile(kernel, np.zeros(1)).ptx
