# SPDX-License-Identifier: Apache-2.0
"""Worked examples: results that can be checked by hand."""

from __future__ import annotations

import pytest

from numba_cute import layout as cl
from numba_cute.layout import layout_from_str as L

E = cl.E


def test_construction():
    assert repr(cl.make_layout((4, 8))) == "(4,8):(1,4)"
    assert repr(cl.make_layout((4, 8), stride=(8, 1))) == "(4,8):(8,1)"
    assert repr(cl.make_layout((2, (1, 6)))) == "(2,(1,6)):(1,(0,2))"
    assert repr(cl.make_layout([4, [2, 3]])) == "(4,(2,3)):(1,(4,8))"
    assert repr(cl.make_layout((L("4:1"), L("(2,3):(4,8)")))) == "(4,(2,3)):(1,(4,8))"
    assert repr(cl.make_ordered_layout((4, 8, 2), (2, 0, 1))) == "(4,8,2):(16,1,8)"
    assert repr(cl.make_layout_like(L("(4,8,2):(7,100,0)"))) == "(4,8,2):(1,4,0)"
    assert repr(cl.make_identity_layout((4, (2, 3)))) == "(4,(2,3)):(1@0,(1@0@1,1@1@1))"
    assert cl.make_shape(4, (2, 3)) == cl.make_stride(4, (2, 3)) == cl.make_coord(4, (2, 3)) == (4, (2, 3))
    assert cl.make_tile(8, None) == (8, None)


@pytest.mark.parametrize(
    ("query", "value"),
    [
        (cl.size, 24),
        (cl.cosize, 58),
        (cl.rank, 2),
        (cl.depth, 2),
        (cl.shape, (4, (2, 3))),
        (cl.stride, (1, (30, 12))),
        (cl.front, L("4:1")),
        (lambda a: cl.get(a, [1, 0]), L("2:30")),
        (lambda a: a[1], L("(2,3):(30,12)")),
        (len, 2),
        (lambda a: cl.size(a, [1]), 6),
        (lambda a: cl.rank(a, [1]), 2),
        (lambda a: cl.shape_at(a, (1, 1)), 3),
        (lambda a: cl.stride_at(a, 1), (30, 12)),
        (lambda a: cl.leading_dim(a.shape, a.stride), 0),
        (lambda a: cl.is_major(0, a.stride), True),
        (lambda a: cl.is_major(1, a.stride), False),
        (cl.is_static, True),
        (lambda a: cl.is_congruent(a, (1, (2, 3))), True),
        (lambda a: cl.is_congruent(a, (1, 2)), False),
        (lambda a: cl.is_weakly_congruent((1, 2), a), True),
        (lambda a: cl.crd2idx((3, (1, 2)), a), 57),
        (lambda a: cl.crd2idx(23, a), 57),
        (lambda a: cl.crd2idx((3, 5), a), 57),
        (lambda a: cl.get_divisibility(a.stride[1][0]), 30),
    ],
)
def test_queries(query, value):
    assert query(L("(4,(2,3)):(1,(30,12))")) == value


def test_shapes_of_tilers():
    assert cl.shape((L("4:2"), 3)) == (4, 3) and cl.size((L("4:2"), (3, L("2:1")))) == 24


def test_sizes_in_bytes():
    class Bits4:
        width = 4

    assert cl.size_in_bytes(Bits4, L("(3,3):(1,3)")) == 5
    assert cl.size_in_bytes(Bits4, None) == 0


