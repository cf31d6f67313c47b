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
from typing import Any, TypeAlias

import ml_dtypes

from . import isa, seam
from .dtypes import Float32, Scalar
from .seam import CuteError, StaticEnum, traced
from .seam.guards.messages import how_static
from .tensor.followed import Followed
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
    """Return whether an approximate instruction is asked for, and there is one."""
    dtype = x.dtype if isinstance(x, (TensorSSA, Followed)) else seam.current().type_of(x)
    return fastmath and not (dtype.is_float and dtype.width > 32)


def _in_float32(f: Callable[[Any], Any], x: Any) -> Any:
    """`f` of Float32, the result in the type of `x` again if that is a float."""
    if isinstance(x, (TensorSSA, Followed)):
        out = f(x.to(Float32))
        return out.to(x.dtype) if x.dtype.is_float else out
    b = seam.current()
    dtype = b.type_of(x)
    out = f(b.cast(x, Float32))
    return b.cast(out, dtype) if dtype.is_float else out


def _times(x: Any, factor: float) -> Any:
    return elementwise("mul", x, factor)


_OPERAND = "a: a number or a TensorSSA, element by element. Any thread."
_ALWAYS_PRECISE = "fastmath: accepted; there is no approximate instruction for it."
_EITHER_WAY = "fastmath, approx: either allows PTX {}, of elements of at most 32 bits."


_PTX = {
    "abs": "abs", "neg": "neg", "floor": "cvt.rmi", "ceil": "cvt.rpi", "trunc": "cvt.rzi", "roundeven": "cvt.rni",
    "isnan": "setp.nan", "isinf": "abs and setp", "isfinite": "abs and setp",
}  # fmt: skip
"""The instructions of functions of Float32; the others are code of libdevice."""
_SHOWN = {
    "0 0.0": "sin tan tanh expm1 log1p sinh asin atan asinh atanh erf",
    "0 1.0": "exp cos cosh erfc",
    "1 0.0": "log acos acosh",
    "1 False": "isnan isinf",
    "1 True": "isfinite",
    "1.5 1.0": "floor",
    "1.5 2.0": "ceil",
    "-1.5 -1.0": "trunc",
    "2.5 3.0": "round",
    "2.5 2.0": "roundeven",
    "3 8.0": "exp2",
    "8 3.0": "log2",
    "100 2.0": "log10",
    "4 0.5": "rsqrt",
    "27 3.0": "cbrt",
    "-2 2.0": "abs",
    "2 -2.0": "neg",
}
"""An operand and what comes of it, by functions: the examples of their docstrings."""


def _unary(name: str, doc: str, fast: Callable[[Any], Any] | None = None, by: str = "") -> Callable[..., Any]:
    """Make the function `name`. fast: how it is computed approximately, by the PTX instructions `by`."""

    def precise(a: MathOperand, fastmath: bool = False) -> Any:
        return elementwise(name, a)

    def either(a: MathOperand, fastmath: bool = False, approx: bool = False) -> Any:
        wanted = _approximate(fastmath or approx, a)
        return _in_float32(fast, a) if wanted else elementwise(name, a)  # type: ignore[arg-type]

    fn = precise if fast is None else either
    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = f"{doc}\n\n{_OPERAND} {_ALWAYS_PRECISE if fast is None else _EITHER_WAY.format(by)}"
    fn.__doc__ += f" PTX {_PTX[name]}, any target." if name in _PTX else " PTX: libdevice's, any target."
    operand, gives = next(pair.split() for pair, names in _SHOWN.items() if name in names.split())
    fn.__doc__ += f"\n\n>>> cute.simulate(lambda: print(cute.{name}(cute.Float32({operand}))))[1, 1]()\n{gives}"
    return traced(fn)


def _issue(row: isa.Instr) -> Callable[[Any], Any]:
    return lambda x: elementwise(row, x)


