# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: B018
"""Mistakes with tensors, their indices, and what they hold."""

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute.runtime import from_dlpack

from .form import mistake

TILE = 4


def tensor(*shape, dtype=np.float32):
    return lambda: from_dlpack(np.zeros(shape, dtype))


@mistake("is not an integer", tensor(8, 4))
def index_that_is_a_float(t):
    t[1.5] = 0.0  # wrong


@mistake("is not an integer", tensor(8, 4))
def coordinate_with_a_float(t):
    t[0, 1.5] = 0.0  # wrong


@mistake("is not an integer", tensor(8, 4), np.float32(1))
def index_that_is_a_float_at_run_time(t, x):
    t[x, 0] = 0.0  # wrong


@mistake("3 modes", tensor(8, 4))
def index_with_too_many_modes(t):
    t[1, 2, 3] = 0.0  # wrong


@mistake("is out of", tensor(8, 4))
def index_out_of_a_static_shape(t):
    s = cute.make_rmem_tensor((4, 2), cute.Float32)
    s[4, 0] = 0.0  # wrong


@mistake("is out of", tensor(8, 4))
def negative_index(t):
    s = cute.make_rmem_tensor((4, 2), cute.Float32)
    s[-1, 0] = 0.0  # wrong


@mistake("is not an integer", tensor(8, 4))
def index_that_is_text(t):
    t["a"] = 0.0  # wrong


@mistake("coordinate: a slice is none; None takes a whole mode, and", tensor(8, 4))
def index_that_is_a_slice(t):
    s = t[0:2, 0]  # wrong
    s.fill(0.0)


@mistake("must be static", np.int32(4))
def registers_of_a_run_time_shape(n):
    cute.make_rmem_tensor(n, cute.Float32)  # wrong


@mistake("is not an element type", tensor(8, 4))
def registers_of_no_element_type(t):
    cute.make_rmem_tensor(4, "f32")  # wrong


@mistake("more modes", tensor(8, 4))
def tile_coordinate_with_too_many_modes(t):
    cute.local_tile(t, (4, 4), (0, 0, 0))  # wrong


@mistake("is empty: give extents of at least", tensor(8, 4))
def tile_of_no_rows(t):
    cute.local_tile(t, (0, 4), (0, 0))  # wrong


@mistake("or more, got -", tensor(8, 4))
def tile_of_a_negative_size(t):
    cute.local_tile(t, (-4, 4), (0, 0))  # wrong


@mistake("is not a layout: make one with make_layout", tensor(8, 4))
def tile_of_a_number(t):
    cute.local_tile(5, (4, 4), (0, 0))  # wrong


@mistake("neither a Pointer", tensor(8, 4))
def tensor_of_a_number(t):
    cute.make_tensor(5, (4, 4))  # wrong


@mistake("cannot be set", tensor(8, 4))
def coordinates_are_set(t):
    cute.make_identity_tensor((4, 4))[0, 0] = 1  # wrong


@mistake("no memory", tensor(8, 4))
def memory_of_coordinates(t):
    cute.make_identity_tensor((4, 4)).memspace  # wrong


@mistake("is not a TensorSSA", tensor(8, 4))
def number_stored_as_a_vector(t):
    t.store(1.0)  # wrong


@mistake("does not fit", tensor(8, 4))
def vector_of_another_size_stored(t):
    r, s = cute.make_rmem_tensor(4, cute.Float32), cute.make_rmem_tensor(8, cute.Float32)
    s.fill(0.0)
    r.store(s.load())  # wrong


@mistake("convert", tensor(8, 4))
def vector_of_another_type_stored(t):
    r, s = cute.make_rmem_tensor(4, cute.Float16), cute.make_rmem_tensor(4, cute.Float32)
    s.fill(0.0)
    r.store(s.load())  # wrong


@mistake("truth value", tensor(8, 4))
def truth_of_a_vector(t):
    v = t.load()
    if v > 0:  # wrong
        t[0, 0] = 1.0


@mistake("truth value", tensor(8, 4))
def truth_of_a_tensor(t):
    if t:  # wrong
        t[0, 0] = 1.0


@mistake("t + x", tensor(8, 4))
def tensors_are_added(t):
    t.store(t + t)  # wrong


@mistake("do not meet: each must be equal, or of one element; the", tensor(8, 4), tensor(4, 8))
def vectors_of_two_shapes_added(t, u):
    v = t.load() + u.load()  # wrong
    t.store(v)


