# SPDX-License-Identifier: Apache-2.0
"""Making fresh barriers known to all who will use them."""

from __future__ import annotations

from ..isa.rows import sync as isa_sync
from ..isa.rows.fence import fence_mbarrier_init
from ..seam import CuteError, traced
from ..seam.guards.kinds import Domain
from .barrier import sync
from .group import Agent
from .known import check_cluster, cluster_size

__all__ = ["agent_sync", "pipeline_init_arrive", "pipeline_init_wait"]


@traced
def agent_sync(group: Agent, is_relaxed: bool = False) -> None:
    """Wait for all threads of the warp, the CTA, or the cluster. All of them.

    group: Agent.Warp, Agent.ThreadBlock or Agent.ThreadBlockCluster. is_relaxed: of a cluster, do not release memory
    accesses. PTX barrier.cta, sm_70; barrier.cluster, sm_90.

    >>> cute.simulate(lambda: pipeline.agent_sync(pipeline.Agent.ThreadBlockCluster), cluster=2)[2, 32]()
    """
    if group is Agent.Warp:
        isa_sync.bar_warp_sync()
    elif group is Agent.ThreadBlock:
        sync()
    elif group is Agent.ThreadBlockCluster:
        _cluster_arrive(is_relaxed)
        isa_sync.cluster_wait()
    else:
        raise CuteError(
            f"agent_sync: group {group!r} must be Agent.Warp, Agent.ThreadBlock or Agent.ThreadBlockCluster"
        )


@traced
def pipeline_init_arrive(cluster_shape_mn: Domain = None, is_relaxed: bool = False) -> None:
    """Fence the barriers that this thread initialised and, in a cluster, arrive without waiting for the others. All
    threads, after the last pipeline made with `defer_sync`; `pipeline_init_wait` must follow.

    cluster_shape_mn: the cluster, as a shape or a layout; None where there is none. is_relaxed: arrive without
    releasing memory accesses. PTX fence.mbarrier_init, barrier.cluster.arrive, sm_90.

    >>> def kernel():
    ...     pipeline.pipeline_init_arrive((2, 1))
    ...     pipeline.pipeline_init_wait((2, 1))
    >>> cute.simulate(kernel, cluster=2)[2, 32]()
    """
    check_cluster("pipeline_init_arrive", "cluster_shape_mn", cluster_shape_mn)
    fence_mbarrier_init()
    if cluster_size(cluster_shape_mn) > 1:
        _cluster_arrive(is_relaxed)


@traced
def pipeline_init_wait(cluster_shape_mn: Domain = None) -> None:
    """Wait until all threads of the cluster, or of the CTA where there is no cluster, have come to the same call. All
    threads. cluster_shape_mn: as for `pipeline_init_arrive`. PTX barrier.cluster.wait, sm_90; barrier.cta, sm_70.

    >>> def kernel():
    ...     pipeline.pipeline_init_arrive()
    ...     pipeline.pipeline_init_wait()
    >>> cute.simulate(kernel)[1, 64]()
    """
    if cluster_size(cluster_shape_mn) > 1:
        isa_sync.cluster_wait()
    else:
        sync()


def publish(size: int) -> None:
    """Make the barriers that thread 0 initialised known to the CTA or, if `size` (CTAs) is more than 1, the cluster."""
    fence_mbarrier_init()
    agent_sync(Agent.ThreadBlock if size == 1 else Agent.ThreadBlockCluster)


def _cluster_arrive(is_relaxed: bool) -> None:
    if is_relaxed:
        isa_sync.cluster_arrive(sem="relaxed")
    else:
        isa_sync.cluster_arrive()
