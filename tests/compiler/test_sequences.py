# SPDX-License-Identifier: Apache-2.0
"""Loops over tuples, comprehensions, lists that grow, and `range` with the CuTe DSL's keywords: in both engines."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.runtime import from_dlpack


def results(kernel, *args):
    """What a kernel writes into an array, in the simulator; it is compiled too, and takes no local memory."""
    out = np.zeros(8, np.float32)
    cute.simulate(kernel)[1, 1](from_dlpack(out), *args)
    assert cute.compile(kernel, (from_dlpack(out), *args)).resources.local == 0
    return out.tolist()


@cute.kernel
def over_tensors(out, x, y):
    a, b, c = [cute.zipped_divide(t, (2,)) for t in (x, y, out)]
    for i, (source, scale) in enumerate(zip((a, b), (2, 3))):
        c[i, 0] = source[i, 1] * scale
    for t in reversed((cute.make_rmem_tensor(1, cute.Float32), cute.make_rmem_tensor((3, 1), cute.Float16))):
        t.fill(3)
        c[0, 1] = c[0, 1] * 10 + cute.size(t)
    for t in (x, y):
        if cute.const_expr(cute.rank(t) == 3):
            continue
        c[1, 1] += t[0]
        if cute.const_expr(cute.size(t) == 4):
            break


@cute.kernel
def growing(out):
    squares = []
    for i in cute.range_constexpr(4):
        if cute.const_expr(i != 2):
            squares.append(cute.make_rmem_tensor(i + 1, cute.Float32))
    squares.append(None)
    sizes = [cute.size(t) for t in squares if t is not None]
    out[0] = len(squares)
    out[1], out[2], out[3] = sizes
    r = cute.make_rmem_tensor(len([i for i in range(2, 8, 2)]), cute.Float32)
    r.fill(1)
    out[4] = cute.size(r)
    out[5] = sum3(*[s * 2 for s in sizes])
    for k in range(3):  # the list is another each time
        now = [k, k + 1]
        now.append(5)
        out[6] = out[6] * 10 + now[0] + now[2]
    both = [(i, j) for i in (1, 2) for j in (3, 4)]
    out[7] = both[1][0] * 10 + both[1][1]


@cute.jit
def sum3(a, b, c):
    return a + b + c


@cute.kernel
def counting(out, n):
    r = cute.make_rmem_tensor((4,), cute.Float32)
    for i in range(4, unroll_full=True):
        r[i] = i
    for i in cute.range(1, 4, unroll_full=True):
        out[i] = cute.const_expr(i) + r[(i + 1) % 4]
    for i in cute.range(n, unroll=2):
        out[0] += i
    for i in range(0, n, 2, prefetch_stages=2, unroll=1):
        out[4] += i
    for _ in cute.range(n, unroll_full=False, vectorize=False):
        out[5] += 1
    for _ in cute.range(3):
        out[6] += 1


def test_a_loop_over_tensors_is_one_copy_for_each():
    x, y = np.arange(4, dtype=np.float32), np.arange(4, 8).astype(np.float32)
    assert results(over_tensors, from_dlpack(x), from_dlpack(y)) == [4, 21, 31, 0, 0, 0, 0, 0]


def test_a_list_may_grow_where_its_length_is_static():
    assert results(growing) == [4, 1, 2, 4, 3, 14, 567, 14]


def test_range_takes_the_keywords_of_the_cute_dsl():
    assert results(counting, 5) == [10, 3, 5, 3, 6, 5, 3, 0]
    assert list(cute.range(1, 6, 2, unroll=4)) == [1, 3, 5]


@cute.kernel
def ending_with_an_if(out, n):
    for i in cute.range(n, unroll=1):
        if cute.arch.elect_one():
            out[i] += i + 1
            cute.arch.atomic_add(out.iterator + 7, cute.Float32(1))


def test_a_round_stands_once_in_the_code_where_a_loop_says_so():
    out = np.zeros(8, np.float32)
    cute.simulate(ending_with_an_if)[1, 32](from_dlpack(out), 5)
    assert out.tolist() == [1, 2, 3, 4, 5, 0, 0, 5]
    ptx = cute.compile(ending_with_an_if, (from_dlpack(out), 5)).ptx
    assert ptx.count("elect.sync") == 1 and '.pragma "nounroll"' in ptx


def test_a_loop_over_numbers_is_numbas():
    @cute.kernel
    def kernel(out):
        for x in (1, 4, 6):
            out[0] += x

    @cuda.jit
    def plain(out):
        for x in (1, 4, 6):
            out[0] += x

    assert results(kernel)[0] == 11
    out = np.zeros(8, np.float32)
    assert cute.compile(kernel, (out,)).ptx.count("add.f32") == cute.compile(plain, (out,)).ptx.count("add.f32")


def test_what_is_not_static_is_refused():
    @cute.kernel
    def list_of(out, n):
        out[0] = len([i for i in range(n)])

    @cute.kernel
    def keyword(out, n):
        for i in cute.range(n, unrolled=True):
            out[i] = i

    out = from_dlpack(np.zeros(8, np.float32))
    for kernel, said in (
        (list_of, "a list grows in a loop"),
        (keyword, "there is no keyword 'unrolled'"),
    ):
        with pytest.raises(cute.CuteError, match=said):
            cute.compile(kernel, (out, 3))
    with pytest.raises(cute.CuteError, match="there is no keyword 'unrolled'"):
        cute.simulate(keyword)[1, 1](out, 3)


@cute.kernel
def sharing_names(out, x, y):
    """Python 3.12 and later put comprehensions into the function's own code: their variables stay their own."""
    t = y[0]
    a, b = [[cute.make_tensor(t.iterator, 2) for t in (q, q)] for q in (x, y)]
    c, _ = [[cute.zipped_divide(t, (2,)) for t in q if t is not None] for q in (a, b)]
    if x[0] > 0:
        d, e = [cute.make_tensor(t.iterator, 2) for t in (x, y)]
        d, e = [cute.zipped_divide(t, (1,)) if cute.const_expr(t is not None) else None for t in (d, e)]
        d, e = [t[0, 0] + q * u for t, (q, u) in zip((d, e), ((1, 2), (3, 4)))]
        out[0] = d + e + t
    t = [t + i for t, i in ((out[0], 1), (2, out[1]))]
    out[1] = [t for t in t][0]
    out[2] = c[1][0, 0]
    for t in (x, y):
        out[3] += t[0]


def test_variables_of_comprehensions_are_their_own():
    x, y = np.full(4, 2, np.float32), np.full(4, 3, np.int32)
    assert results(sharing_names, from_dlpack(x), from_dlpack(y))[:4] == [22, 23, 2, 5]
