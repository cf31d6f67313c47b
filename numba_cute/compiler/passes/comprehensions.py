# SPDX-License-Identifier: Apache-2.0
"""Comprehensions as Python 3.12 and later compile them: in the function's own code, with a handler of exceptions that
gives the comprehension's variable back what it was outside.

Numba knows such a handler by the one entry of the table of exceptions that spans the comprehension. Where the table has
several, as of `[f(x) for x in xs if x is not None]`, it takes the comprehension for a `try`, which makes of its loop
what cannot be unrolled. A function of this library catches nothing (`seam.language` refuses `try`), so that all of its
handlers are such.
"""

from __future__ import annotations

import dis
from collections.abc import Callable
from typing import Any

from numba.cuda.core.bytecode import ByteCodeInst

from ..ground.within import Within

_MADE = ("BUILD_LIST", "BUILD_MAP", "BUILD_SET")


class _Handlers(Within):
    """While the code that Numba reads (it compiles one function at a time) is of this library, and catches nothing."""

    def leaving_out(self, removed: Callable[[Any, Any], list[Any]]) -> Callable[[Any, Any], list[Any]]:
        """Make of the method by which Numba leaves out the handlers that it knows one that leaves out all of them."""

        def remove(code: Any, entries: Any) -> list[Any]:
            if not self:
                return removed(code, entries)
            _iterate_once(code)
            return []

        return remove


HANDLERS = _Handlers()


def _iterate_once(code: Any) -> None:
    """Drop the second GET_ITER that Python 3.13.1 and later have before a comprehension's loop, as Numba does."""
    at = code.ordered_offsets
    for window in zip(at, at[1:], at[2:], at[3:]):
        made, swap, again, loop = (code.table[offset] for offset in window)
        if made.opname in _MADE and (swap.opname, again.opname, loop.opname) == ("SWAP", "GET_ITER", "FOR_ITER"):
            code.table[again.offset] = ByteCodeInst(again.offset, dis.opmap["NOP"], None, again.next)
