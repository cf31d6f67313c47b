# SPDX-License-Identifier: Apache-2.0
"""What layouts cost in code: static ones nothing beyond the address arithmetic that a person would write, dynamic ones
no more integer instructions than the same kernel in plain Numba."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.runtime import from_dlpack
from numba_cute.seam import traced

PLAIN = cute.make_layout(1 << 20)
COL = cute.make_layout((64, 128))
HIER = cute.make_layout(((8, 8), (16, 8)), stride=((1, 64), (8, 512)))
SWIZZLED = cute.make_composed_layout(cute.make_swizzle(3, 4, 3), 0, cute.make_layout((64, 64), stride=(64, 1)))


@cuda.jit
def column_major(x, i, j):
    cute.make_tensor(x, COL)[i, j] = 1.0


@cuda.jit
def hierarchical(x, i, j):
    cute.make_tensor(x, HIER)[i, j] = 1.0


@cuda.jit
def tile(x, i, j):
    t = cute.local_tile(cute.make_tensor(x, COL), (16, 32), (i, 2))
    t[3, j] = 1.0


@cuda.jit
def swizzled(x, i, j):
    cute.make_tensor(x, SWIZZLED)[i, j] = 1.0


@cuda.jit
def literal(x, i, j):
    cute.make_tensor(x, HIER)[11, (3, 5)] = 1.0


def swizzled_by_hand(i, j):
    at = i * 64 + j
    return at ^ ((at & 0x380) >> 3)


BY_HAND = {
    column_major: lambda i, j: i + 64 * j,
    hierarchical: lambda i, j: (i & 7) + (i >> 3) * 64 + (j & 15) * 8 + (j >> 4) * 512,
    tile: lambda i, j: i * 16 + j * 64 + (2 * 32 * 64 + 3),
    swizzled: swizzled_by_hand,
    literal: lambda i, j: 3 + 64 + 3 * 8 + 5 * 512,
}


def instructions(ptx: str) -> Counter[str]:
    """How often each instruction stands in a kernel; loads of parameters are left out."""
    body = ptx[ptx.index("{", ptx.index(".entry")) :]
    found = re.findall(r"^\s+(?:@!?%\w+\s+)?([a-z]\w*(?:\.\w+)+|ret)\s", body, re.MULTILINE)
    return Counter(op for op in found if not op.startswith("ld.param"))


@pytest.mark.parametrize("kernel", BY_HAND, ids=lambda k: k.py_func.__name__)
def test_static_layouts_are_the_address_arithmetic_by_hand(kernel):
    """By hand: one formula in 32 bits, for an array that is indexed plainly."""
    formula = traced(BY_HAND[kernel])

    @cuda.jit
    def by_hand(x, i, j):
        cute.make_tensor(x, PLAIN)[formula(i, j)] = 1.0

    signature = "void(float32[::1], int32, int32)"
    got, want = (instructions(cute.compile(k, signature).ptx) for k in (kernel, by_hand))
    assert got.total() <= want.total(), f"{dict(got)} for {dict(want)}"
    assert got["st.global.u32"] == 1


def test_a_literal_coordinate_is_a_constant_offset():
    assert re.search(
        r"st\.global\.u32\s+\[%rd\d+\+10604\]", cute.compile(literal, "void(float32[::1], int32, int32)").ptx
    )
    assert (3 + 64 + 3 * 8 + 5 * 512) * 4 == 10604


def test_a_static_layout_is_no_parameter_and_no_register():
    @cuda.jit
    def kernel(x, lay, swizzle, i):
        t = cute.make_tensor(x, lay)
        t[i, 0] = cute.Float32(swizzle(8))

    @cuda.jit
    def bare(x, i):
        t = cute.make_tensor(x, COL)
        t[i, 0] = cute.Float32(8)

    x, i = np.zeros(64 * 128, np.float32), np.int32(3)
    with_layout = cute.compile(kernel, (x, COL, cute.make_swizzle(3, 4, 3), i))
    without = cute.compile(bare, (x, i))
    assert instructions(with_layout.ptx) == instructions(without.ptx)
    assert with_layout.ptx.count(".param ") == without.ptx.count(".param ")
    assert with_layout.resources.registers == without.resources.registers


# ------------------------------------------------------------------ shapes known at run time


@cuda.jit
def copy(x, y):
    i, j = cuda.grid(2)
    if cute.elem_less((i, j), x.shape):
        y[i, j] = x[i, j]


@cuda.jit
def copy_numba(x, y):
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        y[i, j] = x[i, j]


@cuda.jit
def transpose(x, y):
    i, j = cuda.grid(2)
    if cute.elem_less((i, j), x.shape):
        cute.select(y, mode=(1, 0))[i, j] = x[i, j]


@cuda.jit
def transpose_numba(x, y):
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        y[j, i] = x[i, j]


@cuda.jit
def rows(x, y):
    i = cuda.grid(1)
    if i < x.shape[0]:
        row = x[i, None]
        total = cute.Float32(0.0)
        for j in range(x.shape[1]):
            total += row[j]
        y[i, 0] = total


@cuda.jit
def rows_numba(x, y):
    i = cuda.grid(1)
    if i < x.shape[0]:
        total = np.float32(0.0)
        for j in range(x.shape[1]):
            total += x[i, j]
        y[i, 0] = total


@cuda.jit
def tiles(x, y):
    at = (cuda.blockIdx.x, cuda.blockIdx.y)
    a, b = cute.local_tile(x, (16, 64), at), cute.local_tile(y, (16, 64), at)
    for k in range(16):
        b[k, cuda.threadIdx.x] = a[k, cuda.threadIdx.x]


@cuda.jit
def tiles_numba(x, y):
    i, j = cuda.blockIdx.x * 16, cuda.blockIdx.y * 64 + cuda.threadIdx.x
    for k in range(16):
        y[i + k, j] = x[i + k, j]


DYNAMIC = [(copy, copy_numba), (transpose, transpose_numba), (rows, rows_numba), (tiles, tiles_numba)]
INTEGER = re.compile(
    r"^\s+(?:@!?%\w+\s+)?(?:add|sub|mul|mad|shl|shr|shf|and|or|xor|not|neg|abs|min|max|div|rem|setp|selp|bfi|bfe|cvt)"
    r"(?:\.\w+)*\.[sub](?:16|32|64)\s",
    re.MULTILINE,
)


@pytest.mark.parametrize("layout", ["row-major", "strided"])
@pytest.mark.parametrize(("kernel", "twin"), DYNAMIC, ids=lambda k: k.py_func.__name__)
def test_dynamic_shapes_take_no_more_integer_instructions_than_plain_numba(kernel, twin, layout):
    x, y = (np.zeros((96, 128), np.float32) for _ in range(2))
    numba_type = "float32[:,::1]" if layout == "row-major" else "float32[:,:]"
    tensors = [from_dlpack(a).mark_layout_dynamic() for a in (x, y)]
    if layout == "strided":
        shape, stride = (cute.Int32(96), cute.Int32(128)), (cute.Int64(128), cute.Int64(1))
        tensors = [cute.make_tensor(t.iterator, cute.make_layout(shape, stride=stride)) for t in tensors]
    got = len(INTEGER.findall(cute.compile(kernel, tuple(tensors)).ptx))
    want = len(INTEGER.findall(cute.compile(twin, f"void({numba_type}, {numba_type})").ptx))
    assert 0 < got <= want, f"{got} integer instructions, and {want} by hand"
