// PASS: lower-to-nvgpu
// A copy is an instruction of its atom for each part, with the predicate of each.

builtin.module attributes {cute.target = "sm_80"} {
  func.func @kernel() attributes {cute.kernel} {
    %smem = cute.utils.SmemAllocator
    %rows = cute.make_layout (8, 4), stride = (1, 8)
    %s = cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %rows, 128
    %r = cute.make_rmem_tensor (8, 4), !f16
    %pred = cute.make_rmem_tensor (1, 2), !i1
    cute.Tensor.fill %pred, true

    %u = cute_nvgpu.make_copy_atom "CopyUniversalOp", !f16, 128
    cute.copy %u, %s, %r, pred = %pred
    // CHECK:      %[[P:[0-9]+]] = cute.load_element %pred, 0 : i1
    // CHECK-NEXT: %[[Q:[0-9]+]] = cute.load_element %pred, 1 : i1
    // CHECK-NEXT: cute_nvgpu.copy_universal %u, {{%s_[0-9]+}}, {{%r_[0-9]+}}, pred = %[[P]]
    // CHECK-NEXT: cute_nvgpu.copy_universal %u, {{%s_[0-9]+}}, {{%r_[0-9]+}}, pred = %[[P]]
    // CHECK-NEXT: cute_nvgpu.copy_universal %u, {{%s_[0-9]+}}, {{%r_[0-9]+}}, pred = %[[Q]]
    // CHECK-NEXT: cute_nvgpu.copy_universal %u, {{%s_[0-9]+}}, {{%r_[0-9]+}}, pred = %[[Q]]

    %any = cute_nvgpu.make_copy_atom "CopyUniversalOp", !f16
    cute.copy %any, %s, %r
    // CHECK:      cute_nvgpu.copy_universal %any, %s, %r

    %one = cute_nvgpu.make_copy_atom "LdMatrix8x8x16bOp", !f16, num_matrices = 4
    cute.copy %one, %s, %r
    // CHECK:      [[S:%s_[0-9]+]] = cute.slice %s, (_, 0)
    // CHECK:      cute_nvgpu.ldmatrix %one, [[S]], {{%r_[0-9]+}}
    // CHECK:      cute_nvgpu.ldmatrix %one
    // CHECK:      cute_nvgpu.ldmatrix %one
    // CHECK:      cute_nvgpu.ldmatrix %one
    // CHECK-NEXT: func.return
    func.return
  }
}
