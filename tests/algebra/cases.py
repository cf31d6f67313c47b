# SPDX-License-Identifier: Apache-2.0
"""One table of expressions for every public operation of the layout algebra.

``{8}`` is the int 8, which a variant of the expression has static or known only at run time; a plain 8 is always
static, where the operation needs that. ``@ROW`` stands for the layout of that name in `LAYOUTS`.
"""

from __future__ import annotations

import re
from typing import Any

from numba_cute import layout as cl
from numba_cute.dtypes import Float16
from numba_cute.seam import traced


@traced
def double(x: Any) -> Any:
    return x * 2


@traced
def plus(x: Any, y: Any) -> Any:
    return x + y


@traced
def twice(x: Any) -> Any:
    return (x, x)


@traced
def second(x: Any, i: int) -> bool:
    return i == 1


LAYOUTS = {
    "ROW": "cl.make_layout(({6}, {8}), stride=({8}, 1))",
    "COL": "cl.make_layout(({6}, {8}))",
    "STRIDED": "cl.make_layout((6, 8), stride=({9}, {1}))",
    "NEST": "cl.make_layout((({2}, 3), (4, {5})), stride=((1, {20}), ({2}, 60)))",
    "STATIC": "cl.make_layout(((2, 3), (4, 2)), stride=((1, 16), (2, 8)))",
    "ZEROS": "cl.make_layout(({4}, ({2}, 3)), stride=(0, (1, 0)))",
    "ID": "cl.make_identity_layout(({6}, ({2}, 3)))",
    "SWIZZLED": "cl.make_composed_layout(cl.make_swizzle(2, 1, 3), {4}, cl.make_layout(({8}, 16), stride=(16, 1)))",
    "STAGES": "cl.make_composed_layout(cl.make_swizzle(2, 1, 3), 0, cl.make_layout((8, 8, {3}), stride=(8, 1, 64)))",
}


