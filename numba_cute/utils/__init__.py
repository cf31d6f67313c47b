# SPDX-License-Identifier: Apache-2.0
"""What kernels are set up with: shared memory, tile schedulers, and facts about the GPU."""

from .dynamic_scheduler import (
    ClcDynamicPersistentTileScheduler,
    ClcDynamicPersistentTileSchedulerParams,
    DynamicPersistentTileScheduler,
)
from .grouped_scheduler import (
    GroupedGemmGroupSearchState,
    GroupedGemmTileSchedulerHelper,
    GroupSearchResult,
    create_initial_search_state,
    total_clusters,
)
from .hardware_info import HardwareInfo
from .layout_enum import LayoutEnum
from .smem_allocator import SmemAllocator
from .tile_scheduler import (
    PersistentTileSchedulerParams,
    StaticPersistentRuntimeTileScheduler,
    StaticPersistentTileScheduler,
    WorkTileInfo,
)

__all__ = [
    "ClcDynamicPersistentTileScheduler",
    "ClcDynamicPersistentTileSchedulerParams",
    "DynamicPersistentTileScheduler",
    "GroupSearchResult",
    "GroupedGemmGroupSearchState",
    "GroupedGemmTileSchedulerHelper",
    "HardwareInfo",
    "LayoutEnum",
    "PersistentTileSchedulerParams",
    "SmemAllocator",
    "StaticPersistentRuntimeTileScheduler",
    "StaticPersistentTileScheduler",
    "WorkTileInfo",
    "create_initial_search_state",
    "total_clusters",
]
