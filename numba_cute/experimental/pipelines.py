# SPDX-License-Identifier: Apache-2.0
"""Pipelines that keep the states of both sides: each thread works through the side that is its own.

Names and parameters are those that NVIDIA documents of `cute.experimental`."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..arch.index import warp_idx
from ..arch.sync import fence_proxy
from ..arch.warp import make_warp_uniform
from ..layout import Layout
from ..pipeline import NamedBarrier, PipelineState, TmaStoreFence
from ..seam import CuteError, Int, current, struct, traced
from ..seam.guards.kinds import AnyPipeline
from ..seam.guards.messages import how_static
from .core import CONSUMERS, PRODUCERS, create_pipeline, get_pipeline_consume_stage, get_pipeline_produce_stage
from .operations import MULTICASTS, TMA_LOADS, UMMAS, OperationTypeEnum, one_of

__all__ = [
    "AsyncToUMMAPipeline", "GenericPipeline", "GenericPipelineBase", "TMAStorePipeline", "TMAToAsyncPipeline",
    "TMAToUMMAPipeline", "UMMAtoAsyncPipeline",
]  # fmt: skip

_T = OperationTypeEnum
_OF_THREADS = (_T.SIMT, _T.SM100_COPY_T2R, _T.SM90_MMA_SS, _T.SM90_MMA_RS)


@struct
class GenericPipelineBase:
    """A pipeline with the states of its two sides; what the others have in common. They are made by their `create`.

    raw_pipeline: the pipeline of numba_cute.pipeline, with its barriers. producer_state, consumer_state: where each
    side stands; a thread uses one of them, and may set it to what `pipeline_advance_iterator` gave. The threads that
    call each method are those that its side has: a whole warp for TMA and tcgen05.mma. Each is the function of that
    name, with its errors and its PTX: mbarrier.try_wait.parity to wait, mbarrier.arrive (sm_90) or
    tcgen05.commit (sm_100f) to announce.

    >>> from numba_cute import experimental as ext
    >>> issubclass(ext.TMAToUMMAPipeline, ext.GenericPipelineBase)
    True
    >>> issubclass(ext.TMAStorePipeline, ext.GenericPipelineBase)
    False
    """

    raw_pipeline: AnyPipeline
    producer_state: PipelineState
    consumer_state: PipelineState

    @property
    @traced
    def num_stages(self) -> int:
        """The number of stages."""
        return self.raw_pipeline.num_stages  # type: ignore[no-any-return]

    @traced
    def producer_try_acquire(self) -> Any:
        """Give a token for `producer_acquire`: whether the current stage is empty already."""
        return self.raw_pipeline.producer_try_acquire(self.producer_state)

    @traced
    def producer_acquire(self, token: Any = None) -> None:
        """Wait until the current stage is empty, unless `token`, of an earlier try, is true."""
        self.raw_pipeline.producer_acquire(self.producer_state, token)

    @traced
    def producer_acquire_and_get_stage(self, token: Any = None) -> Any:
        """Wait until the current stage is empty, unless `token`, of an earlier try, is true; gives (the stage's token
        for `get_mbarrier` and `producer_commit`, its index). It does not advance."""
        self.producer_acquire(token)
        return get_pipeline_produce_stage(self.raw_pipeline, self.producer_state)

    @traced
    def producer_commit(self, stage: Any = None) -> None:
        """Announce that `stage` (a token; None: the current one) is filled, or will be by what was issued."""
        self.raw_pipeline.producer_commit(self.producer_state if stage is None else stage)

    @traced
    def producer_advance(self) -> None:
        """Go to the producer's next stage."""
        self.producer_state.advance()

    @traced
    def producer_commit_and_advance(self) -> None:
        """Announce that the current stage is filled, or will be by what was issued, and go to the next."""
        self.producer_commit()
        self.producer_advance()

    @traced
    def producer_tail(self) -> None:
        """Wait until the consumers have released all stages: the producer's last call, before the block may exit."""
        self.raw_pipeline.producer_tail(self.producer_state)

    @traced
    def consumer_try_wait(self) -> Any:
        """Give a token for `consumer_wait`: whether the current stage is full already."""
        return self.raw_pipeline.consumer_try_wait(self.consumer_state)

    @traced
    def consumer_wait(self, token: Any = None) -> None:
        """Wait until the current stage is full, unless `token`, of an earlier try, is true."""
        self.raw_pipeline.consumer_wait(self.consumer_state, token)

    @traced
    def consumer_wait_and_get_stage(self, token: Any = None) -> Any:
        """Wait until the current stage is full, unless `token`, of an earlier try, is true; gives (the stage's token
        for `consumer_release`, its index). It does not advance."""
        self.consumer_wait(token)
        return get_pipeline_consume_stage(self.raw_pipeline, self.consumer_state)

    @traced
    def consumer_release(self, stage: Any = None) -> None:
        """Announce that `stage` (a token; None: the current one) may be filled again."""
        self.raw_pipeline.consumer_release(self.consumer_state if stage is None else stage)

    @traced
    def consumer_advance(self) -> None:
        """Go to the consumer's next stage."""
        self.consumer_state.advance()

    @traced
    def consumer_release_and_advance(self) -> None:
        """Announce that the current stage may be filled again, and go to the next."""
        self.consumer_release()
        self.consumer_advance()

    @traced
    def consumer_tail(self) -> None:
        """Wait until the consumers have released all stages: `producer_tail` by its other name."""
        self.producer_tail()


