# SPDX-License-Identifier: Apache-2.0
"""Modules as the CuTe DSL prints them, written for these tests."""

ELEMENTWISE = """!copy_simt = !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f32>, layout_copy_tv = <"((4,2),(2,2)):((8,2),(4,1))">, tiler_mn = <"[4:1;8:1]">>
!memref_gmem_f32_ = !cute.memref<f32, gmem, align<16>, "((4,8),(?,?)):((?{i64 div=4},1),(?{i64 div=16},8))">
!memref_gmem_f32_1 = !cute.memref<f32, gmem, align<16>, "(4,8):(?{i64 div=4},1)">
!memref_gmem_f32_2 = !cute.memref<f32, gmem, "((1,(2,2)),1,1):((0,(1,?{i64 div=4})),0,0)">
!memref_gmem_f32_3 = !cute.memref<f32, gmem, "((1,(2,2)),(1,1)):((0,(1,?{i64 div=4})),(0,0))">
!memref_gmem_f32_4 = !cute.memref<f32, gmem, align<16>, "(?,?{div=4}):(?{i64 div=4},1)">
!memref_rmem_f32_ = !cute.memref<f32, rmem, align<32>, "((1,(2,2)),1,1):((0,(1,2)),0,0)">
!memref_rmem_f32_1 = !cute.memref<f32, rmem, align<32>, "((1,(2,2)),(1,1)):((0,(1,2)),(0,0))">
!memref_rmem_i8_ = !cute.memref<i8, rmem, align<32>, "((1,(2,2)),1,1):((0,(1,2)),0,0)">
!memref_rmem_i8_1 = !cute.memref<i8, rmem, align<32>, "((1,(2,2)),(1,1)):((0,(1,2)),(0,0))">
module attributes {gpu.container_module} {
  gpu.module @kernels {
    cuda.kernel @kernel_cutlass_add_twice_tensorptrf32(%arg0: !memref_gmem_f32_, %arg1: !memref_gmem_f32_, %arg2: !cute.coord_tensor<"(0,0)", "((4,8),(?,?)):((1@0,1@1),(4@0,8@1))">, %arg3: i32, %arg4: i32, %arg5: !cute.layout<"(2,4):(4,1)">) attributes {cute.kernel, gpu.kernel, nvvm.reqntid = array<i32: 8, 1, 1>} {
      %iter = cute.get_iter(%arg0) : !memref_gmem_f32_
      %0 = nvvm.read.ptx.sreg.tid.x : i32
      %1 = nvvm.read.ptx.sreg.ctaid.x : i32
      %coord = cute.make_coord(%1) : (i32) -> !cute.coord<"((_,_),?)">
      %slice = cute.slice(%arg0, %coord) : !memref_gmem_f32_, !cute.coord<"((_,_),?)">
      %coord_0 = cute.make_coord(%1) : (i32) -> !cute.coord<"((_,_),?)">
      %slice_1 = cute.slice(%arg1, %coord_0) : !memref_gmem_f32_, !cute.coord<"((_,_),?)">
      %coord_2 = cute.make_coord(%1) : (i32) -> !cute.coord<"((_,_),?)">
      %slice_3 = cute.slice(%arg2, %coord_2) : !cute.coord_tensor<"(0,0)", "((4,8),(?,?)):((1@0,1@1),(4@0,8@1))">, !cute.coord<"((_,_),?)">
      %atom = cute.make_atom() : () -> !cute_nvgpu.atom.universal_copy<f32>
      %2 = cute.make_tiled_copy(%atom) : !copy_simt
      %coord_4 = cute.make_coord(%0) : (i32) -> !cute.coord<"?">
      %src_partitioned = cute.tiled.copy.partition_S(%2, %slice, %coord_4) : (!copy_simt, !memref_gmem_f32_1, !cute.coord<"?">) -> !memref_gmem_f32_2
      %coord_5 = cute.make_coord(%0) : (i32) -> !cute.coord<"?">
      %dst_partitioned = cute.tiled.copy.partition_D(%2, %slice_1, %coord_5) : (!copy_simt, !memref_gmem_f32_1, !cute.coord<"?">) -> !memref_gmem_f32_2
      %coord_6 = cute.make_coord(%0) : (i32) -> !cute.coord<"?">
      %src_partitioned_7 = cute.tiled.copy.partition_S(%2, %slice_3, %coord_6) : (!copy_simt, !cute.coord_tensor<"(?{div=4},?{div=8})", "(4,8):(1@0,1@1)">, !cute.coord<"?">) -> !cute.coord_tensor<"(?,?)", "((1,(2,2)),1,1):((0,(1@1,1@0)),0,0)">
      %lay = cute.get_layout(%src_partitioned) : !memref_gmem_f32_2
      %3 = cute.make_layout_like(%lay) : !cute.layout<"((1,(2,2)),1,1):((0,(1,?{i64 div=4})),0,0)"> to !cute.layout<"((1,(2,2)),1,1):((0,(1,2)),0,0)">
      %rmem = cute.memref.alloca(%3) : !memref_rmem_f32_
      %iter_8 = cute.get_iter(%rmem) : !memref_rmem_f32_
      %shape = cute.make_shape() : () -> !cute.shape<"((1,(2,2)),1,1)">
      %lay_9 = cute.make_layout(%shape) : !cute.layout<"((1,(2,2)),1,1):((0,(1,2)),0,0)">
      %rmem_10 = cute.memref.alloca(%lay_9) : !memref_rmem_i8_
      %c0_i32 = arith.constant 0 : i32
      %c4_i32 = arith.constant 4 : i32
      %c1_i32 = arith.constant 1 : i32
      %4 = scf.for %arg6 = %c0_i32 to %c4_i32 step %c1_i32 iter_args(%arg7 = %rmem_10) -> (!memref_rmem_i8_)  : i32 {
        %coord_20 = cute.make_coord(%arg6) : (i32) -> !cute.coord<"?">
        %slice_21 = cute.slice(%src_partitioned_7, %coord_20) : !cute.coord_tensor<"(?,?)", "((1,(2,2)),1,1):((0,(1@1,1@0)),0,0)">, !cute.coord<"?">
        %iter_22 = cute.get_iter(%slice_21) : !cute.coord_tensor<"(?,?)", "():()">
        %tup = cute.deref_arith_tuple_iter(%iter_22) : !cute.arith_tuple_iter<"(?,?)">
        %e0, %e1 = cute.get_leaves(%tup) : !cute.int_tuple<"(?,?)">
        %coord_23 = cute.make_coord(%e0, %e1) : (!cute.int_tuple<"?">, !cute.int_tuple<"?">) -> !cute.coord<"(?,?)">
        %coord_24 = cute.make_coord(%arg3, %arg4) : (i32, i32) -> !cute.coord<"(?,?)">
        %7 = cute.elem_less(%coord_23, %coord_24) : !cute.coord<"(?,?)">, !cute.coord<"(?,?)">
        %8 = arith.extui %7 : i1 to i8
        %coord_25 = cute.make_coord(%arg6) : (i32) -> !cute.coord<"?">
        cute.memref.store(%arg7, %coord_25, %8) : (!memref_rmem_i8_, !cute.coord<"?">, i8) -> ()
        scf.yield %arg7 : !memref_rmem_i8_
      }
      %iter_11 = cute.get_iter(%src_partitioned) : !memref_gmem_f32_2
      %lay_12 = cute.get_layout(%src_partitioned) : !memref_gmem_f32_2
      %shape_13 = cute.make_shape() : () -> !cute.shape<"1">
      %lay_14 = cute.make_layout(%shape_13) : !cute.layout<"1:0">
      %append = cute.append_to_rank<2> (%lay_12, %lay_14) : !cute.layout<"((1,(2,2)),1,1):((0,(1,?{i64 div=4})),0,0)">, !cute.layout<"1:0">
      %view = cute.make_view(%iter_11, %append) : !memref_gmem_f32_2
      %grouped = cute.group_modes(%view) <1, 3> : (!memref_gmem_f32_2) -> !memref_gmem_f32_3
      %grouped_15 = cute.group_modes(%rmem) <1, 3> : (!memref_rmem_f32_) -> !memref_rmem_f32_1
      %grouped_16 = cute.group_modes(%4) <1, 3> : (!memref_rmem_i8_) -> !memref_rmem_i8_1
      cute.copy(%atom, %grouped, %grouped_15, %grouped_16) : (!cute_nvgpu.atom.universal_copy<f32>, !memref_gmem_f32_3, !memref_rmem_f32_1, !memref_rmem_i8_1)
      %5 = cute.memref.load_vec(%rmem) : (!memref_rmem_f32_) -> vector<4xf32>
      %6 = arith.addf %5, %5 : vector<4xf32>
      cute.memref.store_vec(%6, %rmem) : (vector<4xf32>, !memref_rmem_f32_) -> ()
      %grouped_17 = cute.group_modes(%dst_partitioned) <1, 3> : (!memref_gmem_f32_2) -> !memref_gmem_f32_3
      cute.copy(%atom, %grouped_15, %grouped_17, %grouped_16) : (!cute_nvgpu.atom.universal_copy<f32>, !memref_rmem_f32_1, !memref_gmem_f32_3, !memref_rmem_i8_1)
      return
    }
  }
  func.func @cutlass_add_twice_FakeTensor(%arg0: !memref_gmem_f32_4, %arg1: !memref_gmem_f32_4, %arg2: !cuda.stream) -> i32 attributes {llvm.emit_c_interface} {
    %tile = cute.make_tile() : () -> !cute.tile<"[4:1;8:1]">
    %div = cute.zipped_divide(%arg0, %tile) : !memref_gmem_f32_4, !cute.tile<"[4:1;8:1]">
    %tile_0 = cute.make_tile() : () -> !cute.tile<"[4:1;8:1]">
    %div_1 = cute.zipped_divide(%arg1, %tile_0) : !memref_gmem_f32_4, !cute.tile<"[4:1;8:1]">
    %lay = cute.get_layout(%arg1) : !memref_gmem_f32_4
    %0 = cute.get_shape(%lay) : (!cute.layout<"(?,?{div=4}):(?{i64 div=4},1)">) -> !cute.shape<"(?,?{div=4})">
    %e0, %e1 = cute.get_leaves(%0) : !cute.shape<"(?,?{div=4})">
    %itup = cute.to_int_tuple(%e0) : !cute.shape<"?"> to !cute.int_tuple<"?">
    %1 = cute.get_scalars(%itup) : !cute.int_tuple<"?">
    %itup_2 = cute.to_int_tuple(%e1) : !cute.shape<"?{div=4}"> to !cute.int_tuple<"?{div=4}">
    %2 = cute.get_scalars(%itup_2) : !cute.int_tuple<"?{div=4}">
    %shape = cute.make_shape(%1, %2) : (i32, i32) -> !cute.shape<"(?,?)">
    %3 = cute.make_identity_tensor(%shape) : !cute.coord_tensor<"(0,0)", "(?,?):(1@0,1@1)">
    %tile_3 = cute.make_tile() : () -> !cute.tile<"[4:1;8:1]">
    %div_4 = cute.zipped_divide(%3, %tile_3) : !cute.coord_tensor<"(0,0)", "(?,?):(1@0,1@1)">, !cute.tile<"[4:1;8:1]">
    %4 = cute.static : !cute.layout<"(2,4):(4,1)">
    %sz = cute.size(%div_1) <{mode = [1]}> : (!memref_gmem_f32_) -> !cute.int_tuple<"?">
    %e0_5 = cute.get_leaves(%sz) : !cute.int_tuple<"?">
    %5 = cute.get_scalars(%e0_5) : !cute.int_tuple<"?">
    %c8_i32 = arith.constant 8 : i32
    %c1_i32 = arith.constant 1 : i32
    %c0_i32 = arith.constant 0 : i32
    %c0_i64 = arith.constant 0 : i64
    %6 = cuda.launch_cfg.create<max_attrs = 17 : i32> (blockDim = (%c8_i32, %c1_i32, %c1_i32), dynamicSmemBytes = %c0_i64, gridDim = (%5, %c1_i32, %c1_i32), stream = %arg2) : i32, i32, i32, i64, i32, i32, i32, !cuda.stream -> !cuda.launch_cfg<max_attrs = 17>
    cuda.launch_cfg.cooperative[%6] %c0_i32 : !cuda.launch_cfg<max_attrs = 17>, i32
    %7 = cuda.launch_ex @kernels::@kernel_cutlass_add_twice_tensorptrf32<%6> (%div, %div_1, %div_4, %1, %2, %4) {assume_kernel_attr = #cuda.assume_kernel_attr<true>} : !cuda.launch_cfg<max_attrs = 17>, (!memref_gmem_f32_, !memref_gmem_f32_, !cute.coord_tensor<"(0,0)", "((4,8),(?,?)):((1@0,1@1),(4@0,8@1))">, i32, i32, !cute.layout<"(2,4):(4,1)">) -> !cuda.result
    %8 = cuda.cast %7 : !cuda.result -> i32
    cuda.return_if_error %8 : i32
    return %c0_i32 : i32
  }
}
"""  # noqa: E501


