# SPDX-License-Identifier: Apache-2.0
"""Conversion of packed register vectors between element types, two elements to an instruction where there is one.

Floats of at most 16 bits go through Float32, which holds them all; what has more digits is rounded to odd on the way,
so that it is rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ...isa.form.instr import Instr, supports
from ...isa.rows import convert as rows, widen
from ..ground import llvmlite as ir
from ..ground.numba_cuda import types
from . import minifloat
from .leaves import NumberLeaf, element_ir, held, per_slot, scalar_type
from .rounding import to_float32, to_integer

_I16, _I32, _F32 = ir.IntType(16), ir.IntType(32), ir.FloatType()


def narrow(dtype: dtypes.DType) -> bool:
    """Say whether the elements are floats that arithmetic does not take as they are."""
    return dtype.is_float and dtype.width < 32


def words(tracer: Any, src_words: Sequence[Any], src: dtypes.DType, dst: dtypes.DType, count: int) -> list[Any]:
    """Convert a packed vector; gives its words."""
    if src is dst:
        return list(src_words)
    for direct in _DIRECT.get((src, dst), ()):
        if supports(tracer.arch, direct.target):
            return _by_row(direct, src_words, count)
    if narrow(src):
        elements, src = widened(tracer, src_words, src, count), dtypes.Float32
    else:
        elements = [from_memory(tracer, element(tracer, src_words, src, i), src) for i in range(count)]
    ty = scalar_type(src)
    if narrow(dst):
        return narrowed(tracer, [to_float32(tracer, NumberLeaf(ty, e)) for e in elements], dst)
    return packed(tracer, [in_memory(tracer, NumberLeaf(ty, e), dst) for e in elements], dst)


def from_memory(tracer: Any, bits: Any, dtype: dtypes.DType) -> Any:
    """Make of one element in memory form the value that a leaf of its type has."""
    b = tracer.builder
    if dtype.kind == "bool":
        return b.icmp_unsigned("!=", bits, bits.type(0))
    if dtype.width <= 8 and dtype.is_float:
        return widened(tracer, [b.zext(bits, _I32)], dtype, 1)[0]
    if dtype.width < 8:
        return (b.sext if dtype.signed else b.zext)(bits, ir.IntType(8))
    return bits


def in_memory(tracer: Any, value: Any, dtype: dtypes.DType) -> Any:
    """Make of a scalar one element in memory form (bools as i8, floats of at most 16 bits as their bits)."""
    b, want = tracer.builder, element_ir(dtype) if dtype.width >= 32 else ir.IntType(dtype.width)
    if dtype.is_float and dtype.width <= 8:
        if isinstance(value, NumberLeaf):
            return b.trunc(narrowed(tracer, [to_float32(tracer, value)], dtype)[0], want)
        return want(int(dtypes.converted(getattr(value, "value", value), dtype).view("uint8")))
    if dtype.width < 8:
        if isinstance(value, NumberLeaf):
            return b.trunc(to_integer(tracer, value, dtype), want)
        return want(dtypes.number(getattr(value, "value", value), dtype))
    v = tracer.ir(value, scalar_type(dtype))
    if dtype.kind == "bool":
        return b.zext(v, want)
    return v if v.type == want else b.bitcast(v, want)


# Pairs of types between which a row converts four elements exactly: the first that the target has.
_DIRECT: dict[tuple[dtypes.DType, dtypes.DType], tuple[Instr, ...]] = {
    (dtypes.Int8, dtypes.BFloat16): (widen.cvt_bf16x4_s8x4,),
    (dtypes.Int8, dtypes.Float16): (widen.cvt_f16x4_s8x4,),
    (dtypes.Float8E4M3FN, dtypes.BFloat16): (widen.cvt_rn_bf16x4_e4m3x4, widen.cvt_bf16x4_e4m3x4),
    (dtypes.Float8E4M3FN, dtypes.Float16): (widen.cvt_rn_f16x4_e4m3x4, widen.cvt_f16x4_e4m3x4),
    (dtypes.Float8E5M2, dtypes.Float16): (widen.cvt_f16x4_e5m2x4,),
}


def _by_row(row: Instr, src_words: Sequence[Any], count: int) -> list[Any]:
    """Convert words of 8-bit elements to words of 16-bit ones."""
    out = [x.ir for word in src_words for x in row(packed=NumberLeaf(types.uint32, word))]
    return out[: -(-count // 2)]


def element(tracer: Any, words: Sequence[Any], dtype: dtypes.DType, i: int) -> Any:
    """Take element `i` of packed words, in memory form (bools as i8, 16-bit and 8-bit floats as their bits)."""
    if dtype.width >= 32:
        return words[i]
    per = per_slot(dtype)
    word = tracer.builder.lshr(words[i // per], _I32((i % per) * held(dtype)))
    return tracer.builder.trunc(word, ir.IntType(dtype.width))


def packed(tracer: Any, elements: Sequence[Any], dtype: dtypes.DType) -> list[Any]:
    """Pack elements in memory form into words."""
    b = tracer.builder
    if dtype.width >= 32:
        want = element_ir(dtype)
        return [e if e.type == want else b.bitcast(e, want) for e in elements]
    per, out = per_slot(dtype), []
    for i in range(0, len(elements), per):
        word = _I32(0)
        for j, e in enumerate(elements[i : i + per]):
            word = b.or_(word, b.shl(b.zext(e, _I32), _I32(j * held(dtype))))
        out.append(word)
    return out


def widened(tracer: Any, src_words: Sequence[Any], dtype: dtypes.DType, count: int) -> list[Any]:
    """Convert floats of at most 16 bits to LLVM floats."""
    b = tracer.builder
    if dtype is dtypes.Float8E8M0FNU and _has_powers(tracer):
        pairs = [
            NumberLeaf(types.uint16, b.trunc(b.lshr(w, _I32(shift)), _I16)) for w in src_words for shift in (0, 16)
        ]
        brain = [rows.cvt_bf16_ue8m0(packed=p).ir for p in pairs[: -(-count // 2)]]
        return widened(tracer, brain, dtypes.BFloat16, count)
    if dtype.width <= 8 and not _has_rows(tracer, dtype):
        bits = [b.zext(element(tracer, src_words, dtype, i), _I32) for i in range(count)]
        return [minifloat.widened(b, x, dtype) for x in bits]
    if dtype.width <= 8:
        shifts = (0, 8, 16, 24) if dtype.width == 4 else (0, 16)
        pairs = [NumberLeaf(types.uint16, b.trunc(b.lshr(w, _I32(shift)), _I16)) for w in src_words for shift in shifts]
        halves = [rows.cvt_f16x2_small(packed=p, type=dtype.ptx).ir for p in pairs[: -(-count // 2)]]
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
    """Convert LLVM floats to packed words of floats of at most 16 bits, rounded to nearest even."""
    powers = dtype is dtypes.Float8E8M0FNU and _has_powers(tracer)
    if dtype.width <= 8 and not powers and not _has_rows(tracer, dtype):
        small = [
            tracer.builder.trunc(minifloat.narrowed(tracer.builder, x, dtype), ir.IntType(dtype.width)) for x in floats
        ]
        return packed(tracer, small, dtype)
    if powers:
        row, how = rows.cvt_ue8m0_f32, {"round": "rp", "saturates": True}
    else:
        row, how = rows.cvt_halves_f32 if dtype.width == 16 else rows.cvt_small_f32, {"type": dtype.ptx}
    padded = [*floats, *[ir.Constant(_F32, 0.0)] * (len(floats) % 2)]
    f32, b = types.float32, tracer.builder
    pairs = [row(hi=NumberLeaf(f32, h), lo=NumberLeaf(f32, w), **how).ir for w, h in zip(padded[0::2], padded[1::2])]
    if dtype.width == 16:
        return pairs
    if dtype.width == 4:
        return packed(tracer, [b.trunc(p, ir.IntType(8)) for p in pairs], dtypes.Uint8)
    wide = [b.zext(p, _I32) for p in pairs] + [_I32(0)] * (len(pairs) % 2)
    return [b.or_(lo, b.shl(hi, _I32(16))) for lo, hi in zip(wide[0::2], wide[1::2])]


def _has_rows(tracer: Any, dtype: dtypes.DType) -> bool:
    """Say whether the target converts these small floats itself."""
    forms = [case for case in rows.cvt_small_f32.cases if case["type"] == dtype.ptx]
    return any(supports(tracer.arch, target) for case in forms for target in rows.cvt_small_f32.needs(case))


def _has_powers(tracer: Any) -> bool:
    """Say whether the target converts powers of two (ue8m0) itself."""
    return supports(tracer.arch, rows.cvt_bf16_ue8m0.target)
