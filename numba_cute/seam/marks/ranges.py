# SPDX-License-Identifier: Apache-2.0
"""`range` as the CuTe DSL has it."""

from __future__ import annotations

import builtins
from typing import Any, SupportsIndex

from numba_cute.seam.ground.error import CuteError
from numba_cute.seam.ground.naming import shown
from numba_cute.seam.marks.decorators import no_step, traced

__all__ = ["range"]

KEYWORDS = ("unroll", "unroll_full", "prefetch_stages", "vectorize", "loc", "ip")


def check_keywords(names: Any) -> None:
    """Raise a CuteError if one of these is not a keyword of `range`."""
    for name in names:
        if name not in KEYWORDS:
            raise CuteError(f"range: there is no keyword {name!r}; there are {', '.join(KEYWORDS[:4])}")


@traced
def range(
    *args: SupportsIndex,
    unroll: Any = None,
    unroll_full: bool = False,
    prefetch_stages: Any = None,
    vectorize: Any = None,
) -> builtins.range:
    """Count in a loop at run time, as Python's `range(*args)` does; a kernel's `range` takes the same keywords.

    args: stop, or start and stop, or start, stop and step. unroll_full: static; True unrolls the loop while the kernel
    is compiled, as `range_constexpr`, where args are static ints; where they are not it stays a loop. unroll: 1,
    static, lets a round stand once in the code; without it the compiler makes copies of a body as it likes, unless that
    waits at an mbarrier. Other numbers, prefetch_stages and vectorize are hints, which are taken and left to it.
    CuteError: another keyword.

    >>> def kernel():
    ...     print(sum(i for i in cute.range(4)))
    >>> cute.simulate(kernel)[1, 1]()
    6
    """
    try:
        return builtins.range(*args)
    except ValueError:
        raise CuteError(no_step("range")) from None
    except TypeError:
        raise CuteError(f"range({', '.join(map(shown, args))}): give one to three ints") from None
