# SPDX-License-Identifier: Apache-2.0
"""A kernel typed and lowered to LLVM IR, by Numba, for a target."""

from __future__ import annotations

import weakref
from typing import Any

import numba.cuda.dispatcher as cuda_dispatcher
from numba.cuda import types

from ...seam.source.language import refuse_code
from ...typed.meetings import Meetings
from ..ground.memory import memory
from ..ground.ownership import owns


def lowered(py_func: Any, argtypes: Any, options: dict[str, Any], cc: Any) -> Any:
    """Return Numba's result for a kernel's function and arguments' types. options: those of `cuda.jit`. cc: the
    target."""
    if not owns(py_func, argtypes):
        refuse_code(py_func)
    debug, lineinfo = options.get("debug", False), options.get("lineinfo", False)
    nvvm_options: dict[str, Any] = {
        "fastmath": options.get("fastmath", False),
        "opt": 3 if options.get("opt", True) else 0,
    }
    if debug:
        nvvm_options["g"] = None
    result = cuda_dispatcher.compile_cuda(
        py_func, types.void, argtypes, debug=debug, lineinfo=lineinfo, nvvm_options=nvvm_options, cc=cc,
        fastmath=options.get("fastmath", False), max_registers=options.get("max_registers"),
    )  # fmt: skip
    _lowered.setdefault(py_func, {})[_key(argtypes, options, cc)] = memory().meetings
    return result


def meetings_of(py_func: Any, argtypes: Any, options: dict[str, Any], cc: Any) -> Meetings:
    """Return where a kernel converts values; it is lowered for that, if it was not for the same before. As in Numba's
    dispatchers it is one function's types that count: what its globals are by now is not asked."""
    key = _key(argtypes, options, cc)
    if key not in _lowered.get(py_func, ()):
        lowered(py_func, argtypes, options, cc)
    return _lowered[py_func][key]


_lowered: weakref.WeakKeyDictionary[Any, dict[Any, Meetings]] = weakref.WeakKeyDictionary()
"""By a function and what it was lowered for, where it converts values."""


def _key(argtypes: Any, options: dict[str, Any], cc: Any) -> Any:
    """Return what tells one lowering of a function from another, and keeps none of its types."""
    return tuple(cc), tuple(t._code for t in argtypes), repr(sorted(options.items()))
