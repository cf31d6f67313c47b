// PASS: dce
// What is not used and does nothing else is left out: found by what the functions do, not by their names.

// CHECK: func.func @kernel(%n: i32)
builtin.module attributes {cute.target = "sm_90a"} {
  func.func @kernel(%n: i32) attributes {cute.kernel} {
    %l = cute.make_layout (4, %n)
    %s = cute.size %l
    %twice = arith.addi %n, %n : i32
    %r = cute.make_rmem_tensor 4, !f32
    // CHECK-NEXT: %r = cute.make_rmem_tensor 4, !f32
    %v = cute.Tensor.load %r
    %grid = cute.make_rmem_tensor (4, 2), !f32
    %part = cute.slice %grid, (_, 1)
    %x = cute.load_element %r, 1
    %unused = cute.make_rmem_tensor 8, !f32
    %lane = cute.arch.lane_idx
    cute.Tensor.fill %r, 1.0
    // CHECK-NEXT: cute.Tensor.fill %r, 1.0
    %smem = cute.utils.SmemAllocator
    // CHECK-NEXT: %smem = cute.utils.SmemAllocator
    %ptr = cute.utils.SmemAllocator.allocate_array %smem, !i64
    // CHECK-NEXT: %ptr = cute.utils.SmemAllocator.allocate_array %smem, !i64
    cute_nvgpu.mbarrier_init %ptr, 1
    // CHECK-NEXT: cute_nvgpu.mbarrier_init %ptr, 1
    %elected = cute.arch.elect_one
    // CHECK-NEXT: %elected = cute.arch.elect_one
    %done = cute.arch.mbarrier_test_wait %ptr, 0
    // CHECK-NEXT: %done = cute.arch.mbarrier_test_wait %ptr, 0
    %q = cute.static : !cute.layout<4, 1>
    cute.arch.sync_threads
    // CHECK-NEXT: cute.arch.sync_threads
    func.return
    // CHECK-NEXT: func.return
  }
}
