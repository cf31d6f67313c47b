# SPDX-License-Identifier: Apache-2.0
"""Pipelines as a value and two states: who produces and who consumes is told by operations.

Names and parameters are those that NVIDIA documents of `cute.experimental`; what each does is that of the pipelines of
numba_cute.pipeline, whose errors they have: a CuteError for a pipeline or state of another kind."""

from __future__ import annotations

from typing import Any

from ..arch.mbarrier import mbarrier_expect_tx as expect_tx
from ..arch.warp import elect_one
from ..layout import Layout
from ..pipeline import (
    Agent,
    ConsumerHandle,
    CooperativeGroup,
    PipelineAsync,
    PipelineAsyncUmma,
    PipelineCpAsync,
    PipelineState,
    PipelineTmaAsync,
    PipelineTmaUmma,
    PipelineUmmaAsync,
    PipelineUserType,
    ProducerHandle,
    make_pipeline_state,
)
from ..pipeline.state import check_stages
from ..seam import CuteError, Int, current, quotient, remainder, traced
from ..tensor.pointer import Pointer
from .operations import MULTICASTS, PAIRS, TMA_LOADS, UMMAS, WGMMAS, OperationTypeEnum, one_of
from .shared import barrier_words
from .tma import StageBarrier

__all__ = [
    "PipelineState", "consumer_release", "consumer_release_elect_one_sync", "consumer_tail", "consumer_try_wait",
    "consumer_wait", "create_pipeline", "create_pipeline_state_at", "create_pipeline_with_mask", "elect_sync",
    "get_arrival_count", "get_mbarrier", "get_pipeline_consume_phase", "get_pipeline_consume_stage",
    "get_pipeline_produce_phase",
    "get_pipeline_produce_stage", "mbarrier_expect_tx", "pipeline_advance_iterator", "pipeline_tail",
    "producer_acquire", "producer_commit", "producer_try_acquire",
]  # fmt: skip

_T = OperationTypeEnum
_THREADS = (_T.SIMT, _T.SM100_COPY_T2R, _T.SM100_COPY_R2T)
PRODUCERS = (*TMA_LOADS, *UMMAS, _T.SM80_CP_ASYNC, *_THREADS)
CONSUMERS = (*UMMAS, *WGMMAS, *_THREADS)


@traced
def elect_sync() -> Any:
    """Elect one lane of the warp, as `cute.arch.elect_one` does. All 32 lanes, converged. PTX elect.sync, sm_90.

    >>> from numba_cute import experimental as ext
    >>> def kernel():
    ...     if ext.elect_sync():
    ...         print(arch.thread_idx()[0])
    >>> cute.simulate(kernel)[1, 64]()
    0
    32
    """
    return elect_one()


@traced
def mbarrier_expect_tx(mbar: Pointer, bytes: Int) -> None:
    """Add `bytes` to what the current phase of `mbar`, a Pointer to an mbarrier, waits for. One thread. For copies that
    do not announce their own: tma_load does, on a barrier that `get_mbarrier` gave. PTX mbarrier.expect_tx, sm_90.

    >>> from numba_cute import experimental as ext
    >>> x = cute.runtime.from_dlpack(np.arange(32, dtype=np.int32), assumed_align=16)
    >>> @ext.kernel
    ... def kernel(x):
    ...     s = ext.allocate(cute.Int32, cute.AddressSpace.smem, 32, alignment=128)
    ...     bar = arch.alloc_smem(cute.Int64, 1)
    ...     if ext.elect_sync():
    ...         arch.mbarrier_init(bar, 1)
    ...         arch.mbarrier_init_fence()
    ...         ext.mbarrier_expect_tx(bar, 128)
    ...         arch.mbarrier_arrive(bar)
    ...     arch.sync_warp()
    ...     ext.tma_load(x, s, bar)
    ...     arch.mbarrier_wait(bar, 0)
    ...     if arch.lane_idx() == 0:
    ...         print(s[31])
    >>> cute.simulate(kernel)[1, 32](x)
    31
    """
    expect_tx(mbar, bytes)


def threads(count: Any) -> CooperativeGroup:
    return CooperativeGroup(Agent.Thread, count)


