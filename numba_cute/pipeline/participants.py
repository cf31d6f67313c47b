# SPDX-License-Identifier: Apache-2.0
"""A pipeline seen from one side: the producer's and the consumer's view, and handles of the stages they hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from ..seam import CuteError, Int, frozen, struct, traced
from ..seam.guards.kinds import AnyPipeline
from .state import PipelineState

__all__ = ["ConsumerHandle", "PipelineConsumer", "PipelineProducer", "ProducerHandle"]

H = TypeVar("H")


@frozen
class ProducerHandle:
    """A stage that a producer has acquired: `index`, `phase`, `count`, and the `barrier` that its copies signal.
    pipeline: the one that it belongs to.

    >>> def kernel():
    ...     one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    ...     pipe = pipeline.PipelineAsync.create(num_stages=2, producer_group=one, consumer_group=one)
    ...     producer, consumer = pipe.make_producer(), pipe.make_consumer()
    ...     stage = producer.acquire_and_advance()
    ...     print(stage.index, stage.phase, stage.count)
    ...     stage.commit()
    ...     consumer.wait_and_advance().release()
    >>> cute.simulate(kernel)[1, 1]()
    0 1 0
    """

    pipeline: AnyPipeline
    index: Int
    phase: Int
    count: Int

    @property
    def barrier(self) -> Any:
        """The Pointer to the full barrier of the stage."""
        return self.pipeline.producer_get_barrier(self)

    def commit(self) -> None:
        """Announce that the stage is filled (with TMA, the copies do)."""
        self.pipeline.producer_commit(self)


@frozen
class ConsumerHandle:
    """A stage that a consumer has waited for: `index`, `phase`, `count`. pipeline: the one that it belongs to.

    >>> def kernel():
    ...     one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    ...     pipe = pipeline.PipelineAsync.create(num_stages=2, producer_group=one, consumer_group=one)
    ...     producer, consumer = pipe.make_producer(), pipe.make_consumer()
    ...     producer.acquire_and_advance().commit()
    ...     stage = consumer.wait_and_advance()
    ...     print(stage.index, stage.phase, stage.count)
    ...     stage.release()
    >>> cute.simulate(kernel)[1, 1]()
    0 0 0
    """

    pipeline: AnyPipeline
    index: Int
    phase: Int
    count: Int

    def release(self) -> None:
        """Announce that the stage may be filled again."""
        self.pipeline.consumer_release(self)


State: TypeAlias = PipelineState | ProducerHandle | ConsumerHandle
"""A value that selects a stage: a state that its owner advances, or a handle of one stage."""


@struct
class PipelineProducer:
    """The producer's side of a pipeline, with its state. `pipeline.make_producer()` makes it.

    >>> def kernel():
    ...     one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    ...     pipe = pipeline.PipelineAsync.create(num_stages=2, producer_group=one, consumer_group=one)
    ...     producer, consumer = pipe.make_producer(), pipe.make_consumer()
    ...     producer.acquire_and_advance().commit()
    ...     stage = producer.acquire_and_advance()
    ...     print(stage.index)
    ...     stage.commit()
    ...     consumer.wait_and_advance().release()
    ...     consumer.wait_and_advance().release()
    >>> cute.simulate(kernel)[1, 1]()
    1
    """

    ImmutableResourceHandle = ProducerHandle

    pipeline: AnyPipeline
    state: PipelineState
    group: Any

    @property
    def __state(self) -> PipelineState:  # by its mangled name files of the CuTe DSL reach the state
        return self.state

    @traced
    def acquire(self, try_acquire_token: Int | None = None) -> Any:
        """Wait until the stage is empty, unless `try_acquire_token` is true, and return a handle of it. It does not
        advance."""
        self.pipeline.producer_acquire(self.state, try_acquire_token)
        return _handle(ProducerHandle, self)

    @traced
    def advance(self) -> None:
        """Go to the next stage."""
        self.state.advance()

    @traced
    def acquire_and_advance(self, try_acquire_token: Int | None = None) -> Any:
        """Wait until the stage is empty, unless `try_acquire_token` is true, return a handle of it, and go to the
        next."""
        handle = self.acquire(try_acquire_token)
        self.advance()
        return handle

    @traced
    def try_acquire(self) -> Any:
        """Return a token for `acquire`: whether the stage is already empty."""
        return self.pipeline.producer_try_acquire(self.state)

    @traced
    def commit(self, handle: ProducerHandle | None = None) -> None:
        """Announce that the stage of `handle`, or else the current one, is filled."""
        self.pipeline.producer_commit(self.state if handle is None else _must_be(ProducerHandle, "commit", handle))

    @traced
    def tail(self) -> None:
        """Wait until all stages have been released: the producer's last call, before the CTA may exit."""
        self.pipeline.producer_tail(self.state)

    @traced
    def clone(self) -> PipelineProducer:
        """Make a new producer at the same stage."""
        return PipelineProducer(self.pipeline, self.state.clone(), self.group)

    @traced
    def reset(self) -> None:
        """Set the state's count to 0."""
        self.state.reset_count()


