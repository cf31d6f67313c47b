# SPDX-License-Identifier: Apache-2.0
"""`Backend.elementwise`: one operation on each element of register vectors, as LLVM instructions, calls of libdevice
(which every kernel is linked with), or rows of the instruction table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import dtypes
from ...isa.form.instr import Instr
from ...seam import COMPARISONS, DIRECTED, INTEGER, LOGICAL, MATH, CuteError
from ..ground import llvmlite as ir
from ..ground.builder import Builder
from ..ground.llvmlite import get_or_insert_function
from ..ground.numba_cuda import types
from . import convert
from .leaves import NumberLeaf, VectorLeaf, scalar_type

_FLOAT_OPS = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_LIBDEVICE = {"abs": "fabs", "min": "fmin", "max": "fmax", "rem": "fmod", "roundeven": "rint"}
"""Functions whose name in libdevice differs."""


def elementwise(tracer: Any, op: Any, dtype: dtypes.DType, operands: Sequence[Any]) -> Any:
    """Do what `seam.Backend.elementwise` says."""
    check(op, dtype)
    vectors = [x for x in operands if isinstance(x, VectorLeaf)]
    count = vectors[0].count if vectors else 1
    result = dtypes.Boolean if op in COMPARISONS else dtype
    if tracer.builder is None:
        return VectorLeaf(result, count) if vectors else NumberLeaf(scalar_type(result))
    if dtype.is_float and dtype.width < 32 and op not in ("where",):
        return _in_float32(tracer, op, dtype, operands)
    lanes = []
    for i, x in enumerate(operands):
        want = dtypes.Boolean if op == "where" and i == 0 else dtype
        if isinstance(x, VectorLeaf):
            lanes.append(values(tracer, x))
        else:
            lanes.append([tracer.ir(x, scalar_type(want))] * count)
    emit = _row(tracer, op) if isinstance(op, Instr) else operation(tracer, op, dtype)
    out = [emit(*each) for each in zip(*lanes)]
    return packed(tracer, result, out) if vectors else NumberLeaf(scalar_type(result), out[0])


def check(op: Any, dtype: dtypes.DType) -> None:
    """Raise a CuteError unless elements of `dtype` have the operation."""
    if isinstance(op, Instr):
        ok, kind = dtype.is_float and dtype.width <= 32, "floats of at most 32 bits"
    elif op in MATH:
        ok, kind = dtype.is_float, "floats"
    elif op in INTEGER:
        ok, kind = dtype.is_integer, "integers"
    elif op in LOGICAL:
        ok, kind = op == "where" or not dtype.is_float, "integers and bools"
    else:
        ok, kind = True, ""
    if not ok:
        name = getattr(op, "name", op)
        raise CuteError(f"{name}: it is for {kind}, and the elements are {dtype}; convert with .to(…)")


def _in_float32(tracer: Any, op: Any, dtype: dtypes.DType, operands: Sequence[Any]) -> Any:
    """Compute in Float32. Exact for one sum, product or quotient: 24 bits are twice the 11 of f16 and 2 more, so that
    rounding twice does no harm."""
    wide = [
        tracer.convert(x, dtype, dtypes.Float32, x.count) if isinstance(x, VectorLeaf) else tracer.cast(x, dtype)
        for x in operands
    ]
    out = elementwise(tracer, op, dtypes.Float32, wide)
    if op in COMPARISONS:
        return out
    if isinstance(out, VectorLeaf):
        return tracer.convert(out, dtypes.Float32, dtype, out.count)
    return tracer.cast(out, dtype)


def values(tracer: Any, vector: VectorLeaf) -> list[Any]:
    """Unpack a vector into LLVM values: bools as i1, 16-bit and 8-bit floats as their bits."""
    words = tracer._words(vector)
    out = [convert.element(tracer, words, vector.dtype, i) for i in range(vector.count)]
    if vector.dtype.kind == "bool":
        out = [tracer.builder.icmp_unsigned("!=", v, v.type(0)) for v in out]
    return out


def packed(tracer: Any, dtype: dtypes.DType, elements: Sequence[Any]) -> VectorLeaf:
    """Pack LLVM values into a vector."""
    if dtype.kind == "bool":
        elements = [tracer.builder.zext(v, ir.IntType(8)) for v in elements]
    return tracer._pack(dtype, len(elements), convert.packed(tracer, elements, dtype))  # type: ignore[no-any-return]


def _row(tracer: Any, row: Instr) -> Callable[..., Any]:
    return lambda *xs: row(*(NumberLeaf(types.float32, x) for x in xs)).ir


def operation(tracer: Any, op: str, dtype: dtypes.DType) -> Callable[..., Any]:
    """Return what emits the operation on LLVM values of one element."""
    b = tracer.builder
    if op == "where":
        return lambda c, x, y: b.select(c, x, y)
    if op in ("and", "or", "xor"):
        return getattr(b, op if op == "xor" else op + "_")  # type: ignore[no-any-return]
    if op == "not":
        return b.not_  # type: ignore[no-any-return]
    if dtype.is_float:
        return _of_floats(b, op, dtype)
    return _of_integers(b, op, dtype.kind == "int")


def _call(b: Builder, name: str, dtype: dtypes.DType) -> Callable[..., Any]:
    def emit(*xs: Any) -> Any:
        suffix = "" if dtype.width == 64 else "f"
        ty = ir.FunctionType(xs[0].type, [x.type for x in xs])
        return b.call(get_or_insert_function(b.module, ty, f"__nv_{name}{suffix}"), xs)

    return emit


def _of_floats(b: Builder, op: str, dtype: dtypes.DType) -> Callable[..., Any]:
    def constant(x: float) -> Any:
        return ir.Constant(ir.DoubleType() if dtype.width == 64 else ir.FloatType(), x)

    def mod(x: Any, y: Any) -> Any:
        r = _call(b, "fmod", dtype)(x, y)
        other_side = b.xor(b.fcmp_ordered("<", r, constant(0.0)), b.fcmp_ordered("<", y, constant(0.0)))
        return b.select(b.and_(b.fcmp_ordered("!=", r, constant(0.0)), other_side), b.fadd(r, y), r)

    magnitude = _call(b, "fabs", dtype)
    special: dict[str, Callable[..., Any]] = {
        "neg": lambda x: b.fsub(constant(-0.0), x),
        "floordiv": lambda x, y: _call(b, "floor", dtype)(b.fdiv(x, y)),
        "mod": mod,
        "!=": lambda x, y: b.fcmp_unordered("!=", x, y),
        "isnan": lambda x: b.fcmp_unordered("uno", x, x),
        "isinf": lambda x: b.fcmp_ordered("==", magnitude(x), constant(float("inf"))),
        "isfinite": lambda x: b.fcmp_ordered("<", magnitude(x), constant(float("inf"))),
    }
    if op in special:
        return special[op]
    if op in COMPARISONS:
        return lambda x, y: b.fcmp_ordered(op, x, y)
    if op in _FLOAT_OPS:
        return getattr(b, _FLOAT_OPS[op])  # type: ignore[no-any-return]
    if op in DIRECTED:
        return _directed(b, op, dtype)
    return _call(b, _LIBDEVICE.get(op, op), dtype)


def _directed(b: Builder, op: str, dtype: dtypes.DType) -> Callable[..., Any]:
    """Return what emits an operation rounded another way than to nearest: libdevice's fadd_rz, dadd_ru, fmaf_rd,
    fma_rz, ..."""
    name, mode = op.split(".")
    kind = "d" if dtype.width == 64 else "f"
    name = ("fmaf" if kind == "f" else "fma") if name == "fma" else kind + name
    suffix = {"rz": "rz", "rp": "ru", "rm": "rd"}[mode]

    def emit(*xs: Any) -> Any:
        ty = ir.FunctionType(xs[0].type, [x.type for x in xs])
        return b.call(get_or_insert_function(b.module, ty, f"__nv_{name}_{suffix}"), xs)

    return emit


def _of_integers(b: Builder, op: str, signed: bool) -> Callable[..., Any]:
    compare = b.icmp_signed if signed else b.icmp_unsigned

    def divided(rest: bool) -> Callable[..., Any]:
        return lambda x, y: _divided(b, x, y, rest) if signed else _safely(b, b.urem if rest else b.udiv, x, y)

    ops: dict[str, Callable[..., Any]] = {
        "add": b.add,
        "sub": b.sub,
        "mul": b.mul,
        "shl": b.shl,
        "shr": b.ashr if signed else b.lshr,
        "floordiv": divided(rest=False),
        "mod": divided(rest=True),
        "udiv": b.udiv,
        "urem": b.urem,
        "sdiv": b.sdiv,
        "neg": lambda x: b.sub(x.type(0), x),
        "abs": lambda x: b.select(compare("<", x, x.type(0)), b.sub(x.type(0), x), x),
        "min": lambda x, y: b.select(compare("<", x, y), x, y),
        "max": lambda x, y: b.select(compare(">", x, y), x, y),
        "isnan": lambda x: ir.Constant(ir.IntType(1), 0),
        "isinf": lambda x: ir.Constant(ir.IntType(1), 0),
        "isfinite": lambda x: ir.Constant(ir.IntType(1), 1),
    }
    return ops[op] if op in ops else lambda x, y: compare(op, x, y)


def _divided(b: Builder, x: Any, y: Any, rest: bool) -> Any:
    """Divide signed integers and round downwards, as Python does; gives the quotient or the remainder, 0 where Numba
    gives 0: of a division by 0, and of one that overflows."""
    known = y.constant if isinstance(y, ir.Constant) else None
    if known is not None and known > 0 and known & (known - 1) == 0:
        return b.and_(x, y.type(known - 1)) if rest else b.ashr(x, y.type(known.bit_length() - 1))

    def floored(x: Any, y: Any) -> Any:
        r = b.srem(x, y)
        above = b.and_(b.icmp_signed("!=", r, r.type(0)), b.icmp_signed("<", b.xor(x, y), x.type(0)))
        if rest:
            return b.select(above, b.add(r, y), r)
        q = b.sdiv(x, y)
        return b.select(above, b.sub(q, q.type(1)), q)

    least = x.type(-(1 << x.type.width - 1))
    overflows = lambda: b.and_(b.icmp_signed("==", y, y.type(-1)), b.icmp_signed("==", x, least))  # noqa: E731
    return _safely(b, floored, x, y, overflows)


def _safely(b: Builder, divide: Callable[..., Any], x: Any, y: Any, overflows: Callable[[], Any] | None = None) -> Any:
    """Divide where that is defined; gives 0 elsewhere. overflows: gives whether it is not, beside by 0."""
    if isinstance(y, ir.Constant) and y.constant not in (0, -1):
        return divide(x, y)
    bad = b.icmp_signed("==", y, y.type(0))
    if overflows is not None:
        bad = b.or_(bad, overflows())
    return b.select(bad, x.type(0), divide(x, b.select(bad, y.type(1), y)))
