// SPDX-License-Identifier: Apache-2.0
// C = A @ B.T by tcgen05.mma: a 128 x 64 tile of C for each block of 128 threads, 64 of K a step, loaded by TMA, summed up
// in tensor memory. A: (M, K), B: (N, K), f16, K contiguous, each as a TMA atom and its coordinates; C: (M, N), f32. M is
// a multiple of 128, N of 64. It has run in the simulator and through the assembler; there was no such GPU.
!load_a = !numba_cute.nvgpu.tma_load<!f16,[8192], tma_modes = (1,0)>
!load_b = !numba_cute.nvgpu.tma_load<!f16,[4096], tma_modes = (1,0)>
!coords = !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">
!result = !cute.memref<f32, gmem, align<16>, "(?{div=8},?{div=8}):(?{i64 div=8},1)">

builtin.module attributes {numba_cute.target = "sm_100a"} {
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

    %mma = numba_cute.utils.blackwell_helpers.make_trivial_tiled_mma !f16, #OperandMajorMode.K, #OperandMajorMode.K, !f32, #CtaGroup.ONE, (128, 64)
    %a_layout = numba_cute.utils.blackwell_helpers.make_smem_layout_a %mma, (128, 64, 64), !f16, 1
    %b_layout = numba_cute.utils.blackwell_helpers.make_smem_layout_b %mma, (128, 64, 64), !f16, 1
    %a_outer = numba_cute.get_attr %a_layout, "outer"
    %b_outer = numba_cute.get_attr %b_layout, "outer"
    %swizzle = numba_cute.get_attr %a_layout, "inner"
    %smem = numba_cute.utils.SmemAllocator
    %sA = numba_cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %a_outer, 1024, %swizzle
    %sB = numba_cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %b_outer, 1024, %swizzle
    %full = numba_cute.utils.SmemAllocator.allocate_array %smem, !i64, 1
    %done = numba_cute.utils.SmemAllocator.allocate_array %smem, !i64, 1
    %holding = numba_cute.utils.SmemAllocator.allocate_array %smem, !i32, 1
    %together = numba_cute.pipeline.NamedBarrier 1, 128
    %tmem = numba_cute.utils.TmemAllocator %holding, barrier_for_retrieve = %together
    %first = arith.cmpi eq, %t, %zero : i32
    scf.if %first {
      numba_cute.nvgpu.mbarrier_init %full, 1
      numba_cute.nvgpu.mbarrier_init %done, 1
    }
    numba_cute.arch.mbarrier_init_fence
    numba_cute.utils.TmemAllocator.allocate %tmem, 64
    numba_cute.utils.TmemAllocator.wait_for_alloc %tmem
    %columns = numba_cute.utils.TmemAllocator.retrieve_ptr %tmem, !f32
    %tile_shape = numba_cute.TiledMma.partition_shape_C %mma, (128, 64)
    %like = numba_cute.TiledMma.make_fragment_C %mma, %tile_shape
    %acc_layout = numba_cute.get_attr %like, "layout"
    %acc = numba_cute.make_tensor %columns, %acc_layout
    numba_cute.arch.sync_threads

    %cta = numba_cute.TiledMma.get_slice %mma, 0
    %tile_a = numba_cute.local_tile %a, (128, 64), (%m, _)
    %tile_b = numba_cute.local_tile %b, (64, 64), (%n, _)
    %gC = numba_cute.local_tile %c, (128, 64), (%m, %n)
    %gA = numba_cute.ThrMma.partition_A %cta, %tile_a
    %gB = numba_cute.ThrMma.partition_B %cta, %tile_b
    %alone = numba_cute.make_layout 1
    %sA_all = numba_cute.group_modes %sA, 0, 3
    %gA_all = numba_cute.group_modes %gA, 0, 3
    %sB_all = numba_cute.group_modes %sB, 0, 3
    %gB_all = numba_cute.group_modes %gB, 0, 3
    %parts_a = numba_cute.nvgpu.cpasync.tma_partition %tma_a, 0, %alone, %sA_all, %gA_all
    %parts_b = numba_cute.nvgpu.cpasync.tma_partition %tma_b, 0, %alone, %sB_all, %gB_all
    %stages_a = numba_cute.slice %parts_a, 0
    %from_a = numba_cute.slice %parts_a, 1
    %stages_b = numba_cute.slice %parts_b, 0
    %from_b = numba_cute.slice %parts_b, 1
    %to_a = numba_cute.slice %stages_a, (_, 0)
    %to_b = numba_cute.slice %stages_b, (_, 0)
    %words_a = numba_cute.mma_make_fragment_a %mma, %sA
    %words_b = numba_cute.mma_make_fragment_b %mma, %sB
    %fA = numba_cute.slice %words_a, (_, _, _, 0)
    %fB = numba_cute.slice %words_b, (_, _, _, 0)

    %shape = numba_cute.get_attr %gA, "shape"
    %k_tiles = numba_cute.slice %shape, 3 : i32
    %works = arith.cmpi eq, %warp, %zero : i32
    scf.for %k = %zero to %k_tiles step %one : i32 {
      %phase = arith.remui %k, %two : i32
      scf.if %works {
        scf.if %first {
          numba_cute.arch.mbarrier_arrive_and_expect_tx %full, 24576
        }
        %a_k = numba_cute.slice %from_a, (_, %k)
        %b_k = numba_cute.slice %from_b, (_, %k)
        numba_cute.copy %tma_a, %a_k, %to_a, tma_bar_ptr = %full
        numba_cute.copy %tma_b, %b_k, %to_b, tma_bar_ptr = %full
        numba_cute.nvgpu.mbarrier_wait %full, %phase
        %later = arith.cmpi sgt, %k, %zero : i32
        %adds = numba_cute.TiledMma.set %mma, #Field.ACCUMULATE, %later
        numba_cute.gemm %adds, %acc, %fA, %fB, %acc
        numba_cute.nvgpu.tcgen05.commit %done
      }
      numba_cute.nvgpu.mbarrier_wait %done, %phase
    }
    numba_cute.arch.tcgen05_fence_after_thread_sync

    %rows = numba_cute.slice %acc, ((_, _), 0, 0)
    %ld = numba_cute.nvgpu.tcgen05.Ld32x32bOp #Repetition.x64
    %ld_atom = numba_cute.make_copy_atom %ld, !f32
    %to_registers = numba_cute.nvgpu.tcgen05.make_tmem_copy %ld_atom, %rows
    %mine = numba_cute.TiledCopy.get_slice %to_registers, %t
    %from_rows = numba_cute.partition_s %mine, %rows
    %to_c = numba_cute.partition_d %mine, %gC
    %registers_shape = numba_cute.get_attr %to_c, "shape"
    %registers = numba_cute.make_rmem_tensor %registers_shape, !f32
    numba_cute.copy %to_registers, %from_rows, %registers
    numba_cute.arch.fence_view_async_tmem_load
    numba_cute.autovec_copy %registers, %to_c
    numba_cute.utils.TmemAllocator.relinquish_alloc_permit %tmem
    numba_cute.arch.sync_threads
    numba_cute.utils.TmemAllocator.free %tmem, %columns
    func.return
  }
}
