# SPDX-License-Identifier: Apache-2.0
"""Functions of numba.cuda that are declarations alone (their Python bodies are empty): libdevice, half precision, loads
and stores with cache hints, and vector types. Functions of floats are computed in float64 and rounded."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from statistics import NormalDist
from types import FunctionType
from typing import Any

import numpy as np

from ...dtypes import BFloat16, DType, Float16, Float32, Float64, Int32, Int64, Uint32, Uint64, converted
from ...seam import CuteError
from ...seam.ground.bytecode import operations
from .arithmetic.elementwise import compute
from .arithmetic.functions import passing
from .arithmetic.number import from_python
from .arithmetic.operators import value_of

_NORMAL = NormalDist()


def _erfinv(x: float) -> float:
    return math.copysign(math.inf, x) if abs(x) == 1 else _NORMAL.inv_cdf((x + 1) / 2) / math.sqrt(2)


def _remquo(x: float, y: float) -> tuple[float, int]:
    rest = math.remainder(x, y)
    return rest, int(math.fmod(round((x - rest) / y), 8))


def _mulhi(a: Any, b: Any, bits: int) -> int:
    return (int(a) * int(b)) >> bits


_FLOATS: dict[str, Callable[..., Any]] = {
    **{n: getattr(np, n) for n in (
        "cbrt", "ceil", "copysign", "cos", "cosh", "exp", "exp2", "expm1", "fabs", "floor", "fmax", "fmin", "fmod",
        "hypot", "log", "log10", "log1p", "log2", "nextafter", "rint", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
    )},
    **{n: getattr(np, "arc" + n[1:]) for n in ("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh")},
    "cospi": lambda x: np.cos(np.pi * math.remainder(x, 2)), "sinpi": lambda x: np.sin(np.pi * math.remainder(x, 2)),
    "erf": math.erf, "erfc": math.erfc, "erfinv": _erfinv, "erfcinv": lambda x: _erfinv(1 - x),
    "erfcx": lambda x: math.exp(x * x) * math.erfc(x), "exp10": lambda x: np.power(10.0, x),
    "fdim": lambda x, y: max(x - y, 0.0), "fdivide": np.divide, "frexp": math.frexp,
    "ilogb": lambda x: math.frexp(x)[1] - 1, "ldexp": lambda x, n: math.ldexp(x, int(n)),
    "lgamma": lambda x: math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x), "tgamma": math.gamma,
    "logb": lambda x: float(math.frexp(x)[1] - 1),
    "modf": math.modf, "nearbyint": np.rint, "normcdf": lambda x: math.erfc(-x / math.sqrt(2)) / 2,
    "normcdfinv": lambda x: _NORMAL.inv_cdf(x), "pow": np.power, "powi": lambda x, n: np.power(x, float(n)),
    "rcbrt": lambda x: 1 / np.cbrt(x), "remainder": math.remainder, "remquo": _remquo,
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), "rsqrt": lambda x: 1 / np.sqrt(x),
    "saturate": lambda x: float(np.fmin(np.fmax(x, 0.0), 1.0)), "scalbn": lambda x, n: math.ldexp(x, int(n)),
    "sincos": lambda x: (math.sin(x), math.cos(x)),
    "sincospi": lambda x: (np.sin(np.pi * math.remainder(x, 2)), np.cos(np.pi * math.remainder(x, 2))),
    "signbit": np.signbit, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "finite": np.isfinite,
    "llrint": lambda x: int(np.rint(x)), "llround": lambda x: int(np.copysign(np.floor(np.abs(x) + 0.5), x)),
}  # fmt: skip
"""Functions of floats, by the name without the suffix of the type."""

_BITS: dict[str, Callable[..., Any]] = {
    "abs": abs, "llabs": abs, "max": max, "llmax": max, "min": min, "llmin": min, "umax": max, "ullmax": max,
    "umin": min, "ullmin": min,
    "brev": lambda x: int(f"{int(x) & 0xFFFFFFFF:032b}"[::-1], 2),
    "brevll": lambda x: int(f"{int(x) & (1 << 64) - 1:064b}"[::-1], 2),
    "clz": lambda x: 32 - (int(x) & 0xFFFFFFFF).bit_length(),
    "clzll": lambda x: 64 - (int(x) & (1 << 64) - 1).bit_length(),
    "ffs": lambda x: (int(x) & -int(x)).bit_length(), "ffsll": lambda x: (int(x) & -int(x)).bit_length(),
    "popc": lambda x: bin(int(x) & 0xFFFFFFFF).count("1"),
    "popcll": lambda x: bin(int(x) & (1 << 64) - 1).count("1"),
    "hadd": lambda a, b: int(a) + int(b) >> 1, "rhadd": lambda a, b: int(a) + int(b) + 1 >> 1,
    "uhadd": lambda a, b: _unsigned(a) + _unsigned(b) >> 1,
    "urhadd": lambda a, b: _unsigned(a) + _unsigned(b) + 1 >> 1,
    "mul24": lambda a, b: _signed(a, 24) * _signed(b, 24),
    "umul24": lambda a, b: (int(a) & 0xFFFFFF) * (int(b) & 0xFFFFFF),
    "mulhi": lambda a, b: _mulhi(a, b, 32), "umulhi": lambda a, b: _mulhi(_unsigned(a), _unsigned(b), 32),
    "mul64hi": lambda a, b: _mulhi(a, b, 64),
    "umul64hi": lambda a, b: _mulhi(_unsigned(a, 64), _unsigned(b, 64), 64),
    "sad": lambda a, b, c: abs(int(a) - int(b)) + _unsigned(c),
    "usad": lambda a, b, c: abs(_unsigned(a) - _unsigned(b)) + _unsigned(c),
    "byte_perm": lambda a, b, s: sum(
        ((_unsigned(a) | _unsigned(b) << 32) >> 8 * (int(s) >> 4 * i & 7) & 255) << 8 * i for i in range(4)
    ),
    "double2hiint": lambda x: np.float64(x).view(np.int64) >> 32,
    "double2loint": lambda x: np.float64(x).view(np.int64) & 0xFFFFFFFF,
    "hiloint2double": lambda h, low: np.int64(_signed(h, 32) << 32 | _unsigned(low)).view(np.float64),
    "double_as_longlong": lambda x: np.float64(x).view(np.int64),
    "longlong_as_double": lambda x: np.int64(x).view(np.float64),
    "float_as_int": lambda x: np.float32(x).view(np.int32), "int_as_float": lambda x: np.int32(x).view(np.float32),
    "float2half_rn": lambda x: np.float16(x).view(np.int16), "half2float": lambda x: np.int16(x).view(np.float16),
}  # fmt: skip
"""Functions of integers and bits."""

_MODES = {"rd": "rm", "ru": "rp", "rz": "rz"}
_DIRECTED = re.compile(r"(d|f|fmaf|fma)(add|sub|mul|div|rcp|sqrt|rsqrt)?_(r[nzud])")
_CONVERTS = re.compile(r"(int|uint|ll|ull|float|double)2(int|uint|ll|ull|float|double)_(r[nzud])")
_TYPES = {"int": Int32, "uint": Uint32, "ll": Int64, "ull": Uint64, "float": Float32, "double": Float64}
_WHOLE: dict[str, Callable[[Any], Any]] = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}


def _unsigned(x: Any, bits: int = 32) -> int:
    return int(x) & (1 << bits) - 1


def _signed(x: Any, bits: int) -> int:
    word = _unsigned(x, bits)
    return word - (1 << bits) if word >> bits - 1 else word


def _directed(dtype: DType, op: str, mode: str) -> Callable[..., Any]:
    """An operation rounded in one direction."""
    name = op if mode == "rn" else f"{op}.{_MODES[mode]}"

    def call(*xs: Any) -> Any:
        return compute(name, dtype, [np.asarray(x, dtype.numpy) for x in xs])[()]

    if op == "rcp":
        divide = _directed(dtype, "div", mode)
        return lambda x: divide(1.0, x)
    if op == "rsqrt":
        return lambda x: 1 / np.sqrt(x)
    return call


def _converter(src: str, dst: str, mode: str) -> Callable[..., Any]:
    to = _TYPES[dst]
    if to.is_integer:
        return lambda x: converted(np.asarray(_WHOLE[mode](np.float64(x))), to)[()]
    exact = _TYPES[src].numpy

    def call(x: Any) -> Any:
        x = exact(x)
        near = to.numpy(x)
        if mode == "rn" or not np.isfinite(near):
            return near
        above, below = int(near) > int(x) if float(x).is_integer() else near > x, False
        below = int(near) < int(x) if float(x).is_integer() else near < x
        down = mode == "rd" or (mode == "rz" and x > 0)
        if above and down:
            return np.nextafter(near, to.numpy(-np.inf))
        return np.nextafter(near, to.numpy(np.inf)) if below and not down else near

    return call


def libdevice(name: str) -> Callable[..., Any] | None:
    """A function of libdevice on numbers, before its result is rounded."""
    if name in _BITS:
        return _BITS[name]
    if name in ("fma", "fmaf"):
        return _directed(Float32 if name == "fmaf" else Float64, "fma", "rn")
    for pattern in (_CONVERTS, _DIRECTED):
        found = pattern.fullmatch(name)
        if found is None:
            continue
        if pattern is _CONVERTS:
            return _converter(*found.groups())
        kind, op, mode = found.groups()
        if (op is None) == kind.startswith("fma"):
            return _directed(Float64 if kind in ("d", "fma") else Float32, op or "fma", mode)
    base = name.removeprefix("fast_")
    for plain in (base, base[:-1] if base[-1] in "fd" else base):
        if plain in _FLOATS:
            return _FLOATS[plain]
    return None


_HALF: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "abs": np.abs,
    "max": np.fmax, "min": np.fmin, "rcp": lambda x: 1 / x, "eq": np.equal, "ne": np.not_equal, "ge": np.greater_equal,
    "gt": np.greater, "le": np.less_equal, "lt": np.less, "fma": lambda a, b, c: a * b + c,
    **{n: _FLOATS[n] for n in (
        "ceil", "cos", "exp", "exp10", "exp2", "floor", "log", "log10", "log2", "rint", "rsqrt", "sin", "sqrt", "tanh",
        "trunc",
    )},
}  # fmt: skip
"""Functions of half precision, by the name without its h; exact in float64, and rounded once."""


_WIDENS = ("bfloat162float", "bfloat16_to_float32")
_NARROWS = ("float2bfloat16", "float2bfloat16_rn", "double2bfloat16", "float32_to_bfloat16", "float32_to_bfloat16_rn",
            "float64_to_bfloat16")  # fmt: skip


def _half(name: str, dtype: DType) -> Callable[..., Any] | None:
    """A function of Float16 or BFloat16 elements."""
    name = name.strip("_")
    if name in _WIDENS:
        return np.float32
    if name in _NARROWS:
        return lambda x: converted(x, dtype)[()]
    f = _HALF.get(name.removeprefix("h").removesuffix("_approx").removesuffix("_rn"))
    if f is None:
        return None

    def call(*xs: Any) -> Any:
        out = f(*(np.float64(x) for x in xs))
        return bool(out) if isinstance(out, (bool, np.bool_)) else converted(out, dtype)[()]

    return call


_RESULT = re.compile(r":rtype: (.*)")


def _rounded(fn: FunctionType, f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` with the type of result that the declaration names: float32, Tuple(float64, int32), …"""
    found = _RESULT.search(fn.__doc__ or "")
    text = found[1] if found else ""
    names = re.findall(r"(?:float|int)\d+", text) * (2 if text.startswith("Uni") else 1)
    types: list[Any] = [getattr(np, n) for n in names]
    floats = "float" in "".join(re.findall(r":type \w+: (\w+)", fn.__doc__ or ""))

    def one(x: Any, t: Any) -> Any:
        if issubclass(t, np.integer) and not isinstance(x, np.floating):
            return t(_signed(x, 8 * t().itemsize))
        return t(x)

    def call(*args: Any) -> Any:
        try:
            out = f(*(float(a) if floats else a for a in args))
        except (ValueError, OverflowError) as e:  # where Python raises, the GPU gives NaN or infinity
            out = math.nan if isinstance(e, ValueError) else math.inf
        return one(out, types[0]) if len(types) == 1 else tuple(map(one, out, types))

    return call


