# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Fast approximations of one float (PTX ISA, "Floating Point Instructions"). Subnormal operands and results are
flushed to zero, but for tanh. Bodies take arrays too: `Backend.elementwise` runs them on whole vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..form.instr import ARRAY, instr
from ..form.kinds import f32, out
from ..form.machine import Machine

_TINY = np.float32(2.0**-126)


def _flushed(x: Any) -> Any:
    x = np.asarray(x, np.float32)
    return np.where(np.abs(x) < _TINY, np.copysign(np.float32(0), x), x).astype(np.float32)[()]


def _approximated(f: Any, *xs: Any) -> Any:
    with np.errstate(all="ignore"):
        return _flushed(f(*(np.asarray(_flushed(x), np.float64) for x in xs)).astype(np.float32))


@instr("ex2.approx.ftz.f32 $y, $x;", target="sm_70", pure=True, lanes=ARRAY, ref="floating-point-instructions-ex2")
def ex2_approx(m: Machine, x: f32, y: out(f32)) -> Any:
    """2 ** x, to 2 ulp. Any thread."""
    return _approximated(np.exp2, x)


@instr("lg2.approx.ftz.f32 $y, $x;", target="sm_70", pure=True, lanes=ARRAY, ref="floating-point-instructions-lg2")
def lg2_approx(m: Machine, x: f32, y: out(f32)) -> Any:
    """The logarithm of x to base 2: to 1 ulp, and to 2**-22 absolutely from 0.5 to 2. Any thread."""
    return _approximated(np.log2, x)


@instr(
    "rcp.approx.ftz.f32 $y, $x;",
    target="sm_70",
    pure=True,
    lanes=ARRAY,
    ref="floating-point-instructions-rcp-approx-ftz-f64",
)
def rcp_approx(m: Machine, x: f32, y: out(f32)) -> Any:
    """1 / x, to 1 ulp. Any thread."""
    return _approximated(lambda v: 1.0 / v, x)


@instr("div.full.ftz.f32 $y, $a, $b;", target="sm_70", pure=True, lanes=ARRAY, ref="floating-point-instructions-div")
def div_full(m: Machine, a: f32, b: f32, y: out(f32)) -> Any:
    """a / b, to 2 ulp, over the whole range of b. Any thread."""
    return _approximated(np.divide, a, b)


@instr("sqrt.approx.ftz.f32 $y, $x;", target="sm_70", pure=True, lanes=ARRAY, ref="floating-point-instructions-sqrt")
def sqrt_approx(m: Machine, x: f32, y: out(f32)) -> Any:
    """The square root of x, to 1 ulp. Any thread."""
    return _approximated(np.sqrt, x)


@instr("rsqrt.approx.ftz.f32 $y, $x;", target="sm_70", pure=True, lanes=ARRAY, ref="floating-point-instructions-rsqrt")
def rsqrt_approx(m: Machine, x: f32, y: out(f32)) -> Any:
    """1 / sqrt(x), to 2 ulp. Any thread."""
    return _approximated(lambda v: 1.0 / np.sqrt(v), x)


@instr("sin.approx.ftz.f32 $y, $x;", target="sm_70", pure=True, lanes=ARRAY, ref="floating-point-instructions-sin")
def sin_approx(m: Machine, x: f32, y: out(f32)) -> Any:
    """The sine of x (radians), to 2**-20.9 absolutely from -pi to pi, and worse outside. Any thread."""
    return _approximated(np.sin, x)


@instr("cos.approx.ftz.f32 $y, $x;", target="sm_70", pure=True, lanes=ARRAY, ref="floating-point-instructions-cos")
def cos_approx(m: Machine, x: f32, y: out(f32)) -> Any:
    """The cosine of x (radians), to 2**-20.9 absolutely from -pi to pi, and worse outside. Any thread."""
    return _approximated(np.cos, x)


@instr("tanh.approx.f32 $y, $x;", target="sm_75", pure=True, lanes=ARRAY, ref="floating-point-instructions-tanh")
def tanh_approx(m: Machine, x: f32, y: out(f32)) -> Any:
    """The hyperbolic tangent of x, to 2**-11 relatively. Subnormal numbers are kept. Any thread."""
    return np.tanh(np.asarray(x, np.float64)).astype(np.float32)[()]
