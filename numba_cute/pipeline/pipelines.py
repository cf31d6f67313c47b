# SPDX-License-Identifier: Apache-2.0
"""Pipelines: a circular buffer of stages, with a full and an empty barrier for each."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..arch.smem import alloc_smem
from ..isa.rows.special import sreg
from ..layout import Layout
from ..seam import CuteError, Int, current, frozen, remainder, traced
from ..seam.ground.records import dataclass
from ..tensor.pointer import Pointer
from .barrier import MbarrierArray, TmaStoreFence, check_tx_count
from .cluster import Cluster, check_modes, cluster_of
from .group import (
    MAX_CLUSTER,
    WARP_SIZE,
    CooperativeGroup,
    PipelineOp,
    PipelineUserType,
    arriving_once,
    counted,
    known_arrivals,
)
from .initial_sync import publish
from .known import check_arrivals, check_elected, check_ranks, known_cluster
from .participants import PipelineConsumer, PipelineProducer, State, check_owner
from .state import PipelineState, check_stages, make_pipeline_state

__all__ = ["PipelineAsync", "PipelineCpAsync", "PipelineTmaAsync", "PipelineTmaStore"]


@frozen
class PipelineAsync:
    """A pipeline in which threads produce and threads consume. Make one with `create`.

    A producer acquires a stage (waits until it is empty), fills it and commits it; a consumer waits until it is full,
    uses it and releases it. Each side keeps its own PipelineState, or works through `make_participants()`.

    sync_object_full, sync_object_empty: the barriers of its `num_stages` stages. producer_mask, consumer_mask: the
    ranks that each side signals. Of all methods, state: the caller's PipelineState, or a handle of this pipeline (of
    another one it is an error); try_acquire_token, try_wait_token: the token of an earlier try, which if it is true
    saves the wait.

    >>> def kernel():
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Int32, 2), cute.make_layout(2))
    ...     warp = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32)
    ...     pipe = pipeline.PipelineAsync.create(num_stages=2, producer_group=warp, consumer_group=warp)
    ...     if arch.warp_idx() == 0:
    ...         producer = pipe.make_producer()
    ...         for i in range(4):
    ...             stage = producer.acquire_and_advance()
    ...             if arch.lane_idx() == 0:
    ...                 s[stage.index] = 10 * i
    ...             stage.commit()
    ...     else:
    ...         consumer = pipe.make_consumer()
    ...         for _ in range(4):
    ...             stage = consumer.wait_and_advance()
    ...             if arch.lane_idx() == 0:
    ...                 print(s[stage.index])
    ...             stage.release()
    >>> cute.simulate(kernel)[1, 64]()
    0
    10
    20
    30
    """

    sync_object_full: MbarrierArray
    sync_object_empty: MbarrierArray
    num_stages: int
    producer_mask: Any  # without a default, as those of the fields that subclasses of users add
    consumer_mask: Any

    @staticmethod
    @traced
    def _make_sync_object(
        barrier_storage: Pointer, num_stages: int, agent: tuple[PipelineOp, CooperativeGroup], tx_count: int = 0
    ) -> MbarrierArray | TmaStoreFence:
        """Make what a side of a pipeline waits at: the name by which pipelines written after the CuTe DSL's do."""
        if agent[0] is PipelineOp.TmaStore:
            return TmaStoreFence(num_stages)
        return MbarrierArray(barrier_storage, num_stages, agent, tx_count)

    @staticmethod
    @traced
    def create(
        *,
        num_stages: int,
        producer_group: CooperativeGroup,
        consumer_group: CooperativeGroup,
        barrier_storage: Pointer | None = None,
        producer_mask: Int | None = None,
        consumer_mask: Int | None = None,
        defer_sync: bool = False,
        name: str = "pipeline",
    ) -> PipelineAsync:
        """Initialise the barriers and return the pipeline. All threads.

        num_stages: 1 or more. producer_group, consumer_group: the threads that fill, and empty, a stage: each arrives.
        barrier_storage: 2 * num_stages 64-bit words of shared memory; None takes static shared memory, the same each
        time that a line of the kernel makes the pipeline. producer_mask, consumer_mask: the cluster rank whose barrier
        producers and consumers signal (their own CTA's by default). defer_sync: the caller calls `pipeline_init_arrive`
        and `pipeline_init_wait`. name: for the simulator's reports.
        """
        check_ranks("PipelineAsync.create", producer_mask=producer_mask, consumer_mask=consumer_mask)
        _check_threads("PipelineAsync.create", "producer_group", producer_group, producer_mask)
        _check_threads("PipelineAsync.create", "consumer_group", consumer_group, consumer_mask)
        op = PipelineOp.AsyncThread
        sides = (op, producer_group), (op, consumer_group)
        full, empty = make_barriers(name, num_stages, barrier_storage, *sides, 0, producer_mask is not None)
        if not defer_sync:
            publish(1 if producer_mask is None and consumer_mask is None else 2)
        return PipelineAsync(full, empty, num_stages, producer_mask, consumer_mask)

    def producer_acquire(self, state: State, try_acquire_token: Int | None = None) -> None:
        """Wait until stage `state.index` is empty, unless `try_acquire_token` is true. Any producing thread."""
        wait_unless(try_acquire_token, self.sync_object_empty, state)

    def producer_try_acquire(self, state: State) -> Any:
        """Return a token: whether the stage of `state` is already empty. It does not acquire it."""
        return self.sync_object_empty.try_wait(state.index, state.phase)

    def producer_commit(self, state: State) -> None:
        """Announce that this thread has filled its part of the stage of `state`. Each producing thread."""
        check_owner(self, "producer_commit", state)
        self.sync_object_full.arrive(state.index, self.producer_mask)

    def consumer_wait(self, state: State, try_wait_token: Int | None = None) -> None:
        """Wait until stage `state.index` is full, unless `try_wait_token` is true. Any consuming thread."""
        wait_unless(try_wait_token, self.sync_object_full, state)

    def consumer_try_wait(self, state: State) -> Any:
        """Return a token: whether the stage of `state` is already full."""
        return self.sync_object_full.try_wait(state.index, state.phase)

    def consumer_release(self, state: State) -> None:
        """Announce that this thread has finished with the stage of `state`. Each consuming thread."""
        check_owner(self, "consumer_release", state)
        self.sync_object_empty.arrive(state.index, self.consumer_mask)

    def producer_get_barrier(self, state: State) -> Pointer:
        """Return a Pointer to the full barrier of the stage of `state`, which copies into it signal."""
        return self.sync_object_full.get_barrier(state.index)

    def producer_tail(self, state: PipelineState) -> None:
        """Wait until the consumers have released every stage that was filled, in whatever order: the producer's last
        call.

        Without it a CTA could exit while its peers, or the async proxy, still signal its barriers. state: the stage
        that would be filled next; it ends at the one filled last, `num_stages - 1` further on.
        """
        self.sync_object_empty.wait(state.index, state.phase)
        for _ in range(self.num_stages - 1):
            state.advance()
            self.sync_object_empty.wait(state.index, state.phase)

    def make_producer(self) -> PipelineProducer:
        """Make the producer's view, at stage 0."""
        state = make_pipeline_state(PipelineUserType.Producer, self.num_stages)
        return PipelineProducer(self, state, self.sync_object_full.cg)

    def make_consumer(self) -> PipelineConsumer:
        """Make the consumer's view, at stage 0."""
        state = make_pipeline_state(PipelineUserType.Consumer, self.num_stages)
        return PipelineConsumer(self, state, self.sync_object_empty.cg)

    def make_participants(self) -> tuple[PipelineProducer, PipelineConsumer]:
        """Make both views, (producer, consumer), at stage 0."""
        return self.make_producer(), self.make_consumer()


