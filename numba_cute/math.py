# SPDX-License-Identifier: Apache-2.0
"""Functions of floats (`cute.math`), for scalars and register vectors (TensorSSA), element by element. Any thread.

Precise ones are libdevice's (errors: CUDA programming guide, "Mathematical Functions"). With `fastmath=True`, for
elements of at most 32 bits, those that have an approximate instruction use it: ex2, lg2, rcp, div.full, sqrt, rsqrt,
sin, cos, tanh (sm_75). 16-bit and 8-bit floats are computed in Float32 and rounded once; integers become Float32.
"""

from __future__ import annotations

import math as _math
from collections.abc import Callable
from typing import Any

from . import isa, seam
from .dtypes import Float32
from .seam import traced
from .vector import TensorSSA, elementwise

LOG2_E, LN_2, LOG10_2 = _math.log2(_math.e), _math.log(2.0), _math.log10(2.0)


def _approximate(fastmath: bool, x: Any) -> bool:
    """Whether an approximate instruction is asked for, and there is one."""
    dtype = x.dtype if isinstance(x, TensorSSA) else seam.current().type_of(x)
    return fastmath and not (dtype.is_float and dtype.width > 32)


def _in_float32(f: Callable[[Any], Any], x: Any) -> Any:
    """`f` of Float32, the result in the type of `x` again if that is a float."""
    if isinstance(x, TensorSSA):
        out = f(x.to(Float32))
        return out.to(x.dtype) if x.dtype.is_float else out
    b = seam.current()
    dtype = b.type_of(x)
    out = f(b.cast(x, Float32))
    return b.cast(out, dtype) if dtype.is_float else out


def _times(x: Any, factor: float) -> Any:
    return elementwise("mul", x, factor)


def _unary(name: str, doc: str, fast: Callable[[Any], Any] | None = None) -> Callable[..., Any]:
    def precise(a: Any) -> Any:
        return elementwise(name, a)

    def either(a: Any, fastmath: bool = False) -> Any:
        return _in_float32(fast, a) if _approximate(fastmath, a) else elementwise(name, a)  # type: ignore[arg-type]

    fn = precise if fast is None else either
    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = doc
    return traced(fn)


def _issue(row: str) -> Callable[[Any], Any]:
    return lambda x: elementwise(isa.TABLE[row], x)


exp = _unary("exp", "e ** a.", lambda x: _issue("ex2_approx")(_times(x, LOG2_E)))
exp2 = _unary("exp2", "2 ** a.", _issue("ex2_approx"))
log = _unary("log", "The natural logarithm.", lambda x: _times(_issue("lg2_approx")(x), LN_2))
log2 = _unary("log2", "The logarithm to base 2.", _issue("lg2_approx"))
log10 = _unary("log10", "The logarithm to base 10.", lambda x: _times(_issue("lg2_approx")(x), LOG10_2))
sqrt = _unary("sqrt", "The square root.", _issue("sqrt_approx"))
rsqrt = _unary("rsqrt", "1 / sqrt(a).", _issue("rsqrt_approx"))
sin = _unary("sin", "The sine of a (radians).", _issue("sin_approx"))
cos = _unary("cos", "The cosine of a (radians).", _issue("cos_approx"))
tan = _unary(
    "tan",
    "The tangent of a (radians).",
    lambda x: elementwise("mul", _issue("sin_approx")(x), _issue("rcp_approx")(_issue("cos_approx")(x))),
)
tanh = _unary("tanh", "The hyperbolic tangent.", _issue("tanh_approx"))

expm1 = _unary("expm1", "e ** a - 1, precise near 0.")
log1p = _unary("log1p", "log(1 + a), precise near 0.")
cbrt = _unary("cbrt", "The cube root.")
sinh = _unary("sinh", "The hyperbolic sine.")
cosh = _unary("cosh", "The hyperbolic cosine.")
asin = _unary("asin", "The arcsine (radians).")
acos = _unary("acos", "The arccosine (radians).")
atan = _unary("atan", "The arctangent (radians).")
asinh = _unary("asinh", "The inverse hyperbolic sine.")
acosh = _unary("acosh", "The inverse hyperbolic cosine.")
atanh = _unary("atanh", "The inverse hyperbolic tangent.")
erf = _unary("erf", "The error function.")
erfc = _unary("erfc", "1 - erf(a), precise for large a.")
floor = _unary("floor", "The greatest whole number that is not greater.")
ceil = _unary("ceil", "The least whole number that is not less.")
trunc = _unary("trunc", "The whole number next towards zero.")
round = _unary("round", "The nearest whole number, halves away from zero.")
roundeven = _unary("roundeven", "The nearest whole number, halves to the even one.")
isnan = _unary("isnan", "Whether a is not a number: Boolean.")
isinf = _unary("isinf", "Whether a is infinite: Boolean.")
isfinite = _unary("isfinite", "Whether a is neither infinite nor not a number: Boolean.")
abs = _unary("abs", "The magnitude; of integers too.")
neg = _unary("neg", "-a; of integers too.")


@traced
def rcp(a: Any, fastmath: bool = False) -> Any:
    """1 / a."""
    if _approximate(fastmath, a):
        return _in_float32(_issue("rcp_approx"), a)
    return elementwise("div", 1.0, a)


@traced
def div(a: Any, b: Any, fastmath: bool = False) -> Any:
    """a / b, rounded to nearest even; with `fastmath` div.full."""
    if _approximate(fastmath, a) and _approximate(fastmath, b):
        return elementwise(isa.TABLE["div_full"], a, b)
    return elementwise("div", a, b)


@traced
def sincos(a: Any, fastmath: bool = False) -> tuple[Any, Any]:
    """(sin(a), cos(a)), a in radians."""
    return sin(a, fastmath), cos(a, fastmath)


@traced
def pow(a: Any, b: Any, fastmath: bool = False) -> Any:
    """a ** b; with `fastmath` as 2 ** (b * log2(a)), for positive a."""
    if _approximate(fastmath, a):
        return _in_float32(lambda x: _issue("ex2_approx")(elementwise("mul", _issue("lg2_approx")(x), b)), a)
    return elementwise("pow", a, b)


@traced
def atan2(y: Any, x: Any) -> Any:
    """The angle of the point (x, y): radians, from -pi to pi."""
    return elementwise("atan2", y, x)


@traced
def fma(a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once (16-bit floats: in Float32, then to 16 bits)."""
    return elementwise("fma", a, b, c)


@traced
def copysign(magnitude: Any, sign: Any) -> Any:
    """The magnitude of one with the sign of the other."""
    return elementwise("copysign", magnitude, sign)


@traced
def rem(a: Any, b: Any) -> Any:
    """The remainder of a / b rounded towards zero, with the sign of a (C's fmod; `%` has the sign of b)."""
    return elementwise("rem", a, b)


@traced
def max(a: Any, b: Any) -> Any:
    """The greater of two, a number rather than a NaN; of integers too."""
    return elementwise("max", a, b)


@traced
def min(a: Any, b: Any) -> Any:
    """The lesser of two, a number rather than a NaN; of integers too."""
    return elementwise("min", a, b)


@traced
def clamp(a: Any, lo: Any, hi: Any) -> Any:
    """The nearest to `a` from `lo` to `hi`; of integers too."""
    return elementwise("min", elementwise("max", a, lo), hi)
