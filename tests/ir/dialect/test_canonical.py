# SPDX-License-Identifier: Apache-2.0
"""What the dialect's operations infer is the function that they are named for: compared with Python, element by
element, and with the layout algebra of kernels."""

import random
from functools import partial

import pytest

pytest.importorskip("xdsl")

from numba_cute.ir.dialect.checked import Refused, checked  # noqa: E402
from numba_cute.ir.dialect.definitions import DEFINITIONS  # noqa: E402
from numba_cute.ir.dialect.inference import inferred, type_of_value, with_leaves  # noqa: E402
from numba_cute.ir.dialect.leaves import Dynamic  # noqa: E402
from numba_cute.ir.dialect.meaning import FUNCTIONS, Value, canonical, swizzled  # noqa: E402
from numba_cute.ir.dialect.notation import RawLayout, read, write  # noqa: E402
from numba_cute.layout import algebra, size  # noqa: E402
from numba_cute.layout.basis import add_coord  # noqa: E402
from numba_cute.layout.layout import ComposedLayout, Layout  # noqa: E402
from numba_cute.layout.swizzle import Swizzle  # noqa: E402
from numba_cute.seam import CuteError  # noqa: E402


def layouts(seed, count, most=3):
    """Random static layouts of few elements."""
    pick = random.Random(seed)
    for _ in range(count):
        shape = tuple(pick.choice((1, 2, 2, 3, 4, 6, 8)) for _ in range(pick.randint(1, most)))
        stride = tuple(pick.choice((0, 1, 1, 2, 3, 4, 6, 8, 12, 16, 24)) for _ in shape)
        yield Layout(shape, stride) if len(shape) > 1 or pick.random() < 0.5 else Layout(shape[0], stride[0])


def values(layout):
    return [layout(i) for i in range(size(layout))]


def test_coalesced_layout_is_the_same_function():
    for layout in layouts(1, 300):
        assert values(canonical.coalesced(layout)) == values(layout)


def test_composition_is_the_function_of_a_function_where_kernels_have_one():
    met = 0
    for lhs, rhs in zip(layouts(2, 1500), layouts(3, 1500, 2), strict=True):
        try:
            wanted, found = algebra.composition(lhs, rhs), canonical.composed(lhs, rhs)
        except CuteError:
            continue
        assert values(found) == values(wanted) == [lhs(rhs(i)) for i in range(size(rhs))], (lhs, rhs)
        met += 1
    assert met > 300


def test_complement_reaches_what_the_layout_leaves_out_once():
    met = 0
    for layout in layouts(4, 600):
        try:
            rest = canonical.complemented(layout)
        except Refused:
            continue
        mine, theirs = set(values(layout)), values(rest)
        sums = [a + b for a in mine for b in theirs]
        assert len(theirs) == len(set(theirs)) and len(sums) == len(set(sums)), (layout, rest)
        met += 1
    assert met > 100


def test_inverses_undo_the_layout():
    met = 0
    for layout in layouts(5, 600):
        right = canonical.right_inverse(layout)
        assert [layout(right(i)) for i in range(size(right))] == list(range(size(right))), (layout, right)
        if len(set(values(layout))) < size(layout):
            continue
        try:
            left = canonical.left_inverse(layout)
        except Refused:
            continue
        assert [left(layout(i)) for i in range(size(layout))] == list(range(size(layout))), (layout, left)
        met += 1
    assert met > 50


def test_identity_layouts_have_identities_for_inverses():
    layout = Value("layout", checked("layout", read("layout", "((2,3),4):((1@0@0,1@1@0),1@1)")))
    for name in ("left_inverse", "right_inverse"):
        (found,) = FUNCTIONS[name]([layout], {})
        assert write("layout", found.value) == "((2,3),4):((1,2),6)"


def test_divide_begins_with_the_tile_and_covers_the_layout():
    met = 0
    for layout, tile in zip(layouts(6, 800), layouts(7, 800, 2), strict=True):
        try:
            algebra.composition(layout, tile)
            found = canonical.logical_divide(layout, tile)
        except CuteError:
            continue
        first, _ = canonical.parts(found)
        assert values(first) == [layout(tile(i)) for i in range(size(tile))]
        met += 1
    assert met > 50


@pytest.mark.parametrize("name", ["zipped", "tiled", "flat"])
def test_divides_and_products_gather_the_same_elements(name):
    for layout, n in zip(layouts(8, 200), [2, 3, 4, 1] * 50, strict=True):
        block, tiler = Value("layout", layout), Value("layout", Layout(n, 1))
        for kind in ("divide", "product"):
            try:
                (plain,) = FUNCTIONS[f"logical_{kind}"]([block, tiler], {})
                (other,) = FUNCTIONS[f"{name}_{kind}"]([block, tiler], {})
            except Refused:
                continue
            assert sorted(values(plain.value)) == sorted(values(other.value))