@struct
class PipelineConsumer:
    """The consumer's side of a pipeline, with its state. `pipeline.make_consumer()` makes it.

    >>> def kernel():
    ...     one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    ...     pipe = pipeline.PipelineAsync.create(num_stages=2, producer_group=one, consumer_group=one)
    ...     producer, consumer = pipe.make_producer(), pipe.make_consumer()
    ...     for _ in range(3):
    ...         producer.acquire_and_advance().commit()
    ...         stage = consumer.wait_and_advance()
    ...         print(stage.index)
    ...         stage.release()
    >>> cute.simulate(kernel)[1, 1]()
    0
    1
    0
    """

    ImmutableResourceHandle = ConsumerHandle

    pipeline: AnyPipeline
    state: PipelineState
    group: Any

    @traced
    def wait(self, try_wait_token: Int | None = None) -> Any:
        """Wait until the stage is full, unless `try_wait_token` is true, and return a handle of it. It does not
        advance."""
        self.pipeline.consumer_wait(self.state, try_wait_token)
        return _handle(ConsumerHandle, self)

    @traced
    def advance(self) -> None:
        """Go to the next stage."""
        self.state.advance()

    @traced
    def wait_and_advance(self, try_wait_token: Int | None = None) -> Any:
        """Wait until the stage is full, unless `try_wait_token` is true, return a handle of it, and go to the next."""
        handle = self.wait(try_wait_token)
        self.advance()
        return handle

    @traced
    def try_wait(self) -> Any:
        """Return a token for `wait`: whether the stage is already full."""
        return self.pipeline.consumer_try_wait(self.state)

    @traced
    def release(self, handle: ConsumerHandle | None = None) -> None:
        """Announce that the stage of `handle`, or else the current one, may be filled again."""
        self.pipeline.consumer_release(self.state if handle is None else _must_be(ConsumerHandle, "release", handle))

    @traced
    def clone(self) -> PipelineConsumer:
        """Make a new consumer at the same stage."""
        return PipelineConsumer(self.pipeline, self.state.clone(), self.group)

    @traced
    def reset(self) -> None:
        """Set the state's count to 0."""
        self.state.reset_count()


def _handle(cls: Callable[..., H], participant: Any) -> H:
    """A handle of the current stage: its index is copied, so that it stays when the state advances."""
    state = participant.state
    return cls(participant.pipeline, state.index, state.phase, state.count)


def _must_be(cls: type[H], what: str, handle: Any) -> H:
    """`handle`, which must be one of this side."""
    if not isinstance(handle, cls):
        raise CuteError(
            f"{what}: handle {handle!r} is not a {cls.__name__}: give what this side's acquire or wait returned"
        )
    return handle


def check_owner(pipeline: Any, what: str, state: State) -> None:
    """Refuse a `state` that is a handle of another pipeline, or of the other side of this one. A state is let through.

    While a kernel is compiled, pipelines differ by all that is static of them; in the simulator also by where their
    barriers are. `ownership.check_handles` sees more where both are made in the function that mixes them up.
    """
    if not isinstance(state, (ProducerHandle, ConsumerHandle)):
        return
    wanted, gives = (ProducerHandle, "acquire") if what == "producer_commit" else (ConsumerHandle, "wait")
    if not isinstance(state, wanted):
        raise CuteError(f"{what}: the handle is a {type(state).__name__}, and must be what {gives} gave")
    if state.pipeline is not pipeline and _identity(state.pipeline) != _identity(pipeline):
        raise foreign(what, pipeline, state.pipeline)


def foreign(what: str, mine: Any, theirs: Any) -> CuteError:
    """Make the error of a handle of another pipeline."""
    names = [p.sync_object_full.name.removesuffix(".full") for p in (mine, theirs)]
    other = "" if names[0] != names[1] else ", another of that name"
    return CuteError(
        f"{what}: the handle is of pipeline {names[1]!r}, and this is pipeline {names[0]!r}{other}: its barrier would "
        "get arrivals that the other's then lacks; call it on the handle itself"
    )


def _identity(pipeline: Any) -> tuple[Any, ...]:
    """The facts known of a pipeline that another one may not share."""
    full, empty = pipeline.sync_object_full, pipeline.sync_object_empty
    address = full.barrier_storage.address
    sides = tuple((x.name, x.op_type, x.cg.agent, x.cluster_scope) for x in (full, empty))
    numbers = (pipeline.num_stages, full.tx_count, full.cg.size, empty.cg.size, address)
    return type(pipeline), *sides, *(n if isinstance(n, int) else None for n in numbers)
