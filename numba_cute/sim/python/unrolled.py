# SPDX-License-Identifier: Apache-2.0
"""Find the copy of an unrolled loop's body that runs: compiled, each copy is code of its own, and allocates for
itself."""

from __future__ import annotations

import functools
from types import CodeType, FrameType
from typing import Any

from ...dtypes import DType
from ...seam.ground.bytecode import operations


def copy_of(frame: FrameType) -> tuple[Any, ...]:
    """Tell the copies of the bodies of unrolled loops around where a frame stands from each other: the indices of
    these loops, or the element types that they go over. An index of a loop that runs at run time has a type, and is
    left out: its body is one."""
    names = _indices(frame.f_code, frame.f_lasti)
    held = frame.f_locals if names else {}
    return tuple((n, x) for n in names if type(x := held.get(n)) in (int, DType))


@functools.lru_cache(1024)
def _indices(code: CodeType, at: int) -> tuple[str, ...]:
    """List the variables of the loops around an instruction."""
    found, looking = [], False
    for o in operations(code):
        if looking:
            if o.name in ("STORE_FAST", "STORE_DEREF", "STORE_NAME"):
                found.append(o.value)
            looking = False
        if o.name == "FOR_ITER" and o.offset < at < o.value:
            looking = True
    return tuple(found)
