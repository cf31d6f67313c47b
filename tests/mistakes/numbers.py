# SPDX-License-Identifier: Apache-2.0
"""Mistakes with numbers, element types, and mathematics."""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch

from .form import mistake
from .tensors import tensor


@mistake("only numbers convert to an element type", tensor(8, 4))
def number_of_none(t):
    t[0, 0] = cute.Int32(None)  # wrong


@mistake("only numbers convert to an element type", tensor(8, 4))
def number_of_text(t):
    t[0, 0] = cute.Float32("a")  # wrong


@mistake("only numbers convert to an element type", tensor(8, 4))
def number_of_a_tuple(t):
    t[0, 0] = cute.Int32((1, 2))  # wrong


@mistake("only numbers convert to an element type", tensor(8, 4))
def number_of_a_layout(t):
    t[0, 0] = cute.Int32(cute.make_layout(4))  # wrong


@mistake("more than 64 bits", tensor(8, 4))
def literal_beyond_64_bits(t):
    t[0, 0] = 1 << 70  # wrong


@mistake("is not an element type", tensor(8, 4))
def vector_converted_to_text(t):
    t.store(t.load().to("f32"))  # wrong


@mistake("only numbers convert to an element type", tensor(8, 4))
def bits_counted_of_text(t):
    t[0, 0] = arch.clz("")  # wrong


@mistake("is not a number: a str", tensor(8, 4))
def sine_of_text(t):
    t[0, 0] = cute.math.sin("a")  # wrong


@mistake("is not a number: a Tensor", tensor(8, 4))
def sine_of_a_tensor(t):
    t[0, 0] = cute.math.sin(t)  # wrong


@mistake("do not meet: each must be equal, or of one element; the", tensor(8, 4))
def maximum_of_two_shapes(t):
    r = cute.make_rmem_tensor(4, cute.Float32)
    r.fill(0.0)
    v = cute.max(t.load(), r.load())  # wrong
    t.store(v)


@mistake("must be a static integer of at least", tensor(8, 4), np.int32(3))
def promise_of_no_divisor(t, n):
    t[0, 0] = cute.assume(n, divby=0)  # wrong


@mistake("assume: src float", tensor(8, 4), np.float32(3))
def promise_of_a_float(t, x):
    t[0, 0] = cute.assume(x, divby=4)  # wrong


@mistake("not a multiple", tensor(8, 4), np.int32(3), only="simulator", reason="the number is known only at run time")
def promise_that_is_not_kept(t, n):
    t[0, 0] = cute.assume(n, divby=4)  # wrong


@mistake("is not a member of cute.math.RoundingMode", tensor(8, 4), np.int32(3))
def rounding_that_is_not_there(t, n):
    t[0, 0] = cute.add(t[0, 0], 1.0, rounding="up")  # wrong


@mistake("kernels have no such operator for these types; convert", tensor(8, 4), np.float32(3))
def bits_of_a_float_shifted(t, x):
    t[0, 0] = x << 2  # wrong


@mistake("fast_divmod_create_divisor: a divisor of Float64 is not an integer", tensor(8, 4), np.int32(3))
def fast_division_by_a_float(t, n):
    d = cute.fast_divmod_create_divisor(2.5)  # wrong
    t[0, 0] = n // d


@mistake("kernels have no such operator for these types; convert", tensor(8, 4))
def layout_as_a_number(t):
    t[0, 0] = 1.0 * cute.make_layout(4)  # wrong


@mistake("kernels have no such operator for these types; convert", tensor(8, 4))
def type_as_a_number(t):
    t[0, 0] = cute.Float32 + 1  # wrong


@mistake("has no attribute", tensor(8, 4))
def word_of_another_width(t):
    t[0, 0] = arch.bit_reverse(1, 2, 3)  # wrong


@mistake("is none of add", lambda: np.zeros(64, np.float32))
def reduction_in_a_warp_of_no_kind(x):
    x[cuda.threadIdx.x] = arch.warp_redux_sync(1, "mul")  # wrong


@mistake("names no lane", lambda: np.zeros(64, np.float32))
def synchronisation_of_no_lane(x):
    arch.sync_warp(0)  # wrong


@mistake("is not a number: a tuple", lambda: np.zeros(64, np.float32))
def shuffle_of_a_tuple(x):
    y = arch.shuffle_sync((1, 2), 0)  # wrong
    x[cuda.threadIdx.x] = y[0]


@mistake("must be a pair of Float", lambda: np.zeros(64, np.float32))
def packed_sum_of_three(x):
    y = arch.add_packed_f32x2((1.0, 2.0, 3.0), (1.0, 2.0, 3.0))  # wrong
    x[cuda.threadIdx.x] = y[0]
