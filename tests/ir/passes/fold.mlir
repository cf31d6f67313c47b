// PASS: fold
// What is known when a kernel is compiled is written where it is used, or as `numba_cute.static`; what is not stays.

// CHECK: func.func @kernel(%n: i32)
builtin.module attributes {numba_cute.target = "sm_90a"} {
  func.func @kernel(%n: i32) attributes {numba_cute.kernel} {
    %shape = numba_cute.make_shape 4, 1
    %stride = numba_cute.make_stride 1, 0
    %l = numba_cute.make_layout %shape, stride = %stride
    // CHECK-NEXT: %l = numba_cute.static : !cute.layout<"(4,1):(1,0)">
    %c = numba_cute.coalesce %l
    %s = numba_cute.size %c
    %d = numba_cute.make_layout (%n, %s)
    // CHECK-NEXT: %d = numba_cute.make_layout (%n, 4) : !cute.layout<"(?,4):(1,?)">
    %e = numba_cute.size %d
    // CHECK-NEXT: %e = numba_cute.size %d
    %r = numba_cute.make_rmem_tensor %l, !f32
    // CHECK-NEXT: %r = numba_cute.make_rmem_tensor %l, !f32
    %p = numba_cute.rank %d
    numba_cute.store_element %r, (0, 0), 1.0
    // CHECK-NEXT: numba_cute.store_element %r, (0, 0), 1.0
    %atom = numba_cute.nvgpu.make_mma_atom !f16, !f16, !f32, [64, 64, 16], "SM90"
    %t = numba_cute.make_tiled_mma %atom, (1, 1, 1)
    // CHECK-NEXT: %t = numba_cute.static : !numba_cute.nvgpu.tiled_mma<!numba_cute.nvgpu.mma_atom<!f16,!f16,!f32,[64,64,16],SM90>, (1,1,1):(0,0,0)>
    %a = numba_cute.TiledMma.get_slice %t, %n
    // CHECK-NEXT: %a = numba_cute.TiledMma.get_slice %t, %n
    func.return
    // CHECK-NEXT: func.return
  }
}
