# SPDX-License-Identifier: Apache-2.0
"""One line of arithmetic wherever it may stand: in a kernel, a plain function, a device function and a lambda, in the
simulator and in compiled code; and what plain Numba gives for it."""

from __future__ import annotations

import re
import struct
from typing import Any

import numpy as np
from numba.cuda import types
from numba.cuda.extending import intrinsic

from numba_cute.seam import CuteError
from numba_cute.sim import simulate
from numba_cute.sim.python.arithmetic.number import Number, from_python

from ..fuzz.build import kernel_of
from ..native import Native, NotNative

NAMES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
PLACES = ("body", "helper", "jitted", "lambda")
OPERATORS = ("+", "-", "*", "/", "//", "%", "&", "|", "^", "<", "<=", ">", ">=", "==", "!=")
BINARY = [
    *(f"a {op} b" for op in OPERATORS), "a << (b & 3)", "a >> (b & 3)", "divmod(a, b)[0]", "divmod(a, b)[1]",
    "min(a, b)", "max(a, b)", "a if a < b else b", "(a and b)", "a + b * a", "-(a // b)", "(a - b) % 7",
]  # fmt: skip
UNARY = [
    "-a", "+a", "~a", "not a", "abs(a)", "int(a)", "float(a)", "bool(a)", "a + 0", "a * 1", "a * 0", "0 - a", "a - 0",
    "3 + a", "5 // a", "a // 4", "a % 4", "-7 // a", "-7 % a", "a // -3", "a % -3", "a + 1.5", "2.5 * a", "a / 2",
    "1 / a", "a << 1", "a >> 1", "1 << (a & 3)", "a + True", "a == 0", "a != 1", "a < 2", "0 < a", "a & 1", "a | 0",
    "a ^ 0", "min(a, 3)", "max(a, -3)", "a + N", "cute.Int32(a) // 3", "cute.Uint8(a) + a", "cute.Int16(a) >> 2",
]  # fmt: skip
"""N is an int32 of NumPy's, a global."""
OF_INTEGERS = re.compile(r"[&|^~]|<<|>>|cute\.")
"""What floats do not have, or give only on a GPU."""


def code_of(ty: Any) -> int:
    return NAMES.index(str(types.unliteral(ty)))


@intrinsic
def seen(context: Any, x: Any) -> Any:
    """The number's type, by its place in `NAMES`."""
    if str(types.unliteral(x)) not in NAMES:
        return None

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return context.get_constant(types.int64, code_of(x))

    return types.int64(x), emit


@intrinsic
def bits(context: Any, x: Any) -> Any:
    """The number's value: an integer's, or the bits of a double."""

    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        ty = types.unliteral(x)
        if isinstance(ty, types.Float):
            wide = context.cast(builder, args[0], ty, types.float64)
            return builder.bitcast(wide, context.get_value_type(types.int64))
        value = context.cast(builder, args[0], x, ty)
        return context.cast(builder, value, ty, types.int64)

    return types.int64(x), emit


def simulated(x: Any) -> tuple[int, int]:
    """The same of a number of the simulator's."""
    x = from_python(x)
    assert isinstance(x, Number), repr(x)
    code = NAMES.index(np.dtype(x.dtype.numpy).name)
    if x.dtype.is_float:
        return code, struct.unpack("<q", struct.pack("<d", x.value))[0]
    return code, (int(x.value) + (1 << 63)) % (1 << 64) - (1 << 63)


