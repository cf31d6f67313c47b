# SPDX-License-Identifier: Apache-2.0
"""Mistakes with layouts and the algebra."""

import numpy as np

import numba_cute as cute

from .form import mistake

N = 5


@mistake("does not match shape", np.int32(3))
def stride_of_another_nesting(n):
    cute.make_layout((4, (n, 2)), stride=(1, 4))  # wrong


@mistake("is not a layout")
def composition_that_does_not_divide(x):
    cute.composition(cute.make_layout((6, 4), stride=(1, 7)), cute.make_layout(4, stride=4))  # wrong


@mistake("must be static here", np.int32(3))
def order_known_at_run_time(n):
    cute.make_ordered_layout((4, 8), (n, 0))  # wrong


@mistake("must be static here", np.int32(1))
def mode_known_at_run_time(n):
    cute.group_modes(cute.make_layout((4, 8, 2)), n, 2)  # wrong


@mistake("has 3 modes", np.int32(3))
def tiler_with_more_modes(n):
    cute.zipped_divide(cute.make_layout((4, n)), (2, 2, 2))  # wrong


@mistake("has no mode 2", np.int32(3))
def size_of_a_mode_that_is_not_there(n):
    cute.size(cute.make_layout((4, n)), 2)  # wrong


@mistake("is known only at run time: make it static, as a literal, a", np.int32(3))
def complement_of_a_run_time_stride(n):
    cute.complement(cute.make_layout((4, 4), stride=(1, n)), 64)  # wrong


@mistake("is known only at run time: make it static, as a literal, a", np.int32(3))
def inverse_of_a_run_time_stride(n):
    cute.left_inverse(cute.make_layout((4, 4), stride=(1, n)))  # wrong


@mistake("must be static", np.int32(3))
def swizzle_known_at_run_time(n):
    cute.make_swizzle(n, 4, 3)  # wrong


@mistake("crossed", np.int32(4))
def composition_across_a_run_time_extent(n):
    cute.composition(cute.make_layout((n, 4), stride=(4, 1)), 8)  # wrong


@mistake("negative")
def negative_extent(x):
    cute.make_layout((-4, 2))  # wrong


@mistake("is not an integer or tuple of integers: give ints, nested")
def layout_of_a_string(x):
    cute.make_layout("4")  # wrong


@mistake("bits and base must be")
def swizzle_out_of_range(x):
    cute.make_swizzle(3, -1, 3)  # wrong


@mistake("the modes are")
def group_of_modes_that_are_not_there(x):
    cute.group_modes(cute.make_layout((4, 8)), 1, 4)  # wrong


@mistake("is empty: give extents of at least")
def division_by_nothing(x):
    cute.logical_divide(cute.make_layout(8), 0)  # wrong


@mistake("is not a layout: make one with make_layout")
def division_of_a_number(x):
    cute.logical_divide(8, 2)  # wrong


@mistake("is not a layout: make one with make_layout")
def right_inverse_of_a_number(x):
    cute.right_inverse(2)  # wrong


@mistake("is not an integer")
def product_with_a_string(x):
    cute.logical_product(cute.make_layout(4), "2")  # wrong


@mistake("give one index for each mode, or one integer for all")
def coordinate_with_too_many_modes(x):
    x[0] = cute.make_layout((4, 8))((1, 2, 3))  # wrong


@mistake("select: mode")
def select_of_a_mode_that_is_not_there(x):
    cute.select(cute.make_layout((4, 8)), mode=[0, 2])  # wrong


@mistake("Layout.shape cannot be assigned: a Layout is immutable")
def layout_set_in_place(x):
    lay = cute.make_layout((4, 8))
    lay.shape = (8, 4)  # wrong


@mistake("kernels have no such operator for these types; convert")
def layouts_added(x):
    cute.make_layout(4) + cute.make_layout(8)  # wrong


@mistake("modes, more than up_to_rank=-")
def append_beyond_a_rank(x):
    cute.append(cute.make_layout((4, 8)), cute.make_layout(2), up_to_rank=-1)  # wrong


@mistake("is not an integer")
def coordinate_that_is_a_string(x):
    x[0] = cute.crd2idx("a", cute.make_layout((4, 8)))  # wrong


@mistake("it has get_flat_coord, get_hier_coord, maps_to_coordinates,")
def layout_with_no_such_attribute(x):
    x[0] = cute.make_layout(4).extent  # wrong


@mistake("was called with other arguments: missing a required argument")
def call_without_its_argument(x):
    cute.logical_divide(cute.make_layout(8))  # wrong


@mistake("was called with other arguments: got an unexpected keyword")
def keyword_that_is_not_there(x):
    cute.make_layout((4, 8), strides=(8, 1))  # wrong
