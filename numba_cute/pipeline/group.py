# SPDX-License-Identifier: Apache-2.0
"""The two sides of a pipeline: how many take part, and how they arrive."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from ..isa.rows.special import sreg, sreg_cluster
from ..seam import CuteError, Leaf, StaticEnum, frozen, quotient

__all__ = ["Agent", "CooperativeGroup", "MbarrierLayout", "PipelineOp", "PipelineUserType"]

WARP_SIZE = 32
MAX_CLUSTER = 16
"""CTAs of the largest cluster."""
MAX_ARRIVALS = (1 << 20) - 1
"""The most arrivals of one phase of an mbarrier (PTX ISA, "Size and alignment of mbarrier object")."""


class Agent(StaticEnum):
    """The unit in which a `CooperativeGroup` is counted: a thread, a warp, a CTA, or a cluster of CTAs. The values are
    the CuTe DSL's, which has no Warp.

    >>> [agent.name for agent in pipeline.Agent]
    ['Thread', 'ThreadBlock', 'ThreadBlockCluster', 'Warp']
    """

    Thread = 1
    ThreadBlock = 2
    ThreadBlockCluster = 3
    Warp = 4


class PipelineOp(StaticEnum):
    """The way in which one side of a pipeline arrives at its barriers.

    AsyncThread: threads, with mbarrier.arrive. AsyncLoad: threads, once their cp.async copies are done
    (cp.async.mbarrier.arrive). TmaLoad: one thread arrives and announces how many bytes TMA will deliver
    (mbarrier.arrive.expect_tx); the copy itself completes the phase. ClcLoad: the same for the response of
    clusterlaunchcontrol.try_cancel, in each CTA of the cluster. TCGen05Mma: the matrix unit, when the multiplies of the
    issuing thread are complete (tcgen05.commit). TmaStore: a thread's bulk groups; there is no barrier. Composite:
    several of these; `MbarrierArray.recast_to_new_op_type` makes a view for each. The values are the CuTe DSL's.

    >>> [member.name for member in pipeline.PipelineOp]
    ['AsyncThread', 'TCGen05Mma', 'TmaLoad', 'ClcLoad', 'TmaStore', 'Composite', 'AsyncLoad']
    """

    AsyncThread = 1
    TCGen05Mma = 2
    TmaLoad = 3
    ClcLoad = 4
    TmaStore = 5
    Composite = 6
    AsyncLoad = 7


class PipelineUserType(StaticEnum):
    """The two sides of a pipeline. A producer finds all stages empty at first, and a consumer finds none full. A thread
    that is on both sides (ProducerConsumer) keeps a state for each. The values are the CuTe DSL's.

    >>> [member.name for member in pipeline.PipelineUserType]
    ['Producer', 'Consumer', 'ProducerConsumer']
    """

    Producer = 1
    Consumer = 2
    ProducerConsumer = 3


class MbarrierLayout(StaticEnum):
    """The format of the counts in an mbarrier's 64 bits (PTX ISA, "mbarrier": contents).

    V0: up to 2**20 - 1 arrivals, and pending bytes of -(2**20 - 1) to 2**20 - 1; every target has it, and all barriers
    here.

    >>> pipeline.MbarrierLayout.V0.name
    'V0'
    """

    V0 = "layout::v0"


@frozen
class CooperativeGroup:
    """One side of a pipeline: `size` agents, all of whose threads arrive to complete a phase of the barrier that they
    signal, unless the pipeline names others who arrive for them.

    agent: the unit of `size`, an Agent. `size` warps are `32 * size` arrivals, and so many CTAs or clusters as many as
    they have threads. alignment: `size` must be a multiple of it, where it is given.

    >>> pipeline.CooperativeGroup(pipeline.Agent.Warp, 2)
    CooperativeGroup(agent=<Agent.Warp: 4>, size=2, alignment=None)
    """

    agent: Agent
    size: Any = 1
    alignment: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.agent, Agent):
            raise CuteError(f"CooperativeGroup: agent {self.agent!r} is not a member of pipeline.Agent")
        if isinstance(self.size, Leaf):
            return
        if type(self.size) is float and self.size.is_integer():  # of a division, as 128 / 32
            object.__setattr__(self, "size", int(self.size))
        if not isinstance(self.size, Integral) or isinstance(self.size, bool) or self.size < 1:
            raise CuteError(f"CooperativeGroup: size {self.size!r} must be an int of at least 1: how many {self.agent}")
        count = known_arrivals(self)
        if count is not None and count > MAX_ARRIVALS:
            raise CuteError(
                f"CooperativeGroup: {counted('group', self)} arrivals are more than a phase can count: 2**20 - 1"
            )
        if self.alignment is not None and (type(self.alignment) is not int or self.alignment < 1):
            raise CuteError(f"CooperativeGroup: alignment {self.alignment!r} must be an int of at least 1, or None")
        if self.alignment is not None and self.size % self.alignment:
            raise CuteError(
                f"CooperativeGroup: size {self.size} = {self.size // self.alignment} * {self.alignment} + "
                f"{self.size % self.alignment} is not a multiple of alignment {self.alignment}"
            )


def arrivals(group: CooperativeGroup) -> Any:
    """Count the threads of a group: the arrivals of a phase where each of them arrives once."""
    if group.agent is Agent.Thread:
        return group.size
    if group.agent is Agent.Warp:
        return group.size * WARP_SIZE
    threads = sreg(register="ntid.x") * sreg(register="ntid.y") * sreg(register="ntid.z")
    if group.agent is Agent.ThreadBlockCluster:
        threads = threads * sreg_cluster(register="cluster_nctarank")
    return threads * group.size


def known_arrivals(group: CooperativeGroup) -> int | None:
    """Return `arrivals(group)`, where that needs no kernel that runs."""
    if isinstance(group.size, Leaf) or group.agent not in (Agent.Thread, Agent.Warp):
        return None
    return int(arrivals(group))


def arriving_once(group: CooperativeGroup, threads: int, times: int = 1) -> CooperativeGroup:
    """Return the arrivals of a group where each `threads` of its threads make `times` of them together."""
    return CooperativeGroup(Agent.Thread, quotient(arrivals(group) + (threads - 1), threads) * times)


def counted(side: str, group: CooperativeGroup) -> str:
    """Write a group's size for errors: how it becomes a number of arrivals."""
    if group.agent is Agent.Thread:
        return f"{side}.size {group.size}"
    if group.agent is Agent.Warp and not isinstance(group.size, Leaf):
        return f"{side}.size {group.size} * {WARP_SIZE} ({group.agent}) = {group.size * WARP_SIZE}"
    return f"{side}.size {group.size} ({group.agent})"