@frozen
@dataclass(frozen=True)
class PipelineCpAsync(PipelineAsync):
    """A pipeline in which threads produce with cp.async and threads consume. Make one with `create`. PTX
    cp.async.mbarrier.arrive, sm_80.

    `producer_commit` returns at once: the stage is full when the copies of all producing threads are done.

    >>> x = cute.runtime.from_dlpack(np.arange(128, dtype=np.float32), assumed_align=16)
    >>> def kernel(x):
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 128, alignment=16), cute.make_layout(128))
    ...     all32 = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32)
    ...     pipe = pipeline.PipelineCpAsync.create(num_stages=1, producer_group=all32, consumer_group=all32)
    ...     producer, consumer = pipe.make_producer(), pipe.make_consumer()
    ...     mine = (4,), (arch.thread_idx()[0],)
    ...     stage = producer.acquire_and_advance()
    ...     atom = cute.make_copy_atom(nvgpu.cpasync.CopyG2SOp(), cute.Float32, num_bits_per_copy=128)
    ...     cute.copy(atom, cute.local_tile(x, *mine), cute.local_tile(s, *mine))
    ...     stage.commit()
    ...     full = consumer.wait_and_advance()
    ...     if arch.thread_idx()[0] == 0:
    ...         print(s[127])
    ...     full.release()
    >>> cute.simulate(kernel)[1, 32](x)
    127.0
    """

    @staticmethod
    @traced
    def create(
        *,
        num_stages: int,
        producer_group: CooperativeGroup,
        consumer_group: CooperativeGroup,
        barrier_storage: Pointer | None = None,
        producer_mask: Int | None = None,
        consumer_mask: Int | None = None,
        defer_sync: bool = False,
        name: str = "pipeline",
    ) -> PipelineCpAsync:
        """Initialise the barriers and return the pipeline. All threads.

        producer_group: the threads that commit a stage. producer_mask: None, for the hardware signals the barrier of
        the copying thread's own CTA. num_stages, consumer_group, barrier_storage, consumer_mask, defer_sync, name: as
        in `PipelineAsync.create`.
        """
        if producer_mask is not None:
            raise CuteError(
                f"PipelineCpAsync.create: producer_mask {producer_mask!r} must be None: cp.async signals only barriers "
                "of its own CTA"
            )
        check_ranks("PipelineCpAsync.create", consumer_mask=consumer_mask)
        _check_threads("PipelineCpAsync.create", "producer_group", producer_group, None)
        _check_threads("PipelineCpAsync.create", "consumer_group", consumer_group, consumer_mask)
        ops = (PipelineOp.AsyncLoad, producer_group), (PipelineOp.AsyncThread, consumer_group)
        full, empty = make_barriers(name, num_stages, barrier_storage, *ops, 0)
        if not defer_sync:
            publish(1 if consumer_mask is None else 2)
        return PipelineCpAsync(full, empty, num_stages, None, consumer_mask)