@traced
def create_pipeline(
    num_stages: int, producer: OperationTypeEnum, consumer: OperationTypeEnum, producer_arv_count: int = 1,
    consumer_arv_count: int = 1, *, cluster_layout_vmnk: Layout | None = None, mcast_mode_mn: tuple[int, int] = (1, 1),
    name: str = "pipeline",
) -> tuple[Any, PipelineState, PipelineState]:  # fmt: skip
    """Make a circular buffer's barriers; gives (the pipeline, the producer's state, the consumer's state). All threads.

    num_stages: 1 or more. producer, consumer: what fills a stage, and what empties it: TMA, tcgen05.mma, cp.async or
    threads; tcgen05.mma, wgmma or threads. producer_arv_count, consumer_arv_count: the threads on each side, of both
    blocks of a pair; not looked at for TMA and tcgen05.mma, which arrive by themselves. cluster_layout_vmnk: the
    cluster, where blocks multiply together or TMA multicasts. mcast_mode_mn: whether A, and B, are multicast, for
    TMA that does. name: for the simulator's reports.

    The pipeline is one of numba_cute.pipeline: PipelineTmaAsync, PipelineTmaUmma, PipelineUmmaAsync, PipelineAsyncUmma,
    PipelineCpAsync or PipelineAsync. Of TMA it is not told how many bytes a stage takes: `tma_load` says it. Raises
    CuteError for operations between which there is no pipeline. PTX mbarrier, sm_90; with tcgen05, sm_100f.

    >>> from numba_cute import experimental as ext
    >>> simt = ext.OperationTypeEnum.SIMT
    >>> def kernel():
    ...     pipe, producer, consumer = ext.create_pipeline(2, simt, simt, 32, 32)
    ...     if arch.thread_idx()[0] == 0:
    ...         print(type(pipe).__name__, producer.phase, consumer.phase)
    >>> cute.simulate(kernel)[1, 64]()
    PipelineAsync 1 0
    """
    what = "create_pipeline"
    one_of(producer, PRODUCERS, what, "producer")
    one_of(consumer, CONSUMERS, what, "consumer")
    cluster = cluster_layout_vmnk
    if producer not in MULTICASTS and producer not in PAIRS and consumer not in PAIRS:
        cluster = None
    check_stages(what, "num_stages", num_stages)
    words = barrier_words(2 * num_stages, f"{name}'s barriers")
    given: dict[str, Any] = {"num_stages": num_stages, "name": name, "barrier_storage": words}
    pipe = _pipeline(what, producer, consumer, producer_arv_count, consumer_arv_count, cluster, mcast_mode_mn, given)
    states = (make_pipeline_state(kind, num_stages) for kind in (PipelineUserType.Producer, PipelineUserType.Consumer))
    return (pipe, *states)


def _pipeline(
    what: str, producer: OperationTypeEnum, consumer: OperationTypeEnum, producers: Any, consumers: Any, cluster: Any,
    modes: tuple[int, int], given: dict[str, Any],
) -> Any:  # fmt: skip
    one = threads(1)
    if producer in TMA_LOADS:
        given |= {"producer_group": one, "tx_count": None, "cta_layout_vmnk": cluster, "mcast_mode_mn": modes}
        if consumer in UMMAS:
            return PipelineTmaUmma.create(**given, consumer_group=threads(32), enable_multicast_signaling=True)
        return PipelineTmaAsync.create(**given, consumer_group=threads(consumers), enable_multicast_signaling=True)
    if producer in UMMAS and consumer not in UMMAS:
        return PipelineUmmaAsync.create(
            **given, producer_group=one, consumer_group=threads(consumers), cta_layout_vmnk=cluster
        )
    if producer in UMMAS:
        raise CuteError(f"{what}: between producer {producer.name} and consumer {consumer.name} there is no pipeline")
    if consumer in UMMAS:
        if producer is _T.SM80_CP_ASYNC:
            raise CuteError(
                f"{what}: between producer SM80_CP_ASYNC and consumer {consumer.name} there is no pipeline: wait for "
                "the copies, fence (arch.fence_proxy), and produce as SIMT"
            )
        return PipelineAsyncUmma.create(
            **given, producer_group=threads(producers), consumer_group=one, cta_layout_vmnk=cluster
        )
    cls = PipelineCpAsync if producer is _T.SM80_CP_ASYNC else PipelineAsync
    return cls.create(**given, producer_group=threads(producers), consumer_group=threads(consumers))


