# SPDX-License-Identifier: Apache-2.0
"""Leaves known only at run time: the same functions, never looked at, and static wherever that is provable."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from numba_cute import layout as cl
from numba_cute.seam import CuteError, running
from numba_cute.seam.marks.decorators import HOW_STATIC

from .oracle import attempts, random_layout, refused
from .strategies import Comparing, Dyn, any_layouts, known, values

M, N = 96, 40
ROW = cl.make_layout((M, N), stride=(N, 1))
VARIANTS = {
    "dynamic shape": cl.make_layout((Dyn(M), Dyn(N)), stride=(N, 1)),
    "dynamic leading stride": cl.make_layout((Dyn(M), Dyn(N)), stride=(Dyn(N), 1)),
    "dynamic strides": cl.make_layout((Dyn(M), Dyn(N)), stride=(Dyn(N), Dyn(1))),
    "one dynamic mode": cl.make_layout((Dyn(M), N), stride=(N, 1)),
    "static shape, dynamic strides": cl.make_layout((M, N), stride=(Dyn(N), Dyn(1))),
}
OPERATIONS = {
    "logical_divide": lambda a: cl.logical_divide(a, (32, 8)),
    "logical_divide, ragged": lambda a: cl.logical_divide(a, (64, 16)),
    "logical_divide by layouts": lambda a: cl.logical_divide(a, (cl.make_layout((4, 2), stride=(1, 8)), 8)),
    "logical_divide of one mode": lambda a: cl.logical_divide(a, (None, 8)),
    "zipped_divide": lambda a: cl.zipped_divide(a, (32, 8)),
    "tiled_divide": lambda a: cl.tiled_divide(a, (32, 8)),
    "flat_divide": lambda a: cl.flat_divide(a, (32, 8)),
    "composition by mode": lambda a: cl.composition(a, (16, cl.make_layout(4, stride=2))),
    "group_modes": lambda a: cl.group_modes(a, 0, 2),
    "select": lambda a: cl.select(a, (1, 0)),
    "flatten": cl.flatten,
    "coalesce": cl.coalesce,
    "filter_zeros": cl.filter_zeros,
    "append": lambda a: cl.append(a, cl.make_layout(3, stride=7)),
    "make_layout of layouts": lambda a: cl.make_layout((a, cl.make_layout(2, stride=5))),
    "local_tile": lambda a: cl.local_tile(a, (32, 8), (2, None))[0],
    "local_partition": lambda a: cl.local_partition(a, cl.make_layout((8, 4)), 13)[0],
    "inner_partition": lambda a: cl.inner_partition(a, (32, 8), (1, 1))[0],
    "slice_": lambda a: cl.slice_(a, (None, 3)),
    "dice": lambda a: cl.dice(a, (None, 3)),
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_dynamic_layouts_give_the_static_result(operation, variant):
    want, got = OPERATIONS[operation](ROW), known(OPERATIONS[operation](VARIANTS[variant]))
    assert values(got) == values(want)


@pytest.mark.parametrize("variant", VARIANTS)
def test_sizes_and_offsets_of_dynamic_layouts(variant):
    a = VARIANTS[variant]
    assert known(cl.size(a)) == M * N and known(cl.cosize(a)) == M * N
    assert known(cl.local_tile(a, (32, 8), (2, 3))[1]) == ROW((64, 24))
    assert known(cl.local_tile(a, (32, 8), (Dyn(2), Dyn(3)))[1]) == ROW((64, 24))
    assert known(cl.local_partition(a, cl.make_layout((8, 4)), Dyn(13))[1]) == ROW((5, 1))
    assert known(cl.slice_and_offset((None, Dyn(3)), a)[1]) == 3
    assert known(a((Dyn(7), 2))) == ROW((7, 2))
    assert known(cl.domain_offset((Dyn(7), 2), a)[1]) == ROW((7, 2))


@given(any_layouts(min_stride=0), st.data())
def test_dynamic_coordinates_and_extents_map_alike(a, data):
    i = data.draw(st.integers(0, cl.size(a) - 1))
    some = st.booleans()

    def hide(x):
        return cl.transform_leaf(lambda leaf: Dyn(leaf) if data.draw(some) else leaf, x)

    hidden = cl.make_layout(hide(a.shape), stride=hide(a.stride))
    assert known(hidden(Dyn(i))) == a(i) == known(hidden(i))
    crd = cl.idx2crd(i, a.shape)
    assert known(hidden(hide(crd))) == a(crd)
    assert known(cl.idx2crd(Dyn(i), hidden.shape)) == crd
    assert values(known(cl.coalesce(hidden))) == values(a)
    assert values(known(cl.flatten(hidden))) == values(a)
    assert known(cl.product(hidden.shape)) == cl.size(a)


def test_what_is_static_stays_static():
    m, ld = Dyn(100), Dyn(128)
    a = cl.make_layout((m, 64), stride=(ld, 1))
    tiles = cl.zipped_divide(a, (16, 32))
    assert cl.is_static(tiles[0].shape) and tiles[0].shape == (16, 32)
    assert tiles.stride[0][1] == 1 and tiles.shape[1][1] == 2 and tiles.stride[1][1] == 32
    assert not cl.is_static(tiles) and not cl.is_static(a) and cl.is_static(cl.slice_(a, (0, None)))
    assert cl.make_layout((8, m)).stride[0] == 1 and cl.make_layout((8, m)).stride[1] == 8
    assert cl.crd2idx((0, 5), a) == 5
    assert repr(a) == "(?,64):(?,1)"
    assert cl.ceil_div(m, 1) is m and cl.size((m, 1)) is m


def test_dynamic_modes_merge_only_where_that_is_provable():
    m = Dyn(6)
    assert known(cl.coalesce(cl.make_layout((4, m), stride=(1, 4)))) == cl.make_layout(24)
    assert cl.rank(cl.coalesce(cl.make_layout((m, 4), stride=(1, m)))) == 2
    assert known(cl.coalesce(cl.make_layout((m, 4), stride=(0, 0)))) == cl.make_layout(24, stride=0)


def test_a_tile_crosses_static_modes_into_a_dynamic_one():
    a = cl.make_layout(((64, Dyn(6)), 8), stride=((1, Dyn(1000)), 64))
    static = known(a)
    for tile in (16, 64, 128):
        assert values(known(cl.logical_divide(a, (tile, 8)))) == values(cl.logical_divide(static, (tile, 8)))


def test_a_dynamic_swizzled_layout():
    s = cl.make_swizzle(3, 3, 3)
    a = cl.composition(s, cl.make_layout((64, 64), stride=(64, 1)))
    assert known(a((Dyn(9), Dyn(17)))) == a((9, 17))
    stages = cl.make_composed_layout(s, 0, cl.make_layout((8, 64, 4), stride=(64, 1, 512)))
    sliced, offset = cl.slice_and_offset((None, None, Dyn(3)), stages)
    assert cl.is_static(sliced), "a stage is a multiple of the swizzle's period, and leaves the layout static"
    assert known(offset) == 1536 and sliced == cl.composition(s, cl.make_layout((8, 64), stride=(64, 1)))
    near, none = cl.slice_and_offset((Dyn(5), None, 1), stages)
    assert [x + known(none) for x in values(known(near))] == [stages((5, j, 1)) for j in range(64)]


def test_identity_layouts_of_dynamic_shapes_give_coordinates():
    identity = cl.make_identity_layout((Dyn(M), Dyn(N)))
    assert identity((3, 4)) == (3, 4)
    tile, offset = cl.local_tile(identity, (32, 8), (Dyn(2), 3))
    assert known(offset) == (64, 24) and known(tile((1, 2))) == (1, 2)
    assert known(cl.add_coord(offset, tile((1, 2)))) == (65, 26)
    assert known(identity(Dyn(M + 5))) == (5, 1)


@pytest.mark.parametrize(("coord", "inside"), [((3, 4), True), ((4, 4), False), ((3, 5), False)])
def test_dynamic_coordinates_are_compared_at_run_time(coord, inside):
    with running(Comparing()):
        hidden = (Dyn(coord[0]), Dyn(coord[1]))
        assert known(cl.elem_less(hidden, (4, Dyn(5)))) == inside
        assert known(cl.elem_less((coord[0], hidden[1]), (4, 5))) == inside
        assert cl.elem_less((hidden[0], 9), (4, 5)) is False, "one static mode outside decides"


def test_dynamic_coordinates_advance_without_a_branch():
    assert known(cl.increment_coord((Dyn(3), (Dyn(1), 0)), (4, (2, 3)))) == (0, (0, 1))
    assert known(cl.increment_coord((Dyn(2), (Dyn(1), 0)), (4, (2, 3)))) == (3, (1, 0))
    assert known(cl.make_layout_image_mask(cl.make_layout((2, 4)), (Dyn(1), 0), 1)) == 0b10101010


def test_complement_of_one_dynamic_mode():
    assert known(cl.complement(cl.make_layout(Dyn(4), stride=Dyn(2)), Dyn(32))) == cl.make_layout((2, 4), stride=(1, 8))
    assert known(cl.ceil_div((Dyn(100), 7), (32, 2))) == (4, 4)
    assert known(cl.round_up((Dyn(100), 7), (32, 2))) == (128, 8)
    assert known(cl.recast_layout(32, 8, cl.make_layout((16, Dyn(4)), stride=(1, Dyn(16))))) == cl.make_layout((4, 4))


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (
            lambda: cl.composition(cl.make_layout((Dyn(6), 4), stride=(4, 1)), 8),
            "composition: (?,4):(4,1) o 8:1 is not a layout: mode 0 of the left side, ?:4, is crossed, and its extent "
            "is known only at run time: make it static, promise what divides it (cute.assume), or tile each mode by "
            "itself",
        ),
        (
            lambda: cl.complement(cl.make_layout((4, 4), stride=(1, Dyn(8))), 64),
            f"complement: a stride of (4,4):(1,?) is known only at run time: {HOW_STATIC}",
        ),
        (
            lambda: cl.left_inverse(cl.make_layout((4, 4), stride=(1, Dyn(8)))),
            f"left_inverse: a stride of (4,4):(1,?) is known only at run time: {HOW_STATIC}",
        ),
        (
            lambda: cl.make_ordered_layout((4, 4), (Dyn(0), 1)),
            f"order is known only at run time, and must be static here: {HOW_STATIC}",
        ),
    ],
)
def test_where_a_static_leaf_is_needed_the_error_says_so(operation, message):
    with pytest.raises(CuteError) as e:
        operation()
    assert str(e.value) == message


def test_results_that_involve_run_time_leaves_are_never_kept():
    m = Dyn(8)
    a = cl.make_layout((m, 4), stride=(4, 1))
    first, second = cl.logical_divide(a, (2, 2)), cl.logical_divide(a, (2, 2))
    assert first is not second and first.shape[0][1] is not second.shape[0][1]
    assert not cl.is_static(cl.E(0) * m) and not cl.is_static(cl.make_composed_layout(cl.make_swizzle(1, 2, 3), m, a))
    static = cl.make_layout((8, 4))
    assert cl.logical_divide(static, (2, 2)) is cl.logical_divide(static, (2, 2))


# ------------------------------------------------------------------ what is known to divide a leaf


@pytest.mark.parametrize(
    ("lhs", "rhs", "spelled"),
    [
        # a run-time count of steps across a static mode, which it is known to fill
        ("(8,4):(1,10)", (Dyn(32, 8), 1), "(8,?):(1,10)"),
        ("(8,4,5):(1,10,100)", (Dyn(96, 32), 1), None),
        # steps that are known to be whole modes
        ("(4,6):(6,1)", (3, Dyn(8, 4)), None),
        ("(4,6):(6,1)", (Dyn(3), Dyn(8, 8)), None),
        # a static tile within a run-time mode, which is known to be a multiple of it
        (((Dyn(64, 16), 4), (4, 1)), (8, 1), "8:4"),
        (((Dyn(64, 16), 4), (4, 1)), (4, 4), "4:16"),
        (((Dyn(48, 16), 4), (Dyn(8, 8), 1)), (16, 1), None),
    ],
)
def test_compositions_that_divisors_prove(lhs, rhs, spelled):
    a = cl.layout_from_str(lhs) if isinstance(lhs, str) else cl.make_layout(lhs[0], stride=lhs[1])
    b = cl.make_layout(rhs[0], stride=rhs[1])
    got = cl.composition(a, b)
    whole, inner = known(a), known(b)
    assert values(known(got)) == [whole(inner(i)) for i in range(cl.size(inner))]
    if spelled:
        assert repr(got) == spelled


@pytest.mark.parametrize(
    ("lhs", "rhs"),
    [
        (((8, 4), (1, 10)), (Dyn(32, 4), 1)),
        (((Dyn(64, 4), 4), (4, 1)), (8, 1)),
        (((4, 6), (6, 1)), (3, Dyn(8, 2))),
        (((8, 4), (1, 10)), (Dyn(4), 1)),
    ],
)
def test_what_divisors_do_not_prove_is_refused(lhs, rhs):
    with pytest.raises(CuteError, match="known only at run time"):
        cl.composition(cl.make_layout(lhs[0], stride=lhs[1]), cl.make_layout(rhs[0], stride=rhs[1]))


@given(any_layouts(min_stride=0), st.data())
def test_compositions_with_hidden_leaves_are_right_or_refused(a, data):
    """Each leaf may be hidden, with what divides it known in part."""

    def hide(leaf):
        if leaf == 0 or not data.draw(st.booleans()):
            return leaf
        return Dyn(leaf, data.draw(st.sampled_from([d for d in range(1, leaf + 1) if leaf % d == 0])))

    count, step = data.draw(st.integers(1, 16)), data.draw(st.integers(0, 12))
    b = cl.make_layout(count, stride=step)
    hidden = cl.make_layout(cl.transform_leaf(hide, a.shape), stride=cl.transform_leaf(hide, a.stride))
    try:
        got = cl.composition(hidden, cl.make_layout(hide(count), stride=hide(step)))
    except CuteError:
        return
    assert values(known(got)) == [a(b(i)) for i in range(count)]


@pytest.mark.parametrize("seed", range(3))
def test_divides_and_products_with_hidden_leaves_are_right_or_refused(seed):
    """Each leaf may be hidden, with what divides it known in part: nothing is taken for granted that is not so."""
    right = 0
    for r in attempts(seed, 1200):
        a, tile = random_layout(r, 3), random_layout(r, 2)

        def hide(leaf, r=r):
            if leaf < 2 or r.random() < 0.5:
                return leaf
            return Dyn(leaf, r.choice([d for d in range(1, leaf + 1) if leaf % d == 0]))

        def hidden(x, hide=hide):
            return cl.Layout(cl.transform_leaf(hide, x.shape), cl.transform_leaf(hide, x.stride))

        for operation in (cl.logical_divide, cl.logical_product):
            got = refused(operation, hidden(a), hidden(tile))
            if isinstance(got, str):
                continue
            want = operation(a, tile)
            right += 1
            assert values(known(got)) == values(want), (operation, a, tile, got)
    assert right > 300


def test_divisors_make_division_exact_and_vectors_long():
    m = Dyn(48, 16)
    assert cl.ceil_div(m, 8).divisor == 2 and known(cl.ceil_div(m, 8)) == 6
    assert cl.get_divisibility(cl.make_layout((m, 5)).stride[1]) == 16
    assert cl.max_common_vector(cl.make_layout((m, 4)), cl.make_layout(64)) == 16
    assert cl.max_common_vector(cl.make_layout((Dyn(48), 4)), cl.make_layout(64)) == 1
    assert repr(cl.make_layout((m, 4))) == "(?{div=16},4):(1,?{div=16})"
    stages = cl.make_composed_layout(cl.make_swizzle(3, 3, 3), 0, cl.make_layout((64, 4), stride=(1, Dyn(1024, 512))))
    sliced, offset = cl.slice_and_offset((None, Dyn(2)), stages)
    assert cl.is_static(sliced) and known(offset) == 2048
