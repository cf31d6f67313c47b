# SPDX-License-Identifier: Apache-2.0
"""Who takes part in a pipeline, and how it arrives."""

from __future__ import annotations

from ..seam import CuteError, StaticEnum, static

MAX_CLUSTER = 16
"""CTAs of the largest cluster."""


class Agent(StaticEnum):
    """The kind of unit that takes part: a thread, a warp, a CTA, or the CTAs of a cluster."""

    Thread = "thread"
    Warp = "warp"
    ThreadBlock = "thread block"
    ThreadBlockCluster = "cluster"


class PipelineOp(StaticEnum):
    """How one side of a pipeline arrives at its barriers.

    AsyncThread: threads, with mbarrier.arrive. AsyncLoad: threads, once their cp.async copies are done
    (cp.async.mbarrier.arrive). TmaLoad: one thread arrives and says how many bytes TMA will deliver
    (mbarrier.arrive.expect_tx); the copy itself completes the phase. ClcLoad: the same for the response of
    clusterlaunchcontrol.try_cancel, in each CTA of the cluster. TCGen05Mma: the matrix unit, when the multiplies of the
    issuing thread are complete (tcgen05.commit). TmaStore: a thread's bulk groups; there is no barrier. Composite:
    several of these; `MbarrierArray.recast_to_new_op_type` gives a view for each.
    """

    AsyncThread = "mbarrier.arrive"
    AsyncLoad = "cp.async.mbarrier.arrive"
    TmaLoad = "mbarrier.arrive.expect_tx"
    ClcLoad = "clusterlaunchcontrol.try_cancel"
    TCGen05Mma = "tcgen05.commit"
    TmaStore = "cp.async.bulk.commit_group"
    Composite = "several"


class PipelineUserType(StaticEnum):
    """The two sides of a pipeline. A producer finds all stages empty at first, and a consumer finds none full."""

    Producer = "producer"
    Consumer = "consumer"


class MbarrierLayout(StaticEnum):
    """How an mbarrier's 64 bits hold its counts (PTX ISA, "mbarrier": contents).

    V0: up to 2**20 - 1 arrivals, and pending bytes of -(2**20 - 1) to 2**20 - 1; what every target has, and all
    barriers here.
    """

    V0 = "layout::v0"


@static
class CooperativeGroup:
    """One side of a pipeline: `size` counts the arrivals that complete a phase of the barrier that it signals.

    alignment: `size` must be a multiple of it, where it is given.
    """

    agent: Agent
    size: int = 1
    alignment: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.agent, Agent):
            raise CuteError(f"CooperativeGroup: agent {self.agent!r} is not a member of pipeline.Agent")
        if not isinstance(self.size, int) or not 0 < self.size < 1 << 20:
            raise CuteError(f"CooperativeGroup: size {self.size!r} must be a static int of 1 to 2**20 - 1 arrivals")
        if self.alignment is not None and self.size % self.alignment:
            raise CuteError(
                f"CooperativeGroup: size {self.size} = {self.size // self.alignment} * {self.alignment} + "
                f"{self.size % self.alignment} is not a multiple of alignment {self.alignment}"
            )
