# SPDX-License-Identifier: Apache-2.0
"""Pipelines with Blackwell's matrix unit (UMMA, tcgen05.mma) on one side or the other.

The matrix unit signals with `tcgen05.commit`: the warp whose elected lane issued the multiplies calls
`consumer_release` or `producer_commit` with all lanes. Of two CTAs that multiply together (mode V of the cluster is
2) the even one leads: it alone issues, and the barriers that it waits at are its own.
"""

from __future__ import annotations

from typing import Any

from ..isa.rows.special import sreg
from ..isa.rows.tcgen05 import tcgen05_fence_after, tcgen05_fence_before
from ..layout import Layout
from ..seam import CuteError, Int, current, frozen, traced
from ..seam.ground.records import dataclass
from ..tensor.pointer import Pointer
from .barrier import check_tx_count
from .cluster import Cluster, check_modes, cluster_of, cluster_rank
from .group import WARP_SIZE, Agent, CooperativeGroup, PipelineOp, arrivals, arriving_once, counted, known_arrivals
from .initial_sync import publish
from .known import check_arrivals, check_elected
from .participants import PipelineConsumer, PipelineProducer, State, check_owner
from .pipelines import PipelineAsync, arrive_signal, check_warps, make_barriers, wait_unless
from .state import PipelineState

__all__ = ["PipelineAsyncUmma", "PipelineTmaMultiConsumersAsync", "PipelineTmaUmma", "PipelineUmmaAsync"]


@frozen
@dataclass(frozen=True)
class PipelineTmaUmma(PipelineAsync):
    """A pipeline in which TMA produces and the matrix unit consumes (Blackwell's mainloop). Make one with `create`. PTX
    tcgen05.commit, sm_100f.

    is_leader_cta: whether this CTA's barriers are the ones that the copies of its pair signal. cta_group: 1 or 2.

    >>> x = cute.runtime.from_dlpack(np.arange(4, dtype=np.float32), assumed_align=16)
    >>> def kernel(x):
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 4, alignment=16), cute.make_layout(4))
    ...     one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    ...     pipe = pipeline.PipelineTmaUmma.create(num_stages=1, producer_group=one, consumer_group=one, tx_count=16)
    ...     if arch.warp_idx() == 0:
    ...         producer = pipe.make_producer()
    ...         stage = producer.acquire_and_advance()
    ...         with arch.elect_one():
    ...             atom = cute.make_copy_atom(nvgpu.cpasync.CopyBulkG2SOp(), cute.Float32)
    ...             cute.copy(atom, x, s, tma_bar_ptr=stage.barrier)
    ...         producer.tail()
    ...     else:
    ...         stage = pipe.make_consumer().wait_and_advance()
    ...         if arch.lane_idx() == 0:
    ...             print(s[3])
    ...         stage.release()
    >>> cute.simulate(kernel, arch="sm_100a")[1, 64](x)
    3.0
    """

    is_leader_cta: Any = True
    cta_group: int = 1

    @staticmethod
    @traced
    def create(  # type: ignore[override]  # each pipeline has its own parameters
        *,
        num_stages: int,
        producer_group: CooperativeGroup,
        consumer_group: CooperativeGroup,
        tx_count: int | None,
        barrier_storage: Pointer | None = None,
        cta_layout_vmnk: Layout | None = None,
        mcast_mode_mn: tuple[int, int] = (1, 1),
        enable_multicast_signaling: bool = False,
        defer_sync: bool = False,
        name: str = "pipeline",
    ) -> PipelineTmaUmma:
        """Initialise the barriers and return the pipeline. All threads.

        producer_group: size 1, the elected lane. consumer_group: its size is the number of commits that empty a stage:
        n of the cluster if A is multicast, m if B is, n + m - 1 if both (pairs count once). tx_count: bytes delivered
        for each stage to this CTA, or to both of a pair; None: as in `PipelineTmaAsync.create`.
        enable_multicast_signaling: consumer_group is the warp that multiplies instead, and the commits are counted
        here. num_stages, barrier_storage, cta_layout_vmnk, mcast_mode_mn, defer_sync, name: as in
        `PipelineTmaAsync.create`.
        """
        what = "PipelineTmaUmma.create"
        check_tx_count(what, tx_count)
        check_modes(what, mcast_mode_mn)
        cluster = cluster_of(what, cta_layout_vmnk, pairs=True)
        if enable_multicast_signaling and isinstance(consumer_group, CooperativeGroup):
            consumer_group = arriving_once(consumer_group, WARP_SIZE, cluster.reached(mcast_mode_mn))
        check_elected(what, "producer_group", producer_group)
        _need_commits(what, consumer_group, *_reached(cluster, mcast_mode_mn))
        ops = (PipelineOp.TmaLoad, producer_group), (PipelineOp.TCGen05Mma, consumer_group)
        full, empty = make_barriers(name, num_stages, barrier_storage, *ops, tx_count)
        mask = None if cluster.size == 1 else cluster.sharing(mcast_mode_mn, True)
        if not defer_sync:
            publish(cluster.size)
        return PipelineTmaUmma(full, empty, num_stages, None, mask, cluster.leads(), cluster.v)

    def producer_acquire(self, state: State, try_acquire_token: Int | None = None) -> None:
        """Wait until the stage of `state` is empty, unless `try_acquire_token` is true; then announce, in one elected
        lane of the leading CTA, how many bytes will arrive (if the pipeline knows). A whole warp."""
        wait_unless(try_acquire_token, self.sync_object_empty, state)
        if self.sync_object_full.tx_count is not None:
            current().when(self.is_leader_cta, lambda: self.sync_object_full.arrive(state.index))

    def producer_commit(self, state: State) -> None:
        """Do nothing: the copies themselves complete the stage of `state`; only where the pipeline does not know how
        many bytes they bring (tx_count None), a whole warp says by it that all are announced."""
        check_owner(self, "producer_commit", state)
        if self.sync_object_full.tx_count is None:
            current().when(self.is_leader_cta, lambda: self.sync_object_full.arrive(state.index))

    def consumer_release(self, state: State) -> None:
        """Let every CTA that fills the stage of `state` know when the multiplies issued so far are complete. The
        issuing warp."""
        check_owner(self, "consumer_release", state)
        self.sync_object_empty.arrive(state.index, self.consumer_mask, self.cta_group)


