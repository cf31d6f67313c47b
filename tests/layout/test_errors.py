# SPDX-License-Identifier: Apache-2.0
"""Every error of the algebra, word for word: what was asked, the rule, and the mend."""

from __future__ import annotations

import pytest

from numba_cute import layout as cl
from numba_cute.layout import layout_from_str as L
from numba_cute.seam import CuteError

ERRORS = [
    (
        lambda: cl.make_layout((4, 8), stride=(1, (4, 2))),
        "stride=(1,(4,2)) does not match shape=(4,8): give one stride for each extent, nested in the same way",
    ),
    (
        lambda: cl.make_layout((4, -8)),
        "shape=(4,-8): an extent is 0 or more, got -8",
    ),
    (
        lambda: cl.make_layout((4, 2.5)),
        "shape=2.5 is not an integer or tuple of integers: give ints, nested as you like",
    ),
    (
        lambda: cl.Layout((4, True), (1, 4)),
        "shape=(4,True): True is not an integer; build layouts with make_layout",
    ),
    (
        lambda: cl.Layout(4, "x"),
        "stride=x: 'x' is not an integer; build layouts with make_layout",
    ),
    (
        lambda: cl.make_layout((L("S<3,4,3> o 0 o 8:1"), L("8:1"))),
        "S<3,4,3> o 0 o 8:1 cannot become a mode of a layout: it has no strides; concatenate its outer layout",
    ),
    (
        lambda: cl.make_ordered_layout((4, 8), (0, (1, 2))),
        "order=(0,(1,2)) does not match shape=(4,8): give one rank of order for each mode",
    ),
    (
        lambda: cl.make_ordered_layout((4, 8), (0, 1, 2)),
        "order=(0,1,2) does not match shape=(4,8): give one rank of order for each mode",
    ),
    (
        lambda: cl.ComposedLayout(3, 0, L("8:1")),
        "inner=3: give a Swizzle or a layout",
    ),
    (
        lambda: cl.ComposedLayout(L("8:1"), 0, (8, 1)),
        "outer=(8, 1): give a layout",
    ),
    (
        lambda: cl.Swizzle(-1, 4, 3),
        "S<-1,4,3>: bits and base must be 0 or more",
    ),
    (
        lambda: cl.Swizzle(3, 4, 2),
        "S<3,4,2>: the two bit fields overlap: |shift| must be at least bits=3",
    ),
    (
        lambda: cl.Swizzle(3, 4.5, 2),
        "base=4.5 is not an integer",
    ),
    (
        lambda: cl.make_swizzle(3, 4, 3)((1, 2)),
        "S<3,4,3> maps integer offsets, not (1, 2)",
    ),
    (
        lambda: cl.E(-1),
        "mode=-1: a basis stride names a mode by a path of indices >= 0, as in E(0)",
    ),
    (
        lambda: cl.basis_get(cl.E(2), (4, 8)),
        "basis stride 1@2 names a mode that (4,8) does not have",
    ),
    (
        lambda: cl.size((4, 8), [2]),
        "mode=[2]: (4,8) has no mode 2 there, only 0 to 1",
    ),
    (
        lambda: cl.get(L("(4,(2,3)):(1,(4,8))"), [1, 2]),
        "mode=[1, 2]: (4,(2,3)) has no mode 2 there, only 0 to 1",
    ),
    (
        lambda: cl.stride((4, 8)),
        "stride: (4, 8) is not a layout",
    ),
    (
        lambda: L("S<3,4,3> o 0 o 8:1").stride,
        "S<3,4,3> o 0 o 8:1 has no strides: ask its outer layout, 8:1",
    ),
    (
        lambda: cl.coalesce((4, 8)),
        "(4, 8) is not a layout: make one with make_layout",
    ),
    (
        lambda: L("(4,8):(1,4)")((1, 2, 3)),
        "coordinate (1,2,3) has 3 modes, the shape (4,8) has 2: give one index for each mode, or one integer for all",
    ),
    (
        lambda: L("(4,8):(1,4)")(((1, 1), 2)),
        "coordinate (1,1) is deeper than the shape 4 it indexes",
    ),
    (
        lambda: cl.slice_(L("(4,8):(1,4)"), (None, None, 0)),
        "the coordinate (_,_,0) does not match (4,8) in rank: give one index a mode",
    ),
    (
        lambda: cl.idx2crd((1, 2, 3), (4, 8)),
        "idx2crd: idx=(1,2,3) and shape=(4,8) differ in rank: give one index a mode",
    ),
    (
        lambda: cl.idx2crd((1, 2), 8),
        "idx2crd: idx=(1,2) is deeper than the shape 8",
    ),
    (
        lambda: cl.increment_coord((1, 2, 3), (4, 8)),
        "increment_coord: coord=(1,2,3) does not match shape=(4,8) in rank",
    ),
    (
        lambda: cl.elem_less((1, 2), (4, (2, 2))),
        "elem_less: 2 and (2,2) differ in profile: give congruent tuples",
    ),
    (
        lambda: cl.select((4, 8), (2,)),
        "select: mode=[2]: the modes of (4,8) are 0 to 1",
    ),
    (
        lambda: cl.group_modes(L("(4,8):(1,4)"), 2),
        "group_modes: [2, -1) of (4,8):(1,4): the modes are 0 to 1",
    ),
    (
        lambda: cl.append(L("(4,8):(1,4)"), 3),
        "append: elem=3 cannot be a mode of the layout (4,8):(1,4): give a layout",
    ),
    (
        lambda: cl.append((4, 8), 1, 1),
        "append: (4,8) has 2 modes, more than up_to_rank=1",
    ),
    (
        lambda: cl.unflatten((1, 2), (1, (2, 3))),
        "unflatten: 2 values for profile=(1,(2,3)), which has 3 leaves",
    ),
    (
        lambda: cl.transform_leaf(max, (1, 2), (1, 2, 3)),
        "transform_leaf: (1,2,3) (rank 3) does not match the first tuple=(1,2) (rank 2): give tuples of the same rank",
    ),
    (
        lambda: cl.repeat_as_tuple(1, -1),
        "repeat_as_tuple: n=-1: a tuple has 0 or more elements",
    ),
    (
        lambda: cl.product_like((2, 3), (1, 1, 1)),
        "product_like: (2,3) (rank 2) does not match target_profile=(1,1,1) (rank 3): give tuples of the same rank",
    ),
    (
        lambda: cl.shape_div(6, 4),
        "shape_div: of 6 and 4 neither divides the other: choose extents that do",
    ),
    (
        lambda: cl.round_up((4,), (2, 2)),
        "round_up: b=(2,2) has more modes than a=(4)",
    ),
    (
        lambda: cl.ceil_div(8, 0),
        "ceil_div: tiler=0 must be positive",
    ),
    (
        lambda: cl.ceil_div((8,), (2, 2)),
        "ceil_div: tiler=(2,2) has more modes than input=(8)",
    ),
    (
        lambda: cl.add_coord(1, (2, 3)),
        "the coordinates 1 and (2,3) cannot be added: give tuples of the same profile",
    ),
    (
        lambda: cl.coalesce(L("(4,8):(1,4)"), target_profile=(1, 1, 1)),
        "target_profile=(1,1,1) has more modes than the layout (4,8):(1,4)",
    ),
    (
        lambda: cl.composition(L("(6,4):(1,7)"), L("4:4")),
        "composition: (6,4):(1,7) o 4:4 is not a layout: 4 steps of 4 do not divide its mode 0, 6:1: choose "
        "extents and strides that divide the modes they cross",
    ),
    (
        lambda: cl.composition(L("(2,3):(1,10)"), L("(2,2):(1,1)")),
        "composition: (2,3):(1,10) o (2,2):(1,1) is not a layout: the modes of the right side together reach 2 "
        "in its mode 0, of extent 2: choose modes that do not carry into the next one",
    ),
    (
        lambda: cl.composition(L("(4,4):(1,5)"), L("(2,2):(4,-1)")),
        "composition: (4,4):(1,5) o (2,2):(4,-1) is not a layout: the right side steps both ways through its modes: "
        "choose strides of one sign",
    ),
    (
        lambda: cl.composition(L("(6,4):(1,7)"), (2, 2, 2)),
        "composition: the tiler (2,2,2) has 3 modes, the layout (6,4):(1,7) only 2",
    ),
    (
        lambda: cl.composition(L("(6,4):(1,7)"), cl.make_swizzle(1, 0, 2)),
        "composition: (6,4):(1,7) o S<1,0,2> is not a swizzle: the layout must map the swizzle's bits to bits in order",
    ),
    (
        lambda: cl.composition(L("(6,4):(1,7)"), [2, 2]),
        "tiler=[2, 2] is not an integer",
    ),
    (
        lambda: cl.complement(L("(4,4):(4,6)"), 64),
        "complement: (4,4):(4,6) has none that is a layout: the mode of stride 6 begins within the reach of that of "
        "stride 4, and is no multiple of it; choose strides that are multiples of what lies below them",
    ),
    (
        lambda: cl.left_inverse(L("(2,2):(2,3)")),
        "left_inverse: (2,2):(2,3) has none that is a layout: its stride 3 must be a multiple of the stride "
        "2 below it, and beyond what that one reaches (4)",
    ),
    (
        lambda: cl.right_inverse(cl.make_composed_layout(L("8:1"), 0, L("8:1"))),
        "8:1 o 0 o 8:1 has no inverse here: its inner function 8:1 is not a swizzle",
    ),
    (
        lambda: cl.logical_divide(L("(4,8):(1,4)"), (2, 2, 2)),
        "logical_divide: the tiler (2,2,2) has 3 modes, the layout (4,8):(1,4) only 2",
    ),
    (
        lambda: cl.zipped_divide(L("(4,8):(1,4)"), (None, 2)),
        "the tiler leaves the mode 4 as it is, which is not a pair: give its whole extent",
    ),
    (
        lambda: cl.logical_product(L("(4,8):(1,4)"), (2, 2, 2)),
        "logical_product: the tiler (2,2,2) has 3 modes, the layout (4,8):(1,4) only 2",
    ),
    (
        lambda: cl.tile_to_shape(L("(8,8):(8,1)"), 64, 0),
        "tile_to_shape: the atom (8,8):(8,1) has more modes than trg_shape=(64)",
    ),
    (
        lambda: cl.recast_layout(0, 8, L("8:1")),
        "recast_layout: widths of 0 and 8 bits: give positive widths",
    ),
    (
        lambda: cl.recast_layout(24, 8, L("S<1,4,3> o 0 o 8:1")),
        "recast_layout: a swizzle cannot scale by 3: use widths whose ratio is a power of two",
    ),
    (
        lambda: cl.recast_layout(32, 8, L("S<1,4,3> o 2 o 8:1")),
        "recast_layout: the offset 2 of S<1,4,3> o 2 o 8:1 is not a multiple of 4 elements",
    ),
    (
        lambda: cl.recast_layout(32, 8, cl.make_identity_layout((8, 4))),
        "recast_layout: the basis stride 1@0 counts coordinates, not elements: recast the tensor itself",
    ),
    (
        lambda: cl.get_swizzle_portion(cl.make_composed_layout(L("8:1"), 0, L("8:1"))),
        "8:1 o 0 o 8:1 is not a swizzled layout: its inner function is 8:1",
    ),
    (
        lambda: cl.make_layout_image_mask(L("(2,2):(1,2)"), (0, 0), 2),
        "make_layout_image_mask: mode=2, coord=(0,0) of the layout (2,2):(1,2) of rank 2",
    ),
    (
        lambda: cl.make_layout_image_mask(L("(8,4):(1,8)"), (0, 0), 1),
        "make_layout_image_mask: mode 1 of (8,4):(1,8) reaches offset 24: a mask has 16 bits",
    ),
    (
        lambda: L("(4,8:(1,4)"),
        "'(4,8:(1,4)' is not a layout in CuTe's notation: , or ) is expected at ''",
    ),
    (
        lambda: L("4:1x"),
        "'4:1x' is not a layout in CuTe's notation: nothing may follow at 'x'",
    ),
    (
        lambda: L("S<1,2,3> o 4:1"),
        "'S<1,2,3> o 4:1' is not a layout in CuTe's notation: a composed layout is written inner o offset o outer",
    ),
    (
        lambda: L("(4,a)"),
        "'(4,a)' is not a layout in CuTe's notation: an integer, _ or ( is expected at 'a)'",
    ),
]


@pytest.mark.parametrize(("call", "message"), ERRORS, ids=[m[:40] for _, m in ERRORS])
def test_errors_say_what_was_asked_the_rule_and_the_mend(call, message):
    with pytest.raises(CuteError) as e:
        call()
    assert str(e.value) == message
