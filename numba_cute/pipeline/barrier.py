# SPDX-License-Identifier: Apache-2.0
"""Synchronisation objects of pipelines: arrays of mbarriers, named barriers, and TMA's store groups."""

from __future__ import annotations

import abc
import dataclasses
from typing import Any

from .. import dtypes
from ..isa.rows import mbarrier as isa, sync as isa_sync, tcgen05 as isa_tcgen05, tma as isa_tma
from ..isa.rows.cluster import mapa
from ..isa.rows.copy_async import cp_async_mbarrier_arrive_noinc
from ..isa.rows.special import sreg
from ..seam import CuteError, Int, current, frozen, traced
from ..seam.ground.names import NamedABC
from ..seam.guards.messages import how_static
from ..tensor.pointer import AddressSpace, Pointer
from .group import MAX_ARRIVALS, CooperativeGroup, MbarrierLayout, PipelineOp, arrivals
from .known import check_mask, check_ranks, known_threads
from .state import check_stages

__all__ = [
    "MbarrierArray", "NamedBarrier", "SyncObject", "TmaStoreFence", "arrive", "arrive_and_wait", "arrive_unaligned",
    "sync", "wait", "wait_unaligned",
]  # fmt: skip

MBARRIER_BYTES = 8
MAX_TX_BYTES = (1 << 20) - 1  # PTX ISA, "Size and alignment of mbarrier object": range of the tx-count
TX_UNIT = 16  # every bulk copy is of whole 16 bytes (PTX ISA, "cp.async.bulk")
NAMED_BARRIERS = 16


class SyncObject(metaclass=NamedABC):
    """The interface by which a pipeline arrives and waits: `MbarrierArray`, `NamedBarrier`, `TmaStoreFence`.

    >>> issubclass(pipeline.NamedBarrier, pipeline.SyncObject)
    True
    """

    @abc.abstractmethod
    def arrive(self) -> None:
        """Signal."""

    @abc.abstractmethod
    def wait(self) -> None:
        """Wait for the signal."""

    @abc.abstractmethod
    def arrive_and_wait(self) -> None:
        """Signal, and wait for the signal."""

    @abc.abstractmethod
    def arrive_and_drop(self) -> None:
        """Signal for the last time."""

    @abc.abstractmethod
    def get_barrier(self) -> Any:
        """Return the object by which the hardware knows it."""

    @abc.abstractmethod
    def max(self) -> int:
        """Return the greatest count that it can hold."""


