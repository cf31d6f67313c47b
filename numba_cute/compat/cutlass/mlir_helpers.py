# SPDX-License-Identifier: Apache-2.0
"""Names of `cutlass._mlir_helpers` and `cutlass._mlir.extras`: functions of numbers, and types."""

from __future__ import annotations

from typing import Any

from ... import math as cute_math
from ...seam import traced
from .dialects import bitcast as _bitcast
from .dsl import T as types

__all__ = ["bitcast", "rcp", "types"]


@traced
def bitcast(src: Any, res: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """View the bits of a number as one of another type. src: the number. res: that type."""
    return _bitcast(res, src)


@traced
def rcp(x: Any, *, approx: bool = False, ftz: bool = False, loc: Any = None, ip: Any = None) -> Any:
    """Compute 1 / `x`. approx: by PTX rcp.approx.ftz. ftz: taken."""
    return cute_math.rcp(x, approx=approx)
