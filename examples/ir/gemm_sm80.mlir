// SPDX-License-Identifier: Apache-2.0
// C = A @ B.T by mma.sync: a 64 x 64 tile of C for each block of 128 threads, 32 of K a step, through shared memory by
// cp.async. A: (M, K), B: (N, K), f16, K contiguous; C: (M, N), f32. M and N are multiples of 64, K of 32.
!matrix = !cute.memref<f16, gmem, align<16>, "(?{div=8},?{div=8}):(?{i64 div=8},1)">
!result = !cute.memref<f32, gmem, align<16>, "(?{div=8},?{div=8}):(?{i64 div=8},1)">

builtin.module attributes {numba_cute.target = "sm_80"} {
  func.func @gemm(%a: !matrix, %b: !matrix, %c: !result) attributes {numba_cute.kernel, numba_cute.launch_bounds = 128} {
    %tid = numba_cute.arch.thread_idx
    %t = numba_cute.slice %tid, 0
    %block = numba_cute.arch.block_idx
    %m = numba_cute.slice %block, 0
    %n = numba_cute.slice %block, 1

    // What multiplies, and what copies: global to shared memory, and shared memory to registers.
    %op = numba_cute.nvgpu.warp.MmaF16BF16Op !f16, !f32, (16, 8, 16)
    %mma = numba_cute.make_tiled_mma %op, (2, 2, 1), permutation_mnk = (32, 32, 16)
    %async = numba_cute.nvgpu.cpasync.CopyG2SOp
    %g2s_atom = numba_cute.make_copy_atom %async, !f16, 128
    %threads = numba_cute.make_layout (32, 4), stride = (4, 1)
    %values = numba_cute.make_layout (1, 8)
    %g2s = numba_cute.make_tiled_copy_tv %g2s_atom, %threads, %values
    %ldmatrix = numba_cute.nvgpu.warp.LdMatrix8x8x16bOp false, 4
    %s2r_atom = numba_cute.make_copy_atom %ldmatrix, !f16
    %s2r_a = numba_cute.make_tiled_copy_A %s2r_atom, %mma
    %s2r_b = numba_cute.make_tiled_copy_B %s2r_atom, %mma

    %smem = numba_cute.utils.SmemAllocator
    %rows = numba_cute.make_layout (64, 32), stride = (32, 1)
    %swizzle = numba_cute.make_swizzle 2, 4, 3
    %sA = numba_cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %rows, 128, %swizzle
    %sB = numba_cute.utils.SmemAllocator.allocate_tensor %smem, !f16, %rows, 128, %swizzle

    %gA = numba_cute.local_tile %a, (64, 32), (%m, _)
    %gB = numba_cute.local_tile %b, (64, 32), (%n, _)
    %gC = numba_cute.local_tile %c, (64, 64), (%m, %n)
    %copy = numba_cute.TiledCopy.get_slice %g2s, %t
    %from_a = numba_cute.partition_s %copy, %gA
    %to_a = numba_cute.partition_d %copy, %sA
    %from_b = numba_cute.partition_s %copy, %gB
    %to_b = numba_cute.partition_d %copy, %sB

    %thread = numba_cute.TiledMma.get_slice %mma, %t
    %tCsA = numba_cute.ThrMma.partition_A %thread, %sA
    %tCsB = numba_cute.ThrMma.partition_B %thread, %sB
    %tCgC = numba_cute.ThrMma.partition_C %thread, %gC
    %rA = numba_cute.mma_make_fragment_a %mma, %tCsA
    %rB = numba_cute.mma_make_fragment_b %mma, %tCsB
    %acc = numba_cute.mma_make_fragment_c %mma, %tCgC
    numba_cute.clear %acc
    %read_a = numba_cute.TiledCopy.get_slice %s2r_a, %t
    %read_b = numba_cute.TiledCopy.get_slice %s2r_b, %t
    %sA_read = numba_cute.partition_s %read_a, %sA
    %sB_read = numba_cute.partition_s %read_b, %sB
    %rA_read = numba_cute.ThrCopy.retile %read_a, %rA
    %rB_read = numba_cute.ThrCopy.retile %read_b, %rB

    %shape = numba_cute.get_attr %gA, "shape"
    %k_tiles = numba_cute.slice %shape, 2 : i32
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    scf.for %k = %zero to %k_tiles step %one : i32 {
      %a_k = numba_cute.slice %from_a, (_, _, _, %k)
      %b_k = numba_cute.slice %from_b, (_, _, _, %k)
      numba_cute.copy %g2s, %a_k, %to_a
      numba_cute.copy %g2s, %b_k, %to_b
      numba_cute.arch.cp_async_commit_group
      numba_cute.arch.cp_async_wait_group 0
      numba_cute.arch.sync_threads
      numba_cute.copy %s2r_a, %sA_read, %rA_read
      numba_cute.copy %s2r_b, %sB_read, %rB_read
      numba_cute.gemm %mma, %acc, %rA, %rB, %acc
      numba_cute.arch.sync_threads
    }
    numba_cute.autovec_copy %acc, %tCgC
    func.return
  }
}