@struct
class GenericPipeline(GenericPipelineBase):
    """A pipeline between any two operations that have one. Make it with `create`.

    >>> from numba_cute import experimental as ext
    >>> simt = ext.OperationTypeEnum.SIMT
    >>> def kernel():
    ...     pipe = ext.GenericPipeline.create(
    ...         num_stages=2, producer=simt, consumer=simt, producer_arv_count=32, consumer_arv_count=32)
    ...     if arch.warp_idx() == 0:
    ...         pipe.producer_acquire()
    ...         pipe.producer_commit_and_advance()
    ...         pipe.producer_tail()
    ...     else:
    ...         pipe.consumer_wait()
    ...         pipe.consumer_release_and_advance()
    >>> cute.simulate(kernel)[1, 64]()
    """

    @staticmethod
    @traced
    def create(
        *, num_stages: int, producer: OperationTypeEnum, consumer: OperationTypeEnum, producer_arv_count: int = 1,
        consumer_arv_count: int = 1, cluster_layout_vmnk: Layout | None = None,
        mcast_mode_mn: tuple[int, int] = (1, 1), name: str = "pipeline",
    ) -> GenericPipeline:  # fmt: skip
        """Make the pipeline's barriers, and both states. All threads. num_stages, producer, consumer,
        producer_arv_count, consumer_arv_count, cluster_layout_vmnk, mcast_mode_mn, name: as of `create_pipeline`,
        whose errors it has too. PTX mbarrier, sm_90."""
        one_of(producer, PRODUCERS, "GenericPipeline.create", "producer")
        one_of(consumer, CONSUMERS, "GenericPipeline.create", "consumer")
        return GenericPipeline(
            *create_pipeline(
                num_stages, producer, consumer, producer_arv_count, consumer_arv_count,
                cluster_layout_vmnk=cluster_layout_vmnk, mcast_mode_mn=mcast_mode_mn, name=name,
            )
        )  # fmt: skip


