# SPDX-License-Identifier: Apache-2.0
"""Helpers that set kernels up: shared memory, tile schedulers, usual choices (`sm80`, `sm90`, `sm100`), pictures, and
facts about the GPU."""

from ..seam.guards import facade as _facade
from . import (
    ampere_helpers as ampere_helpers,
    blackwell_helpers as blackwell_helpers,
    blockscaled_layout as blockscaled_layout,
    distributed as distributed,
    gemm as gemm,
    hopper_helpers as hopper_helpers,
    mixed_input_helpers as mixed_input_helpers,
    sm80 as sm80,
    sm90 as sm90,
    sm100 as sm100,
    sm120 as sm120,
)
from .dynamic_scheduler import *
from .fp8 import *
from .gemm.sm100 import epilogue as epilogue, epilogue_tma_store as epilogue_tma_store
from .grouped_scheduler import *
from .hardware_info import *
from .latex import *
from .layout_enum import *
from .mixed_input_helpers import (
    TransformMode as TransformMode,
    compute_smem_layout as compute_smem_layout,
    get_copy_atom_a_transform as get_copy_atom_a_transform,
    get_gmem_layout_scale as get_gmem_layout_scale,
    get_smem_layout_scale as get_smem_layout_scale,
    get_tma_atom_kind as get_tma_atom_kind,
    get_transform_a_source as get_transform_a_source,
    is_valid_scale_granularity as is_valid_scale_granularity,
    scale_partition as scale_partition,
    scale_tma_partition as scale_tma_partition,
    transform_partition as transform_partition,
)
from .sm90 import (
    compute_tile_shape_or_override as compute_tile_shape_or_override,
    get_smem_store_op as get_smem_store_op,
    make_smem_layout_a as make_smem_layout_a,
    make_smem_layout_b as make_smem_layout_b,
    make_smem_layout_epi as make_smem_layout_epi,
    make_trivial_tiled_mma as make_trivial_tiled_mma,
    sm90_get_smem_layout_atom as sm90_get_smem_layout_atom,
    sm90_get_smem_store_op as sm90_get_smem_store_op,
    sm90_make_trivial_tiled_mma as sm90_make_trivial_tiled_mma,
)
from .sm100 import (
    cluster_shape_to_tma_atom_A as cluster_shape_to_tma_atom_A,
    cluster_shape_to_tma_atom_B as cluster_shape_to_tma_atom_B,
    cluster_shape_to_tma_atom_SFB as cluster_shape_to_tma_atom_SFB,
    compute_epilogue_tile_shape as compute_epilogue_tile_shape,
    get_smem_layout_atom_ab as get_smem_layout_atom_ab,
    get_smem_layout_atom_epi as get_smem_layout_atom_epi,
    get_tmem_load_op as get_tmem_load_op,
    make_blockscaled_trivial_tiled_mma as make_blockscaled_trivial_tiled_mma,
    make_smem_layout as make_smem_layout,
)
from .sm120 import get_permutation_mnk as get_permutation_mnk
from .smem_allocator import *
from .smem_capacity import *
from .tensormap_manager import *
from .tile_scheduler import *
from .tmem_allocator import *
from .whole_tiles import *

_facade.publish(
    globals(), ampere_helpers, blackwell_helpers, blockscaled_layout, distributed, gemm, hopper_helpers,
    mixed_input_helpers, sm80, sm90, sm100, sm120,
)  # fmt: skip
