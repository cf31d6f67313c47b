# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Arithmetic on two floats at once, each rounded to nearest even but where it says otherwise. All of any thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ..facts.rounding import directed, exact_sum, flushed, fused, packed, single, unpacked
from ..form.instr import instr
from ..form.kinds import f32, out, u32
from ..form.machine import Machine

_HALF, _FLOAT = "half-precision-floating-point-instructions", "floating-point-instructions"
_MIXED = "mixed-precision-floating-point-instructions"
_OPS = ("add", "sub", "mul")
_PAIR = f32[2]
_PAIR_OUT = out(f32[2])


def _apply(op: str, a: Any, b: Any) -> Any:
    with np.errstate(over="ignore", invalid="ignore"):
        return a * b if op == "mul" else exact_sum(a, -b if op == "sub" else b)


@instr("{op}.rn.f16x2 $result, $a, $b;", target="sm_80", pure=True, ref=f"{_HALF}-add", over=[{"op": o} for o in _OPS])
def arith_f16x2(m: Machine, a: u32, b: u32, result: out(u32), *, op: str) -> int:
    """Two f16 sums, differences or products (op "add", "sub", "mul"), the first in the low half."""
    return packed(_apply(op, unpacked(a, dtypes.Float16), unpacked(b, dtypes.Float16)), dtypes.Float16)


@instr("{op}.rn.bf16x2 $result, $a, $b;", target="sm_90", pure=True, ref=f"{_HALF}-add", over=[{"op": o} for o in _OPS])
def arith_bf16x2(m: Machine, a: u32, b: u32, result: out(u32), *, op: str) -> int:
    """`arith_f16x2` of bf16."""
    return packed(_apply(op, unpacked(a, dtypes.BFloat16), unpacked(b, dtypes.BFloat16)), dtypes.BFloat16)


_TYPES = {d.ptx: d for d in (dtypes.Float16, dtypes.BFloat16)}
_KINDS = [{"type": t} for t in _TYPES]


@instr("fma.rn.{type}x2 $result, $a, $b, $c;", target="sm_80", pure=True, ref=f"{_HALF}-fma", over=_KINDS)
def fma_half2(m: Machine, a: u32, b: u32, c: u32, result: out(u32), *, type: str) -> int:
    """Two fused a * b + c of f16 or bf16, the first in the low half."""
    dtype = _TYPES[type]
    return packed(fused(unpacked(a, dtype), unpacked(b, dtype), unpacked(c, dtype)), dtype)


_IN = "mov.b64 xa, $a; mov.b64 xb, $b;"


_ROUNDINGS = [{"rnd": r, "ftz": f, "how": f"{r}{'.ftz' * f}"} for r in ("rn", "rz", "rm", "rp") for f in (False, True)]


def _floats(values: Any, rnd: str = "rn", ftz: bool = False) -> tuple[float, ...]:
    """Doubles (of which each is exact or rounded to odd) as f32 rounded by `rnd`; subnormal ones as zero with `ftz`."""
    out = [single(x) if rnd == "rn" else directed(x, rnd) for x in values]
    return tuple(float(flushed(x)) for x in out) if ftz else tuple(out)


_NEAREST = {"rnd": "rn", "ftz": False}


def _taken(pair: Any, ftz: bool) -> Any:
    return np.asarray(flushed(pair) if ftz else pair, np.float64)


@instr(f"{{ .reg .b64 xa, xb, xr; {_IN} {{op}}.{{how}}.f32x2 xr, xa, xb; mov.b64 $result, xr; }}", target="sm_100",
       pure=True, ref=f"{_FLOAT}-add", over=[{"op": o, **r} for r in _ROUNDINGS for o in _OPS],
       defaults=_NEAREST)  # fmt: skip
def arith_f32x2(m: Machine, a: _PAIR, b: _PAIR, result: _PAIR_OUT, *, op: str, rnd: str, ftz: bool) -> Sequence[float]:
    """Two f32 sums, differences or products (op "add", "sub", "mul") by one instruction. rnd: "rn" (to nearest even),
    "rz", "rm", "rp"; ftz: subnormal operands and results are zero."""
    return _floats(_apply(op, _taken(a, ftz), _taken(b, ftz)), rnd, ftz)


@instr(f"{{ .reg .b64 xa, xb, xc, xr; {_IN} mov.b64 xc, $c; fma.{{how}}.f32x2 xr, xa, xb, xc; mov.b64 $result, xr; }}",
       target="sm_100", pure=True, ref=f"{_FLOAT}-fma", over=_ROUNDINGS, defaults=_NEAREST)  # fmt: skip