@traced
def create_pipeline_with_mask(
    num_stages: int, producer: OperationTypeEnum, consumer: OperationTypeEnum, producer_arv_count: int = 1,
    consumer_arv_count: int = 1, *, cluster_layout_vmnk: Layout | None = None, mcast_mode_mn: tuple[int, int] = (1, 1),
    name: str = "pipeline",
) -> tuple[Any, PipelineState, PipelineState]:  # fmt: skip
    """Make a pipeline whose consumers let all blocks of the cluster know whose TMA loads reach them: the mask of these
    follows from `cluster_layout_vmnk` and `mcast_mode_mn`. num_stages, producer, consumer, producer_arv_count,
    consumer_arv_count, name: as of `create_pipeline`, whose threads it has too; producer is a multicast TMA load.
    Raises CuteError for another, or without a cluster. PTX mbarrier, sm_90.

    >>> from numba_cute import experimental as ext
    >>> tma, simt = ext.OperationTypeEnum.SM90_TMA_LOAD_MULTICAST, ext.OperationTypeEnum.SIMT
    >>> def kernel():
    ...     row = cute.make_layout((1, 1, 2, 1))
    ...     pipe, producer, consumer = ext.create_pipeline_with_mask(2, tma, simt, 1, 32, cluster_layout_vmnk=row)
    ...     if arch.thread_idx()[0] == 0 and arch.block_idx()[0] == 0:
    ...         print(type(pipe).__name__)
    >>> cute.simulate(kernel, cluster=2)[2, 32]()
    PipelineTmaAsync
    """
    what = "create_pipeline_with_mask"
    one_of(producer, MULTICASTS, what, "producer")
    if cluster_layout_vmnk is None:
        raise CuteError(
            f"{what}: cluster_layout_vmnk None: give the cluster whose blocks share the loads, (V, M, N, K)"
        )
    return create_pipeline(
        num_stages, producer, consumer, producer_arv_count, consumer_arv_count,
        cluster_layout_vmnk=cluster_layout_vmnk, mcast_mode_mn=mcast_mode_mn, name=name,
    )  # fmt: skip


@traced
def create_pipeline_state_at(pipeline: Any, user_type: PipelineUserType, count: Int) -> PipelineState:
    """Make the state of a side of `pipeline` that has gone through `count` stages, 0 or more: its index is count modulo
    the stages. user_type: PipelineUserType.Producer or Consumer. Any thread. No instruction but arithmetic.

    >>> from numba_cute import experimental as ext
    >>> simt = ext.OperationTypeEnum.SIMT
    >>> def kernel():
    ...     pipe, _, _ = ext.create_pipeline(3, simt, simt, 1, 1)
    ...     state = ext.create_pipeline_state_at(pipe, pipeline.PipelineUserType.Producer, 4)
    ...     print(state.index, state.phase, state.count)
    >>> cute.simulate(kernel)[1, 1]()
    1 0 4
    """
    state = make_pipeline_state(user_type, pipeline.num_stages)
    stages = pipeline.num_stages
    return PipelineState(stages, count, remainder(count, stages), (quotient(count, stages) & 1) ^ state.phase)


@traced
def pipeline_advance_iterator(pipeline: Any, state: PipelineState) -> PipelineState:
    """Give the state after `state`, a side's place in `pipeline`; that itself stays: `state =
    pipeline_advance_iterator(pipeline, state)`. Any thread. No instruction but arithmetic.

    >>> from numba_cute import experimental as ext
    >>> simt = ext.OperationTypeEnum.SIMT
    >>> def kernel():
    ...     pipe, producer, _ = ext.create_pipeline(2, simt, simt, 1, 1)
    ...     following = ext.pipeline_advance_iterator(pipe, producer)
    ...     print(producer.index, following.index)
    >>> cute.simulate(kernel)[1, 1]()
    0 1
    """
    following = state.clone()
    following.advance()
    return following


@traced
def producer_acquire(pipeline: Any, state: PipelineState, token: Any = None) -> None:
    """Wait until the stage of the producer's `state` in `pipeline` is empty, unless `token`, of an earlier try, is
    true. The producing threads: a whole warp for TMA and tcgen05.mma. What TMA fills is announced by the loads. PTX
    mbarrier.try_wait.parity, and of TMA mbarrier.arrive on the stage's full barrier, sm_90.

    See the example of `pipeline_tail`.
    """
    pipeline.producer_acquire(state, token)


