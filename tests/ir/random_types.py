# SPDX-License-Identifier: Apache-2.0
"""Descriptions made at random, and classes of a user's."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

import numba_cute as cute
from numba_cute import seam
from numba_cute.ir.text import registry
from numba_cute.ir.text.fields import described_value, names_of
from numba_cute.layout import Layout
from numba_cute.nvgpu import warpgroup
from numba_cute.pipeline import PipelineState
from numba_cute.tensor.pointer import AddressSpace, Pointer
from numba_cute.typed.descriptions import (
    Array,
    Constant,
    Elements,
    Group,
    Object,
    RegisterFile,
    Scalar,
    Struct,
    TensorMap,
)

from ..layout.strategies import any_layouts, swizzles


@seam.frozen
class Mine:
    """One of the user's."""

    a: Any
    b: Any = 3


@seam.struct
class MyState:
    """One of the user's."""

    held: Any
    count: cute.Int32 = 0


names = st.sampled_from(["i32", "i64", "ui32", "ui64", "f32", "f16", "i1"])
scalars = names.map(lambda n: Scalar(registry.ELEMENTS[n]))
integers = st.builds(
    lambda n, divisor: Scalar(registry.ELEMENTS[n], divisor),
    st.sampled_from(["i32", "i64", "ui32"]),
    st.integers(1, 64),
)
numbers = st.one_of(st.integers(-(2**40), 2**40).map(Constant), integers)
elements = st.sampled_from(list(registry.ELEMENTS.values()))
constants = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(), st.floats(), elements,
    st.sampled_from([*AddressSpace, *warpgroup.OperandMajorMode, print, Layout, cute.copy]),
).map(Constant)  # fmt: skip
layouts = any_layouts().map(described_value)


@st.composite
def dynamic_layouts(draw):
    """A layout some of whose leaves are known only at run time, or steps along a mode."""

    def leaf(d, may_be_basis):
        kind = draw(st.integers(0, 4))
        if kind == 0:
            return draw(integers)
        if kind == 1 and may_be_basis:
            mode = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
            return Object(cute.ScaledBasis, (draw(numbers), Group(tuple(map(Constant, mode)))))
        return d

    def changed(d, may_be_basis):
        if isinstance(d, Group):
            return Group(tuple(changed(x, may_be_basis) for x in d.items))
        return leaf(d, may_be_basis)

    shape, stride = draw(layouts).fields
    return Object(Layout, (changed(shape, False), changed(stride, True)))


swizzled = swizzles.map(described_value)
composed = st.builds(
    lambda s, offset, outer: Object(cute.ComposedLayout, (s, offset, outer)), swizzled | layouts, numbers,
    dynamic_layouts(),
)  # fmt: skip


def pointer(dtype, space, address, *fields):
    """A pointer to registers has a file of them as its address; others have a number."""
    if isinstance(address, RegisterFile) is not (space is AddressSpace.rmem):
        space = AddressSpace.rmem if isinstance(address, RegisterFile) else AddressSpace.smem
    return Object(Pointer, (dtype, Constant(space), address, *fields))


pointers = st.builds(
    pointer, elements.map(Constant), st.sampled_from(AddressSpace),
    numbers | st.builds(RegisterFile, elements, st.integers(1, 256)), numbers,
    st.sampled_from([1, 2, 16, 1024]).map(Constant), st.just(Constant(None)) | swizzled,
    st.booleans().map(Constant), st.booleans().map(Constant),
)  # fmt: skip
groups = st.recursive(
    numbers | st.just(Constant(None)), lambda inner: st.lists(inner, max_size=3).map(tuple).map(Group)
)
tensors = st.builds(
    lambda iterator, lay: Object(cute.Tensor, (iterator, lay)), pointers | groups.filter(lambda d: d != Constant(None)),
    layouts | dynamic_layouts() | composed,
)  # fmt: skip
vectors = st.builds(
    lambda dtype, count, shape: Object(cute.TensorSSA, (Elements(dtype, count), shape, Constant(dtype))), elements,
    st.integers(1, 64), layouts.map(lambda d: d.fields[0]),
)  # fmt: skip
leaves = st.one_of(
    scalars, integers, constants, layouts, dynamic_layouts(), composed, swizzled, pointers, tensors, vectors,
    st.just(TensorMap()), st.builds(RegisterFile, elements, st.integers(1, 256)),
    st.builds(Array, elements, st.integers(1, 4), st.sampled_from("CFA"), st.booleans()),
)  # fmt: skip


def objects(inner):
    return st.one_of(
        st.lists(inner, max_size=4).map(tuple).map(Group),
        st.builds(lambda a, b: Object(Mine, (a, b)), inner, inner),
        st.builds(lambda a, b: Struct(MyState, (("held", a), ("count", b))), inner, inner),
        st.builds(lambda a, b: Object(cute.pipeline.NamedBarrier, (a, b)), inner, scalars),
        st.builds(lambda *fields: Struct(PipelineState, tuple(zip(names_of(PipelineState), fields))), *[inner] * 4),
    )


DESCRIPTIONS = st.recursive(leaves, objects, max_leaves=6)
