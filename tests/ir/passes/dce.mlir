// PASS: dce
// What is not used and does nothing else is left out: found by what the functions do, not by their names.

// CHECK: func.func @kernel(%n: i32)
builtin.module attributes {numba_cute.target = "sm_90a"} {
  func.func @kernel(%n: i32) attributes {numba_cute.kernel} {
    %l = numba_cute.make_layout (4, %n)
    %s = numba_cute.size %l
    %twice = arith.addi %n, %n : i32
    %r = numba_cute.make_rmem_tensor 4, !f32
    // CHECK-NEXT: %r = numba_cute.make_rmem_tensor 4, !f32
    %v = numba_cute.Tensor.load %r
    %grid = numba_cute.make_rmem_tensor (4, 2), !f32
    %part = numba_cute.slice %grid, (_, 1)
    %x = numba_cute.load_element %r, 1
    %unused = numba_cute.make_rmem_tensor 8, !f32
    %lane = numba_cute.arch.lane_idx
    numba_cute.Tensor.fill %r, 1.0
    // CHECK-NEXT: numba_cute.Tensor.fill %r, 1.0
    %smem = numba_cute.utils.SmemAllocator
    // CHECK-NEXT: %smem = numba_cute.utils.SmemAllocator
    %ptr = numba_cute.utils.SmemAllocator.allocate_array %smem, !i64
    // CHECK-NEXT: %ptr = numba_cute.utils.SmemAllocator.allocate_array %smem, !i64
    numba_cute.nvgpu.mbarrier_init %ptr, 1
    // CHECK-NEXT: numba_cute.nvgpu.mbarrier_init %ptr, 1
    %elected = numba_cute.arch.elect_one
    // CHECK-NEXT: %elected = numba_cute.arch.elect_one
    %done = numba_cute.arch.mbarrier_test_wait %ptr, 0
    // CHECK-NEXT: %done = numba_cute.arch.mbarrier_test_wait %ptr, 0
    %q = numba_cute.static : !cute.layout<"4:1">
    numba_cute.arch.sync_threads
    // CHECK-NEXT: numba_cute.arch.sync_threads
    func.return
    // CHECK-NEXT: func.return
  }
}
