# SPDX-License-Identifier: Apache-2.0
"""Operations on the machine that instructions' functions need besides instructions: registers, vectors of them, plain
accesses to memory. `lower-to-ptx` leaves these as operations `numba_cute.nvgpu.machine.NAME`.

Registers are named by their file, what type they are taken as, the first of them and their number. Each is executed by
any thread, and is what the function of that name of `seam.Backend` is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import seam
from ...dtypes import DType
from ...seam import Regs, traced

__all__ = [
    "bitcast", "cast", "convert", "copy_from_regs", "copy_to_regs", "elementwise", "fill", "lane", "load", "pack",
    "read", "registers", "store", "take", "unvector", "vector", "write",
]  # fmt: skip

Span = tuple[Any, DType, Any, int]
"""A file of registers, the type that its elements are taken as, the first, and their number."""


def span(regs: Span) -> Regs:
    """Give such registers as traced code has them."""
    return Regs(*regs)


@traced
def registers(dtype: DType, count: int) -> Any:
    """Make a file of `count` registers of type `dtype`. PTX: none, any target."""
    return seam.current().registers(dtype, count)


@traced
def read(regs: Span) -> Any:
    """Read the one register `regs`. PTX mov, any target."""
    return seam.current().read(span(regs))


@traced
def write(regs: Span, value: Any) -> None:
    """Set the one register `regs` to `value`. PTX mov, any target."""
    seam.current().write(span(regs), value)


@traced
def fill(regs: Span, value: Any) -> None:
    """Set all registers `regs` to `value`. PTX mov, any target."""
    seam.current().fill(span(regs), value)


@traced
def vector(regs: Span) -> Any:
    """Give the registers `regs` as one value. PTX mov, any target."""
    return seam.current().vector(span(regs))


@traced
def unvector(vector: Any, regs: Span) -> None:
    """Set the registers `regs` to the elements of `vector`. PTX mov, any target."""
    seam.current().unvector(vector, span(regs))


@traced
def pack(dtype: DType, values: Sequence[Any]) -> Any:
    """Make a vector of type `dtype` of the numbers `values`. PTX mov, any target."""
    return seam.current().pack(dtype, values)


@traced
def bitcast(vector: Any, dtype: DType) -> Any:
    """Take the bits of `vector` as elements of type `dtype`. PTX mov, any target."""
    return seam.current().bitcast(vector, dtype)


@traced
def lane(vector: Any, index: int) -> Any:
    """Give element `index` of `vector`. PTX mov, any target."""
    return seam.current().lane(vector, index)


@traced
def take(vector: Any, indices: Sequence[int]) -> Any:
    """Give the elements of `vector` at `indices` as a vector. PTX mov, any target."""
    return seam.current().take(vector, indices)


@traced
def convert(vector: Any, src: DType, dst: DType, count: int) -> Any:
    """Convert the `count` elements of `vector` from type `src` to `dst`. PTX cvt, any target."""
    return seam.current().convert(vector, src, dst, count)


@traced
def cast(value: Any, dtype: DType) -> Any:
    """Convert the number `value` to type `dtype`. PTX cvt, any target."""
    return seam.current().cast(value, dtype)


@traced
def elementwise(op: str, dtype: DType, operands: Sequence[Any]) -> Any:
    """Apply `op`, a name of `seam.ELEMENTWISE`, to the `operands`, vectors of type `dtype` and numbers. PTX: that of
    the operation, any target."""
    return seam.current().elementwise(op, dtype, *operands)


@traced
def load(dtype: DType, space: str, address: Any, count: int, align: int) -> Any:
    """Load `count` elements of type `dtype` from `address` in the memory `space`, a multiple of `align` bytes. PTX ld,
    any target."""
    return seam.current().load(dtype, space, address, count, align)


@traced
def store(dtype: DType, space: str, address: Any, values: Sequence[Any], align: int) -> None:
    """Store `values`, elements of type `dtype`, to `address` in the memory `space`, a multiple of `align` bytes. PTX
    st, any target."""
    seam.current().store(dtype, space, address, values, align)


@traced
def copy_to_regs(space: str, address: Any, dst: Span, align: int) -> None:
    """Load the registers `dst` from `address` in the memory `space`, a multiple of `align` bytes, with one access. PTX
    ld, any target."""
    seam.current().copy_to_regs(space, address, span(dst), align)


@traced
def copy_from_regs(src: Span, space: str, address: Any, align: int) -> None:
    """Store the registers `src` to `address` in the memory `space`, a multiple of `align` bytes, with one access. PTX
    st, any target."""
    seam.current().copy_from_regs(span(src), space, address, align)
