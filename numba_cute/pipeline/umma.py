# SPDX-License-Identifier: Apache-2.0
"""Pipelines with Blackwell's matrix unit (UMMA, tcgen05.mma) on one side or the other.

The matrix unit signals with `tcgen05.commit`: the warp whose elected lane issued the multiplies calls
`consumer_release` or `producer_commit` with all lanes. Of two CTAs that multiply together (mode V of the cluster is
2) the even one leads: it alone issues, and the barriers that it waits at are its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import dtypes
from ..isa.special import sreg_cluster
from ..isa.tcgen05 import tcgen05_fence_after, tcgen05_fence_before
from ..pointer import Pointer
from ..seam import CuteError, current, static, traced
from .barrier import MbarrierArray, check_tx_count
from .group import CooperativeGroup, PipelineOp
from .initial_sync import publish
from .known import check_arrivals, check_cluster, cluster_size
from .pipelines import PipelineAsync, cluster_vmnk, coordinate, make_barriers, wait_unless


@static
@dataclass(frozen=True)
class PipelineTmaUmma(PipelineAsync):
    """TMA produces and the matrix unit consumes (Blackwell's mainloop). Make one with `create`; sm_100f.

    is_leader_cta: whether this CTA's barriers are the ones that the copies of its pair signal. cta_group: 1 or 2.
    """

    is_leader_cta: Any = True
    cta_group: int = 1

    @staticmethod
    @traced
    def create(
        *,
        num_stages: int,
        producer_group: CooperativeGroup,
        consumer_group: CooperativeGroup,
        tx_count: int,
        barrier_storage: Pointer,
        cta_layout_vmnk: Any = None,
        mcast_mode_mn: tuple[int, int] = (1, 1),
        defer_sync: bool = False,
        name: str = "pipeline",
    ) -> PipelineTmaUmma:
        """Initialise the barriers and give the pipeline. All threads call it.

        producer_group: size 1, the elected lane. consumer_group: its size is the number of commits that empty a
        stage: m + n - 1 of the cluster, of the modes in `mcast_mode_mn` (pairs count once). tx_count: bytes delivered
        for each stage to this CTA, or to both of a pair. The rest as in `PipelineTmaAsync.create`.
        """
        check_tx_count("PipelineTmaUmma.create", tx_count)
        v, m, n = _extents("PipelineTmaUmma.create", cta_layout_vmnk)
        reached = (m if mcast_mode_mn[0] else 1) + (n if mcast_mode_mn[1] else 1) - 1
        _need_commits("PipelineTmaUmma.create", consumer_group, reached, f"{m} x {n}, multicast {mcast_mode_mn}")
        ops = (PipelineOp.TmaLoad, producer_group), (PipelineOp.TCGen05Mma, consumer_group)
        full, empty = make_barriers(name, num_stages, barrier_storage, *ops, tx_count)
        size = cluster_size(cta_layout_vmnk)
        mask, leads = (None, True) if size == 1 else (_reaching(v, m, n, mcast_mode_mn), _leads(v))
        if not defer_sync:
            publish(size)
        return PipelineTmaUmma(full, empty, num_stages, None, mask, leads, v)

    def producer_acquire(self, state: Any, try_acquire_token: Any = None) -> None:
        """Wait until the stage is empty; then, in the leading CTA, one elected lane says how many bytes will arrive.
        A whole warp."""
        wait_unless(try_acquire_token, self.sync_object_empty, state)
        current().when(self.is_leader_cta, lambda: self.sync_object_full.arrive(state.index))

    def producer_commit(self, state: Any) -> None:
        """Nothing: the copies themselves complete the stage."""

    def consumer_release(self, state: Any) -> None:
        """Let every CTA that fills the stage know when the multiplies issued so far are complete. The issuing warp."""
        self.sync_object_empty.arrive(state.index, self.consumer_mask, self.cta_group)


@static
@dataclass(frozen=True)
class PipelineAsyncUmma(PipelineAsync):
    """Threads produce and the matrix unit consumes. Make one with `create`; sm_100f."""

    cta_group: int = 1

    @staticmethod
    @traced
    def create(
        *,
        num_stages: int,
        producer_group: CooperativeGroup,
        consumer_group: CooperativeGroup,
        barrier_storage: Pointer,
        cta_layout_vmnk: Any = None,
        defer_sync: bool = False,
        name: str = "pipeline",
    ) -> PipelineAsyncUmma:
        """Initialise the barriers and give the pipeline. All threads call it.

        producer_group: its size is the number of producing threads, of both CTAs of a pair. consumer_group: size 1,
        the commit. The rest as in `PipelineTmaAsync.create`. Producers fence what they wrote (`arch.fence_proxy`)
        before they commit.
        """
        v, _, _ = _extents("PipelineAsyncUmma.create", cta_layout_vmnk)
        _need_commits("PipelineAsyncUmma.create", consumer_group, 1, "one issuing thread")
        _need_threads("PipelineAsyncUmma.create", "producer_group", producer_group, v)
        ops = (PipelineOp.AsyncThread, producer_group), (PipelineOp.TCGen05Mma, consumer_group)
        full, empty = make_barriers(name, num_stages, barrier_storage, *ops, 0, v == 2)
        leader, pair = (None, None) if v == 1 else (_leader(), _pair())
        if not defer_sync:
            publish(cluster_size(cta_layout_vmnk))
        return PipelineAsyncUmma(full, empty, num_stages, leader, pair, v)

    def consumer_release(self, state: Any) -> None:
        """Let the producers know when the multiplies issued so far are complete. The issuing warp."""
        self.sync_object_empty.arrive(state.index, self.consumer_mask, self.cta_group)


@static
@dataclass(frozen=True)
class PipelineUmmaAsync(PipelineAsync):
    """The matrix unit produces (accumulators in tensor memory) and threads consume. Make one with `create`; sm_100f."""

    cta_group: int = 1

    @staticmethod
    @traced
    def create(
        *,
        num_stages: int,
        producer_group: CooperativeGroup,
        consumer_group: CooperativeGroup,
        barrier_storage: Pointer,
        cta_layout_vmnk: Any = None,
        defer_sync: bool = False,
        name: str = "pipeline",
    ) -> PipelineUmmaAsync:
        """Initialise the barriers and give the pipeline. All threads call it.

        producer_group: size 1, the commit. consumer_group: its size is the number of consuming threads, of both CTAs
        of a pair. The rest as in `PipelineTmaAsync.create`.
        """
        v, _, _ = _extents("PipelineUmmaAsync.create", cta_layout_vmnk)
        _need_commits("PipelineUmmaAsync.create", producer_group, 1, "one issuing thread", "producer_group")
        _need_threads("PipelineUmmaAsync.create", "consumer_group", consumer_group, v)
        ops = (PipelineOp.TCGen05Mma, producer_group), (PipelineOp.AsyncThread, consumer_group)
        full, empty = make_barriers(name, num_stages, barrier_storage, *ops, 0, gives_back=v == 2)
        leader, pair = (None, None) if v == 1 else (_leader(), _pair())
        if not defer_sync:
            publish(cluster_size(cta_layout_vmnk))
        return PipelineUmmaAsync(full, empty, num_stages, pair, leader, v)

    def producer_acquire(self, state: Any, try_acquire_token: Any = None) -> None:
        """Wait until the consumers have read the stage; later multiplies are ordered after that."""
        wait_unless(try_acquire_token, self.sync_object_empty, state)
        tcgen05_fence_after()

    def consumer_wait(self, state: Any, try_wait_token: Any = None) -> None:
        """Wait until the multiplies are complete; later loads from tensor memory are ordered after that."""
        wait_unless(try_wait_token, self.sync_object_full, state)
        tcgen05_fence_after()

    def consumer_release(self, state: Any) -> None:
        """Say that this thread has read the stage: its loads from tensor memory are complete (`tcgen05_wait_ld`)."""
        tcgen05_fence_before()
        self.sync_object_empty.arrive(state.index, self.consumer_mask)

    def producer_commit(self, state: Any) -> None:
        """Let the consumers know when the multiplies issued so far are complete. The issuing warp."""
        self.sync_object_full.arrive(state.index, self.producer_mask, self.cta_group)

    def producer_tail(self, state: Any) -> None:
        """As `PipelineAsync.producer_tail`; of a pair the leading CTA alone waits, for it holds the barriers."""
        current().when(_leads(self.cta_group), lambda: PipelineAsync.producer_tail(self, state))


@static
@dataclass(frozen=True)
class PipelineTmaMultiConsumersAsync(PipelineAsync):
    """TMA produces; the matrix unit and threads consume the same stages. Make one with `create`; sm_100f.

    sync_object_empty_umma, sync_object_empty_async: the empty barriers as each kind of consumer arrives there.
    """

    sync_object_empty_umma: Any = None
    sync_object_empty_async: Any = None
    cta_group: int = 1

    @staticmethod
    @traced
    def create(
        *,
        num_stages: int,
        producer_group: CooperativeGroup,
        consumer_group_umma: CooperativeGroup,
        consumer_group_async: CooperativeGroup,
        tx_count: int,
        barrier_storage: Pointer,
        cta_layout_vmnk: Any = None,
        defer_sync: bool = False,
        name: str = "pipeline",
    ) -> PipelineTmaMultiConsumersAsync:
        """Initialise the barriers and give the pipeline. All threads call it.

        producer_group: size 1, the elected lane. consumer_group_umma: size 1, the commit. consumer_group_async: its
        size is the number of consuming threads. The cluster has one CTA. The rest as in `PipelineTmaAsync.create`.
        """
        what = "PipelineTmaMultiConsumersAsync.create"
        check_tx_count(what, tx_count)
        size = cluster_size(cta_layout_vmnk)
        if size != 1:
            raise CuteError(f"{what}: cta_layout_vmnk {cta_layout_vmnk} has {size} CTAs: it works within one CTA")
        for side in (consumer_group_umma, consumer_group_async):
            if not isinstance(side, CooperativeGroup):
                raise CuteError(f"{what}: consumer group {side!r} is not a CooperativeGroup")
        _need_commits(what, consumer_group_umma, 1, "one issuing thread", "consumer_group_umma")
        _need_threads(what, "consumer_group_async", consumer_group_async, 1)
        both = CooperativeGroup(consumer_group_async.agent, consumer_group_umma.size + consumer_group_async.size)
        ops = (PipelineOp.TmaLoad, producer_group), (PipelineOp.Composite, both)
        full, empty = make_barriers(name, num_stages, barrier_storage, *ops, tx_count)
        umma, threads = (empty.recast_to_new_op_type(op) for op in (PipelineOp.TCGen05Mma, PipelineOp.AsyncThread))
        if not defer_sync:
            publish(1)
        return PipelineTmaMultiConsumersAsync(full, empty, num_stages, None, None, umma, threads)

    def producer_acquire(self, state: Any, try_acquire_token: Any = None) -> None:
        """Wait until the stage is empty; then one elected lane says how many bytes it will receive. A whole warp."""
        wait_unless(try_acquire_token, self.sync_object_empty, state)
        self.sync_object_full.arrive(state.index)

    def producer_commit(self, state: Any) -> None:
        """Nothing: the copies themselves complete the stage."""

    def consumer_release(self, state: Any, op_type: PipelineOp = PipelineOp.AsyncThread) -> None:  # type: ignore[override]
        """Say that this consumer has done with the stage. op_type: PipelineOp.AsyncThread in each consuming thread,
        PipelineOp.TCGen05Mma in the warp that issued the multiplies."""
        self._empty(op_type).arrive(state.index, None, self.cta_group)

    def _empty(self, op_type: Any) -> MbarrierArray:
        if op_type is PipelineOp.TCGen05Mma:
            return self.sync_object_empty_umma  # type: ignore[no-any-return]
        if op_type is PipelineOp.AsyncThread:
            return self.sync_object_empty_async  # type: ignore[no-any-return]
        raise CuteError(
            f"consumer_release: op_type {op_type!r} must be PipelineOp.AsyncThread or PipelineOp.TCGen05Mma"
        )


def _extents(what: str, cta_layout_vmnk: Any) -> tuple[int, int, int]:
    """(V, M, N) of a cluster."""
    if cta_layout_vmnk is None:
        return 1, 1, 1
    check_cluster(what, "cta_layout_vmnk", cta_layout_vmnk)
    v, m, n, k = cluster_vmnk(cta_layout_vmnk)
    if v > 2 or k != 1:
        raise CuteError(f"{what}: cta_layout_vmnk {cta_layout_vmnk}: mode V is {v} and must be 1 or 2, K is {k}, not 1")
    return v, m, n


def _need_commits(what: str, group: Any, commits: int, why: str, side: str = "consumer_group") -> None:
    if isinstance(group, CooperativeGroup) and group.size != commits:
        raise CuteError(f"{what}: {side}.size {group.size} must be {commits} ({why}): each commit is one arrival")


def _need_threads(what: str, side: str, group: Any, ctas: int) -> None:
    if isinstance(group, CooperativeGroup):
        check_arrivals(what, side, group.size, 1, ctas, "thread")


def _rank() -> Any:
    return dtypes.Int32(sreg_cluster(register="cluster_ctarank"))


def _leads(v: int) -> Any:
    """Whether this CTA is the first of those that multiply together."""
    return True if v == 1 else current().compare("==", _rank() & 1, 0)


def _leader() -> Any:
    """The rank of the leading CTA of this pair."""
    return _rank() & ~1


def _pair() -> Any:
    """The ranks of both CTAs of this pair, a bit each."""
    return dtypes.Int32(3) << _leader()


def _reaching(v: int, m: int, n: int, modes: tuple[int, int]) -> Any:
    """The ranks, a bit each, of the CTAs whose copies reach this one, its pair's own included."""
    _, at_m, at_n = coordinate(_rank(), v, m)
    pair = (1 << v) - 1
    column = sum(pair << v * i for i in range(m)) if modes[0] else 0  # B goes along M
    row = sum(pair << v * m * j for j in range(n)) if modes[1] else 0  # A goes along N
    own = dtypes.Int32(pair) << (v * (at_m + m * at_n))
    return own | (dtypes.Int32(column) << (v * m * at_n)) | (dtypes.Int32(row) << (v * at_m))
