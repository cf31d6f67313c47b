# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Fences between threads and between proxies (PTX ISA, "membar / fence")."""

from __future__ import annotations

from ..form.instr import ACQ_REL, RELEASE, SAME, instr
from ..form.machine import Machine

_REF = "parallel-synchronization-and-communication-instructions-membar"


@instr("fence.mbarrier_init.release.cluster;", target="sm_90", lanes=SAME, sem=RELEASE, scope="cluster", ref=_REF)
def fence_mbarrier_init(m: Machine) -> None:
    """Make this thread's earlier mbarrier.init visible to the cluster and to the async proxy. The thread that
    initialised them, before a CTA or cluster barrier: this does not wait for others."""
    m.fence_barriers()


@instr("fence.proxy.async<space:.{space}>;", target="sm_90", lanes=SAME, ref=_REF,
       over=[{"space": s} for s in (None, "shared::cta", "shared::cluster", "global")],
       defaults={"space": None})  # fmt: skip
def fence_proxy_async(m: Machine, *, space: str | None) -> None:
    """Order this thread's generic accesses before later accesses of the async proxy (TMA, wgmma): those to all memory,
    or to `space` alone ("shared::cta": of the CTA; "shared::cluster": of the cluster's CTAs; "global"). Each thread
    that wrote, before the barrier that precedes the copy: this does not wait for others."""
    m.fence_proxy(shared=space != "global", global_=space in (None, "global"))


@instr("fence.proxy.alias;", target="sm_70", lanes=SAME, sem=ACQ_REL, scope="cta", ref=_REF)
def fence_proxy_alias(m: Machine) -> None:
    """Order this thread's accesses by one virtual address before those by another of the same memory."""
    m.fence()


@instr("fence.acq_rel.{scope};", target="sm_70", lanes=SAME, sem=ACQ_REL, ref=_REF,
       over=[*({"scope": s} for s in ("cta", "gpu", "sys")), {"scope": "cluster", "target": "sm_90"}])  # fmt: skip
def fence_acq_rel(m: Machine) -> None:
    """Order this thread's memory accesses before it with those after it, as threads of `scope` see them. Generic
    proxy only."""
    m.fence()
