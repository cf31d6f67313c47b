# SPDX-License-Identifier: Apache-2.0
"""Slices of swizzled layouts: the same function, evaluated point by point; and plain where no pair of bits is kept."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, strategies as st

from numba_cute import layout as cl
from numba_cute.layout import layout_from_str as L

from .strategies import Dyn, any_layouts, known, values

SWIZZLES = st.builds(
    lambda bits, base, extra, sign: cl.make_swizzle(bits, base, sign * (bits + extra)),
    st.integers(1, 3), st.integers(0, 3), st.integers(0, 2), st.sampled_from([1, 1, -1]),
)  # fmt: skip
COMPACT = st.permutations([0, 1, 2]).flatmap(
    lambda order: st.builds(
        lambda shape: cl.make_ordered_layout(shape, order=tuple(order)),
        st.tuples(*[st.sampled_from([1, 2, 4, 8])] * 3),
    )
)


def checked(swizzled, slicer, given):
    """The slice at `given`, the integers of `slicer` or run-time numbers of their values, compared everywhere."""
    sliced, far = cl.slice_and_offset(given, swizzled)
    extents = map(cl.size, swizzled.shape)
    for crd in itertools.product(*(range(s) if c is None else [c] for s, c in zip(extents, slicer))):
        rest = tuple(x for x, c in zip(crd, slicer) if c is None)
        assert known(sliced(rest)) + known(far) == known(swizzled(crd))
    return sliced


def slicer_of(outer, data):
    crd = [data.draw(st.integers(0, cl.size(s) - 1)) for s in outer.shape]
    return tuple(None if data.draw(st.booleans()) else c for c in crd)


def at_run_time(slicer, data):
    return tuple(c if c is None or data.draw(st.booleans()) else Dyn(c) for c in slicer)


@given(SWIZZLES, COMPACT, st.data())
def test_a_slice_is_plain_where_it_keeps_no_pair_of_bits(s, outer, data):
    slicer = slicer_of(outer, data)
    given = at_run_time(slicer, data)
    sliced = checked(cl.make_composed_layout(s, 0, outer), slicer, given)
    if all(c is None for c in slicer):
        assert sliced == cl.make_composed_layout(s, 0, outer)
        return
    kept = sum((n - 1) * d for d, n, c in zip(outer.stride, outer.shape, slicer) if c is None)
    assert isinstance(sliced, cl.ComposedLayout) == keeps_a_pair(kept, s)
    if given == slicer and isinstance(sliced, cl.Layout):
        assert cl.is_static(sliced)


def keeps_a_pair(kept, s):
    """Whether a bit that is read is among these, and the one that it changes too."""
    y, z = s.y_mask & -s.y_mask, s.z_mask & -s.z_mask
    return any(kept & y << i and kept & z << i for i in range(s.bits))


@given(SWIZZLES, any_layouts(max_rank=3, min_stride=0), st.integers(0, 70), st.data())
def test_a_slice_of_any_swizzled_layout_is_the_same_function(s, outer, offset, data):
    """Strides that overlap, extents that are not powers of two, offsets with the bits of the layout."""
    outer = outer if isinstance(outer.shape, tuple) else cl.make_layout((outer,))
    slicer = slicer_of(outer, data)
    offset = Dyn(offset) if data.draw(st.booleans()) else offset
    checked(cl.make_composed_layout(s, offset, outer), slicer, at_run_time(slicer, data))


@pytest.mark.parametrize(
    "lay, coord, want",
    [
        ("S<3,2,4> o 0 o (16,(4,8)):(4,(1,64))", (5, None), "((4,(2,2,2))):((1,(60,136,240)))"),
        ("S<3,4,3> o 0 o (16,8):(1,16)", (None, 1), "(16):(1)"),
        ("S<3,5,4> o 0 o (8,4):(1,8)", (3, None), "(4):(8)"),
        ("S<2,3,3> o 0 o (8,64):(64,1)", (2, None), "((16,2,2)):((1,-16,32))"),
    ],
)
def test_strides_go_down_where_the_bit_that_is_read_is_set(lay, coord, want):
    lay = L(lay)
    static = cl.slice_(lay, coord)
    assert str(static) == want
    run_time = cl.slice_(lay, tuple(None if c is None else Dyn(c) for c in coord))
    assert values(known(run_time)) == values(static)
