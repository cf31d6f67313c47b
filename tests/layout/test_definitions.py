# SPDX-License-Identifier: Apache-2.0
"""Compositions, divides, products and complements of thousands of layouts are what their definitions say of every
element, or are refused; and they are refused only where there is no such layout, or CuTe's own conditions fail."""

from __future__ import annotations

from collections import Counter

import pytest

import numba_cute as cute
from numba_cute import layout as cl
from numba_cute.layout import layout_from_str as L
from numba_cute.layout.algebra import Gaps
from numba_cute.layout.coalescing import flat_layout
from numba_cute.seam import CuteError

from .oracle import attempts, divides, flat, is_layout, random_layout, refused
from .strategies import values

SEEDS = range(4)
CASES = 700


def flat_layout_of(layout):
    return cl.Layout(flat(layout.shape), flat(layout.stride))


def assert_refused_for_a_reason(lhs, rhs, message):
    """lhs o rhs was refused: it is not a layout of the shape of rhs, or CuTe's conditions do not hold."""
    inner = flat_layout_of(rhs)
    assert not divides(lhs, rhs) or not is_layout(lambda c: lhs(inner(c)), inner.shape), (lhs, rhs, message)


# ------------------------------------------------------------------ composition


@pytest.mark.parametrize("seed", SEEDS)
def test_compositions_are_the_function_or_refused(seed):
    tried = Counter()
    for r in attempts(seed, CASES):
        negative = r.random() < 0.2
        a, b = random_layout(r, 3, negative=negative), random_layout(r, 3, negative=negative)
        if cl.size(b) > 512:
            continue
        c = refused(cl.composition, a, b)
        tried[type(c)] += 1
        if isinstance(c, str):
            assert_refused_for_a_reason(a, b, c)
        else:
            assert cl.is_weakly_congruent(b.shape, c.shape) and values(c) == [a(x) for x in values(b)], (a, b, c)
    assert tried[cl.Layout] > 0.5 * CASES and tried[str] > 0.1 * CASES, "both happen"


@pytest.mark.parametrize("seed", SEEDS)
def test_steps_of_both_signs_are_right_within_one_mode_and_refused_between_two(seed):
    kept = 0
    for r in attempts(seed, 200):
        a = random_layout(r, 3, "compact")
        steps = r.choice((1, a.shape[0] if isinstance(a.shape, tuple) else 1))
        b = cl.make_layout((r.randint(1, 3), r.randint(1, 3)), stride=(steps, -steps * r.randint(1, 2)))
        c = refused(cl.composition, a, b)
        if not isinstance(c, str):
            kept += 1
            assert values(c) == [a(x) for x in values(b)], (a, b, c)
    assert kept > 50


def test_a_coordinate_steps_through_a_mode_or_through_its_parts():
    whole_and_part = cl.make_layout((2, 2), stride=(cl.E(0), cl.E((0, 1))))
    with pytest.raises(CuteError) as e:
        cl.composition(L("((2,3),4):((1,2),6)"), whole_and_part)
    assert str(e.value) == (
        "composition: ((2,3),4):((1,2),6) o (2,2):(1@0,1@1@0) is not a layout: the right side steps through mode [0, "
        "1] of the left side and through mode [0], which holds it: choose strides along modes that do not hold "
        "one another"
    )
    apart = cl.make_layout((2, 2), stride=(cl.E((0, 0)), cl.E((0, 1))))
    assert cl.composition(L("((2,3),4):((1,2),6)"), apart) == L("(2,2):(1,2)")


# ------------------------------------------------------------------ divides


def random_tiler(r):
    kind = r.choice(("any", "compact", "gappy", "gappy", "step", "int"))
    if kind == "int":
        return r.choice((2, 3, 4, 6, 8))
    if kind == "step":
        return cl.Layout(r.choice((2, 3, 4, 6, 8)), r.choice((1, 1, 2, 3)))
    return random_layout(r, 2, kind)


