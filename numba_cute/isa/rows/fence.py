# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Fences between threads and between proxies (PTX ISA, "membar / fence")."""

from __future__ import annotations

from ..form.instr import SAME, instr
from ..form.machine import Machine

_REF = "parallel-synchronization-and-communication-instructions-membar"


@instr("fence.mbarrier_init.release.cluster;", target="sm_90", lanes=SAME, ref=_REF)
def fence_mbarrier_init(m: Machine) -> None:
    """Make this thread's earlier mbarrier.init visible to the cluster and to the async proxy. The thread that
    initialised them, before a CTA or cluster barrier: this does not wait for others."""
    m.fence("mbarrier_init")


@instr("fence.proxy.async;", target="sm_90", lanes=SAME, ref=_REF)
def fence_proxy_async(m: Machine) -> None:
    """Order this thread's generic accesses to all memory before later accesses of the async proxy (TMA, wgmma).
    Each thread that wrote, before the barrier that precedes the copy: this does not wait for others."""
    m.fence("proxy.async")


@instr("fence.proxy.async.shared::cta;", target="sm_90", lanes=SAME, ref=_REF)
def fence_proxy_async_shared_cta(m: Machine) -> None:
    """The same for shared memory of the CTA alone."""
    m.fence("proxy.async.shared")


@instr("fence.proxy.async.shared::cluster;", target="sm_90", lanes=SAME, ref=_REF)
def fence_proxy_async_shared_cluster(m: Machine) -> None:
    """The same for shared memory of the cluster's CTAs."""
    m.fence("proxy.async.shared")


@instr("fence.proxy.alias;", target="sm_70", lanes=SAME, ref=_REF)
def fence_proxy_alias(m: Machine) -> None:
    """Order this thread's accesses by one virtual address before those by another of the same memory."""
    m.fence("acq_rel.cta")


@instr("fence.proxy.async.global;", target="sm_90", lanes=SAME, ref=_REF)
def fence_proxy_async_global(m: Machine) -> None:
    """The same for global memory alone."""
    m.fence("proxy.async.global")


@instr(
    "fence.acq_rel.{scope};", target="sm_70", lanes=SAME, ref=_REF, over=[{"scope": s} for s in ("cta", "gpu", "sys")]
)
def fence_acq_rel(m: Machine, *, scope: str) -> None:
    """Order this thread's memory accesses before it with those after it, as threads of `scope` see them. Generic
    proxy only."""
    m.fence(f"acq_rel.{scope}")


@instr("fence.acq_rel.cluster;", target="sm_90", lanes=SAME, ref=_REF)
def fence_acq_rel_cluster(m: Machine) -> None:
    """The same, as threads of the cluster see them."""
    m.fence("acq_rel.cluster")
