# SPDX-License-Identifier: Apache-2.0
"""One program run three ways, and what came of it."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import linecache
import math
import operator
import re
from collections import namedtuple
from dataclasses import dataclass
from enum import Enum, IntEnum
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from . import reference

THREADS, INTS, FLOATS = 4, 8, 4
N, M = 5, 3
A = np.array([7, -3, 12, 0, -8, 25, 3, -1, 40, 2, -19, 6, 11, -4, 1, 9], np.int32)
COMMON: dict[str, Any] = {
    "__name__": "program", "math": math, "operator": operator, "functools": functools, "dataclass": dataclass,
    "dataclasses": dataclasses, "field": dataclasses.field, "replace": dataclasses.replace, "Enum": Enum,
    "IntEnum": IntEnum, "SimpleNamespace": SimpleNamespace, "NamedTuple": NamedTuple, "namedtuple": namedtuple,
    "partial": functools.partial, "reduce": functools.reduce, "contextlib": contextlib,
}  # fmt: skip
"""Names that every program has, besides `cuda`, `np` and `cute`."""


@dataclass
class Ran:
    """What one way of running a program gave: its bytes, or an error."""

    values: bytes | None = None
    error: str = ""
    words: bool = False  # the error is the library's or Numba's, at the user's line
    printed: int | None = 0  # lines; None where nobody counts them

    def like(self, other: Ran) -> bool:
        """Say whether two ways wrote the same and printed as often."""
        return self.values == other.values and (self.printed is None or self.printed == other.printed)


@dataclass
class Outcome:
    """How the three compare: `kind` is one of KINDS."""

    kind: str
    python: Ran
    simulator: Ran
    compiled: Ran

    @property
    def reason(self) -> str:
        return self.simulator.error or self.compiled.error


KINDS = (
    "same", "refused", "undefined", "wrong compiled", "wrong simulator", "wrong both", "compiled alone",
    "simulator alone", "python refuses", "internal", "hung", "crash", "fault",
)  # fmt: skip
"""All equal; refused by both, in words; no one meaning on a GPU; …; taken by an engine, and refused by Python; …; the
GPU's driver says that the kernel did what it must not."""
GOOD = ("same", "refused", "undefined")


def compiled_source(source: str, space: dict[str, Any]) -> Any:
    """Return the `kernel` of a program, whose lines errors can show."""
    name = f"<program {abs(hash(source)):x}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space = COMMON | space
    exec(compile(source, name, "exec", dont_inherit=True), space)
    return space["kernel"]


def arguments() -> tuple[Any, ...]:
    """Return (ints out, floats out, ints in, n, m)."""
    return np.full((THREADS, INTS), -77, np.int64), np.full((THREADS, FLOATS), -77.0), A.copy(), N, M


def _taken(kernel: Any, values: Any) -> list[Any]:
    """Return those of (ints out, floats out, ints in, n, m) that a kernel names."""
    code = getattr(kernel, "py_func", kernel).__code__
    known = dict(zip(("out", "real", "a", "n", "m", "o", "w"), (*values, values[0], values[1])))
    return [known[p] for p in code.co_varnames[: code.co_argcount]]


def _python(source: str) -> Ran:
    args = arguments()
    arrays = [reference.Array(x, str(x.dtype)) for x in args[:3]]
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            kernel = compiled_source(source, reference.NAMES)
            for reference.CUDA.threadIdx.x in range(THREADS):
                kernel(*_taken(kernel, (*arrays, *(reference.number("int64", x) for x in args[3:]))))
    except (reference.Undefined, UnboundLocalError) as e:
        return Ran(error=f"Undefined: {e}")
    except Exception as e:
        return Ran(error=f"{type(e).__name__}: {e}", words=True)
    return Ran(args[0].tobytes() + args[1].tobytes(), printed=said.getvalue().count("\n"))


def _real() -> dict[str, Any]:
    from numba import cuda

    import numba_cute as cute

    return {"cuda": cuda, "np": np, "cute": cute}


def _simulated(source: str) -> Ran:
    import numba_cute as cute

    args = arguments()
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            kernel = compiled_source(source, _real())
            cute.simulate(kernel, checks=False)[1, THREADS](*_taken(kernel, args))
    except Exception as e:
        return _failed(e)
    return Ran(args[0].tobytes() + args[1].tobytes(), printed=said.getvalue().count("\n"))


def _compiled(source: str) -> Ran:
    from tests.native import Native, NotNative

    args = arguments()
    try:
        kernel = compiled_source(source, _real())
        taken = _taken(kernel, args)
        native = Native(kernel, tuple(taken))
        native.run(THREADS, *taken)
    except NotNative as e:
        return Ran(error=f"not native: {e}", words=True)
    except Exception as e:
        return _failed(e)
    return Ran(args[0].tobytes() + args[1].tobytes(), printed=native.printed)


def _launched(source: str) -> Ran:
    """Run a program on the GPU of this machine; a kernel that is lost there is the caller's."""
    from ..device import Lost, launched

    args = arguments()
    try:
        kernel = compiled_source(source, _real())
        launched(kernel, THREADS, args, lambda there: _taken(kernel, there))
    except Lost:
        raise
    except Exception as e:
        return _failed(e)
    return Ran(args[0].tobytes() + args[1].tobytes(), printed=None)


def _failed(e: Exception) -> Ran:
    """Return an engine's error: in words if it is a CuteError, or Numba's with a line of the program."""
    from numba.cuda.core import errors

    import numba_cute as cute

    text = f"{type(e).__name__}: {e}"
    at_line = "<program" in text or "<program" in "".join(getattr(e, "__notes__", ()))
    words = isinstance(e, cute.CuteError) or (isinstance(e, errors.NumbaError) and at_line)
    internal = re.search(r"internal error|InternalError|KeyError|AttributeError|AssertionError: |IndexError", text)
    return Ran(error=text, words=words and not internal and at_line)


def run(source: str, gpu: bool = False, simulator: bool = True) -> Outcome:
    """Run a program three ways and say how the results compare. gpu: compiled for this machine's GPU, not its
    processor. simulator: False leaves it out, and takes what was compiled for it."""
    python, compiled = _python(source), (_launched if gpu else _compiled)(source)
    simulated = _simulated(source) if simulator else compiled
    kind = _kind(python, simulated, compiled)
    return Outcome("wrong compiled" if kind == "wrong both" and not simulator else kind, python, simulated, compiled)


def _kind(python: Ran, simulator: Ran, compiled: Ran) -> str:
    if python.error.startswith("Undefined"):
        return "undefined"
    took = simulator.values is not None, compiled.values is not None
    if not all(r.words for r in (simulator, compiled) if r.values is None):
        return "internal"
    if not any(took):
        return "refused"
    if python.values is None:
        return "python refuses"
    right = [r.values is None or r.like(python) for r in (simulator, compiled)]
    if not all(right):
        return "wrong both" if not any(right) else "wrong compiled" if right[0] else "wrong simulator"
    return "same" if all(took) else "simulator alone" if took[0] else "compiled alone"
