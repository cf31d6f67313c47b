# SPDX-License-Identifier: Apache-2.0
"""Layouts: functions from coordinates to offsets, given by a shape and strides, or composed of two functions."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, ClassVar

from ..seam import ArrayView, CuteError, InIR, Int, Leaf, UnknownName, current_or, divisor, frozen, traced
from ..seam.ground.naming import shown
from ..seam.ground.records import dataclass
from ..seam.guards.kinds import Domain
from ..seam.marks.of_host import keep_on_host
from .basis import ScaledBasis, add_coord, checked, is_basis
from .int_tuple import (
    IntTuple,
    congruent,
    extent,
    flatten_to_tuple,
    is_one,
    mul,
    product,
    static_int,
    text,
    values,
    weakly_congruent,
)
from .mapping import coordinate_of, index, offset
from .pure import pure
from .swizzle import IDENTITY, Swizzle

__all__ = [
    "ComposedLayout", "Layout", "crd2idx", "get", "get_nonswizzle_portion", "get_swizzle_portion", "is_congruent",
    "is_major", "is_weakly_congruent", "make_composed_layout", "make_identity_layout", "make_layout",
    "shape_at", "stride_at",
]  # fmt: skip


def _sound(shape: IntTuple, stride: IntTuple) -> bool:
    """Return whether these make a layout: one pass, since every operation makes some."""
    if type(shape) is int:
        if shape < 0:
            return False
    elif not isinstance(shape, Leaf):
        if not isinstance(shape, tuple) or not isinstance(stride, tuple) or len(shape) != len(stride):
            return False
        return all([_sound(s, d) for s, d in zip(shape, stride)])
    return type(stride) is int or isinstance(stride, (Leaf, ScaledBasis))


@frozen
@dataclass(frozen=True)
class Layout(InIR):
    """The function from coordinates of `shape` to the inner product with `stride`, a congruent tuple.

    shape, stride: integers or nested tuples of them, static or known at run time; strides may be negative, 0, or basis
    strides (`E`). A coordinate may be given at any depth: an integer counts with the first mode fastest.

    >>> a = cute.make_layout((4, (2, 3)), stride=(6, (3, 1)))
    >>> a, a((3, (1, 2))), a(23)
    ((4,(2,3)):(6,(3,1)), 23, 23)
    """

    shape: IntTuple
    stride: IntTuple
    __cute_checks_arguments__: ClassVar[bool] = True

    def __post_init__(self) -> None:
        try:
            if _sound(self.shape, self.stride):
                return
        except RecursionError:
            raise CuteError("Layout: shape and stride are nested too deep: give tuples of fewer levels") from None
        if not congruent(self.shape, self.stride):
            raise CuteError(
                f"stride={text(self.stride)} does not match shape={text(self.shape)}: "
                "give one stride for each extent, nested in the same way"
            )
        for s in flatten_to_tuple(self.shape):
            if type(s) is not int and not isinstance(s, Leaf):
                raise CuteError(f"shape={text(self.shape)}: {s!r} is not an integer; build layouts with make_layout")
            if type(s) is int and s < 0:
                raise CuteError(f"shape={text(self.shape)}: an extent is 0 or more, got {s}")
        for d in flatten_to_tuple(self.stride):
            if type(d) is not int and not isinstance(d, (Leaf, ScaledBasis)):
                raise CuteError(f"stride={text(self.stride)}: {d!r} is not an integer; build layouts with make_layout")

    def __hash__(self) -> int:
        """Remembered: each operation looks for its result by it."""
        found = self.__dict__.get("_cute_hash")
        if found is None:
            found = self.__dict__["_cute_hash"] = hash((self.shape, self.stride))
        return found

    @functools.cached_property
    def maps_to_coordinates(self) -> bool:
        """True if some stride is a basis stride."""
        return is_basis(self.stride)

    @property
    def max_alignment(self) -> int:
        """The most elements that are known to lie together from each multiple of as many on: of M:1 what is known to
        divide M, and of two modes no more than divides the outer one's stride."""
        left = [m for m in zip(flatten_to_tuple(self.shape), flatten_to_tuple(self.stride)) if not is_one(m[0])]
        count, goes_on = 1, True
        while goes_on:
            mode = next((m for m in left if type(m[1]) is int and m[1] == count), None)
            if mode is None:
                break
            left.remove(mode)
            goes_on = type(mode[0]) is int
            count *= divisor(mode[0])
        return math.gcd(count, *(divisor(d) for _, d in left))

    @traced
    def __call__(self, coord: IntTuple) -> Any:
        """Compute the offset of `coord`; a coordinate if some stride is a basis stride."""
        if self.maps_to_coordinates:
            return index(coord, self.shape, self.stride)
        return offset(coord, self.shape, self.stride)

    @traced
    def __getitem__(self, mode: int) -> Layout:
        """Mode `mode` as a layout of its own."""
        return get(self, (mode,))  # type: ignore[no-any-return]

    @traced
    def __len__(self) -> int:
        return rank(self)

    @traced
    def get_hier_coord(self, idx: Int) -> IntTuple:
        """Return the coordinate, with the profile of the shape, that maps to `idx`; the layout must be compact."""
        return coordinate_of(*values((idx, self.shape, self.stride)))

    @traced
    def get_flat_coord(self, idx: Int) -> IntTuple:
        """Return the coordinate that maps to `idx`, one integer for each mode; the layout must be compact."""
        idx, shape, stride = values((idx, self.shape, self.stride))
        crd = coordinate_of(idx, shape, stride)
        if not isinstance(shape, tuple):
            return crd
        return tuple(index(c, s, compact(s)) for c, s in zip(crd, shape))

    def __repr__(self) -> str:
        return f"{text(self.shape)}:{text(self.stride)}"


