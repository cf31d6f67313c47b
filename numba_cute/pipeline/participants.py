# SPDX-License-Identifier: Apache-2.0
"""A pipeline seen from one side: the producer's and the consumer's view, and handles of the stages they hold."""

from __future__ import annotations

from typing import Any

from ..seam import static, struct, traced


@static
class ProducerHandle:
    """A stage that a producer has acquired: `index`, `phase`, `count`, and the `barrier` that its copies signal."""

    pipeline: Any
    index: Any
    phase: Any
    count: Any

    @property
    def barrier(self) -> Any:
        return self.pipeline.producer_get_barrier(self)

    def commit(self) -> None:
        """Say that the stage is filled (with TMA, the copies do)."""
        self.pipeline.producer_commit(self)


@static
class ConsumerHandle:
    """A stage that a consumer has waited for: `index`, `phase`, `count`."""

    pipeline: Any
    index: Any
    phase: Any
    count: Any

    def release(self) -> None:
        """Say that the stage may be filled again."""
        self.pipeline.consumer_release(self)


@struct
class PipelineProducer:
    """The producer's side of a pipeline, with its state. `pipeline.make_producer()` makes it."""

    pipeline: Any
    state: Any
    group: Any

    @traced
    def acquire(self, try_acquire_token=None):
        """Wait until the stage is empty, and give a handle of it. It does not advance."""
        self.pipeline.producer_acquire(self.state, try_acquire_token)
        return _handle(ProducerHandle, self)

    @traced
    def advance(self):
        """Go to the next stage."""
        self.state.advance()

    @traced
    def acquire_and_advance(self, try_acquire_token=None):
        """Wait until the stage is empty, give a handle of it, and go to the next."""
        handle = self.acquire(try_acquire_token)
        self.advance()
        return handle

    @traced
    def try_acquire(self):
        """A token for `acquire`: whether the stage is already empty."""
        return self.pipeline.producer_try_acquire(self.state)

    @traced
    def commit(self, handle=None):
        """Say that the stage of `handle`, or else the current one, is filled."""
        self.pipeline.producer_commit(self.state if handle is None else handle)

    @traced
    def tail(self):
        """Wait until all stages have been released: the producer's last call, before the CTA may exit."""
        self.pipeline.producer_tail(self.state)

    @traced
    def clone(self):
        """A new producer at the same stage."""
        return PipelineProducer(self.pipeline, self.state.clone(), self.group)

    @traced
    def reset(self):
        """Set the state's count to 0."""
        self.state.reset_count()


@struct
class PipelineConsumer:
    """The consumer's side of a pipeline, with its state. `pipeline.make_consumer()` makes it."""

    pipeline: Any
    state: Any
    group: Any

    @traced
    def wait(self, try_wait_token=None):
        """Wait until the stage is full, and give a handle of it. It does not advance."""
        self.pipeline.consumer_wait(self.state, try_wait_token)
        return _handle(ConsumerHandle, self)

    @traced
    def advance(self):
        """Go to the next stage."""
        self.state.advance()

    @traced
    def wait_and_advance(self, try_wait_token=None):
        """Wait until the stage is full, give a handle of it, and go to the next."""
        handle = self.wait(try_wait_token)
        self.advance()
        return handle

    @traced
    def try_wait(self):
        """A token for `wait`: whether the stage is already full."""
        return self.pipeline.consumer_try_wait(self.state)

    @traced
    def release(self, handle=None):
        """Say that the stage of `handle`, or else the current one, may be filled again."""
        self.pipeline.consumer_release(self.state if handle is None else handle)

    @traced
    def clone(self):
        """A new consumer at the same stage."""
        return PipelineConsumer(self.pipeline, self.state.clone(), self.group)

    @traced
    def reset(self):
        """Set the state's count to 0."""
        self.state.reset_count()


def _handle(cls, participant):
    """A handle of the current stage: its index is copied, so that it stays when the state advances."""
    state = participant.state
    return cls(participant.pipeline, state.index, state.phase, state.count)