def kernel(body: str, parameters: str = "") -> str:
    """Make a module of a kernel's body."""
    return f"""module attributes {{gpu.container_module}} {{
  gpu.module @kernels {{
    cuda.kernel @kernel({parameters}) attributes {{cute.kernel}} {{
{body}
      return
    }}
  }}
}}
"""


OUT = '!cute.memref<i32, gmem, align<16>, "(?):(1)">'
COUNTING = kernel(
    """      %c0_i32 = arith.constant 0 : i32
      %c1_i32 = arith.constant 1 : i32
      %c3_i32 = arith.constant 3 : i32
      %0 = nvvm.read.ptx.sreg.tid.x : i32
      %1:2 = scf.for %arg2 = %c0_i32 to %arg1 step %c1_i32 iter_args(%arg3 = %0, %arg4 = %c1_i32) -> (i32, i32)  : i32 {
        %5 = arith.addi %arg3, %arg4 : i32
        scf.yield %arg4, %5 : i32, i32
      }
      %2 = scf.while (%arg2 = %1#1) : (i32) -> i32 {
        %5 = arith.cmpi sgt, %arg2, %c3_i32 : i32
        scf.condition(%5) %arg2 : i32
      } do {
      ^bb0(%arg2: i32):
        %5 = arith.remsi %arg2, %c3_i32 : i32
        %6 = arith.cmpi eq, %5, %c0_i32 : i32
        %7 = scf.if %6 -> (i32) {
          %8 = arith.floordivsi %arg2, %c3_i32 : i32
          scf.yield %8 : i32
        } else {
          %8 = arith.subi %arg2, %c1_i32 : i32
          scf.yield %8 : i32
        }
        scf.yield %7 : i32
      }
      %true = arith.constant true
      scf.if %true {
        %coord = cute.make_coord(%0) : (i32) -> !cute.coord<"?">
        %5 = arith.muli %1#0, %c3_i32 : i32
        %6 = arith.addi %2, %5 : i32
        cute.memref.store(%arg0, %coord, %6) : (OUT, !cute.coord<"?">, i32) -> ()
      }""".replace("OUT", OUT),
    f"%arg0: {OUT}, %arg1: i32",
)

