# SPDX-License-Identifier: Apache-2.0
"""The position of a producer or consumer in the circular buffer of stages."""

from __future__ import annotations

from typing import Any

from ..dtypes import Int32
from ..seam import CuteError, current, struct, traced
from ..seam.guards.messages import how_static
from .group import PipelineUserType

__all__ = ["PipelineState", "make_pipeline_state"]


@struct
class PipelineState:
    """A stage `index`, the parity `phase` to wait for there, and the `count` of stages gone through so far.

    stages: how many there are (static). `advance` and `reverse` change it in place.

    >>> def kernel():
    ...     state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 2)
    ...     for _ in range(3):
    ...         state.advance()
    ...     print(state.index, state.phase, state.count)
    >>> cute.simulate(kernel)[1, 1]()
    1 1 3
    """

    stages: int
    count: Int32
    index: Int32
    phase: Int32

    @property
    def _count(self) -> Any:  # by these names files of the CuTe DSL reach them
        return self.count

    @_count.setter
    def _count(self, value: Any) -> None:
        self.count = value

    @property
    def _index(self) -> Any:
        return self.index

    @_index.setter
    def _index(self, value: Any) -> None:
        self.index = value

    @property
    def _phase(self) -> Any:
        return self.phase

    @_phase.setter
    def _phase(self, value: Any) -> None:
        self.phase = value

    @traced
    def advance(self) -> None:
        """Go to the next stage; the phase flips when the index wraps."""
        b = current()
        self.count = self.count + 1
        if self.stages == 1:
            self.phase = self.phase ^ 1
            return
        if self.stages == 2:  # of one bit: two instructions, for five
            self.phase = self.phase ^ self.index
            self.index = self.index ^ 1
            return
        following = self.index + 1
        wraps = b.compare("==", following, self.stages)
        self.index = b.select(wraps, 0, following)
        self.phase = b.select(wraps, self.phase ^ 1, self.phase)

    @traced
    def reverse(self) -> None:
        """Go back to the stage before: undo `advance`."""
        b = current()
        self.count = self.count - 1
        wraps = b.compare("==", self.index, 0)
        self.phase = b.select(wraps, self.phase ^ 1, self.phase)
        self.index = b.select(wraps, self.stages - 1, self.index - 1)

    @traced
    def reset_count(self) -> None:
        """Set `count` to 0; the place in the buffer stays."""
        self.count = 0

    @traced
    def clone(self) -> PipelineState:
        """Make a new state that stands at the same place."""
        return PipelineState(self.stages, self.count, self.index, self.phase)


@traced
def make_pipeline_state(type: PipelineUserType, stages: int) -> PipelineState:
    """Make the state to begin with: stage 0, and phase 1 for a producer (whose first waits pass) or 0 for a consumer.
    type: a PipelineUserType; ProducerConsumer, whose thread consumes too, begins as a producer, and needs another state
    to consume. stages: a static count, 0 of a state that nothing uses.

    >>> state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 2)
    >>> state.index, state.phase
    (0, 1)
    """
    if not isinstance(stages, int) or stages != 0:
        check_stages("make_pipeline_state", "stages", stages)
    if not isinstance(type, PipelineUserType):
        raise CuteError(f"make_pipeline_state: type {type!r} is not a member of pipeline.PipelineUserType")
    return PipelineState(stages, 0, 0, 0 if type is PipelineUserType.Consumer else 1)


def check_stages(what: str, argument: str, stages: int) -> None:
    """Refuse `stages` unless it is a static count of at least one."""
    if not isinstance(stages, int) or stages < 1:
        raise CuteError(f"{what}: {argument} {stages!r} must be a static int of at least 1{how_static(stages)}")
