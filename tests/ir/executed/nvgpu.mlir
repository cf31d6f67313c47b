%r = numba_cute.nvgpu.CopyR2GOp #numba_cute.nvgpu.MemoryOrder.WEAK, #numba_cute.nvgpu.MemoryScope.CTA, #numba_cute.nvgpu.CacheEvictionPriority.EVICT_NORMAL, #numba_cute.nvgpu.StoreCacheMode.WRITE_BACK, #numba_cute.nvgpu.SharedSpace.CTA, _ : !numba_cute.nvgpu.CopyR2GOp

%r = numba_cute.nvgpu.CopyR2SOp #numba_cute.nvgpu.MemoryOrder.WEAK, #numba_cute.nvgpu.MemoryScope.CTA, #numba_cute.nvgpu.SharedSpace.CTA : !numba_cute.nvgpu.CopyR2SOp

%r = numba_cute.nvgpu.CopyS2ROp #numba_cute.nvgpu.MemoryOrder.WEAK, #numba_cute.nvgpu.MemoryScope.CTA, #numba_cute.nvgpu.SharedSpace.CTA : !numba_cute.nvgpu.CopyS2ROp

%r = numba_cute.nvgpu.MmaUniversalOp !f32 : !numba_cute.nvgpu.MmaUniversalOp<abacc_dtype = !f32>

%k = numba_cute.static : !numba_cute.nvgpu.mma_atom<!f16,!f16,!f32,[64,64,16],SM90>
%q = numba_cute.nvgpu.atom_get_value %k, "accum_c"

%k = numba_cute.static : !numba_cute.nvgpu.mma_atom<!f16,!f16,!f32,[64,64,16],SM90>
%q = numba_cute.nvgpu.atom_set_value %k, "accum_c", false

%r = numba_cute.nvgpu.make_copy_atom "CopyUniversalOp", !f16, 64, num_matrices = _, transpose = _, unpack_bits = _, cache_mode = _, prefetch = _, zfill = _, repeat = _, pack = _, unpack = _, red_op = _, abs = _, nan = _, cta_group = _, reduction_kind = _, peer = _, memory_order = _, memory_scope = _, l2_prefetch_size = _, l1c_evict_priority = _, load_cache_mode = _, store_cache_mode = _, shared_space = _, invariant = _ : !numba_cute.nvgpu.copy_atom<CopyUniversalOp,!f16, num_bits = 64>

%r = numba_cute.nvgpu.make_mma_atom !f16, !f16, !f32, (64, 64, 16), "SM90", sparse = false, sf_type = _, sf_block = _, a_src = #numba_cute.nvgpu.OperandSource.SMEM, a_major_mode = #numba_cute.nvgpu.OperandMajorMode.K, b_major_mode = #numba_cute.nvgpu.OperandMajorMode.K, cta_group = #numba_cute.nvgpu.CtaGroup.ONE, saturate = _, selector = _, bit_op = _ : !numba_cute.nvgpu.mma_atom<!f16,!f16,!f32,[64,64,16],SM90>

%k = numba_cute.static : !numba_cute.nvgpu.mma_atom<!f16,!f16,!f32,[64,64,16],SM90>
%L = numba_cute.static : !cute.layout<"(4,1):(1,0)">
%r = numba_cute.nvgpu.make_tiled_mma %k, %L

%b = numba_cute.arch.alloc_smem !i64, 1
numba_cute.arch.mbarrier_init %b, 1
numba_cute.nvgpu.mbarrier_arrive %b

%r = numba_cute.nvgpu.CopyUniversalOp : !numba_cute.nvgpu.CopyUniversalOp
