# SPDX-License-Identifier: Apache-2.0
"""Helpers that set kernels up: shared memory, tile schedulers, usual choices (`sm80`, `sm90`), pictures, and facts
about the GPU."""

from . import sm80, sm90
from .block_copy import block_copy
from .dynamic_scheduler import (
    ClcDynamicPersistentTileScheduler,
    ClcDynamicPersistentTileSchedulerParams,
    DynamicPersistentTileScheduler,
)
from .fp8 import create_cute_tensor_for_fp8, get_divisibility, is_fp8_dtype
from .grouped_scheduler import (
    GroupedGemmGroupSearchState,
    GroupedGemmTileSchedulerHelper,
    GroupSearchResult,
    create_initial_search_state,
    total_clusters,
)
from .hardware_info import HardwareInfo, get_kernel_smem_size, get_smem_capacity_in_bytes
from .latex import PALETTES, print_latex, print_latex_tv
from .layout_enum import LayoutEnum
from .sm90 import (
    compute_tile_shape_or_override,
    get_smem_store_op,
    make_smem_layout_a,
    make_smem_layout_b,
    make_smem_layout_epi,
    make_trivial_tiled_mma,
    sm90_get_smem_layout_atom,
    sm90_get_smem_store_op,
    sm90_make_trivial_tiled_mma,
)
from .smem_allocator import SmemAllocator
from .tensormap_manager import TensorMapManager, TensorMapUpdateMode
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
    "PALETTES",
    "PersistentTileSchedulerParams",
    "SmemAllocator",
    "StaticPersistentRuntimeTileScheduler",
    "StaticPersistentTileScheduler",
    "TensorMapManager",
    "TensorMapUpdateMode",
    "WorkTileInfo",
    "block_copy",
    "compute_tile_shape_or_override",
    "create_cute_tensor_for_fp8",
    "create_initial_search_state",
    "get_divisibility",
    "get_kernel_smem_size",
    "get_smem_capacity_in_bytes",
    "get_smem_store_op",
    "is_fp8_dtype",
    "make_smem_layout_a",
    "make_smem_layout_b",
    "make_smem_layout_epi",
    "make_trivial_tiled_mma",
    "print_latex",
    "print_latex_tv",
    "sm80",
    "sm90",
    "sm90_get_smem_layout_atom",
    "sm90_get_smem_store_op",
    "sm90_make_trivial_tiled_mma",
    "total_clusters",
]
