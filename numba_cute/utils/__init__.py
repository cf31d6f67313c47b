# SPDX-License-Identifier: Apache-2.0
"""What kernels are set up with: shared memory, tile schedulers, and facts about the GPU."""

from .hardware_info import HardwareInfo
from .layout_enum import LayoutEnum
from .smem_allocator import SmemAllocator
from .tile_scheduler import PersistentTileSchedulerParams, StaticPersistentTileScheduler, WorkTileInfo

__all__ = [
    "HardwareInfo",
    "LayoutEnum",
    "PersistentTileSchedulerParams",
    "SmemAllocator",
    "StaticPersistentTileScheduler",
    "WorkTileInfo",
]
