# SPDX-License-Identifier: Apache-2.0
"""Pipelines: barriers, states, and the producers and consumers that work through them."""

from . import audit, ownership  # noqa: F401 - they register their checks
from .barrier import (
    MbarrierArray,
    NamedBarrier,
    SyncObject,
    TmaStoreFence,
    arrive,
    arrive_and_wait,
    arrive_unaligned,
    sync,
    wait,
    wait_unaligned,
)
from .clc import PipelineClcFetchAsync
from .group import Agent, CooperativeGroup, MbarrierLayout, PipelineOp, PipelineUserType
from .initial_sync import agent_sync, pipeline_init_arrive, pipeline_init_wait
from .order import PipelineOrder
from .participants import ConsumerHandle, PipelineConsumer, PipelineProducer, ProducerHandle
from .pipelines import PipelineAsync, PipelineCpAsync, PipelineTmaAsync, PipelineTmaStore
from .state import PipelineState, make_pipeline_state
from .umma import PipelineAsyncUmma, PipelineTmaMultiConsumersAsync, PipelineTmaUmma, PipelineUmmaAsync

__all__ = [
    "Agent",
    "ConsumerHandle",
    "CooperativeGroup",
    "MbarrierArray",
    "MbarrierLayout",
    "NamedBarrier",
    "PipelineAsync",
    "PipelineAsyncUmma",
    "PipelineClcFetchAsync",
    "PipelineConsumer",
    "PipelineCpAsync",
    "PipelineOp",
    "PipelineOrder",
    "PipelineProducer",
    "PipelineState",
    "PipelineTmaAsync",
    "PipelineTmaMultiConsumersAsync",
    "PipelineTmaStore",
    "PipelineTmaUmma",
    "PipelineUmmaAsync",
    "PipelineUserType",
    "ProducerHandle",
    "SyncObject",
    "TmaStoreFence",
    "agent_sync",
    "arrive",
    "arrive_and_wait",
    "arrive_unaligned",
    "make_pipeline_state",
    "pipeline_init_arrive",
    "pipeline_init_wait",
    "sync",
    "wait",
    "wait_unaligned",
]
