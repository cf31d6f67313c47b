%r = numba_cute.utils.ClcDynamicPersistentTileSchedulerParams (4, 4, 1), (1, 1, 1), 1, true : !numba_cute.utils.ClcDynamicPersistentTileSchedulerParams<problem_shape_ntile_mnl = (4,4,1), cluster_shape_mnk = (1,1,1)>

%r = numba_cute.utils.GroupSearchResult 1, 2, 3, 4, 5, 6, 7 : !numba_cute.utils.GroupSearchResult<group_idx = 1, cta_tile_idx_m = 2, cta_tile_idx_n = 3, problem_shape_m = 4, problem_shape_n = 5, problem_shape_k = 6, cta_tile_count_k = 7>

%s = numba_cute.static : !numba_cute.utils.GroupSearchResult<group_idx = 1, cta_tile_idx_m = 2, cta_tile_idx_n = 3, problem_shape_m = 4, problem_shape_n = 5, problem_shape_k = 6, cta_tile_count_k = 7>
%r = numba_cute.utils.GroupedWorkTileInfo (1, 2, 3), true, %s : !numba_cute.utils.GroupedWorkTileInfo<tile_idx = (1,2,3), is_valid_tile = true, group_search_result = !numba_cute.utils.GroupSearchResult<group_idx = 1, cta_tile_idx_m = 2, cta_tile_idx_n = 3, problem_shape_m = 4, problem_shape_n = 5, problem_shape_k = 6, cta_tile_count_k = 7>>

%r = numba_cute.utils.PersistentTileSchedulerParams (4, 4, 1), (1, 1, 1), 1, true : !numba_cute.utils.PersistentTileSchedulerParams<problem_shape_ntile_mnl = (4,4,1), cluster_shape_mnk = (1,1,1)>

%r = numba_cute.utils.WorkTileInfo (1, 2, 3), true : !numba_cute.utils.WorkTileInfo<tile_idx = (1,2,3), is_valid_tile = true>

%s = numba_cute.static : !cute.layout<"1:0">
%r = numba_cute.utils.cluster_shape_to_tma_atom_A (1, 1), %s : !numba_cute.nvgpu.cpasync.CopyBulkTensorTileG2SOp

%s = numba_cute.static : !cute.layout<"1:0">
%r = numba_cute.utils.cluster_shape_to_tma_atom_B (1, 1), %s : !numba_cute.nvgpu.cpasync.CopyBulkTensorTileG2SOp

%s = numba_cute.static : !cute.layout<"1:0">
%r = numba_cute.utils.cluster_shape_to_tma_atom_SFB (1, 1), %s : !numba_cute.nvgpu.cpasync.CopyBulkTensorTileG2SOp

%r = numba_cute.utils.compute_epilogue_tile_shape (128, 128, 64), true, #numba_cute.LayoutEnum.ROW_MAJOR, !f16, _, _ : !cute.tile<"[128:1;32:1]">

%s = numba_cute.static : !numba_cute.nvgpu.tiled_mma<!numba_cute.nvgpu.mma_atom<!f16,!f16,!f32,[128,64,16],SM100>, (1,1,1):(0,0,0)>
%r = numba_cute.utils.compute_smem_layout %s, (128, 64, 64), !f16, !f16, 1, 1 : !numba_cute.tuple<(S<3,4,3> o 0 o ((128,16),1,4,1):((64,1),0,16,0),S<3,4,3> o 0 o ((128,16),1,4,1):((64,1),0,16,0),S<3,4,3> o 0 o ((64,16),1,4,1):((64,1),0,16,0))>

%r = numba_cute.utils.compute_tile_shape_or_override (128, 64, 64), !f16, false, _ : !cute.int_tuple<"(64,32)">

%s = numba_cute.static : !cute.layout<"((128,128),1,1,2):((65536,1),0,0,128)">
%r = numba_cute.utils.compute_tmem_cols_from_layout %s, !f32 : !cute.int_tuple<"256">

%r = numba_cute.utils.get_copy_atom_a_transform !f16, false, #numba_cute.nvgpu.OperandSource.SMEM, (128, 64), !i8 : !numba_cute.nvgpu.copy_atom<CopyUniversalOp,!f16, num_bits = 128>

%r = numba_cute.utils.get_divisibility 12, 8

%r = numba_cute.utils.get_gmem_layout_scale (128, 64, 1), 1, 64, #numba_cute.nvgpu.OperandMajorMode.K : !cute.layout<"((1,128),(64,1),1):((0,1),(0,1),128)">

%r = numba_cute.utils.get_permutation_mnk (128, 64, 64), 16, false : !numba_cute.tuple<(128,(8,2,2):(1,16,8),64)>

