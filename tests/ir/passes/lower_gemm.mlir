// PASS: lower-to-nvgpu
// A product is an instruction for each step; the first of each adds only if the atom says so.

builtin.module attributes {numba_cute.target = "sm_80"} {
  func.func @kernel() attributes {numba_cute.kernel} {
    %atom = numba_cute.nvgpu.make_mma_atom !f16, !f16, !f32, [16, 8, 16], "SM80"
    %t = numba_cute.make_tiled_mma %atom, (1, 1, 1)
    %a = numba_cute.mma_make_fragment_a %t, ((2, 2, 2), 2, 2)
    %b = numba_cute.mma_make_fragment_b %t, ((2, 2), 1, 2)
    %c = numba_cute.mma_make_fragment_c %t, ((2, 2), 2, 1)
    %d = numba_cute.mma_make_fragment_c %t, ((2, 2), 2, 1)

    numba_cute.gemm %t, %c, %a, %b, %c
    // CHECK:      %a_1 = numba_cute.slice %a, (_, 0, 0)
    // CHECK-NEXT: %b_1 = numba_cute.slice %b, (_, 0, 0)
    // CHECK-NEXT: %c_1 = numba_cute.slice %c, (_, 0, 0)
    // CHECK-NEXT: numba_cute.nvgpu.warp_mma_f16bf16 %a_1, %b_1, %c_1, %t
    // CHECK-NEXT: %a_2 = numba_cute.slice %a, (_, 1, 0)
    // CHECK-NEXT: %c_2 = numba_cute.slice %c, (_, 1, 0)
    // CHECK-NEXT: numba_cute.nvgpu.warp_mma_f16bf16 %a_2, %b_1, %c_2, %t
    // CHECK-NEXT: %a_3 = numba_cute.slice %a, (_, 0, 1)
    // CHECK-NEXT: %b_2 = numba_cute.slice %b, (_, 0, 1)
    // CHECK-NEXT: numba_cute.nvgpu.warp_mma_f16bf16 %a_3, %b_2, %c_1, %t
    // CHECK-NEXT: %a_4 = numba_cute.slice %a, (_, 1, 1)
    // CHECK-NEXT: numba_cute.nvgpu.warp_mma_f16bf16 %a_4, %b_2, %c_2, %t

    %fresh = numba_cute.nvgpu.atom_set_value %t, "accum_c", false
    numba_cute.gemm %fresh, %d, %a, %b, %c
    // CHECK-NEXT: %fresh = numba_cute.nvgpu.atom_set_value %t, "accum_c", false
    // CHECK-NEXT: numba_cute.nvgpu.mma_begin %fresh, %d, %c
    // CHECK:      numba_cute.nvgpu.warp_mma_f16bf16 {{%a_[0-9]+}}, {{%b_[0-9]+}}, {{%d_[0-9]+}}, %fresh
    // CHECK:      numba_cute.nvgpu.warp_mma_f16bf16 {{%a_[0-9]+}}, {{%b_[0-9]+}}, {{%d_[0-9]+}}, %fresh
    // CHECK-NEXT: %atom_1 = numba_cute.nvgpu.atom_set_value %fresh, "accum_c", true
    // CHECK:      numba_cute.nvgpu.warp_mma_f16bf16 {{%a_[0-9]+}}, {{%b_[0-9]+}}, {{%d_[0-9]+}}, %atom_1
    // CHECK:      numba_cute.nvgpu.warp_mma_f16bf16 {{%a_[0-9]+}}, {{%b_[0-9]+}}, {{%d_[0-9]+}}, %atom_1
    // CHECK-NEXT: func.return
    func.return
  }
}
