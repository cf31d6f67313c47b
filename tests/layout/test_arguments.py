# SPDX-License-Identifier: Apache-2.0
"""What is not a shape, coordinate or mode is refused by every function that takes one, never taken for an extent."""

from __future__ import annotations

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import layout as cl
from numba_cute.layout import layout_from_str as L
from numba_cute.seam import CuteError

LAYOUT = L("(4,8):(1,4)")
SWIZZLED = L("S<1,2,3> o 0 o (4,8):(1,4)")
TENSOR = cute.make_tensor(cute.make_ptr(cute.Float32, 0, cute.AddressSpace.gmem), LAYOUT)

OF_SHAPES = {
    "idx2crd": lambda x: cute.idx2crd(9, x),
    "increment_coord": lambda x: cute.increment_coord((1, 2), x),
    "elem_less": lambda x: cute.elem_less((1, 2), x),
    "elem_less of a leaf": lambda x: cute.elem_less(3, x),
    "product": cute.product,
    "product, within a tuple": lambda x: cl.product((2, x)),
    "product_each": cute.product_each,
    "product_like": lambda x: cute.product_like((2, 3), x),
    "shape_div": lambda x: cute.shape_div(x, 4),
    "round_up": lambda x: cute.round_up(x, 4),
    "unflatten": lambda x: cl.unflatten((1,), x),
    "repeat_like": lambda x: cute.repeat_like(0, x),
    "make_ordered_layout": lambda x: cute.make_ordered_layout(x, (0, 1)),
    "make_identity_layout": cute.make_identity_layout,
}


@pytest.mark.parametrize("x", [LAYOUT, SWIZZLED, TENSOR], ids=["layout", "swizzled", "tensor"])
@pytest.mark.parametrize("function", OF_SHAPES)
def test_a_layout_where_a_shape_is_meant_is_refused(function, x):
    with pytest.raises(CuteError) as e:
        OF_SHAPES[function](x)
    assert f"{x} is not a shape, but has one: give its .shape, (4,8)" in str(e.value)


@pytest.mark.parametrize("x", [1.5, "ab", None, (4, "b")], ids=repr)
@pytest.mark.parametrize("function", [f for f in OF_SHAPES if f not in ("repeat_like", "unflatten", "product_like")])
def test_what_is_no_integer_is_no_shape(function, x):
    with pytest.raises(CuteError):
        OF_SHAPES[function](x)


def test_lists_and_numpy_integers_are_taken_as_tuples_and_ints():
    four, eight = np.int32(4), np.int64(8)
    assert cute.idx2crd(9, [4, [2, 4]]) == cute.idx2crd(np.int32(9), (four, (2, 4))) == (1, (0, 1))
    assert cute.crd2idx((1, 2), [4, 8]) == 9
    assert cute.product([4, [2, eight]]) == 64 and cute.product_each([4, [2, 8]]) == (4, 16)
    assert cute.size([4, 8]) == 32 and cute.rank([4, 8]) == 2 and cute.depth([4, [8]]) == 2
    assert cute.get([4, [8, 2]], [1, 0]) == 8 and cute.select([4, 8, 2], [2, 0]) == (2, 4)
    assert cute.group_modes([4, 8, 2], 0, 2) == ((4, 8), 2) and cute.flatten([4, 8]) == (4, 8)
    assert cute.increment_coord([3, 0], [4, 8]) == (0, 1) and cute.elem_less([3, 0], [four, eight])


OF_COORDINATES = {
    "idx2crd": lambda x: cute.idx2crd(x, (4, 8)),
    "crd2idx": lambda x: cute.crd2idx(x, LAYOUT),
    "crd2idx of a shape": lambda x: cute.crd2idx(x, (4, 8)),
    "increment_coord": lambda x: cute.increment_coord(x, (4, 8)),
    "elem_less": lambda x: cute.elem_less(x, (4, 8)),
    "slice_": lambda x: cute.slice_(LAYOUT, x),
    "slice_ of a mode": lambda x: cute.slice_(LAYOUT, (x, None)),
    "slice_and_offset": lambda x: cl.slice_and_offset((None, x), SWIZZLED),
    "dice": lambda x: cute.dice(LAYOUT, x),
    "domain_offset": lambda x: cute.domain_offset(x, LAYOUT),
    "layout(coord)": lambda x: LAYOUT(x),
}


@pytest.mark.parametrize("x", [LAYOUT, TENSOR, 1.5, "ab", (1, 2, 3), ((1, 2), 3)], ids=str)
@pytest.mark.parametrize("function", OF_COORDINATES)
def test_what_is_no_coordinate_of_the_shape_is_refused(function, x):
    if function == "slice_ of a mode" and isinstance(x, tuple) and x == (1, 2, 3):
        x = (1, 2)
    with pytest.raises(CuteError):
        OF_COORDINATES[function](x)


@pytest.mark.parametrize(
    "call",
    [
        lambda: cute.get((4, 8), 2),
        lambda: cute.get((4, 8), (0, 1)),
        lambda: cute.get((LAYOUT, 8), (0, 2)),
        lambda: cute.get(TENSOR, 0),
        lambda: cute.get(LAYOUT, LAYOUT),
        lambda: cute.get(LAYOUT, 0.5),
        lambda: cute.select(LAYOUT, (0, 2)),
        lambda: cute.select(LAYOUT, (-1,)),
        lambda: cute.group_modes(LAYOUT, 1, 3),
        lambda: cute.group_modes(LAYOUT, 1, 1),
        lambda: cute.group_modes(LAYOUT, LAYOUT),
        lambda: cute.increment_coord((1, 2), (4, 8), 2),
        lambda: cute.increment_coord(3, (4, 8), 0),
        lambda: cute.increment_coord((1, (2, 3)), (4, 8)),
        lambda: cute.crd2idx(3, None),
        lambda: cute.domain_offset((1, 1), (4, 8)),
        lambda: cute.ceil_div(LAYOUT, 1.5),
        lambda: cute.logical_divide(LAYOUT, LAYOUT.shape + (1,)),
        lambda: cute.logical_divide(LAYOUT, -2),
        lambda: cute.logical_divide(LAYOUT, cute.make_identity_layout((4, 8))),
    ],
)
def test_modes_and_tilers_that_are_none_are_refused(call):
    with pytest.raises(CuteError):
        call()


def test_a_mode_of_a_layout_within_a_tiler_is_its_mode():
    assert cl.get((LAYOUT, 8), (0, 1)) == L("8:4")


def test_indices_go_on_beyond_the_last_mode_alone():
    assert cute.idx2crd(100, (4, 8)) == (0, 25) and cute.crd2idx(100, LAYOUT) == 100
    assert cute.idx2crd((3, 100), (4, (2, 4))) == (3, (0, 50))
