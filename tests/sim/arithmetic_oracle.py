# SPDX-License-Identifier: Apache-2.0
"""What Numba says: the types of its CUDA target, and the values of functions that it compiles for this machine."""

from __future__ import annotations

import functools
import math
import struct
from typing import Any
from unittest import mock

import numba
import numpy as np
from numba import cuda
from numba.cuda.descriptor import cuda_target

from numba_cute import dtypes
from numba_cute.compiler.emit.leaves import scalar_type
from numba_cute.seam.hooks.engines import COMPILER
from numba_cute.sim import simulate
from numba_cute.sim.launch import Simulated
from numba_cute.sim.python.arithmetic.number import Number, from_python
from numba_cute.sim.python.arithmetic.overloads import TYPES

NUMBA = {t: scalar_type(t) for t in TYPES}
NAMES = {str(n): t for t, n in NUMBA.items()}
OF_NUMPY = {np.dtype(t.numpy): t for t in TYPES}
WITH_NUMPY = [t for t in TYPES if t not in (dtypes.Float16, dtypes.BFloat16)]
"""Those that Numba has on a CPU too."""


@functools.cache
def context() -> Any:
    found = cuda_target.typing_context
    found.refresh()
    return found


def cuda_signature(function: Any, *types: Any) -> tuple[str, tuple[str, ...]] | None:
    """(result, operands) of a function for arguments of these types, as Numba types it for CUDA; None if it refuses."""
    try:
        sig = context().resolve_function_type(function, tuple(NUMBA[t] for t in types), {})
    except Exception:
        return None
    return None if sig is None else (str(sig.return_type), tuple(map(str, sig.args)))


def edge_values(t: Any) -> list[Any]:
    """Values of a type at its ends and around 0."""
    if t is dtypes.Boolean:
        return [False, True]
    if t.is_float:
        found = [0.0, -0.0, 1.0, -1.0, 2.5, -3.75, 0.1, 1e10, -1e20, math.inf, -math.inf, math.nan, 1e-40, 3e38, -7.0]
        return [float(np.array(x).astype(t.numpy)) for x in found]
    low = -(1 << t.width - 1) if t.signed else 0
    high = low + (1 << t.width) - 1
    found = {low, low + 1, -7, -2, -1, 0, 1, 2, 3, 7, 63, 100, 127, high - 1, high, high // 3, 1 << 40, (1 << 53) + 1}
    return sorted(x for x in found if low <= x <= high)


def bits(x: Any) -> Any:
    """What tells values apart: type, sign of zero; any NaN is as good as another."""
    if isinstance(x, tuple):
        return tuple(map(bits, x))
    if isinstance(x, Number):
        x = x.value
    if isinstance(x, np.generic):
        x = x.item()
    if isinstance(x, float):
        return "nan" if x != x else struct.pack("<d", x)
    return type(x).__name__, x


@functools.cache
def compiled(function: Any) -> Any:
    """The function as Numba compiles it for this machine, where division by zero is IEEE's as on a GPU: once for all
    tests."""
    return numba.njit(error_model="numpy")(function)


def on_cpu(function: Any, *args: Any) -> tuple[Any, Any]:
    """(the result's type, the result) of a compiled function. args: NumPy's scalars, or Python's."""
    jitted = compiled(function)
    value = jitted(*args)
    types = jitted.overloads[tuple(map(numba.typeof, args))].signature.return_type
    several = getattr(types, "types", None) or ([types.dtype] * types.count if hasattr(types, "count") else [types])
    return [NAMES.get(str(numba.core.types.unliteral(t))) for t in several], value


def in_simulator(function: Any, *args: Any, checks: bool = False, judged: bool = False) -> tuple[Any, Any]:
    """The same of the simulator, whose kernel calls it as a device function: a plain one, which may show what it sees.
    judged: it converts where the front end does in a kernel that calls the function as this one does."""
    device, seen = cuda.jit(device=True)(function), []
    meetings = {}
    if judged:
        space: dict[str, Any] = {"device": device}
        names = ", ".join(f"x{i}" for i in range(len(args)))
        exec(f"def kernel({names}): device({names})", space)
        meetings = COMPILER.check(cuda.jit(space["kernel"]), args, "sm_90a")

    def kernel(*values: Any) -> None:
        seen.append(device(*values))

    with mock.patch.object(Simulated, "_judged", lambda *_: meetings):
        simulate(kernel, checks=checks)[1, 1](*args)
    (value,) = seen
    return [from_python(x).dtype for x in flat(value)], value


def flat(x: Any) -> list[Any]:
    """The numbers in a result, in order."""
    return [v for y in x for v in flat(y)] if isinstance(x, tuple) else [x]
