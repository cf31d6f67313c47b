%r = numba_cute.nvgpu.tcgen05.Cp128x128bOp #numba_cute.nvgpu.CtaGroup.ONE : !numba_cute.nvgpu.tcgen05.Cp128x128bOp<cta_group = #numba_cute.nvgpu.CtaGroup.ONE>

%r = numba_cute.nvgpu.tcgen05.Cp128x256bOp #numba_cute.nvgpu.CtaGroup.ONE : !numba_cute.nvgpu.tcgen05.Cp128x256bOp<cta_group = #numba_cute.nvgpu.CtaGroup.ONE>

%r = numba_cute.nvgpu.tcgen05.Cp2x64x128b0123Op #numba_cute.nvgpu.CtaGroup.ONE : !numba_cute.nvgpu.tcgen05.Cp2x64x128b0123Op<cta_group = #numba_cute.nvgpu.CtaGroup.ONE>

%r = numba_cute.nvgpu.tcgen05.Cp2x64x128b0213Op #numba_cute.nvgpu.CtaGroup.ONE : !numba_cute.nvgpu.tcgen05.Cp2x64x128b0213Op<cta_group = #numba_cute.nvgpu.CtaGroup.ONE>

%r = numba_cute.nvgpu.tcgen05.Cp4x256bOp #numba_cute.nvgpu.CtaGroup.ONE : !numba_cute.nvgpu.tcgen05.Cp4x256bOp<cta_group = #numba_cute.nvgpu.CtaGroup.ONE>

%r = numba_cute.nvgpu.tcgen05.Cp4x32x128bOp #numba_cute.nvgpu.CtaGroup.ONE : !numba_cute.nvgpu.tcgen05.Cp4x32x128bOp<cta_group = #numba_cute.nvgpu.CtaGroup.ONE>

%r = numba_cute.nvgpu.tcgen05.Ld16x128bOp #numba_cute.nvgpu.Repetition.x1, #numba_cute.nvgpu.Pack.NONE : !numba_cute.nvgpu.tcgen05.Ld16x128bOp

%r = numba_cute.nvgpu.tcgen05.Ld16x256bOp #numba_cute.nvgpu.Repetition.x1, #numba_cute.nvgpu.Pack.NONE : !numba_cute.nvgpu.tcgen05.Ld16x256bOp

%r = numba_cute.nvgpu.tcgen05.Ld16x32bx2Op #numba_cute.nvgpu.Repetition.x1, #numba_cute.nvgpu.Pack.NONE : !numba_cute.nvgpu.tcgen05.Ld16x32bx2Op

%r = numba_cute.nvgpu.tcgen05.Ld16x64bOp #numba_cute.nvgpu.Repetition.x1, #numba_cute.nvgpu.Pack.NONE : !numba_cute.nvgpu.tcgen05.Ld16x64bOp

%r = numba_cute.nvgpu.tcgen05.LdRed16x32bx2Op #numba_cute.nvgpu.Repetition.x2, #numba_cute.nvgpu.Pack.NONE, #numba_cute.nvgpu.TmemLoadRedOp.MAX, false, false : !numba_cute.nvgpu.tcgen05.LdRed16x32bx2Op

%r = numba_cute.nvgpu.tcgen05.LdRed32x32bOp #numba_cute.nvgpu.Repetition.x2, #numba_cute.nvgpu.Pack.NONE, #numba_cute.nvgpu.TmemLoadRedOp.MAX, false, false : !numba_cute.nvgpu.tcgen05.LdRed32x32bOp

%r = numba_cute.nvgpu.tcgen05.MmaF16BF16Op !f16, !f32, (256, 128), #numba_cute.nvgpu.CtaGroup.TWO, #numba_cute.nvgpu.OperandSource.SMEM, #numba_cute.nvgpu.OperandMajorMode.K, #numba_cute.nvgpu.OperandMajorMode.K : !numba_cute.nvgpu.tcgen05.MmaF16BF16Op<ab_dtype = !f16, acc_dtype = !f32, instruction_shape = (256,128,16), cta_group = #numba_cute.nvgpu.CtaGroup.TWO, a_src = #numba_cute.nvgpu.OperandSource.SMEM, a_major_mode = #numba_cute.nvgpu.OperandMajorMode.K, b_major_mode = #numba_cute.nvgpu.OperandMajorMode.K>