%r = numba_cute.utils.get_smem_layout_atom_ab #numba_cute.nvgpu.OperandMajorMode.K, !f16, (128, 64) : !numba_cute.constant<#numba_cute.nvgpu.tcgen05.SmemLayoutAtomKind.K_SW128>

%s = numba_cute.static : !cute.layout<"128:1">
%s_1 = numba_cute.static : !cute.layout<"32:1">
%r = numba_cute.utils.get_smem_layout_atom_epi #numba_cute.LayoutEnum.ROW_MAJOR, !f16, (%s, %s_1) : !numba_cute.constant<#numba_cute.nvgpu.tcgen05.SmemLayoutAtomKind.K_SW64>

%r = numba_cute.utils.get_smem_store_op #numba_cute.LayoutEnum.ROW_MAJOR, !f16, !f32 : !numba_cute.nvgpu.copy_atom<warp.StMatrix8x8x16bOp,!f16, num_matrices = 4>

%r = numba_cute.utils.get_tma_atom_kind false, false, false : !numba_cute.nvgpu.cpasync.CopyBulkTensorTileG2SOp

%s = numba_cute.static : !cute.layout<"128:1">
%s_1 = numba_cute.static : !cute.layout<"32:1">
%r = numba_cute.utils.get_tmem_load_op (128, 128, 64), #numba_cute.LayoutEnum.ROW_MAJOR, !f16, !f32, (%s, %s_1), true : !numba_cute.nvgpu.copy_atom<tcgen05.Ld32x32bOp,!f32, repeat = #numba_cute.nvgpu.Repetition.x32>

%r = numba_cute.utils.get_transform_a_source #numba_cute.nvgpu.OperandMajorMode.K : !numba_cute.constant<#numba_cute.nvgpu.OperandSource.TMEM>

%r = numba_cute.utils.is_fp8_dtype 128 : !numba_cute.constant<false>

%r = numba_cute.utils.make_blockscaled_trivial_tiled_mma !f4E2M1FN, !f4E2M1FN, #numba_cute.nvgpu.OperandMajorMode.K, #numba_cute.nvgpu.OperandMajorMode.K, !f8E8M0FNU, 32, #numba_cute.nvgpu.CtaGroup.TWO, (256, 128), _ : !numba_cute.nvgpu.tiled_mma<!numba_cute.nvgpu.mma_atom<!f4E2M1FN,!f4E2M1FN,!f32,[256,128,64],tcgen05.MmaMXF4Op>, (1,1,1):(0,0,0)>

%r = numba_cute.utils.make_smem_layout #numba_cute.nvgpu.OperandMajorMode.K, (128, 64), !f16, 2 : !cute.composed_layout<"S<3,4,3> o 0 o ((8,16),(64,1),(1,2)):((64,512),(1,0),(0,8192))">

%r = numba_cute.utils.make_smem_layout_a #numba_cute.LayoutEnum.ROW_MAJOR, (128, 64, 64), !f16, 2 : !cute.composed_layout<"S<3,4,3> o 0 o ((8,16),(64,1),(1,2)):((64,512),(1,0),(0,8192))">

%r = numba_cute.utils.make_smem_layout_b #numba_cute.LayoutEnum.ROW_MAJOR, (128, 64, 64), !f16, 2 : !cute.composed_layout<"S<3,4,3> o 0 o ((8,8),(64,1),(1,2)):((64,512),(1,0),(0,4096))">

%r = numba_cute.utils.make_smem_layout_epi !f16, #numba_cute.LayoutEnum.ROW_MAJOR, (64, 32), 2, _, _ : !cute.composed_layout<"S<2,4,3> o 0 o ((8,8),(32,1),(1,2)):((32,256),(1,0),(0,2048))">

%r = numba_cute.utils.make_trivial_tiled_mma !f16, !f16, #numba_cute.nvgpu.OperandMajorMode.K, #numba_cute.nvgpu.OperandMajorMode.K, !f32, (1, 1, 1), (64, 128), #numba_cute.nvgpu.OperandSource.SMEM : !numba_cute.nvgpu.tiled_mma<!numba_cute.nvgpu.mma_atom<!f16,!f16,!f32,[64,128,16],SM90>, (1,1,1):(0,0,0)>

%r = numba_cute.utils.sm90_get_smem_layout_atom #numba_cute.LayoutEnum.ROW_MAJOR, !f16, 32 : !numba_cute.constant<#numba_cute.nvgpu.warpgroup.SmemLayoutAtomKind.K_SW64>

%r = numba_cute.utils.sm90_get_smem_store_op #numba_cute.LayoutEnum.ROW_MAJOR, !f16, !f32 : !numba_cute.nvgpu.copy_atom<warp.StMatrix8x8x16bOp,!f16, num_matrices = 4>

