# SPDX-License-Identifier: Apache-2.0
"""Conversion of packed register vectors between element types, two elements to an instruction where there is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.cuda import types

from .. import dtypes
from ..isa import instr as table
from ..seam import CuteError
from .leaves import Number, element_ir, scalar_type

_I32 = ir.IntType(32)
_HALVES = (dtypes.Float16, dtypes.BFloat16)
_PLAIN = tuple(d for d in dtypes.ALL if d.kind != "float") + (dtypes.Float16, dtypes.BFloat16)
_PLAIN += (dtypes.TFloat32, dtypes.Float32, dtypes.Float64)


def check(src: dtypes.DType, dst: dtypes.DType) -> None:
    """An error unless `src` converts to `dst`."""
    if src not in _PLAIN or (dst not in _PLAIN and (src is not dtypes.Float32 or _pair(dst) is None)):
        raise CuteError(f"conversion from {src} to {dst}: no instruction of the table does it")


def _pair(dst: dtypes.DType) -> table.Instr | None:
    """The instruction that converts two f32 into one register of packed `dst`."""
    return table.TABLE.get(f"cvt_{dst.ptx}x2_f32")


def words(tracer: Any, src_words: Sequence[Any], src: dtypes.DType, dst: dtypes.DType, count: int) -> list[Any]:
    """The packed words of the converted vector."""
    check(src, dst)
    if src is dst:
        return list(src_words)
    if src is dtypes.Float32 and dst in _HALVES and count % 2 == 0:
        row = _pair(dst)
        if row is not None:
            lo, hi = src_words[0::2], src_words[1::2]
            f32 = types.float32
            return [row(hi=Number(f32, h), lo=Number(f32, w)).ir for w, h in zip(lo, hi)]
    elements = [_element(tracer, src_words, src, i) for i in range(count)]
    return _packed(tracer, [_scalar(tracer, e, src, dst) for e in elements], dst)


def _element(tracer: Any, packed: Sequence[Any], dtype: dtypes.DType, i: int) -> Any:
    if dtype.width >= 32:
        return packed[i]
    per = 32 // dtype.width
    word = tracer.builder.lshr(packed[i // per], _I32((i % per) * dtype.width))
    return tracer.builder.trunc(word, ir.IntType(dtype.width))


def _scalar(tracer: Any, value: Any, src: dtypes.DType, dst: dtypes.DType) -> Any:
    b = tracer.builder
    if src is dtypes.Float16:
        value, src = b.fpext(b.bitcast(value, ir.HalfType()), ir.FloatType()), dtypes.Float32
    elif src is dtypes.BFloat16:
        value, src = b.bitcast(b.shl(b.zext(value, _I32), _I32(16)), ir.FloatType()), dtypes.Float32
    if dst in _HALVES:
        if src is not dtypes.Float32:
            value = tracer.context.cast(b, value, scalar_type(src), types.float32)
        if dst is dtypes.Float16:
            return b.bitcast(b.fptrunc(value, ir.HalfType()), ir.IntType(16))
        row = _pair(dst)
        assert row is not None
        zero = Number(types.float32, ir.Constant(ir.FloatType(), 0.0))
        return b.trunc(row(hi=zero, lo=Number(types.float32, value)).ir, ir.IntType(16))
    if src.kind == "bool":
        value = b.trunc(value, ir.IntType(1))
    return tracer.context.cast(b, value, scalar_type(src), scalar_type(dst))


def _packed(tracer: Any, elements: Sequence[Any], dtype: dtypes.DType) -> list[Any]:
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
