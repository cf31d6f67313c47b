# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Arithmetic on two floats at once, each rounded to nearest even. All of any thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import dtypes
from .instr import f32, instr, out, u32
from .machine import Machine

_HALF, _FLOAT = "half-precision-floating-point-instructions", "floating-point-instructions"
_OPS = ("add", "sub", "mul")
_PAIR = f32[2]
_PAIR_OUT = out(f32[2])


def _apply(op: str, a: Any, b: Any) -> Any:
    with np.errstate(over="ignore", invalid="ignore"):
        return a + b if op == "add" else a - b if op == "sub" else a * b


def _unpacked(word: int, dtype: dtypes.DType) -> Any:
    return np.array([word], np.uint32).view(dtype.numpy).astype(np.float64)


def _packed(values: Any, dtype: dtypes.DType) -> int:
    with np.errstate(over="ignore", invalid="ignore"):
        return int(values.astype(dtype.numpy).view(np.uint32)[0])


@instr("{op}.rn.f16x2 $result, $a, $b;", target="sm_80", pure=True, ref=f"{_HALF}-add", over=[{"op": o} for o in _OPS])
def arith_f16x2(m: Machine, a: u32, b: u32, result: out(u32), *, op: str) -> int:
    """Two f16 sums, differences or products (op "add", "sub", "mul"), the first in the low half."""
    return _packed(_apply(op, _unpacked(a, dtypes.Float16), _unpacked(b, dtypes.Float16)), dtypes.Float16)


@instr("{op}.rn.bf16x2 $result, $a, $b;", target="sm_90", pure=True, ref=f"{_HALF}-add", over=[{"op": o} for o in _OPS])
def arith_bf16x2(m: Machine, a: u32, b: u32, result: out(u32), *, op: str) -> int:
    """`arith_f16x2` of bf16."""
    return _packed(_apply(op, _unpacked(a, dtypes.BFloat16), _unpacked(b, dtypes.BFloat16)), dtypes.BFloat16)


_TYPES = {d.ptx: d for d in (dtypes.Float16, dtypes.BFloat16)}


@instr("fma.rn.{type}x2 $result, $a, $b, $c;", target="sm_80", pure=True, ref=f"{_HALF}-fma",
       over=[{"type": t} for t in _TYPES])  # fmt: skip
def fma_half2(m: Machine, a: u32, b: u32, c: u32, result: out(u32), *, type: str) -> int:
    """Two fused a * b + c of f16 or bf16, the first in the low half."""
    dtype = _TYPES[type]
    return _packed(_unpacked(a, dtype) * _unpacked(b, dtype) + _unpacked(c, dtype), dtype)


_IN = "mov.b64 xa, $a; mov.b64 xb, $b;"


def _floats(values: Any) -> tuple[float, ...]:
    with np.errstate(over="ignore", invalid="ignore"):
        return tuple(float(x) for x in np.asarray(values, np.float64).astype(np.float32))


@instr(f"{{ .reg .b64 xa, xb, xr; {_IN} {{op}}.rn.f32x2 xr, xa, xb; mov.b64 $result, xr; }}", target="sm_100",
       pure=True, ref=f"{_FLOAT}-add", over=[{"op": o} for o in _OPS])  # fmt: skip
def arith_f32x2(m: Machine, a: _PAIR, b: _PAIR, result: _PAIR_OUT, *, op: str) -> Sequence[float]:
    """Two f32 sums, differences or products (op "add", "sub", "mul") by one instruction."""
    return _floats(_apply(op, np.asarray(a, np.float64), np.asarray(b, np.float64)))


@instr(f"{{ .reg .b64 xa, xb, xc, xr; {_IN} mov.b64 xc, $c; fma.rn.f32x2 xr, xa, xb, xc; mov.b64 $result, xr; }}",
       target="sm_100", pure=True, ref=f"{_FLOAT}-fma")  # fmt: skip
def fma_f32x2(m: Machine, a: _PAIR, b: _PAIR, c: _PAIR, result: _PAIR_OUT) -> Sequence[float]:
    """Two fused a * b + c of f32 by one instruction."""
    x, y, z = (np.asarray(v, np.longdouble) for v in (a, b, c))
    return _floats(x * y + z)