FLOATS = '!cute.memref<f32, gmem, align<16>, "(?):(1)">'
QUOTIENT = kernel(
    """      %0 = nvvm.read.ptx.sreg.tid.x : i32
      %coord = cute.make_coord(%0) : (i32) -> !cute.coord<"?">
      %1 = cute.memref.load(%arg0, %coord) : (MEM, !cute.coord<"?">) -> f32
      %2 = arith.addf %1, %arg1 : f32
      %3 = arith.divf %2, %arg2 : f32
      %4 = arith.subf %arg1, %3 : f32
      %5 = arith.negf %4 : f32
      %6 = math.sqrt %5 : f32
      cute.memref.store(%arg0, %coord, %6) : (MEM, !cute.coord<"?">, f32) -> ()""".replace("MEM", FLOATS),
    f"%arg0: {FLOATS}, %arg1: f32, %arg2: f32",
)
NESTED = '!cute.memref<f32, gmem, align<16>, "((2,2),2):((1,2),4)">'
BYTES = '!cute.memref<i8, gmem, align<16>, "(8):(1)">'
VECTORS = kernel(
    """      %0 = cute.memref.load_vec(%arg0) : (NESTED) -> vector<8xf32>
      %1 = vector.broadcast %arg2 : f32 to vector<8xf32>
      %2 = arith.mulf %1, %0 : vector<8xf32>
      %3 = vector.extract_strided_slice %2 {offsets = [4], sizes = [4], strides = [1]} : vector<8xf32> to vector<4xf32>
      %4 = arith.constant dense<0.0> : vector<8xf32>
      %5 = vector.insert_strided_slice %3, %4 {offsets = [0], strides = [1]} : vector<4xf32> into vector<8xf32>
      %6 = vector.insert_strided_slice %3, %5 {offsets = [4], strides = [1]} : vector<4xf32> into vector<8xf32>
      %7 = arith.addf %6, %2 : vector<8xf32>
      cute.memref.store_vec(%7, %arg0) : (vector<8xf32>, NESTED) -> ()
      %8 = arith.fptosi %0 : vector<8xf32> to vector<8xi4>
      %9 = vector.bitcast %8 : vector<8xi4> to vector<4xi8>
      %10 = vector.bitcast %9 : vector<4xi8> to vector<1xi32>
      %11 = vector.extract %10[0] : i32 from vector<1xi32>
      %12 = arith.addi %11, %arg3 : i32
      %13 = llvm.bitcast %12 : i32 to vector<4xi8>
      %14 = vector.bitcast %13 : vector<4xi8> to vector<2xi16>
      %15 = vector.bitcast %14 : vector<2xi16> to vector<4xi8>
      %16 = vector.from_elements %arg3, %11 : vector<2xi32>
      %17 = vector.bitcast %16 : vector<2xi32> to vector<8xi8>
      %18 = vector.insert_strided_slice %15, %17 {offsets = [0], strides = [1]} : vector<4xi8> into vector<8xi8>
      cute.memref.store_vec(%18, %arg1) : (vector<8xi8>, BYTES) -> ()""".replace("NESTED", NESTED).replace(
        "BYTES", BYTES
    ),
    f"%arg0: {NESTED}, %arg1: {BYTES}, %arg2: f32, %arg3: i32",
)
RELEASED = """      %0 = nvvm.read.ptx.sreg.ctaid.x : i32
      %c0_i32 = arith.constant 0 : i32
      %c1_i32 = arith.constant 1 : i32
      %1 = scf.while (%arg1 = %0) : (i32) -> i32 {
        %2 = arith.cmpi sgt, %arg1, %c0_i32 : i32
        scf.condition(%2) %arg1 : i32
      } do {
      ^bb0(%arg1: i32):
        %2 = LEADS
        scf.if %2 {
          nvvm.mbarrier.txn %arg0, %c1_i32 {kind = #nvvm.mbar_txn_kind<arrive>} : !llvm.ptr<3>, i32
        }
        %3 = arith.subi %arg1, %c1_i32 : i32
        scf.yield %3 : i32
      }"""