@traced
def producer_try_acquire(pipeline: Any, state: PipelineState) -> Any:
    """Give a token for `producer_acquire`: whether the stage of `state` in `pipeline` is empty already, a bool. Any
    thread. PTX mbarrier.try_wait.parity, once, sm_90.

    >>> from numba_cute import experimental as ext
    >>> simt = ext.OperationTypeEnum.SIMT
    >>> def kernel():
    ...     ring = ext.allocate(cute.Int32, cute.AddressSpace.smem, (32, 2))
    ...     pipe, producer, consumer = ext.create_pipeline(2, simt, simt, 32, 32)
    ...     lane = arch.lane_idx()
    ...     if arch.warp_idx() == 0:
    ...         ext.producer_acquire(pipe, producer, ext.producer_try_acquire(pipe, producer))
    ...         ring[lane, producer.index] = 10 * lane
    ...         ext.producer_commit(pipe, producer)
    ...         ext.pipeline_tail(pipe, ext.pipeline_advance_iterator(pipe, producer))
    ...     else:
    ...         ext.consumer_wait(pipe, consumer)
    ...         if lane == 0:
    ...             print(ring[31, consumer.index])
    ...         ext.consumer_release(pipe, consumer)
    >>> cute.simulate(kernel)[1, 64]()
    310
    """
    return pipeline.producer_try_acquire(state)


@traced
def producer_commit(pipeline: Any, state: PipelineState) -> None:
    """Announce that the stage of the producer's `state` in `pipeline` is filled, or will be by what was issued. The
    producing threads: a whole warp for TMA and tcgen05.mma. PTX mbarrier.arrive, sm_90 (TMA's barrier has its bytes
    already), cp.async.mbarrier.arrive, sm_80, or tcgen05.commit, sm_100f.

    See the example of `pipeline_tail`.
    """
    pipeline.producer_commit(state)


@traced
def consumer_wait(pipeline: Any, state: PipelineState, token: Any = None) -> None:
    """Wait until the stage of the consumer's `state` in `pipeline` is full, unless `token`, of an earlier try, is true.
    Any consuming thread. PTX mbarrier.try_wait.parity, sm_90.

    See the example of `pipeline_tail`.
    """
    pipeline.consumer_wait(state, token)


@traced
def consumer_try_wait(pipeline: Any, state: PipelineState) -> Any:
    """Give a token for `consumer_wait`: whether the stage of `state` in `pipeline` is full already, a bool. Any thread.
    PTX mbarrier.try_wait.parity, once, sm_90.

    >>> from numba_cute import experimental as ext
    >>> simt = ext.OperationTypeEnum.SIMT
    >>> def kernel():
    ...     ring = ext.allocate(cute.Int32, cute.AddressSpace.smem, (32, 2))
    ...     pipe, producer, consumer = ext.create_pipeline(2, simt, simt, 32, 32)
    ...     lane = arch.lane_idx()
    ...     if arch.warp_idx() == 0:
    ...         ext.producer_acquire(pipe, producer)
    ...         ring[lane, producer.index] = 10 * lane
    ...         ext.producer_commit(pipe, producer)
    ...         ext.pipeline_tail(pipe, ext.pipeline_advance_iterator(pipe, producer))
    ...     else:
    ...         ext.consumer_wait(pipe, consumer, ext.consumer_try_wait(pipe, consumer))
    ...         if lane == 0:
    ...             print(ring[31, consumer.index])
    ...         ext.consumer_release(pipe, consumer)
    >>> cute.simulate(kernel)[1, 64]()
    310
    """
    return pipeline.consumer_try_wait(state)


@traced
def consumer_release(pipeline: Any, state: PipelineState) -> None:
    """Announce that the stage of the consumer's `state` in `pipeline` may be filled again. The consuming threads: whole
    warps for what TMA fills and for tcgen05.mma. PTX mbarrier.arrive, sm_90, or tcgen05.commit, sm_100f.

    See the example of `pipeline_tail`.
    """
    pipeline.consumer_release(state)