@frozen
@dataclass(frozen=True)
class ComposedLayout(InIR):
    """The function c -> inner(offset + outer(c)). inner: a Swizzle, a Layout, or another such function, on the host one
    of Python's too; offset: an index or coordinate; outer: the Layout whose shape and coordinates it has.

    >>> cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, cute.make_layout((8, 64), stride=(64, 1)))((1, 0))
    72
    """

    inner: Any
    offset: Any
    outer: Any
    __cute_checks_arguments__: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.inner, (Swizzle, Layout, ComposedLayout)):
            _check_function(self.inner)
            keep_on_host(
                self, "a layout made of a function of Python's is the host's: fill a tensor with what it gives"
            )
        if not isinstance(self.outer, (Layout, ComposedLayout)):
            raise CuteError(f"outer={shown(self.outer)}: give a layout")
        if type(self.offset) is not int:
            object.__setattr__(self, "offset", checked(self.offset, "offset"))

    @property
    def shape(self) -> IntTuple:
        """The shape of the outer layout."""
        return self.outer.shape

    @property
    def stride(self) -> IntTuple:
        """An error: a composed layout has no strides."""
        raise UnknownName(f"{self} has no strides: ask its outer layout, {self.outer}")

    @traced
    def __call__(self, coord: IntTuple) -> Any:
        """Compute the offset of `coord`."""
        return self.inner(add_coord(self.offset, self.outer(coord)))

    @traced
    def __getitem__(self, mode: int) -> ComposedLayout:
        """Mode `mode` as a composed layout of its own."""
        return get(self, (mode,))  # type: ignore[no-any-return]

    @traced
    def __len__(self) -> int:
        return rank(self)

    def __reduce__(self) -> Any:
        return type(self), (self.inner, self.offset, self.outer)

    def __repr__(self) -> str:
        inner = getattr(self.inner, "__name__", self.inner)
        return f"{inner} o {text(self.offset)} o {self.outer}"


def _check_function(inner: Any) -> None:
    """Refuse what no composed layout has inside, and in a kernel a function of Python's."""
    if not callable(inner) or isinstance(inner, type):
        raise CuteError(f"inner={shown(inner)}: give a Swizzle or a layout")
    if current_or(None) is not None:
        raise CuteError(
            f"inner={shown(inner)}: a function of Python's makes a layout on the host alone: in a kernel give a "
            "Swizzle or a layout, or call the function itself"
        )


LAYOUTS = (Layout, ComposedLayout)


def on_outer(layout: ComposedLayout, outer: Any) -> ComposedLayout:
    """Return `layout` another outer layout: how operations on the domain reach into a composed layout."""
    return ComposedLayout(layout.inner, layout.offset, outer)


# ------------------------------------------------------------------ construction