def test_tuples():
    assert cl.flatten(((1, 2), 3)) == (1, 2, 3) and cl.flatten(4) == 4 and cl.flatten_to_tuple(4) == (4,)
    assert cl.unflatten((1, 2, 3), (0, (0, 0))) == (1, (2, 3))
    assert cl.product((2, (3, 4))) == 24 and cl.product_each((2, (3, 4))) == (2, 12)
    assert cl.product_like(((2, 3), (4, 5)), (1, (1, 1))) == (6, (4, 5))
    assert cl.group_modes((1, 2, 3, 4), 1, 3) == (1, (2, 3), 4) and cl.group_modes((1, 2, 3), 1) == (1, (2, 3))
    assert cl.select((5, 6, 7), [2, 0]) == (7, 5)
    assert cl.append((1, 2), 3) == (1, 2, 3) and cl.append((1, 2), 3, 4) == (1, 2, 3, 3) and cl.prepend(1, 2) == (2, 1)
    assert cl.append_ones((2, 3), 4) == (2, 3, 1, 1) and cl.prepend_ones(L("2:3"), 2) == L("(1,2):(0,3)")
    assert cl.tuple_cat((1, 2), 3, ((4,),)) == (1, 2, 3, (4,))
    assert cl.transform_leaf(lambda a, b: a + b, (1, (2, 3)), (10, (20, 30))) == (11, (22, 33))
    assert cl.filter_tuple(lambda x, keep: (x,) if keep else (), (1, 2, 3), (True, False, True)) == (1, 3)
    assert cl.repeat(7, 1) == 7 and cl.repeat(7, 2) == (7, 7) and cl.repeat_as_tuple(7, 1) == (7,)
    assert cl.repeat_like(0, (1, (2, 3))) == (0, (0, 0))
    assert cl.wrap(3) == (3,) and cl.unwrap(((3,),)) == 3 and cl.unwrap((1, 2)) == (1, 2)
    assert (
        cl.shape_div((4, 6), 8) == (1, 3) and cl.shape_div(12, (3, 2)) == 2 and cl.shape_div((8, 6), (2, 3)) == (4, 2)
    )
    assert cl.ceil_div(10, 4) == 3 and cl.ceil_div((10, 7), (4,)) == (3, 7) and cl.ceil_div(16, L("4:2")) == (2, 2)
    assert cl.round_up((10, 7), (4,)) == (12, 7)
    assert cl.has_underscore((1, (None, 2))) and not cl.has_underscore((1, 2))


def test_coordinates():
    assert cl.idx2crd(23, (4, (2, 3))) == (3, (1, 2)) and cl.idx2crd((3, 5), (4, (2, 3))) == (3, (1, 2))
    assert cl.idx2crd(25, (4, 3)) == (1, 6), "the last mode is not bounded"
    assert cl.increment_coord((3, (1, 0)), (4, (2, 3))) == (0, (0, 1))
    assert cl.increment_coord((3, (1, 0)), (4, (2, 3)), 1) == (3, (0, 1))
    assert cl.increment_coord((3, 2), (4, 3)) == (0, 3), "one past the end"
    assert cl.elem_less((3, (1, 2)), (4, (2, 3))) and not cl.elem_less((3, (2, 0)), (4, (2, 3)))
    assert cl.add_coord((1, (2, 3)), (10, (20,))) == (11, (22, 3))


def test_coalesce_and_filter():
    assert cl.coalesce(L("(2,(1,6)):(1,(6,2))")) == L("12:1")
    assert cl.coalesce(L("(2,(1,6)):(1,(6,2))"), target_profile=(1, 1)) == L("(2,6):(1,2)")
    assert cl.coalesce(L("(1,1):(3,4)")) == L("1:0")
    assert cl.filter(L("(2,4,3):(0,1,0)")) == L("4:1") and cl.filter_zeros(L("(2,4):(0,1)")) == L("(1,4):(0,1)")