# loads and stores with cache hints

_LOADS = ("ldca", "ldcg", "ldcs", "ldlu", "ldcv")
_STORES = ("stcg", "stcs", "stwb", "stwt")


def _load(array: Any, i: Any) -> Any:
    return array[i]


def _store(array: Any, i: Any, value: Any) -> None:
    array[i] = value


# vector types

_VECTOR = re.compile(r"(u?int(?:8|16|32|64)|float(?:32|64))x([1234])")


class VectorValue:
    """A value of a vector type: x, y, z and w."""

    __slots__ = ("x", "y", "z", "w")

    def __init__(self, *values: Any) -> None:
        for name, v in zip("xyzw", values):
            setattr(self, name, v)

    def parts(self) -> list[Any]:
        return [getattr(self, n) for n in "xyzw" if hasattr(self, n)]


def _vector(name: str, number: Callable[[Any], Any]) -> Callable[..., Any] | None:
    """Makes values of a vector type from numbers and vectors that are as many together, or one number for all."""
    found = _VECTOR.fullmatch(name)
    if found is None:
        return None
    count = int(found[2])

    def make(*args: Any) -> Any:
        values = [p for a in args for p in (a.parts() if isinstance(a, VectorValue) else [a])]
        if len(values) == 1:
            values *= count
        if len(values) != count:
            raise CuteError(f"{name}: takes {count} numbers (or vectors of so many together), got {len(values)}")
        return VectorValue(*(number(v) for v in values))

    return make


