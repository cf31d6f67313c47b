// PASS: vectorise
// Copies by each thread get the widest accesses that both layouts and both alignments allow.

builtin.module attributes {cute.target = "sm_90a"} {
  func.func @kernel(%n: i32) attributes {cute.kernel} {
    %smem = cute.utils.SmemAllocator
    %columns = cute.make_layout (8, 8)
    %rows = cute.make_layout (8, 8), stride = (8, 1)
    %padded = cute.make_layout (8, 8), stride = (12, 1)
    %even = cute.make_layout (8, 8), stride = (2, 16)
    %c = cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %columns, 128
    %t = cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %rows, 128
    %p = cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %padded, 128
    %e = cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %even, 128
    %b = cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %columns, 4
    %r = cute.make_rmem_tensor %columns, !f16
    %u = cute.make_rmem_tensor %rows, !f16

    // Contiguous, and 16 bytes aligned: 128 bits.
    cute.autovec_copy %c, %r
    // CHECK: [[V:%[0-9]+]] = cute.static : !cute.layout<8, 1>
    // CHECK-NEXT: [[C:%c_[0-9]+]] = cute.zipped_divide %c, [[V]]
    // CHECK-NEXT: [[R:%r_[0-9]+]] = cute.zipped_divide %r, [[V]]
    // CHECK-NEXT: [[A:%atom[_0-9]*]] = cute_nvgpu.make_copy_atom "CopyUniversalOp", !f16, 128
    // CHECK-NEXT: cute.copy [[A]], [[C]], [[R]]

    // Contiguous along the second mode of both.
    cute.basic_copy %t, %u
    // CHECK: = cute.static : !cute.layout<8, 8>
    // CHECK: "CopyUniversalOp", !f16, 128
    // CHECK-NEXT: cute.copy

    // Rows of 24 bytes: 64 bits.
    cute.autovec_copy %p, %u
    // CHECK: = cute.static : !cute.layout<4, 8>
    // CHECK: "CopyUniversalOp", !f16, 64
    // CHECK-NEXT: cute.copy

    // Nothing lies side by side: one element.
    cute.autovec_copy %e, %r
    // CHECK: = cute.static : !cute.layout<1, 0>
    // CHECK: "CopyUniversalOp", !f16, 16
    // CHECK-NEXT: cute.copy

    // 4 bytes aligned: 32 bits.
    cute.autovec_copy %b, %r
    // CHECK: = cute.static : !cute.layout<2, 1>
    // CHECK: "CopyUniversalOp", !f16, 32
    // CHECK-NEXT: cute.copy

    // What is as wide already, and what has a predicate, stays.
    %wide = cute_nvgpu.make_copy_atom "CopyUniversalOp", !f16, 128
    cute.copy %wide, %c, %r
    // CHECK: cute.copy %wide, %c, %r
    %pred = cute.make_rmem_tensor (1, 8), !i1
    cute.Tensor.fill %pred, true
    cute.copy %wide, %c, %r, pred = %pred
    // CHECK: cute.copy %wide, %c, %r, pred = %pred
    // CHECK-NEXT: func.return
    func.return
  }
}