@pytest.mark.parametrize(
    ("lhs", "rhs", "result"),
    [
        ("(6,2):(8,2)", "(4,3):(3,1)", "((2,2),3):((24,2),8)"),
        ("20:2", "(5,4):(4,1)", "(5,4):(8,2)"),
        ("(10,2):(16,4)", "(5,4):(1,5)", "(5,(2,2)):(16,(80,4))"),
        ("(4,8):(16,1)", "2:3", "2:48"),
        ("(4,8):(16,1)", "8:0", "8:0"),
        ("(12,(4,8)):(59,(13,1))", "(_,8)", "(12,(4,2)):(59,(13,1))"),
        ("(8,4):(1@0,1@1)", "(4,2):(2,8)", "(4,2):(2@0,1@1)"),
        ("(8,4):(4,1)", "(4,2):(1@1,4@0)", "(4,2):(1,16)"),
        ("8:2", "(2,2):(1,-2)", "(2,2):(2,-4)"),
    ],
)
def test_composition(lhs, rhs, result):
    assert cl.composition(L(lhs), L(rhs)) == L(result)


def test_composition_of_swizzles():
    s = cl.make_swizzle(2, 0, 2)
    assert cl.composition(s, L("16:1")) == L("S<2,0,2> o 0 o 16:1")
    assert cl.composition(L("S<2,0,2> o 0 o 16:1"), L("4:4")) == L("S<2,0,2> o 0 o 4:4")
    scaled = cl.composition(L("16:8"), s)
    assert scaled == L("S<2,3,2> o 0 o 16:8")
    nested = cl.make_composed_layout(L("(4,4):(4,1)"), 1, L("(2,2):(1,4)"))
    assert [nested(i) for i in range(4)] == [4, 8, 5, 9]
    inner_coordinates = cl.make_composed_layout(L("(4,4):(4,1)"), (1, 0), L("(2,2):(1@0,1@1)"))
    assert [inner_coordinates(i) for i in range(4)] == [4, 8, 5, 9]


@pytest.mark.parametrize(
    ("layout", "target", "result"),
    [
        ("4:1", 24, "6:4"),
        ("6:4", 24, "4:1"),
        ("(4,6):(1,4)", 24, "1:0"),
        ("4:2", 24, "(2,3):(1,8)"),
        ("(2,4):(1,6)", 24, "3:2"),
        ("(2,2):(1,6)", 24, "(3,2):(2,12)"),
        ("4:0", 6, "6:1"),
        ("4:1", 10, "3:4"),
    ],
)
def test_complement(layout, target, result):
    assert cl.complement(L(layout), target) == L(result)


def test_inverses():
    assert cl.right_inverse(L("(4,8):(8,1)")) == L("(8,4):(4,1)")
    assert cl.right_inverse(L("(4,8):(1,5)")) == L("4:1"), "what lies before the first gap"
    assert cl.right_inverse(L("(4,8):(2,16)")) == L("1:0")
    assert cl.left_inverse(L("(4,8):(1,5)")) == L("(5,8):(1,4)")
    assert cl.right_inverse(cl.make_swizzle(3, 4, 3)) == cl.make_swizzle(3, 4, 3)
    assert cl.right_inverse(L("(4,8):(1@1,1@0)")) == L("(8,4):(4,1)")
    assert cl.nullspace(L("(2,3,4):(1,0,2)")) == L("3:2")
    assert cl.max_common_layout(L("(4,8):(1,4)"), L("(4,8):(1,16)")) == L("4:1")
    assert cl.max_common_vector(L("(4,8):(1,4)"), L("(4,8):(8,1)")) == 1
    swizzled = L("S<3,3,3> o 0 o (64,8):(1,64)")
    assert cl.max_common_vector(swizzled, L("(64,8):(1,100)")) == 8, "a swizzle keeps 2^base elements together"
    assert cl.max_common_layout(L("(4,8):(1,100)"), swizzled) == L("4:1")


