# SPDX-License-Identifier: Apache-2.0
"""The check `same_values`: threads that write the same values to the same memory, ordered by nothing."""

from __future__ import annotations

from typing import Any

from ..hardware.watch import Check
from .races import Races


class SameValues(Check):
    """Warns of plain writes to the same place that nothing orders, of the same values. Those of other values are a race
    with the check and without."""

    name = "same_values"
    summary = "warns of threads that write the same values to the same place, ordered by nothing"
    needs = (Races,)

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self._told: set[Any] = set()

    def writes_unordered(self, m: Any, error: Exception) -> None:
        if m.place not in self._told:
            self._told.add(m.place)
            self.run.suspicions.append(
                f"{error}\n  the two write the same values, so that nothing comes of it on a GPU; but PTX calls it a "
                f"race: let one of them write, or order the two"
            )