def check_divide(a, tile, divided):
    """How a divide of `a` by a layout `tile` is right: "exact", "rounded" or, of several modes, "by mode"."""
    n, rest = cl.size(a), cl.complement(tile, cl.size(a))
    both = cl.make_layout((tile, rest))
    want, got, reached = [a(x) for x in values(both)], values(divided), values(both)
    if cl.size(both) == n == len(set(reached)):
        assert got == want
        return "exact"
    assert len(got) == len(want), "as many tiles as the elements fill"
    assert values(divided[0]) == [a(x) for x in values(tile)], "each is tiled as the first"
    if all(g == w for g, w, x in zip(got, want, reached) if x < n):
        return "rounded"
    elements, found = Counter(values(a)), Counter(got)
    repeated = cl.size(tile) // cl.size(cl.filter(tile))  # by strides of 0
    assert all(found[x] >= times * repeated for x, times in elements.items()), "no element is left out"
    return "by mode"


@pytest.mark.parametrize("seed", SEEDS)
def test_divides_are_the_composition_with_tile_and_rest_or_refused(seed):
    tried = Counter()
    for r in attempts(seed, CASES):
        a, tiler = random_layout(r, 3, negative=r.random() < 0.1), random_tiler(r)
        tile = tiler if isinstance(tiler, cl.Layout) else cl.Layout(tiler, 1)
        rest = refused(cl.complement, tile, cl.size(a))
        if not isinstance(rest, str) and cl.size(tile) * cl.size(rest) > 2000:
            continue
        divided = refused(cl.logical_divide, a, tiler)
        if not isinstance(divided, str):
            tried[check_divide(a, tile, divided)] += 1
        elif isinstance(rest, str):
            tried["no complement"] += 1
        elif "no tile reaches" in divided:
            tried["elements left out"] += 1
            hole = Gaps(tile).hole
            assert hole < cl.size(a) and hole not in values(cl.make_layout((tile, rest)))
        else:
            tried["no layout"] += 1
            assert_refused_for_a_reason(a, cl.make_layout((tile, rest)), divided)
    assert min(tried["exact"], tried["rounded"], tried["no layout"]) > 100
    assert tried["by mode"] < 20, "few layouts are covered by rounding up an inner mode, and no more tiles"


@pytest.mark.parametrize("seed", SEEDS)
def test_all_divides_are_the_logical_one_regrouped(seed):
    for r in attempts(seed, 150):
        a = random_layout(r, 3)
        n = cl.rank(a) if isinstance(a.shape, tuple) else 0
        tiler = tuple(random_tiler(r) for _ in range(r.randint(1, n))) if n and r.random() < 0.7 else random_tiler(r)
        divided = refused(cl.logical_divide, a, tiler)
        for regroup in (cl.zipped_divide, cl.tiled_divide, cl.flat_divide):
            other = refused(regroup, a, tiler)
            if isinstance(divided, str):
                assert other == divided
            else:
                assert Counter(zip(*leaves(other))) == Counter(zip(*leaves(divided)))
                if isinstance(tiler, tuple):
                    assert values(cl.zipped_divide(a, tiler)[0]) == values(cl.composition(a, tiler))


def leaves(layout):
    return flat(layout.shape), flat(layout.stride)


@pytest.mark.parametrize(
    ("target", "tiler", "rule"),
    [
        ("(4,6):(2,6)", "8:3", "8 steps of 3 do not divide its mode 0, 4:2"),
        ("(3,4):(4,1)", "6:2", "6 steps of 2 do not divide its mode 0, 3:4"),
        ("(3,8):(8,1)", 2, "rounding that up takes 16 tiles, but 12 hold its elements"),
        ("(10,25):(1,11)", 4, "rounding that up takes 75 tiles, but 63 hold its elements"),
        ("(6,4):(4,1)", 4, "rounding that up takes 8 tiles, but 6 hold its elements"),
        ("12:1", "(2,2):(1,3)", "no tile reaches element 2"),
        ("12:1", 0, "0:1 is empty"),
    ],
)
@pytest.mark.parametrize("divide", [cl.logical_divide, cl.zipped_divide, cl.tiled_divide, cl.flat_divide])
def test_divides_that_are_no_layout_are_refused_with_shapes_and_rule(divide, target, tiler, rule):
    tile = L(tiler) if isinstance(tiler, str) else tiler
    with pytest.raises(CuteError) as e:
        divide(L(target), tile)
    assert rule in str(e.value)
    assert tile == 0 or str(e.value).startswith(f"logical_divide: {target} by {L(tiler) if tile != tiler else tile}")


