# SPDX-License-Identifier: Apache-2.0
"""Names of `cutlass._mlir.dialects.nvvm`."""

from __future__ import annotations

from typing import Any

from ... import arch
from ...dtypes import DType
from ...seam import traced
from .primitives import AtomicOp as AtomicOpKind, MemOrder as MemOrderKind, MemScope as MemScopeKind, atomicrmw

__all__ = ["AtomicOpKind", "MemOrderKind", "MemScopeKind", "atomicrmw", "fmax", "fmin"]


@traced
def fmax(
    *operands: Any, c: Any = None, abs: bool = False, nan: bool = False, ftz: bool = False,
    loc: Any = None, ip: Any = None,
) -> Any:  # fmt: skip
    """Return the greatest of two or three Float32, as `cute.arch.fmax`. operands: two of them, in earlier releases
    behind the result's type. c: the third. abs, nan, ftz: as there."""
    return _extreme(arch.fmax, operands, c, abs=abs, nan=nan, ftz=ftz)


@traced
def fmin(
    *operands: Any, c: Any = None, abs: bool = False, nan: bool = False, ftz: bool = False,
    loc: Any = None, ip: Any = None,
) -> Any:  # fmt: skip
    """Return the smallest of two or three Float32, as `cute.arch.fmin`. operands: two of them, in earlier releases
    behind the result's type. c: the third. abs, nan, ftz: as there."""
    return _extreme(arch.fmin, operands, c, abs=abs, nan=nan, ftz=ftz)


def _extreme(of: Any, operands: tuple[Any, ...], c: Any, **how: bool) -> Any:
    a, b = operands[1:] if isinstance(operands[0], DType) else operands
    found = of(a, b, **how)
    return found if c is None else of(found, c, **how)