%r = numba_cute.nvgpu.tcgen05.MmaF16BF16SparseOp !f16, !f32, (64, 8, 32), #numba_cute.nvgpu.CtaGroup.ONE, #numba_cute.nvgpu.OperandSource.SMEM, #numba_cute.nvgpu.OperandMajorMode.K, #numba_cute.nvgpu.OperandMajorMode.K : !numba_cute.nvgpu.tcgen05.MmaF16BF16SparseOp<ab_dtype = !f16, acc_dtype = !f32, instruction_shape = (64,8,32), cta_group = #numba_cute.nvgpu.CtaGroup.ONE, a_src = #numba_cute.nvgpu.OperandSource.SMEM, a_major_mode = #numba_cute.nvgpu.OperandMajorMode.K, b_major_mode = #numba_cute.nvgpu.OperandMajorMode.K>

%r = numba_cute.nvgpu.tcgen05.MmaF8F6F4Op !f8E4M3FN, !f8E4M3FN, !f32, (64, 8, 32), #numba_cute.nvgpu.CtaGroup.ONE, #numba_cute.nvgpu.OperandSource.SMEM, #numba_cute.nvgpu.OperandMajorMode.K, #numba_cute.nvgpu.OperandMajorMode.K : !numba_cute.nvgpu.tcgen05.MmaF8F6F4Op<a_dtype = !f8E4M3FN, b_dtype = !f8E4M3FN, acc_dtype = !f32, instruction_shape = (64,8,32), cta_group = #numba_cute.nvgpu.CtaGroup.ONE, a_src = #numba_cute.nvgpu.OperandSource.SMEM, a_major_mode = #numba_cute.nvgpu.OperandMajorMode.K, b_major_mode = #numba_cute.nvgpu.OperandMajorMode.K>

%r = numba_cute.nvgpu.tcgen05.MmaF8F6F4SparseOp !f8E4M3FN, !f8E4M3FN, !f32, (64, 8, 64), #numba_cute.nvgpu.CtaGroup.ONE, #numba_cute.nvgpu.OperandSource.SMEM, #numba_cute.nvgpu.OperandMajorMode.K, #numba_cute.nvgpu.OperandMajorMode.K : !numba_cute.nvgpu.tcgen05.MmaF8F6F4SparseOp<a_dtype = !f8E4M3FN, b_dtype = !f8E4M3FN, acc_dtype = !f32, instruction_shape = (64,8,64), cta_group = #numba_cute.nvgpu.CtaGroup.ONE, a_src = #numba_cute.nvgpu.OperandSource.SMEM, a_major_mode = #numba_cute.nvgpu.OperandMajorMode.K, b_major_mode = #numba_cute.nvgpu.OperandMajorMode.K>

%r = numba_cute.nvgpu.tcgen05.MmaFP8Op !f8E4M3FN, !f32, (64, 8, 32), #numba_cute.nvgpu.CtaGroup.ONE, #numba_cute.nvgpu.OperandSource.SMEM, #numba_cute.nvgpu.OperandMajorMode.K, #numba_cute.nvgpu.OperandMajorMode.K : !numba_cute.nvgpu.tcgen05.MmaFP8Op<ab_dtype = !f8E4M3FN, acc_dtype = !f32, instruction_shape = (64,8,32), cta_group = #numba_cute.nvgpu.CtaGroup.ONE, a_src = #numba_cute.nvgpu.OperandSource.SMEM, a_major_mode = #numba_cute.nvgpu.OperandMajorMode.K, b_major_mode = #numba_cute.nvgpu.OperandMajorMode.K>

%r = numba_cute.nvgpu.tcgen05.MmaFP8SparseOp !f8E4M3FN, !f32, (64, 8, 64), #numba_cute.nvgpu.CtaGroup.ONE, #numba_cute.nvgpu.OperandSource.SMEM, #numba_cute.nvgpu.OperandMajorMode.K, #numba_cute.nvgpu.OperandMajorMode.K : !numba_cute.nvgpu.tcgen05.MmaFP8SparseOp<ab_dtype = !f8E4M3FN, acc_dtype = !f32, instruction_shape = (64,8,64), cta_group = #numba_cute.nvgpu.CtaGroup.ONE, a_src = #numba_cute.nvgpu.OperandSource.SMEM, a_major_mode = #numba_cute.nvgpu.OperandMajorMode.K, b_major_mode = #numba_cute.nvgpu.OperandMajorMode.K>