exp = _unary("exp", "Compute e ** `a`.", lambda x: _issue(isa.ex2_approx)(_times(x, LOG2_E)), "ex2.approx")
exp2 = _unary("exp2", "Compute 2 ** `a`.", _issue(isa.ex2_approx), "ex2.approx")
log = _unary(
    "log", "Compute the natural logarithm of `a`.", lambda x: _times(_issue(isa.lg2_approx)(x), LN_2), "lg2.approx"
)
log2 = _unary("log2", "Compute the logarithm of `a` to base 2.", _issue(isa.lg2_approx), "lg2.approx")
log10 = _unary(
    "log10",
    "Compute the logarithm of `a` to base 10.",
    lambda x: _times(_issue(isa.lg2_approx)(x), LOG10_2),
    "lg2.approx",
)
rsqrt = _unary("rsqrt", "Compute 1 / sqrt(`a`).", _issue(isa.rsqrt_approx), "rsqrt.approx")
sin = _unary("sin", "Compute the sine of `a`, in radians.", _issue(isa.sin_approx), "sin.approx")
cos = _unary("cos", "Compute the cosine of `a`, in radians.", _issue(isa.cos_approx), "cos.approx")
tan = _unary(
    "tan",
    "Compute the tangent of `a`, in radians.",
    lambda x: elementwise("mul", _issue(isa.sin_approx)(x), _issue(isa.rcp_approx)(_issue(isa.cos_approx)(x))),
    "sin.approx, cos.approx and rcp.approx",
)
tanh = _unary("tanh", "Compute the hyperbolic tangent of `a`.", _issue(isa.tanh_approx), "tanh.approx (sm_75)")

expm1 = _unary("expm1", "Compute e ** `a` - 1, precisely near 0 too.")
log1p = _unary("log1p", "Compute log(1 + `a`), precisely near 0 too.")
cbrt = _unary("cbrt", "Compute the cube root of `a`.")
sinh = _unary("sinh", "Compute the hyperbolic sine of `a`.")
cosh = _unary("cosh", "Compute the hyperbolic cosine of `a`.")
asin = _unary("asin", "Compute the arcsine of `a`, in radians.")
acos = _unary("acos", "Compute the arccosine of `a`, in radians.")
atan = _unary("atan", "Compute the arctangent of `a`, in radians.")
asinh = _unary("asinh", "Compute the inverse hyperbolic sine of `a`.")
acosh = _unary("acosh", "Compute the inverse hyperbolic cosine of `a`.")
atanh = _unary("atanh", "Compute the inverse hyperbolic tangent of `a`.")
erf = _unary("erf", "Compute the error function of `a`.")
erfc = _unary("erfc", "Compute 1 - erf(`a`), precisely for large `a` too.")
floor = _unary("floor", "Round `a` down to a whole number.")
ceil = _unary("ceil", "Round `a` up to a whole number.")
trunc = _unary("trunc", "Round `a` to a whole number towards zero.")
round = _unary("round", "Round `a` to the nearest whole number, halves away from zero.")
roundeven = _unary("roundeven", "Round `a` to the nearest whole number, halves to the even one.")
isnan = _unary("isnan", "Return whether `a` is not a number (Boolean).")
isinf = _unary("isinf", "Return whether `a` is infinite (Boolean).")
isfinite = _unary("isfinite", "Return whether `a` is neither infinite nor a NaN (Boolean).")
abs = _unary("abs", "Compute the magnitude of `a`; of integers too.")
neg = _unary("neg", "Compute -`a`; of integers too.")


class RoundingMode(StaticEnum):
    """The rounding of one operation on floats: to nearest even, towards zero, up or down (PTX ISA, "Rounding
    Modifiers").

    >>> [member.name for member in cute.RoundingMode]
    ['NEAREST_EVEN', 'ZERO', 'UP', 'DOWN']
    """

    NEAREST_EVEN = "rn"
    ZERO = "rz"
    UP = "rp"
    DOWN = "rm"