@frozen
class MbarrierArray(SyncObject):
    """One mbarrier for each stage; making one initialises them (call from all threads, or at least thread 0).

    barrier_storage: a pointer to `num_stages` 64-bit words of shared memory, 8-byte aligned. num_stages: a static
    count. agent: a pair of the PipelineOp by which threads arrive and the CooperativeGroup of those who do, once each,
    to complete a phase. tx_count: bytes that each phase delivers, for PipelineOp.TmaLoad; None: who issues the copies
    announces them (arch.mbarrier_expect_tx) before the arrival. name: for the simulator's
    reports. cluster_scope: peers publish with their arrivals what they wrote (and not only that they have read), so
    that arrivals release and waits acquire at cluster scope, which costs a GPU-wide fence (see
    isa.mbarrier_arrive). A fence and a CTA or cluster barrier must follow, before any other use:
    `pipeline_init_arrive` and `pipeline_init_wait`. PTX mbarrier.init, sm_90.

    index: in all methods the stage, 0 to `num_stages - 1`.

    >>> def kernel():
    ...     agent = (pipeline.PipelineOp.AsyncThread, pipeline.CooperativeGroup(pipeline.Agent.Thread, 32))
    ...     bars = pipeline.MbarrierArray(arch.alloc_smem(cute.Int64, 2), 2, agent)
    ...     pipeline.pipeline_init_arrive()
    ...     pipeline.pipeline_init_wait()
    ...     bars.arrive(0, None)
    ...     bars.wait(0, 0)
    >>> cute.simulate(kernel)[1, 32]()
    """

    barrier_storage: Pointer
    num_stages: int
    agent: tuple[PipelineOp, CooperativeGroup]
    tx_count: int | None = 0
    name: str = "mbarrier"
    cluster_scope: bool = False

    def __post_init__(self) -> None:
        check_stages("MbarrierArray", "num_stages", self.num_stages)
        p = self.barrier_storage
        if not isinstance(p, Pointer) or p.space is not AddressSpace.smem or p.dtype.width != 64:
            raise CuteError(
                f"MbarrierArray: barrier_storage {p!r} must point to {self.num_stages} 64-bit words of shared memory: "
                f"SmemAllocator().allocate_array(cute.Int64, {self.num_stages})"
            )
        if p.alignment % MBARRIER_BYTES:
            raise CuteError(
                f"MbarrierArray: barrier_storage is aligned to {p.alignment} bytes, and an mbarrier needs "
                f"{MBARRIER_BYTES}: allocate it with byte_alignment={MBARRIER_BYTES}"
            )
        check_agent(self.agent, self.tx_count)
        self.mbarrier_init()

    @property
    def op_type(self) -> PipelineOp:
        """The PipelineOp of its agent."""
        return self.agent[0]

    @property
    def cg(self) -> CooperativeGroup:
        """The CooperativeGroup of its agent."""
        return self.agent[1]

    @property
    def layout(self) -> MbarrierLayout:
        """The format of the counts, which bounds `max()` and tx_count."""
        return MbarrierLayout.V0

    @property
    def _scope(self) -> str:
        """For whom arrivals at a peer's barrier release, and waits acquire."""
        return "cluster" if self.cluster_scope else "cta"

    def mbarrier_init(self) -> None:
        """Initialise the barriers, without a fence. All threads; thread 0 does it. PTX mbarrier.init, sm_80."""
        b, count = current(), arrivals(self.cg)

        def init() -> None:
            for stage in range(self.num_stages):
                if hasattr(b, "note"):
                    b.note(self._address(stage), MBARRIER_BYTES, f"{self.name}[{stage}]")
                isa.mbarrier_init(self._address(stage), count)

        tid = sreg(register="tid.x") | sreg(register="tid.y") | sreg(register="tid.z")
        b.when(b.compare("==", tid, 0), init)

    def recast_to_new_op_type(self, new_op_type: PipelineOp) -> MbarrierArray:
        """Return the same barriers, not initialised again, with another way to arrive: `new_op_type`, a PipelineOp."""
        check_agent((new_op_type, self.cg), self.tx_count)
        new = object.__new__(MbarrierArray)
        for f in dataclasses.fields(self):
            value = (new_op_type, self.cg) if f.name == "agent" else getattr(self, f.name)
            object.__setattr__(new, f.name, value)
        return new

    def _address(self, index: Any) -> Any:
        return self.barrier_storage.address + index * MBARRIER_BYTES

    def get_barrier(self, index: Int) -> Pointer:  # type: ignore[override]
        """Return a Pointer to the barrier of stage `index`, which `cute.copy` takes as `tma_bar_ptr`."""
        return self.barrier_storage + index

    def max(self) -> int:
        """Return the most arrivals that a phase may need: 2**20 - 1."""
        return MAX_ARRIVALS

    def arrive(self, index: Int, dst: Int | None = None, cta_group: Int = 1) -> None:  # type: ignore[override]
        """Arrive at stage `index` in the way of `op_type`.

        dst: the cluster rank of the CTA whose barrier it is (for TCGen05Mma a mask of such ranks). cta_group: for
        TCGen05Mma, 1 or 2 CTAs that multiply together. An error for PipelineOp.Composite, which does not say how.
        """
        if self.op_type is PipelineOp.AsyncThread:
            self.arrive_mbarrier(index, dst)
        elif self.op_type is PipelineOp.AsyncLoad:
            self.arrive_cp_async_mbarrier(index)
        elif self.op_type is PipelineOp.TmaLoad and self.tx_count is None:
            current().when(isa_sync.elect_sync(), lambda: self.arrive_mbarrier(index, dst))
        elif self.op_type is PipelineOp.TmaLoad:
            self.arrive_and_expect_tx(index, self.tx_count or 0)
        elif self.op_type is PipelineOp.ClcLoad:
            self.arrive_and_expect_tx_with_dst(index, self.tx_count or 0, dst)
        elif self.op_type is PipelineOp.TCGen05Mma:
            self.arrive_tcgen05mma(index, dst, cta_group)
        else:
            raise CuteError(
                f"MbarrierArray.arrive: op_type {self.op_type} does not say how to arrive: "
                "recast_to_new_op_type(PipelineOp.AsyncThread) (or TCGen05Mma, …) makes a view that does"
            )

    def arrive_mbarrier(self, index: Int, dst_rank: Int | None = None) -> None:
        """Arrive once at stage `index` of this CTA, or of the CTA of rank `dst_rank` in the cluster. Each calling
        thread. PTX mbarrier.arrive, sm_80; sm_90 with a rank."""
        if dst_rank is None:
            isa.mbarrier_arrive(self._address(index))
        else:
            check_ranks("arrive_mbarrier", dst_rank=dst_rank)
            isa.mbarrier_arrive(mapa(self._address(index), dst_rank), space="cluster", scope=self._scope)

    def arrive_cp_async_mbarrier(self, index: Int) -> None:
        """Arrive once at stage `index` when all cp.async that the calling thread issued before are done; this counts as
        one of the arrivals that the barrier was made for. Each calling thread. PTX cp.async.mbarrier.arrive.noinc,
        sm_80."""
        cp_async_mbarrier_arrive_noinc(self._address(index))

    def arrive_tcgen05mma(self, index: Int, mask: Int | None = None, cta_group: Int = 1) -> None:
        """Let the barrier of stage `index` receive an arrival once all multiplies of the elected lane are complete. A
        whole warp: the one whose elected lane issued them.

        mask: the cluster ranks (a bit each) of the CTAs whose barriers receive it; this CTA's by default. cta_group: 1
        or 2 CTAs that multiply together. PTX tcgen05.commit, sm_100f.
        """
        group = getattr(cta_group, "value", cta_group)
        if group not in (1, 2):
            raise CuteError(f"arrive_tcgen05mma: cta_group {cta_group!r} must be 1 or 2 CTAs")
        check_mask("arrive_tcgen05mma", mask)
        address = self._address(index)

        def commit() -> None:
            isa_tcgen05.tcgen05_commit(address, None if mask is None else dtypes.Uint16(mask), cta_group=group)

        current().when(isa_sync.elect_sync(), commit)

    def arrive_and_expect_tx(self, index: Int, tx_count: int) -> None:
        """Arrive at stage `index` and add `tx_count` bytes to what the phase waits for, in one elected lane. A whole
        warp. PTX mbarrier.arrive.expect_tx, sm_90."""
        current().when(isa_sync.elect_sync(), lambda: isa.mbarrier_arrive_expect_tx(self._address(index), tx_count))

    def arrive_and_expect_tx_with_dst(self, index: Int, tx_count: int, dst: Int | None = None) -> None:
        """Arrive at stage `index` of the CTA of rank `dst` in the cluster (its own by default), and add `tx_count`
        bytes to what the phase waits for. Each calling thread: no lane is elected, and lanes may name different CTAs.
        PTX mbarrier.arrive.expect_tx, sm_90."""
        check_ranks("arrive_and_expect_tx_with_dst", dst=dst)
        check_tx_count("arrive_and_expect_tx_with_dst", tx_count)
        if dst is None:
            isa.mbarrier_arrive_expect_tx(self._address(index), tx_count)
        else:
            isa.mbarrier_arrive_expect_tx(mapa(self._address(index), dst), tx_count, space="cluster")

    def try_wait(self, index: Int, phase: Int) -> Any:
        """Wait, for a time that the hardware limits, until the phase of parity `phase` of stage `index` has completed,
        and return whether it has. Any thread. PTX mbarrier.try_wait, sm_90."""
        return isa.mbarrier_try_wait_parity(self._address(index), phase, scope=self._scope)

    def wait(self, index: Int, phase: Int) -> None:  # type: ignore[override]
        """Wait until the phase of parity `phase` of stage `index` has completed. Any thread."""
        isa.mbarrier_wait_parity(self._address(index), phase, scope=self._scope)

    def arrive_and_wait(  # type: ignore[override]
        self, index: Int, phase: Int, dst: Int | None = None, cta_group: Int = 1
    ) -> None:
        """Arrive at stage `index` as `arrive(index, dst, cta_group)` does, and wait for its phase of parity `phase`."""
        self.arrive(index, dst, cta_group)
        self.wait(index, phase)

    def arrive_and_drop(self, index: Int) -> None:  # type: ignore[override]
        """Arrive once at stage `index` of this CTA, for the last time: later phases need one arrival less. Each calling
        thread. PTX mbarrier.arrive_drop, sm_80."""
        isa.mbarrier_arrive_drop(self._address(index))