PARTS = {
    "local_tile": lambda t: cute.local_tile(t, 2, 0),
    "local_tile, of one mode": lambda t: cute.local_tile(t, (2,), (0, 0)),
    "local_partition": lambda t: cute.local_partition(t, cute.make_layout(2), 0),
    "zipped_divide": lambda t: cute.zipped_divide(t, 2),
    "flat_divide": lambda t: cute.flat_divide(t, (2,)),
    "logical_divide": lambda t: cute.logical_divide(t, 2),
}


@pytest.mark.parametrize("part", PARTS)
def test_parts_of_tensors_are_refused_as_divides_are(part):
    nested = L("((3,8),4):((8,1),24)") if part in ("local_tile, of one mode", "flat_divide") else L("(3,8):(8,1)")
    memory = cute.make_tensor(cute.make_ptr(cute.Float32, 0, cute.AddressSpace.gmem), nested)
    for tensor in (memory, cute.make_identity_tensor(nested.shape)):
        with pytest.raises(CuteError, match="takes 16 tiles, but 12 hold its elements"):
            PARTS[part](tensor)


@pytest.mark.parametrize("threads", ["(2,2):(1,4)", "(2,2):(1,1)", "(4,2):(1,0)", "4:-1", "(2,2):(2,4)"])
def test_threads_that_are_not_numbered_from_0_on_take_no_parts(threads):
    identity = cute.make_identity_tensor((8, 8))
    message = f"local_partition: the threads {threads} must be numbered from 0 to {cl.size(L(threads)) - 1}"
    for take in (
        lambda: cute.local_partition(identity, L(threads), 0),
        lambda: cl.local_partition(identity.layout, L(threads), 0),
    ):
        with pytest.raises(CuteError) as e:
            take()
        assert str(e.value).startswith(message)


def test_threads_share_the_modes_that_a_projection_drops():
    """Those of the second mode of the threads take the same parts."""
    threads, identity = cute.make_layout((2, 3, 4)), cute.make_identity_tensor((4, 8))
    parts = [cute.local_partition(identity, tiler, 13, (1, None, 1)) for tiler in (threads, (2, 3, 4))]
    assert [list(p) for p in parts] == 2 * [[(1 + 2 * i, 2 + 4 * j) for j in range(2) for i in range(2)]]