@traced
def consumer_release_elect_one_sync(pipeline: Any, state: PipelineState) -> None:
    """Announce, by one lane of the warp for all of it, that the stage of the consumer's `state` in `pipeline` may be
    filled again: for a pipeline whose consumer_arv_count counts warps. A whole converged warp. PTX elect.sync,
    sm_90.

    >>> from numba_cute import experimental as ext
    >>> simt = ext.OperationTypeEnum.SIMT
    >>> def kernel():
    ...     pipe, producer, consumer = ext.create_pipeline(2, simt, simt, 32, 1)
    ...     if arch.warp_idx() == 0:
    ...         ext.producer_acquire(pipe, producer)
    ...         ext.producer_commit(pipe, producer)
    ...         ext.pipeline_tail(pipe, ext.pipeline_advance_iterator(pipe, producer))
    ...     else:
    ...         ext.consumer_wait(pipe, consumer)
    ...         ext.consumer_release_elect_one_sync(pipe, consumer)
    >>> cute.simulate(kernel)[1, 64]()
    """
    current().when(elect_one(), lambda: pipeline.consumer_release(state))


@traced
def pipeline_tail(pipeline: Any, state: PipelineState) -> None:
    """Wait until all stages of `pipeline` that were filled have been released: the producing threads' last call, with
    their `state`, before the block may exit: the release of a stage, by a peer or by tcgen05.commit, is an access to
    its shared memory. PTX mbarrier.try_wait.parity, sm_90.

    >>> from numba_cute import experimental as ext
    >>> simt = ext.OperationTypeEnum.SIMT
    >>> def kernel():
    ...     ring = ext.allocate(cute.Int32, cute.AddressSpace.smem, (32, 2))
    ...     pipe, producer, consumer = ext.create_pipeline(2, simt, simt, 32, 32)
    ...     lane = arch.lane_idx()
    ...     if arch.warp_idx() == 0:
    ...         ext.producer_acquire(pipe, producer)
    ...         ring[lane, producer.index] = 10 * lane
    ...         ext.producer_commit(pipe, producer)
    ...         ext.pipeline_tail(pipe, ext.pipeline_advance_iterator(pipe, producer))
    ...     else:
    ...         ext.consumer_wait(pipe, consumer)
    ...         if lane == 0:
    ...             print(ring[31, consumer.index])
    ...         ext.consumer_release(pipe, consumer)
    >>> cute.simulate(kernel)[1, 64]()
    310
    """
    pipeline.producer_tail(state)


@traced
def consumer_tail(pipeline: Any, state: PipelineState) -> None:
    """Wait until the consumers have released all stages of `pipeline`: `pipeline_tail` by its other name, for the
    producing threads, with their `state`. PTX mbarrier.try_wait.parity, sm_90.

    >>> from numba_cute import experimental as ext
    >>> simt = ext.OperationTypeEnum.SIMT
    >>> def kernel():
    ...     ring = ext.allocate(cute.Int32, cute.AddressSpace.smem, (32, 2))
    ...     pipe, producer, consumer = ext.create_pipeline(2, simt, simt, 32, 32)
    ...     lane = arch.lane_idx()
    ...     if arch.warp_idx() == 0:
    ...         ext.producer_acquire(pipe, producer)
    ...         ring[lane, producer.index] = 10 * lane
    ...         ext.producer_commit(pipe, producer)
    ...         ext.consumer_tail(pipe, ext.pipeline_advance_iterator(pipe, producer))
    ...     else:
    ...         ext.consumer_wait(pipe, consumer)
    ...         if lane == 0:
    ...             print(ring[31, consumer.index])
    ...         ext.consumer_release(pipe, consumer)
    >>> cute.simulate(kernel)[1, 64]()
    310
    """
    pipeline.producer_tail(state)


@traced
def get_pipeline_produce_stage(pipeline: Any, state: PipelineState) -> tuple[ProducerHandle, Any]:
    """Give (the stage's token, its index) of the stage of the producer's `state` in `pipeline`: the token for
    `get_mbarrier`, the index, from 0, for the last mode of what `allocate` made. Any thread. No instruction.

    >>> from numba_cute import experimental as ext
    >>> simt = ext.OperationTypeEnum.SIMT
    >>> def kernel():
    ...     pipe, producer, _ = ext.create_pipeline(2, simt, simt, 1, 1)
    ...     stage, at = ext.get_pipeline_produce_stage(pipe, producer)
    ...     print(at, ext.get_mbarrier(stage).dtype)
    >>> cute.simulate(kernel)[1, 1]()
    0 Int64
    """
    return ProducerHandle(pipeline, state.index, state.phase, state.count), state.index