@frozen
@dataclass(frozen=True)
class PipelineTmaAsync(PipelineAsync):
    """A pipeline in which TMA produces and threads consume (Hopper's mainloop). Make one with `create`. PTX mbarrier,
    sm_90.

    Each consumer warp arrives once at the empty barrier of every CTA whose copies reach this one, itself included.
    is_signaling_thread: whether this thread is the one that does.

    >>> x = cute.runtime.from_dlpack(np.arange(4, dtype=np.float32), assumed_align=16)
    >>> def kernel(x):
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 4, alignment=16), cute.make_layout(4))
    ...     one = pipeline.CooperativeGroup(pipeline.Agent.Thread)  # the consumers' arrivals are those of warps
    ...     pipe = pipeline.PipelineTmaAsync.create(num_stages=1, producer_group=one, consumer_group=one, tx_count=16)
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
    >>> cute.simulate(kernel)[1, 64](x)
    3.0
    """

    is_signaling_thread: Any = True

    @staticmethod
    @traced
    def init_empty_barrier_arrive_signal(
        cta_layout_vmnk: Layout,
        tidx: Int,
        mcast_mode_mn: tuple[int, int] = (1, 1),
        threads_per_arrival: int = WARP_SIZE,
    ) -> tuple[Any, Any]:
        """Return (rank of the CTA that this thread signals, whether it signals) when a consumer releases a stage.

        Lane i of each `threads_per_arrival` threads signals the CTA of rank i, if that CTA's multicast reaches this
        one. cta_layout_vmnk: the cluster. tidx: this thread's index in the CTA. mcast_mode_mn: whether A is multicast,
        to the CTAs of the same v and m, and B, to those of the same v and n.
        """
        what = "init_empty_barrier_arrive_signal"
        check_modes(what, mcast_mode_mn)
        cluster = cluster_of(what, cta_layout_vmnk)
        rank, signals = arrive_signal(cluster, tidx, mcast_mode_mn, False, threads_per_arrival)
        return dtypes.Int32(0) if rank is None else rank, signals

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
        tidx: Int | None = None,
        mcast_mode_mn: tuple[int, int] = (1, 1),
        enable_multicast_signaling: bool = False,
        defer_sync: bool = False,
        threads_per_arrival: int = WARP_SIZE,
        name: str = "pipeline",
    ) -> PipelineTmaAsync:
        """Initialise the barriers and return the pipeline. All threads.

        num_stages: 1 or more. producer_group: size 1, the elected lane. consumer_group: its size is the number of
        consumer warps times the CTAs whose copies meet here: n of the cluster if A is multicast, m if B is, n + m - 1
        if both. tx_count: bytes delivered to this CTA for each stage; None: who issues the copies announces them, and
        `producer_commit` is called. barrier_storage: as in `PipelineAsync.create`.
        cta_layout_vmnk: the cluster. tidx: this thread's index in the CTA; a static 0, in a single CTA, says that
        each thread arrives for itself: consumer_group is then the threads. mcast_mode_mn: whether A is multicast, and
        B. enable_multicast_signaling: consumer_group is the consuming threads of one CTA instead, and their arrivals
        are counted here. defer_sync: the caller calls `pipeline_init_arrive` and `pipeline_init_wait`.
        threads_per_arrival: consumers that release as one: 32 (a warp) or 128 (a warpgroup, whose wgmma waits make it
        safe). name: for the simulator's reports.
        """
        what = "PipelineTmaAsync.create"
        check_tx_count(what, tx_count)
        check_modes(what, mcast_mode_mn)
        cluster = cluster_of(what, cta_layout_vmnk)
        if enable_multicast_signaling and isinstance(consumer_group, CooperativeGroup):
            reached = cluster.reached(mcast_mode_mn)
            consumer_group = arriving_once(consumer_group, threads_per_arrival, reached)
        check_elected(what, "producer_group", producer_group)
        if threads_per_arrival not in (32, 128):
            raise CuteError(f"{what}: threads_per_arrival {threads_per_arrival} must be 32 (warp) or 128 (warpgroup)")
        each = type(tidx) is int and tidx % threads_per_arrival == 0 and cluster.size == 1
        if not each:
            check_warps(what, "consumer_group", consumer_group, cluster, mcast_mode_mn, threads_per_arrival)
        full, empty = make_barriers(
            name, num_stages, barrier_storage,
            (PipelineOp.TmaLoad, producer_group), (PipelineOp.AsyncThread, consumer_group), tx_count,
        )  # fmt: skip
        tidx = sreg(register="tid.x") if tidx is None else tidx
        signal = (None, True) if each else arrive_signal(cluster, tidx, mcast_mode_mn, False, threads_per_arrival)
        rank, signals = signal
        if not defer_sync:
            publish(cluster.size)
        return PipelineTmaAsync(full, empty, num_stages, None, rank, signals)

    def producer_acquire(self, state: State, try_acquire_token: Int | None = None) -> None:
        """Wait until the stage of `state` is empty, unless `try_acquire_token` is true; then announce, in one elected
        lane, how many bytes it will receive (if the pipeline knows). A whole warp."""
        wait_unless(try_acquire_token, self.sync_object_empty, state)
        if self.sync_object_full.tx_count is not None:
            self.sync_object_full.arrive(state.index)

    def producer_commit(self, state: State) -> None:
        """Do nothing: the copies themselves complete the stage of `state`; only where the pipeline does not know how
        many bytes they bring (tx_count None), a whole warp says by it that all are announced."""
        check_owner(self, "producer_commit", state)
        if self.sync_object_full.tx_count is None:
            self.sync_object_full.arrive(state.index)

    def consumer_release(self, state: State) -> None:
        """Announce, to every CTA that fills it, that this warp has finished with the stage of `state`. All lanes of
        each consumer warp.

        One lane arrives for all: if they read the stage themselves (and not wgmma, after its wait), `arch.sync_warp`
        first.
        """
        check_owner(self, "consumer_release", state)
        if self.is_signaling_thread is not True:
            current().lanes_meet()
        current().when(self.is_signaling_thread, lambda: self.sync_object_empty.arrive(state.index, self.consumer_mask))


