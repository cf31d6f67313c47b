// PASS: coalesce
// Both tensors of a copy in the order of its elements get fewer modes; what an atom takes instruction by instruction stays.

builtin.module attributes {cute.target = "sm_90a"} {
  func.func @kernel(%n: i32) attributes {cute.kernel} {
    %smem = cute.utils.SmemAllocator
    %lay = cute.make_layout ((4, 8), 2)
    %s = cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %lay, 128
    %rows = cute.make_layout (8, 8), stride = (8, 1)
    %t = cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %rows, 128
    %r = cute.make_rmem_tensor %lay, !f16
    %u = cute.make_rmem_tensor %rows, !f16
    cute.autovec_copy %s, %r
    // CHECK: %s_1 = cute.coalesce %s : !cute.memref<f16, smem, align<128>, 64:1{{.*}}>
    // CHECK-NEXT: %r_1 = cute.coalesce %r : !cute.memref<f16, rmem, align<16>, 64:1>
    // CHECK-NEXT: cute.autovec_copy %s_1, %r_1
    cute.basic_copy %t, %u
    // CHECK-NEXT: cute.basic_copy %t, %u
    %any = cute_nvgpu.make_copy_atom "CopyUniversalOp", !f16
    cute.copy %any, %s, %u
    // CHECK: %s_2 = cute.coalesce %s
    // CHECK-NEXT: cute.copy %any, %s_2, %u
    %wide = cute_nvgpu.make_copy_atom "CopyUniversalOp", !f16, 64
    cute.copy %wide, %s, %r
    // CHECK: cute.copy %wide, %s, %r
    func.return
  }
}
