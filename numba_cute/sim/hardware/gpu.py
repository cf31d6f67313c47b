# SPDX-License-Identifier: Apache-2.0
"""The GPUs of a launch, one for each rank: the clusters that have still to start there, and those that stand still."""

from __future__ import annotations

import itertools
from collections import deque
from math import prod
from typing import Any

from ...isa.form.limits import ctas_at_once
from .waiting import Waiting, parts

_SERIALS = itertools.count(1)
"""Numbers for the launches of this process."""


class Gpu:
    """A GPU, and its part of a launch.

    rank: its number. serial: of the launch (%gridid). waiting: the clusters of the grid that have not started. split:
    those of the shape to fall back to that have not. standing: (cluster, its greenlet) of those that have begun and not
    ended. ended: how many have."""

    def __init__(self, run: Any, rank: int) -> None:
        self.run, self.rank, self.serial = run, rank, next(_SERIALS)
        places = tuple(g // c for g, c in zip(run.grid, run.cluster_shape))
        self.waiting = Waiting(places, run.rng)
        self.split: deque[tuple[int, ...]] = deque()
        self.standing: list[tuple[Any, Any]] = []
        self.ended = 0
        self.clusters: list[Any] = []  # that have begun, if they are to be remembered

    def cancel_cluster(self, shape: tuple[int, int, int]) -> tuple[int, int, int] | None:
        """Take the next cluster that has not started, of that shape; with a seed sometimes none: others were faster."""
        run = self.run
        regular = shape == run.fallback
        if not (self.waiting or (regular and self.split)) or (run.rng is not None and run.rng.random() < 0.25):
            return None
        return tuple(i * c for i, c in zip(self._regular() if regular else self.waiting.take(), shape))  # type: ignore

    @property
    def to_start(self) -> int:
        """The most clusters that may still start."""
        return len(self.split) + len(self.waiting) * (1 if self.run.fallback is None else prod(self._split_by))

    def next_cluster(self) -> Any:
        """The coordinates and the shape of the cluster that starts next: the first that waits, or another by choice."""
        run = self.run
        if not self.split:
            count = len(self.waiting)
            at = (0, 1, count - 1)[run.choices.among(min(count, 3))] if run.choices is not None else 0
            place = self.waiting.take(at)
            if run.fallback is None or self._prefers():
                return place, run.cluster_shape
            return self._regular(place), run.fallback
        return self._regular(), run.fallback

    def _regular(self, place: Any = None) -> tuple[int, ...]:
        """Take the next cluster of the shape to fall back to, if need be in a preferred one's `place` or the next's."""
        if not self.split:
            self.split.extend(parts(place or self.waiting.take(), self._split_by))
        return self.split.popleft()

    @property
    def _split_by(self) -> tuple[int, ...]:
        return tuple(p // f for p, f in zip(self.run.cluster_shape, self.run.fallback))

    def _prefers(self) -> bool:
        """Say whether the next cluster has the shape that is preferred: where the target has such, the GPU is free
        to make either (cuda.h, CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION); in the usual order it always does."""
        run = self.run
        if prod(run.cluster_shape) > run.target.cluster_size:
            return False
        if run.choices is not None:
            return bool(run.choices.among(2) == 0)
        return run.rng is None or run.rng.random() < 0.5

    @property
    def of_rank(self) -> str:
        """Words that say whose something is: " of rank 1", or "" if there is one rank."""
        return f" of rank {self.rank}" if len(self.run.gpus) > 1 else ""

    @property
    def parked(self) -> bool:
        """Tell whether a cluster stands still that polls."""
        return any(cluster.parked for cluster, _ in self.standing)

    @property
    def full(self) -> str:
        """Say why no further cluster can start beside those that stand; "" if one can."""
        if not self.standing:
            return ""
        run, cta = self.run, self.standing[0][0].ctas[0]
        room = ctas_at_once(run.target, len(cta.threads), cta.smem.taken)
        if room is None or sum(c.size for c, _ in self.standing) + self.standing[0][0].size <= room[0]:
            return ""
        return (
            f"no known GPU of {run.target.name} holds more than {room[0]} CTAs of this kernel at once: {room[1]}; the "
            f"others start when one of these ends. Launch as many as fit, each of which does the work of several, or "
            f"let none wait for one that starts later"
        )
