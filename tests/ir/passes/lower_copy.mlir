// PASS: lower-to-nvgpu
// A copy is an instruction of its atom for each part, with the predicate of each.

builtin.module attributes {numba_cute.target = "sm_80"} {
  func.func @kernel() attributes {numba_cute.kernel} {
    %smem = numba_cute.utils.SmemAllocator
    %rows = numba_cute.make_layout (8, 4), stride = (1, 8)
    %s = numba_cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %rows, 128
    %r = numba_cute.make_rmem_tensor (8, 4), !f16
    %pred = numba_cute.make_rmem_tensor (1, 2), !i1
    numba_cute.Tensor.fill %pred, true

    %u = numba_cute.nvgpu.make_copy_atom "CopyUniversalOp", !f16, 128
    numba_cute.copy %u, %s, %r, pred = %pred
    // CHECK:      %[[P:[0-9]+]] = numba_cute.load_element %pred, 0 : i1
    // CHECK-NEXT: %[[Q:[0-9]+]] = numba_cute.load_element %pred, 1 : i1
    // CHECK-NEXT: numba_cute.nvgpu.copy_universal %u, {{%s_[0-9]+}}, {{%r_[0-9]+}}, pred = %[[P]]
    // CHECK-NEXT: numba_cute.nvgpu.copy_universal %u, {{%s_[0-9]+}}, {{%r_[0-9]+}}, pred = %[[P]]
    // CHECK-NEXT: numba_cute.nvgpu.copy_universal %u, {{%s_[0-9]+}}, {{%r_[0-9]+}}, pred = %[[Q]]
    // CHECK-NEXT: numba_cute.nvgpu.copy_universal %u, {{%s_[0-9]+}}, {{%r_[0-9]+}}, pred = %[[Q]]

    %any = numba_cute.nvgpu.make_copy_atom "CopyUniversalOp", !f16
    numba_cute.copy %any, %s, %r
    // CHECK:      numba_cute.nvgpu.copy_universal %any, %s, %r

    %one = numba_cute.nvgpu.make_copy_atom "LdMatrix8x8x16bOp", !f16, num_matrices = 4
    numba_cute.copy %one, %s, %r
    // CHECK:      [[S:%s_[0-9]+]] = numba_cute.slice %s, (_, 0)
    // CHECK:      numba_cute.nvgpu.ldmatrix %one, [[S]], {{%r_[0-9]+}}
    // CHECK:      numba_cute.nvgpu.ldmatrix %one
    // CHECK:      numba_cute.nvgpu.ldmatrix %one
    // CHECK:      numba_cute.nvgpu.ldmatrix %one
    // CHECK-NEXT: func.return
    func.return
  }
}