def compact(shape: IntTuple, start: Any = 1) -> IntTuple:
    """Return column-major strides from `start` on; extents of 1 get stride 0."""
    if not isinstance(shape, tuple):
        return 0 if is_one(shape) else start
    out = []
    for s in shape:
        out.append(compact(s, start))
        start = mul(start, product(s))
    return tuple(out)


@pure
def make_layout(shape: Any, *, stride: IntTuple = None) -> Layout:
    """Make the layout shape:stride. shape: extents; or a tuple of layouts, which become the modes. stride: strides
    congruent to it; without them it is column-major and compact.

    >>> cute.make_layout((4, 8)), cute.make_layout((4, 8), stride=(8, 1))
    ((4,8):(1,4), (4,8):(8,1))
    """
    if isinstance(shape, (tuple, list)) and shape and all(isinstance(x, LAYOUTS) for x in shape):
        return concat(tuple(shape))
    if isinstance(shape, LAYOUTS):
        return concat((shape,))
    shape = checked(shape, "shape")
    return Layout(shape, compact(shape) if stride is None else checked(stride, "stride"))


def concat(layouts: Sequence[Any]) -> Layout:
    """Make the layout whose modes are `layouts`."""
    for x in layouts:
        if not isinstance(x, Layout):
            raise CuteError(f"{x} cannot become a mode of a layout: it has no strides; concatenate its outer layout")
    return Layout(tuple([x.shape for x in layouts]), tuple([x.stride for x in layouts]))


@pure
def make_identity_layout(shape: IntTuple) -> Layout:
    """Make the layout that maps each coordinate of `shape` to itself: (4,(2,3)):(1@0,(1@0@1,1@1@1)).

    >>> cute.make_identity_layout((4, 8))((2, 5))
    (2, 5)
    """
    shape = checked(shape, "shape")
    return Layout(shape, _bases(shape, ()))


def _bases(shape: IntTuple, path: tuple[int, ...]) -> IntTuple:
    if isinstance(shape, tuple):
        return tuple(_bases(s, (*path, i)) for i, s in enumerate(shape))
    return ScaledBasis(1, path) if path else 1


@traced
def make_composed_layout(inner: Any, offset: Any, outer: Layout) -> ComposedLayout:
    """Compose the function c -> inner(offset + outer(c)). inner: a Swizzle or a layout, on the host a function of
    Python's too, of an index or coordinate; offset: an index or a coordinate of `inner`; outer: a layout.

    >>> cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, cute.make_layout((8, 64), stride=(64, 1)))
    S<3,3,3> o 0 o (8,64):(64,1)
    """
    return ComposedLayout(inner, offset, outer)


@traced
def get_swizzle_portion(layout: Domain) -> Swizzle:
    """Return the swizzle of `layout`; the identity S<0,4,3> for a plain one.

    >>> cute.get_swizzle_portion(cute.layout_from_str("S<3,3,3> o 0 o (8,64):(64,1)"))
    S<3,3,3>
    """
    inner = layout.inner if isinstance(layout, ComposedLayout) else IDENTITY
    if not isinstance(inner, Swizzle):
        raise CuteError(f"{layout} is not a swizzled layout: its inner function is {inner}")
    return inner


@traced
def get_nonswizzle_portion(layout: Domain) -> Layout:
    """Return `layout` without its swizzle; a plain layout as it is.

    >>> cute.get_nonswizzle_portion(cute.layout_from_str("S<3,3,3> o 0 o (8,64):(64,1)"))
    (8,64):(64,1)
    """
    return outer_of(layout)


def outer_of(layout: Domain) -> Layout:
    """Return the plain layout that gives `layout` its domain."""
    while isinstance(layout, ComposedLayout):
        layout = layout.outer
    if not isinstance(layout, Layout):
        if isinstance(layout, ArrayView) or hasattr(layout, "__array_interface__"):
            raise CuteError("an array is neither a layout nor a tensor: make a tensor of it, cute.make_tensor(array)")
        raise CuteError(f"{layout!r} is not a layout: make one with make_layout")
    return layout


# ------------------------------------------------------------------ queries


def path_of(mode: IntTuple) -> tuple[int, ...]:
    return tuple(mode) if isinstance(mode, (tuple, list)) else (mode,)


