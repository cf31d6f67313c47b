# SPDX-License-Identifier: Apache-2.0
"""`check`: all that the front end refuses in a kernel, with neither libNVVM nor a GPU.

The kernel is typed and lowered to LLVM IR as `compile` does it, so what is refused, where, and in which words, is the
same; nothing of it is kept, but that it was accepted. What the device functions of a user's become is made for one
check alone: a simulated kernel reads globals as they are now, and what is compiled later is to read its own.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.cuda.core.compiler_lock import global_compiler_lock
from numba.cuda.descriptor import cuda_target

from ...seam.whose import is_library
from ..ground.building import building
from ..ground.nvvm import without_nvvm
from ..ground.target import compiling_for
from .apart import apart
from .lowering import lowered, was_lowered
from .offline import types_of

_of_library: dict[Any, dict[Any, Any]] = {}
"""By a dispatcher of this library, what was made of its function for checks."""


def check(kernel: Any, args: tuple[Any, ...], arch: str) -> None:
    """Refuse what `compile` refuses of a kernel before libNVVM sees it: with the same error.

    kernel: what `cuda.jit` made. args: all of its arguments, static ones as they are. arch: the target.
    """
    py_func, options = kernel.py_func, dict(kernel.targetoptions)
    bounds = options.get("launch_bounds")
    with global_compiler_lock, compiling_for(arch) as cc, without_nvvm(), _apart(), _quiet(), building(py_func, bounds):
        argtypes = types_of(kernel, args, arch)
        if not was_lowered(py_func, argtypes, options, cc):
            lowered(py_func, argtypes, options, cc)


@contextmanager
def _quiet() -> Iterator[None]:
    """Let what runs while a kernel is typed print nothing and stop nowhere: it does so when the kernel is simulated."""
    hook, sys.breakpointhook = sys.breakpointhook, lambda *_, **__: None
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        sys.breakpointhook = hook


@contextmanager
def _apart() -> Iterator[None]:
    """Compile device functions apart: the user's for now, this library's for all checks."""
    made: list[dict[Any, Any]] = []

    def overloads(dispatcher: Any) -> dict[Any, Any]:
        if is_library(dispatcher.py_func.__module__):
            return _of_library.setdefault(dispatcher, {})
        made.append({})
        return made[-1]

    try:
        with apart(overloads):
            yield
    finally:
        for found in (result for held in made for result in held.values()):
            cuda_target.target_context.remove_user_function(found.entry_point)
