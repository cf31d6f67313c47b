# SPDX-License-Identifier: Apache-2.0
"""Layouts in elements of another width hold the same bits, or the recast is refused."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from numba_cute import layout as cl
from numba_cute.layout import layout_from_str as L
from numba_cute.layout.recast import recast_elements
from numba_cute.seam import CuteError

from .oracle import attempts, flat, random_layout, random_swizzle, refused
from .strategies import Dyn, known, values

SEEDS = range(4)
WIDTHS = [(8, 16), (8, 32), (16, 8), (32, 8), (16, 64), (64, 32), (24, 16), (8, 6), (8, 4)]


def random_source(r):
    layout = random_layout(r, 3, r.choice(("compact", "compact", "gappy", "any")), negative=r.random() < 0.1)
    if r.random() < 0.6:
        return layout
    inner = r.choice((random_swizzle(r), random_swizzle(r), cl.make_layout((4, 8)), cl.make_layout(64), layout))
    return cl.make_composed_layout(inner, r.choice((0, 0, 4, 8, 3)), layout)


def bits(layout, units):
    """How often each unit is reached, by a layout of elements of so many units each."""
    return Counter(x * units + j for x in values(layout) for j in range(units))


@pytest.mark.parametrize("seed", SEEDS)
def test_elements_of_another_width_are_the_same_memory_or_refused(seed):
    tried = Counter()
    for r in attempts(seed, 600):
        source, (new, old) = random_source(r), r.choice(WIDTHS)
        unit = math.gcd(new, old)
        found = refused(recast_elements, new, old, source)
        tried[type(found) is str, new > old] += 1
        if not isinstance(found, str):
            assert bits(found, new // unit) == bits(source, old // unit), (new, old, source, found)
    assert min(tried.values()) > 40


@pytest.mark.parametrize("seed", SEEDS)
def test_recast_layouts_whose_elements_lie_together_are_the_same_memory_or_refused(seed):
    """As CuTe's, `recast_layout` itself takes what does not lie together, or not at all moves, for wider apart."""
    right = 0
    for r in attempts(seed, 600):
        source, (new, old) = random_source(r), r.choice(WIDTHS)
        plain = cl.get_nonswizzle_portion(source)
        modes = list(zip(flat(plain.shape), flat(plain.stride)))
        if (1, 1) in modes or not any(s > 1 and d == 1 for s, d in modes):
            continue
        unit = math.gcd(new, old)
        found = refused(cl.recast_layout, new, old, source)
        if not isinstance(found, str):
            right += 1
            assert bits(found, new // unit) == bits(source, old // unit), (new, old, source, found)
    assert right > 50


@pytest.mark.parametrize(
    ("new", "old", "layout", "why"),
    [
        (64, 32, "4:3", "its stride 3 is not a multiple of 2"),
        (64, 32, "4:2", "none of its strides is 1"),
        (64, 32, "3:1", "a run of 3 of them is not whole"),
        (64, 32, "(4,4):(1,5)", "its stride 5 is not a multiple of 2"),
        (64, 32, "4:-1", "its stride -1 is neither a multiple of 2 nor a step of a run of so many"),
        (32, 8, "(2,4):(1,4)", "only 2 of them lie together"),
        (32, 8, "(8,3):(1,2)", "its stride 2 is neither a multiple of 4 nor a step of a run of so many"),
        (32, 8, "(3,8):(1,3)", "a run of 3 of them is not whole"),
        (32, 8, "(4,8):(1,6)", "its stride 6 is not a multiple of 4"),
    ],
)
def test_what_is_not_made_of_whole_runs_does_not_become_wider(new, old, layout, why):
    with pytest.raises(CuteError) as e:
        cl.recast_layout(new, old, L(layout))
    n = new // old
    assert str(e.value) == (
        f"recast_layout: {n} elements of {layout} do not make one: {why}; the contiguous extent and the other strides "
        f"must be multiples of {n}"
    )


def test_a_run_may_lie_in_several_modes():
    assert cl.recast_layout(32, 8, L("((2,4),3):((1,2),8)")) == L("((1,2),3):((1,1),2)")
    assert cl.recast_layout(32, 8, L("(3,2,8,1):(16,1,2,48)")) == L("(3,1,4,1):(4,1,1,12)")
    assert cl.recast_layout(64, 16, L("1:1")) == L("1:1"), "what does not move, as CuTe has it"


@pytest.mark.parametrize(
    ("new", "old", "layout", "message"),
    [
        (8, 16, "4:-1", "an element of 4:-1 has no place for the 2 that it becomes: one mode must have stride 1"),
        (8, 16, "(4,4):(1,1)", "an element of (4,4):(1,1) has no place for the 2 that it becomes"),
        (16, 8, "S<1,0,3> o 0 o 16:1", "S<1,0,3> moves single elements, and 2 of them become one"),
        (16, 8, "S<1,4,3> o 1 o 16:1", "the offset 1 of S<1,4,3> o 1 o 16:1 is not a multiple of 2 elements"),
        (16, 8, "(4,4):(4,1) o 0 o 16:1", "the inner layout (4,4):(4,1) of a composed one must begin with a mode of"),
        (8, 16, "(4,4):(4,1) o 0 o 16:1", "the inner layout (4,4):(4,1) of a composed one must begin with a mode of"),
    ],
)
def test_other_recasts_that_would_be_other_memory_are_refused(new, old, layout, message):
    with pytest.raises(CuteError) as e:
        cl.recast_layout(new, old, L(layout))
    assert str(e.value).startswith(f"recast_layout: {message}")


def test_what_is_known_only_at_run_time_is_taken_for_a_multiple():
    rows = cl.make_layout((Dyn(8), Dyn(6)), stride=(Dyn(16), 1))
    assert known(cl.recast_layout(16, 8, rows)) == L("(8,3):(8,1)")
    with pytest.raises(CuteError, match="none of its strides is 1"):
        cl.recast_layout(16, 8, cl.make_layout((Dyn(8), 6), stride=(Dyn(12), 2)))
    with pytest.raises(CuteError, match="are not known to lie together"):
        recast_elements(16, 8, cl.make_layout((Dyn(8), Dyn(6)), stride=(Dyn(6), Dyn(1))))
