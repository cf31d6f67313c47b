// PASS: vectorise
// Copies by each thread get the widest accesses that both layouts and both alignments allow.

builtin.module attributes {numba_cute.target = "sm_90a"} {
  func.func @kernel(%n: i32) attributes {numba_cute.kernel} {
    %smem = numba_cute.utils.SmemAllocator
    %columns = numba_cute.make_layout (8, 8)
    %rows = numba_cute.make_layout (8, 8), stride = (8, 1)
    %padded = numba_cute.make_layout (8, 8), stride = (12, 1)
    %even = numba_cute.make_layout (8, 8), stride = (2, 16)
    %c = numba_cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %columns, 128
    %t = numba_cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %rows, 128
    %p = numba_cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %padded, 128
    %e = numba_cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %even, 128
    %words = numba_cute.utils.SmemAllocator.allocate_array %smem, !f16, 64, 4
    %b = numba_cute.make_tensor %words, %columns
    %r = numba_cute.make_rmem_tensor %columns, !f16
    %u = numba_cute.make_rmem_tensor %rows, !f16

    // Contiguous, and 16 bytes aligned: 128 bits.
    numba_cute.autovec_copy %c, %r
    // CHECK: [[V:%[0-9]+]] = numba_cute.static : !cute.layout<"8:1">
    // CHECK-NEXT: [[C:%c_[0-9]+]] = numba_cute.zipped_divide %c, [[V]]
    // CHECK-NEXT: [[R:%r_[0-9]+]] = numba_cute.zipped_divide %r, [[V]]
    // CHECK-NEXT: [[A:%atom[_0-9]*]] = numba_cute.nvgpu.make_copy_atom "CopyUniversalOp", !f16, 128
    // CHECK-NEXT: numba_cute.copy [[A]], [[C]], [[R]]

    // Contiguous along the second mode of both.
    numba_cute.basic_copy %t, %u
    // CHECK: = numba_cute.static : !cute.layout<"8:8">
    // CHECK: "CopyUniversalOp", !f16, 128
    // CHECK-NEXT: numba_cute.copy

    // Rows of 24 bytes: 64 bits.
    numba_cute.autovec_copy %p, %u
    // CHECK: = numba_cute.static : !cute.layout<"4:8">
    // CHECK: "CopyUniversalOp", !f16, 64
    // CHECK-NEXT: numba_cute.copy

    // Nothing lies side by side: one element.
    numba_cute.autovec_copy %e, %r
    // CHECK: = numba_cute.static : !cute.layout<"1:0">
    // CHECK: "CopyUniversalOp", !f16, 16
    // CHECK-NEXT: numba_cute.copy

    // 4 bytes aligned: 32 bits.
    numba_cute.autovec_copy %b, %r
    // CHECK: = numba_cute.static : !cute.layout<"2:1">
    // CHECK: "CopyUniversalOp", !f16, 32
    // CHECK-NEXT: numba_cute.copy

    // What is as wide already, and what has a predicate, stays.
    %wide = numba_cute.nvgpu.make_copy_atom "CopyUniversalOp", !f16, 128
    numba_cute.copy %wide, %c, %r
    // CHECK: numba_cute.copy %wide, %c, %r
    %pred = numba_cute.make_rmem_tensor (1, 8), !i1
    numba_cute.Tensor.fill %pred, true
    numba_cute.copy %wide, %c, %r, pred = %pred
    // CHECK: numba_cute.copy %wide, %c, %r, pred = %pred
    // CHECK-NEXT: func.return
    func.return
  }
}
