# SPDX-License-Identifier: Apache-2.0
"""The enumerations of pipelines, their values those of the CuTe DSL, and where states and clusters may be given."""

import inspect

import pytest

from numba_cute import pipeline
from numba_cute.pipeline import Agent, PipelineOp, PipelineUserType


def test_the_values_are_the_references():
    assert [(a.name, a.value) for a in Agent][:3] == [("Thread", 1), ("ThreadBlock", 2), ("ThreadBlockCluster", 3)]
    assert [(o.name, o.value) for o in PipelineOp] == [
        ("AsyncThread", 1), ("TCGen05Mma", 2), ("TmaLoad", 3), ("ClcLoad", 4), ("TmaStore", 5), ("Composite", 6),
        ("AsyncLoad", 7),
    ]  # fmt: skip
    assert [u.name for u in PipelineUserType] == ["Producer", "Consumer", "ProducerConsumer"]
    assert PipelineOp(3) is PipelineOp.TmaLoad and Agent(1) is Agent.Thread


KINDS = [k for k in vars(pipeline).values() if isinstance(k, type) and "create" in vars(k)]


@pytest.mark.parametrize("kind", [k for k in KINDS if k is not pipeline.PipelineTmaStore], ids=lambda k: k.__name__)
def test_every_create_may_leave_its_barriers_to_the_library(kind):
    assert inspect.signature(kind.create).parameters["barrier_storage"].default is None


def test_a_thread_on_both_sides_begins_as_a_producer():
    state = pipeline.make_pipeline_state(PipelineUserType.ProducerConsumer, 2)
    assert (state.index, state.phase) == (0, 1)


def test_orders_take_a_state_and_pipelines_of_two_consumers_a_cluster():
    for name in ("wait", "arrive", "get_barrier_for_current_stage_idx"):
        assert "state" in inspect.signature(getattr(pipeline.PipelineOrder, name)).parameters
    two = pipeline.PipelineTmaMultiConsumersAsync
    assert "cta_layout_vmnk" in inspect.signature(two.create).parameters
    assert "is_leader_cta" in two.__annotations__