%r = numba_cute.utils.sm90_make_trivial_tiled_mma !f16, !f16, #numba_cute.nvgpu.OperandMajorMode.K, #numba_cute.nvgpu.OperandMajorMode.K, !f32, (1, 1, 1), (64, 128), #numba_cute.nvgpu.OperandSource.SMEM : !numba_cute.nvgpu.tiled_mma<!numba_cute.nvgpu.mma_atom<!f16,!f16,!f32,[64,128,16],SM90>, (1,1,1):(0,0,0)>

%s = numba_cute.static : !cute.layout<"1:0">
%r = numba_cute.utils.blackwell_helpers.cluster_shape_to_tma_atom_A (1, 1), %s : !numba_cute.nvgpu.cpasync.CopyBulkTensorTileG2SOp

%s = numba_cute.static : !cute.layout<"1:0">
%r = numba_cute.utils.blackwell_helpers.cluster_shape_to_tma_atom_B (1, 1), %s : !numba_cute.nvgpu.cpasync.CopyBulkTensorTileG2SOp

%s = numba_cute.static : !cute.layout<"1:0">
%r = numba_cute.utils.blackwell_helpers.cluster_shape_to_tma_atom_SFB (1, 1), %s : !numba_cute.nvgpu.cpasync.CopyBulkTensorTileG2SOp

%r = numba_cute.utils.blackwell_helpers.compute_epilogue_tile_shape (128, 128, 64), true, #numba_cute.LayoutEnum.ROW_MAJOR, !f16, _, _ : !cute.tile<"[128:1;32:1]">

%r = numba_cute.utils.blackwell_helpers.get_permutation_mnk (128, 64, 64), 16, false : !numba_cute.tuple<(128,(8,2,2):(1,16,8),64)>

%r = numba_cute.utils.blackwell_helpers.get_smem_layout_atom_ab #numba_cute.nvgpu.OperandMajorMode.K, !f16, (128, 64) : !numba_cute.constant<#numba_cute.nvgpu.tcgen05.SmemLayoutAtomKind.K_SW128>

%s = numba_cute.static : !cute.layout<"128:1">
%s_1 = numba_cute.static : !cute.layout<"32:1">
%r = numba_cute.utils.blackwell_helpers.get_smem_layout_atom_epi #numba_cute.LayoutEnum.ROW_MAJOR, !f16, (%s, %s_1) : !numba_cute.constant<#numba_cute.nvgpu.tcgen05.SmemLayoutAtomKind.K_SW64>

%s = numba_cute.static : !cute.layout<"128:1">
%s_1 = numba_cute.static : !cute.layout<"32:1">
%r = numba_cute.utils.blackwell_helpers.get_tmem_load_op (128, 128, 64), #numba_cute.LayoutEnum.ROW_MAJOR, !f16, !f32, (%s, %s_1), true : !numba_cute.nvgpu.copy_atom<tcgen05.Ld32x32bOp,!f32, repeat = #numba_cute.nvgpu.Repetition.x32>

%r = numba_cute.utils.blackwell_helpers.make_blockscaled_trivial_tiled_mma !f4E2M1FN, !f4E2M1FN, #numba_cute.nvgpu.OperandMajorMode.K, #numba_cute.nvgpu.OperandMajorMode.K, !f8E8M0FNU, 32, #numba_cute.nvgpu.CtaGroup.TWO, (256, 128), _ : !numba_cute.nvgpu.tiled_mma<!numba_cute.nvgpu.mma_atom<!f4E2M1FN,!f4E2M1FN,!f32,[256,128,64],tcgen05.MmaMXF4Op>, (1,1,1):(0,0,0)>

%r = numba_cute.utils.blackwell_helpers.make_smem_layout #numba_cute.nvgpu.OperandMajorMode.K, (128, 64), !f16, 2 : !cute.composed_layout<"S<3,4,3> o 0 o ((8,16),(64,1),(1,2)):((64,512),(1,0),(0,8192))">

%s = numba_cute.static : !numba_cute.nvgpu.tiled_mma<!numba_cute.nvgpu.mma_atom<!f16,!f16,!f32,[256,128,16],SM100>, (1,1,1):(0,0,0)>
%r = numba_cute.utils.blackwell_helpers.make_smem_layout_a %s, (256, 128, 64), !f16, 4, _ : !cute.composed_layout<"S<3,4,3> o 0 o ((128,16),1,4,4):((64,1),0,16,8192)">

%r = numba_cute.utils.blackwell_helpers.make_smem_layout_atom #numba_cute.nvgpu.tcgen05.SmemLayoutAtomKind.K_SW64, !bf16 : !cute.composed_layout<"S<2,4,3> o 0 o (8,32):(32,1)">