CASES: dict[str, list[str]] = {
    # construction
    "ComposedLayout": [
        "cl.ComposedLayout(cl.make_swizzle(2, 1, 3), {8}, @COL)",
        "cl.ComposedLayout(cl.make_layout({48}, stride={3}), {2}, @ROW)",
        "@SWIZZLED({29})",
        "@SWIZZLED[1]",
        "@SWIZZLED.shape",
        "len(@SWIZZLED)",
    ],
    "E": ["cl.E((0, 1))", "cl.E(1) * {5}", "cl.E(())"],
    "Layout": [
        "cl.Layout(({4}, (2, {3})), (1, ({4}, 8)))",
        "@ROW({13})",
        "@ROW(({3}, {5}))",
        "@NEST(({5}, ({3}, 1)))",
        "@NEST(({1}, 7))",
        "@ROW((2, None))",
        "@ID({7})",
        "@ROW[1]",
        "@NEST[-1]",
        "len(@NEST)",
        "(@NEST.shape, @NEST.stride)",
        "@ID.maps_to_coordinates",
        "cl.make_layout(({6}, ({2}, 4))).get_hier_coord({29})",
        "cl.make_layout((({6}, {2}), 4)).get_flat_coord({29})",
    ],
    "ScaledBasis": [
        "cl.ScaledBasis({3}, 1)",
        "cl.ScaledBasis({6}, (0, 1)) * {4}",
        "{4} * cl.ScaledBasis({6}, 0)",
        "cl.ScaledBasis({6}, 0) // {2}",
        "-cl.ScaledBasis(3, 0)",
    ],
    "Swizzle": ["cl.Swizzle(2, 0, 3)", "cl.Swizzle(2, 0, 3)({29})", "cl.Swizzle(2, 0, -3)({29})"],
    "make_composed_layout": ["@SWIZZLED", "cl.make_composed_layout(@COL, ({1}, 2), cl.make_identity_layout((4, {5})))"],
    "make_coord": ["cl.make_coord({1}, (None, {2}))"],
    "make_identity_layout": ["@ID", "cl.make_identity_layout({6})"],
    "make_layout": [
        "@ROW",
        "@COL",
        "@NEST",
        "cl.make_layout({7}, stride={3})",
        "cl.make_layout((@ROW, cl.make_layout({2}, stride=48)))",
        "cl.make_layout(({6}, 1, {8}))",
    ],
    "make_layout_like": ["cl.make_layout_like(@STATIC)", "cl.make_layout_like(@ROW)", "cl.make_layout_like(@ZEROS)"],
    "make_layout_tv": ["cl.make_layout_tv(cl.make_layout((2, 4), stride=(4, 1)), cl.make_layout((2, 3)))"],
    "make_ordered_layout": [
        "cl.make_ordered_layout(({6}, {8}, 2), (2, 0, 1))",
        "cl.make_ordered_layout((({2}, 3), {8}), (1, 0))",
    ],
    "make_shape": ["cl.make_shape({4}, ({2}, 3))"],
    "make_stride": ["cl.make_stride({4}, ({2}, 3))"],
    "make_swizzle": ["cl.make_swizzle(2, 1, 3)", "cl.make_swizzle(3, 0, 1)"],
    "make_tile": ["cl.make_tile({4}, None)"],
    "layout_from_str": ["cl.layout_from_str('S<2,1,3> o 4 o (8,16):(16,1)')"],
    # queries
    "basis_get": ["cl.basis_get(cl.E((1, 0)), ({2}, ({3}, 4)))"],
    "basis_value": ["cl.basis_value(cl.E(1) * {5})", "cl.basis_value({5})"],
    "cosize": ["cl.cosize(@ROW)", "cl.cosize(@NEST)", "cl.cosize(@ID)", "cl.cosize(@ROW, 0)", "cl.cosize(@SWIZZLED)"],
    "depth": ["cl.depth(@NEST)", "cl.depth({4})"],
    "front": ["cl.front(@NEST)", "cl.front((({2}, 3), 4))"],
    "get": ["cl.get(@NEST, (1, 0))", "cl.get(@NEST, 1)", "cl.get(({2}, ({3}, 4)), (1, 0))", "cl.get(@SWIZZLED, 0)"],
    "find": ["cl.find(({2}, (4, 3)), 3)", "cl.find(({2}, 4), 4)", "cl.find(({2}, 3), 7)"],
    "find_if": ["cl.find_if(({2}, (3, {4})), second)", "cl.find_if((({2},),), second)", "cl.find_if({2}, second)"],
    "get_divisibility": ["cl.get_divisibility(-12)", "cl.get_divisibility(cl.make_layout({12})(1))"],
    "get_leaves": ["cl.get_leaves((({2}, 3), {4}))", "cl.get_leaves(@NEST)", "cl.get_leaves(@SWIZZLED)"],
    "get_nonswizzle_portion": ["cl.get_nonswizzle_portion(@SWIZZLED)", "cl.get_nonswizzle_portion(@ROW)"],
    "get_swizzle_portion": ["cl.get_swizzle_portion(@SWIZZLED)", "cl.get_swizzle_portion(@ROW)"],
    "has_scaled_basis": ["cl.has_scaled_basis((({2}, cl.E(1)), 3))", "cl.has_scaled_basis(@ROW.stride)"],
    "has_underscore": ["cl.has_underscore(({1}, (None, {2})))", "cl.has_underscore(({1}, {2}))"],
    "is_basis": ["cl.is_basis(@ID.stride)", "cl.is_basis(@ROW.stride)"],
    "is_congruent": ["cl.is_congruent(@NEST, ((1, 2), (3, 4)))", "cl.is_congruent(@ROW, ({1}, (2, 3)))"],
    "is_int_tuple": ["cl.is_int_tuple(({1}, (2, {3})))", "cl.is_int_tuple(({1}, (None, 2)))", "cl.is_int_tuple({4})"],
    "is_integer": ["cl.is_integer({4})", "cl.is_integer(({4},))", "cl.is_integer(True)", "cl.is_integer(1.5)"],
    "is_major": ["cl.is_major(1, @ROW.stride)", "cl.is_major(0, @ROW.stride)"],
    "is_static": ["cl.is_static(@STATIC)", "cl.is_static((1, 2))"],
    "is_valid_leaf": ["cl.is_valid_leaf({4})", "cl.is_valid_leaf(cl.E(1) * {2})", "cl.is_valid_leaf(({4},))"],
    "is_weakly_congruent": ["cl.is_weakly_congruent(({1}, 2), @NEST)", "cl.is_weakly_congruent(@NEST, ({1}, 2))"],
    "leading_dim": ["cl.leading_dim(@ROW.shape, @ROW.stride)", "cl.leading_dim((2, 3), (0, 4))"],
    "max_common_layout": ["cl.max_common_layout(@STATIC, cl.make_layout((6, 8)))", "cl.max_common_layout(@ROW, @ROW)"],
    "max_common_vector": ["cl.max_common_vector(cl.make_layout((8, {6})), cl.make_layout((4, 2, {6})))"],
    "nullspace": ["cl.nullspace(@ZEROS)", "cl.nullspace(cl.make_layout((2, {3}), stride=(1, 2)))"],
    "rank": ["cl.rank(@NEST)", "cl.rank(@NEST, (0,))", "cl.rank({4})"],
    "shape": ["cl.shape(@NEST)", "cl.shape(@NEST, mode=(0, 1))", "cl.shape(({4}, @ROW))"],
    "shape_at": ["cl.shape_at(@NEST, (1, 1))"],
    "size": [
        "cl.size(@NEST)",
        "cl.size(@NEST, (1,))",
        "cl.size(({2}, ({3}, 4)))",
        "cl.size(@SWIZZLED)",
        "cl.size({4})",
    ],
    "size_in_bytes": ["cl.size_in_bytes(Float16, @ROW)", "cl.size_in_bytes(Float16, None)"],
    "stride": ["cl.stride(@NEST)", "cl.stride(@NEST, mode=(0, 1))"],
    "stride_at": ["cl.stride_at(@NEST, 1)"],
    # mapping
    "add_coord": ["cl.add_coord(({1}, ({2}, 3)), (4, ({5}, 6)))", "cl.add_coord(cl.E(1) * {2}, ({3}, 4, 5))"],
    "as_coord": ["cl.as_coord(cl.ScaledBasis({4}, (1, 0)))", "cl.as_coord({4})"],
    "crd2idx": [
        "cl.crd2idx(({3}, {5}), @ROW)",
        "cl.crd2idx({29}, ({6}, ({2}, 4)))",
        "cl.crd2idx(({5}, ({1}, 2)), ({6}, ({2}, 4)))",
        "cl.crd2idx(({3}, {5}), @SWIZZLED)",
    ],
    "dice": [
        "cl.dice(@NEST, ((0, None), (0, 0)))",
        "cl.dice(({2}, ({3}, 4)), (None, (1, None)))",
        "cl.dice(@STAGES, (0, None, 0))",
    ],
    "domain_offset": [
        "cl.domain_offset(({3}, {5}), @ROW)",
        "cl.domain_offset(({3}, {5}), @SWIZZLED)",
        "cl.domain_offset(({3}, 1), @ID)",
    ],
    "elem_less": [
        "cl.elem_less(({3}, ({5}, 1)), ({4}, ({6}, 2)))",
        "cl.elem_less(({3}, {6}), ({4}, {5}))",
        "cl.elem_less(({3}, 6), ({4}, 6))",
        "cl.elem_less((3, 4), (4, 5))",
    ],
    "idx2crd": ["cl.idx2crd({29}, ({6}, ({2}, 4)))", "cl.idx2crd(({3}, {5}), (4, (2, {4})))", "cl.idx2crd({7}, {8})"],
    "increment_coord": [
        "cl.increment_coord(({5}, ({1}, 2)), ({6}, ({2}, 4)))",
        "cl.increment_coord(({2}, {3}), (3, {4}), mode=1)",
        "cl.increment_coord({3}, {4})",
    ],
    "slice_": [
        "cl.slice_(@ROW, (None, {3}))",
        "cl.slice_(@NEST, ((None, 1), ({3}, None)))",
        "cl.slice_(({2}, ({3}, 4)), (1, (None, 0)))",
        "cl.slice_(@SWIZZLED, ({3}, None))",
    ],
    "slice_and_offset": [
        "cl.slice_and_offset((None, {3}), @ROW)",
        "cl.slice_and_offset((({1}, None), None), @NEST)",
        "cl.slice_and_offset(({3}, None), @SWIZZLED)",
        "cl.slice_and_offset((None, None, {2}), @STAGES)",
        "cl.slice_and_offset((None, {4}), @ID)",
    ],
    # tuples
    "append": ["cl.append(({2}, 3), {4})", "cl.append(@ROW, cl.make_layout({2}, stride={48}))", "cl.append({2}, 1, 3)"],
    "append_ones": ["cl.append_ones(@ROW, 4)", "cl.append_ones(({2}, 3))"],
    "ceil_div": [
        "cl.ceil_div(({100}, {7}), (32, 2))",
        "cl.ceil_div({100}, {7})",
        "cl.ceil_div((100, {7}), (cl.make_layout(4, stride=2), 3))",
    ],
    "filter_tuple": ["cl.filter_tuple(twice, ({2}, 3))"],
    "flatten": ["cl.flatten(@NEST)", "cl.flatten((({2}, 3), 4))", "cl.flatten(@SWIZZLED)", "cl.flatten({2})"],
    "flatten_to_tuple": ["cl.flatten_to_tuple((({2}, 3), 4))", "cl.flatten_to_tuple({2})"],
    "group_modes": ["cl.group_modes(@STAGES, 0, 2)", "cl.group_modes(({2}, 3, {4}), 1)", "cl.group_modes(@ROW, 0, 2)"],
    "prepend": ["cl.prepend(({2}, 3), {4})", "cl.prepend(@ROW, cl.make_layout({2}, stride={48}))"],
    "prepend_ones": ["cl.prepend_ones(@ROW, 4)", "cl.prepend_ones({2})"],
    "product": ["cl.product((({2}, 3), {4}))", "cl.product(())"],
    "product_each": ["cl.product_each((({2}, 3), {4}))"],
    "product_like": ["cl.product_like((({2}, 3), ({4}, 5)), ((1, 1), 1))"],
    "repeat": ["cl.repeat({3}, 2)", "cl.repeat({3}, 1)"],
    "repeat_as_tuple": ["cl.repeat_as_tuple({3}, 2)", "cl.repeat_as_tuple({3}, 0)"],
    "repeat_like": ["cl.repeat_like({3}, (1, (2, 3)))"],
    "round_up": ["cl.round_up(({100}, {7}), (32, 2))", "cl.round_up({100}, {7})", "cl.round_up((5, ({7}, 3)), (4, 2))"],
    "select": ["cl.select(@NEST, (1,))", "cl.select(({2}, 3, {4}), (2, 0))", "cl.select(@STAGES, (2, 0))"],
    "shape_div": ["cl.shape_div(({4}, {6}), 8)", "cl.shape_div((({4}, 6), 10), (8, 5))"],
    "transform_apply": [
        "cl.transform_apply(({2}, 3), (4, {5}), f=plus, g=cl.make_shape)",
        "cl.transform_apply({2}, {5}, f=plus, g=double)",
    ],
    "transform_leaf": ["cl.transform_leaf(double, ({2}, ({3}, 4)))", "cl.transform_leaf(plus, ({2}, 3), (4, {5}))"],
    "tuple_cat": ["cl.tuple_cat(({2}, 3), {4}, (({5},),))"],
    "unflatten": ["cl.unflatten(({2}, 3, {4}), (1, (1, 1)))"],
    "unwrap": ["cl.unwrap((({2},),))", "cl.unwrap(({2}, 3))"],
    "wrap": ["cl.wrap({2})", "cl.wrap(({2}, 3))"],
    # transforms
    "coalesce": [
        "cl.coalesce(cl.make_layout((4, {6}), stride=(1, 4)))",
        "cl.coalesce(@NEST)",
        "cl.coalesce(@STATIC)",
        "cl.coalesce(cl.make_layout(((2, 4), (3, {6}))), target_profile=(1, 1))",
        "cl.coalesce(@STAGES)",
    ],
    "complement": [
        "cl.complement(@STATIC, {96})",
        "cl.complement(cl.make_layout({4}, stride={2}), {32})",
        "cl.complement(cl.make_layout((2, 4), stride=(1, 6)), {48})",
        "cl.complement(@STATIC)",
    ],
    "composition": [
        "cl.composition(@ROW, (3, cl.make_layout(4, stride=2)))",
        "cl.composition(@STATIC, cl.make_layout((3, {8}), stride=(2, 6)))",
        "cl.composition(cl.make_layout({48}, stride={3}), cl.make_layout(({2}, 3), stride=({4}, 1)))",
        "cl.composition(@ROW, ({3}, {4}))",
        "cl.composition(cl.make_swizzle(2, 1, 3), @ROW)",
        "cl.composition(@STAGES, (4, 8, {3}))",
        "cl.composition(@ROW, cl.make_identity_layout((6, {8})))",
        "cl.composition(cl.make_layout((2, 4), stride=(4, 1)), @SWIZZLED)",
    ],
    "filter": ["cl.filter(@ZEROS)", "cl.filter(@ZEROS, target_profile=(1, 1))", "cl.filter(@ROW)"],
    "filter_zeros": [
        "cl.filter_zeros(@ZEROS)",
        "cl.filter_zeros(@ROW, target_profile=(0, 1))",
        "cl.filter_zeros(@STAGES)",
    ],
    "left_inverse": [
        "cl.left_inverse(@STATIC)",
        "cl.left_inverse(cl.make_layout((4, {6}), stride=(2, 8)))",
        "cl.left_inverse(cl.Swizzle(2, 1, 3))",
    ],
    "right_inverse": [
        "cl.right_inverse(@STATIC)",
        "cl.right_inverse(cl.make_layout((4, {6}), stride=(1, 4)))",
        "cl.right_inverse(cl.make_layout(({6}, 4), stride=(4, 1)))",
        "cl.right_inverse(@ID)",
    ],
    "make_layout_image_mask": ["cl.make_layout_image_mask(cl.make_layout((2, 4)), ({1}, {3}), 1)"],
    "recast_layout": [
        "cl.recast_layout(32, 8, cl.make_layout(({16}, {6}), stride=(1, {16})))",
        "cl.recast_layout(8, 16, @ROW)",
        "cl.recast_layout(8, 32, @STAGES)",
        "cl.recast_layout(16, 8, @SWIZZLED)",
    ],
    # products and divides
    "blocked_product": [
        "cl.blocked_product(cl.make_layout((2, 4)), cl.make_layout(({3}, 2)))",
        "cl.blocked_product(@STATIC, cl.make_layout((2, {2})))",
    ],
    "flat_product": ["cl.flat_product(@STATIC, cl.make_layout((2, {3})))"],
    "logical_product": [
        "cl.logical_product(cl.make_layout((2, 4)), cl.make_layout(({3}, 2)))",
        "cl.logical_product(cl.make_layout({8}), cl.make_layout({3}))",
        "cl.logical_product(cl.make_layout((8, {6})), (2, 1))",
        "cl.logical_product(cl.make_layout((2, 4)), {5})",
    ],
    "raked_product": ["cl.raked_product(cl.make_layout((2, 4)), cl.make_layout(({3}, 2)))"],
    "tile_to_shape": [
        "cl.tile_to_shape(cl.make_layout((2, 4), stride=(4, 1)), ({6}, {8}), (1, 0))",
        "cl.tile_to_shape(@STAGES, (8, 16, {6}), (0, 1, 2))",
    ],
    "tiled_product": ["cl.tiled_product(cl.make_layout((2, 4)), cl.make_layout(({3}, 2)))"],
    "zipped_product": ["cl.zipped_product(cl.make_layout((2, 4)), cl.make_layout(({3}, 2)))"],
    "flat_divide": ["cl.flat_divide(@ROW, (3, 4))", "cl.flat_divide(@STAGES, (4, 4))"],
    "logical_divide": [
        "cl.logical_divide(@ROW, (3, 4))",
        "cl.logical_divide(@ROW, (4, {5}))",
        "cl.logical_divide(@STRIDED, (cl.make_layout(2, stride=3), None))",
        "cl.logical_divide(cl.make_layout({48}, stride={3}), cl.make_layout((2, 4), stride=(1, 6)))",
        "cl.logical_divide(cl.make_layout((8, {6})), 4)",
        "cl.logical_divide(@NEST, ((2, 3), (2, 5)))",
    ],
    "tiled_divide": ["cl.tiled_divide(@ROW, (3, 4))", "cl.tiled_divide(@COL, (4,))"],
    "zipped_divide": [
        "cl.zipped_divide(@ROW, (3, 4))",
        "cl.zipped_divide(@COL, ({4}, {5}))",
        "cl.zipped_divide(@ID, (3, (2, 1)))",
    ],
    "inner_partition": [
        "cl.inner_partition(@ROW, (3, 4), ({1}, {0}))",
        "cl.inner_partition(@SWIZZLED, (4, 4), (1, {2}))",
    ],
    "local_partition": [
        "cl.local_partition(@ROW, cl.make_layout((2, 4)), {5})",
        "cl.local_partition(@COL, cl.make_layout((2, 3, 4)), {13}, (1, None, 1))",
    ],
    "local_tile": [
        "cl.local_tile(@ROW, (3, 4), ({1}, {0}))",
        "cl.local_tile(@ROW, (3, 4), ({1}, None))",
        "cl.local_tile(@COL, (3, 2, 4), ({1}, 0, {1}), (1, None, 1))",
        "cl.local_tile(@ID, (3, (2, 1)), ({1}, 2))",
        "cl.local_tile(@SWIZZLED, (4, 8), ({1}, 1))",
    ],
    "outer_partition": ["cl.outer_partition(@ROW, (3, 4), ({1}, {2}))"],
}

HOLE = re.compile(r"\{(\d+)\}")


def expression(case: str) -> str:
    """The expression with its layouts written out, its holes still open."""
    while "@" in case:
        case = re.sub(r"@([A-Z]+)", lambda m: LAYOUTS[m[1]], case)
    return case


def variants(case: str) -> dict[str, frozenset[int]]:
    """Which holes are known only at run time: none, each alone, all."""
    holes = sorted({int(n) for n in HOLE.findall(expression(case))})
    found = {"static": frozenset[int]()}
    if len(holes) > 1:
        found.update({f"run-time {n}": frozenset({n}) for n in holes})
    if holes:
        found["run-time"] = frozenset(holes)
    return found


def source(case: str, dynamic: frozenset[int]) -> str:
    """The expression as Python; the int n known only at run time is called d<n>."""
    return HOLE.sub(lambda m: f"d{m[1]}" if int(m[1]) in dynamic else m[1], expression(case))


NAMES = {"cl": cl, "double": double, "plus": plus, "second": second, "twice": twice, "Float16": Float16}
