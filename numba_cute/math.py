# SPDX-License-Identifier: Apache-2.0
"""Functions of floats (`cute.math`), for scalars and register vectors (TensorSSA), element by element. Any thread.

Precise ones are libdevice's (errors: CUDA programming guide, "Mathematical Functions"). With `fastmath=True` (or
`approx=True`), for elements of at most 32 bits, those that have an approximate instruction use it: ex2, lg2, rcp,
div.full, sqrt, rsqrt, sin, cos, tanh (sm_75). Floats of at most 16 bits are computed in Float32 and rounded once;
integers become Float32. In the simulator a scalar, whose width Python does not keep, is computed precisely even so.
"""

from __future__ import annotations

import builtins
import math as _math
from collections.abc import Callable
from typing import Any

import ml_dtypes

from . import isa, seam
from .dtypes import Float32
from .seam import CuteError, StaticEnum, traced
from .tensor.ssa import TensorSSA, elementwise, where

__all__ = [
    "MathOperand", "RoundingMode", "abs", "absf", "absi", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2",
    "atanh", "cbrt", "ceil", "clamp", "copysign", "cos", "cosh", "div", "erf", "erfc", "exp", "exp2", "expm1", "floor",
    "fma", "fpowi", "ipowi", "isfinite", "isinf", "isnan", "isnormal", "log", "log10", "log1p", "log2", "max", "min",
    "mul", "neg", "pow", "rcp", "rem", "round", "roundeven", "rsqrt", "sin", "sincos", "sinh", "sqrt", "sub", "tan",
    "tanh", "trunc",
]  # fmt: skip

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
    def precise(a: Any, fastmath: bool = False) -> Any:
        return elementwise(name, a)

    def either(a: Any, fastmath: bool = False, approx: bool = False) -> Any:
        wanted = _approximate(fastmath or approx, a)
        return _in_float32(fast, a) if wanted else elementwise(name, a)  # type: ignore[arg-type]

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


class RoundingMode(StaticEnum):
    """How the result of one operation on floats is rounded (PTX ISA, "Rounding Modifiers")."""

    NEAREST_EVEN = "rn"
    ZERO = "rz"
    UP = "rp"
    DOWN = "rm"


MathOperand = Any
"""What these functions take: a `TensorSSA`, a number known only at run time, or a float, int or bool."""


def _rounded(name: str, rounding: RoundingMode | None, *operands: Any) -> Any:
    """One operation, rounded as asked."""
    if rounding is None or rounding is RoundingMode.NEAREST_EVEN:
        return elementwise(name, *operands)
    if not isinstance(rounding, RoundingMode):
        raise CuteError(f"{name}: rounding {rounding!r} is not a member of cute.math.RoundingMode")
    for x in operands:
        dtype = x.dtype if isinstance(x, TensorSSA) else seam.current().type_of(x)
        if dtype.is_float and dtype.width < 32:
            raise CuteError(f"{name}: only Float32 and Float64 are rounded by other modes, and these are {dtype}")
    return elementwise(f"{name}.{rounding.value}", *operands)


@traced
def add(a: Any, b: Any, rounding: RoundingMode | None = None) -> Any:
    """a + b; of integers too, which are not rounded."""
    return _rounded("add", rounding, a, b)


@traced
def sub(a: Any, b: Any, rounding: RoundingMode | None = None) -> Any:
    """a - b; of integers too, which are not rounded."""
    return _rounded("sub", rounding, a, b)


@traced
def mul(a: Any, b: Any, rounding: RoundingMode | None = None) -> Any:
    """a * b; of integers too, which are not rounded."""
    return _rounded("mul", rounding, a, b)


@traced
def sqrt(a: Any, fastmath: bool = False, approx: bool = False, rounding: RoundingMode | None = None) -> Any:
    """The square root."""
    if rounding is None and _approximate(fastmath or approx, a):
        return _in_float32(_issue("sqrt_approx"), a)
    return _rounded("sqrt", rounding, a)


@traced
def rcp(a: Any, fastmath: bool = False, approx: bool = False, rounding: RoundingMode | None = None) -> Any:
    """1 / a."""
    if rounding is None and _approximate(fastmath or approx, a):
        return _in_float32(_issue("rcp_approx"), a)
    return _rounded("div", rounding, 1.0, a)


