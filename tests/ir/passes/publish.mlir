// PASS: publish
// What the published dialect says the same is written as it has it; what it does not say stays a call.

// CHECK: func.func @kernel(%out: !cute.memref<f32, gmem, "(64):(1)">, %n: i32)
builtin.module attributes {numba_cute.target = "sm_90a"} {
  func.func @kernel(%out: !cute.memref<f32, gmem, "(64):(1)">, %n: i32) attributes {numba_cute.kernel} {
    %l = numba_cute.make_layout (4, %n), stride = (%n, 1)
    // CHECK-NEXT: %shape = cute.make_shape(%n) : (i32) -> !cute.shape<"(4,?)">
    // CHECK-NEXT: %stride = cute.make_stride(%n) : (i32) -> !cute.stride<"(?,1)">
    // CHECK-NEXT: %l = cute.make_layout(%shape, %stride) : (!cute.shape<"(4,?)">, !cute.stride<"(?,1)">) -> !cute.layout<"(4,?):(?,1)">
    %c = numba_cute.coalesce %l
    // CHECK-NEXT: %c = cute.coalesce(%l)
    %x = numba_cute.load_element %out, %n
    // CHECK-NEXT: %coord = cute.make_coord(%n) : (i32) -> !cute.coord<"?">
    // CHECK-NEXT: %x = cute.memref.load(%out, %coord) : (!cute.memref<f32, gmem, "(64):(1)">, !cute.coord<"?">) -> f32
    numba_cute.store_element %out, 3, %x
    // CHECK-NEXT: %coord_1 = cute.make_coord() : () -> !cute.coord<"3">
    // CHECK-NEXT: cute.memref.store(%out, %coord_1, %x)
    %v = numba_cute.Tensor.load %out
    // CHECK-NEXT: %v = numba_cute.Tensor.load %out : !numba_cute.vector<f32, (64)>
    func.return
    // CHECK-NEXT: func.return
  }
}
