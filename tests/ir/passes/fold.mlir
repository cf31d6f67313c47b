// PASS: fold
// What is known when a kernel is compiled is written where it is used, or as `cute.static`; what is not stays.

// CHECK: func.func @kernel(%n: i32)
builtin.module attributes {cute.target = "sm_90a"} {
  func.func @kernel(%n: i32) attributes {cute.kernel} {
    %shape = cute.make_shape 4, 1
    %stride = cute.make_stride 1, 0
    %l = cute.make_layout %shape, stride = %stride
    // CHECK-NEXT: %l = cute.static : !cute.layout<(4,1), (1,0)>
    %c = cute.coalesce %l
    %s = cute.size %c
    %d = cute.make_layout (%n, %s)
    // CHECK-NEXT: %d = cute.make_layout (%n, 4) : !cute.layout<(?,4), (1,?)>
    %e = cute.size %d
    // CHECK-NEXT: %e = cute.size %d
    %r = cute.make_rmem_tensor %l, !f32
    // CHECK-NEXT: %r = cute.make_rmem_tensor %l, !f32
    %p = cute.rank %d
    cute.store_element %r, (0, 0), 1.0
    // CHECK-NEXT: cute.store_element %r, (0, 0), 1.0
    %atom = cute_nvgpu.make_mma_atom !f16, !f16, !f32, [64, 64, 16], "SM90"
    %t = cute.make_tiled_mma %atom, (1, 1, 1)
    // CHECK-NEXT: %t = cute.static : !cute_nvgpu.tiled_mma<!cute_nvgpu.mma_atom<!f16,!f16,!f32,[64,64,16],SM90>, (1,1,1):(0,0,0)>
    %a = cute.TiledMma.get_slice %t, %n
    // CHECK-NEXT: %a = cute.TiledMma.get_slice %t, %n
    func.return
    // CHECK-NEXT: func.return
  }
}