@traced
def get(input: Domain, mode: IntTuple) -> Any:
    """Return mode `mode` (an index or a path of indices) of the tuple or layout `input`.

    >>> cute.get(cute.make_layout((4, 8)), 1)
    8:4
    """
    if type(mode) is tuple and len(mode) == 1 and type(input) is Layout and type(mode[0]) is int:
        m, s = mode[0], input.shape
        if type(s) is tuple and 0 <= m < len(s):  # what nearly every call asks for
            return Layout(s[m], input.stride[m])
    path = path_of(mode)
    if not path:
        return input
    if isinstance(input, ComposedLayout):
        return on_outer(input, get(input.outer, path))
    if isinstance(input, Layout):
        return Layout(get(input.shape, path), get(input.stride, path))
    whole = input
    for i, m in enumerate(path):
        if isinstance(input, LAYOUTS):  # in a tiler
            return get(input, path[i:])
        if not isinstance(input, tuple):
            input = tuple(input) if isinstance(input, list) else input if input is None else extent(input)
        rank_here = len(input) if isinstance(input, tuple) else 1
        if not -rank_here <= static_int(m, "mode") < rank_here:
            raise CuteError(f"mode={list(path)}: {text(whole)} has no mode {m} there, only 0 to {rank_here - 1}")
        input = input[m] if isinstance(input, tuple) else input
    return input


@traced
def front(input: Domain) -> Any:
    """Return the first leaf of the tuple `input`, or the first mode's first leaf of a layout, to any depth.

    >>> cute.front((4, (2, 3)))
    4
    """
    while rank(input) and isinstance(domain(input), tuple):
        input = get(input, (0,))
    return input


def domain(a: Domain) -> IntTuple:
    """Return the shape of a layout; a tuple or integer as it is."""
    return a.shape if isinstance(a, LAYOUTS) else tuple(a) if type(a) is list else a


@traced
def shape(input: Domain, *, mode: IntTuple = ()) -> IntTuple:
    """Return the shape of `input`, a layout or a tiler of integers and layouts; of its mode `mode` if given.

    >>> cute.get_shape(cute.make_layout((4, (2, 3))), mode=[1])
    (2, 3)
    """
    return _shapes(get(input, mode))


def _shapes(a: Any) -> IntTuple:
    return tuple(map(_shapes, a)) if isinstance(a, (tuple, list)) else domain(a)


@traced
def stride(input: Domain, *, mode: IntTuple = ()) -> IntTuple:
    """Return the strides of the layout `input`, or of its mode `mode`.

    >>> cute.get_stride(cute.make_layout((4, 8)), mode=[1])
    4
    """
    if not isinstance(input, LAYOUTS):
        raise CuteError(f"stride: {input!r} is not a layout")
    return get(input, mode).stride


@traced
def shape_at(input: Domain, mode: IntTuple) -> IntTuple:
    """Return the shape of mode `mode` (an index or a path) of the layout `input`.

    >>> cute.shape_at(cute.make_layout((4, (2, 3))), 1)
    (2, 3)
    """
    return shape(input, mode=mode)


@traced
def stride_at(input: Domain, mode: IntTuple) -> IntTuple:
    """Return the strides of mode `mode` (an index or a path) of the layout `input`.

    >>> cute.stride_at(cute.make_layout((4, 8), stride=(8, 1)), 0)
    8
    """
    return stride(input, mode=mode)


@traced
def rank(a: Domain, mode: IntTuple = ()) -> int:
    """Count the modes of a tuple or layout `a`, or of its mode `mode`; 1 for an integer.

    >>> cute.rank(cute.make_layout((4, (2, 3)))), cute.rank(cute.make_layout((4, (2, 3))), mode=[1])
    (2, 2)
    """
    d = domain(get(a, mode))
    return len(d) if isinstance(d, tuple) else 1


@traced
def depth(a: Domain) -> int:
    """Count how deep the tuple `a`, or the shape of a layout, is nested: 0 for an integer.

    >>> cute.depth((4, (2, 3)))
    2
    """
    d = domain(a)
    return 1 + max(map(depth, d), default=0) if isinstance(d, tuple) else 0


@traced
def size(a: Domain, mode: IntTuple = ()) -> Any:
    """Count the elements of the domain of `a`, a shape or layout, or of its mode `mode`: the product of the extents."""
    picked = get(a, mode)
    return product(_shapes(picked))


