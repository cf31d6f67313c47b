// PASS: lower-to-nvgpu
// Each instruction of a sparse product has its own word of metadata.

builtin.module attributes {numba_cute.target = "sm_80"} {
  func.func @kernel() attributes {numba_cute.kernel} {
    %atom = numba_cute.nvgpu.make_mma_atom !f16, !f16, !f32, [16, 8, 32], "SM80", sparse = true
    %words = numba_cute.make_rmem_tensor (1, 1, 2), !ui32
    %t = numba_cute.make_tiled_mma %atom, (1, 1, 1)
    %set = numba_cute.nvgpu.atom_set_value %t, "metadata", %words
    %a = numba_cute.mma_make_fragment_a %t, ((2, 2, 2), 1, 2)
    %b = numba_cute.mma_make_fragment_b %t, ((2, 2, 2), 1, 2)
    %c = numba_cute.mma_make_fragment_c %t, ((2, 2), 1, 1)
    numba_cute.gemm %set, %c, %a, %b, %c
    // CHECK:      %words_1 = numba_cute.nvgpu.atom_get_value %set, "metadata"
    // CHECK-NEXT: [[W:%words_[0-9]+]] = numba_cute.slice %words_1, (_, 0, 0)
    // CHECK-NEXT: [[A:%atom_[0-9]+]] = numba_cute.nvgpu.atom_set_value %set, "metadata", [[W]]
    // CHECK:      numba_cute.nvgpu.warp_mma_sparse {{.*}}, [[A]] :
    // CHECK-NEXT: [[V:%words_[0-9]+]] = numba_cute.slice %words_1, (_, 0, 1)
    // CHECK-NEXT: [[B:%atom_[0-9]+]] = numba_cute.nvgpu.atom_set_value %set, "metadata", [[V]]
    // CHECK:      numba_cute.nvgpu.warp_mma_sparse {{.*}}, [[B]] :
    func.return
  }
}