@traced
def get_pipeline_consume_stage(pipeline: Any, state: PipelineState) -> tuple[ConsumerHandle, Any]:
    """Give (the stage's token, its index) of the stage of the consumer's `state` in `pipeline`: the index, from 0, for
    the last mode of what `allocate` made. Any thread. No instruction.

    >>> from numba_cute import experimental as ext
    >>> simt = ext.OperationTypeEnum.SIMT
    >>> def kernel():
    ...     pipe, _, consumer = ext.create_pipeline(2, simt, simt, 1, 1)
    ...     stage, at = ext.get_pipeline_consume_stage(pipe, consumer)
    ...     print(at)
    >>> cute.simulate(kernel)[1, 1]()
    0
    """
    return ConsumerHandle(pipeline, state.index, state.phase, state.count), state.index


@traced
def get_pipeline_produce_phase(pipeline: Any, state: PipelineState) -> Any:
    """Give the parity, 0 or 1, that the producer's `state` in `pipeline` waits for: 1 at first. Any thread. No
    instruction.

    >>> from numba_cute import experimental as ext
    >>> simt = ext.OperationTypeEnum.SIMT
    >>> def kernel():
    ...     pipe, producer, _ = ext.create_pipeline(2, simt, simt, 1, 1)
    ...     print(ext.get_pipeline_produce_phase(pipe, producer))
    >>> cute.simulate(kernel)[1, 1]()
    1
    """
    return state.phase


@traced
def get_pipeline_consume_phase(pipeline: Any, state: PipelineState) -> Any:
    """Give the parity, 0 or 1, that the consumer's `state` in `pipeline` waits for: 0 at first. Any thread. No
    instruction.

    >>> from numba_cute import experimental as ext
    >>> simt = ext.OperationTypeEnum.SIMT
    >>> def kernel():
    ...     pipe, _, consumer = ext.create_pipeline(2, simt, simt, 1, 1)
    ...     print(ext.get_pipeline_consume_phase(pipe, consumer))
    >>> cute.simulate(kernel)[1, 1]()
    0
    """
    return state.phase


@traced
def get_arrival_count(pipeline: Any) -> tuple[Any, Any]:
    """Give how many arrivals fill, and empty, a stage of `pipeline`: (the full barriers', the empty ones'). Any thread.
    No instruction.

    >>> from numba_cute import experimental as ext
    >>> simt = ext.OperationTypeEnum.SIMT
    >>> def kernel():
    ...     pipe, _, _ = ext.create_pipeline(2, simt, simt, 32, 64)
    ...     if arch.thread_idx()[0] == 0:
    ...         print(ext.get_arrival_count(pipe))
    >>> cute.simulate(kernel)[1, 96]()
    (32, 64)
    """
    return pipeline.sync_object_full.cg.size, pipeline.sync_object_empty.cg.size


@traced
def get_mbarrier(stage: ProducerHandle | ConsumerHandle) -> StageBarrier:
    """Give the full barrier of a stage, on which loads complete: `tma_load` announces there what it brings.

    stage: a token, as producer_acquire_and_get_stage or get_pipeline_produce_stage gives it. It is a pointer to 8 bytes
    of shared memory. Any thread. Raises CuteError for anything else. No instruction.

    >>> from numba_cute import experimental as ext
    >>> simt = ext.OperationTypeEnum.SIMT
    >>> def kernel():
    ...     pipe, producer, _ = ext.create_pipeline(2, simt, simt, 1, 1)
    ...     stage, _ = ext.get_pipeline_produce_stage(pipe, producer)
    ...     print(type(ext.get_mbarrier(stage)).__name__)
    >>> cute.simulate(kernel)[1, 1]()
    StageBarrier
    """
    if not isinstance(stage, (ProducerHandle, ConsumerHandle)):
        raise CuteError(f"get_mbarrier: stage {stage!r} is not a stage of a pipeline; give a stage's token")
    p = stage.pipeline.sync_object_full.get_barrier(stage.index)
    return StageBarrier(p.dtype, p.space, p.address, p.offset, p.alignment)
