# SPDX-License-Identifier: Apache-2.0
"""The pipeline of a dynamic schedule: one thread asks for further work, all CTAs of its cluster read the answer."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..isa.rows.clc import RESPONSE_BYTES
from ..isa.rows.special import sreg
from ..layout import Layout
from ..seam import CuteError, Int, current, frozen, remainder, traced
from ..seam.ground.records import dataclass
from ..tensor.pointer import Pointer
from .barrier import check_tx_count
from .group import WARP_SIZE, CooperativeGroup, PipelineOp
from .initial_sync import publish
from .known import check_arrivals, check_cluster, check_elected, cluster_size
from .participants import State, check_owner
from .pipelines import PipelineAsync, make_barriers, wait_unless

__all__ = ["PipelineClcFetchAsync"]


@frozen
@dataclass(frozen=True)
class PipelineClcFetchAsync(PipelineAsync):
    """A pipeline in which clusterlaunchcontrol.try_cancel produces its 16-byte responses in every CTA of the cluster,
    and threads of all these CTAs consume them. Make one with `create`. PTX clusterlaunchcontrol.try_cancel, sm_100f.

    The producer is one warp of the CTA of rank 0. Each of its lanes i below the cluster's size announces the response
    to CTA i; then one elected lane calls `arch.issue_clc_query` (or the scheduler's `advance_to_next_work`) with
    `producer_get_barrier(state)`. All consumers, of all CTAs, release the stage at the barrier of CTA 0.
    is_signaling_thread: whether this lane announces.

    >>> def kernel(out):
    ...     place = arch.alloc_smem(cute.Int32, 4, alignment=16)
    ...     one, all32 = [pipeline.CooperativeGroup(pipeline.Agent.Thread, n) for n in (1, 32)]
    ...     pipe = pipeline.PipelineClcFetchAsync.create(num_stages=1, producer_group=one, consumer_group=all32)
    ...     producer, consumer = pipe.make_participants()
    ...     stage = producer.acquire_and_advance()
    ...     with arch.elect_one():
    ...         arch.issue_clc_query(stage.barrier, place)
    ...     full = consumer.wait_and_advance()
    ...     x, y, z, taken = arch.clc_response(place)
    ...     if arch.lane_idx() == 0:
    ...         out[0] = taken
    ...     full.release()
    ...     producer.tail()
    >>> out = np.ones(1, np.int32)
    >>> cute.simulate(kernel, arch="sm_100a")[1, 32](out)
    >>> out
    array([0], dtype=int32)
    """

    is_signaling_thread: Any = True

    @staticmethod
    @traced
    def create(
        *,
        num_stages: int,
        producer_group: CooperativeGroup,
        consumer_group: CooperativeGroup,
        tx_count: int = RESPONSE_BYTES,
        barrier_storage: Pointer | None = None,
        producer_mask: Int | None = None,
        consumer_mask: Int | None = 0,
        cta_layout_vmnk: Layout | None = None,
        defer_sync: bool = False,
        name: str = "clc",
    ) -> PipelineClcFetchAsync:
        """Initialise the barriers and return the pipeline. All threads.

        producer_group: size 1. consumer_group: the consuming threads of the whole cluster. tx_count: 16, a response.
        producer_mask: the CTA that this lane signals (by default its lane number). consumer_mask: the rank of the
        producer's CTA. num_stages, barrier_storage, cta_layout_vmnk, defer_sync, name: as in `PipelineTmaAsync.create`.
        """
        what = "PipelineClcFetchAsync.create"
        check_tx_count(what, tx_count)
        check_cluster(what, "cta_layout_vmnk", cta_layout_vmnk)
        size = cluster_size(cta_layout_vmnk)
        if tx_count != RESPONSE_BYTES:
            raise CuteError(f"{what}: tx_count {tx_count} must be {RESPONSE_BYTES} bytes: 1 response * 16 bytes")
        if isinstance(consumer_mask, int) and not 0 <= consumer_mask < size:
            raise CuteError(f"{what}: consumer_mask {consumer_mask} is the producer's CTA, a rank of 0 to {size - 1}")
        check_elected(what, "producer_group", producer_group)
        if isinstance(consumer_group, CooperativeGroup):
            check_arrivals(what, "consumer_group", consumer_group, 1, size, "thread")
        ops = (PipelineOp.ClcLoad, producer_group), (PipelineOp.AsyncThread, consumer_group)
        full, empty = make_barriers(name, num_stages, barrier_storage, *ops, tx_count)
        lane = remainder(dtypes.Int32(sreg(register="tid.x")), WARP_SIZE)
        signals = current().compare("<", lane, size)
        if size == 1:
            producer_mask, consumer_mask = None, None
        elif producer_mask is None:
            producer_mask = lane
        if not defer_sync:
            publish(size)
        return PipelineClcFetchAsync(full, empty, num_stages, producer_mask, consumer_mask, signals)

    def producer_acquire(self, state: State, try_acquire_token: Int | None = None) -> None:
        """Wait until the stage of `state` is empty, unless `try_acquire_token` is true; then announce a response to
        every CTA of the cluster. A whole warp."""
        wait_unless(try_acquire_token, self.sync_object_empty, state)
        current().when(self.is_signaling_thread, lambda: self.sync_object_full.arrive(state.index, self.producer_mask))

    def producer_commit(self, state: State) -> None:
        """Do nothing: the response itself completes the stage of `state`."""
        check_owner(self, "producer_commit", state)
