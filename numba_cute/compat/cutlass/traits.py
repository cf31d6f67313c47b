# SPDX-License-Identifier: Apache-2.0
"""Names of the traits of operations, which MLIR's atoms have: each refuses to be called."""

from __future__ import annotations

from .dialects import Operation

__all__: list[str] = []


def __getattr__(name: str) -> Operation:
    """Return what refuses to be called by the name of a trait."""
    if not name.endswith("Trait"):
        raise AttributeError(name)
    return Operation(name)