@struct
class TMAToUMMAPipeline(GenericPipelineBase):
    """A pipeline in which TMA fills stages and tcgen05.mma empties them (Blackwell's mainloop). Make it with `create`
    or `create_with_mask`. Of a pair the leading block alone waits and releases; both fill. PTX tcgen05.commit,
    sm_100f.

    >>> from numba_cute import experimental as ext
    >>> x = cute.runtime.from_dlpack(np.arange(32, dtype=np.int32), assumed_align=16)
    >>> @ext.kernel
    ... def kernel(x):
    ...     s = ext.allocate(cute.Int32, cute.AddressSpace.smem, 32, alignment=128)
    ...     umma = ext.OperationTypeEnum.SM100_MMA_1SM_SS
    ...     pipe = ext.TMAToUMMAPipeline.create(num_stages=1, mma_operation_type=umma)
    ...     if arch.warp_idx() == 0:
    ...         stage, _ = pipe.producer_acquire_and_get_stage()
    ...         ext.tma_load(x, s, ext.get_mbarrier(stage))
    ...         pipe.producer_commit_and_advance()
    ...         pipe.producer_tail()
    ...     else:
    ...         pipe.consumer_wait()
    ...         pipe.consumer_release_and_advance()
    >>> cute.simulate(kernel, arch="sm_100a")[1, 64](x)
    """

    @staticmethod
    @traced
    def create(
        *, num_stages: int, mma_operation_type: OperationTypeEnum,
        tma_operation_type: OperationTypeEnum = OperationTypeEnum.SM90_TMA_LOAD,
        cluster_layout_vmnk: Layout | None = None, name: str = "mainloop",
    ) -> TMAToUMMAPipeline:  # fmt: skip
        """Make the pipeline's barriers, and both states. All threads.

        num_stages: 1 or more. mma_operation_type: SM100_MMA_1SM_SS, or one for a pair, SM100_MMA_2SM_SS.
        tma_operation_type: that of the loads. cluster_layout_vmnk: the cluster of a pair. name: for the simulator's
        reports. Raises CuteError for other operations. PTX mbarrier, sm_90."""
        one_of(mma_operation_type, UMMAS, "TMAToUMMAPipeline.create", "mma_operation_type")
        one_of(tma_operation_type, TMA_LOADS, "TMAToUMMAPipeline.create", "tma_operation_type")
        return TMAToUMMAPipeline(
            *create_pipeline(
                num_stages, tma_operation_type, mma_operation_type, cluster_layout_vmnk=cluster_layout_vmnk, name=name
            )
        )

    @staticmethod
    @traced
    def create_with_mask(
        *, num_stages: int, tma_operation_type: OperationTypeEnum, mma_operation_type: OperationTypeEnum,
        cluster_layout_vmnk: Layout, mcast_mode_mn: tuple[int, int] = (1, 1), name: str = "mainloop",
    ) -> TMAToUMMAPipeline:  # fmt: skip
        """Make the pipeline for multicast loads: the multiplies let all blocks know whose loads reach this one. All
        threads. mcast_mode_mn: whether A is multicast, to the blocks of the same m, and B, to those of the same n.
        num_stages, tma_operation_type, mma_operation_type, cluster_layout_vmnk, name: as of `create`. Raises CuteError
        for loads that do not multicast. PTX mbarrier, sm_90."""
        one_of(mma_operation_type, UMMAS, "TMAToUMMAPipeline.create_with_mask", "mma_operation_type")
        one_of(tma_operation_type, MULTICASTS, "TMAToUMMAPipeline.create_with_mask", "tma_operation_type")
        return TMAToUMMAPipeline(
            *create_pipeline(
                num_stages, tma_operation_type, mma_operation_type, cluster_layout_vmnk=cluster_layout_vmnk,
                mcast_mode_mn=mcast_mode_mn, name=name,
            )
        )  # fmt: skip


@struct
class TMAToAsyncPipeline(GenericPipelineBase):
    """A pipeline in which TMA fills stages and threads, or their wgmma, empty them (Hopper's mainloop). Make it with
    `create`. Consumers release with all lanes of each warp. PTX mbarrier, sm_90.

    >>> from numba_cute import experimental as ext
    >>> x = cute.runtime.from_dlpack(np.arange(64, dtype=np.int32), assumed_align=16)
    >>> @ext.kernel
    ... def kernel(x):
    ...     s = ext.allocate(cute.Int32, cute.AddressSpace.smem, (32, 2), alignment=128)
    ...     pipe = ext.TMAToAsyncPipeline.create(num_stages=2, consumer_arv_count=32)
    ...     for i in range(2):
    ...         stage, at = pipe.producer_acquire_and_get_stage()
    ...         ext.tma_load(cute.local_tile(x, (32,), (i,)), s[None, at], ext.get_mbarrier(stage))
    ...         pipe.producer_commit_and_advance()
    ...     for _ in range(2):
    ...         _, at = pipe.consumer_wait_and_get_stage()
    ...         if arch.lane_idx() == 0:
    ...             print(s[0, at])
    ...         pipe.consumer_release_and_advance()
    >>> cute.simulate(kernel)[1, 32](x)
    0
    32
    """

    @staticmethod
    @traced
    def create(
        *, num_stages: int, consumer_arv_count: int, consumer: OperationTypeEnum = OperationTypeEnum.SIMT,
        tma_operation_type: OperationTypeEnum = OperationTypeEnum.SM90_TMA_LOAD,
        cluster_layout_vmnk: Layout | None = None, mcast_mode_mn: tuple[int, int] = (1, 1), name: str = "mainloop",
    ) -> TMAToAsyncPipeline:  # fmt: skip
        """Make the pipeline's barriers, and both states. All threads.

        num_stages: 1 or more. consumer_arv_count: the consuming threads of a block, whole warps. consumer: SIMT,
        SM90_MMA_SS or SM90_MMA_RS. tma_operation_type: that of the loads. cluster_layout_vmnk: the cluster, for loads
        that multicast. mcast_mode_mn: whether A is multicast, to the blocks of the same m, and B, to those of the same
        n. name: for the simulator's reports. Raises CuteError for other operations. PTX mbarrier, sm_90."""
        one_of(tma_operation_type, TMA_LOADS, "TMAToAsyncPipeline.create", "tma_operation_type")
        one_of(consumer, _OF_THREADS, "TMAToAsyncPipeline.create", "consumer")
        return TMAToAsyncPipeline(
            *create_pipeline(
                num_stages, tma_operation_type, consumer, 1, consumer_arv_count,
                cluster_layout_vmnk=cluster_layout_vmnk, mcast_mode_mn=mcast_mode_mn, name=name,
            )
        )  # fmt: skip


