// PASS: lower-to-nvgpu
// A product is an instruction for each step; the first of each adds only if the atom says so.

builtin.module attributes {cute.target = "sm_80"} {
  func.func @kernel() attributes {cute.kernel} {
    %atom = cute_nvgpu.make_mma_atom !f16, !f16, !f32, [16, 8, 16], "SM80"
    %t = cute.make_tiled_mma %atom, (1, 1, 1)
    %a = cute.mma_make_fragment_a %t, ((2, 2, 2), 2, 2)
    %b = cute.mma_make_fragment_b %t, ((2, 2), 1, 2)
    %c = cute.mma_make_fragment_c %t, ((2, 2), 2, 1)
    %d = cute.mma_make_fragment_c %t, ((2, 2), 2, 1)

    cute.gemm %t, %c, %a, %b, %c
    // CHECK:      %a_1 = cute.slice %a, (_, 0, 0)
    // CHECK-NEXT: %b_1 = cute.slice %b, (_, 0, 0)
    // CHECK-NEXT: %c_1 = cute.slice %c, (_, 0, 0)
    // CHECK-NEXT: cute_nvgpu.warp_mma_f16bf16 %a_1, %b_1, %c_1, %t
    // CHECK-NEXT: %a_2 = cute.slice %a, (_, 1, 0)
    // CHECK-NEXT: %c_2 = cute.slice %c, (_, 1, 0)
    // CHECK-NEXT: cute_nvgpu.warp_mma_f16bf16 %a_2, %b_1, %c_2, %t
    // CHECK-NEXT: %a_3 = cute.slice %a, (_, 0, 1)
    // CHECK-NEXT: %b_2 = cute.slice %b, (_, 0, 1)
    // CHECK-NEXT: cute_nvgpu.warp_mma_f16bf16 %a_3, %b_2, %c_1, %t
    // CHECK-NEXT: %a_4 = cute.slice %a, (_, 1, 1)
    // CHECK-NEXT: cute_nvgpu.warp_mma_f16bf16 %a_4, %b_2, %c_2, %t

    %fresh = cute_nvgpu.atom_set_value %t, "accum_c", false
    cute.gemm %fresh, %d, %a, %b, %c
    // CHECK-NEXT: %fresh = cute_nvgpu.atom_set_value %t, "accum_c", false
    // CHECK-NEXT: cute_nvgpu.mma_begin %fresh, %d, %c
    // CHECK:      cute_nvgpu.warp_mma_f16bf16 {{%a_[0-9]+}}, {{%b_[0-9]+}}, {{%d_[0-9]+}}, %fresh
    // CHECK:      cute_nvgpu.warp_mma_f16bf16 {{%a_[0-9]+}}, {{%b_[0-9]+}}, {{%d_[0-9]+}}, %fresh
    // CHECK-NEXT: %atom_1 = cute_nvgpu.atom_set_value %fresh, "accum_c", true
    // CHECK:      cute_nvgpu.warp_mma_f16bf16 {{%a_[0-9]+}}, {{%b_[0-9]+}}, {{%d_[0-9]+}}, %atom_1
    // CHECK:      cute_nvgpu.warp_mma_f16bf16 {{%a_[0-9]+}}, {{%b_[0-9]+}}, {{%d_[0-9]+}}, %atom_1
    // CHECK-NEXT: func.return
    func.return
  }
}