@traced
def div(
    a: Any, b: Any, fastmath: bool = False, approx: bool = False, rounding: RoundingMode | None = None
) -> Any:  # fmt: skip
    """a / b, rounded to nearest even; with `fastmath` div.full."""
    fast = rounding is None and (fastmath or approx)
    if _approximate(fast, a) and _approximate(fast, b):
        return elementwise(isa.TABLE["div_full"], a, b)
    return _rounded("div", rounding, a, b)


@traced
def absf(a: Any, fastmath: bool = False) -> Any:
    """The magnitude of floats."""
    return elementwise("abs", _checked(a, True, "absf"))


@traced
def absi(a: Any) -> Any:
    """The magnitude of integers."""
    return elementwise("abs", _checked(a, False, "absi"))


def _checked(a: Any, floats: bool, what: str) -> Any:
    dtype = a.dtype if isinstance(a, TensorSSA) else seam.current().type_of(a)
    if dtype.is_float != floats:
        raise CuteError(f"{what}: it is for {'floats' if floats else 'integers'}, and this is {dtype}")
    return a


@traced
def isnormal(a: Any, fastmath: bool = False) -> Any:
    """Whether a is neither zero, subnormal, infinite nor not a number: Boolean."""
    dtype = a.dtype if isinstance(a, TensorSSA) else seam.current().type_of(a)
    least = float(ml_dtypes.finfo(dtype.numpy).smallest_normal) if dtype.is_float else 1.0  # type: ignore[no-untyped-call]
    big = elementwise(">=", elementwise("abs", a), least if dtype.is_float else 1)
    return elementwise("and", big, elementwise("isfinite", a))


@traced
def ipowi(base: Any, exponent: int) -> Any:
    """An integer to a static integer power that is not negative."""
    if type(exponent) is not int or exponent < 0:
        raise CuteError(f"ipowi: exponent {exponent!r} must be a static integer of at least 0")
    return _whole_power(_checked(base, False, "ipowi"), exponent, 1)


@traced
def fpowi(base: Any, exponent: int, fastmath: bool = False) -> Any:
    """A float to a static integer power, by multiplications."""
    if type(exponent) is not int:
        raise CuteError(f"fpowi: exponent {exponent!r} must be a static integer")
    power = _whole_power(_checked(base, True, "fpowi"), builtins.abs(exponent), 1.0)
    return power if exponent >= 0 else elementwise("div", 1.0, power)


def _whole_power(base: Any, n: int, one: Any) -> Any:
    if n == 0:
        return elementwise("add", elementwise("mul", base, 0), one)
    half = base if n < 2 else _whole_power(base, n // 2, one)
    square = half if n == 1 else elementwise("mul", half, half)
    return elementwise("mul", square, base) if n > 1 and n % 2 else square


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
def fma(a: Any, b: Any, c: Any, rounding: RoundingMode | None = None) -> Any:
    """a * b + c, rounded once (16-bit floats: in Float32, then to 16 bits)."""
    return _rounded("fma", rounding, a, b, c)


@traced
def copysign(magnitude: Any, sign: Any) -> Any:
    """The magnitude of one with the sign of the other."""
    return elementwise("copysign", magnitude, sign)


@traced
def rem(a: Any, b: Any) -> Any:
    """The remainder of a / b rounded towards zero, with the sign of a (C's fmod; `%` has the sign of b)."""
    return elementwise("rem", a, b)


def _either(name: str, a: Any, b: Any, propagate_nan: bool) -> Any:
    out = elementwise(name, a, b)
    if not propagate_nan:
        return out
    strange = elementwise("or", elementwise("isnan", a), elementwise("isnan", b))
    return where(strange, float("nan"), out)


@traced
def max(a: Any, b: Any, propagate_nan: bool = False) -> Any:
    """The greater of two, a number rather than a NaN (or, with `propagate_nan`, a NaN rather than a number); of
    integers too."""
    return _either("max", a, b, propagate_nan)


@traced
def min(a: Any, b: Any, propagate_nan: bool = False) -> Any:
    """The lesser of two, a number rather than a NaN (or, with `propagate_nan`, a NaN rather than a number); of
    integers too."""
    return _either("min", a, b, propagate_nan)


@traced
def clamp(a: Any, lo: Any, hi: Any) -> Any:
    """The nearest to `a` from `lo` to `hi`; of integers too."""
    return elementwise("min", elementwise("max", a, lo), hi)