%r = numba_cute.nvgpu.tcgen05.MmaI8Op !ui8, (64, 8, 32), #numba_cute.nvgpu.CtaGroup.ONE, #numba_cute.nvgpu.OperandSource.SMEM, #numba_cute.nvgpu.OperandMajorMode.K, #numba_cute.nvgpu.OperandMajorMode.K : !numba_cute.nvgpu.tcgen05.MmaI8Op<ab_dtype = !ui8, instruction_shape = (64,8,32), cta_group = #numba_cute.nvgpu.CtaGroup.ONE, a_src = #numba_cute.nvgpu.OperandSource.SMEM, a_major_mode = #numba_cute.nvgpu.OperandMajorMode.K, b_major_mode = #numba_cute.nvgpu.OperandMajorMode.K>

%r = numba_cute.nvgpu.tcgen05.MmaI8SparseOp !ui8, (64, 8, 64), #numba_cute.nvgpu.CtaGroup.ONE, #numba_cute.nvgpu.OperandSource.SMEM, #numba_cute.nvgpu.OperandMajorMode.K, #numba_cute.nvgpu.OperandMajorMode.K : !numba_cute.nvgpu.tcgen05.MmaI8SparseOp<ab_dtype = !ui8, instruction_shape = (64,8,64), cta_group = #numba_cute.nvgpu.CtaGroup.ONE, a_src = #numba_cute.nvgpu.OperandSource.SMEM, a_major_mode = #numba_cute.nvgpu.OperandMajorMode.K, b_major_mode = #numba_cute.nvgpu.OperandMajorMode.K>

%r = numba_cute.nvgpu.tcgen05.MmaMXF4NVF4Op !f8E4M3FN, (256, 128), #numba_cute.nvgpu.CtaGroup.TWO, #numba_cute.nvgpu.OperandSource.SMEM : !numba_cute.nvgpu.tcgen05.MmaMXF4NVF4Op<sf_dtype = !f8E4M3FN, instruction_shape = (256,128,64), cta_group = #numba_cute.nvgpu.CtaGroup.TWO, a_src = #numba_cute.nvgpu.OperandSource.SMEM>

%r = numba_cute.nvgpu.tcgen05.MmaMXF4NVF4SparseOp !f8E4M3FN, (128, 8, 128), #numba_cute.nvgpu.CtaGroup.ONE, #numba_cute.nvgpu.OperandSource.SMEM : !numba_cute.nvgpu.tcgen05.MmaMXF4NVF4SparseOp<sf_dtype = !f8E4M3FN, instruction_shape = (128,8,128), cta_group = #numba_cute.nvgpu.CtaGroup.ONE, a_src = #numba_cute.nvgpu.OperandSource.SMEM>

%r = numba_cute.nvgpu.tcgen05.MmaMXF4Op (256, 128), #numba_cute.nvgpu.CtaGroup.TWO, #numba_cute.nvgpu.OperandSource.SMEM : !numba_cute.nvgpu.tcgen05.MmaMXF4Op<instruction_shape = (256,128,64), cta_group = #numba_cute.nvgpu.CtaGroup.TWO, a_src = #numba_cute.nvgpu.OperandSource.SMEM>

%r = numba_cute.nvgpu.tcgen05.MmaMXF4SparseOp (128, 8, 128), #numba_cute.nvgpu.CtaGroup.ONE, #numba_cute.nvgpu.OperandSource.SMEM : !numba_cute.nvgpu.tcgen05.MmaMXF4SparseOp<instruction_shape = (128,8,128), cta_group = #numba_cute.nvgpu.CtaGroup.ONE, a_src = #numba_cute.nvgpu.OperandSource.SMEM>

