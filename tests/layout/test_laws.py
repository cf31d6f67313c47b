# SPDX-License-Identifier: Apache-2.0
"""The laws of the algebra, on random layouts."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import assume, given, strategies as st

from numba_cute import layout as cl
from numba_cute.seam import CuteError

from .strategies import any_layouts, compact_layouts, injective_layouts, shapes, swizzles, values


def compose_or_skip(a, b):
    try:
        return cl.composition(a, b)
    except CuteError:
        assume(False)


@given(any_layouts(), any_layouts(max_rank=3))
def test_composition_is_function_composition(a, b):
    c = compose_or_skip(a, b)
    assert values(c) == [a(b(i)) for i in range(cl.size(b))]


@given(compact_layouts(), compact_layouts())
def test_composition_of_compact_layouts_has_the_shape_of_the_right_or_finer(a, b):
    c = compose_or_skip(a, b)
    assert cl.is_weakly_congruent(b.shape, c.shape)
    assert cl.product_like(c.shape, b.shape) == b.shape


@given(compact_layouts(), compact_layouts(max_rank=2), compact_layouts(max_rank=2))
def test_composition_is_associative(a, b, c):
    assume(cl.size(c) <= cl.size(b) <= cl.size(a))
    left, right = compose_or_skip(compose_or_skip(a, b), c), compose_or_skip(a, compose_or_skip(b, c))
    assert values(left) == values(right)


@given(shapes(), any_layouts(max_rank=3, min_stride=0))
def test_composition_with_a_basis_layout_maps_to_coordinates(shape, b):
    identity = cl.make_identity_layout(shape)
    c = compose_or_skip(identity, b)
    if c.maps_to_coordinates:
        used = [cl.add_coord(identity(0), c(i)) for i in range(cl.size(b))]
        assert used == [cl.idx2crd(b(i), shape) for i in range(cl.size(b))]


@given(any_layouts())
def test_coalesce_preserves_the_function_and_is_idempotent(a):
    c = cl.coalesce(a)
    assert values(c) == values(a) and cl.depth(c) <= 1 and cl.rank(c) <= len(cl.flatten_to_tuple(a.shape))
    assert cl.coalesce(c) == c


@given(any_layouts())
def test_coalesce_by_profile_preserves_the_function_of_each_mode(a):
    profile = (1,) * cl.rank(a)
    assume(isinstance(a.shape, tuple))
    c = cl.coalesce(a, target_profile=profile)
    assert cl.rank(c) == cl.rank(a)
    assert values(c) == values(a)
    assert cl.product_each(c.shape) == cl.product_each(a.shape)


@given(any_layouts())
def test_flatten_and_grouping_preserve_the_function(a):
    assert values(cl.flatten(a)) == values(a)
    if cl.rank(a) >= 2 and isinstance(a.shape, tuple):
        assert values(cl.group_modes(a, 1)) == values(a)
        assert values(cl.append_ones(a)) == values(a) == values(cl.prepend_ones(a))


@given(any_layouts())
def test_filter_keeps_the_image(a):
    assert set(values(cl.filter(a))) == set(values(a))
    assert cl.size(cl.nullspace(a)) * cl.size(cl.filter_zeros(a)) == cl.size(a)
    assert all(a(cl.nullspace(a)(i)) == 0 for i in range(cl.size(cl.nullspace(a))))


@given(injective_layouts(), st.integers(1, 200))
def test_complement_is_disjoint_ordered_and_covers(a, target):
    c = cl.complement(a, target)
    reached = values(c)
    assert all(x < y for x, y in itertools.pairwise(reached)), "ordered"
    assert set(reached) & set(values(a)) == {0}, "disjoint"
    both = values(cl.make_layout((a, c)))
    assert len(set(both)) == len(both), "the two together reach nothing twice"
    assert cl.size(a) * cl.size(c) >= target, "nothing up to the target is left out"


@given(compact_layouts())
def test_complement_of_a_whole_layout_is_trivial(a):
    assert cl.size(cl.complement(a)) == 1


@given(injective_layouts())
def test_left_inverse_undoes_the_layout(a):
    inverse = cl.left_inverse(a)
    assert [inverse(x) for x in values(a)] == list(range(cl.size(a)))


@given(any_layouts(min_stride=0))
def test_right_inverse_is_undone_by_the_layout(a):
    inverse = cl.right_inverse(a)
    assert [a(inverse(i)) for i in range(cl.size(inverse))] == list(range(cl.size(inverse)))


@given(compact_layouts())
def test_a_bijection_has_two_full_inverses(a):
    assert cl.size(cl.right_inverse(a)) == cl.size(a)
    assert values(cl.composition(a, cl.right_inverse(a))) == list(range(cl.size(a)))


@given(shapes())
def test_right_inverse_of_an_identity_layout_is_the_compact_one(shape):
    identity = cl.make_identity_layout(shape)
    assume(isinstance(shape, tuple))
    inverse = cl.right_inverse(identity)
    for i in range(cl.size(shape)):
        assert inverse(identity(i)) == i


@given(compact_layouts(), compact_layouts())
def test_max_common_layout_is_where_both_are_contiguous(a, b):
    common = cl.max_common_layout(a, b)
    n = cl.max_common_vector(a, b)
    assert cl.size(common) == n >= 1
    assert [a(common(i)) for i in range(n)] == [b(common(i)) for i in range(n)] == list(range(n))


@given(compact_layouts(), st.data())
def test_divides_by_dividing_tiles_are_permutations(a, data):
    tiler = (
        tuple(data.draw(st.sampled_from(_divisors(s))) for s in cl.product_each(cl.flatten(a).shape + (1,))[:-1])
        if isinstance(cl.flatten(a).shape, tuple)
        else (a.shape,)
    )
    flat = cl.make_layout((cl.flatten(a),)) if not isinstance(cl.flatten(a).shape, tuple) else cl.flatten(a)
    for divide in (cl.logical_divide, cl.zipped_divide, cl.tiled_divide, cl.flat_divide):
        assert sorted(values(divide(flat, tiler))) == sorted(values(a)), divide.__name__
    zipped = cl.zipped_divide(flat, tiler)
    assert cl.product_each(zipped.shape)[0] == cl.product(tiler)
    assert values(zipped[0]) == values(cl.composition(flat, tiler))


def _divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


@given(st.integers(1, 40), st.integers(1, 12), st.integers(1, 5))
def test_a_tile_that_does_not_divide_rounds_up_and_covers(n, tile, step):
    divided = cl.logical_divide(cl.make_layout(n, stride=step), tile)
    assert divided.shape == (tile, -(-n // tile))
    assert set(range(0, n * step, step)) <= set(values(divided))


@given(any_layouts(), st.integers(1, 30))
def test_divided_layouts_reach_everything(a, tile):
    try:
        divided = cl.logical_divide(a, tile)
    except CuteError:
        assume(False)
    assert set(values(a)) <= set(values(divided))
    assert cl.size(divided[0]) == tile


@given(injective_layouts(max_rank=2), compact_layouts(max_rank=2))
def test_products_repeat_the_block_disjointly(block, tiler):
    free = cl.complement(block, cl.size(block) * cl.cosize(tiler))
    compose_or_skip(free, tiler)  # a tiler that does not fit the gaps of the block
    product = cl.logical_product(block, tiler)
    image = values(product)
    assert len(set(image)) == len(image)
    assert product[0] == block
    assert sorted(values(cl.zipped_product(block, tiler))) == sorted(image)
    assert sorted(values(cl.tiled_product(block, tiler))) == sorted(image)
    for rank_wise in (cl.blocked_product, cl.raked_product):
        result = rank_wise(block, tiler)
        assert sorted(values(result)) == sorted(image)
        assert cl.rank(result) == max(cl.rank(block), cl.rank(tiler))


@given(compact_layouts(max_rank=2), st.lists(st.integers(1, 4), min_size=2, max_size=3), st.data())
def test_tile_to_shape_repeats_the_atom_over_the_shape(atom, counts, data):
    assume(cl.rank(atom) <= len(counts))
    extents = cl.wrap(cl.product_each(atom.shape)) + (1,) * (len(counts) - cl.rank(atom))
    target = tuple(e * n for e, n in zip(extents, counts))
    order = tuple(data.draw(st.permutations(range(len(counts)))))
    whole = cl.tile_to_shape(atom, target, order)
    assert cl.product_each(whole.shape) == target
    assert sorted(values(whole)) == list(range(cl.size(target)))
    corner = cl.zipped_divide(whole, extents)[0]
    assert values(corner) == values(atom)


@given(
    st.lists(st.sampled_from([1, 2, 4]), min_size=2, max_size=2),
    st.lists(st.sampled_from([1, 2, 3]), min_size=2, max_size=2),
)
def test_layout_tv_gives_every_element_to_one_thread_and_value(threads, vals):
    thr, val = cl.make_ordered_layout(tuple(threads), (1, 0)), cl.make_ordered_layout(tuple(vals), (1, 0))
    tiler, tv = cl.make_layout_tv(thr, val)
    assert tiler == tuple(t * v for t, v in zip(threads, vals))
    assert sorted(values(tv)) == list(range(cl.size(tiler)))
    for t in range(cl.size(thr)):
        m, n = thr.get_hier_coord(t)
        first = cl.make_layout(tiler)((m * vals[0], n * vals[1]))
        assert tv((t, 0)) == first


@given(any_layouts(), st.data())
def test_slices_and_their_offset_add_up_to_the_layout(a, data):
    assume(isinstance(a.shape, tuple))
    crd = cl.idx2crd(data.draw(st.integers(0, cl.size(a) - 1)), a.shape)
    slicer = tuple(None if data.draw(st.booleans()) else c for c in crd)
    sliced, offset = cl.slice_and_offset(slicer, a)
    rest = tuple(c for c, s in zip(crd, slicer) if s is None)
    assert sliced(rest) + offset == a(crd)
    assert cl.dice(a, slicer).shape == cl.dice(a.shape, slicer)


@given(shapes(), st.data())
def test_coordinates_and_indices_are_inverse(shape, data):
    n = cl.size(shape)
    i = data.draw(st.integers(0, n - 1))
    crd = cl.idx2crd(i, shape)
    assert cl.is_congruent(crd, shape)
    assert cl.crd2idx(crd, shape) == i
    assert cl.elem_less(crd, shape)
    if i + 1 < n:
        assert cl.increment_coord(crd, shape) == cl.idx2crd(i + 1, shape)


@given(compact_layouts(), st.data())
def test_hierarchical_coordinate_of_an_offset(a, data):
    i = data.draw(st.integers(0, cl.size(a) - 1))
    assert a(a.get_hier_coord(i)) == i == a(a.get_flat_coord(i))


@given(swizzles, st.integers(0, 5000))
def test_a_swizzle_is_an_involution_and_periodic(s, offset):
    assert s(s(offset)) == offset
    assert s(offset + 3 * s.period) == s(offset) + 3 * s.period


@given(swizzles)
def test_a_swizzle_permutes_its_period(s):
    assert sorted(map(s, range(s.period))) == list(range(s.period))


@given(swizzles, st.integers(0, 64), any_layouts(max_rank=3, min_stride=0), st.data())
def test_operations_on_a_swizzled_layout_act_on_its_domain(s, offset, outer, data):
    swizzled = cl.make_composed_layout(s, offset, outer)
    assert values(swizzled) == [s(offset + outer(i)) for i in range(cl.size(outer))]
    assert values(cl.coalesce(swizzled)) == values(swizzled) == values(cl.flatten(swizzled))
    if isinstance(outer.shape, tuple):
        crd = cl.idx2crd(data.draw(st.integers(0, cl.size(outer) - 1)), outer.shape)
        slicer = tuple(None if data.draw(st.booleans()) else c for c in crd)
        rest = tuple(c for c, x in zip(crd, slicer) if x is None)
        sliced, far = cl.slice_and_offset(slicer, swizzled)
        assert sliced(rest) + far == swizzled(crd)
        assert cl.slice_(swizzled, slicer) == sliced


@given(swizzles, st.permutations(range(3)))
def test_inverses_of_swizzled_layouts(s, order):
    layout = cl.composition(s, cl.make_ordered_layout((16, 16, 16), tuple(order)))
    inverse = cl.right_inverse(layout)
    assert all(layout(inverse(i)) == i for i in range(0, 2048, 7))
    moved = cl.make_composed_layout(s, s.period, layout.outer)
    back = cl.left_inverse(moved)
    assert all(back(moved(i)) == i for i in range(0, 2048, 7))


@given(injective_layouts(), st.sampled_from([(8, 16), (8, 32), (4, 16)]))
def test_recast_to_wider_elements_and_back(a, widths):
    narrow, wide = widths
    n = wide // narrow
    contiguous = cl.make_layout((cl.make_layout(4 * n), cl.make_layout(a.shape, stride=_scaled(a.stride, 4 * n))))
    wider = cl.recast_layout(wide, narrow, contiguous)
    assert cl.size(wider) * n == cl.size(contiguous)
    assert {x // n for x in values(contiguous)} == set(values(wider))
    assert cl.recast_layout(narrow, wide, wider) == contiguous


def _scaled(stride, n):
    return cl.transform_leaf(lambda d: d * n, stride)


@given(st.one_of(any_layouts(), shapes().map(cl.make_identity_layout)))
def test_notation_of_layouts_round_trips(a):
    assert cl.layout_from_str(repr(a)) == a


@given(swizzles, st.integers(0, 99), any_layouts())
def test_notation_of_composed_layouts_round_trips(s, offset, a):
    composed = cl.make_composed_layout(s, offset, a)
    assert cl.layout_from_str(repr(composed)) == composed
    assert cl.layout_from_str(repr(s)) == s


@given(shapes(), st.data())
def test_ordered_layouts_are_compact_in_the_order_given(shape, data):
    n = cl.rank(shape)
    order = tuple(data.draw(st.permutations(range(n)))) if isinstance(shape, tuple) else 0
    layout = cl.make_ordered_layout(shape, order)
    assert sorted(values(layout)) == list(range(cl.size(shape)))
    like = cl.make_layout_like(cl.make_layout(shape, stride=_scaled(layout.stride, 3)))
    assert like == layout


@pytest.mark.parametrize("proj", [None, (1, None, 1)])
@given(m=st.integers(1, 20), n=st.integers(1, 20))
def test_local_tiles_partition_the_layout(proj, m, n):
    layout = cl.make_layout((m, n), stride=(n, 1))
    tiler = (4, 8, 3) if proj else (4, 3)
    grid = cl.ceil_div((m, n), (4, 3))
    seen = []
    for i, j in itertools.product(range(grid[0]), range(grid[1])):
        tile, offset = cl.local_tile(layout, tiler, (i, None, j) if proj else (i, j), proj)
        for a, b in itertools.product(range(4), range(3)):
            if i * 4 + a < m and j * 3 + b < n:
                seen.append(tile((a, b)) + offset)
    assert sorted(seen) == list(range(m * n))


@given(st.sampled_from([(2, 4), (4, 2), (8, 1)]), st.sampled_from([(8, 8), (16, 8)]))
def test_local_partitions_give_every_element_to_one_thread(threads, shape):
    layout, tiler = cl.make_layout(shape), cl.make_ordered_layout(threads, (1, 0))
    seen = []
    for t in range(cl.size(tiler)):
        part, offset = cl.local_partition(layout, tiler, t)
        seen += [x + offset for x in values(part)]
    assert sorted(seen) == list(range(cl.size(shape)))
