# SPDX-License-Identifier: Apache-2.0
"""Tests of many cases that go the same way, of which the default suite runs each second or third; the others are slow.

On a GPU, and with `-m slow`, all cases run.
"""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

THINNED = {
    "algebra/test_differential.py": {"test_kernel": 3, "test_compiled_code_run_on_this_machine": 3},
    "nvgpu/test_bulk.py": {
        "test_cp_async_takes_hints": 2, "test_bulk_reductions_combine_with_global_memory": 2,
    },
    "nvgpu/test_s2t_copies.py": {"test_rows_land_in_lanes": 2},
    "nvgpu/test_sparse.py": {
        "test_one_wgmma_is_a_float64_product": 4, "test_floats_of_8_6_and_4_bits_are_multiplied": 4,
        "test_b_may_be_wider_than_its_swizzle": 2,
    },
    "nvgpu/test_tma_interleave.py": {"test_slices_go_there_and_back": 2},
    "nvgpu/test_tma_packed.py": {
        "test_four_bits_go_there_and_back_packed": 4, "test_scale_factors_are_loaded_in_blocks_of_512_bytes": 4,
        "test_elements_are_unpacked_into_a_byte_each": 2,
    },
    "nvgpu/test_tma_rows.py": {"test_rows_go_from_where_they_are_to_where_they_are_told": 2},
    "nvgpu/test_tmem_copies.py": {
        "test_a_matrix_goes_to_and_from_tensor_memory": 9, "test_a_load_also_gives_the_extreme_of_each_thread": 2,
    },
    "nvgpu/test_umma.py": {
        "test_each_type_multiplies_what_numpy_does": 3, "test_accumulators_of_each_data_path": 3,
        "test_a_lies_in_tensor_memory": 3, "test_elements_below_a_byte_lie_packed_in_chunks": 3,
        "test_either_operand_may_be_mn_major": 3,
    },
    "nvgpu/test_umma_loads.py": {"test_operands_are_loaded_as_the_multiplies_take_them": 2},
    "nvgpu/test_umma_scaled.py": {
        "test_each_type_multiplies_what_numpy_does": 3, "test_a_lies_in_tensor_memory": 3,
    },
    "nvgpu/test_umma_sparse.py": {"test_each_type_multiplies_what_numpy_does": 2},
    "nvgpu/test_warp_mma.py": {"test_one_instruction_is_a_float64_product": 4},
    "nvgpu/test_wgmma.py": {"test_one_instruction_is_a_float64_product": 4},
    "core/test_conversions.py": {"test_each_type_to_each": 4},
    "core/test_math.py": {"test_functions_of_a_vector": 2, "test_functions_of_two_vectors": 2},
    "experimental/test_gemms.py": {"test_block_scaled": 2},
    "experimental/test_math.py": {"test_an_epilogue_stores_what_its_operation_makes_of_results": 2},
    "experimental/test_tma.py": {"test_tiles_go_to_shared_memory_and_back": 2},
    "debugging/test_ptx.py": {"test_cases_assemble_with_all_that_is_watched": 2},
    "ir/dialect/test_partitions.py": {"test_products_hold_what_this_library_multiplies": 4},
    "ir/test_every_operation.py": {"test_an_operation_refuses_more_than_its_function_takes": 2},
    "ir/test_from_kernel.py": {"test_control_flow_is_the_same": 2},
    "ir/test_gemms.py": {"test_a_gemm_in_the_ir_is_right": 2},
    "isa/test_assembles.py": {"test_each_pair_of_parameters_assembles_for_the_least_target": 3},
    "isa/test_tensor_multiplies.py": {
        "test_products_dense_and_sparse": 2, "test_products_with_factors": 2, "test_weight_stationary_products": 2,
    },
    "isa/test_tensor_copy_kernels.py": {"test_registers_come_back_as_they_were_stored": 2},
    "sim/test_retired.py": {"test_what_is_found_of_blocks_is_the_same": 2},
    "sim/test_unified.py": {
        "test_variables_have_the_type_that_numba_gives_them": 6,
        "test_kernels_compute_in_the_types_that_the_compiler_gives_variables": 2,
    },
    "tensor/test_vector.py": {"test_arithmetic_of_two_vectors": 4, "test_reduction_of_all_elements": 3},
    "utils/test_epilogue.py": {"test_results_leave": 4},
    "utils/test_mixed_input.py": {"test_results_leave_for_their_tile": 2},
    "utils/test_sm100.py": {"test_operand_layouts_are_read_by_the_matrix_unit_and_hold_each_element_once": 3},
    "utils/test_sm120.py": {"test_factors_go_with_the_elements_that_they_scale": 2},
    "utils/test_tmem_allocator.py": {"test_all_warps_learn_the_address_of_what_one_allocated": 2},
}  # fmt: skip
"""By file and test, of how many cases one is run. None in a folder whose PTX is recorded: what a module compiles first
decides it."""


def thin(items: list[pytest.Item]) -> None:
    """Mark as slow the cases of THINNED that are left out; one in each way to run (the fixture `run`) is one case."""
    cases: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for item in items:
        file, _, name = item.nodeid.removeprefix("tests/").partition("::")
        test, _, case = name.removesuffix("]").partition("[")
        nth = THINNED.get(file, {}).get(test, 1)
        if nth == 1 or item.get_closest_marker("gpu") is not None:
            continue
        known = cases[file, test]
        case = re.sub(r"\b(assembler|simulator)\b-?", "", case)
        if known.setdefault(case, len(known)) % nth:
            item.add_marker(pytest.mark.slow)
