# SPDX-License-Identifier: Apache-2.0
"""Operands of matrix instructions in registers."""

from __future__ import annotations

from typing import Any

from .. import layout, seam
from ..dtypes import DType, Uint32
from ..layout import Layout
from ..layout.pure import pure
from ..seam import CuteError
from ..tensor.pointer import AddressSpace, Pointer
from ..tensor.tensor import Tensor, dense, make_rmem_tensor


def register_fragment(operand: str, input: Any, dtype: DType) -> Tensor:
    """Make the registers, of type `dtype`, for `operand` ("A", "B", "C"): of the partition shape or partitioned tensor
    `input`, K innermost for A and B, M innermost for C. Raises CuteError for other shapes."""
    shape = partition_shape(operand, input)
    order = (1, 0) if operand in "AB" else (0, 1)
    lay = operand_layout(shape, (*order, *range(2, len(shape) - 1)))
    return make_rmem_tensor(lay, dtype)


def partition_shape(operand: str, input: Any) -> tuple[Any, ...]:
    """Give the shape of a partition of `operand`, of itself or of a partitioned tensor. CuteError: it is none."""
    shape = input.shape if isinstance(input, Tensor) else input
    if not isinstance(shape, tuple) or len(shape) < 3:
        raise CuteError(
            f"make_fragment_{operand}: shape {shape} must be (V, rest, rest), as partition_{operand} gives it"
        )
    return shape


def side_by_side(t: Tensor) -> Tensor:
    """Return a register tensor whose elements lie next to each other: itself, or a copy of it, which is as good for
    what an instruction reads before it ends."""
    p = t.iterator
    if not isinstance(p, Pointer) or p.space is not AddressSpace.rmem or dense(t) or not layout.is_static(t.layout):
        return t
    held: Tensor = make_rmem_tensor(t.shape, t.element_type)
    held.store(t.load())
    return held


def fragment_registers(t: Tensor, dtype: DType, count: int, name: str) -> seam.Regs:
    """Give the `count` consecutive registers of type `dtype` that one instruction takes for operand `name`, the
    fragment `t`. Raises CuteError if it is none such."""
    p = t.iterator
    if not isinstance(p, Pointer) or p.space is not AddressSpace.rmem or p.dtype != dtype:
        raise CuteError(f"gemm: {name} {t!r} must be {dtype} in registers, as make_fragment_{name.upper()} makes it")
    if not dense(t) or layout.cosize(t.layout) != count:
        raise CuteError(f"gemm: {name} of layout {t.layout} must be {count} consecutive registers of one instruction")
    return seam.Regs(p.address, dtype, p.offset, count)


def in_words(t: Tensor, dtype: DType) -> bool:
    """Say whether registers are the words of a fragment whose elements, of type `dtype`, are narrower than bytes."""
    p = t.iterator
    return isinstance(p, Pointer) and p.space is AddressSpace.rmem and p.dtype == Uint32 and dtype.width < 8


@pure
def operand_layout(shape: Any, order: tuple[int, ...]) -> Layout:
    """Give a compact layout of `shape` (V, rest…): V first, the others in `order`, whole modes at a time."""
    sizes = tuple(map(layout.size, shape[1:]))
    steps = layout.make_ordered_layout(sizes, order).stride
    v = layout.size(shape[0])
    modes = [layout.make_layout(shape[0])]
    for s, d in zip(shape[1:], steps):
        compact = layout.make_layout(s)
        scaled = layout.transform_leaf(lambda x, d=d: x * d * v, compact.stride)
        modes.append(Layout(s, scaled))
    return layout.make_layout(tuple(modes))
