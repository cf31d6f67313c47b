# SPDX-License-Identifier: Apache-2.0
"""`check`: all that the front end refuses in a kernel, with neither libNVVM nor a GPU.

The kernel is typed and lowered to LLVM IR as `compile` does it, so what is refused, where, and in which words, is the
same; of it is kept where values are converted (`typed.meetings`).
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...typed.meetings import Meetings
from ..ground.building import building
from ..ground.numba_cuda import global_compiler_lock
from ..ground.nvvm import LEFT_OUT
from ..ground.target import compiling_for
from .losses import of_lines
from .lowering import meetings_of, wrong_of
from .offline import types_of


def check(kernel: Any, args: tuple[Any, ...], arch: str) -> Meetings:
    """Refuse what `compile` refuses of a kernel before libNVVM sees it, with the same error; gives where it converts
    values.

    kernel: what `cuda.jit` made. args: all of its arguments, static ones as they are. arch: the target.
    """
    py_func, options = kernel.py_func, dict(kernel.targetoptions)
    bounds = options.get("launch_bounds")
    with global_compiler_lock, compiling_for(arch) as cc, LEFT_OUT, _quiet(), building(py_func, bounds):
        argtypes = types_of(kernel, args, arch)
        return meetings_of(py_func, argtypes, options, cc)


def likely_wrong(kernel: Any, args: tuple[Any, ...], arch: str) -> tuple[str, ...]:
    """List what the last `check` of a kernel found that is likely a mistake; arguments as there."""
    py_func, options = kernel.py_func, dict(kernel.targetoptions)
    with global_compiler_lock, compiling_for(arch) as cc, LEFT_OUT, building(py_func, options.get("launch_bounds")):
        return of_lines(py_func, wrong_of(py_func, types_of(kernel, args, arch), options, cc), "")


@contextmanager
def _quiet() -> Iterator[None]:
    """Let what runs while a kernel is typed print nothing and stop nowhere: it does so when the kernel is simulated."""
    hook, sys.breakpointhook = sys.breakpointhook, lambda *_, **__: None
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        sys.breakpointhook = hook