@frozen
class PipelineTmaStore:
    """A pipeline in which threads fill stages of shared memory and TMA stores them; one thread issues and tracks the
    stores.

    There are no barriers: `producer_acquire` in the issuing thread, then a named barrier, tells the writers that a
    buffer is free again. sync_object: the stores' TmaStoreFence; num_stages: the number of buffers.

    >>> out = np.zeros((2, 4), np.float32)
    >>> def kernel(out):
    ...     rows = cute.make_layout((2, 4), stride=(4, 1))
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 8, alignment=16), rows)
    ...     one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    ...     pipe = pipeline.PipelineTmaStore.create(num_stages=2, producer_group=one)
    ...     atom = cute.make_copy_atom(nvgpu.cpasync.CopyBulkS2GOp(), cute.Float32)
    ...     for i in cute.range_constexpr(2):
    ...         pipe.producer_acquire()
    ...         s[i, None].fill(i)
    ...         arch.fence_view_async_shared()
    ...         cute.copy(atom, s[i, None], out[i, None])
    ...         pipe.producer_commit()
    ...     pipe.producer_tail()
    >>> cute.simulate(kernel)[1, 1](cute.runtime.from_dlpack(out, assumed_align=16))
    >>> out
    array([[0., 0., 0., 0.],
           [1., 1., 1., 1.]], dtype=float32)
    """

    sync_object: TmaStoreFence
    num_stages: int

    @staticmethod
    @traced
    def create(*, num_stages: int, producer_group: CooperativeGroup) -> PipelineTmaStore:
        """Make the pipeline. num_stages: the number of buffers, 1 or more. producer_group: the threads that write
        them."""
        check_stages("PipelineTmaStore.create", "num_stages", num_stages)
        if not isinstance(producer_group, CooperativeGroup):
            raise CuteError(f"PipelineTmaStore.create: producer_group {producer_group!r} is not a CooperativeGroup")
        return PipelineTmaStore(TmaStoreFence(num_stages), num_stages)

    def producer_acquire(self) -> None:
        """Wait until at most `num_stages - 1` committed stores still read their buffers. The issuing thread. PTX
        cp.async.bulk.wait_group.read, sm_90."""
        self.sync_object.wait()

    def producer_commit(self) -> None:
        """Close the group of the stores issued since the last commit. The issuing thread. PTX
        cp.async.bulk.commit_group, sm_90."""
        self.sync_object.arrive()

    def consumer_wait(self) -> None:
        """Raise an error: the TMA unit consumes."""
        raise CuteError("PipelineTmaStore.consumer_wait: it has no consumer threads: the TMA unit reads the stages")

    def consumer_release(self) -> None:
        """Raise an error: the TMA unit consumes."""
        raise CuteError("PipelineTmaStore.consumer_release: it has no consumer threads: producer_acquire waits instead")

    def producer_tail(self) -> None:
        """Wait until no store reads its buffer any more: before they are reused or the CTA exits. The issuing
        thread."""
        self.sync_object.tail()


