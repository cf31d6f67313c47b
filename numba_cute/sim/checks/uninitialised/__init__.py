# SPDX-License-Identifier: Apache-2.0
"""The check `uninitialised`: what nobody has written is read and used."""

from __future__ import annotations

from typing import Any

from ...ground.report import UninitializedReadError
from ...hardware.watch import Check
from ..races import Races
from ..races.explain import place_text
from . import spread, tensor_lanes
from .backend import CheckedBackend


class Uninitialised(Check):
    """Follows which registers, local arrays and bytes of shared and tensor memory nobody has written."""

    name = "uninitialised"
    summary = "shared or tensor memory, registers or a local array that nobody has written, read and used"
    needs = (Races,)
    backend = CheckedBackend

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self._suspect: UninitializedReadError | None = None
        """The first read of what nobody had written: an error, unless it proves to be a race."""
        self._lanes: dict[Any, list[Any]] = {}
        """For a load from tensor memory that is being performed, its patches with lanes that nobody has written."""

    def reads_unwritten(self, m: Any, memory: Any, address: int) -> None:
        if self._suspect is None:
            issue = f"{m.row.name} of " if m.row is not None else ""
            shared = "nobody has written it in this CTA; fill it first, or wait for the copy that does"
            peers = (
                "no rank has written it; let the one that is to do so write it, and wait for its flag before this line"
            )
            self._suspect = UninitializedReadError(
                f"uninitialised: {place_text(memory, address)} is read by {issue}{m.describe()} at {m.place}, "
                f"but {shared if memory.space == 'shared memory' else peers}"
            )

    def reads_unwritten_tensor_memory(self, m: Any, patch: Any) -> None:
        if self._suspect is None:
            name = m.row.name if m.row is not None else ""
            more = "; the first multiply into an accumulator must not accumulate" if "mma" in name else ""
            self._suspect = UninitializedReadError(
                f"uninitialised: tensor memory, {patch}, is read by {name} of {m.describe()} at {m.place}, but not "
                f"all of it was written since it was allocated{more}"
            )

    def reads_unwritten_lanes(self, m: Any, patch: Any, written: Any) -> None:
        self._lanes.setdefault(m, []).append((patch, ~written))

    def loads_tensor_memory(self, meet: Any, m: Any, values: dict[str, Any]) -> None:
        missing = self._lanes.pop(m, None)
        if missing is not None:
            tensor_lanes.mark(meet, m, values, missing)

    def ends(self, cluster: Any) -> None:
        if self._suspect is not None:
            raise self._suspect

    def fails(self, cluster: Any, error: Exception) -> None:
        """Garbage that was read is the likely cause of whatever the kernel raised."""
        if self._suspect is not None:
            raise self._suspect from error

    def performs(self, meet: Any, m: Any, values: dict[str, Any]) -> Any:
        return spread.perform(meet, m, values)