@struct
class AsyncToUMMAPipeline(GenericPipelineBase):
    """A pipeline in which threads fill stages and tcgen05.mma empties them. Make it with `create`. Producers fence what
    they wrote (arch.fence_proxy) before they commit. PTX tcgen05.commit, sm_100f.

    >>> from numba_cute import experimental as ext
    >>> kinds = ext.OperationTypeEnum
    >>> def kernel():
    ...     pipe = ext.AsyncToUMMAPipeline.create(
    ...         num_stages=1, producer_arv_count=32, mma_operation_type=kinds.SM100_MMA_1SM_SS, producer=kinds.SIMT)
    ...     if arch.warp_idx() == 0:
    ...         pipe.producer_acquire()
    ...         pipe.producer_commit_and_advance()
    ...         pipe.producer_tail()
    ...     else:
    ...         pipe.consumer_wait()
    ...         pipe.consumer_release_and_advance()
    >>> cute.simulate(kernel, arch="sm_100a")[1, 64]()
    """

    @staticmethod
    @traced
    def create(
        *, num_stages: int, producer_arv_count: int, mma_operation_type: OperationTypeEnum,
        producer: OperationTypeEnum = OperationTypeEnum.SIMT, cluster_layout_vmnk: Layout | None = None,
        name: str = "pipeline",
    ) -> AsyncToUMMAPipeline:  # fmt: skip
        """Make the pipeline's barriers, and both states. All threads.

        producer_arv_count: the producing threads, of both blocks of a pair. producer: SIMT or SM100_COPY_R2T.
        num_stages, mma_operation_type, cluster_layout_vmnk, name: as of `TMAToUMMAPipeline.create`. Raises CuteError
        for other operations. PTX mbarrier, sm_90."""
        one_of(mma_operation_type, UMMAS, "AsyncToUMMAPipeline.create", "mma_operation_type")
        one_of(producer, (_T.SIMT, _T.SM100_COPY_R2T), "AsyncToUMMAPipeline.create", "producer")
        return AsyncToUMMAPipeline(
            *create_pipeline(
                num_stages, producer, mma_operation_type, producer_arv_count, 1,
                cluster_layout_vmnk=cluster_layout_vmnk, name=name,
            )
        )  # fmt: skip


@struct
class UMMAtoAsyncPipeline(GenericPipelineBase):
    """A pipeline in which tcgen05.mma fills stages of tensor memory and threads empty them. Make it with `create`. PTX
    tcgen05.commit, sm_100f.

    >>> from numba_cute import experimental as ext
    >>> kinds = ext.OperationTypeEnum
    >>> def kernel():
    ...     pipe = ext.UMMAtoAsyncPipeline.create(
    ...         num_stages=1, consumer_arv_count=32, mma_operation_type=kinds.SM100_MMA_1SM_SS)
    ...     if arch.warp_idx() == 0:
    ...         pipe.producer_acquire()
    ...         pipe.producer_commit_and_advance()
    ...         pipe.producer_tail()
    ...     else:
    ...         pipe.consumer_wait()
    ...         pipe.consumer_release_and_advance()
    >>> cute.simulate(kernel, arch="sm_100a")[1, 64]()
    """

    @staticmethod
    @traced
    def create(
        *, num_stages: int, mma_operation_type: OperationTypeEnum, consumer_arv_count: int,
        consumer: OperationTypeEnum = OperationTypeEnum.SM100_COPY_T2R, cluster_layout_vmnk: Layout | None = None,
        name: str = "accumulators",
    ) -> UMMAtoAsyncPipeline:  # fmt: skip
        """Make the pipeline's barriers, and both states. All threads.

        consumer_arv_count: the consuming threads, of both blocks of a pair. consumer: SM100_COPY_T2R or SIMT.
        num_stages, mma_operation_type, cluster_layout_vmnk, name: as of `TMAToUMMAPipeline.create`. Raises CuteError
        for other operations. PTX mbarrier, sm_90."""
        one_of(mma_operation_type, UMMAS, "UMMAtoAsyncPipeline.create", "mma_operation_type")
        one_of(consumer, (_T.SIMT, _T.SM100_COPY_T2R), "UMMAtoAsyncPipeline.create", "consumer")
        return UMMAtoAsyncPipeline(
            *create_pipeline(
                num_stages, mma_operation_type, consumer, 1, consumer_arv_count,
                cluster_layout_vmnk=cluster_layout_vmnk, name=name,
            )
        )  # fmt: skip


