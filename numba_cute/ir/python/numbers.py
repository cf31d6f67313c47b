# SPDX-License-Identifier: Apache-2.0
"""The numbers of xDSL's own dialects as element types, and the operations on them that Python has no operator for."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    Signedness,
)
from xdsl.ir import Attribute

from ... import dtypes, seam
from ...arch import bitwise
from ...dtypes import DType
from ...tensor import ssa

SIGNED = {8: dtypes.Int8, 16: dtypes.Int16, 32: dtypes.Int32, 64: dtypes.Int64}
UNSIGNED = {8: dtypes.Uint8, 16: dtypes.Uint16, 32: dtypes.Uint32, 64: dtypes.Uint64}
_FLOATS: dict[type[Attribute], DType] = {
    Float16Type: dtypes.Float16, BFloat16Type: dtypes.BFloat16, Float32Type: dtypes.Float32,
    Float64Type: dtypes.Float64,
}  # fmt: skip


def number_of(attribute: Attribute) -> DType | None:
    """Return the element type of numbers of an xDSL type; None if it is not a type of numbers that kernels compute
    with. An `index` has 64 bits, and a signless integer is a signed one."""
    if isinstance(attribute, IndexType):
        return dtypes.Int64
    if isinstance(attribute, IntegerType):
        width = attribute.width.data
        if width == 1:
            return dtypes.Boolean
        return (UNSIGNED if attribute.signedness.data is Signedness.UNSIGNED else SIGNED).get(width)
    return _FLOATS.get(type(attribute))


def _unsigned(x: Any) -> Any:
    return seam.current().cast(x, UNSIGNED[seam.current().type_of(x).width])


def _as(x: Any, like: Any) -> Any:
    return seam.current().cast(x, seam.current().type_of(like))


def _signs(a: Any, b: Any) -> tuple[Any, Any, Any, Any]:
    """Return whether each of two signed integers is negative, and their magnitudes."""
    zero = _as(0, a)
    return (
        ssa.elementwise("<", a, zero), ssa.elementwise("<", b, zero),
        _unsigned(ssa.elementwise("abs", a)), _unsigned(ssa.elementwise("abs", b)),
    )  # fmt: skip


@seam.traced
def divsi(a: Any, b: Any) -> Any:
    """Divide signed integers of one type, rounding towards zero. a, b: the integers. Any thread."""
    a_negative, b_negative, x, y = _signs(a, b)
    quotient = _as(ssa.elementwise("floordiv", x, y), a)
    return ssa.where(ssa.elementwise("xor", a_negative, b_negative), ssa.elementwise("neg", quotient), quotient)


@seam.traced
def remsi(a: Any, b: Any) -> Any:
    """Give what `divsi` leaves, which has the sign of `a`. a, b: the integers. Any thread."""
    negative, _, x, y = _signs(a, b)
    rest = _as(ssa.elementwise("mod", x, y), a)
    return ssa.where(negative, ssa.elementwise("neg", rest), rest)


@seam.traced
def ceildiv(a: Any, b: Any) -> Any:
    """Divide integers of one type, rounding up. a, b: the integers, both signed or both unsigned. Any thread."""
    rest = ssa.elementwise("!=", ssa.elementwise("mod", a, b), _as(0, a))
    return ssa.elementwise("add", ssa.elementwise("floordiv", a, b), _as(rest, a))


@seam.traced
def bitcast(value: Any, src: DType, dst: DType) -> Any:
    """View the bits of a number as another type of its width. value: the number. src, dst: its type, and the other.
    Any thread."""
    return ssa.bitcast(value, src, dst)


@seam.traced
def mul_high(a: Any, b: Any, signed: bool) -> Any:
    """Give the upper half of a product. a, b: integers of one type. signed: whether they are taken as signed; if not,
    their bits are those of unsigned ones. Any thread."""
    backend = seam.current()
    width = backend.type_of(a).width
    if width >= 32:
        return _as(bitwise.mul_hi(a, b, signed, width), a)
    wide = dtypes.Int32 if signed else dtypes.Uint32
    x, y = (backend.cast(v if signed else _unsigned(v), wide) for v in (a, b))
    return _as(ssa.elementwise("shr", ssa.elementwise("mul", x, y), backend.cast(width, wide)), a)


def _bits(x: Any) -> tuple[Any, int, int]:
    """An integer's bits in a type of 32 or 64 bits, their number there, and here."""
    width = seam.current().type_of(x).width
    wide = width if width > 32 else 32
    return seam.current().cast(_unsigned(x), UNSIGNED[wide]), wide, width


@seam.traced
def ctlz(x: Any) -> Any:
    """Count the zeros above an integer's highest one: all of its bits if it has none. x: the integer. Any thread."""
    bits, wide, width = _bits(x)
    count = bitwise.clz(bits, wide)
    return _as(ssa.elementwise("sub", count, _as(wide - width, count)), x)


@seam.traced
def cttz(x: Any) -> Any:
    """Count the zeros below an integer's lowest one: all of its bits if it has none. x: the integer. Any thread."""
    bits, wide, width = _bits(x)
    if width < wide:  # a one above its bits
        bits = ssa.elementwise("or", bits, _as(1 << width, bits))
    return _as(bitwise.clz(bitwise.brev(bits, wide), wide), x)


@seam.traced
def ctpop(x: Any) -> Any:
    """Count the ones of an integer. x: the integer. Any thread."""
    bits, wide, _ = _bits(x)
    return _as(bitwise.popc(bits, wide), x)