def test_recast_layout_keeps_the_bytes():
    for layout in layouts(9, 300):
        wide = swizzled.recast(layout, 8, 16)
        assert {2 * x for x in values(layout)} <= set(values(wide))
        strides = layout.stride if isinstance(layout.stride, tuple) else (layout.stride,)
        if strides.count(1) == 1:
            assert swizzled.recast(wide, 16, 8) == layout


@pytest.mark.parametrize("coord", [(None, 3), (5, None), (None, 0), ((None, 1), 2), ((3, None), 1)])
@pytest.mark.parametrize("swizzle", [Swizzle(3, 0, 3), Swizzle(2, 1, 3), Swizzle(1, 2, -1)])
def test_slice_of_a_swizzled_layout_is_it_but_for_an_offset(swizzle, coord):
    outer = Layout(((4, 2), 8), ((1, 4), 8))
    whole = ComposedLayout(swizzle, 0, outer)
    flat = coord if not isinstance(coord[0], tuple) else coord
    found = swizzled.sliced(whole, flat)
    kept = range(size(found))
    picked = [whole(_filled(coord, i)) for i in kept]
    offsets = {a - b for a, b in zip(picked, [found(i) for i in kept], strict=True)}
    assert len(offsets) == 1, (found, picked)


def _filled(coord, i):
    """The coordinate with its None counted out by an index."""
    sizes = {(None, 3): (8,), (5, None): (8,), (None, 0): (8,), ((None, 1), 2): (4,), ((3, None), 1): (2,)}[coord]
    left = [i % n for n in sizes]

    def fill(c):
        return tuple(map(fill, c)) if isinstance(c, tuple) else left.pop(0) if c is None else c

    return fill(coord)


@pytest.mark.parametrize("name", sorted(n for n, d in DEFINITIONS.items() if d.inferred and n in FUNCTIONS))
def test_running_gives_the_value_that_the_inferred_type_tells_of(name):
    """With the `?` of the operands known, an operation gives a value of the type that was inferred without."""
    d, pick, met = DEFINITIONS[name], random.Random(name), 0
    for _ in range(60):
        operands = [_random(pick, pick.choice(p.kinds)) for p in d.operands if not p.optional or pick.random() < 0.5]
        given = {
            a: pick.choice((1, 2, 4, 8, 16)) if form == "i32" else (pick.choice((0, 0, 1)),) for a, form in d.attributes
        }
        given.pop("only_dynamic", None)
        try:
            types = inferred(d, [type_of_value(v._replace(value=_unknown(v.value))) for v in operands], given)
            found = FUNCTIONS[name](operands, given)
        except CuteError:
            continue
        assert [type_of_value(v._replace(value=_unknown(v.value))) for v in found] == types
        met += 1
    assert met > 2


def _unknown(value):
    return with_leaves(value, lambda x: Dynamic(x.width) if isinstance(x, Dynamic) else x)


def _leaf(pick):
    if pick.random() < 0.3:
        return Dynamic(pick.choice((32, 64)), 1, pick.randint(1, 6))
    return pick.choice((1, 2, 4, 8))


def _random(pick, kind):
    """A random value of a kind, some of whose integers are known only at run time."""
    leaf = partial(_leaf, pick)
    shape = (leaf(), leaf()) if pick.random() < 0.7 else (leaf(), (leaf(), leaf()))
    if kind == "swizzle":
        return Value(kind, Swizzle(2, 3, 3))
    if kind == "coord":
        return Value(kind, tuple(None if pick.random() < 0.4 else leaf() for _ in range(2)))
    if kind == "int_tuple":
        return Value(kind, pick.choice((shape, 8, (0, 1), (1, 0), leaf())))
    if kind in ("shape", "stride"):
        return Value(kind, pick.choice((shape, (leaf(), leaf()), leaf())))
    layout = checked("layout", RawLayout(shape, _strides(pick, shape)))
    if kind == "tile":
        return Value(kind, pick.choice(((Layout(2, 1), None), (Layout(leaf(), 1),), Layout(4, 1))))
    return Value(kind, ComposedLayout(Swizzle(2, 3, 3), 8, layout) if kind == "composed_layout" else layout)


def _strides(pick, shape):
    if pick.random() < 0.2:
        return with_leaves(shape, lambda _: Dynamic(32, 1, pick.randint(1, 5)))
    at = 1

    def next_stride(extent):
        nonlocal at
        here, at = at, at * (extent if isinstance(extent, int) else 8)
        return here

    return with_leaves(shape, next_stride)


def test_coordinates_add_mode_by_mode():
    lhs, rhs = Value("int_tuple", (1, (2, 3))), Value("int_tuple", (4, (5, 6)))
    assert FUNCTIONS["tuple_add"]([lhs, rhs], {})[0].value == add_coord(lhs.value, rhs.value)