def fma_f32x2(m: Machine, a: _PAIR, b: _PAIR, c: _PAIR, result: _PAIR_OUT, *, rnd: str, ftz: bool) -> Sequence[float]:
    """Two fused a * b + c of f32 by one instruction. rnd, ftz: as in `arith_f32x2`."""
    return _floats(fused(_taken(a, ftz), _taken(b, ftz), _taken(c, ftz)), rnd, ftz)


_SUMS = [{"op": o, "type": t} for o in ("add", "sub") for t in _TYPES]


@instr("{ .reg .b64 xb, xr; mov.b64 xb, $b; {op}.rn.f32x2.{type}x2.f32x2 xr, $a, xb; mov.b64 $result, xr; }",
       target="sm_107f", pure=True, ref=f"{_MIXED}-add", over=_SUMS)  # fmt: skip
def arith_mixed(m: Machine, a: u32, b: _PAIR, result: _PAIR_OUT, *, op: str, type: str) -> Sequence[float]:
    """Two f32 sums or differences (op "add", "sub") of a pair of f16 or bf16 and a pair of f32."""
    return _floats(_apply(op, unpacked(a, _TYPES[type]), np.asarray(b, np.float64)))


@instr("{ .reg .b64 xb, xc, xr; mov.b64 xb, $b; mov.b64 xc, $c; fma.rn.f32x2.{type}x2.f32x2.f32x2 xr, $a, xb, xc; "
       "mov.b64 $result, xr; }", target="sm_107f", pure=True, ref=f"{_MIXED}-fma", over=_KINDS)  # fmt: skip
def fma_mixed(m: Machine, a: u32, b: _PAIR, c: _PAIR, result: _PAIR_OUT, *, type: str) -> Sequence[float]:
    """Two fused a * b + c of a pair of f16 or bf16 and pairs of f32."""
    return _floats(fused(unpacked(a, _TYPES[type]), b, c))


_CUT = [{**c, "ftz": ".ftz" if c["type"] == "f16" else ""} for c in _SUMS]


@instr("{ .reg .b64 xa, xb; mov.b64 xa, $a; mov.b64 xb, $b; {op}.rz{ftz}.{type}x2.f32x2.f32x2 $result, xa, xb; }",
       target="sm_107f", pure=True, ref=f"{_MIXED}-add", over=_CUT)  # fmt: skip
def arith_narrow(m: Machine, a: _PAIR, b: _PAIR, result: out(u32), *, op: str, type: str) -> int:
    """Two sums or differences (op "add", "sub") of f32 as f16 or bf16, rounded towards zero; with f16, subnormal
    operands and results are zero."""
    x, y = (np.asarray(flushed(v) if type == "f16" else v, np.float64) for v in (a, b))
    return packed(_towards_zero(_apply(op, x, y), _TYPES[type]), _TYPES[type])


def _towards_zero(values: Any, dtype: dtypes.DType) -> Any:
    """Doubles with the bits cut off that the type does not hold (subnormal f16 as zero)."""
    step, least = (10, 2.0**-14) if dtype is dtypes.Float16 else (7, 2.0**-133)
    top = 65504.0 if dtype is dtypes.Float16 else 3.3895313892515355e38
    with np.errstate(all="ignore"):
        exponent = np.maximum(np.floor(np.log2(np.abs(values))), -126.0 if step == 7 else -14.0)
        unit = np.exp2(exponent - step)
        cut = np.trunc(values / unit) * unit
        cut = np.where(np.abs(values) < least, np.copysign(0.0, values), np.clip(cut, -top, top))
    return np.where(np.isfinite(values) & (values != 0), cut, values)


def _exp2(word: int, dtype: dtypes.DType, flush: bool) -> int:
    x = unpacked(word, dtype)
    least = 2.0**-126
    with np.errstate(all="ignore"):
        x = np.where(flush & (np.abs(x) < least), 0.0, x)
        y = np.exp2(x)
        return packed(np.where(flush & (y < least), 0.0, y), dtype)


@instr("ex2.approx.f16x2 $result, $x;", target="sm_75", pure=True, ref=f"{_HALF}-ex2")
def ex2_f16x2(m: Machine, x: u32, result: out(u32)) -> int:
    """Two powers 2 ** x of f16, the first in the low half, to 2**-9.9 relatively."""
    return _exp2(x, dtypes.Float16, False)


@instr("ex2.approx.ftz.bf16x2 $result, $x;", target="sm_90", pure=True, ref=f"{_HALF}-ex2")
def ex2_bf16x2(m: Machine, x: u32, result: out(u32)) -> int:
    """Two powers 2 ** x of bf16, the first in the low half, to 2**-7 relatively; subnormal numbers are zero."""
    return _exp2(x, dtypes.BFloat16, True)
