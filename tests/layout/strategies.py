# SPDX-License-Identifier: Apache-2.0
"""Random layouts for the laws, and a run-time leaf that knows its value but refuses to be looked at."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import strategies as st

from numba_cute import layout as cl
from numba_cute.dtypes import Int32
from numba_cute.seam import Leaf, divisor_of

EXTENTS = st.sampled_from([1, 2, 2, 3, 4, 4, 5, 8])


def nested(leaves: list[Any], cuts: list[int]) -> Any:
    """`leaves` as a tuple in which neighbours are grouped by `cuts`."""
    out: list[Any] = []
    it = iter(leaves)
    for n in itertools.cycle(cuts):
        group = tuple(itertools.islice(it, n))
        if not group:
            return tuple(out)
        out.append(group if n > 1 else group[0])
    return tuple(out)


@st.composite
def shapes(draw: Any, max_rank: int = 4) -> Any:
    leaves = draw(st.lists(EXTENTS, min_size=1, max_size=max_rank))
    if len(leaves) == 1 and draw(st.booleans()):
        return leaves[0]
    return nested(leaves, draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)))


@st.composite
def compact_layouts(draw: Any, max_rank: int = 4) -> cl.Layout:
    """A bijection onto [0, size), its modes in any order."""
    shape = draw(shapes(max_rank))
    n = len(cl.flatten_to_tuple(shape))
    order = draw(st.permutations(range(n)))
    return cl.make_layout(shape, stride=cl.unflatten(_flat_strides(shape, order), shape))


def _flat_strides(shape: Any, order: list[int]) -> tuple[int, ...]:
    flat = cl.flatten_to_tuple(shape)
    return cl.make_ordered_layout(flat, tuple(order)).stride


@st.composite
def injective_layouts(draw: Any, max_rank: int = 3) -> cl.Layout:
    """A compact layout with gaps: every stride a multiple, larger ones more so."""
    layout = draw(compact_layouts(max_rank))
    modes = sorted(zip(cl.flatten_to_tuple(layout.stride), range(10)))
    factor, new = 1, {}
    for d, i in modes:
        factor *= draw(st.sampled_from([1, 1, 2, 3]))
        new[i] = d * factor
    stride = cl.unflatten(tuple(new[i] for i in range(len(modes))), layout.shape)
    return cl.make_layout(layout.shape, stride=stride)


@st.composite
def any_layouts(draw: Any, max_rank: int = 4, min_stride: int = -8) -> cl.Layout:
    shape = draw(shapes(max_rank))
    n = len(cl.flatten_to_tuple(shape))
    strides = draw(st.lists(st.integers(min_stride, 40), min_size=n, max_size=n))
    return cl.make_layout(shape, stride=cl.unflatten(tuple(strides), shape))


swizzles = st.builds(
    lambda bits, base, extra, sign: cl.make_swizzle(bits, base, sign * (bits + extra)),
    st.integers(0, 3),
    st.integers(0, 4),
    st.integers(0, 2),
    st.sampled_from([1, 1, -1]),
)


def values(f: Any) -> list[Any]:
    """f(0), f(1), ... over the domain."""
    return [f(i) for i in range(cl.size(f))]


class Dyn(Leaf):
    """An integer that is known only at run time, as far as the library may see."""

    __slots__ = ("value", "divisor")
    dtype = Int32

    def __init__(self, value: int, divisor: int = 1) -> None:
        self.value, self.divisor = value, divisor

    def __bool__(self) -> bool:
        raise AssertionError("the algebra looked at a run-time value")

    __index__ = __bool__
    __lt__ = __le__ = __gt__ = __ge__ = lambda self, other: bool(self)


_RULES = {"and": "and_", "or": "or_"}
"""Where `divisor_of` has another name."""


def _operator(name: str) -> Any:
    def operate(a: Any, b: Any) -> Any:
        values = known(a), known(b)
        if not all(type(v) is int for v in values):
            return NotImplemented
        return Dyn(getattr(int, f"__{name}__")(*values), divisor_of(_RULES.get(name, name), a, b))

    return operate


for _op in ("add", "sub", "mul", "floordiv", "mod", "xor", "and", "lshift", "rshift"):
    setattr(Dyn, f"__{_op}__", _operator(_op))
    setattr(Dyn, f"__r{_op}__", (lambda f: lambda a, b: f(b, a))(_operator(_op)))


def known(x: Any) -> Any:
    """`x` with every run-time leaf replaced by its value."""
    if isinstance(x, Dyn):
        return x.value
    if isinstance(x, tuple):
        return tuple(map(known, x))
    if isinstance(x, cl.ScaledBasis):
        return cl.ScaledBasis(known(x.value), x.mode)
    if isinstance(x, cl.Layout):
        return cl.Layout(known(x.shape), known(x.stride))
    if isinstance(x, cl.ComposedLayout):
        return cl.ComposedLayout(known(x.inner), known(x.offset), known(x.outer))
    return x


class Comparing:
    """The two questions that the algebra asks of what runs it."""

    def compare(self, op: str, a: Any, b: Any) -> Dyn:
        assert op == "<"
        return Dyn(known(a) < known(b))

    def select(self, cond: Any, a: Any, b: Any) -> Dyn:
        return Dyn(known(a) if known(cond) else known(b))
