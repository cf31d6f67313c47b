# SPDX-License-Identifier: Apache-2.0
"""Groups of threads that take turns."""

from __future__ import annotations

from typing import Any

from ..seam import CuteError, Int, current, struct, traced
from ..tensor.pointer import Pointer
from .barrier import MbarrierArray
from .group import CooperativeGroup, PipelineOp
from .initial_sync import publish
from .known import check_arrivals
from .pipelines import barrier_words
from .state import PipelineState, check_stages

__all__ = ["PipelineOrder"]


@struct
class PipelineOrder:
    """`length` groups of threads that pass through each of `depth` sections one after the other, over and over.

    A group may be in one section while another is in the next. Make one with `create`. PTX mbarrier, sm_90.

    >>> def kernel():
    ...     warp = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32)
    ...     order = pipeline.PipelineOrder.create(depth=1, length=3, group_id=arch.warp_idx(), producer_group=warp)
    ...     order.wait()
    ...     if arch.lane_idx() == 0:
    ...         print(arch.warp_idx())
    ...     order.arrive()
    >>> cute.simulate(kernel)[1, 96]()
    0
    1
    2
    """

    sync_object_full: MbarrierArray
    depth: int
    length: int
    group_id: Any
    state: PipelineState

    @staticmethod
    @traced
    def create(
        *,
        depth: int,
        length: int,
        group_id: Int,
        producer_group: CooperativeGroup,
        barrier_storage: Pointer | None = None,
        defer_sync: bool = False,
        name: str = "order",
    ) -> PipelineOrder:
        """Initialise the barriers and return this group's view. All threads.

        depth: how many sections there are, each ordered. length: how many groups take turns. group_id: this thread's
        group, 0 to length - 1; 0 goes first. producer_group: the threads of one such group: each arrives to end its
        turn. barrier_storage: depth * length 64-bit words of shared memory; None takes static shared memory.
        defer_sync: the caller calls `pipeline_init_arrive` and `pipeline_init_wait`. name: for the simulator's reports.
        """
        check_stages("PipelineOrder.create", "depth", depth)
        check_stages("PipelineOrder.create", "length", length)
        if isinstance(group_id, int) and not 0 <= group_id < length:
            raise CuteError(f"PipelineOrder.create: group_id {group_id} must be 0 to {length - 1}, for length {length}")
        if isinstance(producer_group, CooperativeGroup):
            check_arrivals("PipelineOrder.create", "producer_group", producer_group, 1, 1, "thread", length)
        agent = (PipelineOp.AsyncThread, producer_group)
        words = f"depth * length = {depth} * {length} = {depth * length}"
        barrier_storage = barrier_words("PipelineOrder.create", barrier_storage, depth * length, words)
        barriers = MbarrierArray(barrier_storage, depth * length, agent, 0, name)
        if not defer_sync:
            publish(1)
        b = current()
        state = PipelineState(depth, 0, 0, b.select(b.compare("==", group_id, 0), 1, 0))
        return PipelineOrder(barriers, depth, length, group_id, state)

    @traced
    def get_barrier_for_current_stage_idx(self, group_id: Int, state: PipelineState | None = None) -> Any:
        """Return the index of the barrier at which group `group_id` waits in the section of `state`, or of its own
        state."""
        state = self.state if state is None else state
        return state.index * self.length + group_id

    @traced
    def wait(self, state: PipelineState | None = None) -> None:
        """Wait for this group's turn in the section of its own state. Any thread.

        state: a PipelineState of `depth` stages that the caller keeps, to be used instead: it begins as a Producer's in
        group 0, and as a Consumer's in the others.
        """
        phase = self.state.phase if state is None else state.phase
        self.sync_object_full.wait(self.get_barrier_for_current_stage_idx(self.group_id, state), phase)

    @traced
    def arrive(self, state: PipelineState | None = None) -> PipelineState | None:
        """End this group's turn: the next group's begins. As many threads as the group has arrivals.

        state: as for `wait`; it, and not the own state, goes on to the next section, and is returned.
        """
        b, following = current(), self.group_id + 1
        following = b.select(b.compare("==", following, self.length), 0, following)
        self.sync_object_full.arrive(self.get_barrier_for_current_stage_idx(following, state))
        if state is None:
            self.state.advance()
        else:
            state.advance()
        return state