@frozen
@dataclass(frozen=True)
class PipelineAsyncUmma(PipelineAsync):
    """A pipeline in which threads produce and the matrix unit consumes. Make one with `create`. PTX tcgen05.commit,
    sm_100f.

    cta_group: 1 or 2 CTAs that multiply together.

    >>> def kernel():
    ...     one, all32 = [pipeline.CooperativeGroup(pipeline.Agent.Thread, n) for n in (1, 32)]
    ...     pipe = pipeline.PipelineAsyncUmma.create(num_stages=1, producer_group=all32, consumer_group=one)
    ...     if arch.warp_idx() == 0:
    ...         producer = pipe.make_producer()
    ...         producer.acquire_and_advance().commit()
    ...         producer.tail()
    ...     else:
    ...         pipe.make_consumer().wait_and_advance().release()
    >>> cute.simulate(kernel, arch="sm_100a")[1, 64]()
    """

    cta_group: int = 1

    @staticmethod
    @traced
    def create(  # type: ignore[override]  # each pipeline has its own parameters
        *,
        num_stages: int,
        producer_group: CooperativeGroup,
        consumer_group: CooperativeGroup,
        barrier_storage: Pointer | None = None,
        cta_layout_vmnk: Layout | None = None,
        defer_sync: bool = False,
        name: str = "pipeline",
    ) -> PipelineAsyncUmma:
        """Initialise the barriers and return the pipeline. All threads. Producers fence what they wrote
        (`arch.fence_proxy`) before they commit.

        producer_group: the producing threads, of both CTAs of a pair. consumer_group: size 1, the commit. num_stages,
        barrier_storage, cta_layout_vmnk, defer_sync, name: as in `PipelineTmaAsync.create`.
        """
        what = "PipelineAsyncUmma.create"
        cluster = cluster_of(what, cta_layout_vmnk, pairs=True)
        _need_commits(what, consumer_group, 1, "one issuing thread")
        _need_threads(what, "producer_group", producer_group, cluster.v)
        ops = (PipelineOp.AsyncThread, producer_group), (PipelineOp.TCGen05Mma, consumer_group)
        full, empty = make_barriers(name, num_stages, barrier_storage, *ops, 0, cluster.v == 2)
        leader, pair = (None, None) if cluster.v == 1 else (cluster.leader(), cluster.together())
        if not defer_sync:
            publish(cluster.size)
        return PipelineAsyncUmma(full, empty, num_stages, leader, pair, cluster.v)

    def consumer_release(self, state: State) -> None:
        """Let the producers of the stage of `state` know when the multiplies issued so far are complete. The issuing
        warp."""
        check_owner(self, "consumer_release", state)
        self.sync_object_empty.arrive(state.index, self.consumer_mask, self.cta_group)


