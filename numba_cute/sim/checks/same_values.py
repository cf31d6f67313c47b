# SPDX-License-Identifier: Apache-2.0
"""The check `same_values`: threads that write the same values to the same memory, ordered by nothing."""

from __future__ import annotations

from typing import Any

from ..hardware.watch import Check
from .races import Races


class SameValues(Check):
    """Reports plain writes to the same place that nothing orders, whatever they write. Without it `races` reports those
    of other values alone."""

    name = "same_values"
    summary = "threads that write the same values to the same place, ordered by nothing"
    needs = (Races,)

    def writes_unordered(self, m: Any, error: Exception) -> None:
        raise error
