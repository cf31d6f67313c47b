// PASS: lower-to-ptx
// An instruction is the row that it issues, with operands and static parameters; what comes before is arithmetic.

builtin.module attributes {numba_cute.target = "sm_90a"} {
  func.func @kernel(%phase: i32, %rank: i32) attributes {numba_cute.kernel} {
    %smem = numba_cute.utils.SmemAllocator
    %bar = numba_cute.utils.SmemAllocator.allocate_array %smem, !i64

    numba_cute.nvgpu.mbarrier_init %bar, 128
    // CHECK:      [[N:%[0-9]+]] = arith.constant 128 : i32
    // CHECK-NEXT: [[AT:%[0-9]+]] = numba_cute.get_attr %bar, "address" : i32
    // CHECK-NEXT: [[U:%[0-9]+]] = numba_cute.cast [[N]] : i32 -> ui32
    // CHECK-NEXT: numba_cute.nvgpu.ptx "mbarrier_init", bar = [[AT]], count = [[U]]

    numba_cute.nvgpu.mbarrier_wait %bar, %phase
    // CHECK:      [[P:%[0-9]+]] = numba_cute.cast %phase : i32 -> ui32
    // CHECK-NEXT: numba_cute.nvgpu.ptx "mbarrier_wait_parity", {{.*}}, {{.*}} = [[P]]

    numba_cute.arch.mbarrier_arrive %bar, %rank
    // CHECK:      [[PEER:%[0-9]+]] = numba_cute.nvgpu.ptx "mapa", {{.*}} : ui32
    // CHECK:      numba_cute.nvgpu.ptx "mbarrier_arrive", bar = [[PEER]], {{.*}}space = "cluster"

    numba_cute.nvgpu.warpgroup.wait_group 1
    // CHECK:      numba_cute.nvgpu.ptx "wgmma_wait_group", n = 1

    // A row of shared memory, and the registers that it is loaded to.
    %s = numba_cute.utils.SmemAllocator.allocate_tensor %smem, !f16, 8, 128
    %r = numba_cute.make_rmem_tensor 8, !f16
    %x4 = numba_cute.nvgpu.make_copy_atom "LdMatrix8x8x16bOp", !f16, num_matrices = 4
    numba_cute.nvgpu.ldmatrix %x4, %s, %r
    // CHECK:      [[F:%[0-9]+]] = numba_cute.get_attr {{%[0-9]+}}, "address" : !numba_cute.registers<f16, 8>
    // CHECK:      [[S:%[0-9]+]] = numba_cute.get_attr {{%[0-9]+}}, "address" : i32
    // CHECK-NEXT: numba_cute.nvgpu.ptx "ldmatrix", dst = ([[F]], !f16, 0, 8), addr = [[S]], num = 4, trans = false

    // A branch of an instruction is one of scf; a plain access is the machine's.
    %u = numba_cute.nvgpu.make_copy_atom "CopyUniversalOp", !f16, 128
    %zero = arith.constant 0 : i32
    %p = arith.cmpi eq, %rank, %zero : i32
    numba_cute.nvgpu.copy_universal %u, %s, %r, %p
    // CHECK:      scf.if %p
    // CHECK:      numba_cute.nvgpu.machine.copy_to_regs "smem", {{%[0-9]+}}, ({{%[0-9]+}}, !f16, 0, 8), 16
    // CHECK-NEXT: }

    // What it gives is used in its place.
    %atom = numba_cute.nvgpu.make_mma_atom !f32, !f32, !f32, [1, 1, 1]
    %one = numba_cute.make_rmem_tensor 1, !f32
    %c = numba_cute.nvgpu.universal_mma %one, %one, %one, %atom
    numba_cute.store_element %c, 0, 1.0
    // CHECK:      numba_cute.nvgpu.machine.elementwise "fma", !f32
    // CHECK:      numba_cute.store_element %one, 0, 1.0
    // CHECK-NEXT: func.return
    func.return
  }
}
