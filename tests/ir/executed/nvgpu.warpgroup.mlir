%r = numba_cute.nvgpu.warpgroup.MmaB1Op (64, 8, 256), #numba_cute.nvgpu.OperandSource.SMEM, #numba_cute.nvgpu.OperandMajorMode.K, #numba_cute.nvgpu.OperandMajorMode.K : !numba_cute.nvgpu.warpgroup.MmaB1Op<instruction_shape = (64,8,256), a_src = #numba_cute.nvgpu.OperandSource.SMEM>

%r = numba_cute.nvgpu.warpgroup.MmaF16BF16Op !f16, !f32, (64, 256, 16), #numba_cute.nvgpu.OperandSource.SMEM, #numba_cute.nvgpu.OperandMajorMode.K, #numba_cute.nvgpu.OperandMajorMode.K : !numba_cute.nvgpu.warpgroup.MmaF16BF16Op<ab_dtype = !f16, acc_dtype = !f32, instruction_shape = (64,256,16), a_src = #numba_cute.nvgpu.OperandSource.SMEM, a_major_mode = #numba_cute.nvgpu.OperandMajorMode.K, b_major_mode = #numba_cute.nvgpu.OperandMajorMode.K>

%r = numba_cute.nvgpu.warpgroup.MmaF16BF16SparseOp !f16, !f32, (64, 8, 32), #numba_cute.nvgpu.OperandSource.SMEM, #numba_cute.nvgpu.OperandMajorMode.K, #numba_cute.nvgpu.OperandMajorMode.K, 0 : !numba_cute.nvgpu.warpgroup.MmaF16BF16SparseOp<ab_dtype = !f16, acc_dtype = !f32, instruction_shape = (64,8,32), a_src = #numba_cute.nvgpu.OperandSource.SMEM>

%r = numba_cute.nvgpu.warpgroup.MmaF8Op !f8E4M3FN, !f8E4M3FN, !f32, (64, 8, 32), #numba_cute.nvgpu.OperandSource.SMEM, #numba_cute.nvgpu.OperandMajorMode.K, #numba_cute.nvgpu.OperandMajorMode.K : !numba_cute.nvgpu.warpgroup.MmaF8Op<a_dtype = !f8E4M3FN, b_dtype = !f8E4M3FN, acc_dtype = !f32, instruction_shape = (64,8,32), a_src = #numba_cute.nvgpu.OperandSource.SMEM>

%r = numba_cute.nvgpu.warpgroup.MmaF8SparseOp !f8E4M3FN, !f8E4M3FN, !f32, (64, 8, 64), #numba_cute.nvgpu.OperandSource.SMEM, #numba_cute.nvgpu.OperandMajorMode.K, #numba_cute.nvgpu.OperandMajorMode.K, 0 : !numba_cute.nvgpu.warpgroup.MmaF8SparseOp<a_dtype = !f8E4M3FN, b_dtype = !f8E4M3FN, acc_dtype = !f32, instruction_shape = (64,8,64), a_src = #numba_cute.nvgpu.OperandSource.SMEM>

%r = numba_cute.nvgpu.warpgroup.MmaI8Op !i8, !i8, !i32, (64, 8, 32), #numba_cute.nvgpu.OperandSource.SMEM, #numba_cute.nvgpu.OperandMajorMode.K, #numba_cute.nvgpu.OperandMajorMode.K, false : !numba_cute.nvgpu.warpgroup.MmaI8Op<a_dtype = !i8, b_dtype = !i8, acc_dtype = !i32, instruction_shape = (64,8,32), a_src = #numba_cute.nvgpu.OperandSource.SMEM, saturate = false>

%r = numba_cute.nvgpu.warpgroup.MmaI8SparseOp !i8, !i8, !i32, (64, 8, 64), #numba_cute.nvgpu.OperandSource.SMEM, #numba_cute.nvgpu.OperandMajorMode.K, #numba_cute.nvgpu.OperandMajorMode.K, false, 0 : !numba_cute.nvgpu.warpgroup.MmaI8SparseOp<a_dtype = !i8, b_dtype = !i8, acc_dtype = !i32, instruction_shape = (64,8,64), a_src = #numba_cute.nvgpu.OperandSource.SMEM, saturate = false>

%r = numba_cute.nvgpu.warpgroup.MmaTF32Op (64, 8, 8), #numba_cute.nvgpu.OperandSource.SMEM, #numba_cute.nvgpu.OperandMajorMode.K, #numba_cute.nvgpu.OperandMajorMode.K : !numba_cute.nvgpu.warpgroup.MmaTF32Op<instruction_shape = (64,8,8), a_src = #numba_cute.nvgpu.OperandSource.SMEM>

%r = numba_cute.nvgpu.warpgroup.MmaTF32SparseOp (64, 8, 16), #numba_cute.nvgpu.OperandSource.SMEM, #numba_cute.nvgpu.OperandMajorMode.K, #numba_cute.nvgpu.OperandMajorMode.K, 0 : !numba_cute.nvgpu.warpgroup.MmaTF32SparseOp<instruction_shape = (64,8,16), a_src = #numba_cute.nvgpu.OperandSource.SMEM>

%r = numba_cute.nvgpu.warpgroup.make_smem_layout_atom #numba_cute.nvgpu.warpgroup.SmemLayoutAtomKind.K_SW128, !f16 : !cute.composed_layout<"S<3,4,3> o 0 o (8,64):(64,1)">