@frozen
@dataclass(frozen=True)
class PipelineUmmaAsync(PipelineAsync):
    """A pipeline in which the matrix unit produces (accumulators in tensor memory) and threads consume. Make one with
    `create`. PTX tcgen05.commit, sm_100f.

    cta_group: 1 or 2 CTAs that multiply together.

    >>> def kernel():
    ...     one, all32 = [pipeline.CooperativeGroup(pipeline.Agent.Thread, n) for n in (1, 32)]
    ...     pipe = pipeline.PipelineUmmaAsync.create(num_stages=1, producer_group=one, consumer_group=all32)
    ...     if arch.warp_idx() == 0:
    ...         producer = pipe.make_producer()
    ...         producer.acquire_and_advance().commit()
    ...         producer.tail()
    ...     else:
    ...         stage = pipe.make_consumer().wait_and_advance()
    ...         stage.release()
    >>> cute.simulate(kernel, arch="sm_100a")[1, 64]()
    """

    cta_group: int = 1

    @staticmethod
    @traced
    def create(  # type: ignore[override]  # each pipeline has its own parameters
        *,
        num_stages: int,
        producer_group: CooperativeGroup,
        consumer_group: CooperativeGroup,
        barrier_storage: Pointer | None = None,
        cta_layout_vmnk: Layout | None = None,
        defer_sync: bool = False,
        name: str = "pipeline",
    ) -> PipelineUmmaAsync:
        """Initialise the barriers and return the pipeline. All threads.

        producer_group: size 1, the commit. consumer_group: the consuming threads, of both CTAs of a pair. num_stages,
        barrier_storage, cta_layout_vmnk, defer_sync, name: as in `PipelineTmaAsync.create`.
        """
        what = "PipelineUmmaAsync.create"
        cluster = cluster_of(what, cta_layout_vmnk, pairs=True)
        _need_commits(what, producer_group, 1, "one issuing thread", "producer_group")
        _need_threads(what, "consumer_group", consumer_group, cluster.v)
        ops = (PipelineOp.TCGen05Mma, producer_group), (PipelineOp.AsyncThread, consumer_group)
        full, empty = make_barriers(name, num_stages, barrier_storage, *ops, 0, gives_back=cluster.v == 2)
        leader, pair = (None, None) if cluster.v == 1 else (cluster.leader(), cluster.together())
        if not defer_sync:
            publish(cluster.size)
        return PipelineUmmaAsync(full, empty, num_stages, pair, leader, cluster.v)

    def producer_acquire(self, state: State, try_acquire_token: Int | None = None) -> None:
        """Wait until the consumers have read the stage of `state`, unless `try_acquire_token` is true; later multiplies
        are ordered after that."""
        wait_unless(try_acquire_token, self.sync_object_empty, state)
        tcgen05_fence_after()

    def consumer_wait(self, state: State, try_wait_token: Int | None = None) -> None:
        """Wait until the multiplies of the stage of `state` are complete, unless `try_wait_token` is true; later loads
        from tensor memory are ordered after that."""
        wait_unless(try_wait_token, self.sync_object_full, state)
        tcgen05_fence_after()

    def consumer_release(self, state: State) -> None:
        """Announce that this thread has read the stage of `state`: its loads from tensor memory are complete
        (`tcgen05_wait_ld`). Each consuming thread."""
        check_owner(self, "consumer_release", state)
        tcgen05_fence_before()
        self.sync_object_empty.arrive(state.index, self.consumer_mask)

    def producer_commit(self, state: State) -> None:
        """Let the consumers of the stage of `state` know when the multiplies issued so far are complete. The issuing
        warp."""
        check_owner(self, "producer_commit", state)
        self.sync_object_full.arrive(state.index, self.producer_mask, self.cta_group)

    def producer_tail(self, state: PipelineState) -> None:
        """Wait as `PipelineAsync.producer_tail(state)` does; of a pair the leading CTA alone waits, for it holds the
        barriers."""
        leads = True if self.cta_group == 1 else current().compare("==", cluster_rank() & 1, 0)
        current().when(leads, lambda: PipelineAsync.producer_tail(self, state))


