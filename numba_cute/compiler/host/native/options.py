# SPDX-License-Identifier: Apache-2.0
"""Hold what a launch asks of the driver beside its kernel, grid, block, memory, stream and cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ....seam.ground.records import dataclass

COOPERATIVE, CLUSTER, SERIALISED, PROGRAMMATIC_EVENT = 2, 4, 6, 7
PREFERRED_CLUSTER, COMPLETION_EVENT, CARVEOUT = 11, 12, 14
"""cuda.h, CUlaunchAttributeID."""
Attribute = tuple[int, tuple[int, ...]]
"""An attribute's number, and the 32-bit words of its value."""


@dataclass(frozen=True)
class Event:
    """An event that a launch records. given: as the caller named it, which keeps it alive. handle: the driver's. flags:
    CU_EVENT_RECORD_*. at_start: of a programmatic one, whether the beginning of each block counts."""

    given: Any
    handle: int
    flags: int = 0
    at_start: int = 0

    @property
    def words(self) -> tuple[int, ...]:
        return self.handle & 0xFFFFFFFF, self.handle >> 32, self.flags, self.at_start


@dataclass(frozen=True)
class Options:
    """pdl: programmatic dependent launch. cooperative: all CTAs run at once, or the driver refuses. fallback_cluster:
    the shape of the clusters that are made where those of the launch's cluster do not fit. preferred_smem_carveout:
    percent of the SM's memory that is to be shared memory. launch_completion_event, programmatic_event: see
    `cute.launch`."""

    pdl: bool = False
    cooperative: bool = False
    fallback_cluster: tuple[int, int, int] | None = None
    preferred_smem_carveout: int | None = None
    launch_completion_event: Event | None = None
    programmatic_event: Event | None = None

    def attributes(self, cluster: Any, cooperative: bool) -> Iterator[Attribute]:
        """Return what the driver is told. cluster: the launch's, three, or None. cooperative: whether the kernel asks
        for that."""
        if cooperative or self.cooperative:
            yield COOPERATIVE, (1,)
        regular = self.fallback_cluster or cluster
        if regular is not None:
            yield CLUSTER, tuple(regular)
        if self.pdl:
            yield SERIALISED, (1,)
        if self.programmatic_event is not None:
            yield PROGRAMMATIC_EVENT, self.programmatic_event.words
        if self.fallback_cluster is not None:
            yield PREFERRED_CLUSTER, tuple(cluster)
        if self.launch_completion_event is not None:
            yield COMPLETION_EVENT, self.launch_completion_event.words[:3]
        if self.preferred_smem_carveout is not None:
            yield CARVEOUT, (self.preferred_smem_carveout,)


PLAIN = Options()