%r = numba_cute.nvgpu.tcgen05.MmaMXF8F6F4Op !f8E4M3FN, !f8E4M3FN, (128, 128), #numba_cute.nvgpu.CtaGroup.ONE, #numba_cute.nvgpu.OperandSource.SMEM, #numba_cute.nvgpu.OperandMajorMode.K, #numba_cute.nvgpu.OperandMajorMode.K : !numba_cute.nvgpu.tcgen05.MmaMXF8F6F4Op<a_dtype = !f8E4M3FN, b_dtype = !f8E4M3FN, instruction_shape = (128,128,32), cta_group = #numba_cute.nvgpu.CtaGroup.ONE, a_src = #numba_cute.nvgpu.OperandSource.SMEM, a_major_mode = #numba_cute.nvgpu.OperandMajorMode.K, b_major_mode = #numba_cute.nvgpu.OperandMajorMode.K>

%r = numba_cute.nvgpu.tcgen05.MmaMXF8F6F4SparseOp !f8E4M3FN, !f8E4M3FN, (128, 8, 64), #numba_cute.nvgpu.CtaGroup.ONE, #numba_cute.nvgpu.OperandSource.SMEM, #numba_cute.nvgpu.OperandMajorMode.K, #numba_cute.nvgpu.OperandMajorMode.K : !numba_cute.nvgpu.tcgen05.MmaMXF8F6F4SparseOp<a_dtype = !f8E4M3FN, b_dtype = !f8E4M3FN, instruction_shape = (128,8,64), cta_group = #numba_cute.nvgpu.CtaGroup.ONE, a_src = #numba_cute.nvgpu.OperandSource.SMEM, a_major_mode = #numba_cute.nvgpu.OperandMajorMode.K, b_major_mode = #numba_cute.nvgpu.OperandMajorMode.K>

%r = numba_cute.nvgpu.tcgen05.MmaMXF8Op !f8E4M3FN, (128, 8, 32), #numba_cute.nvgpu.CtaGroup.ONE, #numba_cute.nvgpu.OperandSource.SMEM, #numba_cute.nvgpu.OperandMajorMode.K, #numba_cute.nvgpu.OperandMajorMode.K : !numba_cute.nvgpu.tcgen05.MmaMXF8Op<ab_dtype = !f8E4M3FN, instruction_shape = (128,8,32), cta_group = #numba_cute.nvgpu.CtaGroup.ONE, a_src = #numba_cute.nvgpu.OperandSource.SMEM, a_major_mode = #numba_cute.nvgpu.OperandMajorMode.K, b_major_mode = #numba_cute.nvgpu.OperandMajorMode.K>

%r = numba_cute.nvgpu.tcgen05.MmaMXF8SparseOp !f8E4M3FN, (128, 8, 64), #numba_cute.nvgpu.CtaGroup.ONE, #numba_cute.nvgpu.OperandSource.SMEM, #numba_cute.nvgpu.OperandMajorMode.K, #numba_cute.nvgpu.OperandMajorMode.K : !numba_cute.nvgpu.tcgen05.MmaMXF8SparseOp<ab_dtype = !f8E4M3FN, instruction_shape = (128,8,64), cta_group = #numba_cute.nvgpu.CtaGroup.ONE, a_src = #numba_cute.nvgpu.OperandSource.SMEM, a_major_mode = #numba_cute.nvgpu.OperandMajorMode.K, b_major_mode = #numba_cute.nvgpu.OperandMajorMode.K>

%r = numba_cute.nvgpu.tcgen05.MmaTF32Op (64, 8, 8), #numba_cute.nvgpu.CtaGroup.ONE, #numba_cute.nvgpu.OperandSource.SMEM, #numba_cute.nvgpu.OperandMajorMode.K, #numba_cute.nvgpu.OperandMajorMode.K : !numba_cute.nvgpu.tcgen05.MmaTF32Op<instruction_shape = (64,8,8), cta_group = #numba_cute.nvgpu.CtaGroup.ONE, a_src = #numba_cute.nvgpu.OperandSource.SMEM, a_major_mode = #numba_cute.nvgpu.OperandMajorMode.K, b_major_mode = #numba_cute.nvgpu.OperandMajorMode.K>