@frozen
@dataclass(frozen=True)
class PipelineTmaMultiConsumersAsync(PipelineAsync):
    """A pipeline in which TMA produces, and the matrix unit and threads consume the same stages. Make one with
    `create`. PTX tcgen05.commit, sm_100f.

    Threads arrive as in `PipelineTmaAsync`: one lane of each warp at each CTA whose copies reach this one, and at both
    of a pair. In a single CTA whose consumer_group_async is a multiple of 32, each thread arrives instead.

    is_leader_cta, cta_group: as in `PipelineTmaUmma`; the full barriers of a pair are those of its leading CTA alone.
    sync_object_empty_umma, sync_object_empty_async: the empty barriers as each kind of consumer arrives there.
    consumer_dst_rank_async, is_signaling_thread: the CTA that this thread signals, and whether it does.

    >>> x = cute.runtime.from_dlpack(np.arange(4, dtype=np.float32), assumed_align=16)
    >>> def kernel(x):
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 4, alignment=16), cute.make_layout(4))
    ...     one, all32 = [pipeline.CooperativeGroup(pipeline.Agent.Thread, n) for n in (1, 32)]
    ...     pipe = pipeline.PipelineTmaMultiConsumersAsync.create(
    ...         num_stages=1, producer_group=one, consumer_group_umma=one, consumer_group_async=all32, tx_count=16)
    ...     if arch.warp_idx() == 0:
    ...         producer = pipe.make_producer()
    ...         stage = producer.acquire_and_advance()
    ...         with arch.elect_one():
    ...             atom = cute.make_copy_atom(nvgpu.cpasync.CopyBulkG2SOp(), cute.Float32)
    ...             cute.copy(atom, x, s, tma_bar_ptr=stage.barrier)
    ...         producer.tail()
    ...     else:
    ...         state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 1)
    ...         pipe.consumer_wait(state)
    ...         if arch.warp_idx() == 1:
    ...             pipe.consumer_release(state, pipeline.PipelineOp.TCGen05Mma)
    ...         else:
    ...             pipe.consumer_release(state, pipeline.PipelineOp.AsyncThread)
    >>> cute.simulate(kernel, arch="sm_100a")[1, 96](x)
    """

    is_leader_cta: Any = True
    sync_object_empty_umma: Any = None
    sync_object_empty_async: Any = None
    cta_group: int = 1
    consumer_dst_rank_async: Any = None
    is_signaling_thread: Any = True

    @staticmethod
    @traced
    def create(  # type: ignore[override]  # each pipeline has its own parameters
        *,
        num_stages: int,
        producer_group: CooperativeGroup,
        consumer_group_umma: CooperativeGroup,
        consumer_group_async: CooperativeGroup,
        tx_count: int,
        barrier_storage: Pointer | None = None,
        cta_layout_vmnk: Layout | None = None,
        mcast_mode_mn: tuple[int, int] = (1, 1),
        tidx: Int | None = None,
        enable_multicast_signaling: bool = False,
        defer_sync: bool = False,
        name: str = "pipeline",
    ) -> PipelineTmaMultiConsumersAsync:
        """Initialise the barriers and return the pipeline. All threads.

        producer_group: size 1, the elected lane. consumer_group_umma: as the consumer_group of `PipelineTmaUmma`.
        consumer_group_async: its size is the number of arrivals of consuming threads, as the class counts them.
        num_stages, tx_count, barrier_storage, cta_layout_vmnk, mcast_mode_mn, tidx, enable_multicast_signaling,
        defer_sync, name: as in `PipelineTmaAsync.create`.
        """
        what = "PipelineTmaMultiConsumersAsync.create"
        umma, threads = consumer_group_umma, consumer_group_async
        check_tx_count(what, tx_count)
        check_modes(what, mcast_mode_mn)
        for side in (umma, threads):
            if not isinstance(side, CooperativeGroup):
                raise CuteError(f"{what}: consumer group {side!r} is not a CooperativeGroup")
        check_elected(what, "producer_group", producer_group)
        cluster = cluster_of(what, cta_layout_vmnk, pairs=True)
        if enable_multicast_signaling:
            reached = cluster.reached(mcast_mode_mn)
            umma = arriving_once(umma, WARP_SIZE, reached)
            threads = arriving_once(threads, WARP_SIZE, reached * cluster.v)
        _need_commits(what, umma, *_reached(cluster, mcast_mode_mn), "consumer_group_umma")
        each = cluster.size == 1 and not enable_multicast_signaling and (known_arrivals(threads) or 0) % WARP_SIZE == 0
        if each:
            check_arrivals(what, "consumer_group_async", threads, 1, 1, "thread")
        else:
            check_warps(what, "consumer_group_async", threads, cluster, mcast_mode_mn, ctas=cluster.v)
        both = CooperativeGroup(Agent.Thread, arrivals(umma) + arrivals(threads))
        ops = (PipelineOp.TmaLoad, producer_group), (PipelineOp.Composite, both)
        full, empty = make_barriers(name, num_stages, barrier_storage, *ops, tx_count)
        mask = None if cluster.size == 1 else cluster.sharing(mcast_mode_mn, True)
        tidx = sreg(register="tid.x") if tidx is None else tidx
        rank, signals = (None, True) if each else arrive_signal(cluster, tidx, mcast_mode_mn, True)
        if not defer_sync:
            publish(cluster.size)
        return PipelineTmaMultiConsumersAsync(
            full, empty, num_stages, None, mask, cluster.leads(), empty.recast_to_new_op_type(PipelineOp.TCGen05Mma),
            empty.recast_to_new_op_type(PipelineOp.AsyncThread), cluster.v, rank, signals,
        )  # fmt: skip

    def make_participants(self) -> tuple[PipelineProducer, PipelineConsumer, None]:  # type: ignore[override]
        """Make the producer's view, that of the matrix unit, and None: threads consume through a state of their own, or
        through `make_consumer()` and `consumer_release(handle, PipelineOp.AsyncThread)`."""
        return self.make_producer(), self.make_consumer(), None

    def producer_acquire(self, state: State, try_acquire_token: Int | None = None) -> None:
        """Wait until the stage of `state` is empty, unless `try_acquire_token` is true; then announce, in one elected
        lane of the leading CTA, how many bytes will arrive. A whole warp."""
        wait_unless(try_acquire_token, self.sync_object_empty, state)
        current().when(self.is_leader_cta, lambda: self.sync_object_full.arrive(state.index))

    def producer_commit(self, state: State) -> None:
        """Do nothing: the copies themselves complete the stage of `state`."""
        check_owner(self, "producer_commit", state)

    def consumer_release(self, state: State, op_type: PipelineOp = PipelineOp.TCGen05Mma) -> None:
        """Announce that this consumer has finished with the stage of `state`. op_type: PipelineOp.TCGen05Mma in the
        warp that issued the multiplies, PipelineOp.AsyncThread in all lanes of each warp of consuming threads."""
        check_owner(self, "consumer_release", state)
        if op_type is PipelineOp.TCGen05Mma:
            self.sync_object_empty_umma.arrive(state.index, self.consumer_mask, self.cta_group)
        elif op_type is PipelineOp.AsyncThread:
            threads, rank = self.sync_object_empty_async, self.consumer_dst_rank_async
            current().when(self.is_signaling_thread, lambda: threads.arrive(state.index, rank))
        else:
            raise CuteError(
                f"consumer_release: op_type {op_type!r} must be PipelineOp.AsyncThread or PipelineOp.TCGen05Mma"
            )


def _reached(cluster: Cluster, modes: tuple[int, int]) -> tuple[int, str]:
    """Return the number of commits that empty a stage, and the reason."""
    of = "A and B" if all(modes) else "A" if modes[0] else "B"
    why = f"{of} multicast over {cluster.m} x {cluster.n}, mcast_mode_mn {modes}"
    return cluster.reached(modes), why + "; enable_multicast_signaling=True counts them itself"


def _need_commits(what: str, group: Any, commits: int, why: str, side: str = "consumer_group") -> None:
    """Refuse a group of the matrix unit that commits do not fill: one of each warp that multiplies for a stage."""
    known = known_arrivals(group) if isinstance(group, CooperativeGroup) else None
    if known is not None and (known % commits or not 0 < known // commits < WARP_SIZE):
        raise CuteError(
            f"{what}: {counted(side, group)} must be {commits} ({why}), times the warps that multiply: each commit is "
            f"one arrival"
        )


def _need_threads(what: str, side: str, group: Any, ctas: int) -> None:
    if isinstance(group, CooperativeGroup):
        check_arrivals(what, side, group, 1, ctas, "thread")