@pytest.mark.parametrize("n", [1, 31, 32, 33, 100])
def test_a_tile_of_a_mode_rounds_up_beyond_it(n):
    """What predicates cut off: all tiles are whole, and the last one reaches beyond."""
    identity = cl.make_identity_layout((n, 7))
    tiles = cl.zipped_divide(identity, (32, 4))
    assert cl.product_each(tiles.shape) == (128, -(-n // 32) * 2)
    seen = Counter(tiles((i, j)) for j in range(cl.size(tiles, (1,))) for i in range(128))
    assert max(seen.values()) == 1 and all(seen[(x, y)] for x in range(n) for y in range(7))
    assert cl.zipped_divide(cl.make_layout(100), 32) == L("(32,4):(1,32)")


def test_a_tile_that_ends_within_an_inner_mode_rounds_that_up_where_no_more_tiles_are_needed():
    assert cl.logical_divide(L("(32,3):(12,4)"), 11) == L("(11,(3,3)):(12,(132,4))")
    assert cl.logical_divide(L("(4,1):(1,7)"), 8) == L("((4,2),1):((1,7),0)"), "as the composition with the tile"


# ------------------------------------------------------------------ products


@pytest.mark.parametrize("seed", SEEDS)
def test_products_are_the_block_and_its_disjoint_repetitions_or_refused(seed):
    tried = Counter()
    for r in attempts(seed, CASES):
        block, tiler = random_layout(r, 2), random_layout(r, 2, negative=r.random() < 0.1)
        if cl.size(block) * cl.size(tiler) > 1000:
            continue
        gaps = refused(Gaps, block)
        found = refused(cl.logical_product, block, tiler)
        if isinstance(gaps, str):
            assert isinstance(found, str)
            tried["no complement"] += 1
            continue
        free = flat_layout(gaps.complement(cl.size(block) * cl.cosize(tiler), keep_last=True))
        if isinstance(found, str):
            tried["no layout"] += 1
            assert_refused_for_a_reason(free, tiler, found)
            continue
        tried["right"] += 1
        want = [x + free(y) for y in values(tiler) for x in values(block)]
        assert values(found) == want, (block, tiler, found)
        assert len(set(want)) == len(set(values(block))) * len(set(values(tiler))), "disjoint"
        for other in (cl.zipped_product, cl.tiled_product, cl.flat_product):
            assert values(other(block, tiler)) == want
        for other in (cl.blocked_product, cl.raked_product):
            assert sorted(values(other(block, tiler))) == sorted(want)
    assert tried["right"] > 0.4 * CASES and tried["no layout"] > 50


@pytest.mark.parametrize(
    "product",
    [
        cl.logical_product,
        cl.zipped_product,
        cl.tiled_product,
        cl.flat_product,
        cl.blocked_product,
        cl.raked_product,
    ],
)
@pytest.mark.parametrize(
    ("block", "tiler", "message"),
    [
        (
            "(5,2):(6,1)",
            "(2,2):(1,2)",
            "logical_product: (5,2):(6,1) by (2,2):(1,2) is not a layout: of the composition with (3,2):(2,30), which "
            "the block leaves free, the modes of the right side together reach 3 in its mode 0, of extent 3: choose "
            "modes that do not carry into the next one",
        ),
        (
            "(5,5):(27,3)",
            "(5,1):(1,0)",
            "logical_product: (5,5):(27,3) by (5,1):(1,0) is not a layout: of the composition with (3,1):(1,135), "
            "which the block leaves free, 5 steps of 1 do not divide its mode 0, 3:1: choose extents and strides that "
            "divide the modes they cross",
        ),
    ],
)
def test_products_that_overlap_are_refused_with_shapes_and_rule(product, block, tiler, message):
    with pytest.raises(CuteError) as e:
        product(L(block), L(tiler))
    assert str(e.value) == message


@pytest.mark.parametrize("seed", SEEDS)
def test_thread_value_layouts_deal_out_every_element_or_are_refused(seed):
    tried = Counter()
    for r in attempts(seed, 200):
        threads, vals = (random_layout(r, 2, r.choice(("compact", "compact", "gappy"))) for _ in range(2))
        found = refused(cl.make_layout_tv, threads, vals)
        tried[type(found)] += 1
        if not isinstance(found, str):
            tiler, tv = found
            assert sorted(values(tv)) == list(range(cl.size(tiler))), (threads, vals)
    assert min(tried.values()) > 20


# ------------------------------------------------------------------ complements


@pytest.mark.parametrize("seed", SEEDS)
def test_complements_are_disjoint_ordered_and_large_enough_or_refused(seed):
    tried = Counter()
    for r in attempts(seed, CASES):
        a, target = random_layout(r, 3, negative=r.random() < 0.1), r.randint(1, 300)
        found = refused(cl.complement, a, target)
        tried[type(found)] += 1
        if isinstance(found, str):
            continue
        reached = values(found)
        assert reached[0] == 0 and all(x < y for x, y in zip(reached, reached[1:])), (a, target, found)
        assert not set(reached[1:]) & set(values(a)), (a, target, found)
        assert cl.size(found) * cl.size(cl.filter(a)) >= target, (a, target, found)
    assert min(tried.values()) > 50


def test_a_layout_whose_gaps_no_layout_fills_has_no_complement():
    with pytest.raises(CuteError) as e:
        cl.complement(L("(24,4):(1,29)"), 111)
    assert str(e.value) == (
        "complement: (24,4):(1,29) has none up to 111: no layout fills the gap at 24; choose strides that are "
        "multiples of what lies below them"
    )
    assert cl.logical_product(L("(3,9):(1,4)"), L("(2,2):(1,2)"))[1] == L("(2,2):(36,72)"), "blocks side by side"
