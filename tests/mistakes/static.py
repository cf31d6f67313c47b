# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: B016
"""Mistakes with what is static and what is known only at run time; control flow; printing; assertions.

PYTEST_DONT_REWRITE: these are users' kernels, whose assertions pytest knows nothing of.
"""

import numpy as np
from numba import cuda

import numba_cute as cute

from .form import mistake
from .tensors import tensor

SIZE = 3


@mistake("range_constexpr", tensor(8, 4), np.int32(3))
def loop_unrolled_to_a_run_time_bound(t, n):
    for i in cute.range_constexpr(n):  # wrong
        t[0, 0] = i


@mistake("literals, globals, closure variables, arithmetic on them,", tensor(8, 4))
def loop_unrolled_to_a_float(t):
    for i in cute.range_constexpr(3.0):  # wrong
        t[0, 0] = i


@mistake("range_constexpr: its step is 0", tensor(8, 4))
def loop_unrolled_by_steps_of_nothing(t):
    for i in cute.range_constexpr(0, 4, 0):  # wrong
        t[0, 0] = i


@mistake("range: its step is 0", tensor(8, 4), np.int32(3))
def loop_by_steps_of_nothing(t, n):
    for i in range(0, n, 0):  # wrong
        t[0, 0] = i


@mistake("range: its step is 0", tensor(8, 4))
def loop_asked_to_be_unrolled_by_steps_of_nothing(t):
    for i in cute.range(0, 4, 0, unroll_full=True):  # wrong
        t[0, 0] = i


def static_steps_of_nothing(t):
    for i in range(0, 4, 0):  # wrong
        t[0, 0] = i


@mistake("range: its step is 0", tensor(8, 4), where=static_steps_of_nothing)
def loop_of_a_helper_by_steps_of_nothing(t):
    static_steps_of_nothing(t)


def unrolled_steps_of_nothing(t, n):
    if n > 2:
        for i in cute.range_constexpr(0, 4, 0):  # wrong
            t[0, 0] = i


@mistake("range_constexpr: its step is 0", tensor(8, 4), np.int32(3), where=unrolled_steps_of_nothing)
def loop_of_a_compiled_helper_by_steps_of_nothing(t, n):
    unrolled_steps_of_nothing(t, n)


def assertion_that_fails(t):
    assert 1 + 1 == 3, "sums"  # wrong


@mistake("`assert 1 + 1 == 3` is false: sums", tensor(8, 4), where=assertion_that_fails)
def assertion_of_a_helper(t):
    assertion_that_fails(t)


@mistake("const_expr", tensor(8, 4), np.int32(3))
def condition_known_at_run_time(t, n):
    if cute.const_expr(n > 3):  # wrong
        t[0, 0] = 1.0


@mistake("const_expr", tensor(8, 4), np.int32(3))
def static_size_of_a_run_time_layout(t, n):
    if cute.const_expr(cute.size(cute.make_layout(n)) == 3):  # wrong
        t[0, 0] = 1.0


@mistake("unroll_full", tensor(8, 4), np.bool_(True))
def unrolling_known_at_run_time(t, flag):
    for i in cute.range(4, unroll_full=flag):  # wrong
        t[0, 0] = i


@mistake("is false", tensor(8, 4))
def assertion_that_is_false(t):
    assert cute.size(t) == 33, "of 33"  # wrong
    t[0, 0] = 1.0


@mistake("is false", tensor(8, 4))
def assertion_of_a_global(t):
    assert SIZE == 4  # wrong
    t[0, 0] = 1.0


@mistake("is false", tensor(8, 4), np.int32(3), only="simulator", reason="the value is known only at run time")
def assertion_of_an_argument(t, n):
    assert n == 4  # wrong


@mistake("values given", tensor(8, 4), np.int32(3))
def print_with_a_format(t, n):
    cute.printf("{} {}", n)  # wrong


@mistake("values, but got", tensor(8, 4), np.int32(3))
def print_with_too_many_values(t, n):
    cute.printf("%d", n, n)  # wrong


@mistake("a kernel of @cuda.jit prints its arguments alone; one of", tensor(8, 4), np.int32(3))
def print_of_a_keyword(t, n):
    print(n, sep=",")  # wrong


@mistake("a kernel of @cuda.jit prints numbers and texts alone;", tensor(8, 4), np.int32(3))
def print_of_a_layout_by_numba(t, n):
    print(cute.make_layout((4, n)))  # wrong


@mistake("s class or instance, as ValueError", tensor(8, 4), np.int32(3))
def raise_of_a_text(t, n):
    raise "wrong"  # wrong


@mistake(
    "one type", tensor(8, 4), np.int32(3), only="compiler",
    reason="the simulator follows the way that is run, where the variable has one type; the compiler joins all ways",
)  # fmt: skip
def element_type_chosen_at_run_time(t, n):
    dtype = cute.Float32 if n > 2 else cute.Float16  # wrong
    r = cute.make_rmem_tensor(4, dtype)
    r.fill(0.0)


@mistake("mode is known only at run time, and must be static here:", tensor(8, 4), np.int32(3))
def mode_chosen_at_run_time(t, n):
    t[0, 0] = cute.size(t, mode=[n])  # wrong


@mistake(
    "it has no elements", tensor(8, 4), np.int32(1), only="compiler",
    reason="a tuple of the simulator's is Python's, which any number indexes",
)  # fmt: skip
def shape_indexed_at_run_time(t, n):
    shape = ((1, 2), 3, (4, 5))
    t[0, 0] = cute.size(shape[n])  # wrong


@mistake("must be static, for registers cannot be indexed at run", tensor(8, 4), np.int32(3))
def tile_of_a_run_time_size_in_registers(t, n):
    g = cute.local_tile(t, (n, 4), (0, 0))
    r = cute.make_rmem_tensor_like(g)  # wrong
    r.fill(0.0)


@mistake("must be a static number of bytes", tensor(8, 4), np.int32(3))
def shared_memory_of_a_run_time_size(t, n):
    s = cute.utils.SmemAllocator().allocate(n)  # wrong
    t[0, 0] = s.toint()


@mistake("cuda.shared.array: its shape is not an int, or is known only at", tensor(8, 4), np.int32(3))
def shared_array_of_a_run_time_size(t, n):
    s = cuda.shared.array(n, np.float32)  # wrong
    s[0] = 1.0
    t[0, 0] = s[0]


@mistake("make_ptr: assumed_align is known only at run time, and must", tensor(8, 4), np.int32(3))
def alignment_known_at_run_time(t, n):
    p = cute.make_ptr(cute.Float32, 0, cute.AddressSpace.smem, n)  # wrong
    t[0, 0] = p.load()


@mistake("load_vector: count is known only at run time, and must be", tensor(8, 4), np.int32(3))
def vector_width_known_at_run_time(t, n):
    v = t.iterator.load_vector(n)  # wrong
    t[0, 0] = v[0]
