!copy_ldtm_32_ = !cute.tiled_copy<!cute_nvgpu.atom.tmem_load<f32, 32 DP, 32 bit, x128>, layout_copy_tv = <"((32,4),(128,32)):((0,1),(4,512))">, tiler_mn = <"[(512,32):(32,1);1:0;1:0]">>
!copy_s2t_sfa_ = !cute.tiled_copy<!cute_nvgpu.atom.s2t_copy<f8E4M3FN, 32 DP, 128 bit, 1 cta, x4>, layout_copy_tv = <"(1,(32,(4,4),4)):(0,(1,(32,128),512))">, tiler_mn = <"[(32,4,16):(1,512,32);1:0;1:0]">>
!copy_s2t_sfb_ = !cute.tiled_copy<!cute_nvgpu.atom.s2t_copy<f8E4M3FN, 32 DP, 128 bit, 1 cta, x4>, layout_copy_tv = <"(1,(32,(4,4),4)):(0,(1,(32,128),512))">, tiler_mn = <"[(32,4,4,4):(1,1024,32,256);1:0;1:0]">>
!memref_gmem_f16_ = !cute.memref<f16, gmem, align<16>, "(?{div=32},?{div=16},?):(?{div=16},1,?{div=512})">
!memref_gmem_f16_1 = !cute.memref<f16, gmem, align<16>, "(128,256,?,?,?):(?{div=16},1,?{div=2048},256,?{div=512})">
!memref_gmem_f16_2 = !cute.memref<f16, gmem, align<16>, "((128,256),1,1,?,?,?):((?{div=16},1),0,0,?{div=2048},256,?{div=512})">
!memref_gmem_f16_3 = !cute.memref<f16, gmem, align<16>, "((128,1),2,1,1,?,?,?):((1,0),128,0,0,?{div=2048},256,?{div=512})">
!memref_gmem_f16_4 = !cute.memref<f16, gmem, align<16>, "((128,1),2,1,1):((1,0),128,0,0)">
!memref_gmem_f16_5 = !cute.memref<f16, gmem, align<16>, "((128,1),(2,1,1)):((1,0),(128,0,0))">
!memref_gmem_f4E2M1FN_ = !cute.memref<f4E2M1FN, gmem, align<16>, "(?,?{div=32},?):(?{div=32},1,?{div=32})">
!memref_gmem_f8E4M3FN_ = !cute.memref<f8E4M3FN, gmem, align<32>, "(((32,4),?),((16,4),?),(1,?)):(((16,4),?{div=512}),((0,1),512),(0,?{div=512}))">
!memref_rmem_f16_ = !cute.memref<f16, rmem, align<32>, "((128,1),2,1,1):((1,0),128,0,0)">
!memref_rmem_f16_1 = !cute.memref<f16, rmem, align<32>, "((128,1),(2,1,1)):((1,0),(128,0,0))">
!memref_rmem_f32_ = !cute.memref<f32, rmem, align<32>, "((128,1),2,1,1):((1,0),128,0,0)">
!memref_rmem_f32_1 = !cute.memref<f32, rmem, align<32>, "((128,1),(2,1,1)):((1,0),(128,0,0))">
!memref_smem_f4E2M1FN_ = !cute.memref<f4E2M1FN, smem, align<128>, S<3,4,3>, "((128,64),1,4,2):((256,1),0,64,32768)">
!memref_smem_f4E2M1FN_1 = !cute.memref<f4E2M1FN, smem, align<128>, S<3,4,3>, "(((128,64),1,4),2):(((256,1),0,64),32768)">
!memref_smem_f4E2M1FN_10 = !cute.memref<f4E2M1FN, smem, align<128>, S<3,4,3>, "((65536,1),1):((1,0),0)">
!memref_smem_f4E2M1FN_11 = !cute.memref<f4E2M1FN, smem, align<128>, S<3,4,3>, "((65536,1),(1)):((1,0),(0))">
!memref_smem_f4E2M1FN_2 = !cute.memref<f4E2M1FN, smem, align<128>, S<3,4,3>, "((32768,1),2):((1,0),32768)">
!memref_smem_f4E2M1FN_3 = !cute.memref<f4E2M1FN, smem, align<128>, S<3,4,3>, "((32768,1)):((1,0))">
!memref_smem_f4E2M1FN_4 = !cute.memref<f4E2M1FN, smem, align<128>, S<3,4,3>, "((32768,1),1):((1,0),0)">
!memref_smem_f4E2M1FN_5 = !cute.memref<f4E2M1FN, smem, align<128>, S<3,4,3>, "((32768,1),(1)):((1,0),(0))">
!memref_smem_f4E2M1FN_6 = !cute.memref<f4E2M1FN, smem, align<128>, S<3,4,3>, "((256,64),1,4,2):((256,1),0,64,65536)">
!memref_smem_f4E2M1FN_7 = !cute.memref<f4E2M1FN, smem, align<128>, S<3,4,3>, "(((256,64),1,4),2):(((256,1),0,64),65536)">
!memref_smem_f4E2M1FN_8 = !cute.memref<f4E2M1FN, smem, align<128>, S<3,4,3>, "((65536,1),2):((1,0),65536)">
!memref_smem_f4E2M1FN_9 = !cute.memref<f4E2M1FN, smem, align<128>, S<3,4,3>, "((65536,1)):((1,0))">
!memref_smem_f8E4M3FN_ = !cute.memref<f8E4M3FN, smem, align<128>, "((((32,4),1),(16,4)),1,4,2):((((16,4),0),(0,1)),0,512,2048)">
!memref_smem_f8E4M3FN_1 = !cute.memref<f8E4M3FN, smem, align<128>, "(((((32,4),1),(16,4)),1,4),2):(((((16,4),0),(0,1)),0,512),2048)">
!memref_smem_f8E4M3FN_10 = !cute.memref<f8E4M3FN, smem, align<128>, "((4096,1),2):((1,0),4096)">
!memref_smem_f8E4M3FN_11 = !cute.memref<f8E4M3FN, smem, align<128>, "((4096,1)):((1,0))">
!memref_smem_f8E4M3FN_12 = !cute.memref<f8E4M3FN, smem, align<128>, "((4096,1),1):((1,0),0)">
!memref_smem_f8E4M3FN_13 = !cute.memref<f8E4M3FN, smem, align<128>, "((4096,1),(1)):((1,0),(0))">
!memref_smem_f8E4M3FN_14 = !cute.memref<f8E4M3FN, smem, align<128>, "((((32,4),1),(1,4)),1,4,2):((((16,4),0),(0,1)),0,512,2048)">
!memref_smem_f8E4M3FN_15 = !cute.memref<f8E4M3FN, smem, align<128>, "((((32,4,4),4),1),1,1,4,2):((((16,4,4),0),0),0,0,512,2048)">
!memref_smem_f8E4M3FN_16 = !cute.memref<f8E4M3FN, smem, align<128>, "((((32,4),2),(1,4)),1,4,2):((((16,4),2048),(0,1)),0,512,4096)">
!memref_smem_f8E4M3FN_17 = !cute.memref<f8E4M3FN, smem, align<128>, "((((32,4,4),4),1),2,1,4,2):((((16,4,4),0),0),2048,0,512,4096)">
!memref_smem_f8E4M3FN_2 = !cute.memref<f8E4M3FN, smem, align<128>, "((2048,16),2):((1,0),2048)">
!memref_smem_f8E4M3FN_3 = !cute.memref<f8E4M3FN, smem, align<128>, "((2048,1),2):((1,0),2048)">
!memref_smem_f8E4M3FN_4 = !cute.memref<f8E4M3FN, smem, align<128>, "((2048,1)):((1,0))">
!memref_smem_f8E4M3FN_5 = !cute.memref<f8E4M3FN, smem, align<128>, "((2048,1),1):((1,0),0)">
!memref_smem_f8E4M3FN_6 = !cute.memref<f8E4M3FN, smem, align<128>, "((2048,1),(1)):((1,0),(0))">
!memref_smem_f8E4M3FN_7 = !cute.memref<f8E4M3FN, smem, align<128>, "((((32,4),2),(16,4)),1,4,2):((((16,4),2048),(0,1)),0,512,4096)">
!memref_smem_f8E4M3FN_8 = !cute.memref<f8E4M3FN, smem, align<128>, "(((((32,4),2),(16,4)),1,4),2):(((((16,4),2048),(0,1)),0,512),4096)">
!memref_smem_f8E4M3FN_9 = !cute.memref<f8E4M3FN, smem, align<128>, "((4096,16),2):((1,0),4096)">
!memref_tmem_f32_ = !cute.memref<f32, tmem, align<1>, "((128,256),1,1):((65536,1),0,0)">
!memref_tmem_f32_1 = !cute.memref<f32, tmem, align<16>, "((128,256),1,1):((65536,1),0,0)">
!memref_tmem_f32_2 = !cute.memref<f32, tmem, align<16>, "(((128,32),1),2,1,1):(((1,65536),0),128,0,0)">
!memref_tmem_f32_3 = !cute.memref<f32, tmem, align<16>, "(((128,32),1),(2,1,1)):(((1,65536),0),(128,0,0))">
!memref_tmem_f8E4M3FN_ = !cute.memref<f8E4M3FN, tmem, align<16>, "((((32,4),4),(16,4)),1,4):((((262144,4),8388608),(0,1)),0,16)">
!memref_tmem_f8E4M3FN_1 = !cute.memref<f8E4M3FN, tmem, align<16>, "((((32,8),4),(16,4)),1,4):((((262144,4),8388608),(0,1)),0,32)">
!memref_tmem_f8E4M3FN_2 = !cute.memref<f8E4M3FN, tmem, align<16>, "((((32,4),4),(1,4)),1,4):((((262144,4),8388608),(0,1)),0,16)">
!memref_tmem_f8E4M3FN_3 = !cute.memref<f8E4M3FN, tmem, align<16>, "(((32,16,4),1),1,1,4):(((262144,1,8388608),0),0,0,16)">
!memref_tmem_f8E4M3FN_4 = !cute.memref<f8E4M3FN, tmem, align<16>, "(((32,16,4),1),(1,1,4)):(((262144,1,8388608),0),(0,0,16))">
!memref_tmem_f8E4M3FN_5 = !cute.memref<f8E4M3FN, tmem, align<16>, "((((32,8),4),(1,4)),1,4):((((262144,4),8388608),(0,1)),0,32)">
!memref_tmem_f8E4M3FN_6 = !cute.memref<f8E4M3FN, tmem, align<16>, "(((32,16,4),1),2,1,4):(((262144,1,8388608),0),16,0,32)">
!memref_tmem_f8E4M3FN_7 = !cute.memref<f8E4M3FN, tmem, align<16>, "(((32,16,4),1),(2,1,4)):(((262144,1,8388608),0),(16,0,32))">
!memref_tmem_f8E4M3FN_8 = !cute.memref<f8E4M3FN, tmem, align<16>, "((((32,4),4),(16,4)),1):((((262144,4),8388608),(0,1)),0)">
!memref_tmem_f8E4M3FN_9 = !cute.memref<f8E4M3FN, tmem, align<16>, "((((32,8),4),(16,4)),1):((((262144,4),8388608),(0,1)),0)">
!mma_ = !cute.tiled_mma<!cute_nvgpu.sm100.mma_bs<128x256x64, num_cta = 1, ab_major = (k, k), elem_type = (f4E2M1FN, f4E2M1FN, f32), sf_type = f8E4M3FN, frag_kind = ss, vec_size = 16>, atom_layout_MNK = <"(1,1,1):(0,0,0)">, permutation_MNK = <"[_;_;_]">>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    cuda.kernel @kernel_cutlass_kernel_m_nvf4Sm100BlockScaledDenseGemmKernel_object_at__TiledMMA_ThrLayoutVMNK11110000_0(%arg0: !mma_, %arg1: !cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f4E2M1FN, copy_bits = 131072, tma_gbasis = <"(256,128,1):(1@1,1@0,1@2)">, tma_format = U4>, %arg2: !cute.coord_tensor<"(0,0,0)", "(?,?{div=32},?):(1@1,1@0,1@2)">, %arg3: !cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f4E2M1FN, copy_bits = 262144, tma_gbasis = <"(256,256,1):(1@1,1@0,1@2)">, tma_format = U4>, %arg4: !cute.coord_tensor<"(0,0,0)", "(?,?{div=32},?):(1@1,1@0,1@2)">, %arg5: !cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E4M3FN, copy_bits = 16384, tma_gbasis = <"((2,4,32),4,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">, tma_format = U16>, %arg6: !cute.coord_tensor<"(0,0,0,0)", "(((32,4),?),((16,4),?),(1,?)):(((8@0,2@0),1@2),((0,1/2@0),1@1),(0,1@3))">, %arg7: !cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E4M3FN, copy_bits = 32768, tma_gbasis = <"((2,4,32),4,2,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">, tma_format = U16>, %arg8: !cute.coord_tensor<"(0,0,0,0)", "(((32,4),?),((16,4),?),(1,?)):(((8@0,2@0),1@2),((0,1/2@0),1@1),(0,1@3))">, %arg9: !memref_gmem_f16_, %arg10: !cute.composed_layout<"S<3,4,3> o 0 o ((128,64),1,4,2):((256,1),0,64,32768)">, %arg11: !cute.composed_layout<"S<3,4,3> o 0 o ((256,64),1,4,2):((256,1),0,64,65536)">, %arg12: !cute.layout<"((((32,4),1),(16,4)),1,4,2):((((16,4),0),(0,1)),0,512,2048)">, %arg13: !cute.layout<"((((32,4),2),(16,4)),1,4,2):((((16,4),2048),(0,1)),0,512,4096)">) attributes {cu_attrs = {max_dynamic_shared_size_bytes = #cuda.dev_max_shared_memory_optin, non_portable_cluster_size_allowed = 1 : i32}, cute.kernel, gpu.kernel, nvvm.reqntid = array<i32: 128, 1, 1>} {
      %iter_1 = cute.get_iter(%arg2) : !cute.coord_tensor<"(0,0,0)", "(?,?{div=32},?):(1@1,1@0,1@2)">
      %tup_2 = cute.deref_arith_tuple_iter(%iter_1) : !cute.arith_tuple_iter<"(0,0,0)">
      %e0_3, %e1_4, %e2_5 = cute.get_leaves(%tup_2) : !cute.int_tuple<"(0,0,0)">
      %iter_6 = cute.get_iter(%arg4) : !cute.coord_tensor<"(0,0,0)", "(?,?{div=32},?):(1@1,1@0,1@2)">
      %tup_7 = cute.deref_arith_tuple_iter(%iter_6) : !cute.arith_tuple_iter<"(0,0,0)">
      %e0_8, %e1_9, %e2_10 = cute.get_leaves(%tup_7) : !cute.int_tuple<"(0,0,0)">
      %iter_11 = cute.get_iter(%arg6) : !cute.coord_tensor<"(0,0,0,0)", "(((32,4),?),((16,4),?),(1,?)):(((8@0,2@0),1@2),((0,1/2@0),1@1),(0,1@3))">
      %tup_12 = cute.deref_arith_tuple_iter(%iter_11) : !cute.arith_tuple_iter<"(0,0,0,0)">
      %e0_13, %e1_14, %e2_15, %e3_16 = cute.get_leaves(%tup_12) : !cute.int_tuple<"(0,0,0,0)">
      %iter_17 = cute.get_iter(%arg8) : !cute.coord_tensor<"(0,0,0,0)", "(((32,4),?),((16,4),?),(1,?)):(((8@0,2@0),1@2),((0,1/2@0),1@1),(0,1@3))">
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
      %smem_39 = cute.memref.alloca() {smem.partition_id = 0 : i32} : !cute.memref<i8, smem, align<1024>, "111616:1">
      %iter_40 = cute.get_iter(%smem_39) : !cute.memref<i8, smem, align<1024>, "111616:1">
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
      %iter_52 = cute.recast_iter(%ptr_51) : !cute.ptr<i8, smem, align<128>> to !cute.ptr<f4E2M1FN, smem, align<128>, S<3,4,3>>
      %1053 = cute.composed_get_outer(%arg10) : (!cute.composed_layout<"S<3,4,3> o 0 o ((128,64),1,4,2):((256,1),0,64,32768)">) -> !cute.layout<"((128,64),1,4,2):((256,1),0,64,32768)">
      %view_54 = cute.make_view(%iter_52, %1053) : !memref_smem_f4E2M1FN_
      %int_tuple_55 = cute.make_int_tuple() : () -> !cute.int_tuple<"33792">
      %ptr_56 = cute.add_offset(%iter_40, %int_tuple_55) : (!cute.ptr<i8, smem, align<1024>>, !cute.int_tuple<"33792">) -> !cute.ptr<i8, smem, align<128>>
      %iter_57 = cute.recast_iter(%ptr_56) : !cute.ptr<i8, smem, align<128>> to !cute.ptr<f4E2M1FN, smem, align<128>, S<3,4,3>>
      %1058 = cute.composed_get_outer(%arg11) : (!cute.composed_layout<"S<3,4,3> o 0 o ((256,64),1,4,2):((256,1),0,64,65536)">) -> !cute.layout<"((256,64),1,4,2):((256,1),0,64,65536)">
      %view_59 = cute.make_view(%iter_57, %1058) : !memref_smem_f4E2M1FN_6
      %int_tuple_60 = cute.make_int_tuple() : () -> !cute.int_tuple<"99328">
      %ptr_61 = cute.add_offset(%iter_40, %int_tuple_60) : (!cute.ptr<i8, smem, align<1024>>, !cute.int_tuple<"99328">) -> !cute.ptr<i8, smem, align<128>>
      %iter_62 = cute.recast_iter(%ptr_61) : !cute.ptr<i8, smem, align<128>> to !cute.ptr<f8E4M3FN, smem, align<128>>
      %view_63 = cute.make_view(%iter_62, %arg12) : !memref_smem_f8E4M3FN_
      %int_tuple_64 = cute.make_int_tuple() : () -> !cute.int_tuple<"103424">
      %ptr_65 = cute.add_offset(%iter_40, %int_tuple_64) : (!cute.ptr<i8, smem, align<1024>>, !cute.int_tuple<"103424">) -> !cute.ptr<i8, smem, align<128>>
      %iter_66 = cute.recast_iter(%ptr_65) : !cute.ptr<i8, smem, align<128>> to !cute.ptr<f8E4M3FN, smem, align<128>>
      %view_67 = cute.make_view(%iter_66, %arg13) : !memref_smem_f8E4M3FN_7
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
      %tile_91 = cute.make_tile() : () -> !cute.tile<"[128:1;256:1]">
      %coord_92 = cute.make_coord() : () -> !cute.coord<"(_,_,_)">
      %tiled_view_93 = cute.local_tile(%arg2, %tile_91, %coord_92) : (!cute.coord_tensor<"(0,0,0)", "(?,?{div=32},?):(1@1,1@0,1@2)">, !cute.tile<"[128:1;256:1]">, !cute.coord<"(_,_,_)">) -> !cute.coord_tensor<"(0,0,0)", "(128,256,?,?,?):(1@1,1@0,128@1,256@0,1@2)">
      %sz_94 = cute.size(%tiled_view_93) <{mode = [3]}> : (!cute.coord_tensor<"(0,0,0)", "(128,256,?,?,?):(1@1,1@0,128@1,256@0,1@2)">) -> !cute.int_tuple<"?">
      %e0_95 = cute.get_leaves(%sz_94) : !cute.int_tuple<"?">
      %1096 = cute.get_scalars(%e0_95) : !cute.int_tuple<"?">
      %coord_97 = cute.make_coord() : () -> !cute.coord<"0">
      %ptn_A_98 = cute.tiled.mma.partition A (%arg0, %tiled_view_93, %coord_97) : (!mma_, !cute.coord_tensor<"(0,0,0)", "(128,256,?,?,?):(1@1,1@0,128@1,256@0,1@2)">, !cute.coord<"0">) -> !cute.coord_tensor<"(0,0,0)", "((128,64),1,4,?,?,?):((1@1,1@0),0,64@0,128@1,256@0,1@2)">
      %tile_99 = cute.make_tile() : () -> !cute.tile<"[256:1;256:1]">
      %coord_100 = cute.make_coord() : () -> !cute.coord<"(_,_,_)">
      %tiled_view_101 = cute.local_tile(%arg4, %tile_99, %coord_100) : (!cute.coord_tensor<"(0,0,0)", "(?,?{div=32},?):(1@1,1@0,1@2)">, !cute.tile<"[256:1;256:1]">, !cute.coord<"(_,_,_)">) -> !cute.coord_tensor<"(0,0,0)", "(256,256,?,?,?):(1@1,1@0,256@1,256@0,1@2)">
      %coord_102 = cute.make_coord() : () -> !cute.coord<"0">
      %ptn_B_103 = cute.tiled.mma.partition B (%arg0, %tiled_view_101, %coord_102) : (!mma_, !cute.coord_tensor<"(0,0,0)", "(256,256,?,?,?):(1@1,1@0,256@1,256@0,1@2)">, !cute.coord<"0">) -> !cute.coord_tensor<"(0,0,0)", "((256,64),1,4,?,?,?):((1@1,1@0),0,64@0,256@1,256@0,1@2)">
      %tile_104 = cute.make_tile() : () -> !cute.tile<"[128:1;256:1]">
      %coord_105 = cute.make_coord() : () -> !cute.coord<"(_,_,_)">
      %tiled_view_106 = cute.local_tile(%arg6, %tile_104, %coord_105) : (!cute.coord_tensor<"(0,0,0,0)", "(((32,4),?),((16,4),?),(1,?)):(((8@0,2@0),1@2),((0,1/2@0),1@1),(0,1@3))">, !cute.tile<"[128:1;256:1]">, !cute.coord<"(_,_,_)">) -> !cute.coord_tensor<"(0,0,0,0)", "(((32,4),1),((16,4),4),?,?,(1,?)):(((8@0,2@0),0),((0,1/2@0),1@1),1@2,4@1,(0,1@3))">
      %coord_107 = cute.make_coord() : () -> !cute.coord<"0">
      %ptn_A_108 = cute.tiled.mma.partition A (%arg0, %tiled_view_106, %coord_107) : (!mma_, !cute.coord_tensor<"(0,0,0,0)", "(((32,4),1),((16,4),4),?,?,(1,?)):(((8@0,2@0),0),((0,1/2@0),1@1),1@2,4@1,(0,1@3))">, !cute.coord<"0">) -> !cute.coord_tensor<"(0,0,0,0)", "((((32,4),1),(16,4)),1,4,?,?,(1,?)):((((8@0,2@0),0),(0,1/2@0)),0,1@1,1@2,4@1,(0,1@3))">
      %tile_109 = cute.make_tile() : () -> !cute.tile<"[256:1;256:1]">
      %coord_110 = cute.make_coord() : () -> !cute.coord<"(_,_,_)">
      %tiled_view_111 = cute.local_tile(%arg8, %tile_109, %coord_110) : (!cute.coord_tensor<"(0,0,0,0)", "(((32,4),?),((16,4),?),(1,?)):(((8@0,2@0),1@2),((0,1/2@0),1@1),(0,1@3))">, !cute.tile<"[256:1;256:1]">, !cute.coord<"(_,_,_)">) -> !cute.coord_tensor<"(0,0,0,0)", "(((32,4),2),((16,4),4),?,?,(1,?)):(((8@0,2@0),1@2),((0,1/2@0),1@1),2@2,4@1,(0,1@3))">
      %coord_112 = cute.make_coord() : () -> !cute.coord<"0">
      %ptn_B_113 = cute.tiled.mma.partition B (%arg0, %tiled_view_111, %coord_112) : (!mma_, !cute.coord_tensor<"(0,0,0,0)", "(((32,4),2),((16,4),4),?,?,(1,?)):(((8@0,2@0),1@2),((0,1/2@0),1@1),2@2,4@1,(0,1@3))">, !cute.coord<"0">) -> !cute.coord_tensor<"(0,0,0,0)", "((((32,4),2),(16,4)),1,4,?,?,(1,?)):((((8@0,2@0),1@2),(0,1/2@0)),0,1@1,2@2,4@1,(0,1@3))">
      %tile_114 = cute.make_tile() : () -> !cute.tile<"[128:1;256:1]">
      %coord_115 = cute.make_coord() : () -> !cute.coord<"(_,_,_)">
      %tiled_view_116 = cute.local_tile(%arg9, %tile_114, %coord_115) : (!memref_gmem_f16_, !cute.tile<"[128:1;256:1]">, !cute.coord<"(_,_,_)">) -> !memref_gmem_f16_1
      %coord_117 = cute.make_coord() : () -> !cute.coord<"0">
      %ptn_C_118 = cute.tiled.mma.partition C (%arg0, %tiled_view_116, %coord_117) : (!mma_, !memref_gmem_f16_1, !cute.coord<"0">) -> !memref_gmem_f16_2
      %shape_119 = cute.make_shape() : () -> !cute.shape<"1">
      %lay_120 = cute.make_layout(%shape_119) : !cute.layout<"1:0">
      %grouped_121 = cute.group_modes(%view_54) <0, 3> : (!memref_smem_f4E2M1FN_) -> !memref_smem_f4E2M1FN_1
      %grouped_122 = cute.group_modes(%ptn_A_98) <0, 3> : (!cute.coord_tensor<"(0,0,0)", "((128,64),1,4,?,?,?):((1@1,1@0),0,64@0,128@1,256@0,1@2)">) -> !cute.coord_tensor<"(0,0,0)", "(((128,64),1,4),?,?,?):(((1@1,1@0),0,64@0),128@1,256@0,1@2)">
      %coord_123 = cute.make_coord() : () -> !cute.coord<"0">
      %res_smem_tensor_124, %res_target_tensors_125 = cute_nvgpu.atom.tma_partition(%arg1, %coord_123, %lay_120, %grouped_121, %grouped_122) : (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f4E2M1FN, copy_bits = 131072, tma_gbasis = <"(256,128,1):(1@1,1@0,1@2)">, tma_format = U4>, !cute.coord<"0">, !cute.layout<"1:0">, !memref_smem_f4E2M1FN_1, !cute.coord_tensor<"(0,0,0)", "(((128,64),1,4),?,?,?):(((1@1,1@0),0,64@0),128@1,256@0,1@2)">) -> (!memref_smem_f4E2M1FN_2, !cute.coord_tensor<"(0,0,0)", "(((256,128),1),?,?,?):(((1@0,1@1),0),128@1,256@0,1@2)">)
      %shape_126 = cute.make_shape() : () -> !cute.shape<"1">
      %lay_127 = cute.make_layout(%shape_126) : !cute.layout<"1:0">
      %grouped_128 = cute.group_modes(%view_59) <0, 3> : (!memref_smem_f4E2M1FN_6) -> !memref_smem_f4E2M1FN_7
      %grouped_129 = cute.group_modes(%ptn_B_103) <0, 3> : (!cute.coord_tensor<"(0,0,0)", "((256,64),1,4,?,?,?):((1@1,1@0),0,64@0,256@1,256@0,1@2)">) -> !cute.coord_tensor<"(0,0,0)", "(((256,64),1,4),?,?,?):(((1@1,1@0),0,64@0),256@1,256@0,1@2)">
      %coord_130 = cute.make_coord() : () -> !cute.coord<"0">
      %res_smem_tensor_131, %res_target_tensors_132 = cute_nvgpu.atom.tma_partition(%arg3, %coord_130, %lay_127, %grouped_128, %grouped_129) : (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f4E2M1FN, copy_bits = 262144, tma_gbasis = <"(256,256,1):(1@1,1@0,1@2)">, tma_format = U4>, !cute.coord<"0">, !cute.layout<"1:0">, !memref_smem_f4E2M1FN_7, !cute.coord_tensor<"(0,0,0)", "(((256,64),1,4),?,?,?):(((1@1,1@0),0,64@0),256@1,256@0,1@2)">) -> (!memref_smem_f4E2M1FN_8, !cute.coord_tensor<"(0,0,0)", "(((256,256),1),?,?,?):(((1@0,1@1),0),256@1,256@0,1@2)">)
      %shape_133 = cute.make_shape() : () -> !cute.shape<"1">
      %lay_134 = cute.make_layout(%shape_133) : !cute.layout<"1:0">
      %grouped_135 = cute.group_modes(%view_63) <0, 3> : (!memref_smem_f8E4M3FN_) -> !memref_smem_f8E4M3FN_1
      %grouped_136 = cute.group_modes(%ptn_A_108) <0, 3> : (!cute.coord_tensor<"(0,0,0,0)", "((((32,4),1),(16,4)),1,4,?,?,(1,?)):((((8@0,2@0),0),(0,1/2@0)),0,1@1,1@2,4@1,(0,1@3))">) -> !cute.coord_tensor<"(0,0,0,0)", "(((((32,4),1),(16,4)),1,4),?,?,(1,?)):(((((8@0,2@0),0),(0,1/2@0)),0,1@1),1@2,4@1,(0,1@3))">
      %coord_137 = cute.make_coord() : () -> !cute.coord<"0">
      %res_smem_tensor_138, %res_target_tensors_139 = cute_nvgpu.atom.tma_partition(%arg5, %coord_137, %lay_134, %grouped_135, %grouped_136) : (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E4M3FN, copy_bits = 16384, tma_gbasis = <"((2,4,32),4,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">, tma_format = U16>, !cute.coord<"0">, !cute.layout<"1:0">, !memref_smem_f8E4M3FN_1, !cute.coord_tensor<"(0,0,0,0)", "(((((32,4),1),(16,4)),1,4),?,?,(1,?)):(((((8@0,2@0),0),(0,1/2@0)),0,1@1),1@2,4@1,(0,1@3))">) -> (!memref_smem_f8E4M3FN_2, !cute.coord_tensor<"(0,0,0,0)", "(((512,4),16),?,?,(1,?)):(((1/2@0,1@1),0),1@2,4@1,(0,1@3))">)
      %filtered_140 = cute.filter_zeros(%res_smem_tensor_138) : !memref_smem_f8E4M3FN_2
      %filtered_141 = cute.filter_zeros(%res_target_tensors_139) : !cute.coord_tensor<"(0,0,0,0)", "(((512,4),16),?,?,(1,?)):(((1/2@0,1@1),0),1@2,4@1,(0,1@3))">
      %shape_142 = cute.make_shape() : () -> !cute.shape<"1">
      %lay_143 = cute.make_layout(%shape_142) : !cute.layout<"1:0">
      %grouped_144 = cute.group_modes(%view_67) <0, 3> : (!memref_smem_f8E4M3FN_7) -> !memref_smem_f8E4M3FN_8
      %grouped_145 = cute.group_modes(%ptn_B_113) <0, 3> : (!cute.coord_tensor<"(0,0,0,0)", "((((32,4),2),(16,4)),1,4,?,?,(1,?)):((((8@0,2@0),1@2),(0,1/2@0)),0,1@1,2@2,4@1,(0,1@3))">) -> !cute.coord_tensor<"(0,0,0,0)", "(((((32,4),2),(16,4)),1,4),?,?,(1,?)):(((((8@0,2@0),1@2),(0,1/2@0)),0,1@1),2@2,4@1,(0,1@3))">
      %coord_146 = cute.make_coord() : () -> !cute.coord<"0">
      %res_smem_tensor_147, %res_target_tensors_148 = cute_nvgpu.atom.tma_partition(%arg7, %coord_146, %lay_143, %grouped_144, %grouped_145) : (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E4M3FN, copy_bits = 32768, tma_gbasis = <"((2,4,32),4,2,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">, tma_format = U16>, !cute.coord<"0">, !cute.layout<"1:0">, !memref_smem_f8E4M3FN_8, !cute.coord_tensor<"(0,0,0,0)", "(((((32,4),2),(16,4)),1,4),?,?,(1,?)):(((((8@0,2@0),1@2),(0,1/2@0)),0,1@1),2@2,4@1,(0,1@3))">) -> (!memref_smem_f8E4M3FN_9, !cute.coord_tensor<"(0,0,0,0)", "(((512,4,2),16),?,?,(1,?)):(((1/2@0,1@1,1@2),0),2@2,4@1,(0,1@3))">)
      %filtered_149 = cute.filter_zeros(%res_smem_tensor_147) : !memref_smem_f8E4M3FN_9
      %filtered_150 = cute.filter_zeros(%res_target_tensors_148) : !cute.coord_tensor<"(0,0,0,0)", "(((512,4,2),16),?,?,(1,?)):(((1/2@0,1@1,1@2),0),2@2,4@1,(0,1@3))">
      %frg_A_151 = cute.mma.make_fragment A (%arg0, %view_54) : (!mma_, !memref_smem_f4E2M1FN_) -> !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1,4,2):(0,0,2,1024)">
      %frg_B_152 = cute.mma.make_fragment B (%arg0, %view_59) : (!mma_, !memref_smem_f4E2M1FN_6) -> !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1,4,2):(0,0,2,2048)">
      %shape_153 = cute.make_shape() : () -> !cute.shape<"(128,256)">
      %1154 = cute.tiled.mma.partition_shape C (%arg0, %shape_153) : (!mma_, !cute.shape<"(128,256)">) -> !cute.shape<"((128,256),1,1)">
      %shape_155 = cute.make_shape() : () -> !cute.shape<"((128,256),1,1)">
      %frg_C_156 = cute.mma.make_fragment C (%arg0, %shape_155) : (!mma_, !cute.shape<"((128,256),1,1)">) -> !memref_tmem_f32_
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
      %1164 = cute.recast_layout<32, 32> (%lay_163) : !cute.layout<"((128,256),1,1):((65536,1),0,0)"> to !cute.layout<"((128,256),1,1):((65536,1),0,0)">
      %cosz_165 = cute.cosize(%1164) : (!cute.layout<"((128,256),1,1):((65536,1),0,0)">) -> !cute.int_tuple<"8323328">
      %int_tuple_166 = cute.make_int_tuple() : () -> !cute.int_tuple<"256">
      %ptr_167 = cute.add_offset(%tmem_ptr_160, %int_tuple_166) : (!cute.ptr<f32, tmem, align<16>>, !cute.int_tuple<"256">) -> !cute.ptr<f32, tmem, align<16>>
      %iter_168 = cute.recast_iter(%ptr_167) : !cute.ptr<f32, tmem, align<16>> to !cute.ptr<f8E4M3FN, tmem, align<16>>
      %1169 = cute.static : !cute.layout<"((((32,4),4),(16,4)),1,4):((((262144,4),8388608),(0,1)),0,16)">
      %view_170 = cute.make_view(%iter_168, %1169) : !memref_tmem_f8E4M3FN_
      %lay_171 = cute.get_layout(%view_170) : !memref_tmem_f8E4M3FN_
      %1172 = cute.recast_layout<32, 8> (%lay_171) : !cute.layout<"((((32,4),4),(16,4)),1,4):((((262144,4),8388608),(0,1)),0,16)"> to !cute.layout<"((((32,4),4),(16,1)),1,4):((((65536,1),2097152),(0,1)),0,4)">
      %cosz_173 = cute.cosize(%1172) : (!cute.layout<"((((32,4),4),(16,1)),1,4):((((65536,1),2097152),(0,1)),0,4)">) -> !cute.int_tuple<"8323088">
      %int_tuple_174 = cute.make_int_tuple() : () -> !cute.int_tuple<"272">
      %ptr_175 = cute.add_offset(%tmem_ptr_160, %int_tuple_174) : (!cute.ptr<f32, tmem, align<16>>, !cute.int_tuple<"272">) -> !cute.ptr<f32, tmem, align<16>>
      %iter_176 = cute.recast_iter(%ptr_175) : !cute.ptr<f32, tmem, align<16>> to !cute.ptr<f8E4M3FN, tmem, align<16>>
      %1177 = cute.static : !cute.layout<"((((32,8),4),(16,4)),1,4):((((262144,4),8388608),(0,1)),0,32)">
      %view_178 = cute.make_view(%iter_176, %1177) : !memref_tmem_f8E4M3FN_1
      %lay_179 = cute.get_layout(%view_178) : !memref_tmem_f8E4M3FN_1
      %1180 = cute.recast_layout<32, 8> (%lay_179) : !cute.layout<"((((32,8),4),(16,4)),1,4):((((262144,4),8388608),(0,1)),0,32)"> to !cute.layout<"((((32,8),4),(16,1)),1,4):((((65536,1),2097152),(0,1)),0,8)">
      %cosz_181 = cute.cosize(%1180) : (!cute.layout<"((((32,8),4),(16,1)),1,4):((((65536,1),2097152),(0,1)),0,8)">) -> !cute.int_tuple<"8323104">
      %atom_182 = cute.make_atom() : () -> !cute_nvgpu.atom.s2t_copy<f8E4M3FN, 32 DP, 128 bit, 1 cta, x4>
      %filtered_183 = cute.filter_zeros(%view_63) : !memref_smem_f8E4M3FN_
      %filtered_184 = cute.filter_zeros(%view_170) : !memref_tmem_f8E4M3FN_
      %1185 = cute_nvgpu.atom.make_s2t_copy(%atom_182, %filtered_184) : (!cute_nvgpu.atom.s2t_copy<f8E4M3FN, 32 DP, 128 bit, 1 cta, x4>, !memref_tmem_f8E4M3FN_2) -> !copy_s2t_sfa_
      %coord_186 = cute.make_coord() : () -> !cute.coord<"0">
      %src_partitioned_187 = cute.tiled.copy.partition_S(%1185, %filtered_183, %coord_186) : (!copy_s2t_sfa_, !memref_smem_f8E4M3FN_14, !cute.coord<"0">) -> !memref_smem_f8E4M3FN_15
      %1188 = cute_nvgpu.atom.get_copy_s2t_smem_desc_view(%1185, %src_partitioned_187) : (!copy_s2t_sfa_, !memref_smem_f8E4M3FN_15) -> !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "((((32,1,1),4),1),1,1,4,2):((((1,1,1),0),0),0,0,32,128)">
      %coord_189 = cute.make_coord() : () -> !cute.coord<"0">
      %dst_partitioned_190 = cute.tiled.copy.partition_D(%1185, %filtered_184, %coord_189) : (!copy_s2t_sfa_, !memref_tmem_f8E4M3FN_2, !cute.coord<"0">) -> !memref_tmem_f8E4M3FN_3
      %filtered_191 = cute.filter_zeros(%view_67) : !memref_smem_f8E4M3FN_7
      %filtered_192 = cute.filter_zeros(%view_178) : !memref_tmem_f8E4M3FN_1
      %1193 = cute_nvgpu.atom.make_s2t_copy(%atom_182, %filtered_192) : (!cute_nvgpu.atom.s2t_copy<f8E4M3FN, 32 DP, 128 bit, 1 cta, x4>, !memref_tmem_f8E4M3FN_5) -> !copy_s2t_sfb_
      %coord_194 = cute.make_coord() : () -> !cute.coord<"0">
      %src_partitioned_195 = cute.tiled.copy.partition_S(%1193, %filtered_191, %coord_194) : (!copy_s2t_sfb_, !memref_smem_f8E4M3FN_16, !cute.coord<"0">) -> !memref_smem_f8E4M3FN_17
      %1196 = cute_nvgpu.atom.get_copy_s2t_smem_desc_view(%1193, %src_partitioned_195) : (!copy_s2t_sfb_, !memref_smem_f8E4M3FN_17) -> !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "((((32,1,1),4),1),2,1,4,2):((((1,1,1),0),0),128,0,32,256)">
      %coord_197 = cute.make_coord() : () -> !cute.coord<"0">
      %dst_partitioned_198 = cute.tiled.copy.partition_D(%1193, %filtered_192, %coord_197) : (!copy_s2t_sfb_, !memref_tmem_f8E4M3FN_5, !cute.coord<"0">) -> !memref_tmem_f8E4M3FN_6
      %coord_199 = cute.make_coord(%1028, %1030) : (i32, i32) -> !cute.coord<"(_,?,_,?)">
      %slice_200 = cute.slice(%res_target_tensors_125, %coord_199) : !cute.coord_tensor<"(0,0,0)", "(((256,128),1),?,?,?):(((1@0,1@1),0),128@1,256@0,1@2)">, !cute.coord<"(_,?,_,?)">
      %coord_201 = cute.make_coord(%1029, %1030) : (i32, i32) -> !cute.coord<"(_,?,_,?)">
      %slice_202 = cute.slice(%res_target_tensors_132, %coord_201) : !cute.coord_tensor<"(0,0,0)", "(((256,256),1),?,?,?):(((1@0,1@1),0),256@1,256@0,1@2)">, !cute.coord<"(_,?,_,?)">
      %coord_203 = cute.make_coord(%1028, %1030) : (i32, i32) -> !cute.coord<"(_,?,_,?)">
      %slice_204 = cute.slice(%filtered_141, %coord_203) : !cute.coord_tensor<"(0,0,0,0)", "(((512,4),1),?,?,(1,?)):(((1/2@0,1@1),0),1@2,4@1,(0,1@3))">, !cute.coord<"(_,?,_,?)">
      %coord_205 = cute.make_coord(%1029, %1030) : (i32, i32) -> !cute.coord<"(_,?,_,?)">
      %slice_206 = cute.slice(%filtered_150, %coord_205) : !cute.coord_tensor<"(0,0,0,0)", "(((512,4,2),1),?,?,(1,?)):(((1/2@0,1@1,1@2),0),2@2,4@1,(0,1@3))">, !cute.coord<"(_,?,_,?)">
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
            %c55296_i32_224 = arith.constant 55296 : i32
            %tx = nvvm.mbarrier.arrive.expect_tx %1223, %c55296_i32_224 : !llvm.ptr<3>, i32 -> i64
          }
          %coord_225 = cute.make_coord(%arg20) : (i32) -> !cute.coord<"(_,?)">
          %slice_226 = cute.slice(%slice_200, %coord_225) : !cute.coord_tensor<"(0,?{div=128},?)", "(((256,128),1),?):(((1@0,1@1),0),256@0)">, !cute.coord<"(_,?)">
          %coord_227 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,?)">
          %slice_228 = cute.slice(%res_smem_tensor_124, %coord_227) : !memref_smem_f4E2M1FN_2, !cute.coord<"(_,?)">
          %iter_229 = cute.get_iter(%slice_226) : !cute.coord_tensor<"(?{div=256},?{div=128},?)", "(((256,128),1)):(((1@0,1@1),0))">
          %tup_230 = cute.deref_arith_tuple_iter(%iter_229) : !cute.arith_tuple_iter<"(?{div=256},?{div=128},?)">
          %e0_231, %e1_232, %e2_233 = cute.get_leaves(%tup_230) : !cute.int_tuple<"(?{div=256},?{div=128},?)">
          %int_tuple_234 = cute.make_int_tuple(%arg21) : (i32) -> !cute.int_tuple<"?">
          %ptr_235 = cute.add_offset(%iter_43, %int_tuple_234) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          %lay_236 = cute.get_layout(%slice_226) : !cute.coord_tensor<"(?{div=256},?{div=128},?)", "(((256,128),1)):(((1@0,1@1),0))">
          %shape_237 = cute.make_shape() : () -> !cute.shape<"1">
          %lay_238 = cute.make_layout(%shape_237) : !cute.layout<"1:0">
          %append_239 = cute.append_to_rank<2> (%lay_236, %lay_238) : !cute.layout<"(((256,128),1)):(((1@0,1@1),0))">, !cute.layout<"1:0">
          %int_tuple_240 = cute.make_int_tuple(%e0_231, %e1_232, %e2_233) : (!cute.int_tuple<"?{div=256}">, !cute.int_tuple<"?{div=128}">, !cute.int_tuple<"?">) -> !cute.int_tuple<"(?{div=256},?{div=128},?)">
          %int_tup_iter_241 = cute.make_arith_tuple_iter(%int_tuple_240) : (!cute.int_tuple<"(?{div=256},?{div=128},?)">) -> !cute.arith_tuple_iter<"(?{div=256},?{div=128},?)">
          %view_242 = cute.make_view(%int_tup_iter_241, %append_239) : !cute.coord_tensor<"(?{div=256},?{div=128},?)", "(((256,128),1),1):(((1@0,1@1),0),0)">
          %grouped_243 = cute.group_modes(%view_242) <1, 2> : (!cute.coord_tensor<"(?{div=256},?{div=128},?)", "(((256,128),1),1):(((1@0,1@1),0),0)">) -> !cute.coord_tensor<"(?{div=256},?{div=128},?)", "(((256,128),1),(1)):(((1@0,1@1),0),(0))">
          %iter_244 = cute.get_iter(%slice_228) : !memref_smem_f4E2M1FN_3
          %lay_245 = cute.get_layout(%slice_228) : !memref_smem_f4E2M1FN_3
          %shape_246 = cute.make_shape() : () -> !cute.shape<"1">
          %lay_247 = cute.make_layout(%shape_246) : !cute.layout<"1:0">
          %append_248 = cute.append_to_rank<2> (%lay_245, %lay_247) : !cute.layout<"((32768,1)):((1,0))">, !cute.layout<"1:0">
          %view_249 = cute.make_view(%iter_244, %append_248) : !memref_smem_f4E2M1FN_4
          %grouped_250 = cute.group_modes(%view_249) <1, 2> : (!memref_smem_f4E2M1FN_4) -> !memref_smem_f4E2M1FN_5
          %1251 = cute_nvgpu.atom.make_exec_tma(%arg1) : (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f4E2M1FN, copy_bits = 131072, tma_gbasis = <"(256,128,1):(1@1,1@0,1@2)">, tma_format = U4>) -> !cute_nvgpu.atom.tma_load<f4E2M1FN, copy_bits = 131072, mode = tiled, num_cta = 1, g_stride = <"()"> tma_gbasis = <"(256,128,1):(1@1,1@0,1@2)">>
          %1252 = cute_nvgpu.atom.set_value<tma_bar>(%1251, %ptr_235) : (!cute_nvgpu.atom.tma_load<f4E2M1FN, copy_bits = 131072, mode = tiled, num_cta = 1, g_stride = <"()"> tma_gbasis = <"(256,128,1):(1@1,1@0,1@2)">>, !cute.ptr<i64, smem>)
          cute.copy(%1252, %grouped_243, %grouped_250) : (!cute_nvgpu.atom.tma_load<f4E2M1FN, copy_bits = 131072, mode = tiled, num_cta = 1, g_stride = <"()"> tma_gbasis = <"(256,128,1):(1@1,1@0,1@2)">>, !cute.coord_tensor<"(?{div=256},?{div=128},?)", "(((256,128),1),(1)):(((1@0,1@1),0),(0))">, !memref_smem_f4E2M1FN_5)
          %coord_253 = cute.make_coord(%arg20) : (i32) -> !cute.coord<"(_,?)">
          %slice_254 = cute.slice(%slice_202, %coord_253) : !cute.coord_tensor<"(0,?{div=256},?)", "(((256,256),1),?):(((1@0,1@1),0),256@0)">, !cute.coord<"(_,?)">
          %coord_255 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,?)">
          %slice_256 = cute.slice(%res_smem_tensor_131, %coord_255) : !memref_smem_f4E2M1FN_8, !cute.coord<"(_,?)">
          %iter_257 = cute.get_iter(%slice_254) : !cute.coord_tensor<"(?{div=256},?{div=256},?)", "(((256,256),1)):(((1@0,1@1),0))">
          %tup_258 = cute.deref_arith_tuple_iter(%iter_257) : !cute.arith_tuple_iter<"(?{div=256},?{div=256},?)">
          %e0_259, %e1_260, %e2_261 = cute.get_leaves(%tup_258) : !cute.int_tuple<"(?{div=256},?{div=256},?)">
          %int_tuple_262 = cute.make_int_tuple(%arg21) : (i32) -> !cute.int_tuple<"?">
          %ptr_263 = cute.add_offset(%iter_43, %int_tuple_262) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          %lay_264 = cute.get_layout(%slice_254) : !cute.coord_tensor<"(?{div=256},?{div=256},?)", "(((256,256),1)):(((1@0,1@1),0))">
          %shape_265 = cute.make_shape() : () -> !cute.shape<"1">
          %lay_266 = cute.make_layout(%shape_265) : !cute.layout<"1:0">
          %append_267 = cute.append_to_rank<2> (%lay_264, %lay_266) : !cute.layout<"(((256,256),1)):(((1@0,1@1),0))">, !cute.layout<"1:0">
          %int_tuple_268 = cute.make_int_tuple(%e0_259, %e1_260, %e2_261) : (!cute.int_tuple<"?{div=256}">, !cute.int_tuple<"?{div=256}">, !cute.int_tuple<"?">) -> !cute.int_tuple<"(?{div=256},?{div=256},?)">
          %int_tup_iter_269 = cute.make_arith_tuple_iter(%int_tuple_268) : (!cute.int_tuple<"(?{div=256},?{div=256},?)">) -> !cute.arith_tuple_iter<"(?{div=256},?{div=256},?)">
          %view_270 = cute.make_view(%int_tup_iter_269, %append_267) : !cute.coord_tensor<"(?{div=256},?{div=256},?)", "(((256,256),1),1):(((1@0,1@1),0),0)">
          %grouped_271 = cute.group_modes(%view_270) <1, 2> : (!cute.coord_tensor<"(?{div=256},?{div=256},?)", "(((256,256),1),1):(((1@0,1@1),0),0)">) -> !cute.coord_tensor<"(?{div=256},?{div=256},?)", "(((256,256),1),(1)):(((1@0,1@1),0),(0))">
          %iter_272 = cute.get_iter(%slice_256) : !memref_smem_f4E2M1FN_9
          %lay_273 = cute.get_layout(%slice_256) : !memref_smem_f4E2M1FN_9
          %shape_274 = cute.make_shape() : () -> !cute.shape<"1">
          %lay_275 = cute.make_layout(%shape_274) : !cute.layout<"1:0">
          %append_276 = cute.append_to_rank<2> (%lay_273, %lay_275) : !cute.layout<"((65536,1)):((1,0))">, !cute.layout<"1:0">
          %view_277 = cute.make_view(%iter_272, %append_276) : !memref_smem_f4E2M1FN_10
          %grouped_278 = cute.group_modes(%view_277) <1, 2> : (!memref_smem_f4E2M1FN_10) -> !memref_smem_f4E2M1FN_11
          %1279 = cute_nvgpu.atom.make_exec_tma(%arg3) : (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f4E2M1FN, copy_bits = 262144, tma_gbasis = <"(256,256,1):(1@1,1@0,1@2)">, tma_format = U4>) -> !cute_nvgpu.atom.tma_load<f4E2M1FN, copy_bits = 262144, mode = tiled, num_cta = 1, g_stride = <"()"> tma_gbasis = <"(256,256,1):(1@1,1@0,1@2)">>
          %1280 = cute_nvgpu.atom.set_value<tma_bar>(%1279, %ptr_263) : (!cute_nvgpu.atom.tma_load<f4E2M1FN, copy_bits = 262144, mode = tiled, num_cta = 1, g_stride = <"()"> tma_gbasis = <"(256,256,1):(1@1,1@0,1@2)">>, !cute.ptr<i64, smem>)
          cute.copy(%1280, %grouped_271, %grouped_278) : (!cute_nvgpu.atom.tma_load<f4E2M1FN, copy_bits = 262144, mode = tiled, num_cta = 1, g_stride = <"()"> tma_gbasis = <"(256,256,1):(1@1,1@0,1@2)">>, !cute.coord_tensor<"(?{div=256},?{div=256},?)", "(((256,256),1),(1)):(((1@0,1@1),0),(0))">, !memref_smem_f4E2M1FN_11)
          %coord_281 = cute.make_coord(%arg20) : (i32) -> !cute.coord<"(_,?)">
          %slice_282 = cute.slice(%slice_204, %coord_281) : !cute.coord_tensor<"(0,0,?,?)", "(((512,4),1),?):(((1/2@0,1@1),0),4@1)">, !cute.coord<"(_,?)">
          %coord_283 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,?)">
          %slice_284 = cute.slice(%filtered_140, %coord_283) : !memref_smem_f8E4M3FN_3, !cute.coord<"(_,?)">
          %iter_285 = cute.get_iter(%slice_282) : !cute.coord_tensor<"(0,?{div=4},?,?)", "(((512,4),1)):(((1/2@0,1@1),0))">
          %tup_286 = cute.deref_arith_tuple_iter(%iter_285) : !cute.arith_tuple_iter<"(0,?{div=4},?,?)">
          %e0_287, %e1_288, %e2_289, %e3_290 = cute.get_leaves(%tup_286) : !cute.int_tuple<"(0,?{div=4},?,?)">
          %int_tuple_291 = cute.make_int_tuple(%arg21) : (i32) -> !cute.int_tuple<"?">
          %ptr_292 = cute.add_offset(%iter_43, %int_tuple_291) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          %lay_293 = cute.get_layout(%slice_282) : !cute.coord_tensor<"(0,?{div=4},?,?)", "(((512,4),1)):(((1/2@0,1@1),0))">
          %shape_294 = cute.make_shape() : () -> !cute.shape<"1">
          %lay_295 = cute.make_layout(%shape_294) : !cute.layout<"1:0">
          %append_296 = cute.append_to_rank<2> (%lay_293, %lay_295) : !cute.layout<"(((512,4),1)):(((1/2@0,1@1),0))">, !cute.layout<"1:0">
          %int_tuple_297 = cute.make_int_tuple(%e1_288, %e2_289, %e3_290) : (!cute.int_tuple<"?{div=4}">, !cute.int_tuple<"?">, !cute.int_tuple<"?">) -> !cute.int_tuple<"(0,?{div=4},?,?)">
          %int_tup_iter_298 = cute.make_arith_tuple_iter(%int_tuple_297) : (!cute.int_tuple<"(0,?{div=4},?,?)">) -> !cute.arith_tuple_iter<"(0,?{div=4},?,?)">
          %view_299 = cute.make_view(%int_tup_iter_298, %append_296) : !cute.coord_tensor<"(0,?{div=4},?,?)", "(((512,4),1),1):(((1/2@0,1@1),0),0)">
          %grouped_300 = cute.group_modes(%view_299) <1, 2> : (!cute.coord_tensor<"(0,?{div=4},?,?)", "(((512,4),1),1):(((1/2@0,1@1),0),0)">) -> !cute.coord_tensor<"(0,?{div=4},?,?)", "(((512,4),1),(1)):(((1/2@0,1@1),0),(0))">
          %iter_301 = cute.get_iter(%slice_284) : !memref_smem_f8E4M3FN_4
          %lay_302 = cute.get_layout(%slice_284) : !memref_smem_f8E4M3FN_4
          %shape_303 = cute.make_shape() : () -> !cute.shape<"1">
          %lay_304 = cute.make_layout(%shape_303) : !cute.layout<"1:0">
          %append_305 = cute.append_to_rank<2> (%lay_302, %lay_304) : !cute.layout<"((2048,1)):((1,0))">, !cute.layout<"1:0">
          %view_306 = cute.make_view(%iter_301, %append_305) : !memref_smem_f8E4M3FN_5
          %grouped_307 = cute.group_modes(%view_306) <1, 2> : (!memref_smem_f8E4M3FN_5) -> !memref_smem_f8E4M3FN_6
          %1308 = cute_nvgpu.atom.make_exec_tma(%arg5) : (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E4M3FN, copy_bits = 16384, tma_gbasis = <"((2,4,32),4,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">, tma_format = U16>) -> !cute_nvgpu.atom.tma_load<f8E4M3FN, copy_bits = 16384, mode = tiled, num_cta = 1, g_stride = <"()"> tma_gbasis = <"((2,4,32),4,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">>
          %1309 = cute_nvgpu.atom.set_value<tma_bar>(%1308, %ptr_292) : (!cute_nvgpu.atom.tma_load<f8E4M3FN, copy_bits = 16384, mode = tiled, num_cta = 1, g_stride = <"()"> tma_gbasis = <"((2,4,32),4,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">>, !cute.ptr<i64, smem>)
          cute.copy(%1309, %grouped_300, %grouped_307) : (!cute_nvgpu.atom.tma_load<f8E4M3FN, copy_bits = 16384, mode = tiled, num_cta = 1, g_stride = <"()"> tma_gbasis = <"((2,4,32),4,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">>, !cute.coord_tensor<"(0,?{div=4},?,?)", "(((512,4),1),(1)):(((1/2@0,1@1),0),(0))">, !memref_smem_f8E4M3FN_6)
          %coord_310 = cute.make_coord(%arg20) : (i32) -> !cute.coord<"(_,?)">
          %slice_311 = cute.slice(%slice_206, %coord_310) : !cute.coord_tensor<"(0,0,?{div=2},?)", "(((512,4,2),1),?):(((1/2@0,1@1,1@2),0),4@1)">, !cute.coord<"(_,?)">
          %coord_312 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,?)">
          %slice_313 = cute.slice(%filtered_149, %coord_312) : !memref_smem_f8E4M3FN_10, !cute.coord<"(_,?)">
          %iter_314 = cute.get_iter(%slice_311) : !cute.coord_tensor<"(0,?{div=4},?{div=2},?)", "(((512,4,2),1)):(((1/2@0,1@1,1@2),0))">
          %tup_315 = cute.deref_arith_tuple_iter(%iter_314) : !cute.arith_tuple_iter<"(0,?{div=4},?{div=2},?)">
          %e0_316, %e1_317, %e2_318, %e3_319 = cute.get_leaves(%tup_315) : !cute.int_tuple<"(0,?{div=4},?{div=2},?)">
          %int_tuple_320 = cute.make_int_tuple(%arg21) : (i32) -> !cute.int_tuple<"?">
          %ptr_321 = cute.add_offset(%iter_43, %int_tuple_320) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          %lay_322 = cute.get_layout(%slice_311) : !cute.coord_tensor<"(0,?{div=4},?{div=2},?)", "(((512,4,2),1)):(((1/2@0,1@1,1@2),0))">
          %shape_323 = cute.make_shape() : () -> !cute.shape<"1">
          %lay_324 = cute.make_layout(%shape_323) : !cute.layout<"1:0">
          %append_325 = cute.append_to_rank<2> (%lay_322, %lay_324) : !cute.layout<"(((512,4,2),1)):(((1/2@0,1@1,1@2),0))">, !cute.layout<"1:0">
          %int_tuple_326 = cute.make_int_tuple(%e1_317, %e2_318, %e3_319) : (!cute.int_tuple<"?{div=4}">, !cute.int_tuple<"?{div=2}">, !cute.int_tuple<"?">) -> !cute.int_tuple<"(0,?{div=4},?{div=2},?)">
          %int_tup_iter_327 = cute.make_arith_tuple_iter(%int_tuple_326) : (!cute.int_tuple<"(0,?{div=4},?{div=2},?)">) -> !cute.arith_tuple_iter<"(0,?{div=4},?{div=2},?)">
          %view_328 = cute.make_view(%int_tup_iter_327, %append_325) : !cute.coord_tensor<"(0,?{div=4},?{div=2},?)", "(((512,4,2),1),1):(((1/2@0,1@1,1@2),0),0)">
          %grouped_329 = cute.group_modes(%view_328) <1, 2> : (!cute.coord_tensor<"(0,?{div=4},?{div=2},?)", "(((512,4,2),1),1):(((1/2@0,1@1,1@2),0),0)">) -> !cute.coord_tensor<"(0,?{div=4},?{div=2},?)", "(((512,4,2),1),(1)):(((1/2@0,1@1,1@2),0),(0))">
          %iter_330 = cute.get_iter(%slice_313) : !memref_smem_f8E4M3FN_11
          %lay_331 = cute.get_layout(%slice_313) : !memref_smem_f8E4M3FN_11
          %shape_332 = cute.make_shape() : () -> !cute.shape<"1">
          %lay_333 = cute.make_layout(%shape_332) : !cute.layout<"1:0">
          %append_334 = cute.append_to_rank<2> (%lay_331, %lay_333) : !cute.layout<"((4096,1)):((1,0))">, !cute.layout<"1:0">
          %view_335 = cute.make_view(%iter_330, %append_334) : !memref_smem_f8E4M3FN_12
          %grouped_336 = cute.group_modes(%view_335) <1, 2> : (!memref_smem_f8E4M3FN_12) -> !memref_smem_f8E4M3FN_13
          %1337 = cute_nvgpu.atom.make_exec_tma(%arg7) : (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E4M3FN, copy_bits = 32768, tma_gbasis = <"((2,4,32),4,2,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">, tma_format = U16>) -> !cute_nvgpu.atom.tma_load<f8E4M3FN, copy_bits = 32768, mode = tiled, num_cta = 1, g_stride = <"()"> tma_gbasis = <"((2,4,32),4,2,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">>
          %1338 = cute_nvgpu.atom.set_value<tma_bar>(%1337, %ptr_321) : (!cute_nvgpu.atom.tma_load<f8E4M3FN, copy_bits = 32768, mode = tiled, num_cta = 1, g_stride = <"()"> tma_gbasis = <"((2,4,32),4,2,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">>, !cute.ptr<i64, smem>)
          cute.copy(%1338, %grouped_329, %grouped_336) : (!cute_nvgpu.atom.tma_load<f8E4M3FN, copy_bits = 32768, mode = tiled, num_cta = 1, g_stride = <"()"> tma_gbasis = <"((2,4,32),4,2,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">>, !cute.coord_tensor<"(0,?{div=4},?{div=2},?)", "(((512,4,2),1),(1)):(((1/2@0,1@1,1@2),0),(0))">, !memref_smem_f8E4M3FN_13)
          %int_tuple_339 = cute.make_int_tuple(%arg21) : (i32) -> !cute.int_tuple<"?">
          %ptr_340 = cute.add_offset(%iter_43, %int_tuple_339) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
          %1341 = builtin.unrealized_conversion_cast %ptr_340 : !cute.ptr<i64, smem> to !llvm.ptr<3>
          %c10000000_i32_342 = arith.constant 10000000 : i32
          nvvm.mbarrier.try_wait.parity %1341, %arg22, %c10000000_i32_342 : !llvm.ptr<3>, i32, i32
          %coord_343 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,_,_,_,?)">
          %slice_344 = cute.slice(%1188, %coord_343) : !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "((((32,1,1),4),1),1,1,4,2):((((1,1,1),0),0),0,0,32,128)">, !cute.coord<"(_,_,_,_,?)">
          %grouped_345 = cute.group_modes(%slice_344) <1, 4> : (!cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "((((32,1,1),4),1),1,1,4):((((1,1,1),0),0),0,0,32)">) -> !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "((((32,1,1),4),1),(1,1,4)):((((1,1,1),0),0),(0,0,32))">
          %grouped_346 = cute.group_modes(%dst_partitioned_190) <1, 4> : (!memref_tmem_f8E4M3FN_3) -> !memref_tmem_f8E4M3FN_4
          cute.copy(%1185, %grouped_345, %grouped_346) : (!copy_s2t_sfa_, !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "((((32,1,1),4),1),(1,1,4)):((((1,1,1),0),0),(0,0,32))">, !memref_tmem_f8E4M3FN_4)
          %coord_347 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,_,_,_,?)">
          %slice_348 = cute.slice(%1196, %coord_347) : !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "((((32,1,1),4),1),2,1,4,2):((((1,1,1),0),0),128,0,32,256)">, !cute.coord<"(_,_,_,_,?)">
          %grouped_349 = cute.group_modes(%slice_348) <1, 4> : (!cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "((((32,1,1),4),1),2,1,4):((((1,1,1),0),0),128,0,32)">) -> !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "((((32,1,1),4),1),(2,1,4)):((((1,1,1),0),0),(128,0,32))">
          %grouped_350 = cute.group_modes(%dst_partitioned_198) <1, 4> : (!memref_tmem_f8E4M3FN_6) -> !memref_tmem_f8E4M3FN_7
          cute.copy(%1193, %grouped_349, %grouped_350) : (!copy_s2t_sfb_, !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "((((32,1,1),4),1),(2,1,4)):((((1,1,1),0),0),(128,0,32))">, !memref_tmem_f8E4M3FN_7)
          %coord_351 = cute.make_coord() : () -> !cute.coord<"(_,_,0)">
          %slice_352 = cute.slice(%view_170, %coord_351) : !memref_tmem_f8E4M3FN_, !cute.coord<"(_,_,0)">
          %iter_353 = cute.get_iter(%slice_352) : !memref_tmem_f8E4M3FN_8
          %1354 = cute_nvgpu.atom.set_value<sf_a>(%arg23, %iter_353) : (!mma_, !cute.ptr<f8E4M3FN, tmem, align<16>>)
          %coord_355 = cute.make_coord() : () -> !cute.coord<"(_,_,0)">
          %slice_356 = cute.slice(%view_178, %coord_355) : !memref_tmem_f8E4M3FN_1, !cute.coord<"(_,_,0)">
          %iter_357 = cute.get_iter(%slice_356) : !memref_tmem_f8E4M3FN_9
          %1358 = cute_nvgpu.atom.set_value<sf_b>(%1354, %iter_357) : (!mma_, !cute.ptr<f8E4M3FN, tmem, align<16>>)
          %coord_359 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,_,0,?)">
          %slice_360 = cute.slice(%frg_A_151, %coord_359) : !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1,4,2):(0,0,2,1024)">, !cute.coord<"(_,_,0,?)">
          %coord_361 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,_,0,?)">
          %slice_362 = cute.slice(%frg_B_152, %coord_361) : !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1,4,2):(0,0,2,2048)">, !cute.coord<"(_,_,0,?)">
          cute.gemm(%1358, %view_162, %slice_360, %slice_362, %view_162) : (!mma_, !memref_tmem_f32_1, !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1):(0,0)">, !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1):(0,0)">, !memref_tmem_f32_1)
          %true_363 = arith.constant true
          %1364 = cute_nvgpu.atom.set_value<accum_c>(%1358, %true_363) : (!mma_, i1)
          %coord_365 = cute.make_coord() : () -> !cute.coord<"(_,_,1)">
          %slice_366 = cute.slice(%view_170, %coord_365) : !memref_tmem_f8E4M3FN_, !cute.coord<"(_,_,1)">
          %iter_367 = cute.get_iter(%slice_366) : !memref_tmem_f8E4M3FN_8
          %1368 = cute_nvgpu.atom.set_value<sf_a>(%1364, %iter_367) : (!mma_, !cute.ptr<f8E4M3FN, tmem, align<16>>)
          %coord_369 = cute.make_coord() : () -> !cute.coord<"(_,_,1)">
          %slice_370 = cute.slice(%view_178, %coord_369) : !memref_tmem_f8E4M3FN_1, !cute.coord<"(_,_,1)">
          %iter_371 = cute.get_iter(%slice_370) : !memref_tmem_f8E4M3FN_9
          %1372 = cute_nvgpu.atom.set_value<sf_b>(%1368, %iter_371) : (!mma_, !cute.ptr<f8E4M3FN, tmem, align<16>>)
          %coord_373 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,_,1,?)">
          %slice_374 = cute.slice(%frg_A_151, %coord_373) : !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1,4,2):(0,0,2,1024)">, !cute.coord<"(_,_,1,?)">
          %coord_375 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,_,1,?)">
          %slice_376 = cute.slice(%frg_B_152, %coord_375) : !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1,4,2):(0,0,2,2048)">, !cute.coord<"(_,_,1,?)">
          cute.gemm(%1372, %view_162, %slice_374, %slice_376, %view_162) : (!mma_, !memref_tmem_f32_1, !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1):(0,0)">, !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1):(0,0)">, !memref_tmem_f32_1)
          %true_377 = arith.constant true
          %1378 = cute_nvgpu.atom.set_value<accum_c>(%1372, %true_377) : (!mma_, i1)
          %coord_379 = cute.make_coord() : () -> !cute.coord<"(_,_,2)">
          %slice_380 = cute.slice(%view_170, %coord_379) : !memref_tmem_f8E4M3FN_, !cute.coord<"(_,_,2)">
          %iter_381 = cute.get_iter(%slice_380) : !memref_tmem_f8E4M3FN_8
          %1382 = cute_nvgpu.atom.set_value<sf_a>(%1378, %iter_381) : (!mma_, !cute.ptr<f8E4M3FN, tmem, align<16>>)
          %coord_383 = cute.make_coord() : () -> !cute.coord<"(_,_,2)">
          %slice_384 = cute.slice(%view_178, %coord_383) : !memref_tmem_f8E4M3FN_1, !cute.coord<"(_,_,2)">
          %iter_385 = cute.get_iter(%slice_384) : !memref_tmem_f8E4M3FN_9
          %1386 = cute_nvgpu.atom.set_value<sf_b>(%1382, %iter_385) : (!mma_, !cute.ptr<f8E4M3FN, tmem, align<16>>)
          %coord_387 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,_,2,?)">
          %slice_388 = cute.slice(%frg_A_151, %coord_387) : !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1,4,2):(0,0,2,1024)">, !cute.coord<"(_,_,2,?)">
          %coord_389 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,_,2,?)">
          %slice_390 = cute.slice(%frg_B_152, %coord_389) : !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1,4,2):(0,0,2,2048)">, !cute.coord<"(_,_,2,?)">
          cute.gemm(%1386, %view_162, %slice_388, %slice_390, %view_162) : (!mma_, !memref_tmem_f32_1, !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1):(0,0)">, !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1):(0,0)">, !memref_tmem_f32_1)
          %true_391 = arith.constant true
          %1392 = cute_nvgpu.atom.set_value<accum_c>(%1386, %true_391) : (!mma_, i1)
          %coord_393 = cute.make_coord() : () -> !cute.coord<"(_,_,3)">
          %slice_394 = cute.slice(%view_170, %coord_393) : !memref_tmem_f8E4M3FN_, !cute.coord<"(_,_,3)">
          %iter_395 = cute.get_iter(%slice_394) : !memref_tmem_f8E4M3FN_8
          %1396 = cute_nvgpu.atom.set_value<sf_a>(%1392, %iter_395) : (!mma_, !cute.ptr<f8E4M3FN, tmem, align<16>>)
          %coord_397 = cute.make_coord() : () -> !cute.coord<"(_,_,3)">
          %slice_398 = cute.slice(%view_178, %coord_397) : !memref_tmem_f8E4M3FN_1, !cute.coord<"(_,_,3)">
          %iter_399 = cute.get_iter(%slice_398) : !memref_tmem_f8E4M3FN_9
          %1400 = cute_nvgpu.atom.set_value<sf_b>(%1396, %iter_399) : (!mma_, !cute.ptr<f8E4M3FN, tmem, align<16>>)
          %coord_401 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,_,3,?)">
          %slice_402 = cute.slice(%frg_A_151, %coord_401) : !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1,4,2):(0,0,2,1024)">, !cute.coord<"(_,_,3,?)">
          %coord_403 = cute.make_coord(%arg21) : (i32) -> !cute.coord<"(_,_,3,?)">
          %slice_404 = cute.slice(%frg_B_152, %coord_403) : !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1,4,2):(0,0,2,2048)">, !cute.coord<"(_,_,3,?)">
          cute.gemm(%1400, %view_162, %slice_402, %slice_404, %view_162) : (!mma_, !memref_tmem_f32_1, !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1):(0,0)">, !cute_nvgpu.smem_desc_view<!cute_nvgpu.smem_desc, "(1,1):(0,0)">, !memref_tmem_f32_1)
          %true_405 = arith.constant true
          %1406 = cute_nvgpu.atom.set_value<accum_c>(%1400, %true_405) : (!mma_, i1)
          %1407 = nvvm.elect.sync -> i1
          scf.if %1407 {
            %int_tuple_408 = cute.make_int_tuple(%arg21) : (i32) -> !cute.int_tuple<"?">
            %ptr_409 = cute.add_offset(%ptr_69, %int_tuple_408) : (!cute.ptr<i64, smem, align<8>>, !cute.int_tuple<"?">) -> !cute.ptr<i64, smem>
            %1410 = builtin.unrealized_conversion_cast %ptr_409 : !cute.ptr<i64, smem> to !llvm.ptr<3>
            nvvm.tcgen05.commit %1410 : !llvm.ptr<3>
          }
          %1411 = arith.addi %arg21, %c1_i32_214 : i32
          %c2_i32_412 = arith.constant 2 : i32
          %1413 = arith.cmpi eq, %1411, %c2_i32_412 : i32
          %1414:2 = scf.if %1413 -> (i32, i32) {
            %1415 = arith.xori %arg22, %c1_i32_214 : i32
            %c0_i32_416 = arith.constant 0 : i32
            scf.yield %c0_i32_416, %1415 : i32, i32
          } else {
            scf.yield %1411, %arg22 : i32, i32
          }
          scf.yield %1414#0, %1414#1, %1406 : i32, i32, !mma_
        }
        %1417 = nvvm.elect.sync -> i1
        scf.if %1417 {
          %1418 = builtin.unrealized_conversion_cast %iter_46 : !cute.ptr<i64, smem, align<8>> to !llvm.ptr<3>
          nvvm.tcgen05.commit %1418 : !llvm.ptr<3>
        }
      }
      %atom_419 = cute.make_atom() : () -> !cute_nvgpu.atom.tmem_load<f32, 32 DP, 32 bit, x128>
      %1420 = cute_nvgpu.atom.make_tmem_copy(%atom_419, %view_162) : (!cute_nvgpu.atom.tmem_load<f32, 32 DP, 32 bit, x128>, !memref_tmem_f32_1) -> !copy_ldtm_32_
      %coord_421 = cute.make_coord(%1023) : (i32) -> !cute.coord<"?">
      %src_partitioned_422 = cute.tiled.copy.partition_S(%1420, %view_162, %coord_421) : (!copy_ldtm_32_, !memref_tmem_f32_1, !cute.coord<"?">) -> !memref_tmem_f32_2
      %coord_423 = cute.make_coord(%1023) : (i32) -> !cute.coord<"?">
      %dst_partitioned_424 = cute.tiled.copy.partition_D(%1420, %ptn_C_118, %coord_423) : (!copy_ldtm_32_, !memref_gmem_f16_2, !cute.coord<"?">) -> !memref_gmem_f16_3
      %shape_425 = cute.make_shape() : () -> !cute.shape<"((128,1),2,1,1)">
      %lay_426 = cute.make_layout(%shape_425) : !cute.layout<"((128,1),2,1,1):((1,0),128,0,0)">
      %rmem_427 = cute.memref.alloca(%lay_426) : !memref_rmem_f32_
      %shape_428 = cute.make_shape() : () -> !cute.shape<"((128,1),2,1,1)">
      %lay_429 = cute.make_layout(%shape_428) : !cute.layout<"((128,1),2,1,1):((1,0),128,0,0)">
      %rmem_430 = cute.memref.alloca(%lay_429) : !memref_rmem_f16_
      %atom_431 = cute.make_atom() : () -> !cute_nvgpu.atom.universal_copy<f16>
      %coord_432 = cute.make_coord(%1028, %1029, %1030) : (i32, i32, i32) -> !cute.coord<"(_,_,_,_,?,?,?)">
      %slice_433 = cute.slice(%dst_partitioned_424, %coord_432) : !memref_gmem_f16_3, !cute.coord<"(_,_,_,_,?,?,?)">
      scf.if %1074 {
        cute_nvgpu.arch.sm100.relinquish_tmem_alloc_permit [ cta_1]
      }
      %c0_i32_434 = arith.constant 0 : i32
      %1435 = builtin.unrealized_conversion_cast %iter_46 : !cute.ptr<i64, smem, align<8>> to !llvm.ptr<3>
      %c10000000_i32_436 = arith.constant 10000000 : i32
      nvvm.mbarrier.try_wait.parity %1435, %c0_i32_434, %c10000000_i32_436 : !llvm.ptr<3>, i32, i32
      %grouped_437 = cute.group_modes(%src_partitioned_422) <1, 4> : (!memref_tmem_f32_2) -> !memref_tmem_f32_3
      %grouped_438 = cute.group_modes(%rmem_427) <1, 4> : (!memref_rmem_f32_) -> !memref_rmem_f32_1
      cute.copy(%1420, %grouped_437, %grouped_438) : (!copy_ldtm_32_, !memref_tmem_f32_3, !memref_rmem_f32_1)
      %1439 = cute.memref.load_vec(%rmem_427) : (!memref_rmem_f32_) -> vector<256xf32>
      %1440 = arith.truncf %1439 : vector<256xf32> to vector<256xf16>
      cute.memref.store_vec(%1440, %rmem_430) : (vector<256xf16>, !memref_rmem_f16_) -> ()
      %grouped_441 = cute.group_modes(%rmem_430) <1, 4> : (!memref_rmem_f16_) -> !memref_rmem_f16_1
      %grouped_442 = cute.group_modes(%slice_433) <1, 4> : (!memref_gmem_f16_4) -> !memref_gmem_f16_5
      cute.copy(%atom_431, %grouped_441, %grouped_442) : (!cute_nvgpu.atom.universal_copy<f16>, !memref_rmem_f16_1, !memref_gmem_f16_5)
      %c1_i32_443 = arith.constant 1 : i32
      %1444 = builtin.unrealized_conversion_cast %ptr_71 : !cute.ptr<i64, smem, align<8>> to !llvm.ptr<3>
      %arrived = nvvm.mbarrier.arrive %1444, %c1_i32_443 : !llvm.ptr<3> -> i64
      nvvm.barrier
      scf.if %1074 {
        cute_nvgpu.arch.sm100.dealloc_tmem(%tmem_ptr_160, %c512_i32_157) [ cta_1] : !cute.ptr<f32, tmem, align<16>>, i32
      }
      return
    }
  }
  func.func @cutlass___call___m_nvf4Sm100BlockScaledDenseGemmKernel_object_at__Ptrgmem_Ptrgmem(%arg0: !cute.ptr<f4E2M1FN, gmem, align<16>>, %arg1: !cute.ptr<f4E2M1FN, gmem, align<16>>, %arg2: !cute.ptr<f8E4M3FN, gmem, align<32>>, %arg3: !cute.ptr<f8E4M3FN, gmem, align<32>>, %arg4: !cute.ptr<f16, gmem, align<16>>, %arg5: i32, %arg6: i32, %arg7: i32, %arg8: i32, %arg9: !cuda.stream) -> i32 attributes {llvm.emit_c_interface} {
    %iv_445 = cute.assume(%arg7) : (i32) -> !cute.i32<divby 32>
    %iv_446 = cute.assume(%arg7) : (i32) -> !cute.i32<divby 32>
    %1447 = arith.muli %arg5, %arg7 : i32
    %iv_448 = cute.assume(%1447) : (i32) -> !cute.i32<divby 32>
    %shape_449 = cute.make_shape(%arg5, %iv_445, %arg8) : (i32, !cute.i32<divby 32>, i32) -> !cute.shape<"(?,?{div=32},?)">
    %stride_450 = cute.make_stride(%iv_446, %iv_448) : (!cute.i32<divby 32>, !cute.i32<divby 32>) -> !cute.stride<"(?{div=32},1,?{div=32})">
    %lay_451 = cute.make_layout(%shape_449, %stride_450) : !cute.layout<"(?,?{div=32},?):(?{div=32},1,?{div=32})">
    %view_452 = cute.make_view(%arg0, %lay_451) : !memref_gmem_f4E2M1FN_
    %iv_453 = cute.assume(%arg7) : (i32) -> !cute.i32<divby 32>
    %iv_454 = cute.assume(%arg7) : (i32) -> !cute.i32<divby 32>
    %1455 = arith.muli %arg6, %arg7 : i32
    %iv_456 = cute.assume(%1455) : (i32) -> !cute.i32<divby 32>
    %shape_457 = cute.make_shape(%arg6, %iv_453, %arg8) : (i32, !cute.i32<divby 32>, i32) -> !cute.shape<"(?,?{div=32},?)">
    %stride_458 = cute.make_stride(%iv_454, %iv_456) : (!cute.i32<divby 32>, !cute.i32<divby 32>) -> !cute.stride<"(?{div=32},1,?{div=32})">
    %lay_459 = cute.make_layout(%shape_457, %stride_458) : !cute.layout<"(?,?{div=32},?):(?{div=32},1,?{div=32})">
    %view_460 = cute.make_view(%arg1, %lay_459) : !memref_gmem_f4E2M1FN_
    %iv_461 = cute.assume(%arg5) : (i32) -> !cute.i32<divby 32>
    %iv_462 = cute.assume(%arg6) : (i32) -> !cute.i32<divby 16>
    %iv_463 = cute.assume(%arg6) : (i32) -> !cute.i32<divby 16>
    %1464 = arith.muli %arg5, %arg6 : i32
    %iv_465 = cute.assume(%1464) : (i32) -> !cute.i32<divby 512>
    %shape_466 = cute.make_shape(%iv_461, %iv_462, %arg8) : (!cute.i32<divby 32>, !cute.i32<divby 16>, i32) -> !cute.shape<"(?{div=32},?{div=16},?)">
    %stride_467 = cute.make_stride(%iv_463, %iv_465) : (!cute.i32<divby 16>, !cute.i32<divby 512>) -> !cute.stride<"(?{div=16},1,?{div=512})">
    %lay_468 = cute.make_layout(%shape_466, %stride_467) : !cute.layout<"(?{div=32},?{div=16},?):(?{div=16},1,?{div=512})">
    %view_469 = cute.make_view(%arg4, %lay_468) : !memref_gmem_f16_
    %1470 = cute.static : !cute.layout<"((32,4),(16,4)):((16,4),(0,1))">
    %iv_471 = cute.assume(%arg7) : (i32) -> !cute.i32<divby 32>
    %shape_472 = cute.make_shape(%arg5, %iv_471, %arg8) : (i32, !cute.i32<divby 32>, i32) -> !cute.shape<"(?,?{div=32},?)">
    %int_tuple_473 = cute.make_int_tuple() : () -> !cute.int_tuple<"(2,1,3)">
    %tile_to_shape_474 = cute.tile_to_shape(%1470, %shape_472, %int_tuple_473) : (!cute.layout<"((32,4),(16,4)):((16,4),(0,1))">, !cute.shape<"(?,?{div=32},?)">, !cute.int_tuple<"(2,1,3)">) -> !cute.layout<"(((32,4),?),((16,4),?),(1,?)):(((16,4),?{div=512}),((0,1),512),(0,?{div=512}))">
    %view_475 = cute.make_view(%arg2, %tile_to_shape_474) : !memref_gmem_f8E4M3FN_
    %1476 = cute.static : !cute.layout<"((32,4),(16,4)):((16,4),(0,1))">
    %iv_477 = cute.assume(%arg7) : (i32) -> !cute.i32<divby 32>
    %shape_478 = cute.make_shape(%arg6, %iv_477, %arg8) : (i32, !cute.i32<divby 32>, i32) -> !cute.shape<"(?,?{div=32},?)">
    %int_tuple_479 = cute.make_int_tuple() : () -> !cute.int_tuple<"(2,1,3)">
    %tile_to_shape_480 = cute.tile_to_shape(%1476, %shape_478, %int_tuple_479) : (!cute.layout<"((32,4),(16,4)):((16,4),(0,1))">, !cute.shape<"(?,?{div=32},?)">, !cute.int_tuple<"(2,1,3)">) -> !cute.layout<"(((32,4),?),((16,4),?),(1,?)):(((16,4),?{div=512}),((0,1),512),(0,?{div=512}))">
    %view_481 = cute.make_view(%arg3, %tile_to_shape_480) : !memref_gmem_f8E4M3FN_
    %1482 = cute.static : !cute.composed_layout<"S<3,4,3> o 0 o ((128,64),1,4,2):((256,1),0,64,32768)">
    %coord_483 = cute.make_coord() : () -> !cute.coord<"(_,_,_,0)">
    %slice_484 = cute.slice(%1482, %coord_483) : !cute.composed_layout<"S<3,4,3> o 0 o ((128,64),1,4,2):((256,1),0,64,32768)">, !cute.coord<"(_,_,_,0)">
    %1485 = cute.static : !cute.layout<"((128,64),1,4):((1@0,1@1),0,64@1)">
    %non_exec_atom_486, %tma_tensor_487 = cute_nvgpu.atom.make_non_exec_tiled_tma_load(%view_452, %slice_484, %1485) <{kind = <sm_90> num_multicast = 1}> : (!memref_gmem_f4E2M1FN_, !cute.composed_layout<"S<3,4,3> o 0 o ((128,64),1,4):((256,1),0,64)">, !cute.layout<"((128,64),1,4):((1@0,1@1),0,64@1)">) -> (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f4E2M1FN, copy_bits = 131072, tma_gbasis = <"(256,128,1):(1@1,1@0,1@2)">, tma_format = U4>, !cute.coord_tensor<"(0,0,0)", "(?,?{div=32},?):(1@1,1@0,1@2)">)
    %1488 = cute.static : !cute.composed_layout<"S<3,4,3> o 0 o ((256,64),1,4,2):((256,1),0,64,65536)">
    %coord_489 = cute.make_coord() : () -> !cute.coord<"(_,_,_,0)">
    %slice_490 = cute.slice(%1488, %coord_489) : !cute.composed_layout<"S<3,4,3> o 0 o ((256,64),1,4,2):((256,1),0,64,65536)">, !cute.coord<"(_,_,_,0)">
    %1491 = cute.static : !cute.layout<"((256,64),1,4):((1@0,1@1),0,64@1)">
    %non_exec_atom_492, %tma_tensor_493 = cute_nvgpu.atom.make_non_exec_tiled_tma_load(%view_460, %slice_490, %1491) <{kind = <sm_90> num_multicast = 1}> : (!memref_gmem_f4E2M1FN_, !cute.composed_layout<"S<3,4,3> o 0 o ((256,64),1,4):((256,1),0,64)">, !cute.layout<"((256,64),1,4):((1@0,1@1),0,64@1)">) -> (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f4E2M1FN, copy_bits = 262144, tma_gbasis = <"(256,256,1):(1@1,1@0,1@2)">, tma_format = U4>, !cute.coord_tensor<"(0,0,0)", "(?,?{div=32},?):(1@1,1@0,1@2)">)
    %1494 = cute.static : !cute.layout<"((((32,4),1),(16,4)),1,4,2):((((16,4),0),(0,1)),0,512,2048)">
    %coord_495 = cute.make_coord() : () -> !cute.coord<"(_,_,_,0)">
    %slice_496 = cute.slice(%1494, %coord_495) : !cute.layout<"((((32,4),1),(16,4)),1,4,2):((((16,4),0),(0,1)),0,512,2048)">, !cute.coord<"(_,_,_,0)">
    %1497 = cute.static : !cute.layout<"(((32,4),(16,4)),1,4):(((1@0@0@0,1@1@0@0),(1@0@0@1,1@1@0@1)),0,1@1@1)">
    %non_exec_atom_498, %tma_tensor_499 = cute_nvgpu.atom.make_non_exec_tiled_tma_load(%view_475, %slice_496, %1497) <{kind = <sm_90> num_multicast = 1 tma_format = #cute_nvgpu.tma_data_format<U16>}> : (!memref_gmem_f8E4M3FN_, !cute.layout<"((((32,4),1),(16,4)),1,4):((((16,4),0),(0,1)),0,512)">, !cute.layout<"(((32,4),(16,4)),1,4):(((1@0@0@0,1@1@0@0),(1@0@0@1,1@1@0@1)),0,1@1@1)">) -> (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E4M3FN, copy_bits = 16384, tma_gbasis = <"((2,4,32),4,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">, tma_format = U16>, !cute.coord_tensor<"(0,0,0,0)", "(((32,4),?),((16,4),?),(1,?)):(((8@0,2@0),1@2),((0,1/2@0),1@1),(0,1@3))">)
    %1500 = cute.static : !cute.layout<"((((32,4),2),(16,4)),1,4,2):((((16,4),2048),(0,1)),0,512,4096)">
    %coord_501 = cute.make_coord() : () -> !cute.coord<"(_,_,_,0)">
    %slice_502 = cute.slice(%1500, %coord_501) : !cute.layout<"((((32,4),2),(16,4)),1,4,2):((((16,4),2048),(0,1)),0,512,4096)">, !cute.coord<"(_,_,_,0)">
    %1503 = cute.static : !cute.layout<"(((32,4,2),(16,4)),1,4):(((1@0@0@0,1@1@0@0,1@1@0),(1@0@0@1,1@1@0@1)),0,1@1@1)">
    %non_exec_atom_504, %tma_tensor_505 = cute_nvgpu.atom.make_non_exec_tiled_tma_load(%view_481, %slice_502, %1503) <{kind = <sm_90> num_multicast = 1 tma_format = #cute_nvgpu.tma_data_format<U16>}> : (!memref_gmem_f8E4M3FN_, !cute.layout<"((((32,4),2),(16,4)),1,4):((((16,4),2048),(0,1)),0,512)">, !cute.layout<"(((32,4,2),(16,4)),1,4):(((1@0@0@0,1@1@0@0,1@1@0),(1@0@0@1,1@1@0@1)),0,1@1@1)">) -> (!cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E4M3FN, copy_bits = 32768, tma_gbasis = <"((2,4,32),4,2,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">, tma_format = U16>, !cute.coord_tensor<"(0,0,0,0)", "(((32,4),?),((16,4),?),(1,?)):(((8@0,2@0),1@2),((0,1/2@0),1@1),(0,1@3))">)
    %atom_506 = cute.make_atom() : () -> !cute_nvgpu.sm100.mma_bs<128x256x64, num_cta = 1, ab_major = (k, k), elem_type = (f4E2M1FN, f4E2M1FN, f32), sf_type = f8E4M3FN, frag_kind = ss, vec_size = 16>
    %1507 = cute.make_tiled_mma(%atom_506) : !mma_
    %tile_508 = cute.make_tile() : () -> !cute.tile<"[128:1;256:1;1:0]">
    %1509 = cute.get_shape(%tile_to_shape_480) : (!cute.layout<"(((32,4),?),((16,4),?),(1,?)):(((16,4),?{div=512}),((0,1),512),(0,?{div=512}))">) -> !cute.shape<"(((32,4),?),((16,4),?),(1,?))">
    %c127_i32_510 = arith.constant 127 : i32
    %1511 = arith.addi %arg5, %c127_i32_510 : i32
    %c128_i32_512 = arith.constant 128 : i32
    %1513 = arith.floordivsi %1511, %c128_i32_512 : i32
    %c255_i32_514 = arith.constant 255 : i32
    %1515 = arith.addi %arg6, %c255_i32_514 : i32
    %c256_i32_516 = arith.constant 256 : i32
    %1517 = arith.floordivsi %1515, %c256_i32_516 : i32
    %c0_i32_518 = arith.constant 0 : i32
    %c1_i32_519 = arith.constant 1 : i32
    %c128_i32_520 = arith.constant 128 : i32
    %c0_i64_521 = arith.constant 0 : i64
    %1522 = cute.kernel_smem_size @kernels::@kernel_cutlass_kernel_m_nvf4Sm100BlockScaledDenseGemmKernel_object_at__TiledMMA_ThrLayoutVMNK11110000_0 : i64
    %1523 = cuda.launch_cfg.create<max_attrs = 17 : i32> (blockDim = (%c128_i32_520, %c1_i32_519, %c1_i32_519), dynamicSmemBytes = %1522, gridDim = (%1513, %1517, %arg8), stream = %arg9) : i32, i32, i32, i64, i32, i32, i32, !cuda.stream -> !cuda.launch_cfg<max_attrs = 17>
    cuda.launch_cfg.cluster_dim[%1523] (%c1_i32_519, %c1_i32_519, %c1_i32_519) : !cuda.launch_cfg<max_attrs = 17>, i32, i32, i32
    cuda.launch_cfg.cooperative[%1523] %c0_i32_518 : !cuda.launch_cfg<max_attrs = 17>, i32
    %1524 = cuda.launch_ex @kernels::@kernel_cutlass_kernel_m_nvf4Sm100BlockScaledDenseGemmKernel_object_at__TiledMMA_ThrLayoutVMNK11110000_0<%1523> (%1507, %non_exec_atom_486, %tma_tensor_487, %non_exec_atom_492, %tma_tensor_493, %non_exec_atom_498, %tma_tensor_499, %non_exec_atom_504, %tma_tensor_505, %view_469, %1482, %1488, %1494, %1500) {assume_kernel_attr = #cuda.assume_kernel_attr<true>} : !cuda.launch_cfg<max_attrs = 17>, (!mma_, !cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f4E2M1FN, copy_bits = 131072, tma_gbasis = <"(256,128,1):(1@1,1@0,1@2)">, tma_format = U4>, !cute.coord_tensor<"(0,0,0)", "(?,?{div=32},?):(1@1,1@0,1@2)">, !cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f4E2M1FN, copy_bits = 262144, tma_gbasis = <"(256,256,1):(1@1,1@0,1@2)">, tma_format = U4>, !cute.coord_tensor<"(0,0,0)", "(?,?{div=32},?):(1@1,1@0,1@2)">, !cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E4M3FN, copy_bits = 16384, tma_gbasis = <"((2,4,32),4,1,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">, tma_format = U16>, !cute.coord_tensor<"(0,0,0,0)", "(((32,4),?),((16,4),?),(1,?)):(((8@0,2@0),1@2),((0,1/2@0),1@1),(0,1@3))">, !cute_nvgpu.atom.non_exec_tiled_tma_load<sm_90, f8E4M3FN, copy_bits = 32768, tma_gbasis = <"((2,4,32),4,2,1):((1@1@0@1,1@1@0@0,1@0@0@0),1@1@1,1@1@0,1@1@2)">, tma_format = U16>, !cute.coord_tensor<"(0,0,0,0)", "(((32,4),?),((16,4),?),(1,?)):(((8@0,2@0),1@2),((0,1/2@0),1@1),(0,1@3))">, !memref_gmem_f16_, !cute.composed_layout<"S<3,4,3> o 0 o ((128,64),1,4,2):((256,1),0,64,32768)">, !cute.composed_layout<"S<3,4,3> o 0 o ((256,64),1,4,2):((256,1),0,64,65536)">, !cute.layout<"((((32,4),1),(16,4)),1,4,2):((((16,4),0),(0,1)),0,512,2048)">, !cute.layout<"((((32,4),2),(16,4)),1,4,2):((((16,4),2048),(0,1)),0,512,4096)">) -> !cuda.result
    %1525 = cuda.cast %1524 : !cuda.result -> i32
    cuda.return_if_error %1525 : i32
    return %c0_i32_518 : i32
  }
}