MathOperand: TypeAlias = seam.Number | TensorSSA
"""An operand of these functions: a `TensorSSA`, a number known only at run time, or a float, int or bool."""


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
def add(a: MathOperand, b: MathOperand, rounding: RoundingMode | None = None) -> Any:
    """Compute `a` + `b`; of integers too, which are not rounded. rounding: a RoundingMode, of Float32 and Float64
    alone; by default to nearest even. Any thread. PTX add, any target.

    >>> cute.simulate(lambda: print(cute.add(cute.Float32(1), cute.Float32(2))))[1, 1]()
    3.0
    """
    return _rounded("add", rounding, a, b)


@traced
def sub(a: MathOperand, b: MathOperand, rounding: RoundingMode | None = None) -> Any:
    """Compute `a` - `b`; of integers too, which are not rounded. rounding: as for `add`. Any thread. PTX sub, any
    target.

    >>> cute.simulate(lambda: print(cute.sub(cute.Float32(1), cute.Float32(2))))[1, 1]()
    -1.0
    """
    return _rounded("sub", rounding, a, b)


@traced
def mul(a: MathOperand, b: MathOperand, rounding: RoundingMode | None = None) -> Any:
    """Compute `a` * `b`; of integers too, which are not rounded. rounding: as for `add`. Any thread. PTX mul, any
    target.

    >>> cute.simulate(lambda: print(cute.mul(cute.Float32(3), cute.Float32(2))))[1, 1]()
    6.0
    """
    return _rounded("mul", rounding, a, b)


@traced
def sqrt(a: MathOperand, fastmath: bool = False, approx: bool = False, rounding: RoundingMode | None = None) -> Any:
    """Compute the square root of `a`. fastmath, approx: either allows PTX sqrt.approx, of elements of at most 32 bits.
    rounding: as for `add`; it excludes the approximation. Any thread. PTX sqrt, any target.

    >>> cute.simulate(lambda: print(cute.sqrt(cute.Float32(4))))[1, 1]()
    2.0
    """
    if rounding is None and _approximate(fastmath or approx, a):
        return _in_float32(_issue(isa.sqrt_approx), a)
    return _rounded("sqrt", rounding, a)


@traced
def rcp(a: MathOperand, fastmath: bool = False, approx: bool = False, rounding: RoundingMode | None = None) -> Any:
    """Compute 1 / `a`. fastmath, approx: either allows PTX rcp.approx, of elements of at most 32 bits. rounding: as for
    `add`; it excludes the approximation. Any thread. PTX rcp, any target.

    >>> cute.simulate(lambda: print(cute.rcp(cute.Float32(4))))[1, 1]()
    0.25
    """
    if rounding is None and _approximate(fastmath or approx, a):
        return _in_float32(_issue(isa.rcp_approx), a)
    return _rounded("div", rounding, 1.0, a)


@traced
def div(
    a: MathOperand, b: MathOperand, fastmath: bool = False, approx: bool = False, rounding: RoundingMode | None = None
) -> Any:  # fmt: skip
    """Compute `a` / `b`. fastmath, approx: either allows PTX div.full, of elements of at most 32 bits. rounding: as for
    `add`; it excludes the approximation. Any thread. PTX div, any target.

    >>> cute.simulate(lambda: print(cute.div(cute.Float32(3), cute.Float32(2))))[1, 1]()
    1.5
    """
    fast = rounding is None and (fastmath or approx)
    if _approximate(fast, a) and _approximate(fast, b):
        return elementwise(isa.div_full, a, b)
    return _rounded("div", rounding, a, b)


@traced
def absf(a: MathOperand, fastmath: bool = False) -> Any:
    """Compute the magnitude of `a`, which holds floats; integers are an error. fastmath: accepted; it changes nothing.
    Any thread. PTX abs, any target.

    >>> cute.simulate(lambda: print(cute.absf(cute.Float32(-2))))[1, 1]()
    2.0
    """
    return elementwise("abs", _checked(a, True, "absf"))


@traced
def absi(a: MathOperand) -> Any:
    """Compute the magnitude of `a`, which holds integers; floats are an error. Any thread. PTX abs, any target.

    >>> cute.simulate(lambda: print(cute.absi(cute.Int32(-2))))[1, 1]()
    2
    """
    return elementwise("abs", _checked(a, False, "absi"))


