# SPDX-License-Identifier: Apache-2.0
"""Python's own functions as kernels see them: of numbers they give what Numba's give."""

from __future__ import annotations

import builtins
import functools
import math
import operator
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import numpy as np

from ....dtypes import BFloat16, Boolean, DType, Float32, Float64, Int64, Uint64
from ....seam import CuteError, check_keywords, range_constexpr
from ....seam.ground.naming import type_name
from ....seam.guards.messages import NO_STATIC_BOUNDS, NO_STATIC_UNROLLING
from ....seam.marks.decorators import no_step
from ....seam.marks.host_objects import is_snapshot
from ....seam.source.language import no_function, no_number_in
from . import cases
from .compute import convert, float_divmod, limits, quotient, rounder, wrapped
from .lanes import Lanes, lanewise
from .number import CLASSES, Number, from_python
from .operators import BINARY, cast, casts, type_of_class, value_of
from .overloads import unified
from .undefined import Undefined


def passing(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` of numbers: of what is undefined it gives that, and of lanes a result each."""
    each = lanewise(f)

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        for a in args:
            if type(a) is Undefined:
                return a
        return each(*args, **kwargs)

    return call


def _types(args: tuple[Any, ...]) -> list[DType] | None:
    """The types of arguments; None if one is not a number."""
    found = [type_of_class(type(a)) for a in args]
    return None if None in found else found  # type: ignore[return-value]


def _typed(result: DType, value: Any) -> Any:
    return CLASSES[result].make(value)


# ------------------------------------------------------------------ types


class _Conversions(dict[type, Callable[[Any], Any]]):
    """By a number's class, what converts it; what is not a number goes to the type itself."""

    def __init__(self, real: Any, to: Callable[[DType], DType], static: tuple[type, ...] = (int, bool)) -> None:
        super().__init__()
        self.real, self.to, self.static = real, to, static

    def __missing__(self, kind: type) -> Callable[[Any], Any]:
        if kind is str and self.real is int:
            raise CuteError(no_function("int", ["str"]))
        if kind is str and self.real is float:
            return _float_of_text
        found = self[kind] = self._found(kind)
        return found

    def _found(self, kind: type) -> Callable[[Any], Any]:
        to = self.to
        if kind is Undefined:
            return lambda x: x
        if kind is Lanes:
            return lambda x: cast(x, to(x.dtype or Int64))
        src = type_of_class(kind)
        if src is None or kind in self.static and self.real in self.static:
            return self.real  # type: ignore[no-any-return]
        refused = {int: (BFloat16,), float: (Boolean, BFloat16)}.get(self.real, ())
        if src in refused:
            raise CuteError(no_function(self.real.__name__, [type_name(src.name)]))
        return casts(to(src))[kind]


def _float_of_text(text: str) -> Any:
    """Return the number that a text says: "inf" and "nan" too."""
    try:
        return CLASSES[Float64].make(float(text))
    except ValueError:
        raise CuteError(no_number_in(text)) from None


class TypeOf(type):
    """The metaclass of what stands for a type of numbers: called, it converts as Numba does."""

    real: Any
    table: _Conversions
    __cute_dtype__: DType

    def __call__(cls, value: Any = 0, *more: Any) -> Any:
        return cls.real(value, *more) if more else cls.table[type(value)](value)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.real, name)

    def __instancecheck__(cls, x: Any) -> bool:
        x = x.values[0] if type(x) is Lanes and x.dtype is None else x
        dtype = x.dtype if isinstance(x, (Number, Lanes)) else None
        if dtype is None:
            return isinstance(x, cls.real)
        kinds = {int: ("int", "uint", "bool"), float: ("float",), bool: ("bool",)}.get(cls.real)
        return dtype.kind in kinds if kinds else issubclass(dtype.numpy, cls.real)

    def __subclasscheck__(cls, x: Any) -> bool:
        return issubclass(x, cls.real)

    def __eq__(cls, other: object) -> bool:
        return cls is other or cls.real is other or (isinstance(other, DType) and cls.__cute_dtype__ == other)

    def __hash__(cls) -> int:
        return hash(cls.real)


@functools.cache
def type_of(real: Any, of_reference: bool = False) -> Any:
    """Return the replacement, in a kernel, of a type of Python's or NumPy's numbers; any other type is itself.

    of_reference: whether floats too are static (`by_reference`).
    """
    python: dict[Any, tuple[Any, Callable[[DType], DType]]] = {
        int: (np.int64, cases.integer), float: (np.float64, cases.real), bool: (np.bool_, lambda _: Boolean),
    }  # fmt: skip
    found = type_of_class(real)
    if found is None:
        return real
    dtype, to = python.get(real, (real, lambda _: found))
    space = {
        "real": real,
        "table": _Conversions(real, to, (int, bool, float) if of_reference else (int, bool)),
        "numpy": dtype,
        "dtype": np.dtype(dtype),
        "__cute_dtype__": found,
    }
    return TypeOf(real.__name__, (), space)


class _TypeOfTypes(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1:
            x = args[0]
            if is_snapshot(x):
                return x.cute_of
            dtype = x.dtype if isinstance(x, (Number, Lanes)) else None
            return type_of(type(x) if dtype is None else dtype.numpy)  # type: ignore[arg-type]
        return type(*args, **kwargs)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, (type, DType))


class Type(metaclass=_TypeOfTypes):
    """`type` as kernels see it: of numbers it gives what converts to theirs, and element types are such."""


# ------------------------------------------------------------------ functions


def _isinstance(x: Any, kinds: Any) -> bool:
    """Do as Python's: a number of NumPy's that a static object holds is one of the kernel's, of its type."""
    return isinstance(from_python(x) if isinstance(x, np.generic) else x, kinds)


_OF_KERNELS = {"__name__": "isinstance in a kernel", "np": np, "from_python": from_python}
"""The globals of a function in which objects that stand for the user's say that they are of the user's classes."""


def _abs(x: Any) -> Any:
    dtype = type_of_class(type(x))
    static = type(x) is int and x != limits(Int64)[0]
    case = None if dtype is None or static else cases.function("abs", dtype)
    if case is None or dtype is None:
        return builtins.abs(x)
    operand = case.operands[0]
    magnitude = builtins.abs(convert(value_of(x), dtype, operand))
    return _typed(operand, wrapped(magnitude, operand) if operand.is_integer else magnitude)


def _extreme(name: str, better: str) -> Callable[..., Any]:
    """`min` or `max`: of all operands' unified type. Of two floats it is the GPU's, else Python's: of a NaN, whichever
    stood first."""
    python = getattr(builtins, name)

    @passing
    def of_numbers(*args: Any, two: bool) -> Any:
        best, dtype = args[0], type_of_class(type(args[0]))
        for x in args[1:]:
            other = type_of_class(type(x))
            joint = unified(dtype, other) if dtype is not None and other is not None else None
            if Uint64 in (dtype, other) and int in (type(best), type(x)):  # of a static one that is not negative
                joint = Uint64
            static = type(best) in (bool, int) and type(x) in (bool, int)
            if joint is None or dtype is not other and Boolean in (dtype, other) and not static:
                kinds = [type_name(getattr(t, "name", "")) for t in (dtype, other)]
                raise CuteError(no_function(name, kinds))
            floats = {dtype, other} <= {Float32, Float64}
            best, dtype = cast(best, joint), joint
            x = cast(x, joint)
            if two and floats:
                return _of_two_floats(best, x, BINARY[better])
            best = x if BINARY[better](x, best) else best
        return best

    def call(*args: Any, **kwargs: Any) -> Any:
        values = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
        numbers = len(values) > 0 and all(
            type(v) in (Lanes, Undefined) or type_of_class(type(v)) is not None for v in values
        )
        if not numbers or kwargs or all(type(v) is int for v in values):
            return python(*args, **kwargs)
        if len(args) == 2 and (found := _of_two_arrays(*args, BINARY[better])) is not None:
            return found
        return of_numbers(*values, two=len(args) == 2)

    return call


def _of_two_arrays(x: Any, y: Any, better: Callable[[Any, Any], Any]) -> Any:
    """The same as `_of_two_floats` of lanes' floats of one type, at once; None if they are others, or NaN."""
    lanes = [v for v in (x, y) if type(v) is Lanes]
    dtype = lanes[0].dtype if lanes else None
    if dtype not in (Float32, Float64) or any(v.dtype is not dtype for v in (x, y) if isinstance(v, (Lanes, Number))):
        return None
    if not all(isinstance(v, (Lanes, Number)) for v in (x, y)):
        return None
    a, b = np.broadcast_arrays(*(v.array(dtype.numpy) if type(v) is Lanes else dtype.numpy(v.value) for v in (x, y)))
    found = (np.maximum if better is BINARY["gt"] else np.minimum)(a, b)
    if np.isnan(found).any():
        return None
    if found.all():
        return lanes[0].convoy.of_array(dtype, found)
    zeros = (a == 0) & (b == 0)
    signs = np.copysign(1, a), np.copysign(1, b)
    first, second = (np.where(zeros, s, v) for s, v in zip(signs, (a, b)))
    chosen = second > first if better is BINARY["gt"] else second < first
    return lanes[0].convoy.of_array(dtype, np.where(chosen, b, a))


def _of_two_floats(x: Any, y: Any, better: Callable[[Any, Any], Any]) -> Any:
    """PTX's `min` or `max`: of a NaN the other operand, and -0.0 is less than 0.0."""
    a, b = value_of(x), value_of(y)
    if a != a or b != b:
        return y if a != a else x
    if a == b:
        a, b = math.copysign(1.0, a), math.copysign(1.0, b)
    return y if better(b, a) else x


def _divmod(a: Any, b: Any) -> Any:
    types = _types((a, b))
    case = None if types is None else cases.function("divmod", *types)
    if case is None or types is None:
        return builtins.divmod(a, b)
    if type(a) is int and type(b) is int:
        return BINARY["floordiv"](a, b), BINARY["mod"](a, b)
    operand = case.operands[0]
    x, y = (convert(value_of(v), t, to) for v, t, to in zip((a, b), types, case.operands))
    if operand.is_float:
        return tuple(_typed(operand, v) for v in float_divmod(x, y, rounder(operand)))
    x, y = (CLASSES[t].make(v) for v, t in zip((x, y), case.operands))
    return BINARY["floordiv"](x, y), BINARY["mod"](x, y)


def whole_of(x: Any) -> Any:
    """Return the result of `round` and the like for an integer: itself, in the type that operators compute in. None for
    a float."""
    dtype = type_of_class(type(x))
    if dtype is None or not dtype.is_integer or dtype is Boolean:
        return None
    return x if type(x) is int else cast(x, Int64 if dtype.signed else Uint64)


def rounded_half_even(x: float) -> float:
    """llvm.rint."""
    return float(np.rint(x))


def _round(x: Any, digits: Any = None) -> Any:
    types = _types((x,) if digits is None else (x, digits))
    if types is None:
        return builtins.round(x) if digits is None else builtins.round(x, digits)
    if digits is None and (whole := whole_of(x)) is not None:
        return whole
    case = cases.function("round", *types)
    assert case is not None and isinstance(case.result, DType)
    value = convert(value_of(x), types[0], case.operands[0])
    if digits is None:
        return _typed(Int64, convert(rounded_half_even(value), case.operands[0], Int64))
    return _typed(case.result, _to_digits(value, int(digits), rounder(case.result)))


def _to_digits(x: float, digits: int, near: Callable[[float], float]) -> float:
    """As Numba rounds to so many digits behind the point."""
    if not math.isfinite(x):
        return x
    ten = CLASSES[Float64].make(10.0)

    def power(n: int) -> float:
        return float(BINARY["pow"](ten, n))

    if digits < 0:
        return near(rounded_half_even(near(quotient(x, power(-digits)))) * power(-digits))
    first, second = (power(digits - 22), 1e22) if digits > 22 else (power(digits), 1.0)
    y = x * first * second
    return x if math.isinf(y) else near(quotient(quotient(rounded_half_even(near(y)), second), first))


class Range:
    """`range` of run-time numbers: its indices have their type."""

    def __init__(self, dtype: DType, values: Any) -> None:
        self.dtype, self.values = dtype, values

    def __iter__(self) -> Iterator[Any]:
        return map(CLASSES[self.dtype].make, self.values)

    def __len__(self) -> int:
        return len(self.values)

    def __contains__(self, x: Any) -> bool:
        return value_of(x) in self.values

    def __reversed__(self) -> Iterator[Any]:
        return map(CLASSES[self.dtype].make, reversed(self.values))


class LaneRange(Range):
    """The same where bounds differ between lanes: those go on together that have as many rounds."""

    def __init__(self, dtype: DType, bounds: list[Any]) -> None:
        self.dtype, self._bounds = dtype, bounds
        self._convoy = next(b.convoy for b in bounds if type(b) is Lanes)

    @property
    def values(self) -> Any:
        """The one range that most lanes have."""
        return builtins.range(*map(operator.index, self._bounds))

    def _rounds(self, step: int) -> Iterator[Any]:
        f = self._convoy
        rows = [builtins.range(*b)[::step] for b in zip(*map(f.lists, self._bounds))]
        counts = Lanes(f, None, None, np.array([len(r) for r in rows]))
        first, by = (Lanes(f, None, None, np.array([x % (1 << 64) for x in xs], np.uint64))
                     for xs in ([r.start for r in rows], [r.step for r in rows]))  # fmt: skip
        done = 0
        while f.agree((counts.array(np.int64) > done).tolist()):
            now = first.array(np.uint64) + np.uint64(done) * by.array(np.uint64)  # both modulo 2 ** 64
            yield f.of_array(self.dtype, now.astype(self.dtype.numpy))
            done += 1

    def __iter__(self) -> Iterator[Any]:
        return self._rounds(1)

    def __reversed__(self) -> Iterator[Any]:
        return self._rounds(-1)


def unrolled_range(*args: Any, name: str = "range_constexpr") -> Any:
    """Stand for `range_constexpr` in a kernel, or for another function whose loops are unrolled."""
    if not all(isinstance(x, int) for x in args):
        raise CuteError(NO_STATIC_BOUNDS)
    if args[2:] == (0,):
        raise CuteError(no_step(name))
    return range_constexpr(*args)


def range_of(*args: Any, **keywords: Any) -> Any:
    """Make a `range`, Python's or the library's, in a kernel."""
    check_keywords(keywords)
    if not isinstance(keywords.get("unroll_full", False), (bool, int)):
        raise CuteError(NO_STATIC_UNROLLING)
    if keywords.get("unroll_full") and all(isinstance(x, int) for x in args):
        return unrolled_range(*args, name="range")
    if len(args) == 3 and type_of_class(type(args[2])) is not None and value_of(args[2]) == 0:
        raise CuteError(no_step("range"))
    if all(type(x) is int for x in args):
        return builtins.range(*args)  # its indices too are static here
    types = [x.dtype or Int64 if type(x) is Lanes else type_of_class(type(x)) for x in args]
    case = None if None in types else cases.function("range", *types)
    if case is None:
        return builtins.range(*args)
    assert isinstance(case.result, DType)
    bounds = [cast(x, case.result) for x in args]
    if any(type(x) is Lanes for x in bounds):
        return LaneRange(case.result, bounds)
    return Range(case.result, builtins.range(*map(operator.index, bounds)))


def _len(x: Any) -> Any:
    return _typed(Int64, len(x)) if isinstance(x, np.ndarray) else len(x)


def _pow(base: Any, exponent: Any, *modulus: Any) -> Any:
    return pow(base, exponent, *modulus) if modulus else BINARY["pow"](base, exponent)


def _sum(items: Any, start: Any = 0) -> Any:
    for x in items:
        start = BINARY["add"](start, x)
    return start


def python_functions() -> dict[str, Any]:
    """Return the replacements of Python's builtins in a kernel."""
    space = dict(vars(builtins))
    space |= {kind.__name__: type_of(kind) for kind in (int, float, bool)}
    space |= {
        "abs": passing(_abs), "divmod": passing(_divmod), "round": passing(_round), "len": _len, "sum": _sum,
        "min": _extreme("min", "lt"), "max": _extreme("max", "gt"), "range": range_of, "type": Type,
        "pow": _pow, "isinstance": FunctionType(_isinstance.__code__, _OF_KERNELS),
    }  # fmt: skip
    return space