@mistake("no len()", tensor(8, 4))
def length_of_a_tensor(t):
    t[0, 0] = len(t)  # wrong


@mistake("iterated over", tensor(8, 4))
def loop_over_a_tensor(t):
    for x in t:  # wrong
        t[0, 0] = x


@mistake("from_dlpack", lambda: np.zeros((8, 4), np.float32))
def from_dlpack_in_a_kernel(x):
    t = from_dlpack(x)  # wrong
    t[0, 0] = 1.0


@mistake("its result is dropped, and the call does nothing else:", tensor(8, 4))
def pointer_to_a_float(t):
    cute.make_ptr(cute.Float32, 1.5, cute.AddressSpace.smem)  # wrong


@mistake("is not a multiple of", tensor(8, 4))
def alignment_that_is_no_power_of_two(t):
    cute.make_ptr(cute.Float32, 0, cute.AddressSpace.smem, 3)  # wrong


@mistake("is not a pointer", tensor(8, 4))
def number_recast_as_a_pointer(t):
    cute.recast_ptr(5)  # wrong


@mistake("is not an element type; use one like cute.Float", tensor(8, 4))
def tensor_recast_to_no_type(t):
    cute.recast_tensor(t, 5)  # wrong


@mistake("the contiguous extent and the other strides must be", tensor(8, 3))
def tensor_recast_to_a_type_that_does_not_divide(t):
    cute.recast_tensor(t, cute.Float64)  # wrong


@mistake("the modes are", tensor(8, 4))
def modes_grouped_backwards(t):
    cute.group_modes(t, 2, 1)  # wrong


@mistake("immutable", tensor(8, 4))
def layout_of_a_tensor_set(t):
    t.layout = cute.make_layout(32)  # wrong


@mistake("dropped", tensor(8, 4))
def vector_converted_and_dropped(t):
    v = t.load()
    v.to(cute.Float16)  # wrong
    t.store(v)


@mistake("dropped", tensor(8, 4))
def modes_grouped_and_dropped(t):
    cute.group_modes(t, 0, 2)  # wrong
    t[0, 0] = 1.0


@mistake("give one for each, None for all", tensor(8, 4))
def domain_offset_with_too_many_modes(t):
    cute.domain_offset((1, 2, 3), t)  # wrong


@mistake("is none of ReductionOp.ADD, MUL, MIN, MAX, AND, OR, XOR", tensor(8, 4))
def reduction_of_no_kind(t):
    t[0, 0] = t.load().reduce("sum", 0.0, 0)  # wrong


@mistake("do not meet: each must be equal, or of one element; the", tensor(8, 4))
def choice_between_two_shapes(t):
    v = t.load()
    r = cute.make_rmem_tensor(4, cute.Float32)
    r.fill(0.0)
    t.store(cute.where(v > 0, v, r.load()))  # wrong


@mistake("it has no elements", tensor(8, 4))
def pointer_indexed_by_text(t):
    t.iterator["a"]  # wrong


@mistake("is neither an array nor a tensor", tensor(8, 4))
def atomic_of_an_object(t):
    cuda.atomic.add(cute.make_layout(4), 0, 1.0)  # wrong


@mistake("must be static", tensor(8, 4), np.int32(8))
def vector_of_a_run_time_size(t, n):
    u = cute.make_tensor(t.iterator, cute.make_layout(n))
    u.load()  # wrong


@mistake("must be static", tensor(8, 4), np.int32(8))
def registers_like_a_run_time_layout(t, n):
    u = cute.make_tensor(t.iterator, cute.make_layout((n, 4)))
    cute.make_rmem_tensor_like(u)  # wrong


@mistake("fill: 524288 elements are 524288 instructions of a thread: fill by tiles in a loop", tensor(8, 4))
def fill_of_more_than_a_thread_writes(t):
    many = cute.make_tensor(t.iterator, cute.make_layout((4, 1 << 17), stride=(1, 0)))
    many.fill(0)  # wrong


@mistake("make_rmem_tensor: 536870912 elements of Float32 are more than the 512 KiB", tensor(8, 4))
def registers_that_many_elements_share(t):
    many = cute.make_rmem_tensor(cute.make_layout((4, 1 << 27), stride=(1, 0)), cute.Float32)  # wrong
    many.fill(0.0)