CLUSTERS = kernel(
    """      %ptr = cute.recast_iter(%arg0) : !cute.ptr<i32, smem, align<16>> to !cute.ptr<i128, smem>
      %lay = cute.static : !cute.layout<"1:0">
      %view = cute.make_view(%ptr, %lay) : !cute.memref<i128, smem, "1:0">
      %0 = cute.memref.load_vec(%view) : (!cute.memref<i128, smem, "1:0">) -> vector<1xi128>
      %1 = vector.extract %0[0] : i128 from vector<1xi128>
      %2 = nvvm.clusterlaunchcontrol.query_cancel.is_canceled %1 : i1
      BETWEEN
      %3 = nvvm.clusterlaunchcontrol.query_cancel.get_first_ctaid.x %1 : i32
      %coord = cute.make_coord(%3) : (i32) -> !cute.coord<"?">
      %4 = arith.extui %2 : i1 to i32
      cute.memref.store(%arg1, %coord, %4) : (OUT, !cute.coord<"?">, i32) -> ()""".replace("OUT", OUT),
    f"%arg0: !cute.ptr<i32, smem, align<16>>, %arg1: {OUT}",
)
PRINTING = """module attributes {gpu.container_module} {
  gpu.module @kernels {
  }
  func.func @cutlass_show(%arg0: MEM) attributes {llvm.emit_c_interface} {
    cute.print_view(%arg0) {is_signed = false, verbose = false} : MEM
    return
  }
}
""".replace("MEM", '!cute.memref<f32, generic, "(2,3):(3,1)">')
