# SPDX-License-Identifier: Apache-2.0
"""What only typing knows to be static stays static: sizes, arithmetic on them, sums and slices of shapes."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import seam, utils
from numba_cute.nvgpu import warp
from numba_cute.runtime import from_dlpack
from numba_cute.seam.marks.decorators import HOW_STATIC

LAYOUT = cute.make_layout((2, (3, 4), 1))
FLAG = True


@cuda.jit
def sizes(out, lay):
    x, y = cute.size(lay, mode=[0]), cute.size(lay, mode=[1])
    t = cute.make_rmem_tensor(cute.make_layout((2, 3), stride=(x * y - 21, 1)), cute.Float32)
    for i in cute.range_constexpr((x + y) // 7 % 5 + 4):
        t[i] = i
    out[0] = t[1, 2]
    op = warp.LdMatrix8x8x16bOp(not FLAG, 4)
    out[1] = 1.0 if op.transpose else 2.0
    out[2] = 1.0 if warp.LdMatrix8x8x16bOp(x == 2, y >> 3 << 2).transpose else 2.0
    out[3] = -x


@cuda.jit
def shapes(out, lay):
    t = cute.make_rmem_tensor((1, *lay.shape[:2]), cute.Float32)
    t.fill(3)
    u = cute.make_rmem_tensor((*lay.shape[1], 2) + (1,), cute.Float32)
    u.fill(4)
    out[0], out[1] = cute.size(t), cute.size(u)
    n = 0
    for i in cute.range_constexpr(cute.size(lay.shape[1:])):
        n = n + i
    out[2] = n
    out[3] = t[0] + u[0]


@cuda.jit
def grows(out, n):
    """Numbers that begin as constants and change in a loop are ordinary ones."""
    x, y = 3, cute.size(LAYOUT, mode=[0])
    for _ in range(n):
        x = x * 2 - 1
        y = y + x % 5
    out[0], out[1] = x, y
    out[2], out[3] = (x if y > 4 else 0), y // 2


CASES = {
    sizes: (LAYOUT, [5, 2, 1, -2]),
    shapes: (LAYOUT, [24, 24, 66, 7]),
    grows: (4, [33, 7, 33, 3]),
}


@pytest.mark.parametrize("kernel", CASES, ids=lambda k: k.py_func.__name__)
def test_static_numbers_stay_static(run, kernel):
    given, want = CASES[kernel]
    out = np.empty(4, np.float32)
    if kernel is grows:
        x, y = 3, 2
        for _ in range(4):
            x = x * 2 - 1
            y = y + x % 5
        want = [x, y, x if y > 4 else 0, y // 2]

    def check():
        np.testing.assert_array_equal(out, np.array(want, np.float32))

    run(kernel, 1, 1, [lambda place: from_dlpack(place(out)), given], outputs=[out], check=check)


@cuda.jit
def masked(out):
    t = cute.make_rmem_tensor((2, 3), cute.Float32)
    u = cute.composition(t, "nonsense")
    n = cute.size(u, mode=[1])
    for i in cute.range_constexpr(n):
        out[i] = 1.0


@cuda.jit
def no_such_name(out):
    n = cute.size(utils.sm90.no_such_thing(3))
    for i in cute.range_constexpr(n):
        out[i] = 1.0


@pytest.mark.parametrize(
    "kernel, why",
    [
        (masked, "tiler='nonsense' is not an integer\n.*masked.*\n.*composition"),
        (no_such_name, "no attribute 'no_such_thing'"),
    ],
    ids=["a refused call", "a missing name"],
)
def test_an_unrolled_loop_does_not_hide_the_mistake_before_it(kernel, why):
    with pytest.raises(cute.CuteError, match=why):
        cute.compile(kernel, (np.zeros(4, np.float32),))


@cuda.jit
def batches(out, t):
    part = cute.local_tile(t, (2, 3, 4), (1, None, None, 2), proj=(1, None, 1))
    out[0], out[1], out[2] = cute.size(part, mode=[0]), cute.size(part, mode=[1]), cute.size(part, mode=[2])
    out[3] = part[1, 2, 1]


def test_a_tile_of_a_batch_is_taken_by_the_coordinate_of_the_product(run):
    """(m, n, k, batch) of an operand (M, K, batch): what the projection does not speak of stays."""
    a = np.arange(4 * 8 * 3, dtype=np.float32).reshape(4, 8, 3)
    out = np.empty(4, np.float32)

    def check():
        np.testing.assert_array_equal(out, [2, 4, 2, a[2 + 1, 4 + 2, 2]])

    run(batches, 1, 1, [lambda place, x=x: from_dlpack(place(x)) for x in (out, a)], outputs=[out], check=check)


def test_numbers_of_a_type():
    assert (cute.Int32.zero, cute.Float16.one, cute.Float32.inf, cute.BFloat16.inf) == (0, 1, np.inf, np.inf)
    assert np.isnan(cute.Float8E4M3FN.nan)
    for dtype, name in (
        (cute.Int32, "inf"),
        (cute.Float8E4M3FN, "inf"),
        (cute.Float4E2M1FN, "nan"),
        (cute.Uint8, "nan"),
    ):
        with pytest.raises(cute.CuteError, match="has no such number"):
            getattr(dtype, name)


@cuda.jit
def extremes(out):
    t = cute.make_rmem_tensor(2, cute.Float32)
    t.fill(-cute.Float32.inf)
    out[0] = t[0]
    out[1] = cute.arch.fmax(cute.Float32.zero, t[1])
    out[2] = cute.Float32.nan
    out[3] = cute.Float32.one


def test_numbers_of_a_type_in_a_kernel(run):
    out = np.empty(4, np.float32)

    def check():
        np.testing.assert_array_equal(out, np.array([-np.inf, 0, np.nan, 1], np.float32))

    run(extremes, 1, 1, [lambda place: from_dlpack(place(out))], outputs=[out], check=check)


N = cute.Int32(3)
HOST = cute.make_tensor(cute.make_ptr(cute.Float32, 0, cute.AddressSpace.gmem), cute.make_layout((3, 4)))
RUN_TIME = {
    "number": N,
    "tuple": (1, (2, N)),
    "list": [1, N],
    "extent": cute.make_layout((N, 4)),
    "stride": cute.make_layout((3, 4), stride=(4, N)),
    "basis stride": cute.make_layout(4, stride=cute.E(0) * N),
    "offset": cute.make_composed_layout(cute.make_swizzle(1, 2, 3), N, cute.make_layout(8)),
    "tensor": HOST,
    "tuple of layouts": (cute.make_layout((3, 4)), cute.make_layout((N, 4))),
}
KNOWN = [
    3,
    True,
    None,
    "name",
    (1, (2, None)),
    LAYOUT,
    cute.make_swizzle(1, 2, 3),
    cute.Float32,
    HOST.layout,
    HOST.shape,
]


@pytest.mark.parametrize("name", RUN_TIME)
def test_what_holds_a_run_time_number_is_not_static(name):
    """There is one meaning, whoever asks: `is_static` and `const_expr` look into all that is immutable."""
    x = RUN_TIME[name]
    assert not seam.is_static(x) and not cute.layout.is_static(x)
    assert cute.is_static(x) == (name == "tensor"), "asked of a tensor, it speaks of the layout"
    with pytest.raises(cute.CuteError) as e:
        cute.const_expr(x)
    assert str(e.value) == f"const_expr({x!r}): the value is known only at run time: {HOW_STATIC}"


@pytest.mark.parametrize("x", KNOWN, ids=str)
def test_what_holds_none_is(x):
    assert seam.is_static(x) and cute.const_expr(x) is x


def of_argument(t, out):
    out[0] = cute.size(cute.const_expr(t.layout))


def of_extent(t, out):
    out[0] = cute.size(cute.const_expr(cute.make_layout((t.shape[0], 4))))


def of_thread(t, out):
    out[0] = cute.size(cute.const_expr((cuda.threadIdx.x, 4)))


def of_offset(t, out):
    swizzled = cute.make_composed_layout(cute.make_swizzle(1, 2, 3), cuda.threadIdx.x, cute.make_layout(8))
    out[0] = cute.size(cute.const_expr(swizzled))


@pytest.mark.parametrize("function", [of_argument, of_extent, of_thread, of_offset], ids=lambda f: f.__name__)
def test_const_expr_of_what_a_kernel_learns_at_run_time_does_not_compile(function):
    t = from_dlpack(np.zeros((8, 4), np.float32)).mark_layout_dynamic()
    with pytest.raises(cute.CuteError, match=r"const_expr\(.*\?.*\): the value is known only at run time"):
        cute.compile(cuda.jit(function), (t, np.zeros(1, np.int32)), arch="sm_90a")


@cuda.jit
def of_static_layouts(t, out):
    out[0] = cute.size(cute.const_expr(t.layout))
    out[1] = cute.rank(cute.const_expr(cute.zipped_divide(t.layout, (4, 2))))
    if cute.const_expr(cute.is_static(t.layout)):
        out[2] = 7


def test_const_expr_of_static_layouts(run):
    out = np.zeros(3, np.int32)

    def check():
        np.testing.assert_array_equal(out, [32, 2, 7])

    given = [lambda place: from_dlpack(place(np.zeros((8, 4), np.float32))), out]
    run(of_static_layouts, 1, 1, given, outputs=[out], check=check)


def test_objects_of_other_kinds_are_not_equal():
    @cuda.jit
    def kernel(out, n):
        layout = cute.make_layout((n, 4))
        out[0] = 1 if layout == cute.Float32 else 2
        out[1] = 1 if layout != (4, 1) else 2

    out = np.zeros(2, np.int32)
    cute.simulate(kernel)[1, 1](out, 5)
    assert out.tolist() == [2, 1]
    assert cute.compile(kernel, (out, 5)).ptx