def check_agent(agent: tuple[PipelineOp, CooperativeGroup], tx_count: int | None) -> None:
    """Refuse an MbarrierArray's way to arrive that cannot be."""
    op, group = agent if isinstance(agent, tuple) and len(agent) == 2 else (None, None)
    if not isinstance(op, PipelineOp) or not isinstance(group, CooperativeGroup):
        raise CuteError(f"MbarrierArray: agent {agent!r} must be a pair (PipelineOp, CooperativeGroup)")
    if op is PipelineOp.TmaStore:
        raise CuteError("MbarrierArray: PipelineOp.TmaStore has no barrier: TmaStoreFence tracks stores")
    if op in (PipelineOp.TmaLoad, PipelineOp.ClcLoad):
        check_tx_count("MbarrierArray", tx_count)


def check_tx_count(what: str, tx_count: int | None) -> None:
    """Refuse a static `tx_count` that is not a number of bytes that a phase can wait for."""
    if isinstance(tx_count, int) and not 0 < tx_count <= MAX_TX_BYTES:
        raise CuteError(
            f"{what}: tx_count {tx_count} bytes must be 1 to {MAX_TX_BYTES}: what all copies of one stage deliver to "
            "this CTA, multicast copies from peers and the out-of-bounds part of each box included"
        )
    if isinstance(tx_count, int) and tx_count % TX_UNIT:
        raise CuteError(
            f"{what}: tx_count {tx_count} = {tx_count // TX_UNIT} * {TX_UNIT} + {tx_count % TX_UNIT} bytes cannot be "
            f"what copies deliver: each is a multiple of {TX_UNIT} bytes"
        )


