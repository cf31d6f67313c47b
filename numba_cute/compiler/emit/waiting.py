# SPDX-License-Identifier: Apache-2.0
"""Note which functions wait: those with an instruction that waits, or that call such a function."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_WAITS = "_cute_waits"
_WAITING: set[str] = set()
"""The functions that wait, by their symbols."""


def waits(call: Any) -> None:
    """Note that a call is of an instruction that waits."""
    setattr(call, _WAITS, True)


def is_waiting(blocks: Iterable[Any]) -> bool:
    """Say whether something in these blocks of LLVM's waits."""
    calls = (i for block in blocks for i in block.instructions if getattr(i, "opname", None) == "call")
    return any(hasattr(i, _WAITS) or getattr(i.callee, "name", None) in _WAITING for i in calls)


def settle(function: Any) -> None:
    """Note of a function that is lowered whether it waits."""
    if is_waiting(function.blocks):
        _WAITING.add(function.name)
