# SPDX-License-Identifier: Apache-2.0
"""A kernel typed and lowered to LLVM IR, by Numba, for a target."""

from __future__ import annotations

from typing import Any

from ...seam.source.language import refuse_code
from ...typed.meetings import Meetings
from ..bridge.reads import given_by, reads_of
from ..ground.memory import Loss, kept_of, memory
from ..ground.numba_cuda import dispatcher as cuda_dispatcher, types
from ..ground.ownership import owns
from ..ground.taught import registered


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
    given = given_by(argtypes)
    holds = None if given is None else reads_of(py_func, (*given, *registered()), prints=True)
    result = cuda_dispatcher.compile_cuda(
        py_func, types.void, argtypes, debug=debug, lineinfo=lineinfo, nvvm_options=nvvm_options, cc=cc,
        fastmath=options.get("fastmath", False), max_registers=options.get("max_registers"),
    )  # fmt: skip
    if holds is not None:
        wrong = [n for n in memory().losses_in(result.library) if n.likely_wrong]
        kept_of(py_func)[_key(py_func, argtypes, options, cc)] = holds, memory().meetings, wrong
    return result


def meetings_of(py_func: Any, argtypes: Any, options: dict[str, Any], cc: Any) -> Meetings:
    """Return where a kernel converts values; it is lowered for that, if it was not for the same before, or if what
    lowering it may read is not as it was."""
    known = kept_of(py_func).get(_key(py_func, argtypes, options, cc))
    if known is not None and known[0]():
        found: Meetings = known[1]
        return found
    lowered(py_func, argtypes, options, cc)
    return memory().meetings


def wrong_of(py_func: Any, argtypes: Any, options: dict[str, Any], cc: Any) -> list[Loss]:
    """Return what was found to be likely wrong in a kernel when it was last lowered for these."""
    known = kept_of(py_func).get(_key(py_func, argtypes, options, cc))
    return [] if known is None else list(known[2])


def _key(py_func: Any, argtypes: Any, options: dict[str, Any], cc: Any) -> Any:
    """Return what tells one lowering of a function from another."""
    taught = tuple(map(id, registered()))
    return "meetings", py_func, argtypes, taught, repr(sorted(options.items())), tuple(cc)