%r = numba_cute.nvgpu.tcgen05.MmaTF32SparseOp (64, 8, 16), #numba_cute.nvgpu.CtaGroup.ONE, #numba_cute.nvgpu.OperandSource.SMEM, #numba_cute.nvgpu.OperandMajorMode.K, #numba_cute.nvgpu.OperandMajorMode.K : !numba_cute.nvgpu.tcgen05.MmaTF32SparseOp<instruction_shape = (64,8,16), cta_group = #numba_cute.nvgpu.CtaGroup.ONE, a_src = #numba_cute.nvgpu.OperandSource.SMEM, a_major_mode = #numba_cute.nvgpu.OperandMajorMode.K, b_major_mode = #numba_cute.nvgpu.OperandMajorMode.K>

%r = numba_cute.nvgpu.tcgen05.SM103MmaMXF4NVF4Op !f8E4M3FN, (128, 8, 96), #numba_cute.nvgpu.CtaGroup.ONE, #numba_cute.nvgpu.OperandSource.SMEM : !numba_cute.nvgpu.tcgen05.SM103MmaMXF4NVF4Op<sf_dtype = !f8E4M3FN, instruction_shape = (128,8,96), cta_group = #numba_cute.nvgpu.CtaGroup.ONE, a_src = #numba_cute.nvgpu.OperandSource.SMEM>

%r = numba_cute.nvgpu.tcgen05.SM103MmaMXF4Op (128, 8, 96), #numba_cute.nvgpu.CtaGroup.ONE, #numba_cute.nvgpu.OperandSource.SMEM : !numba_cute.nvgpu.tcgen05.SM103MmaMXF4Op<instruction_shape = (128,8,96), cta_group = #numba_cute.nvgpu.CtaGroup.ONE, a_src = #numba_cute.nvgpu.OperandSource.SMEM>

%r = numba_cute.nvgpu.tcgen05.St16x128bOp #numba_cute.nvgpu.Repetition.x1, #numba_cute.nvgpu.Unpack.NONE : !numba_cute.nvgpu.tcgen05.St16x128bOp

%r = numba_cute.nvgpu.tcgen05.St16x256bOp #numba_cute.nvgpu.Repetition.x1, #numba_cute.nvgpu.Unpack.NONE : !numba_cute.nvgpu.tcgen05.St16x256bOp

%r = numba_cute.nvgpu.tcgen05.St16x32bx2Op #numba_cute.nvgpu.Repetition.x1, #numba_cute.nvgpu.Unpack.NONE : !numba_cute.nvgpu.tcgen05.St16x32bx2Op

%r = numba_cute.nvgpu.tcgen05.St16x64bOp #numba_cute.nvgpu.Repetition.x1, #numba_cute.nvgpu.Unpack.NONE : !numba_cute.nvgpu.tcgen05.St16x64bOp

%s = numba_cute.static : !numba_cute.nvgpu.copy_atom<tcgen05.Ld32x32bOp,!f32, repeat = #numba_cute.nvgpu.Repetition.x32>
%r = numba_cute.nvgpu.tcgen05.get_tmem_copy_properties %s : !numba_cute.tuple<(32,32,32,#numba_cute.nvgpu.Pack.NONE)>

%s = numba_cute.static : !numba_cute.nvgpu.copy_atom<tcgen05.Ld32x32bOp,!f32, repeat = #numba_cute.nvgpu.Repetition.x32>
%r = numba_cute.nvgpu.tcgen05.is_tmem_load %s : !numba_cute.constant<true>

%s = numba_cute.static : !numba_cute.nvgpu.copy_atom<tcgen05.St32x32bOp,!f32, repeat = #numba_cute.nvgpu.Repetition.x32>
%r = numba_cute.nvgpu.tcgen05.is_tmem_store %s : !numba_cute.constant<true>

%r = numba_cute.nvgpu.tcgen05.make_smem_layout_atom #numba_cute.nvgpu.tcgen05.SmemLayoutAtomKind.K_SW64, !bf16 : !cute.composed_layout<"S<2,4,3> o 0 o (8,32):(32,1)">

%s = numba_cute.static : !cute.composed_layout<"S<3,4,3> o 0 o (8,64):(64,1)">
%r = numba_cute.nvgpu.tcgen05.tile_to_mma_shape %s, ((64, 16), 1, 4, 4), (0, 1, 2) : !cute.composed_layout<"S<3,4,3> o 0 o ((64,16),1,4,4):((64,1),0,16,4096)">
