# SPDX-License-Identifier: Apache-2.0
"""Faults put into the simulator's type inference, and kernels whose numbers hang on it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

from numba_cute.sim import simulate
from numba_cute.sim.python.jitted import effects, flow, infer, opcodes, parts, rewrite, settings, specialise, types

from ..fuzz.build import kernel_of

MODULES = (effects, flow, infer, opcodes, parts, settings, specialise, types)
SOURCES = (
    """
def kernel(out, x, n):
    v = 1
    for i in range(n):
        v = v * 1.5 if i else v + 2
    out[0] = v / 3
    w = x[0] if n > 2 else 7
    out[1] = w * 65537 * 65537
""",
    """
@cuda.jit(device=True)
def pick(a, b, k=2):
    if a > k:
        return a
    return b

@cuda.jit(device=True)
def nothing(a):
    return a if a is not None else 0

def kernel(out, x, n):
    out[0] = pick(x[1], 0.1) * 3
    out[1] = pick(n, x[2], k=1) * 2147483647 * 3
    out[2] = nothing(n)
    out[3] = 1 if n in (3, 4) else 0.5
""",
    """
def kernel(out, x, n):
    s = cuda.shared.array(4, np.float32)
    s[0] = 0.1
    c = 1
    def inner(a):
        return a * c if a > 1 else 0.1
    pair = (n, s[0])
    a, b = pair
    total = 0
    for y in x:
        total = total + y
    for k in (1, 2.5):
        total += k
    m, o = x.shape[0], x.size
    while m > 0:
        m = m - 1
        total = -total if m == 2 else total + b
    if n == 3:
        total = math.sqrt(total * total + o) + inner(n)
    big = pair[0] if n > 1 else s[0]
    out[0], out[1] = total, big * 1e-3
    out[2] = abs(pair[1]) + np.float32(0.1) * min(n, x[1])
    out[3] = cuda.shfl_sync(-1, x[1], 0) if n else 5
""",
    """
H = (1, 2.5, 3)

def kernel(out, x, n):
    t = cuda.grid(1)
    a = np.uint32(5) if n > 4 else np.int8(-3)
    out[0] = a
    b = False
    for i in range(3):
        b = b or i > n
        a = a + H[1]
    old = cuda.atomic.add(x, 3, np.int32(1)) if t == 0 else 0.5
    out[1] = not b
    out[2] = a
    out[3] = old / 3 if t else ~n
    r = x[1:3] if n else x[0:2]
    f = lambda q: q if q > 2 else 0.25
    out[4] = r[0] / 7 + f(n) + f(1)
""",
    """
@cuda.jit(device=True)
def power(x, n):
    if n == 0:
        return 1
    return x * power(x, n - 1)

def kernel(out, x, n):
    u = x[0]
    v = x[1] * 1.5
    for i in range(n):
        u, v = v, u
    out[0] = u / 3
    out[1] = v / 3
    out[2] = power(1.1, n) if n < 4 else 0
    del u
    w = -7 // n if n > 2 else 1.5
    w **= 2
    out[3] = w
""",
    """
BIG, F = 9007199254740993, 0.5

def kernel(out, x, n):
    a = BIG if n > 2 else n * 1.0
    out[0] = a - 9007199254740992
    b = BIG if n > 2 else out[5]
    out[1] = b - 9007199254740992
    c = BIG if n > 2 else math.sqrt(n)
    out[2] = c - 9007199254740992
    d = BIG if n > 2 else F
    out[3] = d - 9007199254740992
    p, q = n, F
    e = BIG if n > 2 else q
    out[4] = e - 9007199254740992
    for z in out:
        f = BIG if n > 2 else z
    out[5] = f - 9007199254740992
    s = n, F
    t, u = s
    g = BIG if n > 2 else u
    out[6] = g - 9007199254740992
    h = BIG if n > 2 else -F
    out[7] = h - 9007199254740992
""",
)
"""In the last one a type that is not found leaves 1, of an integer that no double holds, in the place of 0."""
HEADER = "import math\nimport numpy as np\nfrom numba import cuda\n"


def forget() -> None:
    """Drop all that was inferred."""
    for module in (*MODULES, rewrite):
        for f in vars(module).values():
            if hasattr(f, "cache_clear"):
                f.cache_clear()


def results(sources: Any = SOURCES) -> list[Any]:
    """What the kernels write, in double precision; an error's class and words for one that fails."""
    forget()
    found: list[Any] = []
    for source in sources:
        out, x = np.zeros(8), np.array([3, 5, -7, 11], np.int32)
        try:
            simulate(kernel_of(HEADER + source))[1, 1](out, x, np.int32(3))
            found.append(out.tolist())
        except Exception as e:
            found.append(f"{type(e).__name__}: {e}")
    return found


def functions() -> Iterator[tuple[str, Any, str]]:
    """(name, owner, attribute) of each function and method of the inference."""
    for module in MODULES:
        for name, f in vars(module).items():
            if getattr(f, "__module__", None) != module.__name__:
                continue
            if inspect.isfunction(inspect.unwrap(f)):
                yield f"{_short(module)}.{name}", module, name
            elif inspect.isclass(f):
                for own, method in vars(f).items():
                    if inspect.isfunction(method) and not own.startswith("__") and own not in ("_asdict", "_replace"):
                        yield f"{_short(module)}.{name}.{own}", f, own


def _short(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


class Fault(Exception):
    """The fault that is put in."""


def fault(owner: Any, name: str, patch: Any) -> Any:
    """Let a function raise wherever it is called by that name. Gives a list that is filled if it was."""
    old, called = vars(owner)[name], []

    @functools.wraps(old)
    def broken(*args: Any, **kwargs: Any) -> Any:
        called.append(name)
        raise Fault(name)

    holders = [owner] if inspect.isclass(owner) else [m for m in (*MODULES, rewrite) if vars(m).get(name) is old]
    for holder in holders:
        patch.setattr(holder, name, broken)
    for table in (opcodes._HANDLERS,):
        for key, f in table.items():
            if f is old:
                patch.setitem(table, key, broken)
    return called