%s = numba_cute.static : !numba_cute.nvgpu.tiled_mma<!numba_cute.nvgpu.mma_atom<!f16,!f16,!f32,[256,128,16],SM100>, (1,1,1):(0,0,0)>
%r = numba_cute.utils.blackwell_helpers.make_smem_layout_b %s, (256, 128, 64), !f16, 4, _ : !cute.composed_layout<"S<3,4,3> o 0 o ((64,16),1,4,4):((64,1),0,16,4096)">

%s = numba_cute.static : !cute.layout<"128:1">
%s_1 = numba_cute.static : !cute.layout<"32:1">
%r = numba_cute.utils.blackwell_helpers.make_smem_layout_epi !f16, #numba_cute.LayoutEnum.ROW_MAJOR, (%s, %s_1), 2 : !cute.composed_layout<"S<2,4,3> o 0 o ((8,16),(32,1),(1,2)):((32,256),(1,0),(0,4096))">

%r = numba_cute.utils.blackwell_helpers.make_trivial_tiled_mma !f16, #numba_cute.nvgpu.OperandMajorMode.K, #numba_cute.nvgpu.OperandMajorMode.K, !f32, #numba_cute.nvgpu.CtaGroup.TWO, (256, 128), _, #numba_cute.nvgpu.OperandSource.SMEM : !numba_cute.nvgpu.tiled_mma<!numba_cute.nvgpu.mma_atom<!f16,!f16,!f32,[256,128,16],SM100>, (1,1,1):(0,0,0)>

%r = numba_cute.utils.blackwell_helpers.sm120_get_smem_store_op #numba_cute.LayoutEnum.ROW_MAJOR, !f16, !f32 : !numba_cute.nvgpu.copy_atom<warp.StMatrix8x8x16bOp,!f16, num_matrices = 2>

%s = numba_cute.static : !numba_cute.utils.ClcDynamicPersistentTileSchedulerParams<problem_shape_ntile_mnl = (4,4,1), cluster_shape_mnk = (1,1,1)>
%r = numba_cute.utils.ClcDynamicPersistentTileScheduler.get_grid_shape %s : !cute.int_tuple<"(4,4,1)">

%s = numba_cute.static : !numba_cute.utils.ClcDynamicPersistentTileSchedulerParams<problem_shape_ntile_mnl = (4,4,1), cluster_shape_mnk = (1,1,1)>
%r = numba_cute.utils.ClcDynamicPersistentTileSchedulerParams.decode %s, 3 : !cute.int_tuple<"(3,0,0)">

%s = numba_cute.static : !numba_cute.utils.ClcDynamicPersistentTileSchedulerParams<problem_shape_ntile_mnl = (4,4,1), cluster_shape_mnk = (1,1,1)>
%r = numba_cute.utils.ClcDynamicPersistentTileSchedulerParams.get_grid_shape %s, 1 : !cute.int_tuple<"(4,4,1)">

%s = numba_cute.static : !numba_cute.utils.PersistentTileSchedulerParams<problem_shape_ntile_mnl = (4,4,1), cluster_shape_mnk = (1,1,1)>
%r = numba_cute.utils.DynamicPersistentTileScheduler.get_grid_shape %s, 4 : !cute.int_tuple<"(1,1,4)">

%s = numba_cute.static : !numba_cute.utils.PersistentTileSchedulerParams<problem_shape_ntile_mnl = (4,4,1), cluster_shape_mnk = (1,1,1)>
%r = numba_cute.utils.PersistentTileSchedulerParams.decode %s, 3 : !cute.int_tuple<"(3,0,0)">

%s = numba_cute.static : !numba_cute.utils.PersistentTileSchedulerParams<problem_shape_ntile_mnl = (4,4,1), cluster_shape_mnk = (1,1,1)>
%r = numba_cute.utils.PersistentTileSchedulerParams.get_grid_shape %s, 4 : !cute.int_tuple<"(1,1,4)">

%s = numba_cute.static : !numba_cute.utils.PersistentTileSchedulerParams<problem_shape_ntile_mnl = (4,4,1), cluster_shape_mnk = (1,1,1)>
%r = numba_cute.utils.StaticPersistentGroupTileScheduler.get_grid_shape %s, 4 : !cute.int_tuple<"(1,1,4)">

%s = numba_cute.static : !numba_cute.utils.PersistentTileSchedulerParams<problem_shape_ntile_mnl = (4,4,1), cluster_shape_mnk = (1,1,1)>
%r = numba_cute.utils.StaticPersistentRuntimeTileScheduler.get_grid_shape %s, 4 : !cute.int_tuple<"(1,1,4)">

%s = numba_cute.static : !numba_cute.utils.PersistentTileSchedulerParams<problem_shape_ntile_mnl = (4,4,1), cluster_shape_mnk = (1,1,1)>
%r = numba_cute.utils.StaticPersistentTileScheduler.get_grid_shape %s, 4 : !cute.int_tuple<"(1,1,4)">
