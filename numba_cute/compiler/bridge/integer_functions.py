# SPDX-License-Identifier: Apache-2.0
"""Functions of `math` for which a GPU has no code: what they give of static integers is static."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...seam import CuteError, traced


def _static(f: Callable[..., int]) -> Callable[..., int]:
    def of(*integers: Any) -> int:
        for x in integers:
            if not isinstance(x, int):
                raise CuteError(f"math.{f.__name__}({x!r}): a kernel computes it of static integers alone")
        return f(*integers)

    of.__name__ = of.__qualname__ = f.__name__
    return traced(of)


OF_INTEGERS = {f: _static(f) for f in (math.gcd, math.lcm, math.isqrt, math.comb)}
"""By a function of `math`, the traced one that stands for it."""