@frozen
class NamedBarrier(SyncObject):
    """One of the CTA's 16 hardware barriers, for `num_threads` of its threads; whole warps use it.

    barrier_id: 0 to 15; 0 is also `cuda.syncthreads`. num_threads: those that arrive and those that wait, a multiple of
    32, at most 1024; 0: nobody uses it. PTX barrier.cta, sm_70.

    >>> def kernel():
    ...     half = pipeline.NamedBarrier(barrier_id=1, num_threads=64)
    ...     if arch.warp_idx() < 2:
    ...         half.arrive_and_wait()
    >>> cute.simulate(kernel)[1, 128]()
    """

    barrier_id: Any
    num_threads: int

    def __post_init__(self) -> None:
        check_named_barrier("NamedBarrier", self.barrier_id, self.num_threads)

    def arrive(self) -> None:
        """Arrive without waiting. All 32 lanes together. PTX barrier.cta.arrive, sm_70."""
        isa_sync.bar_arrive(self.barrier_id, threads_of(self))

    def arrive_unaligned(self) -> None:
        """Arrive without waiting. Any thread; those of a warp need not come together. PTX barrier.cta.arrive, sm_70."""
        isa_sync.barrier_cta_arrive(self.barrier_id, threads_of(self))

    def wait(self) -> None:
        """Call `arrive_and_wait`: on a named barrier whoever waits also arrives."""
        self.arrive_and_wait()

    def wait_unaligned(self) -> None:
        """Arrive, and wait until `num_threads` threads have. Any thread; those of a warp need not come together. PTX
        barrier.cta.sync, sm_70."""
        isa_sync.barrier_cta_sync(self.barrier_id, threads_of(self))

    def arrive_and_wait(self) -> None:
        """Arrive, and wait until `num_threads` threads have; orders their memory accesses. All 32 lanes together. PTX
        barrier.cta.sync, sm_70."""
        isa_sync.bar_sync(self.barrier_id, threads_of(self))

    def arrive_and_drop(self) -> None:
        """Raise an error: the hardware counts each use of a named barrier afresh."""
        raise CuteError(
            f"NamedBarrier.arrive_and_drop: barrier {self.barrier_id} has no count to take a thread from: a named "
            "barrier counts each use afresh; make NamedBarrier(barrier_id, fewer threads) for the later uses"
        )

    def sync(self) -> None:
        """Call `arrive_and_wait`."""
        self.arrive_and_wait()

    def get_barrier(self) -> Any:
        """Return the barrier's number."""
        return self.barrier_id

    def max(self) -> int:
        """Return the number of named barriers that a CTA has: 16."""
        return NAMED_BARRIERS