def make_barriers(
    name: str, num_stages: int, storage: Any, producer: Any, consumer: Any, tx_count: int | None,
    publishes: bool = False, gives_back: bool = False,
) -> tuple[MbarrierArray, MbarrierArray]:  # fmt: skip
    """Make the full and the empty barriers of a pipeline.

    producer, consumer: (PipelineOp, CooperativeGroup). publishes: producers write for consumers of other CTAs.
    gives_back: consumers of other CTAs end accesses to tensor memory, which needs cluster scope too.
    """
    check_stages("pipeline", "num_stages", num_stages)
    for side, (_, group) in (("producer_group", producer), ("consumer_group", consumer)):
        if not isinstance(group, CooperativeGroup):
            raise CuteError(f"pipeline: {side} {group!r} is not a CooperativeGroup")
    storage = barrier_words("pipeline", storage, 2 * num_stages, f"2 * num_stages = {2 * num_stages}")
    full = MbarrierArray(storage, num_stages, producer, tx_count, f"{name}.full", publishes)
    return full, MbarrierArray(storage + num_stages, num_stages, consumer, 0, f"{name}.empty", gives_back)


def barrier_words(what: str, storage: Any, count: int, why: str) -> Pointer:
    """Return `count` 64-bit words of shared memory: `storage`, or static ones for None."""
    if storage is None:
        return alloc_smem(dtypes.Int64, count)
    if not isinstance(storage, Pointer):
        raise CuteError(
            f"{what}: barrier_storage {storage!r} is not a pointer; it takes {why} 64-bit words: "
            f"SmemAllocator().allocate_array(cute.Int64, {count}), or None for static shared memory"
        )
    return storage