def _checked(a: Any, floats: bool, what: str) -> Any:
    dtype = a.dtype if isinstance(a, (TensorSSA, Followed)) else seam.current().type_of(a)
    if dtype.is_float != floats:
        raise CuteError(f"{what}: it is for {'floats' if floats else 'integers'}, and this is {dtype}")
    return a


@traced
def isnormal(a: MathOperand, fastmath: bool = False) -> Any:
    """Return whether `a` is neither zero, subnormal, infinite nor a NaN (Boolean). fastmath: accepted; it changes
    nothing. Any thread. PTX abs and setp, any target.

    >>> cute.simulate(lambda: print(cute.isnormal(cute.Float32(1))))[1, 1]()
    True
    """
    dtype = a.dtype if isinstance(a, TensorSSA) else seam.current().type_of(a)
    least = float(ml_dtypes.finfo(dtype.numpy).smallest_normal) if dtype.is_float else 1.0  # type: ignore[no-untyped-call]
    big = elementwise(">=", elementwise("abs", a), least if dtype.is_float else 1)
    return elementwise("and", big, elementwise("isfinite", a))


@traced
def ipowi(base: MathOperand, exponent: int) -> Any:
    """Raise `base`, an integer, to `exponent`, a static integer of at least 0, by multiplications. Any thread. PTX mul,
    any target.

    >>> cute.simulate(lambda: print(cute.ipowi(cute.Int32(2), 5)))[1, 1]()
    32
    """
    if type(exponent) is not int or exponent < 0:
        raise CuteError(f"ipowi: exponent {exponent!r} must be a static integer of at least 0{how_static(exponent)}")
    return _whole_power(_checked(base, False, "ipowi"), exponent, 1)


@traced
def fpowi(base: MathOperand, exponent: int, fastmath: bool = False) -> Any:
    """Raise `base`, a float, to `exponent`, a static integer, by multiplications. fastmath: accepted; it changes
    nothing. Any thread. PTX mul (and div for a negative `exponent`), any target.

    >>> cute.simulate(lambda: print(cute.fpowi(cute.Float32(2), 5)))[1, 1]()
    32.0
    """
    if type(exponent) is not int:
        raise CuteError(f"fpowi: exponent {exponent!r} must be a static integer{how_static(exponent)}")
    power = _whole_power(_checked(base, True, "fpowi"), builtins.abs(exponent), 1.0)
    return power if exponent >= 0 else elementwise("div", 1.0, power)


