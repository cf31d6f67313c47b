# SPDX-License-Identifier: Apache-2.0
"""Inverses, complements, compositions and common parts of swizzled layouts: with offsets, shifts of both signs, sizes
below and beyond the swizzle's period, of any strides. The law of each operation holds, or it is refused."""

from __future__ import annotations

from collections import Counter

import pytest

from numba_cute import layout as cl
from numba_cute.layout import layout_from_str as L
from numba_cute.seam import CuteError

from .oracle import attempts, random_layout, random_swizzle, refused
from .strategies import values

SEEDS = range(4)
CASES = 400


def random_function(r):
    """A layout, or one that a swizzle and an offset follow."""
    shape = tuple(r.choice((2, 4, 8, 8, 1, 3, 6)) for _ in range(r.randint(1, 3)))
    layout = cl.make_ordered_layout(shape, tuple(r.sample(range(len(shape)), len(shape))))
    if r.random() < 0.5:
        layout = random_layout(r, 3, negative=r.random() < 0.3)
    if r.random() < 0.2:
        return layout
    return cl.make_composed_layout(random_swizzle(r), r.choice((0, 0, 0, 1, 2, 4, 5, 8, 16, 32, 64)), layout)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_right_inverse_is_undone_by_its_layout_or_refused(seed):
    tried = Counter()
    for r in attempts(seed, CASES):
        f = random_function(r)
        inverse = refused(cl.right_inverse, f)
        if isinstance(inverse, str):
            tried["refused"] += 1
            assert f.offset != 0, "only where no element is known to lie at 0"
            continue
        n = cl.size(inverse)
        assert [f(inverse(i)) for i in range(n)] == list(range(n)), (f, inverse)
        reached = set(values(f))
        tried["longest" if n not in reached else "shorter"] += 1
    assert tried["longest"] > 10 * tried["shorter"] and tried["refused"] > 50


@pytest.mark.parametrize("seed", SEEDS)
def test_a_left_inverse_undoes_its_layout_or_is_refused(seed):
    tried = Counter()
    for r in attempts(seed, CASES):
        f = random_function(r)
        inverse = refused(cl.left_inverse, f)
        tried[type(inverse)] += 1
        if isinstance(inverse, str):
            continue
        offsets = values(f)
        if len(set(offsets)) == len(offsets):
            assert [inverse(x) for x in offsets] == list(range(len(offsets))), (f, inverse)
        else:
            assert [f(inverse(x)) for x in offsets] == offsets, (f, inverse)
    assert tried[str] < 0.5 * CASES


@pytest.mark.parametrize("seed", SEEDS)
def test_complements_of_swizzled_layouts_stay_clear_of_them_or_are_refused(seed):
    tried = Counter()
    for r in attempts(seed, CASES):
        f = random_function(r)
        found = refused(cl.complement, f, 256)
        tried[type(found)] += 1
        if not isinstance(found, str):
            reached = values(found)
            assert reached[0] == 0 and all(x < y for x, y in zip(reached, reached[1:])), (f, found)
            assert not set(reached[1:]) & set(values(f)), (f, found)
            assert cl.size(found) * cl.size(cl.filter(f)) >= 256, (f, found)
    assert min(tried.values()) > 50


@pytest.mark.parametrize("seed", SEEDS)
def test_compositions_of_swizzled_layouts_are_the_function_or_refused(seed):
    tried = Counter()
    for r in attempts(seed, CASES):
        f, g = random_function(r), random_function(r)
        found = refused(cl.composition, f, g)
        tried[type(found).__name__] += 1
        if not isinstance(found, str):
            assert values(found) == [f(x) for x in values(g)], (f, g, found)
        elif isinstance(g, cl.ComposedLayout):
            raise AssertionError(f"one after the other, {f} o {g} is always a function")
    assert tried["ComposedLayout"] > 0.5 * CASES


