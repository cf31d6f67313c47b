# SPDX-License-Identifier: Apache-2.0
"""Groups of threads that take turns."""

from typing import Any

from ..pointer import Pointer
from ..seam import CuteError, current, struct, traced
from .barrier import MbarrierArray
from .group import CooperativeGroup, PipelineOp
from .initial_sync import publish
from .known import check_arrivals
from .state import PipelineState, check_stages


@struct
class PipelineOrder:
    """`length` groups of threads that pass through each of `depth` sections one after the other, over and over.

    A group may be in one section while another is in the next. Make one with `create`; PTX: mbarrier, sm_90.
    """

    sync_object_full: Any
    depth: int
    length: int
    group_id: Any
    state: Any

    @staticmethod
    @traced
    def create(
        barrier_storage: Pointer,
        depth: int,
        length: int,
        group_id: Any,
        producer_group: CooperativeGroup,
        defer_sync: bool = False,
        name: str = "order",
    ):
        """Initialise the barriers and give this group's view. All threads call it.

        barrier_storage: depth * length 64-bit words of shared memory. depth: how many sections there are, each
        ordered. length: how many groups take turns. group_id: this thread's group, 0 to length - 1; 0 goes first.
        producer_group: how many arrivals end a group's turn. defer_sync: the caller calls `pipeline_init_arrive` and
        `pipeline_init_wait`. name: for the simulator's reports.
        """
        check_stages("PipelineOrder.create", "depth", depth)
        check_stages("PipelineOrder.create", "length", length)
        if isinstance(group_id, int) and not 0 <= group_id < length:
            raise CuteError(f"PipelineOrder.create: group_id {group_id} must be 0 to {length - 1}, for length {length}")
        if isinstance(producer_group, CooperativeGroup):
            what = f"PipelineOrder.create, {length} groups"
            check_arrivals(what, "producer_group", producer_group.size * length, 1, 1, "thread")
        agent = (PipelineOp.AsyncThread, producer_group)
        barriers = MbarrierArray(barrier_storage, depth * length, agent, 0, name)
        if not defer_sync:
            publish(1)
        b = current()
        state = PipelineState(depth, 0, 0, b.select(b.compare("==", group_id, 0), 1, 0))
        return PipelineOrder(barriers, depth, length, group_id, state)

    @traced
    def get_barrier_for_current_stage_idx(self, group_id):
        """The index of the barrier at which group `group_id` waits in the current section."""
        return self.state.index * self.length + group_id

    @traced
    def wait(self):
        """Wait for this group's turn."""
        self.sync_object_full.wait(self.get_barrier_for_current_stage_idx(self.group_id), self.state.phase)

    @traced
    def arrive(self):
        """End this group's turn: the next group's begins. As many threads call it as the group has arrivals."""
        b, following = current(), self.group_id + 1
        following = b.select(b.compare("==", following, self.length), 0, following)
        self.sync_object_full.arrive(self.get_barrier_for_current_stage_idx(following))
        self.state.advance()
