# SPDX-License-Identifier: Apache-2.0
"""Conversion of packed register vectors between element types, two elements to an instruction where there is one.

Floats of 16 and 8 bits go through Float32, which holds them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.cuda import types

from .. import dtypes
from ..isa import instr as table
from .leaves import Number, element_ir, scalar_type

_I16, _I32, _F32 = ir.IntType(16), ir.IntType(32), ir.FloatType()


def narrow(dtype: dtypes.DType) -> bool:
    """Whether the elements are floats that arithmetic does not take as they are."""
    return dtype.is_float and dtype.width < 32


def words(tracer: Any, src_words: Sequence[Any], src: dtypes.DType, dst: dtypes.DType, count: int) -> list[Any]:
    """The packed words of the converted vector."""
    if src is dst:
        return list(src_words)
    elements = [element(tracer, src_words, src, i) for i in range(count)]
    if narrow(src):
        elements, src = widened(tracer, src_words, src, count), dtypes.Float32
    if src.kind == "bool":
        elements = [tracer.builder.icmp_unsigned("!=", e, e.type(0)) for e in elements]
    through = dtypes.Float32 if narrow(dst) else dst
    if scalar_type(src) != scalar_type(through):
        elements = [tracer.ir(Number(scalar_type(src), e), scalar_type(through)) for e in elements]
    if narrow(dst):
        return narrowed(tracer, elements, dst)
    if dst.kind == "bool":
        elements = [tracer.builder.zext(e, ir.IntType(8)) for e in elements]
    return packed(tracer, elements, dst)


def element(tracer: Any, words: Sequence[Any], dtype: dtypes.DType, i: int) -> Any:
    """Element `i` of packed words, in memory form (bools as i8, 16-bit and 8-bit floats as their bits)."""
    if dtype.width >= 32:
        return words[i]
    per = 32 // dtype.width
    word = tracer.builder.lshr(words[i // per], _I32((i % per) * dtype.width))
    return tracer.builder.trunc(word, ir.IntType(dtype.width))


def packed(tracer: Any, elements: Sequence[Any], dtype: dtypes.DType) -> list[Any]:
    """The words of elements in memory form."""
    b = tracer.builder
    if dtype.width >= 32:
        want = element_ir(dtype)
        return [e if e.type == want else b.bitcast(e, want) for e in elements]
    per, out = 32 // dtype.width, []
    for i in range(0, len(elements), per):
        word = _I32(0)
        for j, e in enumerate(elements[i : i + per]):
            word = b.or_(word, b.shl(b.zext(e, _I32), _I32(j * dtype.width)))
        out.append(word)
    return out


def widened(tracer: Any, src_words: Sequence[Any], dtype: dtypes.DType, count: int) -> list[Any]:
    """16-bit and 8-bit floats as LLVM floats."""
    b = tracer.builder
    if dtype.width == 8:
        row = table.TABLE[f"cvt_f16x2_{dtype.ptx}x2"]
        pairs = [b.trunc(b.lshr(w, _I32(shift)), _I16) for w in src_words for shift in (0, 16)]
        halves = [row(packed=Number(types.uint16, p)).ir for p in pairs[: -(-count // 2)]]
        return widened(tracer, halves, dtypes.Float16, count)
    if dtype is dtypes.BFloat16:
        return [
            b.bitcast(b.and_(w, _I32(0xFFFF0000)) if high else b.shl(w, _I32(16)), _F32)
            for w in src_words
            for high in (False, True)
        ][:count]
    bits = [element(tracer, src_words, dtype, i) for i in range(count)]
    return [b.fpext(b.bitcast(e, ir.HalfType()), _F32) for e in bits]


def narrowed(tracer: Any, floats: Sequence[Any], dtype: dtypes.DType) -> list[Any]:
    """LLVM floats as packed words of 16-bit or 8-bit floats, rounded to nearest even."""
    row = table.TABLE[f"cvt_{dtype.ptx}x2_f32"]
    padded = [*floats, *[ir.Constant(_F32, 0.0)] * (len(floats) % 2)]
    f32, b = types.float32, tracer.builder
    pairs = [row(hi=Number(f32, h), lo=Number(f32, w)).ir for w, h in zip(padded[0::2], padded[1::2])]
    if dtype.width == 16:
        return pairs
    wide = [b.zext(p, _I32) for p in pairs] + [_I32(0)] * (len(pairs) % 2)
    return [b.or_(lo, b.shl(hi, _I32(16))) for lo, hi in zip(wide[0::2], wide[1::2])]


def scalar_from_bits(tracer: Any, bits: Any, dtype: dtypes.DType) -> Any:
    """An 8-bit float in memory as the Float32 that it travels as."""
    return widened(tracer, [tracer.builder.zext(bits, _I32)], dtype, 1)[0]


def scalar_to_bits(tracer: Any, value: Any, dtype: dtypes.DType) -> Any:
    """The other way, rounded."""
    return tracer.builder.trunc(narrowed(tracer, [value], dtype)[0], ir.IntType(8))