def _whole_power(base: Any, n: int, one: Any) -> Any:
    if n == 0:
        return elementwise("add", elementwise("mul", base, 0), one)
    half = base if n < 2 else _whole_power(base, n // 2, one)
    square = half if n == 1 else elementwise("mul", half, half)
    return elementwise("mul", square, base) if n > 1 and n % 2 else square


@traced
def sincos(a: MathOperand, fastmath: bool = False) -> tuple[Any, Any]:
    """Compute (sin(`a`), cos(`a`)), `a` in radians. fastmath: as for `sin`. Any thread. PTX: libdevice's, any target.

    >>> cute.simulate(lambda: print(cute.sincos(cute.Float32(0))))[1, 1]()
    (Float32(0.0), Float32(1.0))
    """
    return sin(a, fastmath), cos(a, fastmath)


@traced
def pow(a: MathOperand, b: MathOperand, fastmath: bool = False) -> Any:
    """Compute `a` ** `b`. fastmath: allow 2 ** (b * log2(a)) by PTX ex2.approx and lg2.approx, for positive `a` of at
    most 32 bits. Any thread. PTX: else libdevice's, any target.

    >>> cute.simulate(lambda: print(cute.pow(cute.Float32(2), cute.Float32(3))))[1, 1]()
    8.0
    """
    if _approximate(fastmath, a):
        return _in_float32(lambda x: _issue(isa.ex2_approx)(elementwise("mul", _issue(isa.lg2_approx)(x), b)), a)
    return elementwise("pow", a, b)


@traced
def atan2(y: MathOperand, x: MathOperand) -> Any:
    """Compute the angle of the point (`x`, `y`) in radians, from -pi to pi. Any thread. PTX: libdevice's, any target.

    >>> cute.simulate(lambda: print(cute.atan2(cute.Float32(0), cute.Float32(1))))[1, 1]()
    0.0
    """
    return elementwise("atan2", y, x)


@traced
def fma(a: MathOperand, b: MathOperand, c: MathOperand, rounding: RoundingMode | None = None) -> Any:
    """Compute `a` * `b` + `c`, rounded once (16-bit floats: in Float32, then to 16 bits). rounding: as for `add`. Any
    thread. PTX fma, any target.

    >>> cute.simulate(lambda: print(cute.fma(cute.Float32(3), cute.Float32(2), cute.Float32(1))))[1, 1]()
    7.0
    """
    return _rounded("fma", rounding, a, b, c)


@traced
def copysign(magnitude: MathOperand, sign: MathOperand) -> Any:
    """Return `magnitude` with the sign of `sign`. Any thread. PTX copysign, any target.

    >>> cute.simulate(lambda: print(cute.copysign(cute.Float32(2), cute.Float32(-1))))[1, 1]()
    -2.0
    """
    return elementwise("copysign", magnitude, sign)


@traced
def rem(a: MathOperand, b: MathOperand) -> Any:
    """Compute the remainder of `a` / `b` rounded towards zero: it has the sign of `a`, as of C's fmod (`%` has that of
    `b`). Any thread. PTX: libdevice's, of integers rem; any target.

    >>> cute.simulate(lambda: print(cute.rem(cute.Float32(-7), cute.Float32(3))))[1, 1]()
    -1.0
    """
    return elementwise("rem", a, b)


_ON_HOST: dict[str, Callable[[Any, Any], Any]] = {"min": builtins.min, "max": builtins.max}


def _either(name: str, a: Any, b: Any, propagate_nan: bool) -> Any:
    if seam.current_or(None) is None and all(isinstance(x, (int, float, Scalar)) for x in (a, b)):
        unknown = [x.dtype for x in (a, b) if isinstance(x, Scalar)]
        chosen = _ON_HOST[name](a, b)
        if propagate_nan and a + b != a + b:
            chosen = float("nan")
        return unknown[0](chosen) if unknown and not isinstance(chosen, Scalar) else chosen
    out = elementwise(name, a, b)
    if not propagate_nan:
        return out
    strange = elementwise("or", elementwise("isnan", a), elementwise("isnan", b))
    return where(strange, float("nan"), out)


@traced
def max(a: MathOperand, b: MathOperand, propagate_nan: bool = False) -> Any:
    """Return the greater of `a` and `b`, of integers too. propagate_nan: give NaN if one is NaN, instead of the number.
    Any thread; of numbers on the host too. PTX max, any target.

    >>> cute.simulate(lambda: print(cute.max(cute.Float32(2), cute.Float32(3))))[1, 1]()
    3.0
    """
    return _either("max", a, b, propagate_nan)


@traced
def min(a: MathOperand, b: MathOperand, propagate_nan: bool = False) -> Any:
    """Return the lesser of `a` and `b`, of integers too. propagate_nan: give NaN if one is NaN, instead of the number.
    Any thread; of numbers on the host too. PTX min, any target.

    >>> cute.simulate(lambda: print(cute.min(cute.Float32(2), cute.Float32(3))))[1, 1]()
    2.0
    """
    return _either("min", a, b, propagate_nan)


@traced
def clamp(a: MathOperand, lo: MathOperand, hi: MathOperand) -> Any:
    """Limit `a` to the range from `lo` to `hi`; of integers too. Any thread. PTX max and min, any target.

    >>> def kernel():
    ...     print(cute.clamp(cute.Float32(5), cute.Float32(0), cute.Float32(1)))
    >>> cute.simulate(kernel)[1, 1]()
    1.0
    """
    return elementwise("min", elementwise("max", a, lo), hi)