def test_divides():
    a = L("(8,32):(32,1)")
    assert cl.logical_divide(L("16:1"), 4) == L("(4,4):(1,4)")
    assert cl.logical_divide(L("24:1"), L("4:2")) == L("(4,(2,3)):(2,(1,8))")
    assert cl.logical_divide(a, (4, 8)) == L("((4,2),(8,4)):((32,128),(1,8))")
    assert cl.zipped_divide(a, (4, 8)) == L("((4,8),(2,4)):((32,1),(128,8))")
    assert cl.tiled_divide(a, (4, 8)) == L("((4,8),2,4):((32,1),128,8)")
    assert cl.flat_divide(a, (4, 8)) == L("(4,8,2,4):(32,1,128,8)")
    assert cl.zipped_divide(a, (4,)) == L("((4),(2,32)):((32),(128,1))"), "modes beyond the tiler are rest"
    assert cl.logical_divide(L("10:1"), 4) == L("(4,3):(1,4)"), "rounds up"


def test_parts():
    a = L("(8,32):(32,1)")
    assert cl.local_tile(a, (4, 8), (1, 2)) == (L("(4,8):(32,1)"), 144)
    assert cl.local_tile(a, (4, 8), (1, None)) == (L("(4,8,4):(32,1,8)"), 128)
    assert cl.local_tile(a, (4, 16, 8), (1, 9, 2), proj=(1, None, 1)) == (L("(4,8):(32,1)"), 144)
    assert cl.local_tile(a, (4, 8), 3) == (L("(4,8):(32,1)"), 136), "an integer counts the tiles"
    assert cl.local_partition(a, L("(2,4):(4,1)"), 6) == (L("(4,8):(64,4)"), 34)
    assert cl.outer_partition(a, (4, 8), (1, 2)) == (L("(2,4):(128,8)"), 34)
    identity = cl.make_identity_layout((8, 32))
    assert cl.local_tile(identity, (4, 8), (1, 2)) == (L("(4,8):(1@0,1@1)"), (4, 16))


def test_products():
    block, tiler = L("(2,5):(5,1)"), L("(3,4):(1,3)")
    assert cl.logical_product(block, tiler) == L("((2,5),(3,4)):((5,1),(10,30))")
    assert cl.blocked_product(block, tiler) == L("((2,3),(5,4)):((5,10),(1,30))")
    assert cl.raked_product(block, tiler) == L("((3,2),(4,5)):((10,5),(30,1))")
    assert cl.zipped_product(block, tiler) == L("((2,5),(3,4)):((5,1),(10,30))")
    assert cl.tiled_product(block, tiler) == L("((2,5),3,4):((5,1),10,30)")
    assert cl.flat_product(block, tiler) == L("(2,5,3,4):(5,1,10,30)")
    assert cl.logical_product(L("4:1"), 3) == L("(4,3):(1,4)")
    assert cl.tile_to_shape(L("(8,8):(8,1)"), (16, 32), (0, 1)) == L("((8,2),(8,4)):((8,64),(1,128))")
    assert cl.tile_to_shape(L("(8,8):(8,1)"), (16, 32), (1, 0)) == L("((8,2),(8,4)):((8,256),(1,64))")
    atom = L("S<3,4,3> o 0 o (8,64):(64,1)")
    assert cl.tile_to_shape(atom, (16, 64, 2), (0, 1, 2)) == L(
        "S<3,4,3> o 0 o ((8,2),(64,1),(1,2)):((64,512),(1,0),(0,1024))"
    )
    assert cl.make_layout_tv(L("(2,2):(2,1)"), L("(1,2):(0,1)")) == ((2, 4), L("((2,2),2):((4,1),2)"))


