// SPDX-License-Identifier: Apache-2.0
// C = A @ B.T by mma.sync: a 64 x 64 tile of C for each block of 128 threads, 32 of K a step, through shared memory by
// cp.async. A: (M, K), B: (N, K), f16, K contiguous; C: (M, N), f32. M and N are multiples of 64, K of 32.
!matrix = !cute.memref<f16, gmem, align<16>, (?{div=8},?{div=8}):(?{i64 div=8},1), address = ?{i64}>
!result = !cute.memref<f32, gmem, align<16>, (?{div=8},?{div=8}):(?{i64 div=8},1), address = ?{i64}>

builtin.module attributes {cute.target = "sm_80"} {
  func.func @gemm(%a: !matrix, %b: !matrix, %c: !result) attributes {cute.kernel, cute.launch_bounds = 128} {
    %tid = cute.arch.thread_idx
    %t = cute.slice %tid, 0
    %block = cute.arch.block_idx
    %m = cute.slice %block, 0
    %n = cute.slice %block, 1

    // What multiplies, and what copies: global to shared memory, and shared memory to registers.
    %op = cute_nvgpu.warp.MmaF16BF16Op !f16, !f32, (16, 8, 16)
    %mma = cute.make_tiled_mma %op, (2, 2, 1), permutation_mnk = (32, 32, 16)
    %async = cute_nvgpu.cpasync.CopyG2SOp
    %g2s_atom = cute.make_copy_atom %async, !f16, 128
    %threads = cute.make_layout (32, 4), stride = (4, 1)
    %values = cute.make_layout (1, 8)
    %g2s = cute.make_tiled_copy_tv %g2s_atom, %threads, %values
    %ldmatrix = cute_nvgpu.warp.LdMatrix8x8x16bOp false, 4
    %s2r_atom = cute.make_copy_atom %ldmatrix, !f16
    %s2r_a = cute.make_tiled_copy_A %s2r_atom, %mma
    %s2r_b = cute.make_tiled_copy_B %s2r_atom, %mma

    %smem = cute.utils.SmemAllocator
    %rows = cute.make_layout (64, 32), stride = (32, 1)
    %swizzle = cute.make_swizzle 2, 4, 3
    %sA = cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %rows, 128, %swizzle
    %sB = cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %rows, 128, %swizzle

    %gA = cute.local_tile %a, (64, 32), (%m, _)
    %gB = cute.local_tile %b, (64, 32), (%n, _)
    %gC = cute.local_tile %c, (64, 64), (%m, %n)
    %copy = cute.TiledCopy.get_slice %g2s, %t
    %from_a = cute.partition_s %copy, %gA
    %to_a = cute.partition_d %copy, %sA
    %from_b = cute.partition_s %copy, %gB
    %to_b = cute.partition_d %copy, %sB

    %thread = cute.TiledMma.get_slice %mma, %t
    %tCsA = cute.ThrMma.partition_A %thread, %sA
    %tCsB = cute.ThrMma.partition_B %thread, %sB
    %tCgC = cute.ThrMma.partition_C %thread, %gC
    %rA = cute.mma_make_fragment_a %mma, %tCsA
    %rB = cute.mma_make_fragment_b %mma, %tCsB
    %acc = cute.mma_make_fragment_c %mma, %tCgC
    cute.clear %acc
    %read_a = cute.TiledCopy.get_slice %s2r_a, %t
    %read_b = cute.TiledCopy.get_slice %s2r_b, %t
    %sA_read = cute.partition_s %read_a, %sA
    %sB_read = cute.partition_s %read_b, %sB
    %rA_read = cute.ThrCopy.retile %read_a, %rA
    %rB_read = cute.ThrCopy.retile %read_b, %rB

    %shape = cute.get_attr %gA, "shape"
    %k_tiles = cute.slice %shape, 2 : i32
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    scf.for %k = %zero to %k_tiles step %one : i32 {
      %a_k = cute.slice %from_a, (_, _, _, %k)
      %b_k = cute.slice %from_b, (_, _, _, %k)
      cute.copy %g2s, %a_k, %to_a
      cute.copy %g2s, %b_k, %to_b
      cute.arch.cp_async_commit_group
      cute.arch.cp_async_wait_group 0
      cute.arch.sync_threads
      cute.copy %s2r_a, %sA_read, %rA_read
      cute.copy %s2r_b, %sB_read, %rB_read
      cute.gemm %mma, %acc, %rA, %rB, %acc
      cute.arch.sync_threads
    }
    cute.autovec_copy %acc, %tCgC
    func.return
  }
}
