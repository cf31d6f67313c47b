!copy_ldtm_32_ = !cute.tiled_copy<!cute_nvgpu.atom.tmem_load<f32, 32 DP, 32 bit, x128>, layout_copy_tv = <"((32,4),(128,32)):((0,1),(4,512))">, tiler_mn = <"[(512,32):(32,1);1:0;1:0]">>
!copy_s2t_sfa_ = !cute.tiled_copy<!cute_nvgpu.atom.s2t_copy<f8E8M0FNU, 32 DP, 128 bit, 1 cta, x4>, layout_copy_tv = <"(1,(32,(4,4),4)):(0,(1,(32,128),512))">, tiler_mn = <"[(32,4,16):(1,512,32);1:0;1:0]">>
!memref_gmem_f16_ = !cute.memref<f16, gmem, align<16>, "(?{div=32},?{div=16},?):(?{div=16},1,?{div=512})">
!memref_gmem_f16_1 = !cute.memref<f16, gmem, align<16>, "(128,128,?,?,?):(?{div=16},1,?{div=2048},128,?{div=512})">
!memref_gmem_f16_2 = !cute.memref<f16, gmem, align<16>, "((128,128),1,1,?,?,?):((?{div=16},1),0,0,?{div=2048},128,?{div=512})">
!memref_gmem_f16_3 = !cute.memref<f16, gmem, align<16>, "((128,1),1,1,1,?,?,?):((1,0),0,0,0,?{div=2048},128,?{div=512})">
!memref_gmem_f16_4 = !cute.memref<f16, gmem, align<16>, "((128,1),1,1,1):((1,0),0,0,0)">
!memref_gmem_f16_5 = !cute.memref<f16, gmem, align<16>, "((128,1),(1,1,1)):((1,0),(0,0,0))">
!memref_gmem_f8E4M3FN_ = !cute.memref<f8E4M3FN, gmem, align<16>, "(?,?{div=32},?):(?{div=32},1,?{div=32})">
!memref_gmem_f8E8M0FNU_ = !cute.memref<f8E8M0FNU, gmem, align<32>, "(((32,4),?),((32,4),?),(1,?)):(((16,4),?{div=512}),((0,1),512),(0,?{div=512}))">
!memref_rmem_f16_ = !cute.memref<f16, rmem, align<32>, "((128,1),1,1,1):((1,0),0,0,0)">
!memref_rmem_f16_1 = !cute.memref<f16, rmem, align<32>, "((128,1),(1,1,1)):((1,0),(0,0,0))">
!memref_rmem_f32_ = !cute.memref<f32, rmem, align<32>, "((128,1),1,1,1):((1,0),0,0,0)">
!memref_rmem_f32_1 = !cute.memref<f32, rmem, align<32>, "((128,1),(1,1,1)):((1,0),(0,0,0))">
!memref_smem_f8E4M3FN_ = !cute.memref<f8E4M3FN, smem, align<128>, S<3,4,3>, "((128,32),1,4,2):((128,1),0,32,16384)">
!memref_smem_f8E4M3FN_1 = !cute.memref<f8E4M3FN, smem, align<128>, S<3,4,3>, "(((128,32),1,4),2):(((128,1),0,32),16384)">
!memref_smem_f8E4M3FN_2 = !cute.memref<f8E4M3FN, smem, align<128>, S<3,4,3>, "((16384,1),2):((1,0),16384)">
!memref_smem_f8E4M3FN_3 = !cute.memref<f8E4M3FN, smem, align<128>, S<3,4,3>, "((16384,1)):((1,0))">
!memref_smem_f8E4M3FN_4 = !cute.memref<f8E4M3FN, smem, align<128>, S<3,4,3>, "((16384,1),1):((1,0),0)">
!memref_smem_f8E4M3FN_5 = !cute.memref<f8E4M3FN, smem, align<128>, S<3,4,3>, "((16384,1),(1)):((1,0),(0))">
!memref_smem_f8E8M0FNU_ = !cute.memref<f8E8M0FNU, smem, align<128>, "((((32,4),1),(32,1)),1,4,2):((((16,4),0),(0,0)),0,1,512)">
!memref_smem_f8E8M0FNU_1 = !cute.memref<f8E8M0FNU, smem, align<128>, "(((((32,4),1),(32,1)),1,4),2):(((((16,4),0),(0,0)),0,1),512)">
!memref_smem_f8E8M0FNU_2 = !cute.memref<f8E8M0FNU, smem, align<128>, "((512,32),2):((1,0),512)">
!memref_smem_f8E8M0FNU_3 = !cute.memref<f8E8M0FNU, smem, align<128>, "((512,1),2):((1,0),512)">
!memref_smem_f8E8M0FNU_4 = !cute.memref<f8E8M0FNU, smem, align<128>, "((512,1)):((1,0))">
!memref_smem_f8E8M0FNU_5 = !cute.memref<f8E8M0FNU, smem, align<128>, "((512,1),1):((1,0),0)">
!memref_smem_f8E8M0FNU_6 = !cute.memref<f8E8M0FNU, smem, align<128>, "((512,1),(1)):((1,0),(0))">
!memref_smem_f8E8M0FNU_7 = !cute.memref<f8E8M0FNU, smem, align<128>, "((((32,4),1),(1,1)),1,4,2):((((16,4),0),(0,0)),0,1,512)">
!memref_smem_f8E8M0FNU_8 = !cute.memref<f8E8M0FNU, smem, align<128>, "(((32,4,4,4),1),1,1,1,2):(((16,1,4,0),0),0,0,0,512)">
!memref_tmem_f32_ = !cute.memref<f32, tmem, align<1>, "((128,128),1,1):((65536,1),0,0)">
!memref_tmem_f32_1 = !cute.memref<f32, tmem, align<16>, "((128,128),1,1):((65536,1),0,0)">
!memref_tmem_f32_2 = !cute.memref<f32, tmem, align<16>, "(((128,32),1),1,1,1):(((1,65536),0),0,0,0)">
!memref_tmem_f32_3 = !cute.memref<f32, tmem, align<16>, "(((128,32),1),(1,1,1)):(((1,65536),0),(0,0,0))">
!memref_tmem_f8E8M0FNU_ = !cute.memref<f8E8M0FNU, tmem, align<16>, "((((32,4),4),(32,1)),1,4):((((262144,4),8388608),(0,0)),0,1)">
!memref_tmem_f8E8M0FNU_1 = !cute.memref<f8E8M0FNU, tmem, align<16>, "((((32,4),4),(1,1)),1,4):((((262144,4),8388608),(0,0)),0,1)">
!memref_tmem_f8E8M0FNU_2 = !cute.memref<f8E8M0FNU, tmem, align<16>, "(((32,4,(4,4)),1),1,1,1):(((262144,1,(4,8388608)),0),0,0,0)">
!memref_tmem_f8E8M0FNU_3 = !cute.memref<f8E8M0FNU, tmem, align<16>, "(((32,4,(4,4)),1),(1,1,1)):(((262144,1,(4,8388608)),0),(0,0,0))">
!mma_ = !cute.tiled_mma<!cute_nvgpu.sm100.mma_bs<128x128x32, num_cta = 1, ab_major = (k, k), elem_type = (f8E4M3FN, f8E4M3FN, f32), sf_type = f8E8M0FNU, frag_kind = ss, vec_size = 32>, atom_layout_MNK = <"(1,1,1):(0,0,0)">, permutation_MNK = <"[_;_;_]">>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    cuda.kernel @kernel_cutlass_kernel_m_mxf8Sm100BlockScaledDenseGemmKernel_object_at__TiledMMA_ThrLayoutVMNK11110000_0(%arg0: !mma_, %arg1: !cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E4M3FN, copy_bits = 131072, tma_gbasis = <"(128,128,1):(1@1,1@0,1@2)">, tma_format = U8>, %arg2: !cute.coord_tensor<"(0,0,0)", "(?,?{div=32},?):(1@1,1@0,1@2)">, %arg3: !cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E4M3FN, copy_bits = 131072, tma_gbasis = <"(128,128,1):(1@1,1@0,1@2)">, tma_format = U8>, %arg4: !cute.coord_tensor<"(0,0,0)", "(?,?{div=32},?):(1@1,1@0,1@2)">, %arg5: !cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E8M0FNU, copy_bits = 4096, tma_gbasis = <"((2,4,32),1,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@0,1@1@1,1@1@2)">, tma_format = U16>, %arg6: !cute.coord_tensor<"(0,0,0,0)", "(((32,4),?),((32,4),?),(1,?)):(((8@0,2@0),1@1),((0,1/2@0),1@2),(0,1@3))">, %arg7: !cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E8M0FNU, copy_bits = 4096, tma_gbasis = <"((2,4,32),1,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@0,1@1@1,1@1@2)">, tma_format = U16>, %arg8: !cute.coord_tensor<"(0,0,0,0)", "(((32,4),?),((32,4),?),(1,?)):(((8@0,2@0),1@1),((0,1/2@0),1@2),(0,1@3))">, %arg9: !memref_gmem_f16_, %arg10: !cute.composed_layout<"S<3,4,3> o 0 o ((128,32),1,4,2):((128,1),0,32,16384)">, %arg11: !cute.composed_layout<"S<3,4,3> o 0 o ((128,32),1,4,2):((128,1),0,32,16384)">, %arg12: !cute.layout<"((((32,4),1),(32,1)),1,4,2):((((16,4),0),(0,0)),0,1,512)">, %arg13: !cute.layout<"((((32,4),1),(32,1)),1,4,2):((((16,4),0),(0,0)),0,1,512)">) attributes {cu_attrs = {max_dynamic_shared_size_bytes = #cuda.dev_max_shared_memory_optin, non_portable_cluster_size_allowed = 1 : i32}, cute.kernel, gpu.kernel, nvvm.reqntid = array<i32: 128, 1, 1>} {
      %iter_1 = cute.get_iter(%arg2) : !cute.coord_tensor<"(0,0,0)", "(?,?{div=32},?):(1@1,1@0,1@2)">
      %tup_2 = cute.deref_arith_tuple_iter(%iter_1) : !cute.arith_tuple_iter<"(0,0,0)">
      %e0_3, %e1_4, %e2_5 = cute.get_leaves(%tup_2) : !cute.int_tuple<"(0,0,0)">
      %iter_6 = cute.get_iter(%arg4) : !cute.coord_tensor<"(0,0,0)", "(?,?{div=32},?):(1@1,1@0,1@2)">
      %tup_7 = cute.deref_arith_tuple_iter(%iter_6) : !cute.arith_tuple_iter<"(0,0,0)">
      %e0_8, %e1_9, %e2_10 = cute.get_leaves(%tup_7) : !cute.int_tuple<"(0,0,0)">
      %iter_11 = cute.get_iter(%arg6) : !cute.coord_tensor<"(0,0,0,0)", "(((32,4),?),((32,4),?),(1,?)):(((8@0,2@0),1@1),((0,1/2@0),1@2),(0,1@3))">
      %tup_12 = cute.deref_arith_tuple_iter(%iter_11) : !cute.arith_tuple_iter<"(0,0,0,0)">
      %e0_13, %e1_14, %e2_15, %e3_16 = cute.get_leaves(%tup_12) : !cute.int_tuple<"(0,0,0,0)">
      %iter_17 = cute.get_iter(%arg8) : !cute.coord_tensor<"(0,0,0,0)", "(((32,4),?),((32,4),?),(1,?)):(((8@0,2@0),1@1),((0,1/2@0),1@2),(0,1@3))">
      %tup_18 = cute.deref_arith_tuple_iter(%iter_17) : !cute.arith_tuple_iter<"(0,0,0,0)">
      %e0_19, %e1_20, %e2_21, %e3_22 = cute.get_leaves(%tup_18) : !cute.int_tuple<"(0,0,0,0)">
      %1023 = nvvm.read.ptx.sreg.tid.x : i32
      %1024 = nvvm.read.ptx.sreg.tid.y : i32
      %1025 = nvvm.read.ptx.sreg.tid.z : i32
      %1026 = nvvm.read.ptx.sreg.ntid.x : i32
      %1027 = nvvm.read.ptx.sreg.ntid.y : i32
      %1028 = nvvm.read.ptx.sreg.ctaid.x : i32
      %1029 = nvvm.read.ptx.sreg.ctaid.y : i32
      %1030 = nvvm.read.ptx.sreg.ctaid.z : i32
      %1031 = arith.muli %1024, %1026 : i32
      %1032 = arith.addi %1023, %1031 : i32
      %1033 = arith.muli %1025, %1026 : i32
      %1034 = arith.muli %1033, %1027 : i32
      %1035 = arith.addi %1032, %1034 : i32
      %c32_i32_36 = arith.constant 32 : i32
      %1037 = arith.floordivsi %1035, %c32_i32_36 : i32
      %1038 = cute_nvgpu.arch.make_warp_uniform(%1037) : i32
      %smem_39 = cute.memref.alloca() {smem.partition_id = 0 : i32} : !cute.memref<i8, smem, align<1024>, "68608:1">
      %iter_40 = cute.get_iter(%smem_39) : !cute.memref<i8, smem, align<1024>, "68608:1">
      %int_tuple_41 = cute.make_int_tuple() : () -> !cute.int_tuple<"0">
      %ptr_42 = cute.add_offset(%iter_40, %int_tuple_41) : (!cute.ptr<i8, smem, align<1024>>, !cute.int_tuple<"0">) -> !cute.ptr<i8, smem, align<8>>
      %iter_43 = cute.recast_iter(%ptr_42) : !cute.ptr<i8, smem, align<8>> to !cute.ptr<i64, smem, align<8>>
      %int_tuple_44 = cute.make_int_tuple() : () -> !cute.int_tuple<"32">
      %ptr_45 = cute.add_offset(%iter_40, %int_tuple_44) : (!cute.ptr<i8, smem, align<1024>>, !cute.int_tuple<"32">) -> !cute.ptr<i8, smem, align<8>>
      %iter_46 = cute.recast_iter(%ptr_45) : !cute.ptr<i8, smem, align<8>> to !cute.ptr<i64, smem, align<8>>
      %int_tuple_47 = cute.make_int_tuple() : () -> !cute.int_tuple<"48">
      %ptr_48 = cute.add_offset(%iter_40, %int_tuple_47) : (!cute.ptr<i8, smem, align<1024>>, !cute.int_tuple<"48">) -> !cute.ptr<i8, smem, align<8>>
      %iter_49 = cute.recast_iter(%ptr_48) : !cute.ptr<i8, smem, align<8>> to !cute.ptr<i32, smem, align<8>>
      %int_tuple_50 = cute.make_int_tuple() : () -> !cute.int_tuple<"1024">
      %ptr_51 = cute.add_offset(%iter_40, %int_tuple_50) : (!cute.ptr<i8, smem, align<1024>>, !cute.int_tuple<"1024">) -> !cute.ptr<i8, smem, align<128>>
      %iter_52 = cute.recast_iter(%ptr_51) : !cute.ptr<i8, smem, align<128>> to !cute.ptr<f8E4M3FN, smem, align<128>, S<3,4,3>>
      %1053 = cute.composed_get_outer(%arg10) : (!cute.composed_layout<"S<3,4,3> o 0 o ((128,32),1,4,2):((128,1),0,32,16384)">) -> !cute.layout<"((128,32),1,4,2):((128,1),0,32,16384)">
      %view_54 = cute.make_view(%iter_52, %1053) : !memref_smem_f8E4M3FN_
      %int_tuple_55 = cute.make_int_tuple() : () -> !cute.int_tuple<"33792">
      %ptr_56 = cute.add_offset(%iter_40, %int_tuple_55) : (!cute.ptr<i8, smem, align<1024>>, !cute.int_tuple<"33792">) -> !cute.ptr<i8, smem, align<128>>
      %iter_57 = cute.recast_iter(%ptr_56) : !cute.ptr<i8, smem, align<128>> to !cute.ptr<f8E4M3FN, smem, align<128>, S<3,4,3>>
      %1058 = cute.composed_get_outer(%arg11) : (!cute.composed_layout<"S<3,4,3> o 0 o ((128,32),1,4,2):((128,1),0,32,16384)">) -> !cute.layout<"((128,32),1,4,2):((128,1),0,32,16384)">
      %view_59 = cute.make_view(%iter_57, %1058) : !memref_smem_f8E4M3FN_
      %int_tuple_60 = cute.make_int_tuple() : () -> !cute.int_tuple<"66560">
      %ptr_61 = cute.add_offset(%iter_40, %int_tuple_60) : (!cute.ptr<i8, smem, align<1024>>, !cute.int_tuple<"66560">) -> !cute.ptr<i8, smem, align<128>>
      %iter_62 = cute.recast_iter(%ptr_61) : !cute.ptr<i8, smem, align<128>> to !cute.ptr<f8E8M0FNU, smem, align<128>>
      %view_63 = cute.make_view(%iter_62, %arg12) : !memref_smem_f8E8M0FNU_
      %int_tuple_64 = cute.make_int_tuple() : () -> !cute.int_tuple<"67584">
      %ptr_65 = cute.add_offset(%iter_40, %int_tuple_64) : (!cute.ptr<i8, smem, align<1024>>, !cute.int_tuple<"67584">) -> !cute.ptr<i8, smem, align<128>>
      %iter_66 = cute.recast_iter(%ptr_65) : !cute.ptr<i8, smem, align<128>> to !cute.ptr<f8E8M0FNU, smem, align<128>>
      %view_67 = cute.make_view(%iter_66, %arg13) : !memref_smem_f8E8M0FNU_
      %int_tuple_68 = cute.make_int_tuple() : () -> !cute.int_tuple<"2">
      %ptr_69 = cute.add_offset(%iter_43, %int_tuple_68) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"2">) -> !cute.ptr<i64, smem, align<8>>
      %int_tuple_70 = cute.make_int_tuple() : () -> !cute.int_tuple<"1">
      %ptr_71 = cute.add_offset(%iter_46, %int_tuple_70) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"1">) -> !cute.ptr<i64, smem, align<8>>
      %c0_i32_72 = arith.constant 0 : i32
      %c1_i32_73 = arith.constant 1 : i32
      %1074 = arith.cmpi eq, %1038, %c0_i32_72 : i32
      scf.if %1074 {
        %c1_i32_75 = arith.constant 1 : i32
        %1076 = builtin.unrealized_conversion_cast %iter_43 : !cute.ptr<i64, smem, align<8>> to !llvm.ptr<3>
        nvvm.mbarrier.init %1076, %c1_i32_75 : !llvm.ptr<3>, i32
        %c1_i32_77 = arith.constant 1 : i32
        %int_tuple_78 = cute.make_int_tuple() : () -> !cute.int_tuple<"1">
        %ptr_79 = cute.add_offset(%iter_43, %int_tuple_78) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"1">) -> !cute.ptr<i64, smem>
        %1080 = builtin.unrealized_conversion_cast %ptr_79 : !cute.ptr<i64, smem> to !llvm.ptr<3>
        nvvm.mbarrier.init %1080, %c1_i32_77 : !llvm.ptr<3>, i32
        %c1_i32_81 = arith.constant 1 : i32
        %1082 = builtin.unrealized_conversion_cast %ptr_69 : !cute.ptr<i64, smem, align<8>> to !llvm.ptr<3>
        nvvm.mbarrier.init %1082, %c1_i32_81 : !llvm.ptr<3>, i32
        %c1_i32_83 = arith.constant 1 : i32
        %int_tuple_84 = cute.make_int_tuple() : () -> !cute.int_tuple<"1">
        %ptr_85 = cute.add_offset(%ptr_69, %int_tuple_84) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"1">) -> !cute.ptr<i64, smem>
        %1086 = builtin.unrealized_conversion_cast %ptr_85 : !cute.ptr<i64, smem> to !llvm.ptr<3>
        nvvm.mbarrier.init %1086, %c1_i32_83 : !llvm.ptr<3>, i32
        %c1_i32_87 = arith.constant 1 : i32
        %1088 = builtin.unrealized_conversion_cast %iter_46 : !cute.ptr<i64, smem, align<8>> to !llvm.ptr<3>
        nvvm.mbarrier.init %1088, %c1_i32_87 : !llvm.ptr<3>, i32
        %c128_i32_89 = arith.constant 128 : i32
        %1090 = builtin.unrealized_conversion_cast %ptr_71 : !cute.ptr<i64, smem, align<8>> to !llvm.ptr<3>
        nvvm.mbarrier.init %1090, %c128_i32_89 : !llvm.ptr<3>, i32
      }
      nvvm.fence.mbarrier.init
      nvvm.barrier
      %tile_91 = cute.make_tile() : () -> !cute.tile<"[128:1;128:1]">
      %coord_92 = cute.make_coord() : () -> !cute.coord<"(_,_,_)">
      %tiled_view_93 = cute.local_tile(%arg2, %tile_91, %coord_92) : (!cute.coord_tensor<"(0,0,0)", "(?,?{div=32},?):(1@1,1@0,1@2)">, !cute.tile<"[128:1;128:1]">, !cute.coord<"(_,_,_)">) -> !cute.coord_tensor<"(0,0,0)", "(128,128,?,?,?):(1@1,1@0,128@1,128@0,1@2)">
      %sz_94 = cute.size(%tiled_view_93) <{mode = [3]}> : (!cute.coord_tensor<"(0,0,0)", "(128,128,?,?,?):(1@1,1@0,128@1,128@0,1@2)">) -> !cute.int_tuple<"?">
      %e0_95 = cute.get_leaves(%sz_94) : !cute.int_tuple<"?">
      %1096 = cute.get_scalars(%e0_95) : !cute.int_tuple<"?">
      %coord_97 = cute.make_coord() : () -> !cute.coord<"0">
      %ptn_A_98 = cute.tiled.mma.partition A (%arg0, %tiled_view_93, %coord_97) : (!mma_, !cute.coord_tensor<"(0,0,0)", "(128,128,?,?,?):(1@1,1@0,128@1,128@0,1@2)">, !cute.coord<"0">) -> !cute.coord_tensor<"(0,0,0)", "((128,32),1,4,?,?,?):((1@1,1@0),0,32@0,128@1,128@0,1@2)">
      %tile_99 = cute.make_tile() : () -> !cute.tile<"[128:1;128:1]">
      %coord_100 = cute.make_coord() : () -> !cute.coord<"(_,_,_)">
      %tiled_view_101 = cute.local_tile(%arg4, %tile_99, %coord_100) : (!cute.coord_tensor<"(0,0,0)", "(?,?{div=32},?):(1@1,1@0,1@2)">, !cute.tile<"[128:1;128:1]">, !cute.coord<"(_,_,_)">) -> !cute.coord_tensor<"(0,0,0)", "(128,128,?,?,?):(1@1,1@0,128@1,128@0,1@2)">
      %coord_102 = cute.make_coord() : () -> !cute.coord<"0">
      %ptn_B_103 = cute.tiled.mma.partition B (%arg0, %tiled_view_101, %coord_102) : (!mma_, !cute.coord_tensor<"(0,0,0)", "(128,128,?,?,?):(1@1,1@0,128@1,128@0,1@2)">, !cute.coord<"0">) -> !cute.coord_tensor<"(0,0,0)", "((128,32),1,4,?,?,?):((1@1,1@0),0,32@0,128@1,128@0,1@2)">
      %tile_104 = cute.make_tile() : () -> !cute.tile<"[128:1;128:1]">
      %coord_105 = cute.make_coord() : () -> !cute.coord<"(_,_,_)">
      %tiled_view_106 = cute.local_tile(%arg6, %tile_104, %coord_105) : (!cute.coord_tensor<"(0,0,0,0)", "(((32,4),?),((32,4),?),(1,?)):(((8@0,2@0),1@1),((0,1/2@0),1@2),(0,1@3))">, !cute.tile<"[128:1;128:1]">, !cute.coord<"(_,_,_)">) -> !cute.coord_tensor<"(0,0,0,0)", "(((32,4),1),((32,4),1),?,?,(1,?)):(((8@0,2@0),0),((0,1/2@0),0),1@1,1@2,(0,1@3))">
      %coord_107 = cute.make_coord() : () -> !cute.coord<"0">
      %ptn_A_108 = cute.tiled.mma.partition A (%arg0, %tiled_view_106, %coord_107) : (!mma_, !cute.coord_tensor<"(0,0,0,0)", "(((32,4),1),((32,4),1),?,?,(1,?)):(((8@0,2@0),0),((0,1/2@0),0),1@1,1@2,(0,1@3))">, !cute.coord<"0">) -> !cute.coord_tensor<"(0,0,0,0)", "((((32,4),1),(32,1)),1,4,?,?,(1,?)):((((8@0,2@0),0),(0,0)),0,1/2@0,1@1,1@2,(0,1@3))">
      %tile_109 = cute.make_tile() : () -> !cute.tile<"[128:1;128:1]">
      %coord_110 = cute.make_coord() : () -> !cute.coord<"(_,_,_)">
      %tiled_view_111 = cute.local_tile(%arg8, %tile_109, %coord_110) : (!cute.coord_tensor<"(0,0,0,0)", "(((32,4),?),((32,4),?),(1,?)):(((8@0,2@0),1@1),((0,1/2@0),1@2),(0,1@3))">, !cute.tile<"[128:1;128:1]">, !cute.coord<"(_,_,_)">) -> !cute.coord_tensor<"(0,0,0,0)", "(((32,4),1),((32,4),1),?,?,(1,?)):(((8@0,2@0),0),((0,1/2@0),0),1@1,1@2,(0,1@3))">
      %coord_112 = cute.make_coord() : () -> !cute.coord<"0">
      %ptn_B_113 = cute.tiled.mma.partition B (%arg0, %tiled_view_111, %coord_112) : (!mma_, !cute.coord_tensor<"(0,0,0,0)", "(((32,4),1),((32,4),1),?,?,(1,?)):(((8@0,2@0),0),((0,1/2@0),0),1@1,1@2,(0,1@3))">, !cute.coord<"0">) -> !cute.coord_tensor<"(0,0,0,0)", "((((32,4),1),(32,1)),1,4,?,?,(1,?)):((((8@0,2@0),0),(0,0)),0,1/2@0,1@1,1@2,(0,1@3))">
      %tile_114 = cute.make_tile() : () -> !cute.tile<"[128:1;128:1]">
      %coord_115 = cute.make_coord() : () -> !cute.coord<"(_,_,_)">
      %tiled_view_116 = cute.local_tile(%arg9, %tile_114, %coord_115) : (!memref_gmem_f16_, !cute.tile<"[128:1;128:1]">, !cute.coord<"(_,_,_)">) -> !memref_gmem_f16_1
      %coord_117 = cute.make_coord() : () -> !cute.coord<"0">
      %ptn_C_118 = cute.tiled.mma.partition C (%arg0, %tiled_view_116, %coord_117) : (!mma_, !memref_gmem_f16_1, !cute.coord<"0">) -> !memref_gmem_f16_2
      %shape_119 = cute.make_shape() : () -> !cute.shape<"1">
      %lay_120 = cute.make_layout(%shape_119) : !cute.layout<"1:0">
      %grouped_121 = cute.group_modes(%view_54) <0, 3> : (!memref_smem_f8E4M3FN_) -> !memref_smem_f8E4M3FN_1
      %grouped_122 = cute.group_modes(%ptn_A_98) <0, 3> : (!cute.coord_tensor<"(0,0,0)", "((128,32),1,4,?,?,?):((1@1,1@0),0,32@0,128@1,128@0,1@2)">) -> !cute.coord_tensor<"(0,0,0)", "(((128,32),1,4),?,?,?):(((1@1,1@0),0,32@0),128@1,128@0,1@2)">
      %coord_123 = cute.make_coord() : () -> !cute.coord<"0">
      %res_smem_tensor_124, %res_target_tensors_125 = cute_nvgpu.atom.tma_partition(%arg1, %coord_123, %lay_120, %grouped_121, %grouped_122) : (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E4M3FN, copy_bits = 131072, tma_gbasis = <"(128,128,1):(1@1,1@0,1@2)">, tma_format = U8>, !cute.coord<"0">, !cute.layout<"1:0">, !memref_smem_f8E4M3FN_1, !cute.coord_tensor<"(0,0,0)", "(((128,32),1,4),?,?,?):(((1@1,1@0),0,32@0),128@1,128@0,1@2)">) -> (!memref_smem_f8E4M3FN_2, !cute.coord_tensor<"(0,0,0)", "(((128,128),1),?,?,?):(((1@0,1@1),0),128@1,128@0,1@2)">)
      %shape_126 = cute.make_shape() : () -> !cute.shape<"1">
      %lay_127 = cute.make_layout(%shape_126) : !cute.layout<"1:0">
      %grouped_128 = cute.group_modes(%view_59) <0, 3> : (!memref_smem_f8E4M3FN_) -> !memref_smem_f8E4M3FN_1
      %grouped_129 = cute.group_modes(%ptn_B_103) <0, 3> : (!cute.coord_tensor<"(0,0,0)", "((128,32),1,4,?,?,?):((1@1,1@0),0,32@0,128@1,128@0,1@2)">) -> !cute.coord_tensor<"(0,0,0)", "(((128,32),1,4),?,?,?):(((1@1,1@0),0,32@0),128@1,128@0,1@2)">
      %coord_130 = cute.make_coord() : () -> !cute.coord<"0">
      %res_smem_tensor_131, %res_target_tensors_132 = cute_nvgpu.atom.tma_partition(%arg3, %coord_130, %lay_127, %grouped_128, %grouped_129) : (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E4M3FN, copy_bits = 131072, tma_gbasis = <"(128,128,1):(1@1,1@0,1@2)">, tma_format = U8>, !cute.coord<"0">, !cute.layout<"1:0">, !memref_smem_f8E4M3FN_1, !cute.coord_tensor<"(0,0,0)", "(((128,32),1,4),?,?,?):(((1@1,1@0),0,32@0),128@1,128@0,1@2)">) -> (!memref_smem_f8E4M3FN_2, !cute.coord_tensor<"(0,0,0)", "(((128,128),1),?,?,?):(((1@0,1@1),0),128@1,128@0,1@2)">)
      %shape_133 = cute.make_shape() : () -> !cute.shape<"1">
      %lay_134 = cute.make_layout(%shape_133) : !cute.layout<"1:0">
      %grouped_135 = cute.group_modes(%view_63) <0, 3> : (!memref_smem_f8E8M0FNU_) -> !memref_smem_f8E8M0FNU_1
      %grouped_136 = cute.group_modes(%ptn_A_108) <0, 3> : (!cute.coord_tensor<"(0,0,0,0)", "((((32,4),1),(32,1)),1,4,?,?,(1,?)):((((8@0,2@0),0),(0,0)),0,1/2@0,1@1,1@2,(0,1@3))">) -> !cute.coord_tensor<"(0,0,0,0)", "(((((32,4),1),(32,1)),1,4),?,?,(1,?)):(((((8@0,2@0),0),(0,0)),0,1/2@0),1@1,1@2,(0,1@3))">
      %coord_137 = cute.make_coord() : () -> !cute.coord<"0">
      %res_smem_tensor_138, %res_target_tensors_139 = cute_nvgpu.atom.tma_partition(%arg5, %coord_137, %lay_134, %grouped_135, %grouped_136) : (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E8M0FNU, copy_bits = 4096, tma_gbasis = <"((2,4,32),1,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@0,1@1@1,1@1@2)">, tma_format = U16>, !cute.coord<"0">, !cute.layout<"1:0">, !memref_smem_f8E8M0FNU_1, !cute.coord_tensor<"(0,0,0,0)", "(((((32,4),1),(32,1)),1,4),?,?,(1,?)):(((((8@0,2@0),0),(0,0)),0,1/2@0),1@1,1@2,(0,1@3))">) -> (!memref_smem_f8E8M0FNU_2, !cute.coord_tensor<"(0,0,0,0)", "((512,32),?,?,(1,?)):((1/2@0,0),1@1,1@2,(0,1@3))">)
      %filtered_140 = cute.filter_zeros(%res_smem_tensor_138) : !memref_smem_f8E8M0FNU_2
      %filtered_141 = cute.filter_zeros(%res_target_tensors_139) : !cute.coord_tensor<"(0,0,0,0)", "((512,32),?,?,(1,?)):((1/2@0,0),1@1,1@2,(0,1@3))">
      %shape_142 = cute.make_shape() : () -> !cute.shape<"1">
      %lay_143 = cute.make_layout(%shape_142) : !cute.layout<"1:0">
      %grouped_144 = cute.group_modes(%view_67) <0, 3> : (!memref_smem_f8E8M0FNU_) -> !memref_smem_f8E8M0FNU_1
      %grouped_145 = cute.group_modes(%ptn_B_113) <0, 3> : (!cute.coord_tensor<"(0,0,0,0)", "((((32,4),1),(32,1)),1,4,?,?,(1,?)):((((8@0,2@0),0),(0,0)),0,1/2@0,1@1,1@2,(0,1@3))">) -> !cute.coord_tensor<"(0,0,0,0)", "(((((32,4),1),(32,1)),1,4),?,?,(1,?)):(((((8@0,2@0),0),(0,0)),0,1/2@0),1@1,1@2,(0,1@3))">
      %coord_146 = cute.make_coord() : () -> !cute.coord<"0">
      %res_smem_tensor_147, %res_target_tensors_148 = cute_nvgpu.atom.tma_partition(%arg7, %coord_146, %lay_143, %grouped_144, %grouped_145) : (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E8M0FNU, copy_bits = 4096, tma_gbasis = <"((2,4,32),1,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@0,1@1@1,1@1@2)">, tma_format = U16>, !cute.coord<"0">, !cute.layout<"1:0">, !memref_smem_f8E8M0FNU_1, !cute.coord_tensor<"(0,0,0,0)", "(((((32,4),1),(32,1)),1,4),?,?,(1,?)):(((((8@0,2@0),0),(0,0)),0,1/2@0),1@1,1@2,(0,1@3))">) -> (!memref_smem_f8E8M0FNU_2, !cute.coord_tensor<"(0,0,0,0)", "((512,32),?,?,(1,?)):((1/2@0,0),1@1,1@2,(0,1@3))">)
      %filtered_149 = cute.filter_zeros(%res_smem_tensor_147) : !memref_smem_f8E8M0FNU_2
      %filtered_150 = cute.filter_zeros(%res_target_tensors_148) : !cute.coord_tensor<"(0,0,0,0)", "((512,32),?,?,(1,?)):((1/2@0,0),1@1,1@2,(0,1@3))">
      %frg_A_151 = cute.mma.make_fragment A (%arg0, %view_54) : (!mma_, !memref_smem_f8E4M3FN_) -> !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1,4,2):(0,0,2,1024)">
      %frg_B_152 = cute.mma.make_fragment B (%arg0, %view_59) : (!mma_, !memref_smem_f8E4M3FN_) -> !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1,4,2):(0,0,2,1024)">
      %shape_153 = cute.make_shape() : () -> !cute.shape<"(128,128)">
      %1154 = cute.tiled.mma.partition_shape C (%arg0, %shape_153) : (!mma_, !cute.shape<"(128,128)">) -> !cute.shape<"((128,128),1,1)">
      %shape_155 = cute.make_shape() : () -> !cute.shape<"((128,128),1,1)">
      %frg_C_156 = cute.mma.make_fragment C (%arg0, %shape_155) : (!mma_, !cute.shape<"((128,128),1,1)">) -> !memref_tmem_f32_
      %c512_i32_157 = arith.constant 512 : i32
      scf.if %1074 {
        cute_nvgpu.arch.sm100.alloc_tmem(%c512_i32_157, %iter_49) [ cta_1] : i32, !cute.ptr<i32, smem, align<8>>
      }
      %c1_i32_158 = arith.constant 1 : i32
      %c128_i32_159 = arith.constant 128 : i32
      nvvm.barrier id = %c1_i32_158 number_of_threads = %c128_i32_159
      %tmem_ptr_160 = cute_nvgpu.arch.sm100.retrieve_tmem_ptr(%iter_49) : !cute.ptr<i32, smem, align<8>> -> !cute.ptr<f32, tmem, align<16>>
      %lay_161 = cute.get_layout(%frg_C_156) : !memref_tmem_f32_
      %view_162 = cute.make_view(%tmem_ptr_160, %lay_161) : !memref_tmem_f32_1
      %lay_163 = cute.get_layout(%view_162) : !memref_tmem_f32_1
      %1164 = cute.recast_layout<32, 32> (%lay_163) : !cute.layout<"((128,128),1,1):((65536,1),0,0)"> to !cute.layout<"((128,128),1,1):((65536,1),0,0)">
      %cosz_165 = cute.cosize(%1164) : (!cute.layout<"((128,128),1,1):((65536,1),0,0)">) -> !cute.int_tuple<"8323200">
      %int_tuple_166 = cute.make_int_tuple() : () -> !cute.int_tuple<"128">
      %ptr_167 = cute.add_offset(%tmem_ptr_160, %int_tuple_166) : (!cute.ptr<f32, tmem, align<16>>, !cute.int_tuple<"128">) -> !cute.ptr<f32, tmem, align<16>>
      %iter_168 = cute.recast_iter(%ptr_167) : !cute.ptr<f32, tmem, align<16>> to !cute.ptr<f8E8M0FNU, tmem, align<16>>
      %1169 = cute.static : !cute.layout<"((((32,4),4),(32,1)),1,4):((((262144,4),8388608),(0,0)),0,1)">
      %view_170 = cute.make_view(%iter_168, %1169) : !memref_tmem_f8E8M0FNU_
      %lay_171 = cute.get_layout(%view_170) : !memref_tmem_f8E8M0FNU_
      %1172 = cute.recast_layout<32, 8> (%lay_171) : !cute.layout<"((((32,4),4),(32,1)),1,4):((((262144,4),8388608),(0,0)),0,1)"> to !cute.layout<"((((32,4),4),(32,1)),1,1):((((65536,1),2097152),(0,0)),0,1)">
      %cosz_173 = cute.cosize(%1172) : (!cute.layout<"((((32,4),4),(32,1)),1,1):((((65536,1),2097152),(0,0)),0,1)">) -> !cute.int_tuple<"8323076">
      %int_tuple_174 = cute.make_int_tuple() : () -> !cute.int_tuple<"132">
      %ptr_175 = cute.add_offset(%tmem_ptr_160, %int_tuple_174) : (!cute.ptr<f32, tmem, align<16>>, !cute.int_tuple<"132">) -> !cute.ptr<f32, tmem, align<16>>
      %iter_176 = cute.recast_iter(%ptr_175) : !cute.ptr<f32, tmem, align<16>> to !cute.ptr<f8E8M0FNU, tmem, align<16>>
      %1177 = cute.static : !cute.layout<"((((32,4),4),(32,1)),1,4):((((262144,4),8388608),(0,0)),0,1)">
      %view_178 = cute.make_view(%iter_176, %1177) : !memref_tmem_f8E8M0FNU_
      %lay_179 = cute.get_layout(%view_178) : !memref_tmem_f8E8M0FNU_
      %1180 = cute.recast_layout<32, 8> (%lay_179) : !cute.layout<"((((32,4),4),(32,1)),1,4):((((262144,4),8388608),(0,0)),0,1)"> to !cute.layout<"((((32,4),4),(32,1)),1,1):((((65536,1),2097152),(0,0)),0,1)">
      %cosz_181 = cute.cosize(%1180) : (!cute.layout<"((((32,4),4),(32,1)),1,1):((((65536,1),2097152),(0,0)),0,1)">) -> !cute.int_tuple<"8323076">
      %atom_182 = cute.make_atom() : () -> !cute_nvgpu.atom.s2t_copy<f8E8M0FNU, 32 DP, 128 bit, 1 cta, x4>
      %filtered_183 = cute.filter_zeros(%view_63) : !memref_smem_f8E8M0FNU_
      %filtered_184 = cute.filter_zeros(%view_170) : !memref_tmem_f8E8M0FNU_
      %1185 = cute_nvgpu.atom.make_s2t_copy(%atom_182, %filtered_184) : (!cute_nvgpu.atom.s2t_copy<f8E8M0FNU, 32 DP, 128 bit, 1 cta, x4>, !memref_tmem_f8E8M0FNU_1) -> !copy_s2t_sfa_
      %coord_186 = cute.make_coord() : () -> !cute.coord<"0">
      %src_partitioned_187 = cute.tiled.copy.partition_S(%1185, %filtered_183, %coord_186) : (!copy_s2t_sfa_, !memref_smem_f8E8M0FNU_7, !cute.coord<"0">) -> !memref_smem_f8E8M0FNU_8
      %1188 = cute_nvgpu.atom.get_copy_s2t_smem_desc_view(%1185, %src_partitioned_187) : (!copy_s2t_sfa_, !memref_smem_f8E8M0FNU_8) -> !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "((((32,1,1),4),1),1,1,1,2):((((1,1,1),0),0),0,0,0,32)">
      %coord_189 = cute.make_coord() : () -> !cute.coord<"0">
      %dst_partitioned_190 = cute.tiled.copy.partition_D(%1185, %filtered_184, %coord_189) : (!copy_s2t_sfa_, !memref_tmem_f8E8M0FNU_1, !cute.coord<"0">) -> !memref_tmem_f8E8M0FNU_2
      %filtered_191 = cute.filter_zeros(%view_67) : !memref_smem_f8E8M0FNU_
      %filtered_192 = cute.filter_zeros(%view_178) : !memref_tmem_f8E8M0FNU_
      %1193 = cute_nvgpu.atom.make_s2t_copy(%atom_182, %filtered_192) : (!cute_nvgpu.atom.s2t_copy<f8E8M0FNU, 32 DP, 128 bit, 1 cta, x4>, !memref_tmem_f8E8M0FNU_1) -> !copy_s2t_sfa_
      %coord_194 = cute.make_coord() : () -> !cute.coord<"0">
      %src_partitioned_195 = cute.tiled.copy.partition_S(%1193, %filtered_191, %coord_194) : (!copy_s2t_sfa_, !memref_smem_f8E8M0FNU_7, !cute.coord<"0">) -> !memref_smem_f8E8M0FNU_8
      %1196 = cute_nvgpu.atom.get_copy_s2t_smem_desc_view(%1193, %src_partitioned_195) : (!copy_s2t_sfa_, !memref_smem_f8E8M0FNU_8) -> !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "((((32,1,1),4),1),1,1,1,2):((((1,1,1),0),0),0,0,0,32)">
      %coord_197 = cute.make_coord() : () -> !cute.coord<"0">
      %dst_partitioned_198 = cute.tiled.copy.partition_D(%1193, %filtered_192, %coord_197) : (!copy_s2t_sfa_, !memref_tmem_f8E8M0FNU_1, !cute.coord<"0">) -> !memref_tmem_f8E8M0FNU_2
      %coord_199 = cute.make_coord(%1028, %1030) : (i32, i32) -> !cute.coord<"(_,?,_,?)">
      %slice_200 = cute.slice(%res_target_tensors_125, %coord_199) : !cute.coord_tensor<"(0,0,0)", "(((128,128),1),?,?,?):(((1@0,1@1),0),128@1,128@0,1@2)">, !cute.coord<"(_,?,_,?)">
      %coord_201 = cute.make_coord(%1029, %1030) : (i32, i32) -> !cute.coord<"(_,?,_,?)">
      %slice_202 = cute.slice(%res_target_tensors_132, %coord_201) : !cute.coord_tensor<"(0,0,0)", "(((128,128),1),?,?,?):(((1@0,1@1),0),128@1,128@0,1@2)">, !cute.coord<"(_,?,_,?)">
      %coord_203 = cute.make_coord(%1028, %1030) : (i32, i32) -> !cute.coord<"(_,?,_,?)">
      %slice_204 = cute.slice(%filtered_141, %coord_203) : !cute.coord_tensor<"(0,0,0,0)", "((512,1),?,?,(1,?)):((1/2@0,0),1@1,1@2,(0,1@3))">, !cute.coord<"(_,?,_,?)">
      %coord_205 = cute.make_coord(%1029, %1030) : (i32, i32) -> !cute.coord<"(_,?,_,?)">
      %slice_206 = cute.slice(%filtered_150, %coord_205) : !cute.coord_tensor<"(0,0,0,0)", "((512,1),?,?,(1,?)):((1/2@0,0),1@1,1@2,(0,1@3))">, !cute.coord<"(_,?,_,?)">
      scf.if %1074 {
        %1207 = builtin.unrealized_conversion_cast %ptr_71 : !cute.ptr<i64, smem, align<8>> to !llvm.ptr<3>
        %c10000000_i32_208 = arith.constant 10000000 : i32
        nvvm.mbarrier.try_wait.parity %1207, %c1_i32_73, %c10000000_i32_208 : !llvm.ptr<3>, i32, i32
        %false_209 = arith.constant false
        %1210 = cute_nvgpu.atom.set_value<accum_c>(%arg0, %false_209) : (!mma_, i1)
        %c0_i32_211 = arith.constant 0 : i32
        %c1_i32_212 = arith.constant 1 : i32
        %1213:3 = scf.for %arg20 = %c0_i32_211 to %1096 step %c1_i32_212 iter_args(%arg21 = %c0_i32_211, %arg22 = %c0_i32_211, %arg23 = %1210) -> (i32, i32, !mma_)  : i32 {
          %c1_i32_214 = arith.constant 1 : i32
          %1215 = arith.xori %arg22, %c1_i32_214 : i32
          %int_tuple_216 = cute.make_int_tuple(%arg21) : (i32) -> !cute.int_tuple<"?">
          %ptr_217 = cute.add_offset(%ptr_69, %int_tuple_216) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          %1218 = builtin.unrealized_conversion_cast %ptr_217 : !cute.ptr<i64, smem> to !llvm.ptr<3>
          %c10000000_i32_219 = arith.constant 10000000 : i32
          nvvm.mbarrier.try_wait.parity %1218, %1215, %c10000000_i32_219 : !llvm.ptr<3>, i32, i32
          %1220 = nvvm.elect.sync -> i1
          scf.if %1220 {
            %int_tuple_221 = cute.make_int_tuple(%arg21) : (i32) -> !cute.int_tuple<"?">
            %ptr_222 = cute.add_offset(%iter_43, %int_tuple_221) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            %1223 = builtin.unrealized_conversion_cast %ptr_222 : !cute.ptr<i64, smem> to !llvm.ptr<3>
            %c33792_i32_224 = arith.constant 33792 : i32
            %tx = nvvm.mbarrier.arrive.expect_tx %1223, %c33792_i32_224 : !llvm.ptr<3>, i32 -> i64
          }
          %coord_225 = cute.make_coord(%arg20) : (i32) -> !cute.coord<"(_,?)">
          %slice_226 = cute.slice(%slice_200, %coord_225) : !cute.coord_tensor<"(0,?{div=128},?)", "(((128,128),1),?):(((1@0,1@1),0),128@0)">, !cute.coord<"(_,?)">
          %coord_227 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,?)">
          %slice_228 = cute.slice(%res_smem_tensor_124, %coord_227) : !memref_smem_f8E4M3FN_2, !cute.coord<"(_,?)">
          %iter_229 = cute.get_iter(%slice_226) : !cute.coord_tensor<"(?{div=128},?{div=128},?)", "(((128,128),1)):(((1@0,1@1),0))">
          %tup_230 = cute.deref_arith_tuple_iter(%iter_229) : !cute.arith_tuple_iter<"(?{div=128},?{div=128},?)">
          %e0_231, %e1_232, %e2_233 = cute.get_leaves(%tup_230) : !cute.int_tuple<"(?{div=128},?{div=128},?)">
          %int_tuple_234 = cute.make_int_tuple(%arg21) : (i32) -> !cute.int_tuple<"?">
          %ptr_235 = cute.add_offset(%iter_43, %int_tuple_234) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          %lay_236 = cute.get_layout(%slice_226) : !cute.coord_tensor<"(?{div=128},?{div=128},?)", "(((128,128),1)):(((1@0,1@1),0))">
          %shape_237 = cute.make_shape() : () -> !cute.shape<"1">
          %lay_238 = cute.make_layout(%shape_237) : !cute.layout<"1:0">
          %append_239 = cute.append_to_rank<2> (%lay_236, %lay_238) : !cute.layout<"(((128,128),1)):(((1@0,1@1),0))">, !cute.layout<"1:0">
          %int_tuple_240 = cute.make_int_tuple(%e0_231, %e1_232, %e2_233) : (!cute.int_tuple<"?{div=128}">, !cute.int_tuple<"?{div=128}">, !cute.int_tuple<"?">) -> !cute.int_tuple<"(?{div=128},?{div=128},?)">
          %int_tup_iter_241 = cute.make_arith_tuple_iter(%int_tuple_240) : (!cute.int_tuple<"(?{div=128},?{div=128},?)">) -> !cute.arith_tuple_iter<"(?{div=128},?{div=128},?)">
          %view_242 = cute.make_view(%int_tup_iter_241, %append_239) : !cute.coord_tensor<"(?{div=128},?{div=128},?)", "(((128,128),1),1):(((1@0,1@1),0),0)">
          %grouped_243 = cute.group_modes(%view_242) <1, 2> : (!cute.coord_tensor<"(?{div=128},?{div=128},?)", "(((128,128),1),1):(((1@0,1@1),0),0)">) -> !cute.coord_tensor<"(?{div=128},?{div=128},?)", "(((128,128),1),(1)):(((1@0,1@1),0),(0))">
          %iter_244 = cute.get_iter(%slice_228) : !memref_smem_f8E4M3FN_3
          %lay_245 = cute.get_layout(%slice_228) : !memref_smem_f8E4M3FN_3
          %shape_246 = cute.make_shape() : () -> !cute.shape<"1">
          %lay_247 = cute.make_layout(%shape_246) : !cute.layout<"1:0">
          %append_248 = cute.append_to_rank<2> (%lay_245, %lay_247) : !cute.layout<"((16384,1)):((1,0))">, !cute.layout<"1:0">
          %view_249 = cute.make_view(%iter_244, %append_248) : !memref_smem_f8E4M3FN_4
          %grouped_250 = cute.group_modes(%view_249) <1, 2> : (!memref_smem_f8E4M3FN_4) -> !memref_smem_f8E4M3FN_5
          %1251 = cute_nvgpu.atom.make_exec_tma(%arg1) : (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E4M3FN, copy_bits = 131072, tma_gbasis = <"(128,128,1):(1@1,1@0,1@2)">, tma_format = U8>) -> !cute_nvgpu.atom.tma_load<f8E4M3FN, copy_bits = 131072, mode = tiled, num_cta = 1, g_stride = <"()"> tma_gbasis = <"(128,128,1):(1@1,1@0,1@2)">>
          %1252 = cute_nvgpu.atom.set_value<tma_bar>(%1251, %ptr_235) : (!cute_nvgpu.atom.tma_load<f8E4M3FN, copy_bits = 131072, mode = tiled, num_cta = 1, g_stride = <"()"> tma_gbasis = <"(128,128,1):(1@1,1@0,1@2)">>, !cute.ptr<i64, smem>)
          cute.copy(%1252, %grouped_243, %grouped_250) : (!cute_nvgpu.atom.tma_load<f8E4M3FN, copy_bits = 131072, mode = tiled, num_cta = 1, g_stride = <"()"> tma_gbasis = <"(128,128,1):(1@1,1@0,1@2)">>, !cute.coord_tensor<"(?{div=128},?{div=128},?)", "(((128,128),1),(1)):(((1@0,1@1),0),(0))">, !memref_smem_f8E4M3FN_5)
          %coord_253 = cute.make_coord(%arg20) : (i32) -> !cute.coord<"(_,?)">
          %slice_254 = cute.slice(%slice_202, %coord_253) : !cute.coord_tensor<"(0,?{div=128},?)", "(((128,128),1),?):(((1@0,1@1),0),128@0)">, !cute.coord<"(_,?)">
          %coord_255 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,?)">
          %slice_256 = cute.slice(%res_smem_tensor_131, %coord_255) : !memref_smem_f8E4M3FN_2, !cute.coord<"(_,?)">
          %iter_257 = cute.get_iter(%slice_254) : !cute.coord_tensor<"(?{div=128},?{div=128},?)", "(((128,128),1)):(((1@0,1@1),0))">
          %tup_258 = cute.deref_arith_tuple_iter(%iter_257) : !cute.arith_tuple_iter<"(?{div=128},?{div=128},?)">
          %e0_259, %e1_260, %e2_261 = cute.get_leaves(%tup_258) : !cute.int_tuple<"(?{div=128},?{div=128},?)">
          %int_tuple_262 = cute.make_int_tuple(%arg21) : (i32) -> !cute.int_tuple<"?">
          %ptr_263 = cute.add_offset(%iter_43, %int_tuple_262) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          %lay_264 = cute.get_layout(%slice_254) : !cute.coord_tensor<"(?{div=128},?{div=128},?)", "(((128,128),1)):(((1@0,1@1),0))">
          %shape_265 = cute.make_shape() : () -> !cute.shape<"1">
          %lay_266 = cute.make_layout(%shape_265) : !cute.layout<"1:0">
          %append_267 = cute.append_to_rank<2> (%lay_264, %lay_266) : !cute.layout<"(((128,128),1)):(((1@0,1@1),0))">, !cute.layout<"1:0">
          %int_tuple_268 = cute.make_int_tuple(%e0_259, %e1_260, %e2_261) : (!cute.int_tuple<"?{div=128}">, !cute.int_tuple<"?{div=128}">, !cute.int_tuple<"?">) -> !cute.int_tuple<"(?{div=128},?{div=128},?)">
          %int_tup_iter_269 = cute.make_arith_tuple_iter(%int_tuple_268) : (!cute.int_tuple<"(?{div=128},?{div=128},?)">) -> !cute.arith_tuple_iter<"(?{div=128},?{div=128},?)">
          %view_270 = cute.make_view(%int_tup_iter_269, %append_267) : !cute.coord_tensor<"(?{div=128},?{div=128},?)", "(((128,128),1),1):(((1@0,1@1),0),0)">
          %grouped_271 = cute.group_modes(%view_270) <1, 2> : (!cute.coord_tensor<"(?{div=128},?{div=128},?)", "(((128,128),1),1):(((1@0,1@1),0),0)">) -> !cute.coord_tensor<"(?{div=128},?{div=128},?)", "(((128,128),1),(1)):(((1@0,1@1),0),(0))">
          %iter_272 = cute.get_iter(%slice_256) : !memref_smem_f8E4M3FN_3
          %lay_273 = cute.get_layout(%slice_256) : !memref_smem_f8E4M3FN_3
          %shape_274 = cute.make_shape() : () -> !cute.shape<"1">
          %lay_275 = cute.make_layout(%shape_274) : !cute.layout<"1:0">
          %append_276 = cute.append_to_rank<2> (%lay_273, %lay_275) : !cute.layout<"((16384,1)):((1,0))">, !cute.layout<"1:0">
          %view_277 = cute.make_view(%iter_272, %append_276) : !memref_smem_f8E4M3FN_4
          %grouped_278 = cute.group_modes(%view_277) <1, 2> : (!memref_smem_f8E4M3FN_4) -> !memref_smem_f8E4M3FN_5
          %1279 = cute_nvgpu.atom.make_exec_tma(%arg3) : (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E4M3FN, copy_bits = 131072, tma_gbasis = <"(128,128,1):(1@1,1@0,1@2)">, tma_format = U8>) -> !cute_nvgpu.atom.tma_load<f8E4M3FN, copy_bits = 131072, mode = tiled, num_cta = 1, g_stride = <"()"> tma_gbasis = <"(128,128,1):(1@1,1@0,1@2)">>
          %1280 = cute_nvgpu.atom.set_value<tma_bar>(%1279, %ptr_263) : (!cute_nvgpu.atom.tma_load<f8E4M3FN, copy_bits = 131072, mode = tiled, num_cta = 1, g_stride = <"()"> tma_gbasis = <"(128,128,1):(1@1,1@0,1@2)">>, !cute.ptr<i64, smem>)
          cute.copy(%1280, %grouped_271, %grouped_278) : (!cute_nvgpu.atom.tma_load<f8E4M3FN, copy_bits = 131072, mode = tiled, num_cta = 1, g_stride = <"()"> tma_gbasis = <"(128,128,1):(1@1,1@0,1@2)">>, !cute.coord_tensor<"(?{div=128},?{div=128},?)", "(((128,128),1),(1)):(((1@0,1@1),0),(0))">, !memref_smem_f8E4M3FN_5)
          %coord_281 = cute.make_coord(%arg20) : (i32) -> !cute.coord<"(_,?)">
          %slice_282 = cute.slice(%slice_204, %coord_281) : !cute.coord_tensor<"(0,?,0,?)", "((512,1),?):((1/2@0,0),1@2)">, !cute.coord<"(_,?)">
          %coord_283 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,?)">
          %slice_284 = cute.slice(%filtered_140, %coord_283) : !memref_smem_f8E8M0FNU_3, !cute.coord<"(_,?)">
          %iter_285 = cute.get_iter(%slice_282) : !cute.coord_tensor<"(0,?,?,?)", "((512,1)):((1/2@0,0))">
          %tup_286 = cute.deref_arith_tuple_iter(%iter_285) : !cute.arith_tuple_iter<"(0,?,?,?)">
          %e0_287, %e1_288, %e2_289, %e3_290 = cute.get_leaves(%tup_286) : !cute.int_tuple<"(0,?,?,?)">
          %int_tuple_291 = cute.make_int_tuple(%arg21) : (i32) -> !cute.int_tuple<"?">
          %ptr_292 = cute.add_offset(%iter_43, %int_tuple_291) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          %lay_293 = cute.get_layout(%slice_282) : !cute.coord_tensor<"(0,?,?,?)", "((512,1)):((1/2@0,0))">
          %shape_294 = cute.make_shape() : () -> !cute.shape<"1">
          %lay_295 = cute.make_layout(%shape_294) : !cute.layout<"1:0">
          %append_296 = cute.append_to_rank<2> (%lay_293, %lay_295) : !cute.layout<"((512,1)):((1/2@0,0))">, !cute.layout<"1:0">
          %int_tuple_297 = cute.make_int_tuple(%e1_288, %e2_289, %e3_290) : (!cute.int_tuple<"?">, !cute.int_tuple<"?">, !cute.int_tuple<"?">) -> !cute.int_tuple<"(0,?,?,?)">
          %int_tup_iter_298 = cute.make_arith_tuple_iter(%int_tuple_297) : (!cute.int_tuple<"(0,?,?,?)">) -> !cute.arith_tuple_iter<"(0,?,?,?)">
          %view_299 = cute.make_view(%int_tup_iter_298, %append_296) : !cute.coord_tensor<"(0,?,?,?)", "((512,1),1):((1/2@0,0),0)">
          %grouped_300 = cute.group_modes(%view_299) <1, 2> : (!cute.coord_tensor<"(0,?,?,?)", "((512,1),1):((1/2@0,0),0)">) -> !cute.coord_tensor<"(0,?,?,?)", "((512,1),(1)):((1/2@0,0),(0))">
          %iter_301 = cute.get_iter(%slice_284) : !memref_smem_f8E8M0FNU_4
          %lay_302 = cute.get_layout(%slice_284) : !memref_smem_f8E8M0FNU_4
          %shape_303 = cute.make_shape() : () -> !cute.shape<"1">
          %lay_304 = cute.make_layout(%shape_303) : !cute.layout<"1:0">
          %append_305 = cute.append_to_rank<2> (%lay_302, %lay_304) : !cute.layout<"((512,1)):((1,0))">, !cute.layout<"1:0">
          %view_306 = cute.make_view(%iter_301, %append_305) : !memref_smem_f8E8M0FNU_5
          %grouped_307 = cute.group_modes(%view_306) <1, 2> : (!memref_smem_f8E8M0FNU_5) -> !memref_smem_f8E8M0FNU_6
          %1308 = cute_nvgpu.atom.make_exec_tma(%arg5) : (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E8M0FNU, copy_bits = 4096, tma_gbasis = <"((2,4,32),1,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@0,1@1@1,1@1@2)">, tma_format = U16>) -> !cute_nvgpu.atom.tma_load<f8E8M0FNU, copy_bits = 4096, mode = tiled, num_cta = 1, g_stride = <"()"> tma_gbasis = <"((2,4,32),1,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@0,1@1@1,1@1@2)">>
          %1309 = cute_nvgpu.atom.set_value<tma_bar>(%1308, %ptr_292) : (!cute_nvgpu.atom.tma_load<f8E8M0FNU, copy_bits = 4096, mode = tiled, num_cta = 1, g_stride = <"()"> tma_gbasis = <"((2,4,32),1,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@0,1@1@1,1@1@2)">>, !cute.ptr<i64, smem>)
          cute.copy(%1309, %grouped_300, %grouped_307) : (!cute_nvgpu.atom.tma_load<f8E8M0FNU, copy_bits = 4096, mode = tiled, num_cta = 1, g_stride = <"()"> tma_gbasis = <"((2,4,32),1,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@0,1@1@1,1@1@2)">>, !cute.coord_tensor<"(0,?,?,?)", "((512,1),(1)):((1/2@0,0),(0))">, !memref_smem_f8E8M0FNU_6)
          %coord_310 = cute.make_coord(%arg20) : (i32) -> !cute.coord<"(_,?)">
          %slice_311 = cute.slice(%slice_206, %coord_310) : !cute.coord_tensor<"(0,?,0,?)", "((512,1),?):((1/2@0,0),1@2)">, !cute.coord<"(_,?)">
          %coord_312 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,?)">
          %slice_313 = cute.slice(%filtered_149, %coord_312) : !memref_smem_f8E8M0FNU_3, !cute.coord<"(_,?)">
          %iter_314 = cute.get_iter(%slice_311) : !cute.coord_tensor<"(0,?,?,?)", "((512,1)):((1/2@0,0))">
          %tup_315 = cute.deref_arith_tuple_iter(%iter_314) : !cute.arith_tuple_iter<"(0,?,?,?)">
          %e0_316, %e1_317, %e2_318, %e3_319 = cute.get_leaves(%tup_315) : !cute.int_tuple<"(0,?,?,?)">
          %int_tuple_320 = cute.make_int_tuple(%arg21) : (i32) -> !cute.int_tuple<"?">
          %ptr_321 = cute.add_offset(%iter_43, %int_tuple_320) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          %lay_322 = cute.get_layout(%slice_311) : !cute.coord_tensor<"(0,?,?,?)", "((512,1)):((1/2@0,0))">
          %shape_323 = cute.make_shape() : () -> !cute.shape<"1">
          %lay_324 = cute.make_layout(%shape_323) : !cute.layout<"1:0">
          %append_325 = cute.append_to_rank<2> (%lay_322, %lay_324) : !cute.layout<"((512,1)):((1/2@0,0))">, !cute.layout<"1:0">
          %int_tuple_326 = cute.make_int_tuple(%e1_317, %e2_318, %e3_319) : (!cute.int_tuple<"?">, !cute.int_tuple<"?">, !cute.int_tuple<"?">) -> !cute.int_tuple<"(0,?,?,?)">
          %int_tup_iter_327 = cute.make_arith_tuple_iter(%int_tuple_326) : (!cute.int_tuple<"(0,?,?,?)">) -> !cute.arith_tuple_iter<"(0,?,?,?)">
          %view_328 = cute.make_view(%int_tup_iter_327, %append_325) : !cute.coord_tensor<"(0,?,?,?)", "((512,1),1):((1/2@0,0),0)">
          %grouped_329 = cute.group_modes(%view_328) <1, 2> : (!cute.coord_tensor<"(0,?,?,?)", "((512,1),1):((1/2@0,0),0)">) -> !cute.coord_tensor<"(0,?,?,?)", "((512,1),(1)):((1/2@0,0),(0))">
          %iter_330 = cute.get_iter(%slice_313) : !memref_smem_f8E8M0FNU_4
          %lay_331 = cute.get_layout(%slice_313) : !memref_smem_f8E8M0FNU_4
          %shape_332 = cute.make_shape() : () -> !cute.shape<"1">
          %lay_333 = cute.make_layout(%shape_332) : !cute.layout<"1:0">
          %append_334 = cute.append_to_rank<2> (%lay_331, %lay_333) : !cute.layout<"((512,1)):((1,0))">, !cute.layout<"1:0">
          %view_335 = cute.make_view(%iter_330, %append_334) : !memref_smem_f8E8M0FNU_5
          %grouped_336 = cute.group_modes(%view_335) <1, 2> : (!memref_smem_f8E8M0FNU_5) -> !memref_smem_f8E8M0FNU_6
          %1337 = cute_nvgpu.atom.make_exec_tma(%arg7) : (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E8M0FNU, copy_bits = 4096, tma_gbasis = <"((2,4,32),1,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@0,1@1@1,1@1@2)">, tma_format = U16>) -> !cute_nvgpu.atom.tma_load<f8E8M0FNU, copy_bits = 4096, mode = tiled, num_cta = 1, g_stride = <"()"> tma_gbasis = <"((2,4,32),1,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@0,1@1@1,1@1@2)">>
          %1338 = cute_nvgpu.atom.set_value<tma_bar>(%1337, %ptr_321) : (!cute_nvgpu.atom.tma_load<f8E8M0FNU, copy_bits = 4096, mode = tiled, num_cta = 1, g_stride = <"()"> tma_gbasis = <"((2,4,32),1,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@0,1@1@1,1@1@2)">>, !cute.ptr<i64, smem>)
          cute.copy(%1338, %grouped_329, %grouped_336) : (!cute_nvgpu.atom.tma_load<f8E8M0FNU, copy_bits = 4096, mode = tiled, num_cta = 1, g_stride = <"()"> tma_gbasis = <"((2,4,32),1,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@0,1@1@1,1@1@2)">>, !cute.coord_tensor<"(0,?,?,?)", "((512,1),(1)):((1/2@0,0),(0))">, !memref_smem_f8E8M0FNU_6)
          %int_tuple_339 = cute.make_int_tuple(%arg21) : (i32) -> !cute.int_tuple<"?">
          %ptr_340 = cute.add_offset(%iter_43, %int_tuple_339) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          %1341 = builtin.unrealized_conversion_cast %ptr_340 : !cute.ptr<i64, smem> to !llvm.ptr<3>
          %c10000000_i32_342 = arith.constant 10000000 : i32
          nvvm.mbarrier.try_wait.parity %1341, %arg22, %c10000000_i32_342 : !llvm.ptr<3>, i32, i32
          %coord_343 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,_,_,_,?)">
          %slice_344 = cute.slice(%1188, %coord_343) : !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "((((32,1,1),4),1),1,1,1,2):((((1,1,1),0),0),0,0,0,32)">, !cute.coord<"(_,_,_,_,?)">
          %grouped_345 = cute.group_modes(%slice_344) <1, 4> : (!cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "((((32,1,1),4),1),1,1,1):((((1,1,1),0),0),0,0,0)">) -> !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "((((32,1,1),4),1),(1,1,1)):((((1,1,1),0),0),(0,0,0))">
          %grouped_346 = cute.group_modes(%dst_partitioned_190) <1, 4> : (!memref_tmem_f8E8M0FNU_2) -> !memref_tmem_f8E8M0FNU_3
          cute.copy(%1185, %grouped_345, %grouped_346) : (!copy_s2t_sfa_, !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "((((32,1,1),4),1),(1,1,1)):((((1,1,1),0),0),(0,0,0))">, !memref_tmem_f8E8M0FNU_3)
          %coord_347 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,_,_,_,?)">
          %slice_348 = cute.slice(%1196, %coord_347) : !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "((((32,1,1),4),1),1,1,1,2):((((1,1,1),0),0),0,0,0,32)">, !cute.coord<"(_,_,_,_,?)">
          %grouped_349 = cute.group_modes(%slice_348) <1, 4> : (!cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "((((32,1,1),4),1),1,1,1):((((1,1,1),0),0),0,0,0)">) -> !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "((((32,1,1),4),1),(1,1,1)):((((1,1,1),0),0),(0,0,0))">
          %grouped_350 = cute.group_modes(%dst_partitioned_198) <1, 4> : (!memref_tmem_f8E8M0FNU_2) -> !memref_tmem_f8E8M0FNU_3
          cute.copy(%1193, %grouped_349, %grouped_350) : (!copy_s2t_sfa_, !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "((((32,1,1),4),1),(1,1,1)):((((1,1,1),0),0),(0,0,0))">, !memref_tmem_f8E8M0FNU_3)
          %1351 = arith.cmpi ne, %arg20, %c0_i32_211 : i32
          %1352 = cute_nvgpu.atom.set_value<accum_c>(%arg23, %1351) : (!mma_, i1)
          %coord_353 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,_,_,?)">
          %slice_354 = cute.slice(%frg_A_151, %coord_353) : !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1,4,2):(0,0,2,1024)">, !cute.coord<"(_,_,_,?)">
          %coord_355 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,_,_,?)">
          %slice_356 = cute.slice(%frg_B_152, %coord_355) : !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1,4,2):(0,0,2,1024)">, !cute.coord<"(_,_,_,?)">
          cute.gemm(%1352, %view_162, [%slice_354, %view_170], [%slice_356, %view_178], %view_162) : (!mma_, !memref_tmem_f32_1, [!cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1,4):(0,0,2)">, !memref_tmem_f8E8M0FNU_], [!cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1,4):(0,0,2)">, !memref_tmem_f8E8M0FNU_], !memref_tmem_f32_1)
          %c1_i32_357 = arith.constant 1 : i32
          %1358 = nvvm.elect.sync -> i1
          scf.if %1358 {
            %int_tuple_359 = cute.make_int_tuple(%arg21) : (i32) -> !cute.int_tuple<"?">
            %ptr_360 = cute.add_offset(%ptr_69, %int_tuple_359) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            %1361 = builtin.unrealized_conversion_cast %ptr_360 : !cute.ptr<i64, smem> to !llvm.ptr<3>
            nvvm.tcgen05.commit %1361 : !llvm.ptr<3>
          }
          %1362 = arith.addi %arg21, %c1_i32_357 : i32
          %c2_i32_363 = arith.constant 2 : i32
          %1364 = arith.cmpi eq, %1362, %c2_i32_363 : i32
          %1365:2 = scf.if %1364 -> (i32, i32) {
            %1366 = arith.xori %arg22, %c1_i32_357 : i32
            %c0_i32_367 = arith.constant 0 : i32
            scf.yield %c0_i32_367, %1366 : i32, i32
          } else {
            scf.yield %1362, %arg22 : i32, i32
          }
          scf.yield %1365#0, %1365#1, %1352 : i32, i32, !mma_
        }
        %1368 = nvvm.elect.sync -> i1
        scf.if %1368 {
          %1369 = builtin.unrealized_conversion_cast %iter_46 : !cute.ptr<i64, smem, align<8>> to !llvm.ptr<3>
          nvvm.tcgen05.commit %1369 : !llvm.ptr<3>
        }
      }
      %atom_370 = cute.make_atom() : () -> !cute_nvgpu.atom.tmem_load<f32, 32 DP, 32 bit, x128>
      %1371 = cute_nvgpu.atom.make_tmem_copy(%atom_370, %view_162) : (!cute_nvgpu.atom.tmem_load<f32, 32 DP, 32 bit, x128>, !memref_tmem_f32_1) -> !copy_ldtm_32_
      %coord_372 = cute.make_coord(%1023) : (i32) -> !cute.coord<"?">
      %src_partitioned_373 = cute.tiled.copy.partition_S(%1371, %view_162, %coord_372) : (!copy_ldtm_32_, !memref_tmem_f32_1, !cute.coord<"?">) -> !memref_tmem_f32_2
      %coord_374 = cute.make_coord(%1023) : (i32) -> !cute.coord<"?">
      %dst_partitioned_375 = cute.tiled.copy.partition_D(%1371, %ptn_C_118, %coord_374) : (!copy_ldtm_32_, !memref_gmem_f16_2, !cute.coord<"?">) -> !memref_gmem_f16_3
      %shape_376 = cute.make_shape() : () -> !cute.shape<"((128,1),1,1,1)">
      %lay_377 = cute.make_layout(%shape_376) : !cute.layout<"((128,1),1,1,1):((1,0),0,0,0)">
      %rmem_378 = cute.memref.alloca(%lay_377) : !memref_rmem_f32_
      %shape_379 = cute.make_shape() : () -> !cute.shape<"((128,1),1,1,1)">
      %lay_380 = cute.make_layout(%shape_379) : !cute.layout<"((128,1),1,1,1):((1,0),0,0,0)">
      %rmem_381 = cute.memref.alloca(%lay_380) : !memref_rmem_f16_
      %atom_382 = cute.make_atom() : () -> !cute_nvgpu.atom.universal_copy<f16>
      %coord_383 = cute.make_coord(%1028, %1029, %1030) : (i32, i32, i32) -> !cute.coord<"(_,_,_,_,?,?,?)">
      %slice_384 = cute.slice(%dst_partitioned_375, %coord_383) : !memref_gmem_f16_3, !cute.coord<"(_,_,_,_,?,?,?)">
      scf.if %1074 {
        cute_nvgpu.arch.sm100.relinquish_tmem_alloc_permit [ cta_1]
      }
      %c0_i32_385 = arith.constant 0 : i32
      %1386 = builtin.unrealized_conversion_cast %iter_46 : !cute.ptr<i64, smem, align<8>> to !llvm.ptr<3>
      %c10000000_i32_387 = arith.constant 10000000 : i32
      nvvm.mbarrier.try_wait.parity %1386, %c0_i32_385, %c10000000_i32_387 : !llvm.ptr<3>, i32, i32
      %grouped_388 = cute.group_modes(%src_partitioned_373) <1, 4> : (!memref_tmem_f32_2) -> !memref_tmem_f32_3
      %grouped_389 = cute.group_modes(%rmem_378) <1, 4> : (!memref_rmem_f32_) -> !memref_rmem_f32_1
      cute.copy(%1371, %grouped_388, %grouped_389) : (!copy_ldtm_32_, !memref_tmem_f32_3, !memref_rmem_f32_1)
      %1390 = cute.memref.load_vec(%rmem_378) : (!memref_rmem_f32_) -> vector<128xf32>
      %1391 = arith.truncf %1390 : vector<128xf32> to vector<128xf16>
      cute.memref.store_vec(%1391, %rmem_381) : (vector<128xf16>, !memref_rmem_f16_) -> ()
      %grouped_392 = cute.group_modes(%rmem_381) <1, 4> : (!memref_rmem_f16_) -> !memref_rmem_f16_1
      %grouped_393 = cute.group_modes(%slice_384) <1, 4> : (!memref_gmem_f16_4) -> !memref_gmem_f16_5
      cute.copy(%atom_382, %grouped_392, %grouped_393) : (!cute_nvgpu.atom.universal_copy<f16>, !memref_rmem_f16_1, !memref_gmem_f16_5)
      %c1_i32_394 = arith.constant 1 : i32
      %1395 = builtin.unrealized_conversion_cast %ptr_71 : !cute.ptr<i64, smem, align<8>> to !llvm.ptr<3>
      %arrived = nvvm.mbarrier.arrive %1395, %c1_i32_394 : !llvm.ptr<3> -> i64
      nvvm.barrier
      scf.if %1074 {
        cute_nvgpu.arch.sm100.dealloc_tmem(%tmem_ptr_160, %c512_i32_157) [ cta_1] : !cute.ptr<f32, tmem, align<16>>, i32
      }
      return
    }
  }
  func.func @cutlass___call___m_mxf8Sm100BlockScaledDenseGemmKernel_object_at__Ptrgmem_Ptrgmem(%arg0: !cute.ptr<f8E4M3FN, gmem, align<16>>, %arg1: !cute.ptr<f8E4M3FN, gmem, align<16>>, %arg2: !cute.ptr<f8E8M0FNU, gmem, align<32>>, %arg3: !cute.ptr<f8E8M0FNU, gmem, align<32>>, %arg4: !cute.ptr<f16, gmem, align<16>>, %arg5: i32, %arg6: i32, %arg7: i32, %arg8: i32, %arg9: !cuda.stream) -> i32 attributes {llvm.emit_c_interface} {
    %iv_396 = cute.assume(%arg7) : (i32) -> !cute.i32<divby 32>
    %iv_397 = cute.assume(%arg7) : (i32) -> !cute.i32<divby 32>
    %1398 = arith.muli %arg5, %arg7 : i32
    %iv_399 = cute.assume(%1398) : (i32) -> !cute.i32<divby 32>
    %shape_400 = cute.make_shape(%arg5, %iv_396, %arg8) : (i32, !cute.i32<divby 32>, i32) -> !cute.shape<"(?,?{div=32},?)">
    %stride_401 = cute.make_stride(%iv_397, %iv_399) : (!cute.i32<divby 32>, !cute.i32<divby 32>) -> !cute.stride<"(?{div=32},1,?{div=32})">
    %lay_402 = cute.make_layout(%shape_400, %stride_401) : !cute.layout<"(?,?{div=32},?):(?{div=32},1,?{div=32})">
    %view_403 = cute.make_view(%arg0, %lay_402) : !memref_gmem_f8E4M3FN_
    %iv_404 = cute.assume(%arg7) : (i32) -> !cute.i32<divby 32>
    %iv_405 = cute.assume(%arg7) : (i32) -> !cute.i32<divby 32>
    %1406 = arith.muli %arg6, %arg7 : i32
    %iv_407 = cute.assume(%1406) : (i32) -> !cute.i32<divby 32>
    %shape_408 = cute.make_shape(%arg6, %iv_404, %arg8) : (i32, !cute.i32<divby 32>, i32) -> !cute.shape<"(?,?{div=32},?)">
    %stride_409 = cute.make_stride(%iv_405, %iv_407) : (!cute.i32<divby 32>, !cute.i32<divby 32>) -> !cute.stride<"(?{div=32},1,?{div=32})">
    %lay_410 = cute.make_layout(%shape_408, %stride_409) : !cute.layout<"(?,?{div=32},?):(?{div=32},1,?{div=32})">
    %view_411 = cute.make_view(%arg1, %lay_410) : !memref_gmem_f8E4M3FN_
    %iv_412 = cute.assume(%arg5) : (i32) -> !cute.i32<divby 32>
    %iv_413 = cute.assume(%arg6) : (i32) -> !cute.i32<divby 16>
    %iv_414 = cute.assume(%arg6) : (i32) -> !cute.i32<divby 16>
    %1415 = arith.muli %arg5, %arg6 : i32
    %iv_416 = cute.assume(%1415) : (i32) -> !cute.i32<divby 512>
    %shape_417 = cute.make_shape(%iv_412, %iv_413, %arg8) : (!cute.i32<divby 32>, !cute.i32<divby 16>, i32) -> !cute.shape<"(?{div=32},?{div=16},?)">
    %stride_418 = cute.make_stride(%iv_414, %iv_416) : (!cute.i32<divby 16>, !cute.i32<divby 512>) -> !cute.stride<"(?{div=16},1,?{div=512})">
    %lay_419 = cute.make_layout(%shape_417, %stride_418) : !cute.layout<"(?{div=32},?{div=16},?):(?{div=16},1,?{div=512})">
    %view_420 = cute.make_view(%arg4, %lay_419) : !memref_gmem_f16_
    %1421 = cute.static : !cute.layout<"((32,4),(32,4)):((16,4),(0,1))">
    %iv_422 = cute.assume(%arg7) : (i32) -> !cute.i32<divby 32>
    %shape_423 = cute.make_shape(%arg5, %iv_422, %arg8) : (i32, !cute.i32<divby 32>, i32) -> !cute.shape<"(?,?{div=32},?)">
    %int_tuple_424 = cute.make_int_tuple() : () -> !cute.int_tuple<"(2,1,3)">
    %tile_to_shape_425 = cute.tile_to_shape(%1421, %shape_423, %int_tuple_424) : (!cute.layout<"((32,4),(32,4)):((16,4),(0,1))">, !cute.shape<"(?,?{div=32},?)">, !cute.int_tuple<"(2,1,3)">) -> !cute.layout<"(((32,4),?),((32,4),?),(1,?)):(((16,4),?{div=512}),((0,1),512),(0,?{div=512}))">
    %view_426 = cute.make_view(%arg2, %tile_to_shape_425) : !memref_gmem_f8E8M0FNU_
    %1427 = cute.static : !cute.layout<"((32,4),(32,4)):((16,4),(0,1))">
    %iv_428 = cute.assume(%arg7) : (i32) -> !cute.i32<divby 32>
    %shape_429 = cute.make_shape(%arg6, %iv_428, %arg8) : (i32, !cute.i32<divby 32>, i32) -> !cute.shape<"(?,?{div=32},?)">
    %int_tuple_430 = cute.make_int_tuple() : () -> !cute.int_tuple<"(2,1,3)">
    %tile_to_shape_431 = cute.tile_to_shape(%1427, %shape_429, %int_tuple_430) : (!cute.layout<"((32,4),(32,4)):((16,4),(0,1))">, !cute.shape<"(?,?{div=32},?)">, !cute.int_tuple<"(2,1,3)">) -> !cute.layout<"(((32,4),?),((32,4),?),(1,?)):(((16,4),?{div=512}),((0,1),512),(0,?{div=512}))">
    %view_432 = cute.make_view(%arg3, %tile_to_shape_431) : !memref_gmem_f8E8M0FNU_
    %1433 = cute.static : !cute.composed_layout<"S<3,4,3> o 0 o ((128,32),1,4,2):((128,1),0,32,16384)">
    %coord_434 = cute.make_coord() : () -> !cute.coord<"(_,_,_,0)">
    %slice_435 = cute.slice(%1433, %coord_434) : !cute.composed_layout<"S<3,4,3> o 0 o ((128,32),1,4,2):((128,1),0,32,16384)">, !cute.coord<"(_,_,_,0)">
    %1436 = cute.static : !cute.layout<"((128,32),1,4):((1@0,1@1),0,32@1)">
    %non_exec_atom_437, %tma_tensor_438 = cute_nvgpu.atom.make_non_exec_tiled_tma_load(%view_403, %slice_435, %1436) <{kind = <sm_90> num_multicast = 1}> : (!memref_gmem_f8E4M3FN_, !cute.composed_layout<"S<3,4,3> o 0 o ((128,32),1,4):((128,1),0,32)">, !cute.layout<"((128,32),1,4):((1@0,1@1),0,32@1)">) -> (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E4M3FN, copy_bits = 131072, tma_gbasis = <"(128,128,1):(1@1,1@0,1@2)">, tma_format = U8>, !cute.coord_tensor<"(0,0,0)", "(?,?{div=32},?):(1@1,1@0,1@2)">)
    %1439 = cute.static : !cute.composed_layout<"S<3,4,3> o 0 o ((128,32),1,4,2):((128,1),0,32,16384)">
    %coord_440 = cute.make_coord() : () -> !cute.coord<"(_,_,_,0)">
    %slice_441 = cute.slice(%1439, %coord_440) : !cute.composed_layout<"S<3,4,3> o 0 o ((128,32),1,4,2):((128,1),0,32,16384)">, !cute.coord<"(_,_,_,0)">
    %1442 = cute.static : !cute.layout<"((128,32),1,4):((1@0,1@1),0,32@1)">
    %non_exec_atom_443, %tma_tensor_444 = cute_nvgpu.atom.make_non_exec_tiled_tma_load(%view_411, %slice_441, %1442) <{kind = <sm_90> num_multicast = 1}> : (!memref_gmem_f8E4M3FN_, !cute.composed_layout<"S<3,4,3> o 0 o ((128,32),1,4):((128,1),0,32)">, !cute.layout<"((128,32),1,4):((1@0,1@1),0,32@1)">) -> (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E4M3FN, copy_bits = 131072, tma_gbasis = <"(128,128,1):(1@1,1@0,1@2)">, tma_format = U8>, !cute.coord_tensor<"(0,0,0)", "(?,?{div=32},?):(1@1,1@0,1@2)">)
    %1445 = cute.static : !cute.layout<"((((32,4),1),(32,1)),1,4,2):((((16,4),0),(0,0)),0,1,512)">
    %coord_446 = cute.make_coord() : () -> !cute.coord<"(_,_,_,0)">
    %slice_447 = cute.slice(%1445, %coord_446) : !cute.layout<"((((32,4),1),(32,1)),1,4,2):((((16,4),0),(0,0)),0,1,512)">, !cute.coord<"(_,_,_,0)">
    %1448 = cute.static : !cute.layout<"(((32,4),(32,1)),1,4):(((1@0@0@0,1@1@0@0),(1@0@0@1,0)),0,1@1@0@1)">
    %non_exec_atom_449, %tma_tensor_450 = cute_nvgpu.atom.make_non_exec_tiled_tma_load(%view_426, %slice_447, %1448) <{kind = <sm_90> num_multicast = 1 tma_format = #cute_nvgpu.tma_data_format<U16>}> : (!memref_gmem_f8E8M0FNU_, !cute.layout<"((((32,4),1),(32,1)),1,4):((((16,4),0),(0,0)),0,1)">, !cute.layout<"(((32,4),(32,1)),1,4):(((1@0@0@0,1@1@0@0),(1@0@0@1,0)),0,1@1@0@1)">) -> (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E8M0FNU, copy_bits = 4096, tma_gbasis = <"((2,4,32),1,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@0,1@1@1,1@1@2)">, tma_format = U16>, !cute.coord_tensor<"(0,0,0,0)", "(((32,4),?),((32,4),?),(1,?)):(((8@0,2@0),1@1),((0,1/2@0),1@2),(0,1@3))">)
    %1451 = cute.static : !cute.layout<"((((32,4),1),(32,1)),1,4,2):((((16,4),0),(0,0)),0,1,512)">
    %coord_452 = cute.make_coord() : () -> !cute.coord<"(_,_,_,0)">
    %slice_453 = cute.slice(%1451, %coord_452) : !cute.layout<"((((32,4),1),(32,1)),1,4,2):((((16,4),0),(0,0)),0,1,512)">, !cute.coord<"(_,_,_,0)">
    %1454 = cute.static : !cute.layout<"(((32,4),(32,1)),1,4):(((1@0@0@0,1@1@0@0),(1@0@0@1,0)),0,1@1@0@1)">
    %non_exec_atom_455, %tma_tensor_456 = cute_nvgpu.atom.make_non_exec_tiled_tma_load(%view_432, %slice_453, %1454) <{kind = <sm_90> num_multicast = 1 tma_format = #cute_nvgpu.tma_data_format<U16>}> : (!memref_gmem_f8E8M0FNU_, !cute.layout<"((((32,4),1),(32,1)),1,4):((((16,4),0),(0,0)),0,1)">, !cute.layout<"(((32,4),(32,1)),1,4):(((1@0@0@0,1@1@0@0),(1@0@0@1,0)),0,1@1@0@1)">) -> (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E8M0FNU, copy_bits = 4096, tma_gbasis = <"((2,4,32),1,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@0,1@1@1,1@1@2)">, tma_format = U16>, !cute.coord_tensor<"(0,0,0,0)", "(((32,4),?),((32,4),?),(1,?)):(((8@0,2@0),1@1),((0,1/2@0),1@2),(0,1@3))">)
    %atom_457 = cute.make_atom() : () -> !cute_nvgpu.sm100.mma_bs<128x128x32, num_cta = 1, ab_major = (k, k), elem_type = (f8E4M3FN, f8E4M3FN, f32), sf_type = f8E8M0FNU, frag_kind = ss, vec_size = 32>
    %1458 = cute.make_tiled_mma(%atom_457) : !mma_
    %tile_459 = cute.make_tile() : () -> !cute.tile<"[128:1;128:1;1:0]">
    %1460 = cute.get_shape(%tile_to_shape_431) : (!cute.layout<"(((32,4),?),((32,4),?),(1,?)):(((16,4),?{div=512}),((0,1),512),(0,?{div=512}))">) -> !cute.shape<"(((32,4),?),((32,4),?),(1,?))">
    %c127_i32_461 = arith.constant 127 : i32
    %1462 = arith.addi %arg5, %c127_i32_461 : i32
    %c128_i32_463 = arith.constant 128 : i32
    %1464 = arith.floordivsi %1462, %c128_i32_463 : i32
    %c127_i32_465 = arith.constant 127 : i32
    %1466 = arith.addi %arg6, %c127_i32_465 : i32
    %c128_i32_467 = arith.constant 128 : i32
    %1468 = arith.floordivsi %1466, %c128_i32_467 : i32
    %c0_i32_469 = arith.constant 0 : i32
    %c1_i32_470 = arith.constant 1 : i32
    %c128_i32_471 = arith.constant 128 : i32
    %c0_i64_472 = arith.constant 0 : i64
    %1473 = cute.kernel_smem_size @kernels::@kernel_cutlass_kernel_m_mxf8Sm100BlockScaledDenseGemmKernel_object_at__TiledMMA_ThrLayoutVMNK11110000_0 : i64
    %1474 = cuda.launch_cfg.create<max_attrs = 17 : i32> (blockDim = (%c128_i32_471, %c1_i32_470, %c1_i32_470), dynamicSmemBytes = %1473, gridDim = (%1464, %1468, %arg8), stream = %arg9) : i32, i32, i32, i64, i32, i32, i32, !cuda.stream -> !cuda.launch_cfg<max_attrs = 17>
    cuda.launch_cfg.cluster_dim[%1474] (%c1_i32_470, %c1_i32_470, %c1_i32_470) : !cuda.launch_cfg<max_attrs = 17>, i32, i32, i32
    cuda.launch_cfg.cooperative[%1474] %c0_i32_469 : !cuda.launch_cfg<max_attrs = 17>, i32
    %1475 = cuda.launch_ex @kernels::@kernel_cutlass_kernel_m_mxf8Sm100BlockScaledDenseGemmKernel_object_at__TiledMMA_ThrLayoutVMNK11110000_0<%1474> (%1458, %non_exec_atom_437, %tma_tensor_438, %non_exec_atom_443, %tma_tensor_444, %non_exec_atom_449, %tma_tensor_450, %non_exec_atom_455, %tma_tensor_456, %view_420, %1433, %1439, %1445, %1451) {assume_kernel_attr = #cuda.assume_kernel_attr<true>} : !cuda.launch_cfg<max_attrs = 17>, (!mma_, !cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E4M3FN, copy_bits = 131072, tma_gbasis = <"(128,128,1):(1@1,1@0,1@2)">, tma_format = U8>, !cute.coord_tensor<"(0,0,0)", "(?,?{div=32},?):(1@1,1@0,1@2)">, !cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E4M3FN, copy_bits = 131072, tma_gbasis = <"(128,128,1):(1@1,1@0,1@2)">, tma_format = U8>, !cute.coord_tensor<"(0,0,0)", "(?,?{div=32},?):(1@1,1@0,1@2)">, !cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E8M0FNU, copy_bits = 4096, tma_gbasis = <"((2,4,32),1,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@0,1@1@1,1@1@2)">, tma_format = U16>, !cute.coord_tensor<"(0,0,0,0)", "(((32,4),?),((32,4),?),(1,?)):(((8@0,2@0),1@1),((0,1/2@0),1@2),(0,1@3))">, !cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E8M0FNU, copy_bits = 4096, tma_gbasis = <"((2,4,32),1,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@0,1@1@1,1@1@2)">, tma_format = U16>, !cute.coord_tensor<"(0,0,0,0)", "(((32,4),?),((32,4),?),(1,?)):(((8@0,2@0),1@1),((0,1/2@0),1@2),(0,1@3))">, !memref_gmem_f16_, !cute.composed_layout<"S<3,4,3> o 0 o ((128,32),1,4,2):((128,1),0,32,16384)">, !cute.composed_layout<"S<3,4,3> o 0 o ((128,32),1,4,2):((128,1),0,32,16384)">, !cute.layout<"((((32,4),1),(32,1)),1,4,2):((((16,4),0),(0,0)),0,1,512)">, !cute.layout<"((((32,4),1),(32,1)),1,4,2):((((16,4),0),(0,0)),0,1,512)">) -> !cuda.result
    %1476 = cuda.cast %1475 : !cuda.result -> i32
    cuda.return_if_error %1476 : i32
    return %c0_i32_469 : i32
  }
}