def _check_threads(what: str, side: str, group: Any, mask: Any) -> None:
    """Threads that arrive once each: those of this CTA or, if they signal a CTA of `mask`, of the whole cluster."""
    if isinstance(group, CooperativeGroup):
        ctas = 1 if mask is None else known_cluster() or MAX_CLUSTER
        check_arrivals(what, side, group, 1, ctas, "thread")


def wait_unless(token: Any, barriers: MbarrierArray, state: State) -> None:
    """Wait for the state's stage and phase, unless a token of an earlier try says that the phase is complete."""
    if token is None:
        barriers.wait(state.index, state.phase)
    else:
        b = current()
        b.when(b.compare("==", token, 0), lambda: barriers.wait(state.index, state.phase))


def arrive_signal(
    cluster: Cluster, tidx: Int, modes: tuple[int, int], pairs: bool, threads_per_arrival: int = WARP_SIZE
) -> tuple[Any, Any]:
    """Return (rank, whether): lane i of each `threads_per_arrival` threads signals the CTA of rank i, where it is one
    of `cluster.sharing(modes, pairs)`. The rank of a CTA alone is None: its own barrier."""
    b, lane = current(), remainder(dtypes.Int32(tidx), threads_per_arrival)
    if cluster.size == 1:
        return None, b.compare("==", lane, 0)
    rank = remainder(lane, cluster.size)
    shares = b.compare("!=", cluster.sharing(modes, pairs) >> rank & 1, 0)
    return rank, b.compare("<", lane, cluster.size) & shares


def check_warps(
    what: str, side: str, group: Any, cluster: Cluster, modes: tuple[int, int], unit: int = WARP_SIZE, ctas: int = 1
) -> None:
    """Refuse a group whose warps (or warpgroups: unit 128) cannot arrive with one lane at each CTA that copies reach.

    ctas: how many of those that multiply together arrive.
    """
    if not isinstance(group, CooperativeGroup):
        return
    check_elected(what, side, group, ", or enable_multicast_signaling=True counts them itself")
    reached, size, kind = cluster.reached(modes), known_arrivals(group), "warp" if unit == WARP_SIZE else "warpgroup"
    if size is not None and size % reached:
        sum_of = f"{reached} = {cluster.n} + {cluster.m} - 1" if all(modes) else f"{reached}"
        shared = "A or B" if all(modes) else "A" if modes[0] else "B"
        raise CuteError(
            f"{what}: {counted(side, group)} is not a multiple of {sum_of}, the CTAs that share this one's copies of "
            f"{shared}: it is that times the number of consumer {kind}s"
        )
    check_arrivals(what, side, group, unit, reached * ctas, kind)
