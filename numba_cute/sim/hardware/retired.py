# SPDX-License-Identifier: Apache-2.0
"""Clusters that have ended are forgotten, so that a launch takes no more memory for more of them, where lanes run
together: what is found there runs again lane by lane, so that no report names them."""

from __future__ import annotations

from math import prod
from typing import Any

FORGET, BYTES = 16384, 1024
"""Clusters that have ended are forgotten by so many threads, or by one for so many bytes of the kernel's arrays: each
thread takes some 2 KiB, and the shadow of the arrays, which is looked through for them, 9 times their size."""


def forget(run: Any, ended: set[Any]) -> None:
    """Forget clusters that have ended, while none runs, if they are enough for their memory to matter."""
    threads = len(ended) * prod(run.block) * prod(run.cluster_shape)
    if threads < max(FORGET, sum(a.nbytes for a in run.memory.buffers) // BYTES):
        return
    for tell in run.watch.forgets:
        tell(ended)
    for cluster in ended:
        _take_apart(cluster)
    ended.clear()


def _take_apart(cluster: Any) -> None:
    """Break what refers to itself, so that nobody need collect it."""
    for convoy in {t.convoy for t in cluster.threads} - {None}:
        convoy.forget()
    for cta in cluster.ctas:
        for unit in (cta.unit, *cta.warps, *cta.warpgroups):
            unit.threads = []
            unit.meets.clear()
            unit.groups.clear()
        vars(cta).clear()
    vars(cluster).clear()
