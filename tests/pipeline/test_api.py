# SPDX-License-Identifier: Apache-2.0
"""The pipeline module has every class and method of the CuTe DSL's, and barriers have the names that reports show."""

import inspect

import pytest

import numba_cute as cute
from numba_cute import pipeline, utils
from numba_cute.pipeline import Agent, CooperativeGroup
from numba_cute.sim import DeadlockError

METHODS = {
    "MbarrierArray": "recast_to_new_op_type mbarrier_init arrive arrive_mbarrier arrive_cp_async_mbarrier "
    "arrive_tcgen05mma arrive_and_expect_tx arrive_and_expect_tx_with_dst try_wait wait arrive_and_wait "
    "arrive_and_drop get_barrier max",
    "NamedBarrier": "arrive arrive_unaligned wait wait_unaligned arrive_and_wait arrive_and_drop sync get_barrier max",
    "PipelineOrder": "create get_barrier_for_current_stage_idx arrive wait",
    "TmaStoreFence": "arrive wait arrive_and_wait arrive_and_drop get_barrier max tail",
    "PipelineState": "clone index count stages phase reset_count advance reverse",
    "PipelineAsync": "create producer_acquire producer_try_acquire producer_commit consumer_wait consumer_try_wait "
    "consumer_release producer_get_barrier producer_tail make_producer make_consumer make_participants",
    "PipelineCpAsync": "create producer_acquire producer_commit consumer_release",
    "PipelineTmaAsync": "init_empty_barrier_arrive_signal create producer_acquire producer_commit consumer_release",
    "PipelineTmaUmma": "create consumer_release producer_acquire producer_commit",
    "PipelineAsyncUmma": "create consumer_release",
    "PipelineUmmaAsync": "create producer_commit",
    "PipelineClcFetchAsync": "create producer_acquire consumer_wait consumer_release producer_get_barrier "
    "producer_tail",
    "PipelineTmaMultiConsumersAsync": "create producer_acquire producer_commit consumer_release",
    "PipelineTmaStore": "create producer_acquire producer_commit consumer_wait consumer_release producer_tail",
    "PipelineProducer": "clone reset acquire advance acquire_and_advance try_acquire commit tail",
    "PipelineConsumer": "clone reset wait advance wait_and_advance try_wait release",
}
NAMES = "Agent CooperativeGroup MbarrierLayout PipelineOp SyncObject PipelineUserType make_pipeline_state "
NAMES += "pipeline_init_arrive "
NAMES += "pipeline_init_wait agent_sync arrive arrive_unaligned wait wait_unaligned arrive_and_wait sync"


@pytest.mark.parametrize("cls", METHODS)
def test_a_class_has_its_methods(cls):
    found = getattr(pipeline, cls)
    fields = getattr(found, "__cute_fields__", ())
    assert not [m for m in METHODS[cls].split() if m not in fields and not hasattr(found, m)]


@pytest.mark.parametrize("name", NAMES.split())
def test_a_name_is_public(name):
    assert name in pipeline.__all__


@pytest.mark.parametrize("cls", ["MbarrierArray", "NamedBarrier", "TmaStoreFence"])
def test_what_pipelines_wait_on_is_a_sync_object(cls):
    assert issubclass(getattr(pipeline, cls), pipeline.SyncObject)


@pytest.mark.parametrize("cls", [c for c in METHODS if c.startswith("Pipeline") and "create" in METHODS[c]])
def test_create_takes_keywords_that_the_dsl_has(cls):
    named = set(inspect.signature(getattr(pipeline, cls).create).parameters)
    if cls == "PipelineTmaStore":
        assert named == {"num_stages", "producer_group"}
    else:
        assert {"barrier_storage", "defer_sync", "producer_group"} <= named


def test_a_report_shows_the_name_that_create_was_given():
    def kernel():
        smem = utils.SmemAllocator()
        one = CooperativeGroup(Agent.Thread)
        pipe = pipeline.PipelineAsync.create(
            num_stages=2, producer_group=one, consumer_group=one, name="scores",
            barrier_storage=smem.allocate_array(cute.Int64, 4),
        )  # fmt: skip
        pipe.make_consumer().wait()

    with pytest.raises(DeadlockError, match=r"scores\.full\[0\]"):
        cute.simulate(kernel)[1, 32]()