def source(lines: list[str], place: str, engine: str) -> str:
    """A kernel that writes, for each line, what it gives of numbers `a` and `b`: its type and its bits."""
    ours = engine != "numba"
    if not ours:
        lines = [re.sub(r"cute\.(\w+)", lambda m: f"np.{m[1].lower()}", line) for line in lines]
    out = ["import numpy as np", "from numba import cuda", "N = np.int32(3)"]
    out += ["import numba_cute as cute"] * ours
    for i, line in enumerate(lines):
        if place == "lambda":
            out.append(f"f{i} = lambda a, b: {line}")
        elif place != "body":
            out += ["@cuda.jit(device=True)"] * (place == "jitted") + [f"def f{i}(a, b):", f"    return {line}"]
    # what notes results is Python, which the front end of a kernel of `cuda.jit` would refuse
    out += ["@cuda.jit"] * (engine != "simulated")
    out += ["def kernel(codes, values, x, y):", "    t = cuda.threadIdx.x", "    a, b = x[t], y[t]"]
    if ours:
        out.append("    cute.const_expr(True)")
    for i, line in enumerate(lines):
        out.append(f"    r{i} = {line if place == 'body' else f'f{i}(a, b)'}")
        if engine == "simulated":
            out.append(f"    noted.append((t, {i}, r{i}))")
        else:
            out += [f"    codes[t, {i}] = seen(r{i})", f"    values[t, {i}] = bits(r{i})"]
    return "\n".join(out)


def operands(name: str) -> Any:
    """Numbers of a type: small ones of both signs, and its ends."""
    if name == "bool":
        return np.array([0, 1, 1, 0, 1], bool)
    if name.startswith("float"):
        return np.array([0.0, -2.5, 7.0, 1e3, -1.0], name)
    info = np.iinfo(name)
    return np.array([3, info.max, info.min, 0 if info.min == 0 else -7, 100], name)


def run(lines: list[str], place: str, first: str, second: str, engine: str) -> list[Any]:
    """(type, value) of each line for each pair of operands. engine: "numba", "compiled" or "simulated"."""
    x, y = operands(first), operands(second)[::-1].copy()
    codes, values = (np.full((len(x), len(lines)), -1, np.int64) for _ in range(2))
    kernel = kernel_of(source(lines, place, engine))
    space = getattr(kernel, "py_func", kernel).__globals__
    if engine == "simulated":
        noted = space["noted"] = []
        simulate(kernel)[1, len(x)](codes, values, x, y)
        for t, i, result in noted:
            codes[int(t), i], values[int(t), i] = simulated(result)
    else:
        space |= {"seen": seen, "bits": bits}
        Native(kernel, (codes, values, x, y)).run(len(x), codes, values, x, y)
    return [[_told(c, v) for c, v in zip(codes[:, i], values[:, i])] for i in range(len(lines))]


def results(lines: list[str], *where: str) -> list[Any]:
    """What `run` gives, "refused" for each line that is; and "" for one that cannot be run on a CPU."""
    try:
        return run(lines, *where)
    except (CuteError, NotNative) as e:
        if len(lines) == 1:
            return ["refused" if isinstance(e, CuteError) else ""]
    half = len(lines) // 2
    return results(lines[:half], *where) + results(lines[half:], *where)


def wrong(lines: list[str], first: str, second: str, places: tuple[str, ...] = PLACES) -> list[str]:
    """The lines that do not give everywhere what plain Numba gives. first, second: the types of `a` and `b`."""
    ask = results if {"bool", "float32"} & {first, second} else run
    return _wrong(lines, first, second, places, ask)


MEETING = re.compile(r" (if|and|or) ")
"""What the front end types, and it does not judge a kernel that notes results: see the simulator's own tests."""


def _wrong(lines: list[str], first: str, second: str, places: tuple[str, ...], ask: Any) -> list[str]:
    out, want = [], ask(lines, "body", first, second, "numba")
    for engine in ("simulated", "compiled"):
        for place in places:
            for line, a, b in zip(lines, want, ask(lines, place, first, second, engine)):
                if a != b and "" not in (a, b) and not (engine == "simulated" and MEETING.search(line)):
                    out.append(f"`{line}` of {first} and {second}, {engine}, in the {place}: {b}, and Numba {a}")
    return out


def _told(code: Any, value: Any) -> Any:
    name = NAMES[code]
    if not name.startswith("float"):
        return name, int(value)
    number = struct.unpack("<d", struct.pack("<q", value))[0]
    return name, "nan" if number != number else number.hex()