@struct
class TMAStorePipeline:
    """A ring of buffers in shared memory that threads fill and one warp stores by TMA: `acquire_sync`, write buffer
    `get_index()`, `commit_sync`, `tma_store` by the storing warp, `release_advance`; at the end `tail`. All threads
    call each of them, whole warps together.

    stages: the number of buffers (static). arv_count: the threads that write, a multiple of 32 (static). barrier_id: a
    named barrier of theirs, 1 to 15. tma_warp_id: the warp that stores, one of theirs. index: the current buffer. PTX
    cp.async.bulk, sm_90.

    >>> from numba_cute import experimental as ext
    >>> @ext.kernel
    ... def kernel(out):
    ...     s = ext.allocate(cute.Int32, cute.AddressSpace.smem, (64, 2), alignment=128)
    ...     stores = ext.TMAStorePipeline(stages=2, arv_count=64, barrier_id=1, tma_warp_id=1)
    ...     for i in range(4):
    ...         stores.acquire_sync()
    ...         s[arch.thread_idx()[0], stores.get_index()] = 100 * i
    ...         stores.commit_sync()
    ...         if arch.make_warp_uniform(arch.warp_idx()) == 1:
    ...             ext.tma_store(s[None, stores.get_index()], cute.local_tile(out, (64,), (i,)))
    ...         stores.release_advance()
    ...     stores.tail()
    >>> out = np.zeros(256, np.int32)
    >>> cute.simulate(kernel)[1, 64](cute.runtime.from_dlpack(out, assumed_align=16))
    >>> out[::64]
    array([  0, 100, 200, 300], dtype=int32)
    """

    stages: int
    arv_count: int
    barrier_id: Any
    tma_warp_id: Any
    index: dtypes.Int32

    @traced
    def __init__(self, stages: int, arv_count: int, barrier_id: Int, tma_warp_id: Int) -> None:
        if not isinstance(stages, int) or stages < 1:
            raise CuteError(
                f"TMAStorePipeline: stages {stages!r} must be a static number of at least 1{how_static(stages)}"
            )
        NamedBarrier(barrier_id, arv_count)
        self.stages, self.arv_count, self.barrier_id, self.tma_warp_id = stages, arv_count, barrier_id, tma_warp_id
        self.index = 0

    @traced
    def get_index(self) -> Any:
        """Give the number of the current buffer."""
        return self.index

    @traced
    def acquire_sync(self) -> None:
        """Wait until the current buffer's last store has read it. PTX cp.async.bulk.wait_group.read, sm_90."""
        self._by_storing_warp(lambda: TmaStoreFence(self.stages).wait())
        self._meet()

    @traced
    def commit_sync(self) -> None:
        """Make what these threads wrote to the current buffer known to TMA, and wait for all of them. PTX
        fence.proxy.async, sm_90."""
        fence_proxy("async.shared", space="cta")
        self._meet()

    @traced
    def release_advance(self) -> None:
        """Close the group of the stores that were issued, and go to the next buffer. PTX cp.async.bulk.commit_group,
        sm_90."""
        self._by_storing_warp(lambda: TmaStoreFence(self.stages).arrive())
        b, following = current(), self.index + 1
        self.index = 0 if self.stages == 1 else b.select(b.compare("==", following, self.stages), 0, following)

    @traced
    def tail(self) -> None:
        """Wait until no store reads a buffer any more: before they are reused or the block exits."""
        self._by_storing_warp(lambda: TmaStoreFence(self.stages).tail())
        self._meet()

    @traced
    def _by_storing_warp(self, what: Any) -> None:
        b = current()
        b.when(b.compare("==", make_warp_uniform(warp_idx()), self.tma_warp_id), what)

    @traced
    def _meet(self) -> None:
        NamedBarrier(self.barrier_id, self.arv_count).arrive_and_wait()
