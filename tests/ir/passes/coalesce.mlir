// PASS: coalesce
// Both tensors of a copy in the order of its elements get fewer modes; what an atom takes instruction by instruction stays.

builtin.module attributes {numba_cute.target = "sm_90a"} {
  func.func @kernel(%n: i32) attributes {numba_cute.kernel} {
    %smem = numba_cute.utils.SmemAllocator
    %lay = numba_cute.make_layout ((4, 8), 2)
    %s = numba_cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %lay, 128
    %rows = numba_cute.make_layout (8, 8), stride = (8, 1)
    %t = numba_cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %rows, 128
    %r = numba_cute.make_rmem_tensor %lay, !f16
    %u = numba_cute.make_rmem_tensor %rows, !f16
    numba_cute.autovec_copy %s, %r
    // CHECK: %s_1 = numba_cute.coalesce %s : !cute.memref<f16, smem, align<128>, "64:1">
    // CHECK-NEXT: %r_1 = numba_cute.coalesce %r : !cute.memref<f16, rmem, align<16>, "64:1">
    // CHECK-NEXT: numba_cute.autovec_copy %s_1, %r_1
    numba_cute.basic_copy %t, %u
    // CHECK-NEXT: numba_cute.basic_copy %t, %u
    %any = numba_cute.nvgpu.make_copy_atom "CopyUniversalOp", !f16
    numba_cute.copy %any, %s, %u
    // CHECK: %s_2 = numba_cute.coalesce %s
    // CHECK-NEXT: numba_cute.copy %any, %s_2, %u
    %wide = numba_cute.nvgpu.make_copy_atom "CopyUniversalOp", !f16, 64
    numba_cute.copy %wide, %s, %r
    // CHECK: numba_cute.copy %wide, %s, %r
    func.return
  }
}
