# SPDX-License-Identifier: Apache-2.0
"""Functions of MLIR's dialects: each refuses to be called, and says what to write."""

from __future__ import annotations

from typing import Any

from ...seam import CuteError

__all__: list[str] = []


class Operation:
    """A function of a dialect. name: its own."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: Any, **named: Any) -> Any:
        raise CuteError(
            f"{self.name}: Numba has no MLIR: write the function of cute.arch or cute.math that does it, or "
            "cute.arch.inline_ptx"
        )

    def __getattr__(self, name: str) -> Operation:
        if name.startswith("__"):
            raise AttributeError(name)
        return Operation(f"{self.name}.{name}")


def __getattr__(name: str) -> Operation:
    if name.startswith("__"):
        raise AttributeError(name)
    return Operation(name)