def _empty(fn: FunctionType) -> bool:
    """Tell whether a function's body is a docstring at most."""
    code = fn.__code__
    does = {o.name for o in operations(code)}
    return does <= {"RESUME", "NOP", "LOAD_CONST", "RETURN_VALUE"} and set(code.co_consts) <= {None, fn.__doc__}


def _on_plain(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` of Python's numbers, of numbers with types."""

    def call(*args: Any) -> Any:
        out = f(*map(value_of, args))
        return tuple(map(from_python, out)) if isinstance(out, tuple) else from_python(out)

    return call


@functools.cache
def _found(fn: Any) -> Any:
    module, name = fn.__module__, fn.__name__
    found: Callable[..., Any] | None = None
    if module == "numba.cuda.libdevice":
        plain = libdevice(name)
        found = _rounded(fn, plain) if plain is not None else None
    elif module.endswith(("cuda_fp16", "cuda_bf16", "cuda.bf16")):
        found = _half(name, Float16 if module.endswith("cuda_fp16") else BFloat16)
    elif module == "numba.cuda.cache_hints":
        return _load if name in _LOADS else _store if name in _STORES else fn
    if found is not None:
        return passing(_on_plain(found))
    if not _empty(fn):
        return fn

    def refuse(*_: Any, **__: Any) -> Any:
        raise CuteError(f"{module}.{name}: the simulator does not know this function; use another, or test on a GPU")

    return refuse


def declared(value: Any, number: Callable[[str], Any]) -> Any:
    """Give what stands for a function or vector type that Numba only declares; None if the value is neither. number:
    gives the scalar type of a name."""
    module = getattr(value, "__module__", None) or ""
    if isinstance(value, FunctionType) and module.startswith("numba.cuda."):
        return _found(value)
    if isinstance(value, type) and module == "numba.cuda.stubs" and _VECTOR.fullmatch(value.__name__):
        return _vector(value.__name__, number(value.__name__.rsplit("x", 1)[0]))
    return None
