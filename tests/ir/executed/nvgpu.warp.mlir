%r = numba_cute.nvgpu.warp.LdMatrix16x16x8bOp true, 1, _ : !numba_cute.nvgpu.warp.LdMatrix16x16x8bOp

%r = numba_cute.nvgpu.warp.LdMatrix16x8x8bOp true, 2, _ : !numba_cute.nvgpu.warp.LdMatrix16x8x8bOp

%r = numba_cute.nvgpu.warp.LdMatrix8x16x8bOp false, 1, _ : !numba_cute.nvgpu.warp.LdMatrix8x16x8bOp

%r = numba_cute.nvgpu.warp.LdMatrix8x8x16bOp false, 1 : !numba_cute.nvgpu.warp.LdMatrix8x8x16bOp

%r = numba_cute.nvgpu.warp.MmaB1Op (16, 8, 256), "xor" : !numba_cute.nvgpu.warp.MmaB1Op

%r = numba_cute.nvgpu.warp.MmaF16BF16Op !f16, !f32, (16, 8, 16) : !numba_cute.nvgpu.warp.MmaF16BF16Op<ab_dtype = !f16, acc_dtype = !f32, shape_mnk = (16,8,16)>

%r = numba_cute.nvgpu.warp.MmaF16BF16SparseOp !f16, !f32, (16, 8, 32), 0 : !numba_cute.nvgpu.warp.MmaF16BF16SparseOp<ab_dtype = !f16, acc_dtype = !f32>

%r = numba_cute.nvgpu.warp.MmaF64Op (8, 8, 4) : !numba_cute.nvgpu.warp.MmaF64Op

%r = numba_cute.nvgpu.warp.MmaF8F6F4Op !f8E4M3FN, !f8E4M3FN, !f32 : !numba_cute.nvgpu.warp.MmaF8F6F4Op<a_dtype = !f8E4M3FN, b_dtype = !f8E4M3FN, acc_dtype = !f32>

%r = numba_cute.nvgpu.warp.MmaF8F6F4SparseOp !f8E4M3FN, !f8E4M3FN, !f32 : !numba_cute.nvgpu.warp.MmaF8F6F4SparseOp<a_dtype = !f8E4M3FN, b_dtype = !f8E4M3FN, acc_dtype = !f32>

%r = numba_cute.nvgpu.warp.MmaFP8Op !f8E4M3FN, !f32, (16, 8, 32) : !numba_cute.nvgpu.warp.MmaFP8Op<ab_dtype = !f8E4M3FN, acc_dtype = !f32, shape_mnk = (16,8,32)>

%r = numba_cute.nvgpu.warp.MmaFP8SparseOp !f8E4M3FN, !f8E4M3FN, (16, 8, 64), 0 : !numba_cute.nvgpu.warp.MmaFP8SparseOp<a_dtype = !f8E4M3FN, b_dtype = !f8E4M3FN>

%r = numba_cute.nvgpu.warp.MmaI4Op !i4, !i4, (16, 8, 64), false : !numba_cute.nvgpu.warp.MmaI4Op<a_dtype = !i4, b_dtype = !i4>

%r = numba_cute.nvgpu.warp.MmaI4SparseOp !i4, !i4, (16, 8, 128), false, 0 : !numba_cute.nvgpu.warp.MmaI4SparseOp<a_dtype = !i4, b_dtype = !i4>

%r = numba_cute.nvgpu.warp.MmaI8Op !i8, !i8, (16, 8, 32), false : !numba_cute.nvgpu.warp.MmaI8Op<a_dtype = !i8, b_dtype = !i8>

%r = numba_cute.nvgpu.warp.MmaI8SparseOp !i8, !i8, (16, 8, 64), false, 0 : !numba_cute.nvgpu.warp.MmaI8SparseOp<a_dtype = !i8, b_dtype = !i8>

%r = numba_cute.nvgpu.warp.MmaMXF4NVF4Op !f4E2M1FN, !f32, !f8E4M3FN : !numba_cute.nvgpu.warp.MmaMXF4NVF4Op<ab_dtype = !f4E2M1FN, acc_dtype = !f32, sf_type = !f8E4M3FN>

%r = numba_cute.nvgpu.warp.MmaMXF4NVF4SparseOp !f4E2M1FN, !f32, !f8E4M3FN : !numba_cute.nvgpu.warp.MmaMXF4NVF4SparseOp<ab_dtype = !f4E2M1FN, acc_dtype = !f32, sf_type = !f8E4M3FN>

%r = numba_cute.nvgpu.warp.MmaMXF4Op !f4E2M1FN, !f32, !f8E8M0FNU : !numba_cute.nvgpu.warp.MmaMXF4Op<ab_dtype = !f4E2M1FN, acc_dtype = !f32, sf_type = !f8E8M0FNU>

%r = numba_cute.nvgpu.warp.MmaMXF4SparseOp !f4E2M1FN, !f32, !f8E8M0FNU : !numba_cute.nvgpu.warp.MmaMXF4SparseOp<ab_dtype = !f4E2M1FN, acc_dtype = !f32, sf_type = !f8E8M0FNU>

%r = numba_cute.nvgpu.warp.MmaMXF8F6F4Op !f8E4M3FN, !f4E2M1FN, !f32, !f8E8M0FNU : !numba_cute.nvgpu.warp.MmaMXF8F6F4Op<a_dtype = !f8E4M3FN, b_dtype = !f4E2M1FN, acc_dtype = !f32, sf_type = !f8E8M0FNU>

%r = numba_cute.nvgpu.warp.MmaMXF8F6F4SparseOp !f8E4M3FN, !f8E4M3FN, !f32, !f8E8M0FNU : !numba_cute.nvgpu.warp.MmaMXF8F6F4SparseOp<a_dtype = !f8E4M3FN, b_dtype = !f8E4M3FN, acc_dtype = !f32, sf_type = !f8E8M0FNU>

%r = numba_cute.nvgpu.warp.MmaMXF8Op !f8E4M3FN, !f32, !f8E8M0FNU : !numba_cute.nvgpu.warp.MmaMXF8Op<ab_dtype = !f8E4M3FN, acc_dtype = !f32, sf_type = !f8E8M0FNU>

%r = numba_cute.nvgpu.warp.MmaTF32Op (16, 8, 8) : !numba_cute.nvgpu.warp.MmaTF32Op<shape_mnk = (16,8,8)>

%r = numba_cute.nvgpu.warp.MmaTF32SparseOp (16, 8, 16), 0 : !numba_cute.nvgpu.warp.MmaTF32SparseOp

%r = numba_cute.nvgpu.warp.StMatrix16x8x8bOp true, 1 : !numba_cute.nvgpu.warp.StMatrix16x8x8bOp
