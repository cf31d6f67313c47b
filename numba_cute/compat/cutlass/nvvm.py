# SPDX-License-Identifier: Apache-2.0
"""Names of `cutlass._mlir.dialects.nvvm`."""

from __future__ import annotations

from typing import Any

from ... import arch
from ...seam import traced
from .primitives import AtomicOp as AtomicOpKind, MemOrder as MemOrderKind, MemScope as MemScopeKind, atomicrmw

__all__ = ["AtomicOpKind", "MemOrderKind", "MemScopeKind", "atomicrmw", "fmax", "fmin"]


@traced
def fmax(
    a: Any, b: Any, *, c: Any = None, abs: bool = False, nan: bool = False, ftz: bool = False,
    loc: Any = None, ip: Any = None,
) -> Any:  # fmt: skip
    """Return the greatest of two or three Float32, as `cute.arch.fmax`. a, b, c: they. abs, nan, ftz: as there."""
    return _extreme(arch.fmax, a, b, c, abs=abs, nan=nan, ftz=ftz)


@traced
def fmin(
    a: Any, b: Any, *, c: Any = None, abs: bool = False, nan: bool = False, ftz: bool = False,
    loc: Any = None, ip: Any = None,
) -> Any:  # fmt: skip
    """Return the smallest of two or three Float32, as `cute.arch.fmin`. a, b, c: they. abs, nan, ftz: as there."""
    return _extreme(arch.fmin, a, b, c, abs=abs, nan=nan, ftz=ftz)


def _extreme(of: Any, a: Any, b: Any, c: Any, **how: bool) -> Any:
    found = of(a, b, **how)
    return found if c is None else of(found, c, **how)
