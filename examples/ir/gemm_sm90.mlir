// SPDX-License-Identifier: Apache-2.0
// C = A @ B.T by wgmma: a 64 x 128 tile of C for each block of 128 threads, 64 of K a step, loaded by TMA. A: (M, K),
// B: (N, K), f16, K contiguous, each as a TMA atom and its coordinates; C: (M, N), f32. M is a multiple of 64, N of 128.
!load_a = !numba_cute.nvgpu.tma_load<!f16,[4096], tma_modes = (1,0)>
!load_b = !numba_cute.nvgpu.tma_load<!f16,[8192], tma_modes = (1,0)>
!coords = !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">
!result = !cute.memref<f32, gmem, align<16>, "(?{div=8},?{div=8}):(?{i64 div=8},1)">

builtin.module attributes {numba_cute.target = "sm_90a"} {
  func.func @gemm(%tma_a: !load_a, %a: !coords, %tma_b: !load_b, %b: !coords, %c: !result)
      attributes {numba_cute.kernel, numba_cute.launch_bounds = 128} {
    %tid = numba_cute.arch.thread_idx
    %t = numba_cute.slice %tid, 0
    %lane_warp = numba_cute.arch.warp_idx
    %warp = numba_cute.arch.make_warp_uniform %lane_warp
    %block = numba_cute.arch.block_idx
    %m = numba_cute.slice %block, 0
    %n = numba_cute.slice %block, 1
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32

    %atom = numba_cute.nvgpu.make_mma_atom !f16, !f16, !f32, [64, 128, 16], "SM90"
    %mma = numba_cute.make_tiled_mma %atom
    %row = numba_cute.nvgpu.warpgroup.make_smem_layout_atom #warpgroup.SmemLayoutAtomKind.K_SW128, !f16
    %a_layout = numba_cute.tile_to_shape %row, (64, 64), (0, 1)
    %b_layout = numba_cute.tile_to_shape %row, (128, 64), (0, 1)
    %a_outer = numba_cute.get_attr %a_layout, "outer"
    %b_outer = numba_cute.get_attr %b_layout, "outer"
    %swizzle = numba_cute.get_attr %a_layout, "inner"
    %smem = numba_cute.utils.SmemAllocator
    %sA = numba_cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %a_outer, 1024, %swizzle
    %sB = numba_cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %b_outer, 1024, %swizzle
    %full = numba_cute.utils.SmemAllocator.allocate_array %smem, !i64, 1
    %first = arith.cmpi eq, %t, %zero : i32
    scf.if %first {
      numba_cute.nvgpu.mbarrier_init %full, 1
    }
    numba_cute.arch.mbarrier_init_fence
    numba_cute.arch.sync_threads

    %gA = numba_cute.local_tile %a, (64, 64), (%m, _)
    %gB = numba_cute.local_tile %b, (128, 64), (%n, _)
    %gC = numba_cute.local_tile %c, (64, 128), (%m, %n)
    %alone = numba_cute.make_layout 1
    %sA_all = numba_cute.group_modes %sA, 0, 2
    %gA_all = numba_cute.group_modes %gA, 0, 2
    %sB_all = numba_cute.group_modes %sB, 0, 2
    %gB_all = numba_cute.group_modes %gB, 0, 2
    %parts_a = numba_cute.nvgpu.cpasync.tma_partition %tma_a, 0, %alone, %sA_all, %gA_all
    %parts_b = numba_cute.nvgpu.cpasync.tma_partition %tma_b, 0, %alone, %sB_all, %gB_all
    %to_a = numba_cute.slice %parts_a, 0
    %from_a = numba_cute.slice %parts_a, 1
    %to_b = numba_cute.slice %parts_b, 0
    %from_b = numba_cute.slice %parts_b, 1

    %thread = numba_cute.TiledMma.get_slice %mma, %t
    %tCsA = numba_cute.ThrMma.partition_A %thread, %sA
    %tCsB = numba_cute.ThrMma.partition_B %thread, %sB
    %tCgC = numba_cute.ThrMma.partition_C %thread, %gC
    %fA = numba_cute.mma_make_fragment_a %mma, %tCsA
    %fB = numba_cute.mma_make_fragment_b %mma, %tCsB
    %acc = numba_cute.mma_make_fragment_c %mma, %tCgC
    numba_cute.clear %acc

    %shape = numba_cute.get_attr %gA, "shape"
    %k_tiles = numba_cute.slice %shape, 2 : i32
    %loads = arith.cmpi eq, %warp, %zero : i32
    scf.for %k = %zero to %k_tiles step %one : i32 {
      scf.if %loads {
        scf.if %first {
          numba_cute.arch.mbarrier_arrive_and_expect_tx %full, 24576
        }
        %a_k = numba_cute.slice %from_a, (_, %k)
        %b_k = numba_cute.slice %from_b, (_, %k)
        numba_cute.copy %tma_a, %a_k, %to_a, tma_bar_ptr = %full
        numba_cute.copy %tma_b, %b_k, %to_b, tma_bar_ptr = %full
      }
      %phase = arith.remui %k, %two : i32
      numba_cute.nvgpu.mbarrier_wait %full, %phase
      numba_cute.nvgpu.warpgroup.fence
      %adds = numba_cute.TiledMma.set %mma, #Field.ACCUMULATE, true
      numba_cute.gemm %adds, %acc, %fA, %fB, %acc
      numba_cute.nvgpu.warpgroup.commit_group
      numba_cute.nvgpu.warpgroup.wait_group 0
      numba_cute.arch.sync_threads
    }
    numba_cute.autovec_copy %acc, %tCgC
    func.return
  }
}