@pure
def cosize(a: Domain, mode: IntTuple = ()) -> Any:
    """Return the size of the codomain of the layout `a`, or of its mode `mode`: 1 + the largest offset, negative
    strides counted by their magnitude. With basis strides it is the product over the modes of the coordinates.

    >>> cute.cosize(cute.make_layout((4, 8), stride=(16, 1)))
    56
    """
    layout = outer_of(get(a, mode))
    if layout.maps_to_coordinates:
        top = index(_last(layout.shape), layout.shape, layout.stride)
        return product(tuple(x + 1 for x in flatten_to_tuple(top)))
    top = index(_last(layout.shape), layout.shape, _magnitudes(layout.stride))
    return top + 1


def _last(shape: IntTuple) -> IntTuple:
    return tuple(map(_last, shape)) if isinstance(shape, tuple) else 0 if is_one(shape) else shape - 1


def _magnitudes(stride: IntTuple) -> IntTuple:
    if isinstance(stride, tuple):
        return tuple(map(_magnitudes, stride))
    return abs(stride) if type(stride) is int else stride


@traced
def is_congruent(a: Domain, b: Domain) -> bool:
    """Return whether the tuples `a` and `b` (or the shapes of layouts) are nested alike.

    >>> cute.is_congruent((4, (2, 3)), (1, (5, 5))), cute.is_congruent((4, 8), (4, (2, 4)))
    (True, False)
    """
    return congruent(domain(a), domain(b))


@traced
def is_weakly_congruent(a: Domain, b: Domain) -> bool:
    """Return whether `b` is nested like `a` or deeper.

    >>> cute.is_weakly_congruent((4, 8), (4, (2, 4)))
    True
    """
    return weakly_congruent(domain(a), domain(b))


@pure
def leading_dim(shape: IntTuple, stride: IntTuple) -> Any:
    """Find the mode of stride 1 in `shape` and `stride` (a path where nested, None if none); extents of 1 are passed
    over.

    >>> cute.leading_dim((4, 8), (8, 1))
    1
    """
    if not congruent(shape, stride):
        raise CuteError(f"leading_dim: stride={text(stride)} does not match shape={text(shape)}")
    if not isinstance(shape, tuple):
        return 0 if is_one(stride) and not is_one(shape) else None
    for i, (s, d) in enumerate(zip(shape, stride)):
        if isinstance(s, tuple):
            inner = leading_dim(s, d)
            if inner is not None:
                return (i, *path_of(inner))
        elif is_one(d) and not is_one(s):
            return i
    return None


@traced
def is_major(mode: IntTuple, stride: IntTuple) -> bool:
    """Return whether the first stride of mode `mode` of `stride` is the static 1.

    >>> cute.is_major(1, (8, 1))
    True
    """
    return is_one(front(get(stride, mode)))


@traced
def get_hier_coord(layout: Layout, idx: Int) -> IntTuple:
    """Call `layout.get_hier_coord(idx)`."""
    return layout.get_hier_coord(idx)


@traced
def crd2idx(coord: IntTuple, layout: Domain) -> Any:
    """Compute the offset of `coord` in `layout`; a plain shape counts as its column-major layout.

    >>> cute.crd2idx((2, 3), cute.make_layout((4, 8), stride=(8, 1)))
    19
    """
    if isinstance(layout, LAYOUTS):
        return layout(coord)
    shape = checked(layout, "layout")
    return index(coord, shape, compact(shape))


@traced
def size_in_bytes(dtype: Any, layout: Domain) -> Any:
    """Count the bytes that `cosize(layout)` elements of `dtype` take, rounded up; 0 where `layout` is None."""
    if layout is None:
        return 0
    return (cosize(layout) * dtype.width + 7) // 8


@traced
def domain_offset(coord: IntTuple, layout: Domain) -> tuple[Any, Any]:
    """Move the origin of `layout` to `coord`: give the layout from there on, and the offset to add to its base."""
    if isinstance(layout, ComposedLayout):
        moved = add_coord(layout.offset, layout.outer(coord))
        return ComposedLayout(layout.inner, moved, layout.outer), 0
    return layout, outer_of(layout)(coord)