def test_slices():
    a = L("(4,(2,3),5):(1,(30,12),100)")
    assert cl.slice_(a, (None, (1, None), 2)) == L("(4,3):(1,12)")
    assert cl.slice_and_offset((None, (1, None), 2), a) == (L("(4,3):(1,12)"), 230)
    assert cl.dice(a, (None, (1, None), 2)) == L("(2,5):(30,100)")
    assert cl.slice_((1, (2, 3)), (None, (None, 0))) == (1, 2)
    assert cl.domain_offset((1, 2, 0), a) == (a, 13)
    s = L("S<1,0,1> o 0 o (2,2,4):(1,2,4)")
    assert cl.slice_and_offset((None, None, 3), s) == (L("S<1,0,1> o 0 o (2,2):(1,2)"), 12), "beyond the swizzle"
    assert cl.slice_and_offset((None, 1, 3), s) == (L("(2):(-1)"), 15), "where the bit that is read is set"
    assert cl.slice_and_offset((1, None, None), s) == (L("(2,4):(1,4)"), 1), "what changes is set"
    assert cl.domain_offset((1, 1, 0), s) == (L("S<1,0,1> o 3 o (2,2,4):(1,2,4)"), 0)


def test_swizzles():
    s = cl.make_swizzle(2, 0, 3)
    assert [s(i) for i in (0, 1, 8, 9, 16, 24, 31)] == [0, 1, 9, 8, 18, 27, 28]
    assert cl.Swizzle(0, 1, 2) == cl.make_swizzle(0, 4, 3) == cl.make_swizzle(3, 4, 2), "all the identity"
    assert repr(cl.make_swizzle(3, 4, -3)) == "S<3,4,-3>"
    assert cl.get_swizzle_portion(L("S<3,4,3> o 0 o 8:1")) == cl.make_swizzle(3, 4, 3)
    assert cl.get_swizzle_portion(L("8:1")) == cl.make_swizzle(0, 4, 3)
    assert cl.get_nonswizzle_portion(L("S<3,4,3> o 0 o 8:1")) == L("8:1") == cl.get_nonswizzle_portion(L("8:1"))


def test_recast():
    assert cl.recast_layout(32, 8, L("(16,4):(1,16)")) == L("(4,4):(1,4)")
    assert cl.recast_layout(8, 32, L("(4,4):(1,4)")) == L("(16,4):(1,16)")
    assert cl.recast_layout(16, 8, L("S<3,4,3> o 32 o (64,8):(1,64)")) == L("S<3,3,3> o 16 o (32,8):(1,32)")
    assert cl.recast_layout(8, 16, L("S<3,3,3> o 16 o (32,8):(1,32)")) == L("S<3,4,3> o 32 o (64,8):(1,64)")
    assert cl.recast_layout(16, 4, L("(16,2):(1,-16)")) == L("(4,2):(1,-4)")


def test_basis_strides():
    assert E(1) * 3 == 3 * E(1) == cl.ScaledBasis(3, (1,)) and repr(3 * E([1, 0])) == "3@0@1" and E(()) == 1
    assert cl.basis_value(3 * E(1)) == 3 and cl.basis_get(E(1), (5, 6)) == 6 and -E(0) == cl.ScaledBasis(-1, (0,))
    a = L("(4,(2,3)):(1@1,(2@0,4@0))")
    assert a((3, (1, 2))) == (10, 3) and a(0) == (0, 0)
    assert cl.as_coord(2 * E((1, 0))) == (0, (2,))
    assert cl.cosize(a) == 11 * 4


def test_image_masks_of_a_cluster():
    cluster = L("(2,4):(1,2)")
    assert cl.make_layout_image_mask(cluster, (1, 2), 0) == 0b00110000
    assert cl.make_layout_image_mask(cluster, (1, 2), 1) == 0b10101010


@pytest.mark.parametrize(
    "notation",
    [
        "(4,8):(1,4)",
        "4:1",
        "():()",
        "((4,1),8):((1,0),-4)",
        "(2,2):(3@0,1@0@1)",
        "S<3,4,3>",
        "(4,(_,-1))",
        "S<3,4,3> o 0 o (8,64):(64,1)",
        "(4,4):(4,1) o (1,0) o (2,2):(1@0,1@1)",
    ],
)
def test_notation_round_trips(notation):
    from numba_cute.layout.int_tuple import text

    assert text(L(notation)) == notation
