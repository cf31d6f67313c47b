# SPDX-License-Identifier: Apache-2.0
"""Names of the traits of operations, which MLIR's atoms have: each refuses to be called; and of what an operation that
the target lacks raises."""

from __future__ import annotations

from typing import Any

from ...seam import CuteError
from .dialects import Operation

__all__ = ["OpError", "Trait"]

OpError = CuteError
"""Name the error that an operation raises which the target lacks."""


class Trait:
    """The base of traits that files define for operations of their own: atoms here have none."""

    def __init__(self, *args: Any, **named: Any) -> None:
        Operation(type(self).__name__)()


def __getattr__(name: str) -> Operation:
    """Return what refuses to be called by the name of a trait."""
    if not name.endswith("Trait"):
        raise AttributeError(name)
    return Operation(name)