@pytest.mark.parametrize("seed", SEEDS)
def test_a_swizzle_moves_through_a_layout_as_the_same_function_or_not_at_all(seed):
    moved = 0
    for r in attempts(seed, CASES):
        f, s = random_layout(r, 3, r.choice(("compact", "gappy", "any"))), random_swizzle(r)
        found = refused(cl.composition, f, s)
        if not isinstance(found, str):
            moved += 1
            assert values(found) == [f(s(i)) for i in range(cl.size(f))], (f, s, found)
    assert moved > 0.1 * CASES


@pytest.mark.parametrize("seed", SEEDS)
def test_what_two_swizzled_layouts_share_lies_together_in_both(seed):
    longer = 0
    for r in attempts(seed, CASES):
        a, b = random_function(r), random_function(r)
        if r.random() < 0.6:
            b = cl.get_nonswizzle_portion(a)
        common = cl.max_common_layout(a, b)
        n = cl.size(common)
        longer += n > 1
        for f in (a, b):
            first = f(common(0))
            assert [f(common(i)) for i in range(n)] == list(range(first, first + n)), (a, b, common)
    assert longer > 0.1 * CASES


LARGE = [cl.make_swizzle(5, 20, 7), cl.make_swizzle(7, 30, 12), cl.make_swizzle(10, 10, -12), cl.make_swizzle(3, 4, 3)]


@pytest.mark.parametrize("swizzle", LARGE, ids=str)
@pytest.mark.parametrize("outer", ["(4096,4096,16384):(67108864,1,4096)", "(3,1048576):(1,3)"])
def test_large_swizzled_layouts_have_inverses_without_a_search(swizzle, outer):
    f = cl.make_composed_layout(swizzle, 0, L(outer))
    right, left = cl.right_inverse(f), cl.left_inverse(f)
    for i in (0, 1, 5, 1023, cl.size(right) - 1):
        assert f(right(i)) == i
    for i in (0, 1, 5, 1 << 19, cl.size(f) - 1):
        assert left(f(i)) == i
    assert cl.max_common_vector(f, L(outer)) >= 1
    moved = cl.make_composed_layout(swizzle, 12345, L(outer))
    assert cl.left_inverse(moved)(moved(1 << 19)) == 1 << 19


def test_swizzles_move_through_layouts_of_bits():
    assert cl.composition(L("(8,4):(4,1)"), cl.make_swizzle(1, 0, 2)) == L("S<1,2,2> o 0 o (8,4):(4,1)")
    assert cl.right_inverse(L("S<2,0,3> o 0 o (8,4):(4,1)")) == L("S<2,1,-2> o 0 o (4,8):(8,1)")
    assert cl.right_inverse(L("S<1,2,2> o 0 o 12:1")) == L("S<1,2,2> o 0 o 12:1"), "none of these is moved"
    short = cl.right_inverse(L("S<1,2,-2> o 0 o 12:1"))
    assert cl.size(short) == 4, "12 has no whole block of 32"
    assert cl.right_inverse(L("8:-1")) == L("8:-1")
    assert cl.right_inverse(L("(4,2):(-1,4)")) == L("4:-1"), "strides of both signs would borrow"


def test_a_swizzled_layout_with_an_offset_has_no_right_inverse():
    with pytest.raises(CuteError) as e:
        cl.right_inverse(L("S<2,1,3> o 8 o (8,8):(8,1)"))
    assert str(e.value) == (
        "right_inverse: S<2,1,3> o 8 o (8,8):(8,1) has none: no element is known to lie at 0, for its offset, 8, is "
        "not 0"
    )


def test_a_swizzled_layout_that_may_meet_its_gaps_has_no_complement():
    with pytest.raises(CuteError) as e:
        cl.complement(L("S<1,0,1> o 0 o (2,2):(1,1)"), 16)
    assert str(e.value) == (
        "complement: S<1,0,1> o 0 o (2,2):(1,1) has no known complement: a swizzled layout has its outer layout's, if "
        "it has no offset and its extents and strides are powers of two"
    )
    assert cl.complement(L("S<2,0,3> o 0 o (4,4):(1,8)"), 64) == L("(2,2):(4,32)")
