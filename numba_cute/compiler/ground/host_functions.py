# SPDX-License-Identifier: Apache-2.0
"""Functions of NumPy's and Python's modules that Numba has for the CPU alone.

numba-cuda's typing context takes over the overloads of the Numba below it, as many as the process has loaded, for every
function that is not Numba's own: `np.random.rand`, `heapq.heappush`, `operator.add`. They do not compile for a GPU:
typing them raises any error, or recurs without end. They are left out here, so that what a kernel can use does not
depend on what was compiled for the CPU before.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

from .numba_cuda import cuda_target, types

_OF_CPU = (
    "numba.core.", "numba.cpython.", "numba.experimental.", "numba.np.", "numba.typed.",
    "numba.cuda.np.linalg",  # which calls LAPACK
)  # fmt: skip
"""The modules that declare functions for the CPU. numba-cuda has its own of the same names, below `numba.cuda`."""
_DECLARING = ".typing.templates"
"""The module, of each package, whose decorators make classes of what a declaration says."""
_KEPT: dict[Any, Any] = {}
"""By a function's type, what is left of it."""
_NUMBA = f"{os.sep}numba{os.sep}"
_MODULES = ("numpy", "numpy.random", "numpy.linalg", "numpy.fft", "random", "heapq")
"""Modules of which Numba has functions for the CPU."""


def without_cpu(function: Any) -> Any:
    """Return a function's type without the templates that are declared for the CPU; None if it has no other."""
    if type(function) is not types.Function:
        return function
    if function not in _KEPT:
        left = tuple(t for t in function.templates if not _home(t).startswith(_OF_CPU))
        same = len(left) == len(function.templates)
        _KEPT[function] = function if same else types.Function(left) if left else None
    return _KEPT[function]


def _home(template: Any) -> str:
    """Return the name of the module that declares a template."""
    overload = getattr(template, "_overload_func", None)
    if overload is not None:
        return str(overload.__module__)
    return next((c.__module__ for c in template.__mro__ if not c.__module__.endswith(_DECLARING)), "")


def has_overload(function: Any) -> bool:
    """Say whether kernels have a function for arguments of some types."""
    return without_cpu(cuda_target.typing_context._lookup_global(function)) is not None


def named(text: str, name: str) -> tuple[str, Any] | None:
    """Find a function by its name and what `str` writes of it, within "<>"; None if it is of no module that Numba has
    for the CPU."""
    for module in _MODULES:
        function = getattr(sys.modules.get(module), name, None)
        if function is not None and str(function).strip("<>") == text:
            return f"{module}.{name}", function
    return None


def called(error: BaseException) -> tuple[str, Any, list[Any]] | None:
    """Find which call Numba was typing when it met an error: the function's name, the function (None: it is a method),
    and the types of its arguments; None if that is unknown."""
    found = None
    for known in _frames(error, "resolve"):
        if "fnty" in known and "pos_args" in known:
            found = known["fnty"], known["pos_args"]
    if found is None:
        return None
    key = getattr(found[0], "typing_key", None)
    if isinstance(key, str):
        return key, None, list(found[1])
    full = named(str(key).strip("<>"), getattr(key, "__name__", ""))
    return None if full is None else (*full, list(found[1]))


def asked(error: BaseException) -> tuple[str, str] | None:
    """Find of which module Numba was typing an attribute when it met an error, and the attribute; None if of none."""
    for known in _frames(error, "__call__"):
        modules = [ty.pymod for ty in known.get("valtys", ()) if isinstance(ty, types.Module)]
        if modules:
            return modules[0].__name__, known["self"].attr
    return None


def _frames(error: BaseException, name: str) -> Iterator[dict[str, Any]]:
    """Give the variables of each function of a name that an error came through, the outermost first, but for those that
    type Numba's own code."""
    at = error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_name == name:
            known = at.tb_frame.f_locals
            if _NUMBA not in getattr(getattr(known.get("self"), "loc", None), "filename", ""):
                yield known
        at = at.tb_next