def threads_of(barrier: NamedBarrier) -> int:
    """Return the threads of a barrier that is used: refuse one of none."""
    if isinstance(barrier.num_threads, int) and not barrier.num_threads:
        raise CuteError(f"NamedBarrier: barrier {barrier.barrier_id} has num_threads 0: it is for no use")
    return barrier.num_threads


def check_named_barrier(what: str, barrier_id: Int, num_threads: int) -> None:
    """Refuse a named barrier's number and thread count that cannot be, where they are static."""
    if isinstance(barrier_id, int) and not 0 <= barrier_id < NAMED_BARRIERS:
        raise CuteError(f"{what}: barrier_id {barrier_id} must be 0 to {NAMED_BARRIERS - 1}: a CTA has 16 of them")
    if isinstance(num_threads, int) and (num_threads % 32 or not 0 <= num_threads <= 1024):
        raise CuteError(
            f"{what}: num_threads {num_threads} = {num_threads // 32} * 32 + {num_threads % 32} must be a multiple "
            "of 32 of at most 1024: whole warps arrive"
        )
    threads = known_threads()
    if isinstance(num_threads, int) and threads is not None and num_threads > -(-threads // 32) * 32:
        raise CuteError(f"{what}: num_threads {num_threads} never arrive: a block has {threads} threads")


@traced
def arrive(barrier_id: Int, num_threads: int) -> None:
    """Arrive at the named barrier `barrier_id` (0 to 15) of `num_threads` threads, a multiple of 32, without waiting.
    All 32 lanes together. PTX barrier.cta.arrive, sm_70.

    >>> def kernel():
    ...     if arch.warp_idx() == 0:
    ...         pipeline.arrive(1, 64)
    ...     else:
    ...         pipeline.arrive_and_wait(1, 64)
    >>> cute.simulate(kernel)[1, 64]()
    """
    NamedBarrier(barrier_id, num_threads).arrive()


@traced
def arrive_unaligned(barrier_id: Int, num_threads: int) -> None:
    """Arrive at the named barrier `barrier_id` (0 to 15) of `num_threads` threads, a multiple of 32, without waiting.
    Any thread; those of a warp need not come together. PTX barrier.cta.arrive, sm_70.

    >>> def kernel():
    ...     if arch.lane_idx() < 16:
    ...         pipeline.arrive_unaligned(1, 32)
    ...     else:
    ...         pipeline.wait_unaligned(1, 32)
    >>> cute.simulate(kernel)[1, 32]()
    """
    NamedBarrier(barrier_id, num_threads).arrive_unaligned()


@traced
def wait(barrier_id: Int, num_threads: int) -> None:
    """Call `arrive_and_wait(barrier_id, num_threads)`: on a named barrier whoever waits also arrives.

    >>> def kernel():
    ...     if arch.warp_idx() == 0:
    ...         pipeline.arrive(1, 64)
    ...     else:
    ...         pipeline.wait(1, 64)
    >>> cute.simulate(kernel)[1, 64]()
    """
    NamedBarrier(barrier_id, num_threads).wait()


@traced
def wait_unaligned(barrier_id: Int, num_threads: int) -> None:
    """Arrive at the named barrier `barrier_id` (0 to 15) and wait until `num_threads` threads, a multiple of 32, have.
    Any thread; those of a warp need not come together. PTX barrier.cta.sync, sm_70.

    See the example of `arrive_unaligned`.
    """
    NamedBarrier(barrier_id, num_threads).wait_unaligned()


@traced
def arrive_and_wait(barrier_id: Int, num_threads: int) -> None:
    """Arrive at the named barrier `barrier_id` (0 to 15) and wait until `num_threads` threads, a multiple of 32, have.
    All 32 lanes together. PTX barrier.cta.sync, sm_70.

    >>> seen = np.zeros(1, np.int32)
    >>> def kernel(x):
    ...     if arch.warp_idx() == 0:
    ...         if arch.lane_idx() == 0:
    ...             x[0] = 7
    ...         pipeline.arrive(1, 64)
    ...     else:
    ...         pipeline.arrive_and_wait(1, 64)
    ...         if arch.lane_idx() == 0:
    ...             print(x[0])
    >>> cute.simulate(kernel)[1, 64](seen)
    7
    """
    NamedBarrier(barrier_id, num_threads).arrive_and_wait()


@traced
def sync(barrier_id: Int = 0) -> None:
    """Wait at the named barrier `barrier_id` (0 to 15) for all threads of the CTA. All 32 lanes together. PTX
    barrier.cta.sync, sm_70.

    >>> def kernel():
    ...     pipeline.sync()
    >>> cute.simulate(kernel)[1, 64]()
    """
    NamedBarrier(barrier_id, _cta_threads()).sync()


def _cta_threads() -> Any:
    """The CTA's threads, rounded up to whole warps, as PTX wants the count of a named barrier."""
    threads = sreg(register="ntid.x") * sreg(register="ntid.y") * sreg(register="ntid.z")
    return dtypes.Int32((threads + 31) & ~31)


@frozen
class TmaStoreFence(SyncObject):
    """The stores of one thread, in groups, of which at most `num_stages` may still be reading shared memory.

    num_stages: a static int; 0 waits for all. All methods are for the thread that issued the stores. PTX cp.async.bulk,
    sm_90.

    >>> out = np.zeros(4, np.float32)
    >>> def kernel(out):
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 4, alignment=16), cute.make_layout(4))
    ...     s.fill(1)
    ...     arch.fence_view_async_shared()
    ...     cute.copy(cute.make_copy_atom(nvgpu.cpasync.CopyBulkS2GOp(), cute.Float32), s, out)
    ...     fence = pipeline.TmaStoreFence()
    ...     fence.arrive()
    ...     fence.wait()
    >>> cute.simulate(kernel)[1, 1](cute.runtime.from_dlpack(out, assumed_align=16))
    >>> out
    array([1., 1., 1., 1.], dtype=float32)
    """

    num_stages: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.num_stages, int) or self.num_stages < 0:
            raise CuteError(
                f"TmaStoreFence: num_stages {self.num_stages!r} must be a static int of at least 0"
                f"{how_static(self.num_stages)}"
            )

    def arrive(self) -> None:
        """Close the group of the stores issued so far. PTX cp.async.bulk.commit_group, sm_90."""
        isa_tma.cp_async_bulk_commit_group()

    def wait(self) -> None:
        """Wait until at most `num_stages - 1` groups (0 groups for 0 stages) still read shared memory. PTX
        cp.async.bulk.wait_group.read, sm_90."""
        isa_tma.cp_async_bulk_wait_group(n=max(self.num_stages - 1, 0), read=True)

    def arrive_and_wait(self) -> None:
        """Close the group, and wait as `wait` does."""
        self.arrive()
        self.wait()

    def arrive_and_drop(self) -> None:
        """Raise an error: there is no count of arrivals."""
        raise CuteError("TmaStoreFence.arrive_and_drop: a thread's stores have no count of arrivals; use arrive()")

    def get_barrier(self) -> Any:
        """Raise an error: no barrier lies behind it."""
        raise CuteError("TmaStoreFence.get_barrier: TMA stores complete groups, not a barrier")

    def max(self) -> int:
        """Raise an error: there is no count of arrivals."""
        raise CuteError("TmaStoreFence.max: a thread's stores have no count of arrivals")

    def tail(self) -> None:
        """Wait until no store reads shared memory any more."""
        isa_tma.cp_async_bulk_wait_group(n=0, read=True)
