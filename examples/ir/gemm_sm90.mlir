// SPDX-License-Identifier: Apache-2.0
// C = A @ B.T by wgmma: a 64 x 128 tile of C for each block of 128 threads, 64 of K a step, loaded by TMA. A: (M, K),
// B: (N, K), f16, K contiguous, each as a TMA atom and its coordinates; C: (M, N), f32. M is a multiple of 64, N of 128.
!load_a = !cute_nvgpu.tma_load<!f16,[4096], tma_modes = (1,0)>
!load_b = !cute_nvgpu.tma_load<!f16,[8192], tma_modes = (1,0)>
!coords = !cute.coord_tensor<(0,0), (?,?):(1@1,1@0)>
!result = !cute.memref<f32, gmem, align<16>, (?{div=8},?{div=8}):(?{i64 div=8},1), address = ?{i64}>

builtin.module attributes {cute.target = "sm_90a"} {
  func.func @gemm(%tma_a: !load_a, %a: !coords, %tma_b: !load_b, %b: !coords, %c: !result)
      attributes {cute.kernel, cute.launch_bounds = 128} {
    %tid = cute.arch.thread_idx
    %t = cute.slice %tid, 0
    %lane_warp = cute.arch.warp_idx
    %warp = cute.arch.make_warp_uniform %lane_warp
    %block = cute.arch.block_idx
    %m = cute.slice %block, 0
    %n = cute.slice %block, 1
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32

    %atom = cute_nvgpu.make_mma_atom !f16, !f16, !f32, [64, 128, 16], "SM90"
    %mma = cute.make_tiled_mma %atom
    %row = cute_nvgpu.warpgroup.make_smem_layout_atom #warpgroup.SmemLayoutAtomKind.K_SW128, !f16
    %a_layout = cute.tile_to_shape %row, (64, 64), (0, 1)
    %b_layout = cute.tile_to_shape %row, (128, 64), (0, 1)
    %a_outer = cute.get_attr %a_layout, "outer"
    %b_outer = cute.get_attr %b_layout, "outer"
    %swizzle = cute.get_attr %a_layout, "inner"
    %smem = cute.utils.SmemAllocator
    %sA = cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %a_outer, 1024, %swizzle
    %sB = cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %b_outer, 1024, %swizzle
    %full = cute.utils.SmemAllocator.allocate_array %smem, !i64, 1
    %first = arith.cmpi eq, %t, %zero : i32
    scf.if %first {
      cute_nvgpu.mbarrier_init %full, 1
    }
    cute.arch.mbarrier_init_fence
    cute.arch.sync_threads

    %gA = cute.local_tile %a, (64, 64), (%m, _)
    %gB = cute.local_tile %b, (128, 64), (%n, _)
    %gC = cute.local_tile %c, (64, 128), (%m, %n)
    %alone = cute.make_layout 1
    %sA_all = cute.group_modes %sA, 0, 2
    %gA_all = cute.group_modes %gA, 0, 2
    %sB_all = cute.group_modes %sB, 0, 2
    %gB_all = cute.group_modes %gB, 0, 2
    %parts_a = cute_nvgpu.cpasync.tma_partition %tma_a, 0, %alone, %sA_all, %gA_all
    %parts_b = cute_nvgpu.cpasync.tma_partition %tma_b, 0, %alone, %sB_all, %gB_all
    %to_a = cute.slice %parts_a, 0
    %from_a = cute.slice %parts_a, 1
    %to_b = cute.slice %parts_b, 0
    %from_b = cute.slice %parts_b, 1

    %thread = cute.TiledMma.get_slice %mma, %t
    %tCsA = cute.ThrMma.partition_A %thread, %sA
    %tCsB = cute.ThrMma.partition_B %thread, %sB
    %tCgC = cute.ThrMma.partition_C %thread, %gC
    %fA = cute.mma_make_fragment_a %mma, %tCsA
    %fB = cute.mma_make_fragment_b %mma, %tCsB
    %acc = cute.mma_make_fragment_c %mma, %tCgC
    cute.clear %acc

    %shape = cute.get_attr %gA, "shape"
    %k_tiles = cute.slice %shape, 2 : i32
    %loads = arith.cmpi eq, %warp, %zero : i32
    scf.for %k = %zero to %k_tiles step %one : i32 {
      scf.if %loads {
        scf.if %first {
          cute.arch.mbarrier_arrive_and_expect_tx %full, 24576
        }
        %a_k = cute.slice %from_a, (_, %k)
        %b_k = cute.slice %from_b, (_, %k)
        cute.copy %tma_a, %a_k, %to_a, tma_bar_ptr = %full
        cute.copy %tma_b, %b_k, %to_b, tma_bar_ptr = %full
      }
      %phase = arith.remui %k, %two : i32
      cute_nvgpu.mbarrier_wait %full, %phase
      cute_nvgpu.warpgroup.fence
      %adds = cute.TiledMma.set %mma, #Field.ACCUMULATE, true
      cute.gemm %adds, %acc, %fA, %fB, %acc
      cute_nvgpu.warpgroup.commit_group
      cute_nvgpu.warpgroup.wait_group 0
      cute.arch.sync_threads
    }
    cute.autovec_copy %acc, %tCgC
    func.return
  }
}
